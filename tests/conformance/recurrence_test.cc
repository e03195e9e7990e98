// Scans by a linear recurrence, compared bit for bit with the order of kernels/NUMERICS.md, and with a plain loop.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "kernels/association.h"
#include "tests/conformance/association.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

template <class T>
struct Step {
  T coefficient;
  T term;
};

// NUMERICS.md's operator: a term of -0 is none.
template <class T>
Step<T> Combine(const Step<T>& before, const Step<T>& after) {
  const bool is_none = before.term == 0 && std::signbit(before.term);
  return {before.coefficient * after.coefficient, is_none ? after.term : after.coefficient * before.term + after.term};
}

template <class T>
T Canonical(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

struct RecurrenceCase {
  size_t num_items = 0;  // In an array.
  size_t num_arrays = 1;
  bool are_columns = false;            // Else arrays stand one by one,
  std::vector<uint64_t> offsets = {};  // and if there are some, they differ in length.
  ScanKind kind = ScanKind::kInclusive;
  bool reverse = false;
  bool has_init = false;
  bool in_place = false;
  bool has_one_coefficient = false;
  bool through_carry = false;
  bool is_special = false;  // Else coefficients are at most 1, so that nothing overflows.
  size_t in_offset = 0;
  size_t coefficients_offset = 0;
  size_t out_offset = 0;

  size_t AllItems() const { return offsets.empty() ? num_items * num_arrays : offsets.back(); }
  size_t Length(size_t array) const { return offsets.empty() ? num_items : offsets[array + 1] - offsets[array]; }
  // The place of the i-th item of the scan of an array.
  size_t Place(size_t array, size_t i) const {
    const size_t at = reverse ? Length(array) - 1 - i : i;
    if (are_columns) return at * num_arrays + array;
    return (offsets.empty() ? array * num_items : offsets[array]) + at;
  }
};

std::ostream& operator<<(std::ostream& os, const RecurrenceCase& c) {
  os << c.num_arrays
     << (c.are_columns       ? " columns of "
         : c.offsets.empty() ? " arrays of "
                             : " segments of, in all, ")
     << (c.offsets.empty() ? c.num_items : c.AllItems()) << " items, ";
  return os << Name(c.kind) << (c.reverse ? " reverse" : "") << (c.has_init ? " init" : "")
            << (c.in_place ? " in place" : "") << (c.has_one_coefficient ? " one coefficient" : "")
            << (c.through_carry ? " carry" : "") << (c.is_special ? " special" : "") << " offsets " << c.in_offset
            << "," << c.coefficients_offset << "," << c.out_offset;
}

template <class T>
T RandomCoefficient(const RecurrenceCase& c, Random& random) {
  if (!c.is_special) return static_cast<T>(random.OneIn(50) ? 0.0 : 2 * random.Uniform() - 1);
  constexpr T kSpecial[] = {0,
                            T(-0.0),
                            1,
                            -1,
                            2,
                            std::numeric_limits<T>::infinity(),
                            std::numeric_limits<T>::quiet_NaN(),
                            std::numeric_limits<T>::denorm_min()};
  return random.OneIn(100) ? kSpecial[random.Below(std::size(kSpecial))] : static_cast<T>(3 * random.Uniform() - 1.5);
}
template <class T>
T RandomTerm(const RecurrenceCase& c, Random& random) {
  if (c.is_special && random.OneIn(100)) return RandomBits<T>(random);
  return static_cast<T>(random.OneIn(8) ? (random.OneIn(2) ? -0.0 : 0.0) : 2 * random.Uniform() - 1);
}

template <class T>
testing::AssertionResult RunCase(Lane& lane, const RecurrenceCase& c, Random& random) {
  const size_t all_items = c.AllItems();
  std::vector<T> terms(all_items), coefficients(all_items, RandomCoefficient<T>(c, random));
  for (T& term : terms) term = RandomTerm<T>(c, random);
  if (!c.has_one_coefficient) {
    for (T& coefficient : coefficients) coefficient = RandomCoefficient<T>(c, random);
  }
  T start = ScanStart(Op::kLinearRecurrence, kDTypeOf<T>, c.kind).template As<T>();
  if (c.has_init) start = RandomTerm<T>(c, random);

  std::vector<T> want(all_items);
  T want_carry = Canonical(start);
  for (size_t array = 0; array < c.num_arrays; ++array) {
    const size_t length = c.Length(array);
    std::vector<Step<T>> steps;
    for (size_t i = 0; i < length; ++i) steps.push_back({coefficients[c.Place(array, i)], terms[c.Place(array, i)]});
    const Association association(steps, Step<T>{1, start}, Combine<T>);
    for (size_t i = 0; i < length; ++i) {
      want[c.Place(array, i)] = Canonical(association.Value(c.kind == ScanKind::kExclusive ? i : i + 1).term);
    }
    want_carry = Canonical(association.Value(length).term);
  }

  DeviceArray<T> d_in(lane, terms, c.in_offset);
  DeviceArray<T> d_coefficients(lane, coefficients, c.coefficients_offset);
  auto d_own_out = DeviceArray<T>::Poisoned(lane, all_items, c.out_offset);
  DeviceArray<T>& d_out = c.in_place ? d_in : d_own_out;
  DeviceArray<T> d_carry(lane, {start});
  DeviceArray<uint64_t> d_offsets(lane, c.offsets);
  ScanArgs args = {.dtype = kDTypeOf<T>,
                   .op = Op::kLinearRecurrence,
                   .kind = c.kind,
                   .reverse = c.reverse,
                   .in = d_in.data(),
                   .out = d_out.data(),
                   .num_items = c.offsets.empty() ? c.num_items : all_items,
                   .num_arrays = c.num_arrays,
                   .order = c.are_columns ? BatchOrder::kInterleaved : BatchOrder::kOneByOne,
                   .offsets = c.offsets.empty() ? nullptr : d_offsets.data(),
                   .init = Value::Of(c.through_carry ? Poison<T>() : start)};
  if (c.has_one_coefficient) {
    args.coefficient = Value::Of(all_items > 0 ? coefficients[0] : T(0));
  } else {
    args.coefficients = d_coefficients.data();
  }
  if (c.through_carry) args.carry_in = args.carry_out = d_carry.data();
  Require(lane.Synchronize());
  lane.TakeStageTimes();
  Require(lane.Scan(args));
  Require(lane.Synchronize());
  const StageTimes times = lane.TakeStageTimes();
  const uint64_t item_bytes = sizeof(T) * (c.has_one_coefficient ? 2 : 3);
  // A card scans rows of a mebibyte and more by a launch each.
  const bool are_long_rows = c.offsets.empty() && !c.are_columns && c.num_items * sizeof(T) >= (size_t{1} << 20);
  const bool is_launched = times.launches == 1 || (are_long_rows && times.launches == c.num_arrays);
  if (all_items > 0 && (!is_launched || times.num_bytes != all_items * item_bytes + c.offsets.size() * 8)) {
    return testing::AssertionFailure() << times.launches << " launches moved " << times.num_bytes << " bytes";
  }

  std::vector<T> got;
  if (auto guards = d_out.Read(&got); !guards) return guards << " (out)";
  if (auto same = AreSame(got, want); !same) return same;
  if (auto untouched = d_coefficients.IsUntouched(); !untouched) return untouched << " (coefficients)";
  if (!c.through_carry) return d_carry.IsUntouched();
  if (auto guards = d_carry.Read(&got); !guards) return guards << " (carry)";
  return AreSame(got, {want_carry});
}

testing::AssertionResult RunCase(Lane& lane, DType dtype, const RecurrenceCase& c, Random& random) {
  return dtype == DType::kF32 ? RunCase<float>(lane, c, random) : RunCase<double>(lane, c, random);
}

std::vector<DTypeParam> EveryRecurrenceDType(const std::string& device) {
  std::vector<DTypeParam> params = EveryDType(device);
  std::erase_if(params, [](const DTypeParam& param) {
    return !IsRecurrence(Primitive::kScan, param.dtype, param.dtype, Op::kLinearRecurrence);
  });
  return params;
}

using RecurrenceTest = DeviceTest<DTypeParam>;
using RecurrenceErrorTest = DeviceTest<DeviceParam>;

RecurrenceCase RandomCase(size_t num_items, Random& random) {
  RecurrenceCase c = {.num_items = num_items};
  if (random.OneIn(2)) c.kind = ScanKind::kExclusive;
  for (bool* choice : {&c.reverse, &c.has_init, &c.in_place, &c.has_one_coefficient, &c.is_special}) {
    *choice = random.OneIn(2);
  }
  for (size_t* offset : {&c.in_offset, &c.coefficients_offset, &c.out_offset}) *offset = random.OneIn(4) ? 1 : 0;
  return c;
}

TEST_P(RecurrenceTest, EverySizeAndForm) {
  for (const size_t size : Sizes()) {
    for (int form = 0; form < 12; ++form) {
      if (!Takes(size)) continue;
      RecurrenceCase c = RandomCase(size, random());
      c.through_carry = random().OneIn(2);
      ASSERT_TRUE(RunCase(lane(), GetParam().dtype, c, random())) << c;
    }
  }
}

TEST_P(RecurrenceTest, ManyTiles) {
  for (const bool has_one_coefficient : {false, true}) {
    RecurrenceCase c = RandomCase(ManyTilesSize(), random());
    c.has_one_coefficient = has_one_coefficient;
    ASSERT_TRUE(RunCase(lane(), GetParam().dtype, c, random())) << c;
    // Forwards and aligned, so that the fastest kernel is used.
    c.reverse = false;
    c.in_offset = c.coefficients_offset = c.out_offset = 0;
    for (const ScanKind kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
      for (const size_t cut : {0, 1, 5000}) {
        if (TakesAShare(GetParam()) && !random().OneIn(3)) continue;  // What is expected takes long to compute.
        c.kind = kind;
        c.num_items = ManyTilesSize() - cut;
        c.in_place = random().OneIn(2);
        c.through_carry = random().OneIn(2);
        ASSERT_TRUE(RunCase(lane(), GetParam().dtype, c, random())) << c;
      }
    }
  }
}

TEST_P(RecurrenceTest, RowsAsAlone) {
  std::vector<std::pair<size_t, size_t>> shapes = {{2, 1}, {7, 3}, {100, 40}, {3, 5000}, {2, 0}};
  if (!SmallSizesOnly()) shapes.insert(shapes.end(), {{2, 262'144}, {3, 270'001}});
  for (const auto& [num_arrays, num_items] : shapes) {
    RecurrenceCase c = RandomCase(num_items, random());
    c.num_arrays = num_arrays;
    ASSERT_TRUE(RunCase(lane(), GetParam().dtype, c, random())) << c;
  }
}

// Rows around a run, a leaf, a tile and a group; columns around a line of the cache, a warp, a block and a strip.
TEST_P(RecurrenceTest, ColumnsAsAlone) {
  std::vector<std::pair<size_t, size_t>> matrices = {{0, 3},    {1, 2},   {2, 1100}, {3, 31},   {4, 129},
                                                     {5, 300},  {31, 8},  {33, 130}, {64, 17},  {67, 1025},
                                                     {127, 33}, {128, 7}, {129, 65}, {4096, 2}, {4103, 19}};
  if (!SmallSizesOnly()) matrices.insert(matrices.end(), {{131'072 + 4'096 + 131, 3}, {9'000, 70}, {300, 1'500}});
  for (const auto& [num_rows, num_columns] : matrices) {
    for (int form = 0; form < 4; ++form) {
      if (!Takes(num_rows * num_columns)) continue;
      RecurrenceCase c = RandomCase(num_rows, random());
      c.num_arrays = num_columns;
      c.are_columns = true;
      ASSERT_TRUE(RunCase(lane(), GetParam().dtype, c, random())) << c;
    }
  }
}

TEST_P(RecurrenceTest, SegmentsAsAlone) {
  constexpr uint64_t kLengths[] = {0, 0, 0, 1, 2, 3, 4, 5, 31, 127, 128, 129, 250, 300, 1000, 4095, 4096, 4097};
  enum class Lengths { kAny, kShort, kLong, kOneIsLong };
  const auto length_of = [&](Lengths lengths) -> uint64_t {
    if (lengths == Lengths::kShort) return random().Below(5);
    if (lengths == Lengths::kLong) return 3'000 + random().Below(12'000);
    return random().OneIn(2) ? random().Below(300) : kLengths[random().Below(std::size(kLengths))];
  };
  for (const auto lengths : {Lengths::kAny, Lengths::kShort, Lengths::kLong, Lengths::kOneIsLong}) {
    for (const size_t num_segments : {1, 2, 5, 9, 33, 300, 3000}) {
      if (num_segments > 33 && (SmallSizesOnly() || lengths == Lengths::kLong)) continue;
      for (int form = 0; form < 2; ++form) {
        const size_t long_one = lengths == Lengths::kOneIsLong ? random().Below(num_segments) : num_segments;
        std::vector<uint64_t> offsets = {0};
        for (size_t segment = 0; segment < num_segments; ++segment) {
          const uint64_t length = segment == long_one ? 140'000 + random().Below(300) : length_of(lengths);
          offsets.push_back(offsets.back() + length);
        }
        if (!Takes(offsets.back())) continue;
        RecurrenceCase c = RandomCase(0, random());
        c.num_arrays = num_segments;
        c.offsets = offsets;
        ASSERT_TRUE(RunCase(lane(), GetParam().dtype, c, random())) << c;
      }
    }
  }
}

