// Batches: every array's result has the bits that it would have alone, and nothing is written outside the arrays.
#include <algorithm>
#include <type_traits>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

using BatchTest = DeviceTest<OpParam>;
using BatchCompactTest = DeviceTest<DTypeParam>;
using LongRowsTest = DeviceTest<DeviceParam>;

// One array, a few, many; of a few sizes, over a tile and over several, odd ones among them.
struct Shape {
  uint64_t num_arrays;
  uint64_t num_items;
};
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes = {{1, 100},  {2, 0},     {3, 1},      {300, 5}, {40, 127},
                               {33, 128}, {17, 1023}, {256, 1024}, {3, 5000}};
  if (!SmallSizesOnly()) shapes.push_back({3, 140'001});
  return shapes;
}
std::ostream& operator<<(std::ostream& os, const Shape& shape) {
  return os << shape.num_arrays << " arrays of " << shape.num_items;
}

TEST_P(BatchTest, ScanAsAlone) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using T = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    for (const Shape shape : Shapes()) {
      if (!Takes(0)) continue;
      for (const auto kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
        for (const bool reverse : {false, true}) {
          SCOPED_TRACE(testing::Message() << shape << " " << Name(kind) << (reverse ? " reverse" : ""));
          const auto in = MakeInput<T>(GetParam().op, Data::kRandom, shape.num_arrays * shape.num_items + 1, random());
          DeviceArray<T> d_in(lane(), in);
          auto d_together = DeviceArray<Out>::Poisoned(lane(), in.size() - 1);
          auto d_alone = DeviceArray<Out>::Poisoned(lane(), in.size() - 1);
          ScanArgs args;
          args.dtype = GetParam().dtype;
          args.out_dtype = GetParam().out_dtype;
          args.op = GetParam().op;
          args.kind = kind;
          args.reverse = reverse;
          args.num_items = shape.num_items;
          args.init = Value::Of(static_cast<Out>(in.back()));
          for (uint64_t a = 0; a < shape.num_arrays; ++a) {
            args.in = d_in.data() + a * shape.num_items;
            args.out = d_alone.data() + a * shape.num_items;
            Require(lane().Scan(args));
          }
          args.in = d_in.data();
          args.out = d_together.data();
          args.num_arrays = shape.num_arrays;
          Require(lane().Synchronize());
          lane().TakeStageTimes();
          Require(lane().Scan(args));
          std::vector<Out> together, alone;
          ASSERT_TRUE(d_together.Read(&together));
          EXPECT_LE(lane().TakeStageTimes().launches, 1u + CastLaunches(GetParam()));
          ASSERT_TRUE(d_alone.Read(&alone));
          for (size_t i = 0; i < alone.size(); ++i) ASSERT_TRUE(SameBits(together[i], alone[i])) << "element " << i;
        }
      }
    }
  });
}

