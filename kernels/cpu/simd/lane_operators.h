// Operators for which every order of combination gives the same, on the lanes of vectors and on single values.
//
// Each works on keys: integers made of the elements' bits so that one operator does for several. Min is max of keys
// whose order is turned round, and is or of keys whose bits are turned; floats are ordered by integers. So a type has
// five operators to compile, not seven for signed and seven for unsigned.
#ifndef PREFIXD_KERNELS_CPU_SIMD_LANE_OPERATORS_H_
#define PREFIXD_KERNELS_CPU_SIMD_LANE_OPERATORS_H_

#include "kernels/cpu/simd/vector.h"
#include "kernels/types.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

template <class T>
constexpr bool kIsSignedLane = T(-1) < T(0);
template <class T>
constexpr T kTopBit = static_cast<T>(Unsigned<T>{1} << (8 * sizeof(T) - 1));
template <class T>
constexpr T kLowest = kIsSignedLane<T> ? kTopBit<T> : T{0};

// ---- Operators on keys: on two vectors, or on two scalars ----------------------------------------------------------
struct Add {
  template <class T>
  static constexpr T kIdentity = 0;
  template <class V>
  static PREFIXD_INLINE V Of(V a, V b) {
    return static_cast<V>(a + b);
  }
};
struct Multiply {
  template <class T>
  static constexpr T kIdentity = 1;
  template <class V>
  static PREFIXD_INLINE V Of(V a, V b) {
    if constexpr (std::is_same_v<V, uint16_t>) return static_cast<V>(uint32_t{a} * b);  // int would overflow.
    return static_cast<V>(a * b);
  }
};
struct BitOr {
  template <class T>
  static constexpr T kIdentity = 0;
  template <class V>
  static PREFIXD_INLINE V Of(V a, V b) {
    return static_cast<V>(a | b);
  }
};
struct BitAnd {
  template <class V>
  static PREFIXD_INLINE V Of(V a, V b) {
    return static_cast<V>(a & b);
  }
};
struct BitXor {
  template <class T>
  static constexpr T kIdentity = 0;
  template <class V>
  static PREFIXD_INLINE V Of(V a, V b) {
    return static_cast<V>(a ^ b);
  }
};
struct Largest {
  template <class T>
  static constexpr T kIdentity = kLowest<T>;
  template <class V>
  static PREFIXD_INLINE V Of(V a, V b) {
    return a > b ? a : b;
  }
};

// The float whose bits T has, and the bits of infinity.
template <class T>
using FloatOf = std::conditional_t<sizeof(T) == 4, float, double>;
template <class T>
constexpr T kInfinity = sizeof(T) == 4 ? static_cast<T>(0x7f800000) : static_cast<T>(0x7ff0000000000000);

// The larger of two floats that need no keys (FloatKeys), by their bits.
struct LargestFloat {
  template <class T>
  static constexpr T kIdentity = kTopBit<T> | kInfinity<T>;
  template <class V>
  static PREFIXD_INLINE V Of(V a, V b) {
    using F = Vector<FloatOf<Lane<V>>>;
    const F x = reinterpret_cast<F>(a);
    const F y = reinterpret_cast<F>(b);
    return reinterpret_cast<V>(x > y ? x : y);
  }
};

// ---- Keys ----------------------------------------------------------------------------------------------------------
// Elements are their own keys.
template <class T>
struct Plain {
  using Key = T;
  static constexpr bool kTriesItems = false;
  template <class V>
  PREFIXD_INLINE V KeyOf(V v) const {
    return v;
  }
  template <class V>
  PREFIXD_INLINE V ElementOf(V key) const {
    return key;
  }
};

// Some bits are turned.
template <class T>
struct Turned {
  using Key = T;
  static constexpr bool kTriesItems = false;
  T mask;
  template <class V>
  PREFIXD_INLINE V KeyOf(V v) const {
    return static_cast<V>(v ^ mask);
  }
  template <class V>
  PREFIXD_INLINE V ElementOf(V key) const {
    return static_cast<V>(key ^ mask);
  }
};

