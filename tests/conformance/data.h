// Input for the conformance suite: sizes, and random arrays on which a wrong answer shows.
#ifndef PREFIXD_TESTS_CONFORMANCE_DATA_H_
#define PREFIXD_TESTS_CONFORMANCE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/types.h"

namespace prefixd::conformance {

// SplitMix64: a seed gives the same numbers everywhere. A failure prints its seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next();
  // Below `bound`, which is not 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  bool OneIn(uint64_t bound) { return Below(bound) == 0; }
  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// PREFIXD_TEST_SEED if it is set, else another number in every process.
uint64_t BaseSeed();

// Whether PREFIXD_TEST_SIZES=small asks for arrays of at most 5,000 elements, for tools that slow a device down.
bool SmallSizesOnly();

// Array sizes: 0, 1, sizes around a warp, sizes around plausible tiles and blocks, and sizes of many tiles.
std::vector<size_t> Sizes();

// The largest size of a few chosen tests: 2^20 elements and a bit, or 5,000 if SmallSizesOnly.
size_t LargeSize();

// A size for which an array that begins anywhere goes through the same kernels as a large one: of 256 KiB and a bit, or
// of whole stages of theirs. 5,000 if SmallSizesOnly.
size_t AnywhereSize(DType dtype, Random& random);

enum class Data {
  kRandom,   // Any finite values: results wrap round or are rounded.
  kSpecial,  // Has extremes, ties, and, for floating point, some of NaN, infinities, zeros and denormals.
  kExact,    // No order of evaluation rounds, overflows or wraps; for MIN and MAX, a long slope to the extremum.
};
inline constexpr int kNumData = 3;
std::string_view Name(Data data);

// num_items elements on which the operator does not settle early: a product of random integers is 0 after a few dozen,
// a bitwise AND sooner, and from there on no mistake would show. Defined for the types of PREFIXD_FOR_EACH_DTYPE.
template <class T>
std::vector<T> MakeInput(Op op, Data data, size_t num_items, Random& random);

// A start for MakeInput's elements: `last`, one of them. In a wider integer type it often lies far outside their range.
template <class In, class Out>
Out MakeStart(Op op, In last, Random& random) {
  const auto start = static_cast<Out>(last);
  if constexpr (sizeof(Out) > sizeof(In) && std::is_integral_v<Out>) {
    // For MIN and MAX, perhaps no element ever beats such a start. So only one in four is outside.
    const bool outside = op == Op::kMin || op == Op::kMax ? random.OneIn(4) : !random.OneIn(4);
    if (outside) return static_cast<Out>(start ^ static_cast<Out>(random.Next() << 8 * sizeof(In)));
  }
  return start;
}

// A value of random bits: any bit pattern may come.
template <class T>
T RandomBits(Random& random);

// A key, or zero of either sign, or a NaN.
template <class T>
T RandomKey(Random& random) {
  T key = random.OneIn(3) ? T{0} : RandomBits<T>(random);
  if constexpr (kIsFloating<T>) {
    if (random.OneIn(5)) key = std::numeric_limits<T>::quiet_NaN();
    if (random.OneIn(5)) key = T(-0.0);
  }
  return key;
}

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_DATA_H_