// So long that some devices scan each by itself: beyond 16 MiB, and beyond 32.
TEST_P(LongRowsTest, ScanAsAlone) {
  if (SmallSizesOnly()) GTEST_SKIP() << "arrays of 100 MiB, and small sizes were asked for";
  const auto check = [&](auto tag, Op op, uint64_t row_mebibytes, bool reverse) {
    using T = typename decltype(tag)::type;
    constexpr uint64_t kNumRows = 3;
    ScanArgs args = {.dtype = kDTypeOf<T>, .op = op, .reverse = reverse};
    args.kind = random().OneIn(2) ? ScanKind::kInclusive : ScanKind::kExclusive;
    args.num_items = (row_mebibytes << 20) / sizeof(T) + random().Below(3);
    args.init = ScanStart(op, args.dtype, ScanKind::kInclusive);
    SCOPED_TRACE(testing::Message() << args.num_items << " " << Name(args.dtype) << " by " << Name(op)
                                    << (reverse ? " reverse" : "") << " " << Name(args.kind));
    const bool in_place = random().OneIn(2);
    DeviceArray<T> d_in(lane(), MakeInput<T>(op, Data::kRandom, kNumRows * args.num_items, random()));
    auto d_together = DeviceArray<T>::Poisoned(lane(), kNumRows * args.num_items);
    auto d_alone = DeviceArray<T>::Poisoned(lane(), kNumRows * args.num_items);
    for (uint64_t row = 0; row < kNumRows; ++row) {
      args.in = d_in.data() + row * args.num_items;
      args.out = d_alone.data() + row * args.num_items;
      Require(lane().Scan(args));
    }
    args.in = d_in.data();
    args.out = in_place ? d_in.data() : d_together.data();
    args.num_arrays = kNumRows;
    Require(lane().Synchronize());
    lane().TakeStageTimes();
    Require(lane().Scan(args));
    std::vector<T> together, alone;
    ASSERT_TRUE((in_place ? d_in : d_together).Read(&together));
    EXPECT_LE(lane().TakeStageTimes().launches, kNumRows);
    ASSERT_TRUE(d_alone.Read(&alone));
    for (size_t i = 0; i < alone.size(); ++i) ASSERT_TRUE(SameBits(together[i], alone[i])) << "element " << i;
  };
  for (const bool reverse : {false, true}) {
    check(std::type_identity<float>(), Op::kSum, 33, reverse);
    check(std::type_identity<double>(), Op::kSum, 17, reverse);
    check(std::type_identity<uint8_t>(), Op::kMax, 17, reverse);
  }
}
PREFIXD_ON_EVERY_DEVICE(LongRowsTest, EveryDevice);

