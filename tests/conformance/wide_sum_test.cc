// Sums in more precision than their elements': compared bit for bit with the order of kernels/NUMERICS.md, and with the
// exact sum.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/conformance/association.h"
#include "tests/conformance/exact_sum.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

// NUMERICS.md's sums of f32.
struct Single {
  double sum;
  static Single Of(float x) { return {x}; }
  float Result() const { return Canonical(static_cast<float>(sum)); }
};
Single Combine(Single a, Single b) { return {a.sum + b.sum}; }

// And of f64: what the sum lacks stands beside it.
struct Pair {
  double sum, error;
  static Pair Of(double x) { return {x, -0.0}; }
  double Result() const { return Canonical(std::fabs(error) > 0 ? sum + error : sum); }
};
Pair Combine(Pair a, Pair b) {
  const double sum = a.sum + b.sum, of_b = sum - a.sum;
  return {sum, ((a.sum - (sum - of_b)) + (b.sum - of_b)) + (a.error + b.error)};
}

template <class T>
using ItemOf = std::conditional_t<sizeof(T) == 4, Single, Pair>;

template <class T>
auto AssociationOf(const std::vector<T>& in, T start) {
  std::vector<ItemOf<T>> items;
  for (const T x : in) items.push_back(ItemOf<T>::Of(x));
  return Association(items, ItemOf<T>::Of(start), [](auto a, auto b) { return Combine(a, b); });
}

// What a carry holds: no NaN but the canonical one, and no error where the sum is not finite or it is 0.
std::vector<double> CarryOf(Single v) { return {Canonical(v.sum)}; }
std::vector<double> CarryOf(Pair v) {
  return {Canonical(v.sum), std::isfinite(v.sum) ? v.error + 0.0 : CanonicalNan<double>()};
}

template <class T>
T ResultAs(const ReduceState& state) {
  const Value value = ResultOf(kDTypeOf<T>, Op::kSum, Precision::kWide, state);
  return value.As<T>();
}

// How far a sum of so many elements may be off, beside the rounding of the result, for each unit of their magnitudes.
template <class T>
long double Bound(size_t num_items) {
  const size_t num_groups = (num_items + 131071) / 131072;
  const auto steps = static_cast<long double>(21 + num_groups);
  return std::pow(steps * 0x1p-53L, sizeof(T) == 4 ? 1 : 2);
}

struct WideCase {
  size_t num_items = 0;
  bool exclusive = false, reverse = false, has_init = false, in_place = false;
  size_t in_offset = 0, out_offset = 0;
  Data data = Data::kRandom;
};
std::ostream& operator<<(std::ostream& os, const WideCase& c) {
  return os << c.num_items << " items, " << Name(c.data) << (c.exclusive ? ", exclusive" : "")
            << (c.reverse ? ", reverse" : "") << (c.has_init ? ", init" : "") << (c.in_place ? ", in place" : "")
            << ", offsets " << c.in_offset << ", " << c.out_offset;
}

WideCase RandomCase(size_t num_items, Random& random) {
  return {.num_items = num_items,
          .exclusive = random.OneIn(2),
          .reverse = random.OneIn(3),
          .has_init = random.OneIn(2),
          .in_place = random.OneIn(3),
          .in_offset = random.OneIn(3) ? 1u : 0u,
          .out_offset = random.OneIn(3) ? 1u : 0u,
          .data = static_cast<Data>(random.Below(kNumData))};
}

ScanArgs ArgsOf(DType dtype, const WideCase& c) {
  return {.dtype = dtype,
          .precision = Precision::kWide,
          .kind = c.exclusive ? ScanKind::kExclusive : ScanKind::kInclusive,
          .reverse = c.reverse,
          .num_items = c.num_items};
}

