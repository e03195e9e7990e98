#include "tests/conformance/data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "tests/conformance/oracle.h"

namespace prefixd::conformance {
namespace {

constexpr size_t kSmall = 5000;

template <class T>
T PickInteger(Random& random) {
  using Limits = std::numeric_limits<T>;
  const T picks[] = {0, 1, static_cast<T>(-1), Limits::min(), Limits::max(), Limits::min() + 1, Limits::max() - 1, 2};
  return picks[random.Below(std::size(picks))];
}

// A value that falls (MIN) or rises (MAX) towards the middle from both sides, so that a scan in either direction
// changes in every tile of its first half.
template <class T>
T Slope(Op op, size_t i, size_t num_items, Random& random) {
  const auto from_middle = static_cast<int64_t>(i < num_items / 2 ? num_items / 2 - i : i - num_items / 2);
  auto height = from_middle * 2 + static_cast<int64_t>(random.Below(4));
  auto top = int64_t{1} << 23;
  if constexpr (sizeof(T) < 4) {  // As gentle as it has to be.
    top = (int64_t{1} << std::numeric_limits<T>::digits) - 1;
    height = height * top / static_cast<int64_t>(num_items + 4);
  }
  return static_cast<T>(op == Op::kMin ? height : top - height);
}

template <class T>
T MakeInteger(Op op, Data data, size_t i, size_t num_items, Random& random) {
  const bool rarely = random.Below(num_items + 1) < 40;  // Forty times an array, however long.
  const auto bit = static_cast<T>(T{1} << random.Below(sizeof(T) * 8 - 1));
  switch (op) {
    case Op::kProd:
      if (data == Data::kSpecial && rarely) return PickInteger<T>(random) | T{1};
      if (random.Below(num_items + 1) == 0) return 2;
      return data == Data::kExact ? (random.OneIn(2) ? T{1} : static_cast<T>(-1)) : RandomBits<T>(random) | T{1};
    case Op::kAnd:
      if (data == Data::kRandom) return RandomBits<T>(random);
      return rarely ? static_cast<T>(~bit) : static_cast<T>(~T{0});
    case Op::kOr:
      if (data == Data::kRandom) return RandomBits<T>(random);
      return rarely ? bit : T{0};
    case Op::kMin:
    case Op::kMax:
      if (data == Data::kExact) return Slope<T>(op, i, num_items, random);
      break;
    default:
      if (data == Data::kExact) return static_cast<T>(random.Below(17)) - T{8};
      break;
  }
  return data == Data::kSpecial ? PickInteger<T>(random) : RandomBits<T>(random);
}

template <class T>
T RandomNan(Random& random) {
  for (;;) {
    const auto infinity = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::infinity());
    const T nan = std::bit_cast<T>(static_cast<BitsOf<T>>(RandomBits<BitsOf<T>>(random) | infinity));
    if (std::isnan(nan)) return nan;
  }
}

template <class T>
T RandomSign(Random& random) {
  return random.OneIn(2) ? T{1} : T{-1};
}

// One of the special values of `kinds`, a set of bits.
template <class T>
T PickSpecial(unsigned kinds, Random& random) {
  for (;;) {
    const auto kind = random.Below(6);
    if ((kinds >> kind & 1) == 0) continue;
    switch (kind) {
      case 0:
        return RandomNan<T>(random);
      case 1:
        return std::numeric_limits<T>::infinity();
      case 2:
        return -std::numeric_limits<T>::infinity();
      case 3:
        return T{0};
      case 4:
        return -T{0};
      default:
        return static_cast<T>(RandomSign<T>(random) * std::numeric_limits<T>::denorm_min() *
                              static_cast<T>(1 + random.Below(1000)));
    }
  }
}

template <class T>
T MakeFinite(Op op, size_t num_items, Random& random) {
  const T sign = RandomSign<T>(random);
  switch (op) {
    case Op::kSum: {
      // Few sums of f16 may be infinite.
      const int exponent = std::is_same_v<T, Float16> ? static_cast<int>(random.Below(20)) - 16
                                                      : static_cast<int>(random.Below(40)) - 20;
      return static_cast<T>(sign * std::ldexp(1 + random.Uniform(), exponent));
    }
    case Op::kProd: {
      // The logarithm of the product walks at random: steps small enough that it stays within a factor of e^10 or so.
      // Narrow floats have no such steps for many items, so most of them are 1.
      const auto num_factors = static_cast<double>(kIsNarrowFloat<T> ? std::min<size_t>(num_items, 500) : num_items);
      if (random.Uniform() * static_cast<double>(num_items) >= num_factors) return sign;
      const double spread = std::min(0.5, 2 / std::sqrt(num_factors + 1));
      return static_cast<T>(sign * (1 + spread * (2 * random.Uniform() - 1)));
    }
    case Op::kLogAddExp:  // As logarithms of probabilities are, but for some that are far below the others.
      return static_cast<T>((random.OneIn(8) ? 90 : 12) * (random.Uniform() - 1) + 3);
    default:
      for (;;) {
        const T any = RandomBits<T>(random);
        if (std::isfinite(any)) return any;
      }
  }
}

template <class T>
void FillExact(Op op, Random& random, std::vector<T>& out) {
  // A sum of nothing but -0 is -0: it shows a device that fills a partial tile with +0.
  if (op == Op::kSum && random.OneIn(6)) {
    std::ranges::fill(out, -T{0});
    return;
  }
  // Half of the arrays lie among the denormals, which must not be flushed to zero.
  const bool denormal = random.OneIn(2);
  const auto scale = static_cast<Accumulator<T>>(denormal ? std::numeric_limits<T>::denorm_min() : T{1});
  const size_t denormal_factor = denormal && !out.empty() ? random.Below(out.size()) : out.size();
  int exponent = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    switch (op) {
      case Op::kSum:
        // At most 2^20 elements of at most 8 make 2^23: representable in f32, in any order.
        out[i] = random.OneIn(8) ? -T{0} : static_cast<T>((static_cast<T>(random.Below(17)) - T{8}) * scale);
        break;
      case Op::kProd: {
        if (i == denormal_factor) {
          out[i] = static_cast<T>(std::numeric_limits<T>::denorm_min() * static_cast<T>(1 + random.Below(100)));
          break;
        }
        // The exponent walks within +-20, so that the product of any stretch stays within +-40. Beside a denormal only
        // the sign changes: halving it might round.
        const int step = denormal ? 0 : static_cast<int>(random.Below(3)) - 1;
        const int bounded = std::abs(exponent + step) > 20 ? 0 : step;
        exponent += bounded;
        out[i] = static_cast<T>(RandomSign<T>(random) * std::ldexp(1.0, bounded));
        break;
      }
      default:
        // Within the bits of the fraction: exact.
        out[i] = static_cast<T>(Slope<T>(op, i, out.size(), random) * scale);
    }
  }
}

}  // namespace

