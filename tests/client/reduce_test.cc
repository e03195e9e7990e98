// Whole reduces: what goes over the wire, and what comes back.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/client/fake_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

TEST(ClientReduce, OfAnotherOutputType) {
  FakeServer server;
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest& request, v1::ReduceResponse* response) {
    EXPECT_EQ(request.spec().dtype(), v1::DTYPE_F32);
    EXPECT_EQ(request.spec().out_dtype(), v1::DTYPE_F64);
    response->mutable_value()->set_double_value(0.1);
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto reduced = client.Reduce<float, double>({1, 2});
  ASSERT_TRUE(reduced.ok()) << reduced.status();
  EXPECT_EQ(reduced->value, 0.1);  // Not rounded to f32 on the way.
}

TEST(ClientReduce, UnaryAndStream) {
  FakeServer server;
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest& request, v1::ReduceResponse* response) {
    EXPECT_EQ(request.spec().op(), v1::OP_MIN);
    EXPECT_EQ(request.spec().init().uint64_value(), ~uint64_t{0});
    response->mutable_value()->set_uint64_value(1);
    response->set_count(3);
    response->set_index(2);
    return grpc::Status::OK;
  };
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>* reader,
                                    v1::ReduceResponse* response) {
    uint64_t sum = 0;
    uint64_t count = 0;
    for (v1::ReduceRequest request; reader->Read(&request);) {
      EXPECT_LE(request.values().inline_().data().size(), kMaxPayloadBytes);
      EXPECT_EQ(request.values().inline_().first_item(), count);
      for (uint64_t value : Elements<uint64_t>(request.values().inline_().data())) {
        sum += value;
        ++count;
      }
    }
    response->mutable_value()->set_uint64_value(sum);
    response->set_count(count);
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto small = client.Reduce<uint64_t>({7, 3, 1}, {.op = Op::kMin, .init = ~uint64_t{0}});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->value, 1);
  EXPECT_EQ(small->index, 2);
  std::vector<uint64_t> values(5 * kUnaryItems + 17);
  std::iota(values.begin(), values.end(), uint64_t{1} << 62);
  const auto large = client.Reduce<uint64_t>(values);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->value, std::accumulate(values.begin(), values.end(), uint64_t{0}));
  EXPECT_EQ(large->count, values.size());
  EXPECT_EQ(large->index, std::nullopt);
}

}  // namespace
}  // namespace prefixd::client