// In two chunks, where the carry goes on.
template <class T>
testing::AssertionResult RunScan(Lane& lane, const WideCase& c, Random& random) {
  std::vector<T> in = MakeInput<T>(Op::kSum, c.data, c.num_items + 1, random);
  ScanArgs args = ArgsOf(kDTypeOf<T>, c);
  args.init = c.has_init ? Value::Of(in.back()) : ScanStart(Op::kSum, kDTypeOf<T>, args.kind);
  in.pop_back();
  std::vector<T> ordered = in;
  if (c.reverse) std::ranges::reverse(ordered);
  const auto association = AssociationOf(ordered, args.init.As<T>());
  std::vector<T> want;
  for (size_t i = 0; i < in.size(); ++i) want.push_back(association.Value(c.exclusive ? i : i + 1).Result());
  if (c.reverse) std::ranges::reverse(want);

  DeviceArray<T> d_in(lane, in, c.in_offset);
  auto d_own_out = DeviceArray<T>::Poisoned(lane, in.size(), c.out_offset);
  DeviceArray<T>& d_out = c.in_place ? d_in : d_own_out;
  const size_t carry_doubles = CarryBytes(kDTypeOf<T>, Op::kSum, Precision::kWide) / sizeof(double);
  auto d_carry = DeviceArray<double>::Poisoned(lane, carry_doubles);
  constexpr size_t kGroup = 131072;
  const size_t cut = c.reverse || random.OneIn(2) ? in.size() : in.size() / kGroup / 2 * kGroup;
  for (const auto& [begin, end] : {std::pair(size_t{0}, cut), std::pair(cut, in.size())}) {
    if (begin == end && begin > 0) continue;
    args.in = d_in.data() + begin;
    args.out = d_out.data() + begin;
    args.num_items = end - begin;
    args.carry_in = begin > 0 ? d_carry.data() : nullptr;
    args.carry_out = d_carry.data();
    Require(lane.Scan(args));
  }
  std::vector<T> got;
  if (auto guards = d_out.Read(&got); !guards) return guards << " (out)";
  if (auto same = AreSame(got, want); !same) return same << ", cut at " << cut;
  std::vector<double> carry;
  if (auto guards = d_carry.Read(&carry); !guards) return guards << " (carry)";
  return AreSame(carry, CarryOf(association.Value(in.size()))) << " (carry)";
}

template <class T>
testing::AssertionResult RunReduce(Lane& lane, const WideCase& c, Random& random) {
  std::vector<T> in = MakeInput<T>(Op::kSum, c.data, c.num_items + 1, random);
  const T start = c.has_init ? in.back() : T(-0.0);
  in.pop_back();
  DeviceArray<T> d_in(lane, in, c.in_offset);
  auto d_state = DeviceArray<ReduceState>::Poisoned(lane, 1);
  auto d_value = DeviceArray<T>::Poisoned(lane, 1);
  ReduceArgs args = {.dtype = kDTypeOf<T>,
                     .precision = Precision::kWide,
                     .init = {Value::Of(double{start}), c.has_init ? 0 : ReduceState::kNothing}};
  constexpr size_t kGroup = 131072;
  const size_t cut = in.size() / kGroup / 2 * kGroup;
  for (const auto& [begin, end] : {std::pair(size_t{0}, cut), std::pair(cut, in.size())}) {
    if (begin == end && cut > 0) continue;
    args.in = d_in.data() + begin;
    args.num_items = end - begin;
    args.state_in = begin > 0 ? d_state.data() : nullptr;
    args.state_out = d_state.data();
    Require(lane.Reduce(args));
  }
  args.in = d_in.data();
  args.num_items = in.size();
  args.state_in = nullptr;
  args.state_out = nullptr;
  args.values = d_value.data();
  Require(lane.Reduce(args));

  const auto sum = AssociationOf(in, start).Value(in.size());
  const T want = sum.Result();
  std::vector<ReduceState> state;
  if (auto guards = d_state.Read(&state); !guards) return guards << " (state)";
  std::vector<double> in_state = {state[0].value.As<double>(), state[0].second};
  in_state.resize(CarryOf(sum).size());
  if (auto same = AreSame(in_state, CarryOf(sum)); !same) return same << " (state)";
  if (auto same = AreSame<T>({ResultAs<T>(state[0])}, {want}); !same) return same;
  std::vector<T> value;
  if (auto guards = d_value.Read(&value); !guards) return guards << " (values)";
  return AreSame<T>(value, {in.empty() && !c.has_init ? T(0) : want}) << " (values)";
}

std::vector<DTypeParam> EveryWideSumDType(const std::string& device) {
  std::vector<DTypeParam> params = EveryDType(device);
  std::erase_if(params, [](const DTypeParam& param) { return !IsWideSum(param.dtype, param.dtype, Op::kSum); });
  return params;
}

