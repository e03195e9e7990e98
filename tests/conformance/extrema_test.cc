// Scans by min and max that also say where each extremum stands: of one array, in parts, of rows, columns and segments.
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

// Extrema to the elements' type.
std::vector<OpParam> EveryExtremum(const std::string& device) {
  std::vector<OpParam> params = EveryOp(device);
  std::erase_if(params, [](const OpParam& param) {
    return param.dtype != param.out_dtype || (param.op != Op::kMin && param.op != Op::kMax);
  });
  return params;
}

template <class T>
struct Extrema {
  std::vector<T> values;
  std::vector<uint64_t> indices;
};

// What is expected of one array, one after the other. The indices begin at first_item.
template <class T>
Extrema<T> ExtremaOf(const std::vector<T>& items, Op op, bool reverse, bool last_index, uint64_t first_item = 0) {
  Extrema<T> extrema = {std::vector<T>(items.size()), std::vector<uint64_t>(items.size())};
  std::optional<size_t> best;
  const auto is_better = [&](size_t a, size_t b) {
    return IsBetter<Accumulator<T>>(op, static_cast<Accumulator<T>>(items[a]), static_cast<Accumulator<T>>(items[b]));
  };
  for (size_t step = 0; step < items.size(); ++step) {
    const size_t i = reverse ? items.size() - 1 - step : step;
    const bool is_same = best && !is_better(i, *best) && !is_better(*best, i);
    if (!best || is_better(i, *best) || (is_same && last_index == (i > *best))) best = i;
    extrema.values[i] = Canonical(items[*best]);
    extrema.indices[i] = first_item + *best;
  }
  return extrema;
}

class ExtremaTest : public DeviceTest<OpParam> {
 protected:
  // Many of them are equal, half of the time.
  template <class T>
  std::vector<T> MakeItems(size_t num_items) {
    auto items = MakeInput<T>(GetParam().op, static_cast<Data>(random().Below(kNumData)), num_items, random());
    if (num_items == 0 || random().OneIn(2)) return items;
    const std::vector<T> few(items.begin(), items.begin() + std::min<size_t>(num_items, 1 + random().Below(5)));
    for (T& item : items) item = few[random().Below(few.size())];
    return items;
  }

  // The extremum changes from time to time all along, and many are equal to it.
  template <class T>
  std::vector<T> MakeClimbingItems(size_t num_items) {
    std::vector<T> levels = MakeInput<T>(GetParam().op, static_cast<Data>(random().Below(kNumData)), 100, random());
    std::sort(levels.begin(), levels.end(), [&](T a, T b) {
      return IsBetter<Accumulator<T>>(GetParam().op, static_cast<Accumulator<T>>(b), static_cast<Accumulator<T>>(a));
    });
    std::vector<T> items(num_items);
    for (size_t i = 0; i < num_items; ++i) items[i] = levels[random().Below(1 + i * levels.size() / num_items)];
    return items;
  }

  // How the indices are asked for; the rest of the arguments is the caller's.
  ScanArgs MakeArgs() {
    ScanArgs args = {.dtype = GetParam().dtype, .op = GetParam().op};
    args.init = Neutral(args.op, args.dtype);
    args.reverse = random().OneIn(2);
    args.last_index = random().OneIn(2);
    args.index_dtype = random().OneIn(2) ? DType::kU32 : DType::kU64;
    return args;
  }

  // Scans what is in `items`. args: but for the arrays.
  template <class T>
  Extrema<T> Scan(ScanArgs args, const std::vector<T>& items) {
    return args.index_dtype == DType::kU32 ? ScanTo<T, uint32_t>(args, items) : ScanTo<T, uint64_t>(args, items);
  }

  // Scans the parts between cuts, one after the other. The first part's indices begin at args.first_item.
  template <class T>
  Extrema<T> ScanParts(ScanArgs args, const std::vector<T>& items, std::vector<uint64_t> cuts) {
    cuts.push_back(0);
    cuts.push_back(items.size());
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const uint64_t first_item = args.first_item;
    Extrema<T> all;
    DeviceArray<uint64_t> d_carries(lane(), std::vector<uint64_t>(4, ~uint64_t{0}));
    int carry = 0;  // Which of the two was written last.
    for (size_t part = 0; part + 1 < cuts.size(); ++part) {
      args.first_item = first_item + cuts[part];
      args.num_items = cuts[part + 1] - cuts[part];
      args.carry_in = part == 0 ? nullptr : d_carries.data() + carry * 2;
      carry = random().OneIn(2) ? carry : 1 - carry;
      args.carry_out = d_carries.data() + carry * 2;
      const auto extrema = Scan(args, std::vector<T>(items.begin() + cuts[part], items.begin() + cuts[part + 1]));
      all.values.insert(all.values.end(), extrema.values.begin(), extrema.values.end());
      all.indices.insert(all.indices.end(), extrema.indices.begin(), extrema.indices.end());
      std::vector<uint64_t> words;
      EXPECT_TRUE(d_carries.Read(&words));
      EXPECT_EQ(words[carry * 2], Value::Of(static_cast<Accumulator<T>>(all.values.back())).bits);
      EXPECT_EQ(words[carry * 2 + 1], all.indices.back());
    }
    return all;
  }

