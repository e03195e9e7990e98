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
  size_t num_items = 0;
  size_t num_arrays = 1;
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
};

std::ostream& operator<<(std::ostream& os, const RecurrenceCase& c) {
  return os << c.num_arrays << " arrays of " << c.num_items << " items, " << Name(c.kind)
            << (c.reverse ? " reverse" : "") << (c.has_init ? " init" : "") << (c.in_place ? " in place" : "")
            << (c.has_one_coefficient ? " one coefficient" : "") << (c.through_carry ? " carry" : "")
            << (c.is_special ? " special" : "") << " offsets " << c.in_offset << "," << c.coefficients_offset << ","
            << c.out_offset;
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
  const size_t all_items = c.num_items * c.num_arrays;
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
    const auto place = [&](size_t i) { return array * c.num_items + (c.reverse ? c.num_items - 1 - i : i); };
    std::vector<Step<T>> steps;
    for (size_t i = 0; i < c.num_items; ++i) steps.push_back({coefficients[place(i)], terms[place(i)]});
    const Association association(steps, Step<T>{1, start}, Combine<T>);
    for (size_t i = 0; i < c.num_items; ++i) {
      want[place(i)] = Canonical(association.Value(c.kind == ScanKind::kExclusive ? i : i + 1).term);
    }
    want_carry = Canonical(association.Value(c.num_items).term);
  }

  DeviceArray<T> d_in(lane, terms, c.in_offset);
  DeviceArray<T> d_coefficients(lane, coefficients, c.coefficients_offset);
  auto d_own_out = DeviceArray<T>::Poisoned(lane, all_items, c.out_offset);
  DeviceArray<T>& d_out = c.in_place ? d_in : d_own_out;
  DeviceArray<T> d_carry(lane, {start});
  ScanArgs args = {.dtype = kDTypeOf<T>,
                   .op = Op::kLinearRecurrence,
                   .kind = c.kind,
                   .reverse = c.reverse,
                   .in = d_in.data(),
                   .out = d_out.data(),
                   .num_items = c.num_items,
                   .num_arrays = c.num_arrays,
                   .init = Value::Of(c.through_carry ? Poison<T>() : start)};
  if (c.has_one_coefficient) {
    args.coefficient = Value::Of(all_items > 0 ? coefficients[0] : T(0));
  } else {
    args.coefficients = d_coefficients.data();
  }
  if (c.through_carry) args.carry_in = args.carry_out = d_carry.data();
  Require(lane.Scan(args));

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
  for (const auto& [num_arrays, num_items] : {std::pair<size_t, size_t>{2, 1}, {7, 3}, {100, 40}, {3, 5000}, {2, 0}}) {
    RecurrenceCase c = RandomCase(num_items, random());
    c.num_arrays = num_arrays;
    ASSERT_TRUE(RunCase(lane(), GetParam().dtype, c, random())) << c;
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
