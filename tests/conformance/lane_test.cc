// The promises of every Device and Lane beside right answers: memory, copies, order, times, and lanes that run at once.
#include <algorithm>
#include <limits>
#include <set>
#include <thread>

#include "base/status.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

using LaneTest = DeviceTest<DeviceParam>;

TEST_P(LaneTest, MemoryIsAlignedAndNeverNull) {
  for (const size_t size_bytes : {0, 1, 255, 256, 257, 1 << 20}) {
    const Buffer buffer = Require(lane().Allocate(size_bytes));
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
    EXPECT_EQ(buffer.size_bytes(), size_bytes);
    const Buffer pinned = Require(device().AllocatePinned(size_bytes));
    EXPECT_NE(pinned.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned.data()) % 256, 0u);
    EXPECT_EQ(pinned.size_bytes(), size_bytes);
  }
}

TEST_P(LaneTest, MoreMemoryThanThereIsIsRefused) {
  EXPECT_TRUE(absl::IsResourceExhausted(lane().Allocate(size_t{1} << 60).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(lane().Allocate(std::numeric_limits<size_t>::max()).status()));
  EXPECT_TRUE(lane().Allocate(1000).ok()) << "and the lane still works";
  EXPECT_TRUE(lane().Synchronize().ok());
}

TEST_P(LaneTest, CopiesOfAllSizes) {
  for (const size_t size_bytes : {0, 1, 3, 4096, 1000003}) {
    std::vector<uint8_t> in(size_bytes), out(size_bytes);
    for (uint8_t& byte : in) byte = static_cast<uint8_t>(random().Next());
    DeviceArray<uint8_t> d_x(lane(), in);
    Require(lane().CopyToHost(out.data(), d_x.data(), size_bytes));
    Require(lane().Synchronize());
    EXPECT_EQ(in, out);
  }
}

// Small arrays, results and counts in pinned memory, one array and several: the bits that they have in the device's.
TEST_P(LaneTest, SmallArraysMayBeInPinnedMemory) {
  const size_t max_bytes = std::min<uint64_t>(device().info().direct_bytes, uint64_t{64} << 10);
  if (max_bytes == 0) GTEST_SKIP() << "the device copies arrays of any size";
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32, DType::kI64, DType::kF64}) {
    for (const uint64_t num_arrays : {1, 3}) {
      const uint64_t most = max_bytes / SizeOf(dtype) / num_arrays;
      for (const uint64_t num_items : {uint64_t{1}, 1 + random().Below(most), most}) {
        SCOPED_TRACE(StrCat(Name(dtype), ", ", num_arrays, " of ", num_items));
        const size_t size_bytes = num_arrays * num_items * SizeOf(dtype);
        std::vector<uint8_t> in(size_bytes);
        for (uint8_t& byte : in) byte = static_cast<uint8_t>(random().Next());
        // In, scanned, kept, counts and states. Values that were not written are as before.
        const auto run = [&](bool pinned) {
          std::vector<Buffer> memory;
          for (const size_t bytes :
               {size_bytes, size_bytes, size_bytes, num_arrays * sizeof(uint64_t), num_arrays * sizeof(ReduceState)}) {
            memory.push_back(Require(pinned ? device().AllocatePinned(bytes) : lane().Allocate(bytes)));
            const std::vector<uint8_t> filled = memory.size() == 1 ? in : std::vector<uint8_t>(bytes, 0x5a);
            Require(lane().CopyToDevice(memory.back().data(), filled.data(), bytes));
            Require(lane().Synchronize());
          }
          ScanArgs scan = {.dtype = dtype, .in = memory[0].data(), .out = memory[1].data(), .num_items = num_items};
          scan.num_arrays = num_arrays;
          scan.init = ScanStart(Op::kSum, dtype, scan.kind);
          Require(lane().Scan(scan));
          CompactArgs compact = {.dtype = dtype, .comparison = Comparison::kGreaterEqual};
          compact.value = Neutral(Op::kSum, dtype);
          compact.in = memory[0].data();
          compact.num_items = num_items;
          compact.num_arrays = num_arrays;
          compact.values = memory[2].data();
          compact.count = reinterpret_cast<uint64_t*>(memory[3].data());
          Require(lane().Compact(compact));
          ReduceArgs reduce = {.dtype = dtype, .op = Op::kMax, .in = memory[0].data(), .num_items = num_items};
          reduce.num_arrays = num_arrays;
          reduce.init = {Neutral(Op::kMax, dtype), ReduceState::kNothing};
          reduce.state_out = reinterpret_cast<ReduceState*>(memory[4].data());
          Require(lane().Reduce(reduce));
          std::vector<std::vector<uint8_t>> results;
          for (const Buffer& buffer : memory) {
            results.emplace_back(buffer.size_bytes());
            Require(lane().CopyToHost(results.back().data(), buffer.data(), buffer.size_bytes()));
          }
          Require(lane().Synchronize());
          return results;
        };
        EXPECT_EQ(run(true), run(false));
      }
    }
  }
}