class WideSumTest : public DeviceTest<DTypeParam> {
 protected:
  testing::AssertionResult Scan(const WideCase& c) {
    return GetParam().dtype == DType::kF32 ? RunScan<float>(lane(), c, random()) : RunScan<double>(lane(), c, random());
  }
  testing::AssertionResult Reduce(const WideCase& c) {
    return GetParam().dtype == DType::kF32 ? RunReduce<float>(lane(), c, random())
                                           : RunReduce<double>(lane(), c, random());
  }
  template <class F>
  void Visit(F&& f) {
    GetParam().dtype == DType::kF32 ? f(float()) : f(double());
  }
};

TEST_P(WideSumTest, EverySizeAndForm) {
  for (const size_t size : Sizes()) {
    for (int i = 0; i < 4; ++i) {
      const WideCase c = RandomCase(size, random());
      ASSERT_TRUE(Scan(c)) << c;
      ASSERT_TRUE(Reduce(c)) << c;
    }
  }
}

TEST_P(WideSumTest, ManyTiles) {
  for (int i = 0; i < (TakesAShare(GetParam()) ? 3 : 6); ++i) {
    WideCase c = RandomCase(ManyTilesSize() + random().Below(3), random());
    if (i < 2) c = {.num_items = c.num_items, .exclusive = i == 1};  // As long arrays mostly are.
    ASSERT_TRUE(Scan(c)) << c;
    ASSERT_TRUE(Reduce(c)) << c;
  }
}

// Large values cancel, and small ones are what is left.
TEST_P(WideSumTest, NearTheExactSum) {
  Visit([&](auto type) {
    using T = decltype(type);
    std::vector<T> in = MakeInput<T>(Op::kSum, Data::kRandom, 150'000, random());
    for (size_t i = 0; i < in.size(); i += 2) in[i] *= T(0x1p30);
    for (size_t i = 1; i < in.size() / 2; ++i) {  // What comes later takes most of it away again.
      if (i % 2 == 0) in[in.size() - i] = -in[i] * (1 + std::numeric_limits<T>::epsilon() * 2);
    }
    DeviceArray<T> d_in(lane(), in);
    auto d_out = DeviceArray<T>::Poisoned(lane(), in.size());
    ScanArgs args = ArgsOf(kDTypeOf<T>, {.num_items = in.size()});
    args.in = d_in.data();
    args.out = d_out.data();
    args.init = Neutral(Op::kSum, kDTypeOf<T>);
    Require(lane().Scan(args));
    std::vector<T> got;
    ASSERT_TRUE(d_out.Read(&got));
    ExactSum sum;
    long double magnitudes = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      sum.Add(in[i]);
      magnitudes += std::fabs(in[i]);
      if (i % 1000 != 0 && i + 1 != in.size()) continue;
      ExactSum rest = sum;
      rest.Add(-static_cast<double>(got[i]));
      const T magnitude = std::fabs(got[i]);
      const long double half_ulp =
          (static_cast<long double>(std::nextafter(magnitude, std::numeric_limits<T>::infinity())) - magnitude) / 2;
      ASSERT_LE(std::fabs(rest.Value()), half_ulp * (1 + 0x1p-20L) + Bound<T>(in.size()) * magnitudes) << "item " << i;
    }
  });
}

