// Conversions between the client's types and the contract's: errors, scalars, and what only a newer server knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "client/client.h"
#include "client/grpc_status.h"
#include "proto/wire_compact.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "tests/client/fake_server.h"

namespace prefixd::client {
namespace {

using ::testing::SizeIs;

TEST(Errors, KeepCodeMessageReasonFieldAndDelay) {
  const absl::Status status =
      FromGrpc(DetailedError(grpc::StatusCode::INVALID_ARGUMENT, "MASK_LENGTH", "too short", "mask.inline.data", 250));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "too short");
  EXPECT_EQ(ErrorReason(status), "MASK_LENGTH");
  EXPECT_EQ(ErrorField(status), "mask.inline.data");
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(250));
}

TEST(Errors, TellACallsEndFromTheCallersOwn) {
  EXPECT_TRUE(IsCallStatus(FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"))));
  EXPECT_TRUE(IsCallStatus(FromGrpc(DetailedError(grpc::StatusCode::INVALID_ARGUMENT, "MASK_LENGTH", "too short"))));
  EXPECT_FALSE(IsCallStatus(absl::UnavailableError("no disk")));
}

TEST(Errors, WithoutDetailsOrWithThoseOfOthers) {
  const absl::Status plain = FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"));
  EXPECT_EQ(plain.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(plain), "");
  EXPECT_EQ(RetryDelay(plain), std::nullopt);
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  info.set_reason("RATE_LIMIT_EXCEEDED");
  info.set_domain("googleapis.com");
  ASSERT_TRUE(details.add_details()->PackFrom(info));
  const absl::Status foreign =
      FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone", details.SerializeAsString()));
  EXPECT_EQ(ErrorReason(foreign), "");
}

TEST(Errors, SayWhatAProxyMayHaveLost) {
  const grpc::Status reset(grpc::StatusCode::CANCELLED, "Received RST_STREAM with error code 8");
  EXPECT_THAT(std::string(FromGrpc(reset).message()), testing::HasSubstr("trying again later"));
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::CANCELLED, "by its caller")).message(), "by its caller");
}

TEST(Errors, SurviveGarbage) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const std::string good = DetailedError(grpc::StatusCode::ABORTED, "REASON", "why", "field", 10).error_details();
  for (int i = 0; i < 2000; ++i) {
    std::string details = good;
    // Not the highest bit: protobuf writes a line for each text that is no UTF-8.
    for (int flips = 1 + random() % 4; flips > 0; --flips) details[random() % details.size()] ^= 1 << random() % 7;
    details.resize(random() % (details.size() + 1));
    const absl::Status status = FromGrpc(grpc::Status(grpc::StatusCode::ABORTED, "why", details));
    ASSERT_EQ(status.code(), absl::StatusCode::kAborted);
    ASSERT_EQ(status.message(), "why");
  }
}