  bool aligned_ = false;  // Whether arrays begin where memory is aligned for every kernel.

 private:
  template <class T, class Index>
  Extrema<T> ScanTo(ScanArgs args, const std::vector<T>& items) {
    const auto offset = [&] { return aligned_ || random().OneIn(2) ? 0 : 1 + random().Below(3); };
    DeviceArray<T> d_items(lane(), items, offset());
    auto d_values = DeviceArray<T>::Poisoned(lane(), items.size(), offset());
    auto d_indices = DeviceArray<Index>::Poisoned(lane(), items.size(), offset());
    args.in = d_items.data();
    args.out = d_values.data();
    args.indices = d_indices.data();
    Require(lane().Scan(args));
    Extrema<T> extrema;
    std::vector<Index> indices;
    EXPECT_TRUE(d_values.Read(&extrema.values));
    EXPECT_TRUE(d_indices.Read(&indices));
    EXPECT_TRUE(d_items.IsUntouched());
    extrema.indices.assign(indices.begin(), indices.end());
    return extrema;
  }
};

template <class T>
testing::AssertionResult AreSame(const Extrema<T>& got, const Extrema<T>& want) {
  for (size_t i = 0; i < want.values.size(); ++i) {
    if (SameBits(got.values[i], want.values[i]) && got.indices[i] == want.indices[i]) continue;
    return testing::AssertionFailure() << "item " << i << " of " << want.values.size() << " is " << Show(got.values[i])
                                       << " at " << got.indices[i] << ", expected " << Show(want.values[i]) << " at "
                                       << want.indices[i];
  }
  return testing::AssertionSuccess();
}

std::string Describe(const ScanArgs& args) {
  return StrCat(args.num_arrays, args.order == BatchOrder::kInterleaved ? " columns of " : " arrays of ",
                args.num_items, args.reverse ? " reversed" : "", args.last_index ? ", last" : ", first", ", ",
                Name(args.index_dtype));
}

TEST_P(ExtremaTest, OneArray) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const size_t size : Sizes()) {
      ScanArgs args = MakeArgs();
      if (random().OneIn(2)) args.first_item = random().Below(1'000'000'000);
      if (args.index_dtype == DType::kU64) args.first_item <<= 20;
      args.num_items = size;
      const auto algorithms = AlgorithmsOf(device(), Primitive::kScan, GetParam());
      const Algorithm algorithm = algorithms[random().Below(algorithms.size())];
      if (device().CheckLength(Primitive::kScan, algorithm, size).ok() && random().OneIn(4)) args.algorithm = algorithm;
      SCOPED_TRACE(Describe(args));
      const std::vector<T> items = MakeItems<T>(size);
      ASSERT_TRUE(
          AreSame(Scan(args, items), ExtremaOf(items, args.op, args.reverse, args.last_index, args.first_item)));
    }
  });
}

TEST_P(ExtremaTest, InParts) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ScanArgs args = MakeArgs();
    args.reverse = false;
    const std::vector<T> items = MakeItems<T>(1 + random().Below(SmallSizesOnly() ? 4'000 : 300'000));
    std::vector<uint64_t> cuts;
    for (int i = 0; i < 4; ++i) cuts.push_back(random().Below(items.size()));
    SCOPED_TRACE(Describe(args));
    ASSERT_TRUE(AreSame(ScanParts(args, items, cuts), ExtremaOf(items, args.op, args.reverse, args.last_index)));
  });
}

// Parts that have several groups of tiles, or of two types more than the rings of a large card hold at once.
TEST_P(ExtremaTest, LargeAlignedParts) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    aligned_ = true;
    ScanArgs args = MakeArgs();
    args.reverse = false;
    args.first_item = args.index_dtype == DType::kU32 ? 4'000'000'000 : (uint64_t{1} << 40) - 300'000;
    size_t num_items = LargeSize();
    if (!SmallSizesOnly() && args.op == Op::kMax) {
      if (args.dtype == DType::kF32) num_items = 6'000'017;
      if (args.dtype == DType::kU8) num_items = 11'500'017;
    }
    const std::vector<T> items = MakeClimbingItems<T>(num_items);
    // The second part is whole stages.
    const uint64_t first = num_items / 20 + random().Below(1'000);
    SCOPED_TRACE(Describe(args));
    ASSERT_TRUE(AreSame(ScanParts(args, items, {first, first + num_items / 4 / 8192 * 8192}),
                        ExtremaOf(items, args.op, args.reverse, args.last_index, args.first_item)));
  });
}