// The bits of a float as a signed integer of the same order, -0 before +0; the whole order is turned round if mask is
// -1. A NaN is the largest key in either order, and comes out canonical.
template <class F>
struct FloatKeys {
  using T = Signed<F>;
  using Key = T;
  // AVX-512 compares integers of any length as fast as floats, and all compare those of 16 bits fast.
  static constexpr bool kTriesItems = kVectorBytes < 64 && !kIsNarrowFloat<F>;
  T mask;

  static constexpr T kMagnitude = static_cast<T>(~kTopBit<T>);
  static constexpr T kInfinite = __builtin_bit_cast(T, std::numeric_limits<F>::infinity());
  static constexpr T kNan = __builtin_bit_cast(T, std::numeric_limits<F>::quiet_NaN());

  template <class V>
  PREFIXD_INLINE V KeyOf(V bits) const {
    const V key = static_cast<V>(((bits >> (8 * sizeof(T) - 1)) & kMagnitude) ^ bits ^ mask);
    return (bits & kMagnitude) > kInfinite ? static_cast<V>(kMagnitude - (key ^ key)) : key;
  }
  template <class V>
  PREFIXD_INLINE V ElementOf(V key) const {
    const V turned = static_cast<V>(key ^ mask);
    const V bits = static_cast<V>(((turned >> (8 * sizeof(T) - 1)) & kMagnitude) ^ turned);
    return (bits & kMagnitude) > kInfinite ? static_cast<V>(kNan - (key ^ key)) : bits;
  }

  // Where there is neither a NaN nor a -0, items need no keys: the machine's own comparison is the order. The largest
  // of the flipped items is the flipped extremum; flipped twice, an item is itself.
  template <class V>
  PREFIXD_INLINE V Flipped(V bits) const {
    return bits ^ (mask & kTopBit<T>);
  }
  // Whether any of the items of some vectors does.
  template <class... V>
  static PREFIXD_INLINE bool NeedKeys(V... bits) {
    const auto needs_key = [](auto v) __attribute__((always_inline)) {
      const auto item = reinterpret_cast<Vector<F>>(v);
      return (item != item) | (v == Splat(kTopBit<T>));
    };
    return Bits((needs_key(bits) | ...)) != 0;
  }
};

// ---- Each operator of the contract, on an element type, as an operator on keys
// ---------------------------------------
template <Op kOp, class T>
constexpr auto KeysOf() {
  if constexpr (kIsFloating<T>) {
    return FloatKeys<T>{static_cast<Signed<T>>(kOp == Op::kMin ? -1 : 0)};
  } else if constexpr (kOp == Op::kMin || kOp == Op::kMax) {
    using K = Ordered<T>;
    const K order = kIsSignedLane<K> == kIsSignedLane<T> ? K{0} : kTopBit<K>;
    return Turned<K>{static_cast<K>(kOp == Op::kMin ? ~order : order)};
  } else if constexpr (kOp == Op::kAnd) {
    return Turned<Unsigned<T>>{static_cast<Unsigned<T>>(-1)};
  } else if constexpr (kOp == Op::kOr) {
    return Turned<Unsigned<T>>{0};
  } else {
    static_assert(kOp == Op::kSum || kOp == Op::kProd || kOp == Op::kXor);
    return Plain<Unsigned<T>>{};
  }
}

template <Op kOp>
constexpr auto OperatorOf() {
  if constexpr (kOp == Op::kSum) {
    return Add{};
  } else if constexpr (kOp == Op::kProd) {
    return Multiply{};
  } else if constexpr (kOp == Op::kMin || kOp == Op::kMax) {
    return Largest{};
  } else if constexpr (kOp == Op::kXor) {
    return BitXor{};
  } else {
    static_assert(kOp == Op::kAnd || kOp == Op::kOr);
    return BitOr{};
  }
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_LANE_OPERATORS_H_
