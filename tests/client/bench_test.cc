#include "client/prefixctl/bench_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace prefixd::cli {
namespace {

using ::testing::ElementsAre;

client::Capability Listed(Primitive primitive, DType dtype, std::optional<Op> op, Strategy strategy) {
  return {primitive, dtype, dtype, op, {strategy}};
}
const client::ServerInfo kServerInfo = {
    .capabilities =
        {
            Listed(Primitive::kScan, DType::kF32, Op::kSum, Strategy::kChained),
            Listed(Primitive::kScan, DType::kI32, Op::kSum, Strategy::kChained),
            Listed(Primitive::kScan, DType::kI32, Op::kXor, Strategy::kChained),
            Listed(Primitive::kReduce, DType::kI32, Op::kMax, Strategy::kSingleLaunch),
            Listed(Primitive::kCompact, DType::kU64, std::nullopt, Strategy::kCub),
        },
    .algorithms = {
        {.primitive = Primitive::kScan, .algorithm = {Strategy::kChained}},
        {.primitive = Primitive::kScan,
         .algorithm = {Strategy::kThreePhase, TileScan::kBrentKung},
         .has_items_per_thread = true,
         .has_padding = true},
        {.primitive = Primitive::kScan, .algorithm = {Strategy::kThreePhase, TileScan::kBlelloch}, .has_padding = true},
        {.primitive = Primitive::kReduce, .algorithm = {Strategy::kSingleLaunch}},
        {.primitive = Primitive::kCompact, .algorithm = {Strategy::kChained}},
        {.primitive = Primitive::kCompact, .algorithm = {Strategy::kCub}},
    }};

TEST(BenchSpec, WhatWasNamedIsAskedFor) {
  BenchFlags flags;
  flags.sizes = {5};
  flags.repetitions = 3;
  const client::BenchmarkSpec spec = BenchSpec(flags, kServerInfo);
  EXPECT_THAT(spec.primitives,
              ElementsAre(Primitive::kScan, Primitive::kReduce, Primitive::kCompact, Primitive::kDifference));
  EXPECT_THAT(spec.dtypes, ElementsAre(DType::kF32));
  EXPECT_THAT(spec.ops, ElementsAre(Op::kSum));
  EXPECT_THAT(spec.algorithms, ElementsAre(Algorithm{}));
  EXPECT_THAT(spec.num_items, ElementsAre(5));
  EXPECT_EQ(spec.repetitions, 3);
}

TEST(BenchSpec, AllIsWhatTheServerListsForThePrimitives) {
  const BenchFlags flags = {
      .primitives = {Primitive::kScan, Primitive::kCompact}, .dtypes = {}, .ops = {}, .algorithms = {}};
  const client::BenchmarkSpec spec = BenchSpec(flags, kServerInfo);
  EXPECT_THAT(spec.dtypes, ElementsAre(DType::kF32, DType::kI32, DType::kU64));
  EXPECT_THAT(spec.ops, ElementsAre(Op::kSum, Op::kXor));
  std::vector<std::string> names;
  for (const Algorithm& algorithm : spec.algorithms) names.push_back(Name(algorithm));
  EXPECT_THAT(names, ElementsAre("chained", "three_phase/brent_kung", "three_phase/brent_kung/padded",
                                 "three_phase/brent_kung/4", "three_phase/brent_kung/4/padded", "three_phase/blelloch",
                                 "three_phase/blelloch/padded", "cub"));
}

TEST(IsUnasked, OnlyOfAll) {
  const client::BenchmarkResult skipped = {.primitive = Primitive::kReduce,
                                           .dtype = DType::kF32,
                                           .op = Op::kXor,
                                           .algorithm = {Strategy::kCub},
                                           .skipped = "no"};
  EXPECT_FALSE(IsUnasked(skipped, {}, kServerInfo));
  EXPECT_TRUE(IsUnasked(skipped, {.dtypes = {}}, kServerInfo));
  EXPECT_TRUE(IsUnasked(skipped, {.ops = {}}, kServerInfo));
  EXPECT_TRUE(IsUnasked(skipped, {.algorithms = {}}, kServerInfo));
  client::BenchmarkResult measured = skipped;
  measured.times = client::BenchmarkTimes{};
  EXPECT_FALSE(IsUnasked(measured, {.dtypes = {}}, kServerInfo));
}

TEST(IsUnasked, WhatIsListedMayBeSkippedForAnotherReason) {
  client::BenchmarkResult skipped = {.primitive = Primitive::kScan,
                                     .dtype = DType::kF32,
                                     .op = Op::kSum,
                                     .algorithm = {Strategy::kChained},
                                     .skipped = "no"};
  EXPECT_FALSE(IsUnasked(skipped, {.dtypes = {}, .ops = {}, .algorithms = {}}, kServerInfo));
  skipped.op = Op::kXor;  // Listed for i32, and not for f32.
  EXPECT_TRUE(IsUnasked(skipped, {.ops = {}}, kServerInfo));
  EXPECT_TRUE(IsUnasked(skipped, {.algorithms = {}}, kServerInfo));
}

TEST(IsUnasked, AnAlgorithmIsListedWithAllItsKnobs) {
  client::ServerInfo info;
  info.capabilities = {
      {Primitive::kScan, DType::kF32, DType::kF32, Op::kSum, {Strategy::kThreePhase, TileScan::kBrentKung}}};
  client::BenchmarkResult skipped = {
      .op = Op::kSum, .algorithm = {Strategy::kThreePhase, TileScan::kBrentKung, 4, true}, .skipped = "too slow"};
  EXPECT_FALSE(IsUnasked(skipped, {.algorithms = {}}, info));
  skipped.algorithm.tile_scan = TileScan::kBlelloch;
  EXPECT_TRUE(IsUnasked(skipped, {.algorithms = {}}, info));
}

}  // namespace
}  // namespace prefixd::cli
