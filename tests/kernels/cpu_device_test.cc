// The CPU device's promises beyond those of kernels/device.h, which tests/conformance checks.
#include "kernels/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "kernels/association.h"
#include "kernels/cpu/operators.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/selector.h"

namespace prefixd {
namespace {

class CpuDeviceTest : public testing::Test {
 protected:
  // Values whose sum depends on the order of the additions.
  static std::vector<float> Rounding(size_t num_items) {
    std::vector<float> x(num_items);
    for (size_t i = 0; i < num_items; ++i) x[i] = std::sin(static_cast<float>(i)) * static_cast<float>(1 + i % 1000);
    return x;
  }

  std::vector<float> ScanOf(std::vector<float> x) {
    ScanArgs args;
    args.dtype = DType::kF32;
    args.in = args.out = x.data();
    args.num_items = x.size();
    args.init = Value::Of(0.5f);
    EXPECT_TRUE(lane_->Scan(args).ok());
    return x;
  }

  template <class T>
  T ReduceOf(const std::vector<T>& x, Algorithm algorithm = {}, T init = 0.5) {
    ReduceState state;
    ReduceArgs args;
    args.dtype = kDTypeOf<T>;
    args.algorithm = algorithm;
    args.in = x.data();
    args.num_items = x.size();
    args.init = {Value::Of(init), 0};
    args.state_out = &state;
    EXPECT_TRUE(lane_->Reduce(args).ok());
    return state.value.As<T>();
  }