// The order is another one than a loop's, and the values are close.
TEST_P(RecurrenceTest, IsTheRecurrence) {
  const size_t num_items = std::min<size_t>(LargeSize(), 20'000);
  const double coefficient = 0.75 + random().Uniform() / 8;
  std::vector<double> values(num_items), want(num_items);
  double y = 2;
  for (size_t i = 0; i < num_items; ++i) {
    values[i] = random().Uniform();
    want[i] = y = coefficient * y + values[i];
  }
  DeviceArray<double> d_in(lane(), values);
  auto d_out = DeviceArray<double>::Poisoned(lane(), num_items);
  Require(lane().Scan({.dtype = DType::kF64,
                       .op = Op::kLinearRecurrence,
                       .in = d_in.data(),
                       .out = d_out.data(),
                       .num_items = num_items,
                       .coefficient = Value::Of(coefficient),
                       .init = Value::Of(2.0)}));
  std::vector<double> got;
  ASSERT_TRUE(d_out.Read(&got));
  for (size_t i = 0; i < num_items; ++i) ASSERT_NEAR(got[i], want[i], 1e-13 * want[i]) << i;
}

TEST_P(RecurrenceErrorTest, SaysWhatIsWrong) {
  DeviceArray<double> d_x(lane(), {1, 2, 3}), d_y(lane(), {1, 2, 3});
  const ScanArgs good = {.dtype = DType::kF64,
                         .op = Op::kLinearRecurrence,
                         .in = d_x.data(),
                         .out = d_x.data(),
                         .num_items = 3,
                         .coefficients = d_y.data()};
  EXPECT_TRUE(lane().Scan(good).ok());
  const auto message = [&](auto&& change) {
    ScanArgs args = good;
    change(&args);
    return std::string(lane().Scan(args).message());
  };
  EXPECT_THAT(message([](ScanArgs* args) { args->op = Op::kSum; }), testing::HasSubstr("leave them out"));
  EXPECT_THAT(message([](ScanArgs* args) { args->dtype = DType::kI64; }), testing::HasSubstr("linear_recurrence"));
  EXPECT_THAT(message([](ScanArgs* args) { args->out_dtype = DType::kF32; }), testing::HasSubstr("f32"));
  EXPECT_THAT(message([](ScanArgs* args) { args->coefficients = static_cast<const char*>(args->coefficients) + 1; }),
              testing::HasSubstr("coefficients"));
  // The yardsticks may not be there.
  EXPECT_THAT(message([](ScanArgs* args) { args->algorithm.strategy = Strategy::kNaive; }),
              testing::AnyOf(testing::HasSubstr("leave the algorithm out"), testing::HasSubstr("not implemented")));
  EXPECT_THAT(message([](ScanArgs* args) { args->out = const_cast<void*>(args->coefficients); }),
              testing::HasSubstr("coefficients"));
}

PREFIXD_ON_EVERY_DEVICE(RecurrenceTest, EveryRecurrenceDType);
PREFIXD_ON_EVERY_DEVICE(RecurrenceErrorTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