// As the plain sum has them.
TEST_P(WideSumTest, WhatIsNotFinite) {
  Visit([&](auto type) {
    using T = decltype(type);
    using Limits = std::numeric_limits<T>;
    const T inf = Limits::infinity(), nan = Limits::quiet_NaN(), max = Limits::max();
    const auto scan = [&](const std::vector<T>& in) {
      DeviceArray<T> d_in(lane(), in);
      auto d_out = DeviceArray<T>::Poisoned(lane(), in.size());
      ScanArgs args = ArgsOf(kDTypeOf<T>, {.num_items = in.size()});
      args.in = d_in.data();
      args.out = d_out.data();
      args.init = Neutral(Op::kSum, kDTypeOf<T>);
      Require(lane().Scan(args));
      std::vector<T> got;
      EXPECT_TRUE(d_out.Read(&got));
      return got;
    };
    EXPECT_TRUE(AreSame(scan({1, inf, 2, -inf, 3}), {1, inf, inf, nan, nan}));
    EXPECT_TRUE(AreSame(scan({1, -inf, -max, 5}), {1, -inf, -inf, -inf}));
    EXPECT_TRUE(AreSame(scan({nan, 1, inf}), {nan, nan, nan}));
    EXPECT_TRUE(AreSame(scan({-T(0), -T(0), -T(0), -T(0), -T(0)}), {-T(0), -T(0), -T(0), -T(0), -T(0)}));
    EXPECT_TRUE(AreSame(scan({max, max, -max, -max}),
                        sizeof(T) == 4 ? std::vector<T>{max, inf, max, 0} : std::vector<T>{max, inf, inf, inf}));
    const T least = Limits::denorm_min();  // A double has no room for that of float beside 1.
    EXPECT_TRUE(AreSame(scan({least, -1, 1}), {least, -1, sizeof(T) == 4 ? 0 : least}));
  });
}

enum class Layout { kRows, kColumns, kSegments };

// num_arrays of c.num_items, or segments of about as many: scanned, reduced to values, and rows to states too.
template <class T>
void RunArrays(Lane& lane, Layout layout, size_t num_arrays, const WideCase& c, Random& random) {
  std::vector<uint64_t> offsets = {0};
  for (size_t array = 0; array < num_arrays; ++array) {
    offsets.push_back(offsets.back() + (layout == Layout::kSegments ? random.Below(2 * c.num_items + 1) : c.num_items));
  }
  std::vector<T> in = MakeInput<T>(Op::kSum, c.data, offsets.back() + 1, random);
  const T init = in.back();
  in.pop_back();
  ScanArgs scan = ArgsOf(kDTypeOf<T>, c);
  scan.init = c.has_init ? Value::Of(init) : ScanStart(Op::kSum, kDTypeOf<T>, scan.kind);
  std::vector<T> want(in.size()), want_values;
  for (size_t array = 0; array < num_arrays; ++array) {
    const size_t length = offsets[array + 1] - offsets[array];
    const auto place = [&](size_t i) {
      return layout == Layout::kColumns ? i * num_arrays + array : offsets[array] + i;
    };
    std::vector<T> one;
    for (size_t i = 0; i < length; ++i) one.push_back(in[place(i)]);
    const T start = c.has_init ? init : T(-0.0);
    want_values.push_back(one.empty() && !c.has_init ? T(0) : AssociationOf(one, start).Value(length).Result());
    if (c.reverse) std::ranges::reverse(one);
    const auto association = AssociationOf(one, scan.init.As<T>());
    for (size_t i = 0; i < length; ++i) {
      want[place(c.reverse ? length - 1 - i : i)] = association.Value(c.exclusive ? i : i + 1).Result();
    }
  }
  DeviceArray<T> d_in(lane, in, c.in_offset);
  DeviceArray<uint64_t> d_offsets(lane, offsets);
  auto d_own_out = DeviceArray<T>::Poisoned(lane, in.size(), c.out_offset);
  DeviceArray<T>& d_out = c.in_place ? d_in : d_own_out;
  auto d_values = DeviceArray<T>::Poisoned(lane, num_arrays, c.out_offset);
  auto d_states = DeviceArray<ReduceState>::Poisoned(lane, num_arrays);
  scan.num_items = layout == Layout::kSegments ? in.size() : c.num_items;
  scan.in = d_in.data();
  scan.out = d_out.data();
  scan.num_arrays = num_arrays;
  scan.order = layout == Layout::kColumns ? BatchOrder::kInterleaved : BatchOrder::kOneByOne;
  scan.offsets = layout == Layout::kSegments ? d_offsets.data() : nullptr;
  ReduceArgs reduce = {.dtype = kDTypeOf<T>,
                       .precision = Precision::kWide,
                       .in = d_in.data(),
                       .num_items = scan.num_items,
                       .num_arrays = scan.num_arrays,
                       .order = scan.order,
                       .offsets = scan.offsets,
                       .init = {Value::Of(c.has_init ? double{init} : -0.0), c.has_init ? 0 : ReduceState::kNothing},
                       .values = d_values.data()};
  Require(lane.Synchronize());
  lane.TakeStageTimes();
  Require(lane.Reduce(reduce));
  std::vector<T> got, values;
  ASSERT_TRUE(d_values.Read(&values));
  ASSERT_TRUE(AreSame(values, want_values));
  if (layout == Layout::kRows && c.num_items > 0) {
    reduce.values = nullptr;  // As requests that share a launch: with states.
    reduce.state_out = d_states.data();
    Require(lane.Reduce(reduce));
    std::vector<ReduceState> states;
    ASSERT_TRUE(d_states.Read(&states));
    for (size_t row = 0; row < num_arrays; ++row)
      ASSERT_TRUE(AreSame<T>({ResultAs<T>(states[row])}, {want_values[row]}));
  }
  Require(lane.Scan(scan));  // Last: it may be in place.
  ASSERT_TRUE(d_out.Read(&got));
  ASSERT_TRUE(AreSame(got, want));
  if (layout == Layout::kColumns) {
    EXPECT_EQ(lane.TakeStageTimes().num_bytes, (3 * in.size() + num_arrays) * sizeof(T));
  }
}

