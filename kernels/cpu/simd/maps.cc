// One operator on every item of one array or two: plain loops, of which the compiler makes vectors. So operators have
// no branches, and compute what they do not need.
#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/glue.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// ---- Casts ---------------------------------------------------------------------------------------------------------
// Truncates toward zero, and saturates; a NaN is 0. What is converted is in Out's range, so every machine agrees.
template <class Out, class In>
PREFIXD_INLINE Out Saturated(In x) {
  constexpr bool kSigned = kIsSignedInteger<Out>;
  constexpr int kBits = 8 * sizeof(Out) - kSigned;
  constexpr int kInBits = sizeof(In) == 4 ? 24 : 53;
  constexpr In kBeyond = static_cast<In>(uint64_t{1} << (kBits - 1)) * 2;
  constexpr In kLow = kSigned ? -kBeyond : In{0};
  // The largest In that Out holds. Longer integers hold larger ones, which are handled apart.
  constexpr In kHigh = kBeyond - (kBits > kInBits ? kBeyond / (uint64_t{1} << kInBits) : In{1});
  constexpr Out kMost = static_cast<Out>(~uint64_t{0} >> (64 - kBits));
  // Narrow integers are made of the integers that vectors are converted to.
  using Wide = std::conditional_t<(sizeof(Out) < 4), int32_t, Out>;
  const In number = x == x ? x : In{0};
  const In above = number < kLow ? kLow : number;
  const In within = above > kHigh ? kHigh : above;
  const auto result = static_cast<Out>(static_cast<Wide>(within));
  if constexpr (kBits <= kInBits) return result;
  return number >= kBeyond ? kMost : result;
}

template <class From, class To>
struct Cast {
  using In = From;
  using Out = To;
  explicit Cast(const MapPart& /*part*/) {}
  PREFIXD_INLINE Out operator()(In x) const {
    if constexpr (std::is_floating_point_v<In> && !std::is_floating_point_v<Out>) return Saturated<Out>(x);
    return Canonical(static_cast<Out>(x));
  }
};

// ---- Of one array --------------------------------------------------------------------------------------------------
template <class T>
struct Affine {
  using In = T;
  using Out = T;
  explicit Affine(const MapPart& part) : a(As<T>(part.a)), b(As<T>(part.b)) {}
  PREFIXD_INLINE T operator()(T x) const { return Canonical(static_cast<T>(a * static_cast<Wraps<T>>(x) + b)); }
  const Wraps<T> a, b;
};

template <class T>
struct Abs {
  using In = T;
  using Out = T;
  explicit Abs(const MapPart& /*part*/) {}
  PREFIXD_INLINE T operator()(T x) const {
    if constexpr (std::is_same_v<T, float>) {
      return Canonical(__builtin_fabsf(x));
    } else if constexpr (std::is_same_v<T, double>) {
      return Canonical(__builtin_fabs(x));
    } else {
      const auto bits = static_cast<Wraps<T>>(x);
      return static_cast<T>(x < 0 ? 0 - bits : bits);
    }
  }
};

template <class T>
struct Compare {
  using In = T;
  using Out = uint8_t;
  explicit Compare(const MapPart& part) : low(As<T>(part.a)), high(As<T>(part.b)), outside(part.outside) {}
  PREFIXD_INLINE Out operator()(T x) const { return static_cast<Out>(((low <= x) & (x <= high)) ^ outside); }
  const T low, high;
  const uint8_t outside;
};

// ---- Of two --------------------------------------------------------------------------------------------------------
template <class T, Comparison kComparison>
struct CompareArrays {
  using In = T;
  using Out = uint8_t;
  static PREFIXD_INLINE Out Of(T x, T y) {
    if constexpr (kComparison == Comparison::kLess) return x < y;
    if constexpr (kComparison == Comparison::kLessEqual) return x <= y;
    if constexpr (kComparison == Comparison::kEqual) return x == y;
    if constexpr (kComparison == Comparison::kNotEqual) return x != y;
  }
};

template <class T>
struct Add {
  using In = T;
  using Out = T;
  static PREFIXD_INLINE T Of(T x, T y) { return Canonical(static_cast<T>(Wraps<T>{x} + y)); }
};

template <class T>
struct Subtract {
  using In = T;
  using Out = T;
  static PREFIXD_INLINE T Of(T x, T y) { return Canonical(static_cast<T>(Wraps<T>{x} - y)); }
};

template <class T>
struct Multiply {
  using In = T;
  using Out = T;
  static PREFIXD_INLINE T Of(T x, T y) { return Canonical(static_cast<T>(Wraps<T>{x} * y)); }
};

