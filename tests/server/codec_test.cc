#include "server/rpc/codec.h"

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/yardsticks/serves.h"
#include "proto/wire_compact.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "proto/wire_values.h"

namespace prefixd {
namespace {

v1::ScanRequest GoodScan() {
  v1::ScanRequest request;
  request.mutable_spec()->set_dtype(v1::DTYPE_I32);
  request.mutable_spec()->set_op(v1::OP_SUM);
  request.mutable_values()->mutable_inline_()->set_data("abcd");
  return request;
}

v1::CompactRequest GoodCompact() {
  v1::CompactRequest request;
  request.mutable_spec()->set_dtype(v1::DTYPE_I32);
  request.mutable_spec()->mutable_predicate()->set_comparison(v1::COMPARISON_LESS);
  request.mutable_spec()->mutable_predicate()->mutable_value()->set_int64_value(3);
  return request;
}

// Decodes a copy of the request as if it came over the wire.
template <class Request>
absl::StatusOr<Message> DecodeCopy(const Request& request) {
  const grpc::Slice slice(request.SerializeAsString());
  Request parsed;
  ArrayPayloads payloads;
  EXPECT_TRUE(ParseArrayMessage(grpc::ByteBuffer(&slice, 1), &parsed, &payloads).ok());
  PREFIXD_ASSIGN_OR_RETURN(Message message, Decode(parsed, std::move(payloads)));
  if (parsed.has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.operation, FromWire(parsed.spec()));
  }
  return message;
}

template <class Request>
std::string Reason(const Request& request) {
  return ErrorReason(DecodeCopy(request).status());
}

TEST(CodecTest, DecodesAScan) {
  v1::ScanRequest request = GoodScan();
  request.set_request_id("id");
  request.mutable_spec()->set_kind(v1::SCAN_KIND_EXCLUSIVE);
  request.mutable_spec()->mutable_init()->set_int64_value(-7);
  request.mutable_spec()->set_reverse(true);
  request.mutable_spec()->set_num_items(1);
  request.mutable_values()->mutable_inline_()->set_first_item(0);
  const auto message = DecodeCopy(request);
  ASSERT_TRUE(message.ok()) << message.status();
  ASSERT_TRUE(message->operation);
  const auto& scan = std::get<ScanSpec>(*message->operation);
  EXPECT_EQ(message->request_id, "id");
  EXPECT_EQ(scan.dtype, DType::kI32);
  EXPECT_EQ(scan.num_items, 1u);
  EXPECT_EQ(scan.op, Op::kSum);
  EXPECT_EQ(scan.kind, ScanKind::kExclusive);
  EXPECT_TRUE(scan.reverse);
  EXPECT_EQ(scan.init->As<int32_t>(), -7);
  EXPECT_EQ(message->chunk.values.ToString(), "abcd");
  EXPECT_EQ(message->chunk.first_item, 0u);
}

TEST(CodecTest, UnknownOrMissingEnumsAreRefused) {
  const auto scan = [](auto change) {
    v1::ScanRequest request = GoodScan();
    change(request.mutable_spec());
    return Reason(request);
  };
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_dtype(v1::DTYPE_UNSPECIFIED); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_dtype(static_cast<v1::DType>(99)); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_dtype(static_cast<v1::DType>(-1)); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_out_dtype(static_cast<v1::DType>(99)); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_op(v1::OP_UNSPECIFIED); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_op(static_cast<v1::Op>(99)); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_kind(static_cast<v1::ScanKind>(3)); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->set_precision(static_cast<v1::Precision>(9)); }), "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->mutable_algorithm()->set_strategy(static_cast<v1::Strategy>(77)); }),
            "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->mutable_algorithm()->set_strategy(static_cast<v1::Strategy>(-2)); }),
            "UNKNOWN_ENUM");
  EXPECT_EQ(scan([](v1::ScanSpec* s) { s->mutable_algorithm()->set_tile_scan(static_cast<v1::TileScan>(77)); }),
            "UNKNOWN_ENUM");
  v1::CompactRequest compact = GoodCompact();
  compact.mutable_spec()->mutable_predicate()->set_comparison(static_cast<v1::Comparison>(42));
  EXPECT_EQ(Reason(compact), "UNKNOWN_ENUM");
  compact.mutable_spec()->set_mask(static_cast<v1::MaskKind>(7));
  EXPECT_EQ(Reason(compact), "UNKNOWN_ENUM");
}

