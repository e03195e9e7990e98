// log_add_exp beside the exact logarithm of the sum, and where elements are not finite. That its bits are those of
// kernels/NUMERICS.md, scan_test.cc, reduce_test.cc and their like see.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

// log of the sum of e^x, in the widest type: a scaled sum, and what it lacks.
class WideLogarithm {
 public:
  void Add(long double x) {
    if (x == -std::numeric_limits<long double>::infinity()) return;
    if (x > largest_) {
      const long double scale = std::exp(largest_ - x);
      sum_ *= scale;
      rest_ *= scale;
      largest_ = x;
    }
    const long double term = std::exp(x - largest_), sum = sum_ + term;
    rest_ += sum_ > term ? (sum_ - sum) + term : (term - sum) + sum_;
    sum_ = sum;
  }
  long double Value() const { return largest_ + std::log(sum_ + rest_); }

 private:
  long double largest_ = -std::numeric_limits<long double>::infinity();
  long double sum_ = 0, rest_ = 0;
};

// How far a result next to y, of so many elements, may be off.
template <class T>
long double Bound(long double y, size_t num_items) {
  constexpr long double kUnit = std::numeric_limits<Accumulator<T>>::epsilon() / 2;
  const auto n = static_cast<long double>(std::max<size_t>(num_items, 1));
  const long double steps = 21 + std::ceil(n / 131072);
  const long double magnitude = std::fabs(y);
  const long double error = kUnit * (4.3L * magnitude + 1.3L * std::log(n) + steps + 4);
  if (std::is_same_v<T, Accumulator<T>>) return error;
  using Limits = std::numeric_limits<T>;
  return error + Limits::epsilon() / 2 * (magnitude + error) + Limits::denorm_min();
}

enum class Kind { kProbabilities, kMixed, kMasked, kEqual, kRising, kNearOne, kNumKinds };

// Rounded to T.
template <class T>
std::vector<T> Elements(Kind kind, size_t num_items, Random& random) {
  using Limits = std::numeric_limits<T>;
  const double largest = std::is_same_v<T, Float16> ? 6e4 : 1e5;
  const double equal = 20 * random.Uniform() - 10;
  std::vector<T> in;
  for (size_t i = 0; i < num_items; ++i) {
    const double u = random.Uniform();
    switch (kind) {
      case Kind::kProbabilities:
        in.push_back(static_cast<T>(-20 * u));
        break;
      case Kind::kMixed:
        in.push_back(static_cast<T>(random.OneIn(2) ? largest * (2 * u - 1) : 4 * u - 2));
        break;
      case Kind::kMasked: {
        const T masks[] = {-Limits::infinity(), Limits::lowest(), static_cast<T>(-largest)};
        in.push_back(random.OneIn(8) ? static_cast<T>(10 * u - 5) : masks[random.Below(3)]);
        break;
      }
      case Kind::kEqual:
        in.push_back(static_cast<T>(equal));
        break;
      case Kind::kRising:
        in.push_back(static_cast<T>(static_cast<double>(i) / 64 + u - 500));
        break;
      default:  // The logarithm of the sum is about 0.
        in.push_back(static_cast<T>(-std::log(static_cast<double>(num_items)) + u - 0.5));
    }
  }
  return in;
}

class LogAddExpTest : public DeviceTest<DTypeParam> {
 protected:
  template <class T>
  std::vector<T> Scan(const std::vector<T>& in, ScanKind kind = ScanKind::kInclusive) {
    DeviceArray<T> d_in(lane(), in);
    auto d_out = DeviceArray<T>::Poisoned(lane(), in.size());
    ScanArgs args = {.dtype = kDTypeOf<T>, .op = Op::kLogAddExp, .kind = kind, .num_items = in.size()};
    args.in = d_in.data();
    args.out = d_out.data();
    args.init = Neutral(Op::kLogAddExp, kDTypeOf<T>);
    Require(lane().Scan(args));
    std::vector<T> got;
    EXPECT_TRUE(d_out.Read(&got));
    return got;
  }
  template <class T>
  T Reduce(const std::vector<T>& in) {
    DeviceArray<T> d_in(lane(), in);
    auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
    ReduceArgs args = {.dtype = kDTypeOf<T>, .op = Op::kLogAddExp, .in = d_in.data(), .num_items = in.size()};
    args.init = {Neutral(args.op, args.StateDType()), ReduceState::kNothing};
    args.state_out = d_state.data();
    Require(lane().Reduce(args));
    std::vector<ReduceState> state;
    EXPECT_TRUE(d_state.Read(&state));
    const Value value = ResultOf(kDTypeOf<T>, args.op, args.precision, state[0]);
    return value.As<T>();
  }
  template <class F>
  void Visit(F&& f) {
    VisitDType(GetParam().dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (kIsFloating<T>) f(T());
    });
  }
};

