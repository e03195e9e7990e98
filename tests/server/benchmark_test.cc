// What a benchmark measures, what it skips, and what it is charged for.
#include "server/call/benchmark.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/benchmark_fixture.h"

namespace prefixd {
namespace {

TEST_F(BenchmarkTest, MeasuresEveryCombinationInOrder) {
  BenchmarkSpec spec = ScanOf({1, 1000});
  spec.primitives = {Primitive::kScan, Primitive::kReduce, Primitive::kCompact};
  spec.dtypes = {DType::kI32, DType::kF64};
  spec.ops = {Op::kSum, Op::kMax};
  const auto run = Run(spec);
  ASSERT_TRUE(run->result().status.ok()) << run->result().status;
  std::string order;
  for (const Measurement& m : run->measurements()) {
    EXPECT_EQ(m.skipped, "");
    const bool is_reduce = std::holds_alternative<ReduceSpec>(m.what.spec);
    EXPECT_EQ(AlgorithmOf(m.what.spec), Algorithm{is_reduce ? Strategy::kSingleLaunch : Strategy::kChained});
    EXPECT_LE(m.p10_ns, m.median_ns);
    EXPECT_LE(m.median_ns, m.p90_ns);
    EXPECT_GT(m.launches, 0u);
    order += StrCat(Name(PrimitiveOf(m.what.spec)), " ", Name(InputOf(m.what.spec)), " ",
                    Name(OpOf(m.what.spec).value_or(Op::kSum)), " ", m.what.num_items, "\n");
  }
  EXPECT_EQ(order,
            "scan i32 sum 1\nscan i32 sum 1000\nscan i32 max 1\nscan i32 max 1000\n"
            "scan f64 sum 1\nscan f64 sum 1000\nscan f64 max 1\nscan f64 max 1000\n"
            "reduce i32 sum 1\nreduce i32 sum 1000\nreduce i32 max 1\nreduce i32 max 1000\n"
            "reduce f64 sum 1\nreduce f64 sum 1000\nreduce f64 max 1\nreduce f64 max 1000\n"
            "compact i32 sum 1\ncompact i32 sum 1000\ncompact f64 sum 1\ncompact f64 sum 1000\n");
  EXPECT_EQ(run->measurements()[1].num_bytes, 8000u);
  EXPECT_EQ(device_.works(), 20 * (1 + 3));  // One warms up.
  EXPECT_EQ(log_, "RunBenchmark ");
}

TEST_F(BenchmarkTest, ACompactKeepsAboutHalf) {
  for (const DType dtype : {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32, DType::kI64,
                            DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    BenchmarkSpec spec = ScanOf({10000}, 1);
    spec.primitives = {Primitive::kCompact};
    spec.dtypes = {dtype};
    const auto run = Run(spec);
    ASSERT_EQ(run->measurements().size(), 1u);
    const double kept = static_cast<double>(run->measurements()[0].num_bytes) / SizeOf(dtype) - 10000;
    EXPECT_NEAR(kept, 5000, 300) << Name(dtype);
  }
}

TEST_F(BenchmarkTest, WhatIsNotServedIsSkipped) {
  BenchmarkSpec spec = ScanOf({1});
  spec.dtypes = {DType::kF32, DType::kF16, DType::kI32};
  spec.ops = {Op::kAnd};
  spec.algorithms = {{}, {Strategy::kCub}};
  const auto run = Run(spec);
  EXPECT_TRUE(run->result().status.ok()) << run->result().status;
  ASSERT_EQ(run->measurements().size(), 6u);
  EXPECT_EQ(run->measurements()[0].skipped, "scan does not serve and of f32");
  EXPECT_EQ(run->measurements()[2].skipped, "scan does not serve and of f16");
  EXPECT_EQ(run->measurements()[4].skipped, "");
  EXPECT_NE(run->measurements()[5].skipped.find("cub"), std::string::npos);
  EXPECT_EQ(AlgorithmOf(run->measurements()[5].what.spec), Algorithm{Strategy::kCub});
}

TEST_F(BenchmarkTest, LargerThanTheLimitsIsSkipped) {
  const uint64_t fits = control_.max_bytes / 8;
  const auto run = Run(ScanOf({fits, fits + 1, ~uint64_t{0}}, 1));
  ASSERT_EQ(run->measurements().size(), 3u);
  EXPECT_EQ(run->measurements()[0].skipped, "");
  EXPECT_NE(run->measurements()[1].skipped.find("--max-benchmark-bytes"), std::string::npos);
  EXPECT_NE(run->measurements()[2].skipped.find("--max-benchmark-bytes"), std::string::npos);
  device_.free_memory_bytes = 2 * control_.max_bytes - 2;
  EXPECT_NE(Run(ScanOf({fits}, 1))->measurements()[0].skipped.find("half"), std::string::npos);
  device_.free_memory_bytes = 0;  // Can't say.
  EXPECT_EQ(Run(ScanOf({fits}, 1))->measurements()[0].skipped, "");
}

TEST_F(BenchmarkTest, WhatIsLeftOutIsSkipped) {
  device_.ServeDefaultsOnly();
  BenchmarkSpec spec = ScanOf({1}, 1);
  spec.algorithms = {{Strategy::kSequential}, {}};
  const auto run = Run(spec);
  EXPECT_TRUE(run->result().status.ok()) << run->result().status;
  ASSERT_EQ(run->measurements().size(), 2u);
  EXPECT_NE(run->measurements()[0].skipped.find("--algorithms default"), std::string::npos);
  EXPECT_EQ(run->measurements()[1].skipped, "");
}

// Where the device's memory is the host's, arrays are charged to the budget of requests while they are there.
TEST_F(BenchmarkTest, HostMemoryIsChargedToTheBudget) {
  Admission small({.requests = 64, .bytes = 2 * kMaxReplyPayloadBytes, .share_percent = 100});
  context_.admission = &small;
  const uint64_t fits = (kMaxReplyPayloadBytes - device_.info().cache_flush_bytes) / 8;
  uint64_t charged = 0;
  device_.before_work = [&] {
    charged = small.in_use().bytes;
    return absl::OkStatus();
  };
  EXPECT_EQ(Run(ScanOf({fits}, 1))->measurements()[0].skipped, "");
  EXPECT_EQ(charged, kMaxReplyPayloadBytes);  // For a card: the benchmark's own.
  device_.set_direct_bytes(DeviceInfo::kHostMemory);
  control_.max_bytes *= 4;
  const auto run = Run(ScanOf({fits, fits + 1, 3 * fits, fits}, 1));
  ASSERT_EQ(run->measurements().size(), 4u);
  EXPECT_EQ(run->measurements()[0].skipped, "");
  EXPECT_NE(run->measurements()[1].skipped.find("(--max-request-bytes)"), std::string::npos);
  EXPECT_NE(run->measurements()[2].skipped.find("of the host's memory, above the"), std::string::npos);
  EXPECT_EQ(run->measurements()[3].skipped, "");
  EXPECT_EQ(charged, 2 * kMaxReplyPayloadBytes);
  EXPECT_EQ(small.in_use().bytes, 0u);
  EXPECT_EQ(small.in_use().requests, 0u);
}

TEST_F(BenchmarkTest, ArraysAboveTheLimitOfAnAlgorithmAreSkipped) {
  device_.kernel_ns = 1000;  // Or a slow machine would skip them for their time.
  BenchmarkSpec spec = ScanOf({1000, uint64_t{1} << 14, (uint64_t{1} << 14) + 1, ~uint64_t{0}}, 1);
  spec.algorithms = {{Strategy::kNaive}};
  const auto run = Run(spec);
  ASSERT_EQ(run->measurements().size(), 4u);
  EXPECT_EQ(run->measurements()[1].skipped, "");
  EXPECT_EQ(AlgorithmOf(run->measurements()[1].what.spec), Algorithm{Strategy::kNaive});
  EXPECT_NE(run->measurements()[2].skipped.find("at most 16384 elements"), std::string::npos);
  EXPECT_EQ(run->measurements()[3].skipped, run->measurements()[2].skipped);  // Whatever else is wrong with it.
}

TEST_F(BenchmarkTest, WhatIsNoChoiceForOnePrimitiveIsSkippedThere) {
  BenchmarkSpec spec = ScanOf({1});
  spec.primitives = {Primitive::kScan, Primitive::kReduce};
  spec.algorithms = {{Strategy::kThreePhase, TileScan::kBlelloch}, {Strategy::kKahan}, {}};
  const auto run = Run(spec);
  ASSERT_TRUE(run->result().status.ok()) << run->result().status;
  ASSERT_EQ(run->measurements().size(), 6u);
  EXPECT_NE(run->measurements()[0].skipped.find("three_phase/blelloch is not implemented"), std::string::npos);
  EXPECT_NE(run->measurements()[3].skipped.find("reduce takes no tile scan"), std::string::npos);
  EXPECT_NE(run->measurements()[4].skipped.find("it serves sum of f32 and f64"), std::string::npos);
  EXPECT_EQ(run->measurements()[5].skipped, "");
}

// One sample tells that it is slow; longer arrays of the same are not tried, others are.
TEST_F(BenchmarkTest, WhatTakesLongerThanASecondIsSkipped) {
  device_.kernel_ns = kMaxSampleNs + 1'000'000;
  BenchmarkSpec spec = ScanOf({100, 200, 400});
  spec.algorithms = {{}, {Strategy::kSequential}};
  const auto run = Run(spec);
  ASSERT_TRUE(run->result().status.ok()) << run->result().status;
  ASSERT_EQ(run->measurements().size(), 6u);
  for (const Measurement& m : run->measurements()) {
    EXPECT_EQ(m.skipped, "a sample would take longer than a second: one of 100 elements took 1001 ms");
  }
  EXPECT_EQ(device_.works(), 2);
}

TEST_F(BenchmarkTest, WhatWouldTakeLongerThanASecondIsNotTried) {
  device_.kernel_ns = 400'000'000;
  const auto run = Run(ScanOf({100, 200, 300, 50, 3000}, 1));
  ASSERT_EQ(run->measurements().size(), 5u);
  EXPECT_EQ(run->measurements()[0].skipped, "");
  EXPECT_EQ(run->measurements()[1].skipped, "");
  EXPECT_EQ(run->measurements()[2].skipped, "");  // Estimated at 600 ms, from 400 ms for 200.
  EXPECT_EQ(run->measurements()[3].skipped, "");
  EXPECT_NE(run->measurements()[4].skipped.find("one of 50 elements took 400 ms"), std::string::npos);
  EXPECT_EQ(device_.works(), 4 * 2);
}

TEST_F(BenchmarkTest, RepetitionsThatWouldHoldALaneForTooLongAreSkipped) {
  device_.kernel_ns = 400'000'000;
  BenchmarkSpec spec = ScanOf({100});
  spec.repetitions = 101;
  const auto run = Run(spec);
  ASSERT_EQ(run->measurements().size(), 1u);
  EXPECT_NE(run->measurements()[0].skipped.find("101 repetitions would hold a lane for longer than 40 s"),
            std::string::npos)
      << run->measurements()[0].skipped;
  EXPECT_EQ(device_.works(), 1);
}

TEST_F(BenchmarkTest, NoMemoryIsSkipped) {
  device_.memory_status = Error(absl::StatusCode::kResourceExhausted, "DEVICE_MEMORY", "", "no memory");
  const auto run = Run(ScanOf({1}));
  ASSERT_EQ(run->measurements().size(), 1u);
  EXPECT_EQ(run->measurements()[0].skipped, "no memory");
  EXPECT_TRUE(run->result().status.ok());
}

TEST_F(BenchmarkTest, NothingTooMuchOrOutOfRangeIsInvalid) {
  const auto field = [&](BenchmarkSpec spec) {
    const auto run = Run(std::move(spec));
    EXPECT_EQ(ErrorReason(run->result().status), "BENCHMARK_SPEC");
    EXPECT_TRUE(run->measurements().empty());
    return ErrorField(run->result().status);
  };
  BenchmarkSpec spec = ScanOf({1});
  spec.primitives.clear();
  EXPECT_EQ(field(spec), "primitives");
  spec = ScanOf({1});
  spec.dtypes.clear();
  EXPECT_EQ(field(spec), "dtypes");
  EXPECT_EQ(field(ScanOf({})), "num_items");
  EXPECT_EQ(field(ScanOf({1, 0})), "num_items");
  EXPECT_EQ(field(ScanOf(std::vector<uint64_t>(4097, 1))), "num_items");
  EXPECT_EQ(field(ScanOf({1}, 0)), "repetitions");
  EXPECT_EQ(field(ScanOf({1}, 1001)), "repetitions");
  spec = ScanOf({1});
  spec.primitives = {Primitive::kScan, Primitive::kCompact};
  spec.axis = Axis{.row_items = 1};
  EXPECT_EQ(field(spec), "axis");
  spec.axis.reset();
  spec.precision = Precision::kWide;
  EXPECT_EQ(field(spec), "precision");
  spec.precision = Precision::kNative;
  spec.return_indices = true;
  EXPECT_EQ(field(spec), "return_indices");
  spec = ScanOf({1});
  spec.request_id = "two words";
  EXPECT_EQ(ErrorReason(Run(spec)->result().status), "REQUEST_ID");
  EXPECT_EQ(ErrorReason(Run(Error(absl::StatusCode::kInvalidArgument, "UNKNOWN_ENUM", "ops", "x"))->result().status),
            "UNKNOWN_ENUM");
  EXPECT_EQ(admission_.in_use().requests, 0u);
}

TEST_F(BenchmarkTest, CanBeSwitchedOff) {
  control_.enabled = false;
  const auto run = Run(ScanOf({1}));
  EXPECT_EQ(run->result().status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrorReason(run->result().status), "BENCHMARK_OFF");
}

}  // namespace
}  // namespace prefixd