TEST_P(BatchTest, ReduceAsAlone) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using T = typename decltype(in_tag)::type;
    using Result = Accumulator<typename decltype(out_tag)::type>;
    for (const Shape shape : Shapes()) {
      if (!Takes(0)) continue;
      SCOPED_TRACE(testing::Message() << shape);
      const auto in = MakeInput<T>(GetParam().op, Data::kSpecial, shape.num_arrays * shape.num_items, random());
      DeviceArray<T> d_in(lane(), in);
      auto d_together = DeviceArray<ReduceState>::Poisoned(lane(), shape.num_arrays);
      auto d_alone = DeviceArray<ReduceState>::Poisoned(lane(), shape.num_arrays);
      ReduceArgs args;
      args.dtype = GetParam().dtype;
      args.out_dtype = GetParam().out_dtype;
      args.op = GetParam().op;
      args.num_items = shape.num_items;
      args.first_item = 7;
      args.init = {Neutral(args.op, args.StateDType()), ReduceState::kNothing};
      for (uint64_t a = 0; a < shape.num_arrays; ++a) {
        args.in = d_in.data() + a * shape.num_items;
        args.state_out = d_alone.data() + a;
        Require(lane().Reduce(args));
      }
      args.in = d_in.data();
      args.state_out = d_together.data();
      args.num_arrays = shape.num_arrays;
      Require(lane().Reduce(args));
      std::vector<ReduceState> together, alone;
      ASSERT_TRUE(d_together.Read(&together));
      ASSERT_TRUE(d_alone.Read(&alone));
      for (size_t a = 0; a < alone.size(); ++a) {
        ASSERT_TRUE(SameBits(together[a].value.template As<Result>(), alone[a].value.template As<Result>()))
            << "array " << a;
        ASSERT_EQ(together[a].position, alone[a].position) << "array " << a;
        ASSERT_EQ(Value::Of(together[a].second), Value::Of(alone[a].second)) << "array " << a;
      }
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(BatchTest, EveryOp);

TEST_P(BatchCompactTest, AsAlone) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Shape shape : Shapes()) {
      for (const auto selector : {Selector::kPredicate, Selector::kByteMask, Selector::kBitMask}) {
        SCOPED_TRACE(testing::Message() << shape << ", selector " << static_cast<int>(selector));
        const size_t size = shape.num_arrays * shape.num_items;
        const auto in = MakeInput<T>(Op::kMax, Data::kRandom, size, random());
        CompactArgs args;
        args.dtype = GetParam().dtype;
        args.selector = selector;
        args.comparison = Comparison::kGreater;
        args.value = Value::Of(in.empty() ? T{0} : in[in.size() / 2]);
        args.num_items = shape.num_items;
        const uint64_t mask_bytes = MaskBytes(args);
        std::vector<uint8_t> mask(shape.num_arrays * mask_bytes);
        for (uint8_t& byte : mask) byte = static_cast<uint8_t>(random().OneIn(2) ? random().Next() : 0);
        DeviceArray<T> d_in(lane(), in);
        DeviceArray<uint8_t> d_mask(lane(), mask);
        auto d_values = DeviceArray<T>::Poisoned(lane(), size);
        auto d_indices = DeviceArray<uint32_t>::Poisoned(lane(), size);
        auto d_counts = DeviceArray<uint64_t>::Poisoned(lane(), shape.num_arrays);
        auto d_values_alone = DeviceArray<T>::Poisoned(lane(), size);
        auto d_indices_alone = DeviceArray<uint32_t>::Poisoned(lane(), size);
        auto d_counts_alone = DeviceArray<uint64_t>::Poisoned(lane(), shape.num_arrays);
        args.index_dtype = DType::kU32;
        for (uint64_t a = 0; a < shape.num_arrays; ++a) {
          args.in = d_in.data() + a * shape.num_items;
          args.mask = d_mask.data() + a * mask_bytes;
          args.values = d_values_alone.data() + a * shape.num_items;
          args.indices = d_indices_alone.data() + a * shape.num_items;
          args.count = d_counts_alone.data() + a;
          Require(lane().Compact(args));
        }
        Require(lane().Synchronize());
        const uint64_t bytes_alone = lane().TakeStageTimes().num_bytes;
        args.in = d_in.data();
        args.mask = d_mask.data();
        args.values = d_values.data();
        args.indices = d_indices.data();
        args.count = d_counts.data();
        args.num_arrays = shape.num_arrays;
        Require(lane().Compact(args));
        std::vector<T> values, values_alone;
        std::vector<uint32_t> indices, indices_alone;
        std::vector<uint64_t> counts, counts_alone;
        ASSERT_TRUE(d_values.Read(&values));
        EXPECT_EQ(lane().TakeStageTimes().num_bytes, bytes_alone);
        ASSERT_TRUE(d_values_alone.Read(&values_alone));
        ASSERT_TRUE(d_indices.Read(&indices));
        ASSERT_TRUE(d_indices_alone.Read(&indices_alone));
        ASSERT_TRUE(d_counts.Read(&counts));
        ASSERT_TRUE(d_counts_alone.Read(&counts_alone));
        ASSERT_EQ(counts, counts_alone);
        ASSERT_EQ(indices, indices_alone);
        for (size_t i = 0; i < size; ++i) ASSERT_TRUE(SameBits(values[i], values_alone[i])) << "element " << i;
      }
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(BatchCompactTest, EveryDType);

// ---- Bad input -----------------------------------------------------------------------------------------------------
using BatchErrorTest = DeviceTest<DeviceParam>;

TEST_P(BatchErrorTest, CountsAndCarries) {
  DeviceArray<float> d_x(lane(), std::vector<float>(8));
  ScanArgs args;
  args.dtype = DType::kF32;
  args.in = args.out = d_x.data();
  args.num_items = 2;
  args.num_arrays = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(args)));
  args.num_arrays = uint64_t{1} << 31;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(args)));
  args.num_arrays = 4;
  args.num_items = uint64_t{1} << 60;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(args)));
  args.num_items = 2;
  args.carry_out = d_x.data();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(args)));
  args.carry_out = nullptr;
  EXPECT_TRUE(lane().Scan(args).ok());
  EXPECT_TRUE(lane().Synchronize().ok());
}
PREFIXD_ON_EVERY_DEVICE(BatchErrorTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