uint64_t Random::Next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t BaseSeed() {
  static const uint64_t seed = [] {
    if (const char* text = std::getenv("PREFIXD_TEST_SEED")) return uint64_t{std::strtoull(text, nullptr, 0)};
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

bool SmallSizesOnly() {
  const char* sizes = std::getenv("PREFIXD_TEST_SIZES");
  return sizes != nullptr && std::string_view(sizes) == "small";
}

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes = {0,    1,    2,    31,    32,    33,    255,   256,   257,  511,
                               513,  1023, 1024, 1025,  2047,  2048,  2049,  4095,  4096, 4097,
                               8191, 8192, 8193, 16383, 16384, 16385, 32769, 100003};
  if (SmallSizesOnly()) std::erase_if(sizes, [](size_t size) { return size > kSmall; });
  return sizes;
}

size_t LargeSize() { return SmallSizesOnly() ? kSmall : (size_t{1} << 20) + 17; }

size_t AnywhereSize(DType dtype, Random& random) {
  if (SmallSizesOnly()) return kSmall;
  const size_t least = (size_t{256} << 10) / SizeOf(dtype);
  return least + (random.OneIn(3) ? random.Below(3) << 14 : random.Below(20000));
}

std::string_view Name(Data data) {
  constexpr std::string_view kNames[kNumData] = {"random", "special", "exact"};
  return kNames[static_cast<int>(data)];
}

template <class T>
T RandomBits(Random& random) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(random.Next() >> 7));
}

template <class T>
std::vector<T> MakeInput(Op op, Data data, size_t num_items, Random& random) {
  std::vector<T> out(num_items);
  if constexpr (std::is_integral_v<T>) {
    for (size_t i = 0; i < num_items; ++i) out[i] = MakeInteger<T>(op, data, i, num_items, random);
    return out;
  } else {
    if (data == Data::kExact) {
      FillExact(op, random, out);
      return out;
    }
    for (T& x : out) x = MakeFinite<T>(op, num_items, random);
    if (data != Data::kSpecial) return out;
    // Not all kinds in every array: one NaN would hide what becomes of the infinities. Sums may take denormals, which
    // lose nothing; a product of one would round.
    unsigned kinds = random.Below(op == Op::kProd ? 32 : 64);
    if (kinds == 0) kinds = 8;
    for (uint64_t count = num_items / (op == Op::kMin || op == Op::kMax ? 4 : 1000) + 2; count > 0; --count) {
      if (num_items > 0) out[random.Below(num_items)] = PickSpecial<T>(kinds, random);
    }
    return out;
  }
}

#define PREFIXD_INSTANTIATE(name, type)    \
  template type RandomBits<type>(Random&); \
  template std::vector<type> MakeInput<type>(Op, Data, size_t, Random&);
PREFIXD_FOR_EACH_DTYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::conformance
