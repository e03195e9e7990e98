// Arrays whose indices need more than 32 bits, on devices with the memory for them. The host never holds a whole
// array: the array repeats a pattern, so every prefix is known in closed form.
#include <algorithm>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

constexpr uint64_t kPatternItems = uint64_t{1} << 24;  // 64 MiB.

class HugeTest : public DeviceTest<DeviceParam> {
 protected:
  static int32_t PatternItem(uint64_t i) { return static_cast<int32_t>(i * 2654435761u >> 9 & 0x3ff); }

  // num_items of the pattern, the last element replaced by -1: the only negative one.
  void RunAll(uint64_t num_items) {
    const Buffer h_pattern = Require(device().AllocatePinned(kPatternItems * sizeof(int32_t)));
    const Buffer h_read = Require(device().AllocatePinned(kPatternItems * sizeof(int32_t)));
    auto* const pattern = reinterpret_cast<int32_t*>(h_pattern.data());
    for (uint64_t i = 0; i < kPatternItems; ++i) pattern[i] = PatternItem(i);
    const Buffer d_x = Require(lane().Allocate(num_items * sizeof(int32_t)));
    auto* const x = reinterpret_cast<int32_t*>(d_x.data());
    const auto fill = [&] {
      for (uint64_t begin = 0; begin < num_items; begin += kPatternItems) {
        const uint64_t chunk = std::min(kPatternItems, num_items - begin);
        Require(lane().CopyToDevice(x + begin, pattern, chunk * sizeof(int32_t)));
      }
      const int32_t last = -1;
      Require(lane().CopyToDevice(x + num_items - 1, &last, sizeof(last)));
      Require(lane().Synchronize());
    };
    fill();
    for (const Algorithm& algorithm :
         AlgorithmsOf(device(), Primitive::kReduce, {"", DType::kI32, DType::kI32, Op::kMin})) {
      if (!device().CheckLength(Primitive::kReduce, algorithm, num_items).ok()) continue;
      SCOPED_TRACE(Name(algorithm));
      CheckReduce(algorithm, x, num_items, pattern);
    }
    for (const Algorithm& algorithm :
         AlgorithmsOf(device(), Primitive::kCompact, {"", DType::kI32, DType::kI32, Op::kMin})) {
      if (!device().CheckLength(Primitive::kCompact, algorithm, num_items).ok()) continue;
      SCOPED_TRACE(Name(algorithm));
      CheckCompact(algorithm, x, num_items);
    }
    // One tile scan: it is the strategies that count in 64 bits, and each takes some ten seconds of 2^32 elements.
    const auto tile_scan = static_cast<TileScan>(1 + random().Below(kNumTileScans - 1));
    for (const Algorithm& algorithm :
         AlgorithmsOf(device(), Primitive::kScan, {"", DType::kI32, DType::kI32, Op::kMin})) {
      if (algorithm.tile_scan != TileScan::kDefault && algorithm.tile_scan != tile_scan) continue;
      if (!device().CheckLength(Primitive::kScan, algorithm, num_items).ok()) continue;
      SCOPED_TRACE(Name(algorithm));
      fill();
      CheckScanInPlace(algorithm, x, num_items, pattern, reinterpret_cast<int32_t*>(h_read.data()));
    }
  }

 private:
  static uint32_t SumOf(const int32_t* pattern, uint64_t num_items) {
    uint32_t sum = 0;
    for (uint64_t i = 0; i < num_items; ++i) sum += static_cast<uint32_t>(pattern[i]);
    return sum;
  }

  ReduceState ReduceOf(const Algorithm& algorithm, Op op, const int32_t* d_x, uint64_t num_items) {
    auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
    ReduceArgs args;
    args.op = op;
    args.algorithm = algorithm;
    args.in = d_x;
    args.num_items = num_items;
    args.init = {Neutral(op, DType::kI32), ReduceState::kNothing};
    args.state_out = d_state.data();
    Require(lane().Reduce(args));
    std::vector<ReduceState> state;
    EXPECT_TRUE(d_state.Read(&state));
    return state[0];
  }