// Integers of up to 32 bits divide as floats of twice as many: a quotient is at least 1 / divisor away from the next
// whole number, and no rounding takes it there.
template <class T>
struct Divide {
  using In = T;
  using Out = T;
  static PREFIXD_INLINE T Of(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return Canonical(x / y);
    } else {
      const bool negates = kIsSignedInteger<T> && y == static_cast<T>(-1);  // The lowest by -1 would overflow.
      const T divisor = ((y == 0) | negates) ? T{1} : y;
      T quotient;
      if constexpr (sizeof(T) == 8) {
        quotient = x / divisor;
      } else {
        using Real = std::conditional_t<sizeof(T) == 4, double, float>;
        using Wide = std::conditional_t<sizeof(T) == 4, T, int32_t>;
        quotient = static_cast<T>(static_cast<Wide>(static_cast<Real>(x) / static_cast<Real>(divisor)));
      }
      const T nonzero = negates ? static_cast<T>(0 - static_cast<Wraps<T>>(x)) : quotient;
      return y == 0 ? T{0} : nonzero;
    }
  }
};

// The minimum and maximum of IEEE 754-2019. Floats that compare equal have the same bits or are zeros, whose signs
// decide.
template <class T, bool kSmallest>
struct Extremum {
  using In = T;
  using Out = T;
  static PREFIXD_INLINE T Of(T x, T y) {
    const T first = kSmallest == (x < y) ? x : y;
    if constexpr (!std::is_floating_point_v<T>) {
      return first;
    } else {
      const auto a = __builtin_bit_cast(Unsigned<T>, x);
      const auto b = __builtin_bit_cast(Unsigned<T>, y);
      const T zero = __builtin_bit_cast(T, static_cast<Unsigned<T>>(kSmallest ? a | b : a & b));
      const T number = x == y ? zero : first;
      return ((x != x) | (y != y)) ? kNan<T> : number;
    }
  }
};
template <class T>
using Minimum = Extremum<T, true>;
template <class T>
using Maximum = Extremum<T, false>;

// ---- The loops -----------------------------------------------------------------------------------------------------
template <class F>
void MapOne(const MapPart& part) {
  const auto* const in = static_cast<const typename F::In*>(part.in);
  auto* const out = static_cast<typename F::Out*>(part.out);
  const uint64_t num_items = part.num_items;
  const F f(part);
  PREFIXD_ITEMS_ARE_INDEPENDENT
  for (uint64_t i = 0; i < num_items; ++i) out[i] = f(in[i]);
}

template <class F>
void MapTwo(const MapPart& part) {
  const auto* const in = static_cast<const typename F::In*>(part.in);
  const auto* const other = static_cast<const typename F::In*>(part.other);
  auto* const out = static_cast<typename F::Out*>(part.out);
  const uint64_t num_items = part.num_items;
  PREFIXD_ITEMS_ARE_INDEPENDENT
  for (uint64_t i = 0; i < num_items; ++i) out[i] = F::Of(in[i], other[i]);
}

// Does with narrow floats what kLoop does with the f32 that they are: block by block, in the first-level cache. In,
// Out, or both are narrow; one that is not is kLoop's own. A second array is of In.
template <class In, class Out, MapLoop kLoop>
void MapNarrow(const MapPart& part) {
  constexpr uint64_t kItems = 512;
  alignas(64) float in_items[kItems];
  alignas(64) float other_items[kItems];
  alignas(64) float out_items[kItems];
  for (uint64_t i = 0; i < part.num_items; i += kItems) {
    MapPart block = part;
    block.num_items = part.num_items - i < kItems ? part.num_items - i : kItems;
    const int count = static_cast<int>(block.num_items);
    const auto load = [&](const void* items, float* buffer) __attribute__((always_inline))->const void* {
      const In* const from = static_cast<const In*>(items) + i;
      if constexpr (kIsNarrowFloat<In>) {
        Convert(from, count, buffer);
        return buffer;
      } else {
        return from;
      }
    };
    block.in = load(part.in, in_items);
    if (part.other != nullptr) block.other = load(part.other, other_items);
    Out* const to = static_cast<Out*>(part.out) + i;
    block.out = to;
    if constexpr (kIsNarrowFloat<Out>) block.out = out_items;
    kLoop(block);
    if constexpr (kIsNarrowFloat<Out>) Convert(out_items, count, to);
  }
}

// Integers and f64 are rounded once, to the narrow type.
template <class From, class N>
void CastToNarrow(const MapPart& part) {
  const auto* const in = static_cast<const From*>(part.in);
  auto* const out = static_cast<N*>(part.out);
  for (uint64_t i = 0; i < part.num_items; ++i) out[i] = static_cast<N>(in[i]);
}