TEST_P(LaneTest, Describes) {
  const DeviceInfo& info = device().info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_GT(info.memory_bytes, uint64_t{1} << 28);
  EXPECT_GT(device().FreeMemoryBytes(), 0u);
  EXPECT_LE(device().FreeMemoryBytes(), info.memory_bytes);
  for (const auto primitive : {Primitive::kScan, Primitive::kReduce, Primitive::kCompact}) {
    ASSERT_FALSE(AlgorithmsOf(device(), primitive).empty());
    const Algorithm first = AlgorithmsOf(device(), primitive).front();
    EXPECT_NE(first, Algorithm{});
    EXPECT_EQ(Require(device().Resolve(primitive, {})), first);
  }
}

// What a row says of itself is what a caller can ask for, and what comes of it.
TEST_P(LaneTest, EveryAlgorithmIsServedAsListed) {
  std::set<std::pair<Primitive, std::string>> names;
  for (const AlgorithmInfo& row : device().Algorithms()) {
    SCOPED_TRACE(StrCat(Name(row.primitive), " ", Name(row.algorithm)));
    EXPECT_TRUE(names.emplace(row.primitive, Name(row.algorithm)).second) << "listed twice";
    EXPECT_NE(row.algorithm.strategy, Strategy::kDefault);
    EXPECT_EQ(row.algorithm.items_per_thread, 0);
    EXPECT_FALSE(row.algorithm.padding);
    EXPECT_EQ(row.has_items_per_thread, TakesItemsPerThread(row.algorithm.tile_scan));
    EXPECT_EQ(row.has_padding, TakesPadding(row.algorithm.tile_scan));
    for (const std::string_view text : {row.work, row.depth, row.traffic, row.launches, row.source}) {
      EXPECT_FALSE(text.empty());
    }
    Algorithm expected = row.algorithm;
    if (row.has_items_per_thread) expected.items_per_thread = 1;
    EXPECT_EQ(Require(device().Resolve(row.primitive, row.algorithm)), expected);
    EXPECT_EQ(Require(device().Resolve(row.primitive, expected)), expected);
    if (row.has_items_per_thread) expected.items_per_thread = 4;
    expected.padding = row.has_padding;
    EXPECT_EQ(Require(device().Resolve(row.primitive, expected)), expected);
  }
}

