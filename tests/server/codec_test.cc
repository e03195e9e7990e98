#include "server/codec.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/status.h"

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

template <class Request>
absl::StatusOr<Message> DecodeCopy(const Request& request) {
  return Decode(std::make_shared<const Request>(request), {});
}

template <class Request>
std::string Reason(const Request& request) {
  return ErrorReason(DecodeCopy(request).status());
}

TEST(CodecTest, DecodesAScanWithoutCopyingItsPayload) {
  auto request = std::make_shared<v1::ScanRequest>(GoodScan());
  request->set_request_id("id");
  request->mutable_spec()->set_kind(v1::SCAN_KIND_EXCLUSIVE);
  request->mutable_spec()->mutable_init()->set_int64_value(-7);
  request->mutable_spec()->set_reverse(true);
  request->mutable_spec()->set_num_items(1);
  request->mutable_values()->mutable_inline_()->set_first_item(0);
  const char* payload = request->values().inline_().data().data();
  const auto message = Decode(std::shared_ptr<const v1::ScanRequest>(request), {});
  ASSERT_TRUE(message.ok()) << message.status();
  ASSERT_TRUE(message->spec);
  const auto& scan = std::get<ScanSpec>(message->spec->detail);
  EXPECT_EQ(message->request_id, "id");
  EXPECT_EQ(message->spec->dtype, DType::kI32);
  EXPECT_EQ(message->spec->num_items, 1u);
  EXPECT_EQ(scan.op, Op::kSum);
  EXPECT_EQ(scan.kind, ScanKind::kExclusive);
  EXPECT_TRUE(scan.reverse);
  EXPECT_EQ(scan.init->As<int32_t>(), -7);
  ASSERT_EQ(message->chunk.values.parts().size(), 1u);
  EXPECT_EQ(message->chunk.values.parts()[0].data(), payload);
  EXPECT_EQ(message->chunk.first_item, 0u);
}

