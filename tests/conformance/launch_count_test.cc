// The number of launches that each of the textbooks' algorithms takes, by the formulas of their sources.
#include <algorithm>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

int Log2Up(uint64_t n) {
  int steps = 0;
  while (steps < 63 && uint64_t{1} << steps < n) ++steps;
  return steps;
}
// Launches of a tree with as many branches, down to one.
uint64_t Levels(uint64_t n, uint64_t branches) {
  uint64_t levels = 1;
  for (; n > branches; n = (n + branches - 1) / branches) ++levels;
  return levels;
}

// Launches of a scan of 4-byte elements, not in place, without carries. -1: not known here.
int64_t LaunchesOfScan(const Algorithm& algorithm, uint64_t n) {
  const uint64_t tile = 512 * std::max<uint64_t>(algorithm.tile_scan == TileScan::kBlelloch ? 2 : 1,  //
                                                 algorithm.items_per_thread);
  switch (algorithm.strategy) {
    case Strategy::kThreePhase:
      return 2 * Levels(n, tile) - 1;
    case Strategy::kHillisSteeleGlobal:
      return std::max(1, Log2Up(n));
    case Strategy::kThrust:
      return n == 0 ? 0 : 2;
    case Strategy::kGridSync:
    case Strategy::kChainedSerial:
    case Strategy::kChained:
      return 1;
    case Strategy::kNaive:
      return 1;
    default:
      return -1;
  }
}
int64_t LaunchesOfReduce(const Algorithm& algorithm, Op op, uint64_t n) {
  switch (algorithm.strategy) {
    case Strategy::kTreeInterleaved:
    case Strategy::kTreeSequential:
    case Strategy::kWarpShuffle:
      return Levels(n, 512);
    case Strategy::kTwoPass:
    case Strategy::kKahan:
      return n <= 512 ? 1 : 2;
    case Strategy::kAtomic:
      return op == Op::kSum ? 3 : 4;
    default:
      return -1;
  }
}

int64_t LaunchesOfCompact(const Algorithm& algorithm, uint64_t n) {
  switch (algorithm.strategy) {
    case Strategy::kThreeKernel:
      return 2 * Levels(n, 1024) + 1;
    case Strategy::kAtomicCounter:
      return 1;
    case Strategy::kThrust:
      return n == 0 ? 1 : 3;
    default:
      return -1;
  }
}

class LaunchCountTest : public DeviceTest<DeviceParam> {
 protected:
  int64_t Launches() {
    Require(lane().Synchronize());
    return static_cast<int64_t>(lane().TakeStageTimes().launches);
  }
};

TEST_P(LaunchCountTest, AreWhatTheAlgorithmsSay) {
  if (GetParam().device == "cpu") GTEST_SKIP() << "launches of the CPU are parallel loops";
  const size_t max_size = SmallSizesOnly() ? 5000 : 300000;
  DeviceArray<int32_t> d_x(lane(), std::vector<int32_t>(max_size, 1));
  auto d_out = DeviceArray<int32_t>::Poisoned(lane(), max_size);
  auto d_carry = DeviceArray<int32_t>::Poisoned(lane(), 1);
  auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
  auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
  Launches();
  for (const uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{512}, uint64_t{513}, uint64_t{5000}, max_size}) {
    for (const Algorithm& form : FormsOf(device(), Primitive::kScan)) {
      if (!device().CheckLength(Primitive::kScan, form, n).ok()) continue;
      ScanArgs args;
      args.algorithm = form;
      args.in = d_x.data();
      args.out = d_out.data();
      args.num_items = n;
      Require(lane().Scan(args));
      const int64_t launches = Launches(), want = LaunchesOfScan(form, n);
      if (want >= 0) {
        EXPECT_EQ(launches, want) << Name(form) << " of " << n;
      }
    }
    for (const Algorithm& form : FormsOf(device(), Primitive::kReduce)) {
      for (const Op op : {Op::kSum, Op::kMin}) {
        if (!device().RowOf(Primitive::kReduce, form).serves(DType::kI32, DType::kI32, op)) continue;
        ReduceArgs args;
        args.op = op;
        args.algorithm = form;
        args.in = d_x.data();
        args.num_items = n;
        args.init = {Neutral(op, DType::kI32), ReduceState::kNothing};
        args.state_out = d_state.data();
        Require(lane().Reduce(args));
        const int64_t launches = Launches(), want = LaunchesOfReduce(form, op, n);
        if (want >= 0) {
          EXPECT_EQ(launches, want) << Name(form) << " by " << Name(op) << " of " << n;
        }
      }
    }
    for (const Algorithm& form : FormsOf(device(), Primitive::kCompact)) {
      CompactArgs args;
      args.algorithm = form;
      args.in = d_x.data();
      args.num_items = n;
      args.count = d_count.data();
      Require(lane().Compact(args));
      const int64_t launches = Launches(), want = LaunchesOfCompact(form, n);
      if (want >= 0) {
        EXPECT_EQ(launches, want) << Name(form) << " of " << n;
      }
    }
  }
  if (!HasTextbooks(device())) return;
  // What has to be copied first, because others still read it.
  ScanArgs args;
  args.in = args.out = d_x.data();
  args.num_items = 300;
  args.carry_in = args.carry_out = d_carry.data();
  for (const auto& [strategy, want] : {std::pair{Strategy::kNaive, 3}, {Strategy::kHillisSteeleGlobal, 10}}) {
    args.algorithm = {strategy};
    Require(lane().Scan(args));
    EXPECT_EQ(Launches(), want) << Name(strategy);
  }
}

PREFIXD_ON_EVERY_DEVICE(LaunchCountTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