// Everything below is enqueued before the lane is first synchronized, through pinned memory.
TEST_P(LaneTest, WorkRunsInOrder) {
  const size_t size = LargeSize();
  const Buffer h_in = Require(device().AllocatePinned(size * sizeof(int32_t)));
  const Buffer h_out = Require(device().AllocatePinned(size * sizeof(int32_t)));
  const Buffer h_results = Require(device().AllocatePinned(sizeof(ReduceState) + sizeof(uint64_t)));
  auto* const in = reinterpret_cast<int32_t*>(h_in.data());
  std::fill_n(in, size, 1);
  const Buffer d_x = Require(lane().Allocate(size * sizeof(int32_t)));
  const Buffer d_results = Require(lane().Allocate(sizeof(ReduceState) + sizeof(uint64_t)));
  auto* const d_count = reinterpret_cast<uint64_t*>(d_results.data() + sizeof(ReduceState));

  Require(lane().CopyToDevice(d_x.data(), in, size * sizeof(int32_t)));
  ScanArgs scan;
  scan.in = scan.out = d_x.data();
  scan.num_items = size;
  Require(lane().Scan(scan));  // 1, 2, 3, ...
  ReduceArgs reduce;
  reduce.op = Op::kMax;
  reduce.in = d_x.data();
  reduce.num_items = size;
  reduce.init = {Neutral(Op::kMax, DType::kI32), ReduceState::kNothing};
  reduce.state_out = reinterpret_cast<ReduceState*>(d_results.data());
  Require(lane().Reduce(reduce));
  CompactArgs compact;
  compact.comparison = Comparison::kLessEqual;
  compact.value = Value::Of(int32_t{1000});
  compact.in = d_x.data();
  compact.num_items = size;
  compact.count = d_count;
  Require(lane().Compact(compact));
  Require(lane().CopyToHost(h_results.data(), d_results.data(), h_results.size_bytes()));
  scan.reverse = true;
  scan.op = Op::kMin;
  scan.init = Neutral(Op::kMin, DType::kI32);
  Require(lane().Scan(scan));  // Leaves them as they are: they rise.
  Require(lane().CopyToHost(h_out.data(), d_x.data(), size * sizeof(int32_t)));
  Require(lane().Synchronize());

  const auto* state = reinterpret_cast<const ReduceState*>(h_results.data());
  EXPECT_EQ(state->value.As<int32_t>(), static_cast<int32_t>(size));
  EXPECT_EQ(state->position, size);
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(h_results.data() + sizeof(ReduceState)), 1000u);
  const auto* out = reinterpret_cast<const int32_t*>(h_out.data());
  for (size_t i = 0; i < size; ++i) ASSERT_EQ(out[i], static_cast<int32_t>(i + 1)) << i;
}

TEST_P(LaneTest, OneLaneUsesWhatAnotherMade) {
  const std::unique_ptr<Lane> other = Require(device().CreateLane());
  DeviceArray<int32_t> d_x(*other, std::vector<int32_t>(5000, 2));
  ScanArgs args;
  args.in = args.out = d_x.data();
  args.num_items = 5000;
  Require(other->Scan(args));
  Require(other->Synchronize());
  Require(lane().Scan(args));
  Require(lane().Synchronize());
  std::vector<int32_t> got;
  ASSERT_TRUE(d_x.Read(&got));
  for (int32_t i = 0; i < 5000; ++i) ASSERT_EQ(got[i], (i + 1) * (i + 2));
}

TEST_P(LaneTest, TimesAndCountsSinceLastAsked) {
  Require(lane().Synchronize());
  lane().TakeStageTimes();
  constexpr uint64_t kItems = 4000;
  DeviceArray<int32_t> d_x(lane(), std::vector<int32_t>(kItems, 1));
  ScanArgs args;
  args.in = args.out = d_x.data();
  args.num_items = kItems;
  Require(lane().Scan(args));
  Require(lane().Synchronize());
  const StageTimes once = lane().TakeStageTimes();
  EXPECT_GE(once.launches, 1u);
  EXPECT_EQ(once.num_bytes, 2 * kItems * sizeof(int32_t));
  ASSERT_TRUE(once.kernel_ns.has_value());
  EXPECT_GT(*once.kernel_ns, 0);
  EXPECT_EQ(lane().TakeStageTimes().launches, 0u) << "taken already";

  Require(lane().Scan(args));
  Require(lane().Scan(args));
  Require(lane().Synchronize());
  const StageTimes twice = lane().TakeStageTimes();
  EXPECT_EQ(twice.launches, 2 * once.launches);
  EXPECT_EQ(twice.num_bytes, 2 * once.num_bytes);

  auto d_wide = DeviceArray<int64_t>::Poisoned(lane(), kItems);
  args.out_dtype = DType::kI64;
  args.out = d_wide.data();
  Require(lane().Synchronize());
  lane().TakeStageTimes();
  Require(lane().Scan(args));
  Require(lane().Synchronize());
  EXPECT_EQ(lane().TakeStageTimes().num_bytes, kItems * (sizeof(int32_t) + sizeof(int64_t)));
}