TEST(CodecTest, EveryEnumValueOfTheWireMeansTheSameInTheDomain) {
  // By name, so that a value moved in either list is seen.
  for (int i = 1; i < v1::DType_ARRAYSIZE; ++i) {
    std::string name = v1::DType_Name(i).substr(std::string("DTYPE_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<DType>(i - 1)));
  }
  for (int i = 1; i < v1::Op_ARRAYSIZE; ++i) {
    std::string name = v1::Op_Name(i).substr(std::string("OP_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<Op>(i - 1)));
  }
  for (int i = 1; i < v1::Strategy_ARRAYSIZE; ++i) {
    std::string name = v1::Strategy_Name(i).substr(std::string("STRATEGY_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<Strategy>(i)));
  }
  for (int i = 1; i < v1::TileScan_ARRAYSIZE; ++i) {
    std::string name = v1::TileScan_Name(i).substr(std::string("TILE_SCAN_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<TileScan>(i)));
  }
  EXPECT_EQ(v1::TileScan_ARRAYSIZE, kNumTileScans);
  EXPECT_EQ(v1::DType_ARRAYSIZE, kNumDTypes + 1);
  EXPECT_EQ(v1::Op_ARRAYSIZE, kNumOps + 1);
  EXPECT_EQ(v1::Strategy_ARRAYSIZE, kNumStrategies);
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

TEST(CodecTest, AlgorithmsComeAndGoWhole) {
  const auto decode = [](int strategy, int tile_scan, uint32_t items_per_thread, bool padding) {
    v1::AlgorithmChoice choice;
    choice.set_strategy(static_cast<v1::Strategy>(strategy));
    choice.set_tile_scan(static_cast<v1::TileScan>(tile_scan));
    choice.set_items_per_thread(items_per_thread);
    choice.set_padding(padding);
    const auto decoded = DecodeAlgorithm(choice, "the.field");
    if (decoded.ok()) {
      v1::AlgorithmChoice encoded;
      EncodeAlgorithm(*decoded, &encoded);
      EXPECT_EQ(encoded.SerializeAsString(), choice.SerializeAsString());
    }
    return decoded;
  };
  EXPECT_EQ(decode(0, 0, 0, false).value(), Algorithm{});
  EXPECT_EQ(decode(7, 3, 16, true).value(), (Algorithm{Strategy::kThreePhase, TileScan::kBrentKung, 16, true}));
  EXPECT_EQ(decode(1, 7, 0, false).value(), (Algorithm{Strategy::kChained, TileScan::kWarpSharedRegister}));
  EXPECT_EQ(decode(19, 0, 0, false).value(), Algorithm{Strategy::kAtomicCounter});
  for (const uint32_t items : {3u, 17u, 32u, 256u, 260u, ~0u}) {
    const absl::Status status = decode(7, 3, items, false).status();
    EXPECT_EQ(ErrorReason(status), "ALGORITHM_CHOICE") << items;
    EXPECT_EQ(ErrorField(status), "the.field.items_per_thread");
    EXPECT_NE(std::string(status.message()).find(StrCat("items_per_thread is ", items)), std::string::npos) << status;
  }
  EXPECT_EQ(ErrorField(decode(20, 0, 0, false).status()), "the.field.strategy");
  EXPECT_EQ(ErrorField(decode(0, -1, 0, false).status()), "the.field.tile_scan");
  EXPECT_EQ(ErrorReason(decode(0, 8, 0, false).status()), "UNKNOWN_ENUM");
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

TEST(CodecTest, WhatIsNotServedYetSaysSo) {
  const auto scan = [](auto change) {
    v1::ScanRequest request = GoodScan();
    change(&request);
    const absl::Status status = DecodeCopy(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    return ErrorReason(status);
  };
  for (int dtype = 1; dtype < v1::DType_ARRAYSIZE; ++dtype) {
    if (IsSupported(static_cast<DType>(dtype - 1))) continue;
    EXPECT_EQ(scan([&](v1::ScanRequest* r) { r->mutable_spec()->set_dtype(static_cast<v1::DType>(dtype)); }),
              "NOT_IMPLEMENTED");
  }
  using R = v1::ScanRequest;
  EXPECT_EQ(scan([](R* r) { r->mutable_spec()->set_op(v1::OP_LINEAR_RECURRENCE); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_spec()->set_precision(v1::PRECISION_WIDE); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_values()->mutable_array()->set_name("arrays/1"); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_values()->mutable_shared_memory(); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_sink()->mutable_array(); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_segment_offsets(); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(scan([](R* r) { r->mutable_coefficients(); }), "NOT_IMPLEMENTED");
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
          EXPECT_EQ(message->spec->dtype, dtype);
          EXPECT_EQ(message->spec->output(), out_dtype);
        } else {
          EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
          EXPECT_EQ(ErrorReason(message.status()), "UNSUPPORTED_COMBINATION");
          EXPECT_EQ(ErrorField(message.status()), "spec.out_dtype");
          EXPECT_NE(message.status().message().find(StrCat("use one of ", OutputNames(dtype))), std::string::npos);
        }
      }
    }
  }
  EXPECT_EQ(DecodeCopy(GoodScan())->spec->output(), DType::kI32);
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
  EXPECT_EQ(std::get<ScanSpec>(wide->spec->detail).init, Value::Of(uint32_t{4294967295}));
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

struct ScalarCase {
  v1::DType dtype;
  v1::Scalar scalar;
  bool fits;
};

v1::Scalar Int(int64_t v) {
  v1::Scalar s;
  s.set_int64_value(v);
  return s;
}
v1::Scalar Uint(uint64_t v) {
  v1::Scalar s;
  s.set_uint64_value(v);
  return s;
}
v1::Scalar Double(double v) {
  v1::Scalar s;
  s.set_double_value(v);
  return s;
}

TEST(CodecTest, ScalarsAreTakenWhereTheyAreExactOrFloating) {
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  constexpr uint64_t kMax64 = std::numeric_limits<uint64_t>::max();
  const std::vector<ScalarCase> cases = {
      {v1::DTYPE_I8, Int(-128), true},
      {v1::DTYPE_I8, Int(128), false},
      {v1::DTYPE_U8, Double(255), true},
      {v1::DTYPE_U8, Uint(256), false},
      {v1::DTYPE_I16, Double(-32769), false},
      {v1::DTYPE_U16, Int(65535), true},
      {v1::DTYPE_U16, Int(-1), false},
      {v1::DTYPE_I32, Int(-5), true},
      {v1::DTYPE_I32, Int(int64_t{1} << 31), false},
      {v1::DTYPE_I32, Int(-(int64_t{1} << 31)), true},
      {v1::DTYPE_I32, Double(2.0), true},
      {v1::DTYPE_I32, Double(0.5), false},
      {v1::DTYPE_I32, Double(std::nan("")), false},
      {v1::DTYPE_I32, Double(HUGE_VAL), false},
      {v1::DTYPE_U32, Int(-1), false},
      {v1::DTYPE_U32, Uint(0xFFFFFFFF), true},
      {v1::DTYPE_U32, Uint(0x100000000), false},
      {v1::DTYPE_I64, Int(kMin64), true},
      {v1::DTYPE_I64, Uint(kMax64), false},
      {v1::DTYPE_I64, Double(9223372036854775808.0), false},
      {v1::DTYPE_I64, Double(-9223372036854775808.0), true},
      {v1::DTYPE_U64, Uint(kMax64), true},
      {v1::DTYPE_U64, Double(18446744073709551616.0), false},
      {v1::DTYPE_U64, Double(-1.0), false},
      {v1::DTYPE_F32, Double(0.1), true},
      {v1::DTYPE_F32, Int(3), true},
      {v1::DTYPE_F64, Uint(kMax64), true},
      {v1::DTYPE_F64, v1::Scalar(), false},
  };
  for (const ScalarCase& c : cases) {
    v1::ReduceRequest request;
    request.mutable_spec()->set_dtype(c.dtype);
    request.mutable_spec()->set_op(v1::OP_SUM);
    *request.mutable_spec()->mutable_init() = c.scalar;
    EXPECT_EQ(DecodeCopy(request).ok(), c.fits) << request.DebugString();
  }
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

TEST(CodecTest, StatusCarriesCodeReasonFieldAndRetry) {
  const grpc::Status status =
      ToGrpcStatus(Error(absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask.inline.data", "too short"), "id7");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "too short");
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  ASSERT_EQ(details.details_size(), 2);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  ASSERT_TRUE(details.details(1).UnpackTo(&bad_request));
  EXPECT_EQ(info.reason(), "MASK_LENGTH");
  EXPECT_EQ(info.domain(), "prefixd");
  EXPECT_EQ(info.metadata().at("request_id"), "id7");
  EXPECT_EQ(bad_request.field_violations(0).field(), "mask.inline.data");

  const grpc::Status busy = ToGrpcStatus(Error(absl::StatusCode::kResourceExhausted, "BYTE_BUDGET", "", "full"), "");
  ASSERT_TRUE(details.ParseFromString(busy.error_details()));
  ASSERT_EQ(details.details_size(), 3);
  EXPECT_TRUE(details.details(1).Is<google::rpc::QuotaFailure>());
  EXPECT_TRUE(details.details(2).Is<google::rpc::RetryInfo>());
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus(), "").ok());
}

TEST(CodecTest, TimingLeavesOutWhatWasNotMeasured) {
  Result result;
  result.timing.device.kernel_ns = 10;
  result.timing.device.num_bytes = 40;
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
  // 21 pairs of dtypes; four ops on all, three more on the 18 of integers; scan and reduce; and compact of ten dtypes:
  // by the default and by sequential. Naive scans sums, min and max of six dtypes; kahan reduces sums of two.
  EXPECT_EQ(response.capabilities_size(), 2 * (2 * (21 * 4 + 18 * 3) + 10) + 6 * 3 + 2);
  std::set<std::string> listed;
  for (const v1::Capability& capability : response.capabilities()) {
    listed.insert(capability.ShortDebugString());
    const auto primitive = static_cast<Primitive>(capability.primitive() - 1);
    const auto op = primitive == Primitive::kCompact ? Op::kSum : static_cast<Op>(capability.op() - 1);
    EXPECT_TRUE(IsSupported(primitive, static_cast<DType>(capability.dtype() - 1),
                            static_cast<DType>(capability.out_dtype() - 1), op))
        << capability.ShortDebugString();
  }
  EXPECT_EQ(static_cast<int>(listed.size()), response.capabilities_size());
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
        {Primitive::kScan, {Strategy::kChained}},        {Primitive::kScan, {Strategy::kCub}},
        {Primitive::kReduce, {Strategy::kSingleLaunch}}, {Primitive::kReduce, {Strategy::kCub}},
        {Primitive::kCompact, {Strategy::kChained}},     {Primitive::kCompact, {Strategy::kCub}}};
  };
  v1::GetServerInfoResponse response;
  EncodeCapabilities(CubDevice(), &response);
  int num_cub = 0;
  for (const v1::Capability& capability : response.capabilities()) {
    num_cub += capability.algorithm().strategy() == v1::STRATEGY_CUB ? 1 : 0;
  }
  // Sums of 21 pairs of dtypes; of four 4- and 8-byte integers six more ops, of two floating-point types three.
  EXPECT_EQ(num_cub, 2 * (21 + 4 * 6 + 2 * 3) + 10);
  EXPECT_EQ(response.capabilities_size() - num_cub, 2 * (21 * 4 + 18 * 3) + 10);
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