TEST_P(ExtremaTest, RowsAndColumns) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    struct Matrix {
      uint64_t num_rows, num_columns;
    };
    for (const auto& [num_rows, num_columns] : {Matrix{0, 3},
                                                {1, 7},
                                                {7, 1},
                                                {3, 4},
                                                {300, 5},
                                                {5, 300},
                                                {33, 130},
                                                {1'030, 3},
                                                {4, 1'100},
                                                {2, 4'500},
                                                {9'000, 4}}) {
      ScanArgs args = MakeArgs();
      const bool down = random().OneIn(2);
      args.order = down ? BatchOrder::kInterleaved : BatchOrder::kOneByOne;
      args.num_items = down ? num_rows : num_columns;
      args.num_arrays = down ? num_columns : num_rows;
      if (args.num_arrays == 0) continue;
      SCOPED_TRACE(Describe(args));
      const std::vector<T> items = MakeItems<T>(num_rows * num_columns);
      Extrema<T> want = {items, std::vector<uint64_t>(items.size())};
      for (uint64_t array = 0; array < args.num_arrays; ++array) {
        const auto place = [&](uint64_t i) { return down ? i * num_columns + array : array * num_columns + i; };
        std::vector<T> alone(args.num_items);
        for (uint64_t i = 0; i < alone.size(); ++i) alone[i] = items[place(i)];
        const auto extrema = ExtremaOf(alone, args.op, args.reverse, args.last_index);
        for (uint64_t i = 0; i < alone.size(); ++i) {
          want.values[place(i)] = extrema.values[i];
          want.indices[place(i)] = extrema.indices[i];
        }
      }
      ASSERT_TRUE(AreSame(Scan(args, items), want));
    }
  });
}

TEST_P(ExtremaTest, Segments) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const uint64_t num_segments : {1, 3, 40, 2'000}) {
      ScanArgs args = MakeArgs();
      std::vector<uint64_t> offsets = {0};
      for (uint64_t i = 0; i < num_segments; ++i) {
        offsets.push_back(offsets.back() + (random().OneIn(3) ? 0 : random().Below(random().OneIn(20) ? 5'000 : 50)));
      }
      const std::vector<T> items = MakeItems<T>(offsets.back());
      args.num_items = items.size();
      args.num_arrays = num_segments;
      SCOPED_TRACE(StrCat(Describe(args), ", segments"));
      DeviceArray<uint64_t> d_offsets(lane(), offsets);
      args.offsets = d_offsets.data();
      Extrema<T> want;
      for (uint64_t i = 0; i < num_segments; ++i) {
        const std::vector<T> segment(items.begin() + offsets[i], items.begin() + offsets[i + 1]);
        const auto extrema = ExtremaOf(segment, args.op, args.reverse, args.last_index, offsets[i]);
        want.values.insert(want.values.end(), extrema.values.begin(), extrema.values.end());
        want.indices.insert(want.indices.end(), extrema.indices.begin(), extrema.indices.end());
      }
      ASSERT_TRUE(AreSame(Scan(args, items), want));
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(ExtremaTest, EveryExtremum);

using ExtremaErrorTest = DeviceTest<DeviceParam>;

TEST_P(ExtremaErrorTest, WhatIsRefused) {
  DeviceArray<float> d_in(lane(), std::vector<float>(8));
  DeviceArray<float> d_out(lane(), std::vector<float>(8));
  DeviceArray<uint64_t> d_indices(lane(), std::vector<uint64_t>(8));
  ScanArgs good = {.dtype = DType::kF32, .op = Op::kMax};
  good.init = Neutral(Op::kMax, DType::kF32);
  good.in = d_in.data();
  good.out = d_out.data();
  good.indices = d_indices.data();
  good.num_items = 8;
  Require(lane().Scan(good));
  const auto message = [&](auto change) {
    ScanArgs args = good;
    change(&args);
    const absl::Status status = lane().Scan(args);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  const auto has = [](std::string_view part) { return testing::HasSubstr(std::string(part)); };
  EXPECT_THAT(message([](ScanArgs* args) { args->op = Op::kSum; }), has("min or max"));
  EXPECT_THAT(message([](ScanArgs* args) { args->kind = ScanKind::kExclusive; }), has("inclusive"));
  EXPECT_THAT(message([](ScanArgs* args) { args->index_dtype = DType::kI64; }), has("u64 or u32, not i64"));
  EXPECT_THAT(message([&](ScanArgs* args) { args->out = d_in.data(); }), has("in and out overlap"));
  EXPECT_THAT(message([&](ScanArgs* args) { args->indices = d_in.data(); }), has("overlap"));
  EXPECT_THAT(message([&](ScanArgs* args) { args->indices = d_out.data(); }), has("overlap"));
  EXPECT_THAT(message([&](ScanArgs* args) { args->indices = reinterpret_cast<std::byte*>(d_indices.data()) + 4; }),
              has("aligned"));
  EXPECT_THAT(message([&](ScanArgs* args) {
                args->num_items = 0;
                args->carry_out = d_indices.data();
              }),
              has("carry"));
  ScanArgs late = good;
  late.index_dtype = DType::kU32;
  late.first_item = (uint64_t{1} << 32) - 8;
  EXPECT_TRUE(lane().Scan(late).ok());
  ++late.first_item;
  EXPECT_TRUE(absl::IsOutOfRange(lane().Scan(late)));
}
PREFIXD_ON_EVERY_DEVICE(ExtremaErrorTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
