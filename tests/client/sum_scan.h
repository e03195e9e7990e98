// A scan that the fake server can serve, and the result that a client must get.
#ifndef PREFIXD_TESTS_CLIENT_SUM_SCAN_H_
#define PREFIXD_TESTS_CLIENT_SUM_SCAN_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "client/client.h"
#include "tests/client/fake_server.h"

namespace prefixd::client {

using ScanRpc = grpc::ServerReaderWriter<v1::ScanResponse, v1::ScanRequest>;
using DifferenceRpc = grpc::ServerReaderWriter<v1::DifferenceResponse, v1::DifferenceRequest>;
using CompactRpc = grpc::ServerReaderWriter<v1::CompactResponse, v1::CompactRequest>;

inline const grpc::Status kUnavailable(grpc::StatusCode::UNAVAILABLE, "not now");

// The largest number of i64 elements that one unary call takes.
inline constexpr size_t kUnaryItems = kMaxPayloadBytes / sizeof(int64_t);

inline ClientOptions FastRetries() {
  return {.retry_window = absl::Seconds(20), .initial_backoff = absl::Milliseconds(1)};
}

// Answers a stream with the inclusive sum of its i64 elements, chunk by chunk, and checks the protocol on the way.
inline grpc::Status SumScan(ScanRpc* rpc) {
  v1::ScanRequest request;
  v1::ScanResponse response;
  uint64_t carry = 0;
  uint64_t next_item = 0;
  bool first = true;
  while (rpc->Read(&request)) {
    EXPECT_EQ(request.has_spec(), first);
    first = false;
    const auto& chunk = request.values().inline_();
    EXPECT_LE(chunk.data().size(), kMaxPayloadBytes);
    EXPECT_EQ(chunk.first_item(), next_item);
    std::vector<uint64_t> values = Elements<uint64_t>(chunk.data());
    next_item += values.size();
    for (uint64_t& value : values) value = carry += value;
    response.mutable_values()->mutable_inline_()->set_data(Data(values));
    rpc->Write(response);
  }
  response.Clear();
  response.mutable_timing()->set_num_items(next_item);
  rpc->Write(response);
  return grpc::Status::OK;
}

// Sends the elements of a stream's first message back.
inline void AnswerOneMessage(ScanRpc* rpc) {
  v1::ScanRequest request;
  rpc->Read(&request);
  v1::ScanResponse response;
  *response.mutable_values()->mutable_inline_() = request.values().inline_();
  rpc->Write(response);
}

inline std::vector<int64_t> RandomInts(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = static_cast<int64_t>(random());
  return values;
}

inline std::vector<int64_t> PrefixSums(const std::vector<int64_t>& values) {
  std::vector<int64_t> sums(values.size());
  uint64_t sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sums[i] = static_cast<int64_t>(sum += static_cast<uint64_t>(values[i]));
  return sums;
}

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_SUM_SCAN_H_