TEST(CodecTest, TheServersAlgorithmsAreListed) {
  const std::unique_ptr<Device> device = OpenCpuDevice();
  v1::GetServerInfoResponse response;
  EncodeAlgorithms(*device, &response);
  ASSERT_EQ(response.algorithms_size(), static_cast<int>(device->Algorithms().size()));
  for (int i = 0; i < response.algorithms_size(); ++i) {
    const AlgorithmInfo& row = device->Algorithms()[i];
    const v1::AlgorithmInfo& wire = response.algorithms(i);
    EXPECT_EQ(static_cast<int>(wire.primitive()) - 1, static_cast<int>(row.primitive));
    EXPECT_EQ(DecodeAlgorithm(wire.algorithm(), "").value(), row.algorithm);
    EXPECT_EQ(wire.has_items_per_thread(), row.has_items_per_thread);
    EXPECT_EQ(wire.has_padding(), row.has_padding);
    EXPECT_EQ(wire.work(), row.work);
    EXPECT_EQ(wire.depth(), row.depth);
    EXPECT_EQ(wire.traffic(), row.traffic);
    EXPECT_EQ(wire.launches(), row.launches);
    EXPECT_EQ(wire.stable(), row.stable);
    EXPECT_EQ(wire.deterministic(), row.deterministic);
    EXPECT_EQ(wire.max_items(), row.max_items);
    EXPECT_EQ(wire.source(), row.source);
  }
}

TEST(CodecTest, WhatIsLeftOutIsNotListed) {
  const std::unique_ptr<Device> device = OpenCpuDevice();
  device->ServeDefaultsOnly();
  v1::GetServerInfoResponse response;
  EncodeAlgorithms(*device, &response);
  EncodeCapabilities(*device, &response);
  EXPECT_EQ(response.algorithms_size(), kNumPrimitives);
  EXPECT_GT(response.capabilities_size(), 0);
  for (const v1::Capability& capability : response.capabilities()) {
    EXPECT_TRUE(FollowsNumerics(DecodeAlgorithm(capability.algorithm(), "").value()));
  }
}