TEST_P(LaneTest, TimesAndCountsInParts) {
  Require(lane().Synchronize());
  lane().TakeStageTimes();
  constexpr uint64_t kItems = 4000;
  DeviceArray<int32_t> d_x(lane(), std::vector<int32_t>(kItems, 1));
  ScanArgs args;
  args.in = args.out = d_x.data();
  Require(lane().Synchronize());
  lane().TakeStageTimes();
  for (uint64_t part = 1; part <= 100; ++part) {  // More than a card's clock has pairs for.
    args.num_items = part * 40;
    Require(lane().Scan(args));
    lane().BeginPart();
  }
  Require(lane().Synchronize());
  const std::vector<StageTimes> parts = lane().TakeParts();
  ASSERT_EQ(parts.size(), 101u);
  for (uint64_t part = 1; part <= 100; ++part) {
    SCOPED_TRACE(part);
    EXPECT_GE(parts[part - 1].launches, 1u);
    EXPECT_EQ(parts[part - 1].num_bytes, 2 * part * 40 * sizeof(int32_t));
    ASSERT_TRUE(parts[part - 1].kernel_ns.has_value());
    EXPECT_GT(*parts[part - 1].kernel_ns, 0);
  }
  EXPECT_EQ(parts.back().launches, 0u);
  EXPECT_FALSE(parts.back().kernel_ns.has_value());
  EXPECT_EQ(lane().TakeParts().size(), 1u) << "taken already";

  Require(lane().Scan(args));
  lane().BeginPart();
  Require(lane().Scan(args));
  Require(lane().Synchronize());
  EXPECT_EQ(lane().TakeStageTimes().num_bytes, 2 * 2 * kItems * sizeof(int32_t)) << "all parts together";
}

// What CUB launches, as its sources say.
TEST_P(LaneTest, LaunchesOfCubAreCounted) {
  if (!device().Resolve(Primitive::kScan, {Strategy::kCub}).ok()) GTEST_SKIP() << "cub is served on CUDA only";
  DeviceArray<int64_t> d_x(lane(), std::vector<int64_t>(200000, 1));
  auto d_carry = DeviceArray<int64_t>::Poisoned(lane(), 1);
  auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
  auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
  const auto launches = [&] {
    Require(lane().Synchronize());
    return lane().TakeStageTimes().launches;
  };
  launches();
  ScanArgs scan;
  scan.dtype = DType::kI64;
  scan.algorithm = {Strategy::kCub};
  scan.in = scan.out = d_x.data();
  Require(lane().Scan(scan));
  EXPECT_EQ(launches(), 0u) << "of nothing";
  scan.num_items = 200000;
  Require(lane().Scan(scan));
  EXPECT_EQ(launches(), 2u);
  scan.carry_out = d_carry.data();
  Require(lane().Scan(scan));
  EXPECT_EQ(launches(), 3u);
  scan.kind = ScanKind::kExclusive;
  Require(lane().Scan(scan));
  EXPECT_EQ(launches(), 4u);
  ReduceArgs reduce;
  reduce.dtype = DType::kI64;
  reduce.algorithm = {Strategy::kCub};
  reduce.in = d_x.data();
  reduce.state_out = d_state.data();
  for (const Op op : {Op::kSum, Op::kMin}) {
    reduce.op = op;
    for (const uint64_t num_items : {0, 1, 100, 200000}) {
      reduce.num_items = num_items;
      Require(lane().Reduce(reduce));
      EXPECT_EQ(launches(), num_items == 200000 ? 2u : 1u) << Name(op) << " of " << num_items;
    }
  }
  CompactArgs compact;
  compact.dtype = DType::kI64;
  compact.algorithm = {Strategy::kCub};
  compact.in = d_x.data();
  compact.count = d_count.data();
  Require(lane().Compact(compact));
  EXPECT_EQ(launches(), 1u) << "of nothing";
  compact.num_items = 200000;
  Require(lane().Compact(compact));
  EXPECT_EQ(launches(), 2u);
}