  void CheckReduce(const Algorithm& algorithm, const int32_t* d_x, uint64_t num_items, const int32_t* pattern) {
    const auto min = ReduceOf(algorithm, Op::kMin, d_x, num_items);
    EXPECT_EQ(min.value.As<int32_t>(), -1);
    EXPECT_EQ(min.position, num_items);
    const auto whole = static_cast<uint32_t>((num_items - 1) / kPatternItems);
    const uint32_t sum = whole * SumOf(pattern, kPatternItems) + SumOf(pattern, (num_items - 1) % kPatternItems) - 1;
    EXPECT_EQ(ReduceOf(algorithm, Op::kSum, d_x, num_items).value.As<uint32_t>(), sum);
  }

  void CheckCompact(const Algorithm& algorithm, const int32_t* d_x, uint64_t num_items) {
    auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
    CompactArgs args;
    args.algorithm = algorithm;
    args.comparison = Comparison::kLess;
    args.value = Value::Of(int32_t{0});
    args.invert = true;
    args.in = d_x;
    args.num_items = num_items;
    args.count = d_count.data();
    Require(lane().Compact(args));
    std::vector<uint64_t> got;
    EXPECT_TRUE(d_count.Read(&got));
    EXPECT_EQ(got[0], num_items - 1) << "count only";

    // The one negative element is the last: its index needs all 33 bits.
    auto indices = lane().Allocate(num_items * sizeof(uint64_t));
    if (absl::IsResourceExhausted(indices.status())) return;
    const Buffer d_indices = Require(std::move(indices));
    args.invert = false;
    args.indices = d_indices.data();
    Require(lane().Compact(args));
    uint64_t index = 0;
    Require(lane().CopyToHost(&index, d_indices.data(), sizeof(index)));
    EXPECT_TRUE(d_count.Read(&got));
    EXPECT_EQ(got[0], 1u);
    EXPECT_EQ(index, num_items - 1);
  }

  void CheckScanInPlace(const Algorithm& algorithm, int32_t* d_x, uint64_t num_items, const int32_t* pattern,
                        int32_t* h_read) {
    ScanArgs args;
    args.algorithm = algorithm;
    args.in = args.out = d_x;
    args.num_items = num_items;
    Require(lane().Scan(args));
    uint32_t sum = 0;
    for (uint64_t begin = 0; begin < num_items; begin += kPatternItems) {
      const uint64_t chunk = std::min(kPatternItems, num_items - begin);
      Require(lane().CopyToHost(h_read, d_x + begin, chunk * sizeof(int32_t)));
      Require(lane().Synchronize());
      for (uint64_t i = 0; i < chunk; ++i) {
        sum += static_cast<uint32_t>(begin + i == num_items - 1 ? -1 : pattern[i]);
        ASSERT_EQ(static_cast<uint32_t>(h_read[i]), sum) << "element " << begin + i;
      }
    }
  }
};

// The test itself, where it fits anywhere.
TEST_P(HugeTest, FourPatternsAndABit) {
  if (SmallSizesOnly()) GTEST_SKIP() << "arrays of gigabytes, and small sizes were asked for";
  RunAll(4 * kPatternItems + 17);
}

TEST_P(HugeTest, MoreThan32BitsOfElements) {
  if (SmallSizesOnly()) GTEST_SKIP() << "arrays of gigabytes, and small sizes were asked for";
  const DeviceInfo& info = device().info();
  constexpr uint64_t kNeededBytes = uint64_t{48} << 30;
  if (info.memory_bytes < kNeededBytes || device().FreeMemoryBytes() < kNeededBytes) {
    GTEST_SKIP() << info.name << " has " << (device().FreeMemoryBytes() >> 30) << " of " << (info.memory_bytes >> 30)
                 << " GiB free; this takes 48 GiB";
  }
  RunAll((uint64_t{1} << 32) + 17);
}

PREFIXD_ON_EVERY_DEVICE(HugeTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