TEST_P(WideSumTest, RowsAndSegmentsAsAlone) {
  for (const auto& [num_arrays, length] :
       {std::pair(3, 50'000), std::pair(40, 300), std::pair(700, 31), std::pair(2000, 3), std::pair(2, 0)}) {
    for (const Layout layout : {Layout::kRows, Layout::kSegments}) {
      const WideCase c = RandomCase(length, random());
      SCOPED_TRACE(testing::Message() << num_arrays << (layout == Layout::kRows ? " rows of " : " segments, about ")
                                      << c);
      Visit([&](auto type) { RunArrays<decltype(type)>(lane(), layout, num_arrays, c, random()); });
    }
  }
}

// Rows around a run, a leaf, a tile and a group; columns around a line of the cache, a warp, a block and a strip.
TEST_P(WideSumTest, ColumnsAsAlone) {
  std::vector<std::pair<size_t, size_t>> matrices = {{0, 3},    {1, 2},   {2, 1100}, {3, 31},   {4, 129},
                                                     {5, 300},  {31, 8},  {33, 130}, {64, 17},  {67, 1025},
                                                     {127, 33}, {128, 8}, {129, 65}, {4096, 2}, {4103, 19}};
  if (!SmallSizesOnly()) matrices.insert(matrices.end(), {{131'072 + 4'096 + 131, 3}, {9'000, 70}, {300, 1'500}});
  for (const auto& [num_rows, num_columns] : matrices) {
    for (int form = 0; form < 3; ++form) {
      if (!Takes(num_rows * num_columns)) continue;
      const WideCase c = RandomCase(num_rows, random());
      SCOPED_TRACE(testing::Message() << num_columns << " columns of " << c);
      Visit([&](auto type) { RunArrays<decltype(type)>(lane(), Layout::kColumns, num_columns, c, random()); });
    }
  }
}

TEST_P(WideSumTest, RefusesWhatItIsNotFor) {
  const auto message = [&](auto change) {
    ScanArgs args = {.dtype = GetParam().dtype, .precision = Precision::kWide};
    change(&args);
    return std::string(lane().Scan(args).message());
  };
  EXPECT_EQ(message([](ScanArgs*) {}), "");
  EXPECT_THAT(message([](ScanArgs* args) { args->op = Op::kProd; }), testing::HasSubstr("prod of f"));
  EXPECT_THAT(message([](ScanArgs* args) { args->dtype = DType::kI64; }), testing::HasSubstr("sum of i64"));
  const absl::Status reduced = lane().Reduce({.dtype = DType::kI32, .precision = Precision::kWide});
  EXPECT_THAT(std::string(reduced.message()), testing::HasSubstr("sum of i32"));
  EXPECT_THAT(message([](ScanArgs* args) { args->algorithm.strategy = Strategy::kSequential; }),
              testing::AnyOf(testing::HasSubstr("leave the algorithm out"), testing::HasSubstr("not implemented")));
}

PREFIXD_ON_EVERY_DEVICE(WideSumTest, EveryWideSumDType);

}  // namespace
}  // namespace prefixd::conformance