void StreamMap(MapLoop loop, const MapPart& part, size_t in_bytes, size_t out_bytes) {
  const auto* const in = static_cast<const uint8_t*>(part.in);
  const auto* const other = static_cast<const uint8_t*>(part.other);
  InBlocks(part.out, out_bytes, part.num_items, [&](uint64_t i, uint64_t count, void* to) {
    MapPart block = part;
    block.in = in + i * in_bytes;
    if (other != nullptr) block.other = other + i * in_bytes;
    block.out = to;
    block.num_items = count;
    loop(block);
  });
}

// ---- The table -----------------------------------------------------------------------------------------------------
// Integers are cast alike where the sign shows in no bit: the sign of what comes out, and of what only loses bits.
template <class In, class Out>
constexpr MapLoop CastOf() {
  if constexpr (kIsNarrowFloat<In> || (kIsNarrowFloat<Out> && std::is_same_v<In, float>)) {
    return MapNarrow<In, Out, CastOf<float, Accumulator<Out>>()>;
  } else if constexpr (kIsNarrowFloat<Out>) {
    return CastToNarrow<In, Out>;
  } else {
    constexpr bool kIntegers = !std::is_floating_point_v<In> && !std::is_floating_point_v<Out>;
    using From = std::conditional_t<kIntegers && sizeof(Out) <= sizeof(In), BitsOrFloat<In>, In>;
    using To = std::conditional_t<kIntegers, BitsOrFloat<Out>, Out>;
    return MapOne<Cast<From, To>>;
  }
}

template <class T>
constexpr MapLoop AbsOf() {
  if constexpr (std::is_unsigned_v<T>) return MapOne<Cast<T, T>>;
  return MapOne<Abs<T>>;
}

// A loop on T, through which elements of In go.
template <class In, class Out, MapLoop kLoop>
constexpr MapLoop Through() {
  if constexpr (kIsNarrowFloat<In>) {
    return MapNarrow<In, Out, kLoop>;
  } else {
    return kLoop;
  }
}

template <class In>
constexpr void SetLoops(MapTable* table) {
  constexpr int kType = static_cast<int>(kDTypeOf<In>);
  using T = Accumulator<In>;
  using Bits = BitsOrFloat<T>;
#define PREFIXD_SET_CAST(name, type) table->cast[kType][static_cast<int>(DType::name)] = CastOf<In, type>();
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET_CAST)
#undef PREFIXD_SET_CAST
  const auto compare = [table](Comparison comparison, MapLoop loop) {
    table->compare_arrays[static_cast<int>(comparison)][kType] = loop;
  };
  compare(Comparison::kLess, Through<In, uint8_t, MapTwo<CompareArrays<T, Comparison::kLess>>>());
  compare(Comparison::kLessEqual, Through<In, uint8_t, MapTwo<CompareArrays<T, Comparison::kLessEqual>>>());
  compare(Comparison::kEqual, Through<In, uint8_t, MapTwo<CompareArrays<Bits, Comparison::kEqual>>>());
  compare(Comparison::kNotEqual, Through<In, uint8_t, MapTwo<CompareArrays<Bits, Comparison::kNotEqual>>>());
  const auto set = [table](MapOp op, MapLoop loop) { table->of[static_cast<int>(op)][kType] = loop; };
  set(MapOp::kAffine, Through<In, In, MapOne<Affine<Bits>>>());
  set(MapOp::kAbs, Through<In, In, AbsOf<T>()>());
  set(MapOp::kCompare, Through<In, uint8_t, MapOne<Compare<T>>>());
  set(MapOp::kAdd, Through<In, In, MapTwo<Add<Bits>>>());
  set(MapOp::kSubtract, Through<In, In, MapTwo<Subtract<Bits>>>());
  set(MapOp::kMultiply, Through<In, In, MapTwo<Multiply<Bits>>>());
  set(MapOp::kDivide, Through<In, In, MapTwo<Divide<T>>>());
  set(MapOp::kMinimum, Through<In, In, MapTwo<Minimum<T>>>());
  set(MapOp::kMaximum, Through<In, In, MapTwo<Maximum<T>>>());
}

constexpr MapTable MakeTable() {
  MapTable table = {};
#define PREFIXD_SET(name, type) SetLoops<type>(&table);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  table.stream = StreamMap;
  return table;
}

}  // namespace

constinit const MapTable kMaps = MakeTable();

}  // namespace prefixd::cpu::PREFIXD_ISA