  std::unique_ptr<Device> device_ = OpenCpuDevice();
  std::unique_ptr<Lane> lane_ = *device_->CreateLane();
};

// Matrices that no cache holds, with rows of whole lines, and not.
TEST_F(CpuDeviceTest, ScansAndDifferencesOfLargeMatrices) {
  struct Matrix {
    size_t num_rows, num_columns;
  };
  for (const auto& [num_rows, num_columns] :
       {Matrix{2100, 2048}, {1700, 2049}, {4, 900'000}, {17'000, 256}, {1'400'003, 3}}) {
    std::vector<uint32_t> in(num_rows * num_columns);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint32_t>(i * 2'654'435'761u);
    const Buffer memory = *lane_->Allocate(in.size() * sizeof(uint32_t));  // Begins with a line.
    const std::span out(reinterpret_cast<uint32_t*>(memory.data()), in.size());
    std::vector<uint32_t> again(in.size());
    for (const bool by_rows : {true, false}) {
      for (const bool reverse : {false, true}) {
        std::ranges::fill(out, 7u);
        const ScanArgs args = {.dtype = DType::kU32,
                               .reverse = reverse,
                               .in = in.data(),
                               .out = out.data(),
                               .num_items = by_rows ? num_columns : num_rows,
                               .num_arrays = by_rows ? num_rows : num_columns,
                               .order = by_rows ? BatchOrder::kOneByOne : BatchOrder::kInterleaved,
                               .init = Value::Of(uint32_t{5})};
        ASSERT_TRUE(lane_->Scan(args).ok());
        const size_t back = by_rows ? 1 : num_columns;  // To the item before, or behind.
        for (size_t i = 0; i < in.size(); ++i) {
          const size_t place = by_rows ? i % num_columns : i / num_columns;
          const bool is_first = place == (reverse ? args.num_items - 1 : 0);
          const uint32_t before = is_first ? 5 : out[reverse ? i + back : i - back];
          ASSERT_EQ(out[i], before + in[i]) << "item " << i << " of " << num_rows << " rows of " << num_columns;
        }
        ASSERT_TRUE(lane_
                        ->Difference({.dtype = args.dtype,
                                      .reverse = reverse,
                                      .in = out.data(),
                                      .out = again.data(),
                                      .num_items = args.num_items,
                                      .num_arrays = args.num_arrays,
                                      .order = args.order,
                                      .init = args.init})
                        .ok());
        ASSERT_TRUE(again == in) << num_rows << " rows of " << num_columns << (reverse ? " reverse" : "");
      }
    }
  }
}

TEST_F(CpuDeviceTest, AReduceIsTheLastElementOfTheInclusiveScan) {
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{kGroupItems}, size_t{kGroupItems} + 1, size_t{300007}}) {
    const std::vector<float> x = Rounding(size);
    EXPECT_EQ(ReduceOf(x), ScanOf(x).back()) << size;
  }
}

TEST_F(CpuDeviceTest, CountsItsLoops) {
  ScanOf(Rounding(kGroupItems));
  EXPECT_EQ(lane_->TakeStageTimes().launches, 1u);
  ScanOf(Rounding(kGroupItems + 1));
  ScanOf(Rounding(1));
  EXPECT_EQ(lane_->TakeStageTimes().launches, 2u);
  ScanOf({});
  const StageTimes nothing = lane_->TakeStageTimes();
  EXPECT_EQ(nothing.launches, 0u);
  EXPECT_FALSE(nothing.kernel_ns.has_value());
}

TEST_F(CpuDeviceTest, CopiesAreNotMeasured) {
  int x = 1, y = 2;
  EXPECT_TRUE(lane_->CopyToDevice(&x, &y, sizeof(x)).ok());
  EXPECT_EQ(x, 2);
  EXPECT_TRUE(lane_->CopyToHost(nullptr, nullptr, 0).ok());
  ScanOf(Rounding(10));
  const StageTimes times = lane_->TakeStageTimes();
  EXPECT_FALSE(times.host_to_device_ns.has_value());
  EXPECT_FALSE(times.device_to_host_ns.has_value());
}

TEST(ParallelForTest, CallsEveryBlockOnce) {
  for (const uint64_t num_blocks : {0, 1, 2, 3, 1000}) {
    std::vector<int> calls(num_blocks);
    cpu::ParallelFor(num_blocks, [&](uint64_t block) { ++calls[block]; });
    EXPECT_EQ(calls, std::vector<int>(num_blocks, 1));
  }
  EXPECT_GE(cpu::Concurrency(), 1);
}

// Adds up so that order shows.
uint64_t After(uint64_t before, uint64_t part) { return before * 31 + part + 1; }

TEST(ChainTest, AddsPartsInOrderAlsoWhereItIsNested) {
  constexpr uint64_t kNumParts = 200;
  std::atomic<int> wrong = 0;
  cpu::ParallelFor(16, [&](uint64_t chain) {
    uint64_t prefix = chain;
    std::vector<uint64_t> befores(kNumParts);
    const auto reduce = [](uint64_t part) { return part; };
    const auto add = [](uint64_t part, uint64_t* sum) { *sum = After(*sum, part); };
    const auto finish = [&](uint64_t part, uint64_t before, uint64_t value, uint64_t next) {
      befores[part] = before;
      wrong += value != part || next <= part;
    };
    const auto whole = [&](uint64_t part, uint64_t* before, uint64_t next) {
      befores[part] = *before;
      wrong += next <= part;
      add(part, before);
    };
    cpu::Chain(/*num_threads=*/5, kNumParts, &prefix, reduce, add, finish, whole);
    uint64_t want = chain;
    for (uint64_t part = 0; part < kNumParts; ++part) {
      wrong += befores[part] != want;
      want = After(want, part);
    }
    wrong += prefix != want;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ChainTest, WaitsForAPartThatTakesLong) {
  uint64_t prefix = 0;
  const auto reduce = [](uint64_t part) {
    if (part == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // Longer than Turns spins.
    return part;
  };
  cpu::Chain(
      /*num_threads=*/2, /*num_parts=*/9, &prefix, reduce,
      [](uint64_t part, uint64_t* sum) { *sum = After(*sum, part); }, [](uint64_t, uint64_t, uint64_t, uint64_t) {},
      [](uint64_t part, uint64_t* sum, uint64_t) { *sum = After(*sum, part); });
  uint64_t want = 0;
  for (uint64_t part = 0; part < 9; ++part) want = After(want, part);
  EXPECT_EQ(prefix, want);
}

TEST(NumThreadsTest, ShortArraysStayOnTheCallersThread) {
  EXPECT_EQ(cpu::NumThreads(0), 1);
  EXPECT_EQ(cpu::NumThreads(15), 1);
  EXPECT_EQ(cpu::NumThreads(16), std::min(2, cpu::Concurrency()));
  EXPECT_EQ(cpu::NumThreads(1'000'000'000'000), cpu::Concurrency());
}

TEST(ParallelForTest, PartsCoverEveryItem) {
  EXPECT_EQ(cpu::NumParts(0, 16), 0u);
  EXPECT_EQ(cpu::NumParts(1, 16), 1u);
  EXPECT_EQ(cpu::NumParts(16, 16), 1u);
  EXPECT_EQ(cpu::NumParts(17, 16), 2u);
  EXPECT_EQ(cpu::NumParts(~uint64_t{0}, 16), uint64_t{1} << 60);
  EXPECT_EQ(cpu::PartItems(17, 16, 0), 16u);
  EXPECT_EQ(cpu::PartItems(17, 16, 1), 1u);
}

// What rounds away in a plain loop, and in Kahan's own form, is there.
TEST_F(CpuDeviceTest, KahanLosesNothingToLargerNeighbours) {
  const Algorithm kahan = {Strategy::kKahan};
  EXPECT_EQ(ReduceOf<double>({1, 1e100, 1, -1e100}, kahan, 0.0), 2);
  EXPECT_EQ(ReduceOf<double>({1, 1e100, 1, -1e100}, {Strategy::kSequential}, 0.0), 0);
  const std::vector<float> thousandths(1 << 20, 0x1p-10F);
  EXPECT_EQ(ReduceOf<float>(thousandths, kahan, 0x1p20F), 0x1p20F + 1024);
  EXPECT_EQ(ReduceOf<float>(thousandths, {Strategy::kSequential}, 0x1p20F), 0x1p20F);
}

TEST_F(CpuDeviceTest, KahanKeepsSpecialValues) {
  const auto kahan = [&](const std::vector<double>& x, double init) { return ReduceOf(x, {Strategy::kKahan}, init); };
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(kahan({1, inf, 2}, 0), inf);
  EXPECT_EQ(kahan({1e308, 1e308, 1}, 0), inf);
  EXPECT_TRUE(std::isnan(kahan({inf, -inf, 2}, 0)));
  EXPECT_TRUE(std::signbit(kahan({-0.0, -0.0}, -0.0)));
  EXPECT_FALSE(std::signbit(kahan({-0.0, -0.0}, 0.0)));
}

TEST_F(CpuDeviceTest, HostAlgorithmsAreOneLoop) {
  const std::vector<float> x = Rounding(20000);
  ReduceOf<float>(x, {Strategy::kSequential});
  EXPECT_EQ(lane_->TakeStageTimes().launches, 1u);
  ReduceOf<float>(x, {Strategy::kKahan});
  EXPECT_EQ(lane_->TakeStageTimes().launches, 1u);
}

// As DispatchDeathTest in types_test.cc.
TEST(CpuDispatchDeathTest, VisitFunction) {
  EXPECT_DEATH(cpu::VisitFunction<int32_t>(static_cast<Op>(201), [](auto) {}), "VisitOp .* unknown value \\(201\\)");
  EXPECT_DEATH(cpu::VisitFunction<double>(Op::kXor, [](auto) {}), "VisitOp .* xor \\(6\\)");
}

TEST(CpuDispatchDeathTest, VisitSelector) {
  const auto visit = [](const CompactArgs& args) { cpu::VisitSelector(args, [](auto) {}); };
  EXPECT_DEATH(visit({.selector = static_cast<Selector>(203)}), "VisitSelector .* unknown value \\(203\\)");
  EXPECT_DEATH(visit({.comparison = static_cast<Comparison>(204)}), "VisitSelector .* unknown value \\(204\\)");
}

}  // namespace
}  // namespace prefixd