PREFIXD_ON_EVERY_DEVICE(LaneTest, EveryDevice);

// ---- Lanes at once -------------------------------------------------------------------------------------------------
using LanesTest = DeviceTest<DeviceParam>;

// What one thread does on its own lane: random work, every answer checked. Returns the first mistake.
std::string Hammer(Lane& lane, uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < 40; ++round) {
    const size_t size = random.Below(SmallSizesOnly() ? 5000 : random.OneIn(4) ? 200000 : 20000);
    const auto in = MakeInput<uint64_t>(Op::kSum, Data::kRandom, size, random);
    DeviceArray<uint64_t> d_in(lane, in);
    auto d_out = DeviceArray<uint64_t>::Poisoned(lane, size);
    auto d_state = DeviceArray<ReduceState>::Poisoned(lane, 1);
    auto d_values = DeviceArray<uint64_t>::Poisoned(lane, size);
    auto d_count = DeviceArray<uint64_t>::Poisoned(lane, 1);
    ScanArgs scan;
    scan.dtype = DType::kU64;
    scan.in = d_in.data();
    scan.out = d_out.data();
    scan.num_items = size;
    Require(lane.Scan(scan));
    ReduceArgs reduce;
    reduce.dtype = DType::kU64;
    reduce.op = Op::kMin;
    reduce.in = d_in.data();
    reduce.num_items = size;
    reduce.init = {Neutral(Op::kMin, DType::kU64), ReduceState::kNothing};
    reduce.state_out = d_state.data();
    Require(lane.Reduce(reduce));
    CompactArgs compact;
    compact.dtype = DType::kU64;
    compact.value = Value::Of(random.Next());
    compact.in = d_in.data();
    compact.num_items = size;
    compact.values = d_values.data();
    compact.count = d_count.data();
    Require(lane.Compact(compact));

    std::vector<uint64_t> got;
    if (auto guards = d_out.Read(&got); !guards) return guards.message();
    const auto want = Scan(Op::kSum, ScanKind::kInclusive, false, in, Accumulated<uint64_t>{0}, true).out;
    if (auto admitted = AllAdmitted("scan", got, want); !admitted) return admitted.message();
    std::vector<ReduceState> state;
    if (auto guards = d_state.Read(&state); !guards) return guards.message();
    const auto want_state = Reduce(Op::kMin, in, 0, Accumulated<uint64_t>{~uint64_t{0}}, ReduceState::kNothing, true);
    if (state[0].value.bits != want_state.value.value || state[0].position != want_state.position) return "reduce";
    std::vector<uint64_t> kept, count;
    std::ranges::copy_if(in, std::back_inserter(kept), [&](uint64_t x) { return x < compact.value.bits; });
    if (auto guards = d_values.Read(&got); !guards) return guards.message();
    if (auto guards = d_count.Read(&count); !guards) return guards.message();
    if (count[0] != kept.size() || !std::equal(kept.begin(), kept.end(), got.begin())) return "compact";
  }
  return "";
}

TEST_P(LanesTest, RunAtOnceFromSeveralThreads) {
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<Lane>> lanes(kThreads);
  std::vector<std::string> mistakes(kThreads, "did not finish");
  std::vector<std::thread> threads;
  for (auto& lane : lanes) lane = Require(device().CreateLane());
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i, seed = random().Next()] {
      try {
        mistakes[i] = Hammer(*lanes[i], seed);
      } catch (const std::exception& e) {
        mistakes[i] = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& mistake : mistakes) EXPECT_EQ(mistake, "");
}

PREFIXD_ON_EVERY_DEVICE(LanesTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