TEST(CodecTest, WhatIsNotServedYetSaysSo) {
  const auto scan = [](auto change) {
    v1::ScanRequest request = GoodScan();
    change(&request);
    const absl::Status status = DecodeCopy(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    return ErrorReason(status);
  };
  using R = v1::ScanRequest;
  EXPECT_EQ(scan([](R* r) { r->mutable_values()->mutable_device_memory(); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_values()->mutable_shared_memory(); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_sink()->mutable_shared_memory(); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_sink()->mutable_device_memory(); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_sink()->mutable_new_array()->set_device_index(1); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_indices_sink()->mutable_device_memory(); }), "NOT_IMPLEMENTED");
}

TEST(CodecTest, AnOpThatHasNoMeaningOnTheTypeIsRefused) {
  for (const auto op : {v1::OP_AND, v1::OP_OR, v1::OP_XOR}) {
    for (const auto dtype : {v1::DTYPE_F32, v1::DTYPE_F64}) {
      v1::ScanRequest request = GoodScan();
      request.mutable_spec()->set_op(op);
      request.mutable_spec()->set_dtype(dtype);
      EXPECT_EQ(Reason(request), "UNSUPPORTED_COMBINATION");
      request.mutable_spec()->set_dtype(v1::DTYPE_U64);
      EXPECT_TRUE(DecodeCopy(request).ok());
    }
  }
  v1::CompactRequest compact = GoodCompact();
  compact.mutable_spec()->set_index_dtype(v1::DTYPE_F32);
  EXPECT_EQ(Reason(compact), "UNSUPPORTED_COMBINATION");
}

TEST(CodecTest, OutputTypesAreThoseOfTheList) {
  for (int in = 1; in < v1::DType_ARRAYSIZE; ++in) {
    const auto dtype = static_cast<DType>(in - 1);
    if (!IsSupported(dtype)) continue;
    for (int out = 1; out < v1::DType_ARRAYSIZE; ++out) {
      const auto out_dtype = static_cast<DType>(out - 1);
      SCOPED_TRACE(StrCat(Name(dtype), " to ", Name(out_dtype)));
      v1::ScanRequest scan;
      scan.mutable_spec()->set_dtype(static_cast<v1::DType>(in));
      scan.mutable_spec()->set_out_dtype(static_cast<v1::DType>(out));
      scan.mutable_spec()->set_op(v1::OP_MAX);
      v1::ReduceRequest reduce;
      reduce.mutable_spec()->set_dtype(scan.spec().dtype());
      reduce.mutable_spec()->set_out_dtype(scan.spec().out_dtype());
      reduce.mutable_spec()->set_op(v1::OP_MAX);
      for (const auto& message : {DecodeCopy(scan), DecodeCopy(reduce)}) {
        if (IsOutput(dtype, out_dtype)) {
          ASSERT_TRUE(message.ok()) << message.status();
          EXPECT_EQ(InputOf(*message->operation), dtype);
          EXPECT_EQ(OutputOf(*message->operation), out_dtype);
        } else {
          EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
          EXPECT_EQ(ErrorReason(message.status()), "UNSUPPORTED_COMBINATION");
          EXPECT_EQ(ErrorField(message.status()), "spec.out_dtype");
          EXPECT_NE(message.status().message().find(StrCat("use one of ", OutputNames(dtype))), std::string::npos);
        }
      }
    }
  }
  EXPECT_EQ(OutputOf(*DecodeCopy(GoodScan())->operation), DType::kI32);
}

TEST(CodecTest, BitwiseOpsAreForIntegerOutputs) {
  v1::ReduceRequest request;
  request.mutable_spec()->set_dtype(v1::DTYPE_F32);
  request.mutable_spec()->set_out_dtype(v1::DTYPE_F64);
  request.mutable_spec()->set_op(v1::OP_XOR);
  EXPECT_EQ(Reason(request), "UNSUPPORTED_COMBINATION");
  EXPECT_EQ(ErrorField(DecodeCopy(request).status()), "spec.op");
}

TEST(CodecTest, TheInitIsOfTheOutputType) {
  const auto decode = [](v1::DType dtype, v1::DType out_dtype, int64_t init) {
    v1::ScanRequest request;
    request.mutable_spec()->set_dtype(dtype);
    request.mutable_spec()->set_out_dtype(out_dtype);
    request.mutable_spec()->set_op(v1::OP_SUM);
    request.mutable_spec()->mutable_init()->set_int64_value(init);
    return DecodeCopy(request);
  };
  const auto wide = decode(v1::DTYPE_U8, v1::DTYPE_U32, 4294967295);
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(std::get<ScanSpec>(*wide->operation).init, Value::Of(uint32_t{4294967295}));
  for (const auto& refused :
       {decode(v1::DTYPE_U8, v1::DTYPE_U32, 4294967296), decode(v1::DTYPE_U8, v1::DTYPE_U32, -1),
        decode(v1::DTYPE_U8, v1::DTYPE_UNSPECIFIED, 256), decode(v1::DTYPE_I16, v1::DTYPE_I16, -32769)}) {
    EXPECT_EQ(ErrorReason(refused.status()), "SCALAR_OUT_OF_RANGE") << refused.status();
    EXPECT_EQ(ErrorField(refused.status()), "spec.init");
  }
  EXPECT_EQ(decode(v1::DTYPE_U8, v1::DTYPE_U32, -1).status().message(), "-1 is not a value of u32");
}

TEST(CodecTest, NarrowValuesAreEncodedWithTheirSign) {
  Result result;
  result.dtype = DType::kI8;
  result.value = Value::Of(int8_t{-5});
  v1::ReduceResponse response;
  Encode(result, &response);
  EXPECT_EQ(response.value().int64_value(), -5);
  result.dtype = DType::kU16;
  result.value = Value::Of(uint16_t{65535});
  Encode(result, &response);
  EXPECT_EQ(response.value().uint64_value(), 65535u);
}

TEST(CodecTest, SelectorsMustBeWhole) {
  v1::CompactRequest request = GoodCompact();
  ASSERT_TRUE(DecodeCopy(request).ok());
  request.mutable_spec()->mutable_predicate()->clear_value();
  EXPECT_EQ(Reason(request), "FIELD_CONFLICT");
  request.mutable_spec()->mutable_predicate()->set_comparison(v1::COMPARISON_IS_NAN);
  EXPECT_TRUE(DecodeCopy(request).ok());
  request.mutable_spec()->mutable_predicate()->mutable_value()->set_int64_value(1);
  EXPECT_EQ(Reason(request), "FIELD_CONFLICT");
  request.mutable_spec()->clear_selector();
  EXPECT_EQ(Reason(request), "FIELD_CONFLICT");
}

TEST(CodecTest, AMaskStartsWhereItsValuesDo) {
  v1::CompactRequest request = GoodCompact();
  request.mutable_mask()->mutable_inline_()->set_first_item(4);
  ASSERT_TRUE(DecodeCopy(request).ok());
  EXPECT_EQ(DecodeCopy(request)->chunk.first_item, 4u);
  request.mutable_values()->mutable_inline_()->set_first_item(4);
  EXPECT_TRUE(DecodeCopy(request).ok());
  request.mutable_values()->mutable_inline_()->set_first_item(5);
  EXPECT_EQ(Reason(request), "CHUNK_OUT_OF_ORDER");
}

TEST(CodecTest, TimingLeavesOutWhatWasNotMeasured) {
  Result result;
  result.timing.kernel_ns = 10;
  result.timing.num_bytes = 40;
  v1::ScanResponse response;
  Encode(result, &response);
  EXPECT_FALSE(response.timing().has_host_to_device_ns());
  EXPECT_FALSE(response.timing().has_device_to_host_ns());
  EXPECT_EQ(response.timing().kernel_ns(), 10);
  EXPECT_EQ(response.timing().kernel_gb_per_s(), 4.0);
  EXPECT_EQ(response.timing().batch_size(), 1u);
}

TEST(CodecTest, CapabilitiesAreTheOneList) {
  const std::unique_ptr<Device> device = OpenCpuDevice();
  v1::GetServerInfoResponse response;
  EncodeCapabilities(*device, &response);
  // 25 pairs of dtypes; four ops on all, three more on the 18 of integers, one more on the seven of floats; scan and
  // reduce; and compact of twelve dtypes: by the default and by sequential. Naive scans sums, min and max of six
  // dtypes; kahan reduces sums of two. And differences of twelve dtypes. Std and onetbb scan and reduce what naive
  // scans; std compacts those six dtypes. Linear recurrences of two dtypes by the default.
  EXPECT_EQ(response.capabilities_size(),
            2 * (2 * (25 * 4 + 18 * 3 + 7) + 12) + 6 * 3 + 2 + 12 + 2 * 2 * 6 * 3 + 6 + 2);
  std::set<std::string> listed;
  int num_wide = 0;
  for (const v1::Capability& capability : response.capabilities()) {
    listed.insert(capability.ShortDebugString());
    const auto primitive = static_cast<Primitive>(capability.primitive() - 1);
    const auto op = HasOp(primitive) ? static_cast<Op>(capability.op() - 1) : Op::kSum;
    const auto dtype = static_cast<DType>(capability.dtype() - 1);
    const auto out_dtype = static_cast<DType>(capability.out_dtype() - 1);
    EXPECT_TRUE(IsSupported(primitive, dtype, out_dtype, op) || IsRecurrence(primitive, dtype, out_dtype, op))
        << capability.ShortDebugString();
    // What says wide is served so, and nothing else is.
    const Algorithm algorithm = DecodeAlgorithm(capability.algorithm(), "").value();
    EXPECT_EQ(capability.has_wide(),
              HasOp(primitive) && IsWideSum(dtype, out_dtype, op) &&
                  device->Resolve(primitive, dtype, out_dtype, op, algorithm, Precision::kWide).ok())
        << capability.ShortDebugString();
    num_wide += capability.has_wide() ? 1 : 0;
  }
  EXPECT_EQ(static_cast<int>(listed.size()), response.capabilities_size());
  EXPECT_EQ(num_wide, 2 * 2);  // Scans and reduces of f32 and f64.
}

TEST(CodecTest, CapabilitiesLeaveOutWhatAnAlgorithmDoesNotServe) {
  class CubDevice : public Device {
   public:
    const DeviceInfo& info() const override { return info_; }
    uint64_t FreeMemoryBytes() const override { return 0; }
    absl::StatusOr<std::unique_ptr<Lane>> CreateLane() override { return absl::UnimplementedError(""); }
    absl::StatusOr<Buffer> AllocatePinned(size_t) override { return absl::UnimplementedError(""); }
    const std::vector<AlgorithmInfo>& Algorithms() const override { return algorithms_; }

   private:
    const DeviceInfo info_ = {};
    const std::vector<AlgorithmInfo> algorithms_ = {
        {.primitive = Primitive::kScan, .algorithm = {Strategy::kChained}},
        {.primitive = Primitive::kScan, .algorithm = {Strategy::kCub}, .serves = kCubServes},
        {.primitive = Primitive::kReduce, .algorithm = {Strategy::kSingleLaunch}},
        {.primitive = Primitive::kReduce, .algorithm = {Strategy::kCub}, .serves = kCubServes},
        {.primitive = Primitive::kCompact, .algorithm = {Strategy::kChained}},
        {.primitive = Primitive::kCompact, .algorithm = {Strategy::kCub}, .serves = kCubCompactsServe}};
  };
  v1::GetServerInfoResponse response;
  EncodeCapabilities(CubDevice(), &response);
  int num_cub = 0;
  for (const v1::Capability& capability : response.capabilities()) {
    num_cub += capability.algorithm().strategy() == v1::STRATEGY_CUB ? 1 : 0;
  }
  // Sums of 21 pairs of dtypes; min and max of six 4- and 8-byte types; compact of ten dtypes. What f16 and bf16 have,
  // and linear recurrences of two dtypes, are the default's alone.
  EXPECT_EQ(num_cub, 2 * (21 + 6 * 2) + 10);
  EXPECT_EQ(response.capabilities_size() - num_cub, 2 * (25 * 4 + 18 * 3 + 7) + 12 + 2);
}

// An order of its own has no numerics version.
TEST(CodecTest, OnlyOurOrderHasANumericsVersion) {
  for (const auto& [algorithm, version] :
       {std::pair(Algorithm{Strategy::kChained}, kNumericsVersion), std::pair(Algorithm{Strategy::kCub}, 0u),
        std::pair(Algorithm{Strategy::kChained, TileScan::kBlelloch}, 0u),
        std::pair(Algorithm{Strategy::kSequential}, 0u)}) {
    Result result;
    result.timing.algorithm = algorithm;
    v1::ReduceResponse response;
    Encode(result, &response);
    EXPECT_EQ(response.timing().numerics_version(), version) << Name(algorithm);
  }
}

TEST(CodecTest, MutatedMessagesNeverCrash) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  v1::CompactRequest compact = GoodCompact();
  compact.mutable_mask()->mutable_inline_()->set_data("m");
  const std::vector<std::string> corpus = {GoodScan().SerializeAsString(), GoodCompact().SerializeAsString(),
                                           compact.SerializeAsString()};
  int decoded = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = corpus[random() % corpus.size()];
    for (int i = 0; i < 1 + static_cast<int>(random() % 4); ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (v1::ScanRequest r; r.ParseFromString(bytes)) decoded += DecodeCopy(r).ok();
    if (v1::ReduceRequest r; r.ParseFromString(bytes)) decoded += DecodeCopy(r).ok();
    if (v1::CompactRequest r; r.ParseFromString(bytes)) decoded += DecodeCopy(r).ok();
  }
  EXPECT_GT(decoded, 0);
}

}  // namespace
}  // namespace prefixd
