// Sums of doubles without any rounding, to say how far off others are: a superaccumulator.
#ifndef PREFIXD_TESTS_CONFORMANCE_EXACT_SUM_H_
#define PREFIXD_TESTS_CONFORMANCE_EXACT_SUM_H_

#include <array>
#include <cmath>
#include <cstdint>

namespace prefixd::conformance {

// Takes up to 2^30 finite numbers.
class ExactSum {
 public:
  void Add(double x) {
    int exponent = 0;
    const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(x, &exponent), 53));  // |x| = mantissa * 2^place.
    const int place = exponent - 53 + kLowest;
    const auto magnitude = static_cast<unsigned __int128>(mantissa < 0 ? -mantissa : mantissa) << place % kLimbBits;
    for (int i = 0; i < 3; ++i) {
      const auto part = static_cast<int64_t>(static_cast<uint32_t>(magnitude >> (kLimbBits * i)));
      limbs_[place / kLimbBits + i] += mantissa < 0 ? -part : part;
    }
  }

  // The sum, off by an epsilon of itself.
  long double Value() const {
    auto limbs = Carried(limbs_);
    const bool is_negative = limbs.back() < 0;
    if (is_negative) {
      for (int64_t& limb : limbs) limb = -limb;
      limbs = Carried(limbs);
    }
    long double value = 0;
    for (size_t i = limbs.size(); i-- > 0;) {
      value += std::ldexp(static_cast<long double>(limbs[i]), static_cast<int>(i) * kLimbBits - kLowest);
    }
    return is_negative ? -value : value;
  }

 private:
  static constexpr int kLimbBits = 32;
  static constexpr int kLowest = 1074 + 53;  // Also the mantissa of the least denormal has its place.
  using Limbs = std::array<int64_t, (kLowest + 1024) / kLimbBits + 4>;

  // Each limb but the last from 0 to 2^32 - 1.
  static Limbs Carried(Limbs limbs) {
    for (size_t i = 0; i + 1 < limbs.size(); ++i) {
      limbs[i + 1] += limbs[i] >> kLimbBits;
      limbs[i] &= (int64_t{1} << kLimbBits) - 1;
    }
    return limbs;
  }

  Limbs limbs_ = {};
};

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_EXACT_SUM_H_
