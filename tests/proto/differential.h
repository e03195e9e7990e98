// Compares our parser of array messages with protobuf's, for any bytes and any cut of them into slices.
#ifndef PREFIXD_TESTS_PROTO_DIFFERENTIAL_H_
#define PREFIXD_TESTS_PROTO_DIFFERENTIAL_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/array_message.h"

namespace prefixd {

// The bytes as gRPC would deliver them, in slices. `sizes` repeats; a size of 0 makes an empty slice.
inline grpc::ByteBuffer InSlices(std::string_view bytes, const std::vector<size_t>& sizes) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; !bytes.empty(); ++i) {
    const size_t count = std::min(i < 1000 ? sizes[i % sizes.size()] : bytes.size(), bytes.size());
    slices.emplace_back(bytes.data(), count);
    bytes.remove_prefix(count);
  }
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Puts the payloads back into the message.
inline void Restore(ArrayPayloads& payloads, google::protobuf::Message* message) {
  const auto inner = [](google::protobuf::Message* outer, int number) {
    return outer->GetReflection()->MutableMessage(outer, outer->GetDescriptor()->FindFieldByNumber(number));
  };
  constexpr int kInline = 100;
  for (int field = kFirstArrayField; field <= kLastArrayField; ++field) {
    if (payloads[field].empty()) continue;
    auto* const chunk = static_cast<v1::InlineChunk*>(inner(inner(message, field), kInline));
    chunk->set_data(payloads[field].ToString());
  }
}

// Describes how the two parsers differ; empty if they agree.
template <class Message>
std::string Mismatch(std::string_view bytes, const std::vector<size_t>& slice_sizes) {
  Message expected;
  const bool is_message = expected.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  Message message;
  ArrayPayloads payloads;
  const bool parsed = ParseArrayMessage(InSlices(bytes, slice_sizes), &message, &payloads).ok();
  // Protobuf has no bound on what is beside the arrays, as all is to a message without those arrays.
  if (!parsed && bytes.size() > kMaxBytesBesideArrays) return "";
  if (parsed != is_message) return parsed ? "protobuf refuses it" : "protobuf takes it";
  if (!parsed) return "";
  if (!message.values().inline_().data().empty()) return "the message has its payload still";
  Restore(payloads, &message);
  if (message.SerializeAsString() == expected.SerializeAsString()) return "";
  return "protobuf reads " + expected.ShortDebugString() + "\nwe read " + message.ShortDebugString();
}

// The differences for each of these messages with arrays.
inline std::string AnyMismatch(std::string_view bytes, const std::vector<size_t>& slice_sizes) {
  std::string all;
  const auto add = [&](const char* name, const std::string& mismatch) {
    if (!mismatch.empty()) all += std::string(name) + ": " + mismatch + "\n";
  };
  add("ScanRequest", Mismatch<v1::ScanRequest>(bytes, slice_sizes));
  add("ReduceRequest", Mismatch<v1::ReduceRequest>(bytes, slice_sizes));
  add("CompactRequest", Mismatch<v1::CompactRequest>(bytes, slice_sizes));
  add("DifferenceRequest", Mismatch<v1::DifferenceRequest>(bytes, slice_sizes));
  add("ScanResponse", Mismatch<v1::ScanResponse>(bytes, slice_sizes));
  add("CompactResponse", Mismatch<v1::CompactResponse>(bytes, slice_sizes));
  add("DifferenceResponse", Mismatch<v1::DifferenceResponse>(bytes, slice_sizes));
  return all;
}

// The differences for a fuzzer's bytes. The first two bytes say how the others are cut into slices.
inline std::string FuzzedMismatch(std::string_view bytes) {
  if (bytes.size() < 2) return "";
  const auto first = static_cast<uint8_t>(bytes[0]);
  const auto second = static_cast<uint8_t>(bytes[1]);
  return AnyMismatch(bytes.substr(2), {first % 64 + size_t{1}, second});
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_PROTO_DIFFERENTIAL_H_
