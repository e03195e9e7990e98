// Benchmarks over the wire: what the client asks, what the server answers, and how the calls end.
#include "client/benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "absl/time/clock.h"
#include "client/client.h"
#include "tests/client/fake_server.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

using Writer = grpc::ServerWriter<v1::RunBenchmarkResponse>;

v1::RunBenchmarkResponse Response(uint64_t num_items) {
  v1::RunBenchmarkResponse response;
  response.set_primitive(v1::PRIMITIVE_REDUCE);
  response.set_dtype(v1::DTYPE_F64);
  response.set_op(v1::OP_MAX);
  response.mutable_algorithm()->set_strategy(v1::STRATEGY_THREE_PHASE);
  response.mutable_algorithm()->set_tile_scan(v1::TILE_SCAN_BRENT_KUNG);
  response.mutable_algorithm()->set_items_per_thread(4);
  response.mutable_algorithm()->set_padding(true);
  response.set_num_items(num_items);
  response.set_device("a card");
  response.set_numerics_version(7);
  v1::Measurement* measurement = response.mutable_measurement();
  measurement->set_p10_ns(90);
  measurement->set_median_ns(100);
  measurement->set_p90_ns(110);
  measurement->set_copy_ns(50);
  measurement->set_num_bytes(1000);
  measurement->set_launches(2);
  measurement->set_repetitions(5);
  return response;
}

// Runs it and keeps what came.
absl::Status Hear(const FakeServer& server, std::vector<BenchmarkResult>* results, const CallOptions& call = {}) {
  Client client(server.address());
  return client.RunBenchmark(
      {.num_items = {1}},
      [&](const BenchmarkResult& result) {
        results->push_back(result);
        return absl::OkStatus();
      },
      call);
}

TEST(RunBenchmark, AsksForEverything) {
  FakeServer server;
  v1::RunBenchmarkRequest asked;
  server.admin.run_benchmark = [&](auto*, const v1::RunBenchmarkRequest& request, Writer*) {
    asked = request;
    return grpc::Status::OK;
  };
  Client client(server.address());
  const BenchmarkSpec spec = {.primitives = {Primitive::kScan, Primitive::kCompact},
                              .dtypes = {DType::kI32},
                              .ops = {Op::kXor},
                              .algorithms = {{}, {Strategy::kThreePhase, TileScan::kBrentKung, 4, true}},
                              .num_items = {1, uint64_t{1} << 40},
                              .repetitions = 3};
  const absl::Status status =
      client.RunBenchmark(spec, [](const auto&) { return absl::OkStatus(); }, {.request_id = "me"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(asked.primitives(), ElementsAre(v1::PRIMITIVE_SCAN, v1::PRIMITIVE_COMPACT));
  EXPECT_THAT(asked.dtypes(), ElementsAre(v1::DTYPE_I32));
  EXPECT_THAT(asked.ops(), ElementsAre(v1::OP_XOR));
  ASSERT_EQ(asked.algorithms_size(), 2);
  EXPECT_EQ(asked.algorithms(0).ByteSizeLong(), 0u);
  EXPECT_EQ(asked.algorithms(1).SerializeAsString(), Response(1).algorithm().SerializeAsString());
  EXPECT_THAT(asked.num_items(), ElementsAre(1, uint64_t{1} << 40));
  EXPECT_EQ(asked.repetitions(), 3);
  EXPECT_EQ(asked.request_id(), "me");
}

TEST(RunBenchmark, HearsWhatWasMeasuredAndSkipped) {
  FakeServer server;
  server.admin.run_benchmark = [](auto*, const auto&, Writer* writer) {
    writer->Write(Response(8));
    v1::RunBenchmarkResponse skipped = Response(16);
    skipped.clear_op();
    skipped.set_skipped("no room");
    writer->Write(skipped);
    v1::RunBenchmarkResponse unknown = Response(32);
    unknown.mutable_algorithm()->set_strategy(static_cast<v1::Strategy>(99));
    writer->Write(unknown);
    unknown = Response(32);
    unknown.mutable_algorithm()->set_tile_scan(static_cast<v1::TileScan>(99));
    writer->Write(unknown);
    unknown = Response(32);
    unknown.mutable_algorithm()->set_items_per_thread(256);
    writer->Write(unknown);
    return grpc::Status::OK;
  };
  std::vector<BenchmarkResult> results;
  ASSERT_TRUE(Hear(server, &results).ok());
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results[0].primitive, Primitive::kReduce);
  EXPECT_EQ(results[0].dtype, DType::kF64);
  EXPECT_EQ(results[0].op, Op::kMax);
  EXPECT_EQ(results[0].algorithm, (Algorithm{Strategy::kThreePhase, TileScan::kBrentKung, 4, true}));
  EXPECT_EQ(results[0].num_items, 8);
  ASSERT_TRUE(results[0].times);
  EXPECT_EQ(results[0].times->p10_ns, 90);
  EXPECT_EQ(results[0].times->median_ns, 100);
  EXPECT_EQ(results[0].times->p90_ns, 110);
  EXPECT_EQ(results[0].times->copy_ns, 50);
  EXPECT_EQ(results[0].GbPerS(), 10);
  EXPECT_EQ(results[0].CopyGbPerS(), 20);
  EXPECT_EQ(results[0].launches, 2);
  EXPECT_EQ(results[0].repetitions, 5);
  EXPECT_EQ(results[0].device, "a card");
  EXPECT_EQ(results[0].numerics_version, 7);
  EXPECT_FALSE(results[1].times);
  EXPECT_EQ(results[1].op, std::nullopt);
  EXPECT_EQ(results[1].skipped, "no room");
  EXPECT_EQ(results[1].GbPerS(), 0);
}

TEST(RunBenchmark, IsTriedAgainBeforeTheFirstResultOnly) {
  FakeServer server;
  std::atomic<int> calls = 0;
  server.admin.run_benchmark = [&](auto*, const auto&, Writer* writer) {
    if (++calls == 1) return DetailedError(grpc::StatusCode::UNAVAILABLE, "DRAINING", "stopping");
    writer->Write(Response(1));
    return DetailedError(grpc::StatusCode::UNAVAILABLE, "DEVICE_LOST", "gone");
  };
  std::vector<BenchmarkResult> results;
  EXPECT_EQ(ErrorReason(Hear(server, &results)), "DEVICE_LOST");
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(results, SizeIs(1));
}

TEST(RunBenchmark, AnErrorOfTheSinkEndsIt) {
  FakeServer server;
  server.admin.run_benchmark = [](grpc::ServerContext* context, const auto&, Writer* writer) {
    writer->Write(Response(1));
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    return grpc::Status::CANCELLED;
  };
  Client client(server.address());
  const absl::Status status =
      client.RunBenchmark({.num_items = {1}}, [](const auto&) { return absl::DataLossError("disk full"); });
  EXPECT_EQ(status, absl::DataLossError("disk full"));
}

TEST(RunBenchmark, EndsAtItsTimeout) {
  FakeServer server;
  server.admin.run_benchmark = [](grpc::ServerContext* context, const auto&, Writer*) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    return grpc::Status::CANCELLED;
  };
  std::vector<BenchmarkResult> results;
  const absl::Status status = Hear(server, &results, {.timeout = absl::Milliseconds(50)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(), "the timeout passed before everything was measured");
}

}  // namespace
}  // namespace prefixd::client