TEST(Scalars, KeepTheirBits) {
  const auto init = [](auto value) {
    ReduceSpec spec = {.dtype = kDTypeOf<decltype(value)>};
    spec.init = Value::Of(value);
    return ToWire(spec)->init();
  };
  EXPECT_EQ(init(std::numeric_limits<int64_t>::min()).int64_value(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(init(int32_t{-1}).int64_value(), -1);
  EXPECT_EQ(init(int8_t{-128}).int64_value(), -128);
  EXPECT_EQ(init(uint16_t{65535}).uint64_value(), 65535);
  EXPECT_EQ(init(uint32_t{0xffffffff}).uint64_value(), 0xffffffff);
  EXPECT_EQ(init(~uint64_t{0}).uint64_value(), ~uint64_t{0});
  EXPECT_EQ(init(0.1f).double_value(), static_cast<double>(0.1f));
  EXPECT_TRUE(std::signbit(init(-0.0).double_value()));
  EXPECT_TRUE(std::isnan(init(std::nan("")).double_value()));
}

TEST(Outputs, AreNamedWhereTheyAreAskedFor) {
  ScanSpec scan = {.dtype = DType::kU8};
  EXPECT_EQ(ToWire(scan)->out_dtype(), v1::DTYPE_UNSPECIFIED);
  scan.out_dtype = DType::kU32;
  scan.init = Value::Of(uint32_t{4294967295});
  EXPECT_EQ(ToWire(scan)->dtype(), v1::DTYPE_U8);
  EXPECT_EQ(ToWire(scan)->out_dtype(), v1::DTYPE_U32);
  EXPECT_EQ(ToWire(scan)->init().uint64_value(), 4294967295);
  const ReduceSpec reduce = {.dtype = DType::kI8, .out_dtype = DType::kI64, .init = Value::Of(int64_t{-1} << 40)};
  EXPECT_EQ(ToWire(reduce)->out_dtype(), v1::DTYPE_I64);
  EXPECT_EQ(ToWire(reduce)->init().int64_value(), int64_t{-1} << 40);
}

TEST(Predicates, WithoutAValueSendNone) {
  CompactSpec spec = {.predicate = Predicate{.comparison = Comparison::kIsNan}};
  EXPECT_FALSE(ToWire(spec)->predicate().has_value());
  spec.predicate->comparison = Comparison::kEqual;
  EXPECT_TRUE(ToWire(spec)->predicate().has_value());
}

TEST(Chunks, LeaveRoomForMaskAndIndices) {
  EXPECT_EQ(ChunkItems(ScanSpec{.dtype = DType::kF64}), kMaxPayloadBytes / 8);
  EXPECT_EQ(ChunkItems(ScanSpec{.dtype = DType::kU8}), kMaxPayloadBytes);
  // The reply has to fit too; that of a reduce always does.
  EXPECT_EQ(ChunkItems(ScanSpec{.dtype = DType::kU8, .out_dtype = DType::kU32}), kMaxPayloadBytes / 4);
  EXPECT_EQ(ChunkItems(ReduceSpec{.dtype = DType::kU8, .out_dtype = DType::kU64}), kMaxPayloadBytes);
  EXPECT_EQ(ChunkItems(CompactSpec{.dtype = DType::kF64, .predicate = Predicate{}}), kMaxPayloadBytes / 8);
  // A multiple of eight, for masks of bits.
  EXPECT_EQ(ChunkItems(CompactSpec{.dtype = DType::kF64}), kMaxPayloadBytes / 9 / 8 * 8);
  EXPECT_EQ(ChunkItems(CompactSpec{.dtype = DType::kF32, .return_indices = true}), kMaxPayloadBytes / 12 / 8 * 8);
}

TEST(ServerInfo, LeavesOutWhatANewerServerKnows) {
  FakeServer server;
  v1::GetServerInfoResponse& wire = server.admin.info;
  wire.set_version("9.1");
  wire.set_lanes(4);
  wire.mutable_requests()->set_limit(64);
  wire.mutable_requests()->set_used(3);
  const auto add = [&](int primitive, int dtype, int op, int strategy) {
    v1::Capability* capability = wire.add_capabilities();
    capability->set_primitive(static_cast<v1::Primitive>(primitive));
    capability->set_dtype(static_cast<v1::DType>(dtype));
    capability->set_op(static_cast<v1::Op>(op));
    capability->mutable_algorithm()->set_strategy(static_cast<v1::Strategy>(strategy));
  };
  add(v1::PRIMITIVE_REDUCE, v1::DTYPE_F32, v1::OP_MAX, v1::STRATEGY_SINGLE_LAUNCH);
  add(99, v1::DTYPE_F32, v1::OP_MAX, 1);
  add(v1::PRIMITIVE_SCAN, 99, v1::OP_MAX, 1);
  add(v1::PRIMITIVE_SCAN, v1::DTYPE_F32, 99, 1);
  add(v1::PRIMITIVE_SCAN, v1::DTYPE_F32, v1::OP_MAX, 99);
  add(v1::PRIMITIVE_SCAN, v1::DTYPE_F32, v1::OP_MAX, -1);
  add(v1::PRIMITIVE_SCAN, v1::DTYPE_F32, v1::OP_MAX, 257);
  add(v1::PRIMITIVE_SCAN, 257, v1::OP_MAX, 1);
  add(v1::PRIMITIVE_COMPACT, v1::DTYPE_F64, v1::OP_UNSPECIFIED, v1::STRATEGY_CHAINED);
  v1::AlgorithmInfo* row = wire.add_algorithms();
  row->set_primitive(v1::PRIMITIVE_SCAN);
  row->mutable_algorithm()->set_strategy(v1::STRATEGY_THREE_PHASE);
  row->mutable_algorithm()->set_tile_scan(v1::TILE_SCAN_BLELLOCH);
  row->set_has_padding(true);
  row->set_work("2n");
  row->set_depth("2 log n");
  row->set_traffic("4n");
  row->set_launches("3");
  row->set_stable(true);
  row->set_max_items(99);
  row->set_source("a book");
  *wire.add_algorithms() = *row;
  wire.mutable_algorithms(1)->mutable_algorithm()->set_tile_scan(static_cast<v1::TileScan>(99));
  *wire.add_algorithms() = wire.algorithms(0);
  wire.mutable_algorithms(2)->set_primitive(static_cast<v1::Primitive>(99));
  Client client(server.address());
  const auto info = client.GetServerInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->version, "9.1");
  EXPECT_EQ(info->lanes, 4);
  EXPECT_EQ(info->requests.limit, 64);
  EXPECT_EQ(info->requests.used, 3);
  ASSERT_THAT(info->capabilities, SizeIs(2));
  EXPECT_EQ(info->capabilities[0].primitive, Primitive::kReduce);
  EXPECT_EQ(info->capabilities[0].op, Op::kMax);
  EXPECT_EQ(info->capabilities[0].algorithm, Algorithm{Strategy::kSingleLaunch});
  EXPECT_EQ(info->capabilities[1].op, std::nullopt);
  ASSERT_THAT(info->algorithms, SizeIs(1));
  const AlgorithmInfo& algorithm = info->algorithms[0];
  EXPECT_EQ(algorithm.primitive, Primitive::kScan);
  EXPECT_EQ(algorithm.algorithm, (Algorithm{Strategy::kThreePhase, TileScan::kBlelloch}));
  EXPECT_FALSE(algorithm.has_items_per_thread);
  EXPECT_TRUE(algorithm.has_padding);
  EXPECT_EQ(algorithm.work, "2n");
  EXPECT_EQ(algorithm.depth, "2 log n");
  EXPECT_EQ(algorithm.traffic, "4n");
  EXPECT_EQ(algorithm.launches, "3");
  EXPECT_TRUE(algorithm.stable);
  EXPECT_FALSE(algorithm.deterministic);
  EXPECT_EQ(algorithm.max_items, 99u);
  EXPECT_EQ(algorithm.source, "a book");
}

TEST(Health, ServingOrNot) {
  FakeServer server;
  Client client(server.address());
  EXPECT_TRUE(*client.CheckHealth());
  server.health.status = grpc::health::v1::HealthCheckResponse::NOT_SERVING;
  EXPECT_FALSE(*client.CheckHealth());
}

}  // namespace
}  // namespace prefixd::client
