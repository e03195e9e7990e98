// Segments: batches whose arrays stand one by one and differ in length. Each has the bits that it would have alone.
#include <algorithm>
#include <cstring>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

using SegmentScanTest = DeviceTest<OpParam>;
using SegmentReduceTest = DeviceTest<OpParam>;
using SegmentErrorTest = DeviceTest<DeviceParam>;
using SegmentPlacesTest = DeviceTest<DeviceParam>;

// Lengths around a run, a leaf, a tile and a group, many of nothing, and one that is most of it.
std::vector<uint64_t> RandomOffsets(Random& random, uint64_t num_segments, bool has_long_one) {
  constexpr uint64_t kLengths[] = {0, 0, 0, 1, 2, 3, 4, 5, 31, 127, 128, 129, 250, 300, 1000, 4095, 4096, 4097};
  const uint64_t long_one = has_long_one ? random.Below(num_segments) : num_segments;
  std::vector<uint64_t> offsets = {0};
  for (uint64_t segment = 0; segment < num_segments; ++segment) {
    const uint64_t length = random.OneIn(2) ? random.Below(300) : kLengths[random.Below(std::size(kLengths))];
    offsets.push_back(offsets.back() + (segment == long_one ? 140'000 + length : length));
  }
  return offsets;
}

// On a card there may be kernels for short segments, long ones, and where they are.
uint64_t MaxLaunches(const Device& device) { return device.info().direct_bytes == DeviceInfo::kHostMemory ? 1 : 3; }

struct Segmentation {
  uint64_t num_segments;
  bool has_long_one;
};
std::vector<Segmentation> Segmentations() {
  std::vector<Segmentation> all = {{1, false}, {1, true}, {2, false}, {5, true}, {33, false}, {300, false}};
  if (!SmallSizesOnly()) all.insert(all.end(), {{1'000, true}, {3'000, false}});
  return all;
}

TEST_P(SegmentScanTest, AsAlone) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using T = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    for (const auto& [num_segments, has_long_one] : Segmentations()) {
      if (!random().OneIn(2)) continue;  // There are many types and operators.
      const std::vector<uint64_t> offsets = RandomOffsets(random(), num_segments, has_long_one);
      const Data data = random().OneIn(2) ? Data::kSpecial : Data::kRandom;
      auto items = MakeInput<T>(GetParam().op, data, offsets.back() + 1, random());
      ScanArgs args = {.dtype = GetParam().dtype, .out_dtype = GetParam().out_dtype, .op = GetParam().op};
      if (random().OneIn(2)) args.kind = ScanKind::kExclusive;
      args.reverse = random().OneIn(2);
      args.init = ScanStart(args.op, args.output(), args.kind);
      if (random().OneIn(2)) args.init = Value::Of(static_cast<Out>(items.back()));
      items.pop_back();
      const bool in_place = sizeof(T) == sizeof(Out) && random().OneIn(2);
      SCOPED_TRACE(testing::Message() << num_segments << " segments of " << offsets.back() << " items, "
                                      << Name(args.kind) << (args.reverse ? ", reversed" : "")
                                      << (in_place ? ", in place" : ""));
      DeviceArray<T> d_items(lane(), items, random().OneIn(2) ? 0 : 1);
      DeviceArray<uint64_t> d_offsets(lane(), offsets);
      auto d_alone = DeviceArray<Out>::Poisoned(lane(), items.size());
      auto d_out = DeviceArray<Out>::Poisoned(lane(), items.size(), random().OneIn(2) ? 0 : 1);
      for (uint64_t segment = 0; segment < num_segments; ++segment) {
        args.in = d_items.data() + offsets[segment];
        args.out = d_alone.data() + offsets[segment];
        args.num_items = offsets[segment + 1] - offsets[segment];
        Require(lane().Scan(args));
      }
      std::vector<Out> alone, together;
      ASSERT_TRUE(d_alone.Read(&alone));
      lane().TakeStageTimes();
      args.in = d_items.data();
      args.out = in_place ? static_cast<void*>(d_items.data()) : d_out.data();
      args.num_items = items.size();
      args.num_arrays = num_segments;
      args.offsets = d_offsets.data();
      Require(lane().Scan(args));
      if (in_place) {
        std::vector<T> results;
        ASSERT_TRUE(d_items.Read(&results));
        together.resize(results.size());
        std::memcpy(together.data(), results.data(), results.size() * sizeof(T));
      } else {
        ASSERT_TRUE(d_out.Read(&together));
        ASSERT_TRUE(d_items.IsUntouched());
      }
      ASSERT_TRUE(d_offsets.IsUntouched());
      const StageTimes times = lane().TakeStageTimes();
      if (!items.empty()) {
        EXPECT_GE(times.launches, 1u);
        EXPECT_LE(times.launches, MaxLaunches(device()) + CastLaunches(GetParam()));
        EXPECT_EQ(times.num_bytes, items.size() * (sizeof(T) + sizeof(Out)) + offsets.size() * 8);
      }
      for (uint64_t segment = 0; segment < num_segments; ++segment) {
        for (uint64_t i = offsets[segment]; i < offsets[segment + 1]; ++i) {
          ASSERT_TRUE(SameBits(together[i], alone[i]))
              << "item " << i - offsets[segment] << " of segment " << segment << ", of "
              << offsets[segment + 1] - offsets[segment] << " items from " << offsets[segment] << ", is "
              << Show(together[i]) << ", alone " << Show(alone[i]);
        }
      }
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(SegmentScanTest, EveryOp);

TEST_P(SegmentReduceTest, AsAlone) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using T = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    for (const auto& [num_segments, has_long_one] : Segmentations()) {
      if (!random().OneIn(2)) continue;  // There are many types and operators.
      const std::vector<uint64_t> offsets = RandomOffsets(random(), num_segments, has_long_one);
      SCOPED_TRACE(testing::Message() << num_segments << " segments of " << offsets.back() << " items");
      const Data data = random().OneIn(2) ? Data::kSpecial : Data::kRandom;
      auto items = MakeInput<T>(GetParam().op, data, offsets.back() + 1, random());
      ReduceArgs args = {.dtype = GetParam().dtype, .out_dtype = GetParam().out_dtype, .op = GetParam().op};
      args.init.value = Neutral(args.op, args.StateDType());
      if (random().OneIn(2)) args.init = {Value::Of(static_cast<Accumulator<Out>>(items.back())), 0};
      items.pop_back();
      DeviceArray<T> d_items(lane(), items, random().OneIn(2) ? 0 : 1);
      DeviceArray<uint64_t> d_offsets(lane(), offsets);
      auto d_states = DeviceArray<ReduceState>::Poisoned(lane(), num_segments);
      auto d_values = DeviceArray<Out>::Poisoned(lane(), num_segments, random().OneIn(2) ? 0 : 1);
      for (uint64_t segment = 0; segment < num_segments; ++segment) {
        args.in = d_items.data() + offsets[segment];
        args.num_items = offsets[segment + 1] - offsets[segment];
        args.state_out = d_states.data() + segment;
        Require(lane().Reduce(args));
      }
      Require(lane().Synchronize());
      lane().TakeStageTimes();
      args.state_out = nullptr;
      args.in = d_items.data();
      args.num_items = offsets.back();
      args.num_arrays = num_segments;
      args.offsets = d_offsets.data();
      args.values = d_values.data();
      Require(lane().Reduce(args));
      std::vector<Out> values;
      ASSERT_TRUE(d_values.Read(&values));
      const StageTimes times = lane().TakeStageTimes();
      EXPECT_GE(times.launches, 1u);
      EXPECT_LE(times.launches, MaxLaunches(device()));
      EXPECT_EQ(times.num_bytes, items.size() * sizeof(T) + num_segments * sizeof(Out) + offsets.size() * 8);
      std::vector<ReduceState> alone;
      ASSERT_TRUE(d_states.Read(&alone));
      ASSERT_TRUE(d_items.IsUntouched());
      ASSERT_TRUE(d_offsets.IsUntouched());
      for (uint64_t segment = 0; segment < num_segments; ++segment) {
        const bool is_empty = offsets[segment] == offsets[segment + 1];
        const Value value =
            is_empty ? EmptyValue(args) : ResultOf(args.output(), args.op, args.precision, alone[segment]);
        const Out want = value.template As<Out>();
        ASSERT_TRUE(SameBits(values[segment], want))
            << "segment " << segment << " of " << offsets[segment + 1] - offsets[segment] << " items from "
            << offsets[segment] << " is " << Show(values[segment]) << ", alone " << Show(want);
      }
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(SegmentReduceTest, EveryOp);

// Thousands of nothing in a row, between segments of more than a tile.
TEST_P(SegmentPlacesTest, ManyOfNothing) {
  std::vector<uint64_t> offsets = RandomOffsets(random(), 200, /*has_long_one=*/true);
  constexpr uint64_t kEmpty = 20'000;
  const uint64_t at = random().Below(offsets.size());
  offsets.insert(offsets.begin() + static_cast<int64_t>(at), kEmpty, offsets[at]);
  for (int i = 0; i < 200; ++i) offsets.push_back(offsets.back() + random().Below(16'384));
  const auto items = MakeInput<uint8_t>(Op::kMax, Data::kRandom, offsets.back(), random());
  DeviceArray<uint8_t> d_items(lane(), items);
  DeviceArray<uint64_t> d_offsets(lane(), offsets);
  auto d_out = DeviceArray<uint8_t>::Poisoned(lane(), items.size());
  ScanArgs args = {.dtype = DType::kU8, .op = Op::kMax, .in = d_items.data(), .out = d_out.data()};
  args.num_items = items.size();
  args.num_arrays = offsets.size() - 1;
  args.offsets = d_offsets.data();
  args.init = ScanStart(args.op, args.output(), args.kind);
  Require(lane().Scan(args));
  std::vector<uint8_t> out;
  ASSERT_TRUE(d_out.Read(&out));
  for (uint64_t segment = 0; segment + 1 < offsets.size(); ++segment) {
    uint8_t want = 0;
    for (uint64_t i = offsets[segment]; i < offsets[segment + 1]; ++i) {
      want = std::max(want, items[i]);
      ASSERT_EQ(out[i], want) << "item " << i << " of segment " << segment;
    }
  }
}

TEST_P(SegmentErrorTest, SegmentsHaveNoCarries) {
  DeviceArray<float> d_x(lane(), std::vector<float>(8));
  DeviceArray<uint64_t> d_offsets(lane(), std::vector<uint64_t>{0, 3, 8});
  ScanArgs args = {.dtype = DType::kF32, .in = d_x.data(), .out = d_x.data(), .num_items = 8, .num_arrays = 2};
  args.offsets = d_offsets.data();
  args.order = BatchOrder::kInterleaved;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(args)));
  args.order = BatchOrder::kOneByOne;
  args.carry_out = d_x.data();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(args)));
  args.carry_out = nullptr;
  args.num_arrays = 1;
  args.algorithm = {Strategy::kSequential};
  EXPECT_TRUE(absl::IsUnimplemented(lane().Scan(args)));
}

TEST_P(SegmentErrorTest, SegmentsHaveValues) {
  DeviceArray<float> d_x(lane(), std::vector<float>(8));
  DeviceArray<uint64_t> d_offsets(lane(), std::vector<uint64_t>{0, 3, 8});
  auto d_states = DeviceArray<ReduceState>::Poisoned(lane(), 2);
  ReduceArgs args = {.dtype = DType::kF32, .in = d_x.data(), .num_items = 8, .num_arrays = 2};
  args.offsets = d_offsets.data();
  args.state_out = d_states.data();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(args)));
  args.state_out = nullptr;
  args.values = d_states.data();
  args.order = BatchOrder::kInterleaved;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(args)));
}
PREFIXD_ON_EVERY_DEVICE(SegmentErrorTest, EveryDevice);
PREFIXD_ON_EVERY_DEVICE(SegmentPlacesTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