// Whether a result is as near as it should be.
template <class T>
testing::AssertionResult IsNear(T got, const WideLogarithm& sum, size_t num_items) {
  const long double want = sum.Value();
  const auto result = static_cast<long double>(static_cast<Accumulator<T>>(got));
  if (std::isinf(want) && result == want) return testing::AssertionSuccess();
  const long double off = std::fabs(result - want), bound = Bound<T>(want, num_items);
  if (off <= bound) return testing::AssertionSuccess();
  return testing::AssertionFailure() << Show(got) << " of " << num_items << " items is off by " << off << ", more than "
                                     << bound;
}

TEST_P(LogAddExpTest, NearTheExactLogarithm) {
  Visit([&](auto type) {
    using T = decltype(type);
    for (int kind = 0; kind < static_cast<int>(Kind::kNumKinds); ++kind) {
      for (const size_t size : {size_t{1}, size_t{4}, size_t{130}, size_t{9'001}, size_t{300'007}}) {
        if (SmallSizesOnly() && size > 5000) continue;
        SCOPED_TRACE(testing::Message() << "kind " << kind << ", " << size << " items");
        const std::vector<T> in = Elements<T>(static_cast<Kind>(kind), size, random());
        const std::vector<T> got = Scan(in);
        WideLogarithm sum;
        for (size_t i = 0; i < size; ++i) {
          sum.Add(static_cast<Accumulator<T>>(in[i]));
          if (size > 1000 && i % 997 != 0 && i + 1 != size) continue;
          ASSERT_TRUE(IsNear(got[i], sum, i + 1)) << "item " << i;
        }
        ASSERT_TRUE(IsNear(Reduce(in), sum, size));
      }
    }
  });
}

// Whatever its magnitude; what is finite stays so.
TEST_P(LogAddExpTest, AnElementComesBack) {
  Visit([&](auto type) {
    using T = decltype(type);
    std::vector<T> elements = {std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(), T(0), T(-0.0F)};
    for (int i = 0; i < 200; ++i) {
      elements.push_back(static_cast<T>((random().OneIn(2) ? 1 : -1) * std::exp(80 * random().Uniform() - 40)));
    }
    for (const T x : elements) {
      if (!std::isfinite(static_cast<Accumulator<T>>(x))) continue;
      WideLogarithm sum;
      sum.Add(static_cast<Accumulator<T>>(x));
      const T got = Scan<T>({x})[0];
      ASSERT_TRUE(std::isfinite(static_cast<Accumulator<T>>(got))) << Show(x);
      ASSERT_TRUE(IsNear(got, sum, 1)) << Show(x);
      ASSERT_TRUE(SameBits(Reduce<T>({x}), got)) << Show(x);
    }
  });
}

TEST_P(LogAddExpTest, WhatIsNotFinite) {
  Visit([&](auto type) {
    using T = decltype(type);
    using Limits = std::numeric_limits<T>;
    const T inf = Limits::infinity(), nan = CanonicalNan<T>(), least = Limits::lowest();
    const T two = Scan<T>({T(2)})[0], low = Scan<T>({least})[0];
    EXPECT_TRUE(AreSame(Scan<T>({-inf, -inf, -inf, -inf, -inf}), {-inf, -inf, -inf, -inf, -inf}));
    EXPECT_TRUE(AreSame(Scan<T>({-inf, least, -inf, T(2), least}), {-inf, low, low, two, two}));
    EXPECT_TRUE(AreSame(Scan<T>({T(2), inf, -inf, T(3), inf}), {two, inf, inf, inf, inf}));
    EXPECT_TRUE(AreSame(Scan<T>({-inf, -nan, inf, T(2), -inf}), {-inf, nan, nan, nan, nan}));
    EXPECT_TRUE(AreSame(Scan<T>({T(2), T(2)}, ScanKind::kExclusive), {-inf, two}));
    // On both sides of an element, in every part that there is.
    std::vector<T> in(20'000, -inf);
    const size_t place = random().Below(in.size());
    in[place] = T(2);
    std::vector<T> want(in.size(), two);
    std::fill_n(want.begin(), place, -inf);
    EXPECT_TRUE(AreSame(Scan(in), want)) << "at " << place;
    EXPECT_TRUE(SameBits(Reduce(in), two)) << "at " << place;
    in.back() = nan;
    EXPECT_TRUE(SameBits(Reduce(in), nan));
  });
}

PREFIXD_ON_EVERY_DEVICE(LogAddExpTest, EveryFloatingDType);

}  // namespace
}  // namespace prefixd::conformance
