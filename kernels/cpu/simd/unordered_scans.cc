// Scan and reduce where every order gives the same bits: integers by every operator, and the smallest or largest float.
// Scans in vectors are here; those without are in scan_runs.h, those of many arrays in array_scans.h, reduces in
// unordered_reduces.h.
#include "kernels/cpu/simd/tables.h"

#include "kernels/cpu/simd/array_scans.h"
#include "kernels/cpu/simd/arrays.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/each_scan.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lane_operators.h"
#include "kernels/cpu/simd/scan_runs.h"
#include "kernels/cpu/simd/unordered_reduces.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// ---- Scan ----------------------------------------------------------------------------------------------------------

// Sets the lanes that a shift left zero to the operator's identity: the first kCount of every kPeriod.
template <class O, int kCount, int kPeriod, class V>
PREFIXD_INLINE V WithIdentity(V v) {
  using T = Lane<V>;
  if constexpr (O::template kIdentity<T> == 0) {
    return v;
  } else {
    constexpr auto kFrom = [](int i) { return i % kPeriod < kCount ? i : kLanes<T> + i; };
    return v | Shuffle<kFrom>(Splat(O::template kIdentity<T>), V{});
  }
}

template <class O, int kCount, class V>
PREFIXD_INLINE V StepInBlocks(V v) {
  constexpr int kSize = sizeof(Lane<V>);
  if constexpr (kCount * kSize < kBlockBytes) {
    const V before = WithIdentity<O, kCount, kBlockBytes / kSize>(ShiftInBlocks<kCount * kSize>(v));
    return StepInBlocks<O, 2 * kCount>(O::Of(before, v));
  } else {
    return v;
  }
}

template <class O, int kCount, class V>
PREFIXD_INLINE V ShiftBlocksUp(V v) {
  return WithIdentity<O, kCount * kBlockBytes / static_cast<int>(sizeof(Lane<V>)), kLanes<Lane<V>>>(
      ShiftBlocks<kCount>(v));
}

// The inclusive scan of the lanes of one vector.
template <class O, class V>
PREFIXD_INLINE V ScanLanes(V v) {
  v = StepInBlocks<O, 1>(v);
  if constexpr (kBlocks > 1) {
    constexpr int kPerBlock = kBlockBytes / static_cast<int>(sizeof(Lane<V>));
    constexpr auto kLastOfBlock = [](int i) { return i | (kPerBlock - 1); };
    V before = ShiftBlocksUp<O, 1>(Shuffle<kLastOfBlock>(v, v));
    if constexpr (kBlocks > 2) {
      before = O::Of(before, ShiftBlocksUp<O, 1>(before));
      before = O::Of(before, ShiftBlocksUp<O, 2>(before));
    }
    v = O::Of(before, v);
  }
  return v;
}

// Makes what was scanned lane by lane, four vectors that follow one another, the scan behind *carry, which is in all
// lanes, and *carry what is behind it.
template <class O, class V>
PREFIXD_INLINE void JoinVectors(V (&v)[4], bool exclusive, V* carry) {
  const V t0 = SplatLast(v[0]);
  const V t01 = O::Of(t0, SplatLast(v[1]));
  const V t2 = SplatLast(v[2]);
  const V t0123 = O::Of(t01, O::Of(t2, SplatLast(v[3])));
  v[0] = O::Of(*carry, v[0]);
  v[1] = O::Of(*carry, O::Of(t0, v[1]));
  v[2] = O::Of(*carry, O::Of(t01, v[2]));
  v[3] = O::Of(*carry, O::Of(O::Of(t01, t2), v[3]));
  if (exclusive) {
    v[3] = ShiftIn(v[2], v[3]);
    v[2] = ShiftIn(v[1], v[2]);
    v[1] = ShiftIn(v[0], v[1]);
    v[0] = ShiftIn(*carry, v[0]);
  }
  *carry = O::Of(*carry, t0123);  // The only step that waits for the one before.
}

// Scans items behind `before`, a key, and returns the key of what follows. With kReverse the last item comes first. in
// may be out. `next` is fetched meanwhile.
template <class O, class Keys, bool kReverse, bool kStream>
__attribute__((noinline)) typename Keys::Key ScanItems(const typename Keys::Key* in, typename Keys::Key* out,
                                                       uint64_t num_items, bool exclusive, typename Keys::Key before,
                                                       Keys keys, const void* next) {
  using T = typename Keys::Key;
  using V = Vector<T>;
  constexpr uint64_t kL = kLanes<T>;
  // Where the kL items from i on lie, in the order of the scan.
  const auto place = [=](uint64_t i) { return kReverse ? num_items - kL - i : i; };
  const auto load = [=](uint64_t i) __attribute__((always_inline)) {
    const V v = Load(in + place(i));
    return kReverse ? Reversed(v) : v;
  };
  const auto write = [=](uint64_t i, V v) __attribute__((always_inline)) {
    StoreOrStream<kStream>(out + place(i), kReverse ? Reversed(v) : v);
  };
  V carry = Splat(before);
  [[maybe_unused]] V item = keys.ElementOf(carry);  // In its place where Keys::kTriesItems.
  uint64_t i = 0;
  for (; i + 4 * kL <= num_items; i += 4 * kL) {
    Fetch<4 * kVectorBytes>(static_cast<const T*>(next) + (kReverse ? num_items - 4 * kL - i : i));
    V v[4];
    for (int k = 0; k < 4; ++k) v[k] = load(i + k * kL);
    if constexpr (Keys::kTriesItems) {
      if (!Keys::NeedKeys(v[0], v[1], v[2], v[3], item)) {
        V largest = keys.Flipped(item);
        for (int k = 0; k < 4; ++k) v[k] = ScanLanes<LargestFloat>(keys.Flipped(v[k]));
        JoinVectors<LargestFloat>(v, exclusive, &largest);
        for (int k = 0; k < 4; ++k) write(i + k * kL, keys.Flipped(v[k]));
        item = keys.Flipped(largest);
        continue;
      }
      carry = keys.KeyOf(item);
    }
    for (int k = 0; k < 4; ++k) v[k] = ScanLanes<O>(keys.KeyOf(v[k]));
    JoinVectors<O>(v, exclusive, &carry);
    for (int k = 0; k < 4; ++k) write(i + k * kL, keys.ElementOf(v[k]));
    if constexpr (Keys::kTriesItems) item = keys.ElementOf(carry);
  }
  if constexpr (Keys::kTriesItems) carry = keys.KeyOf(item);
  for (; i + kL <= num_items; i += kL) {
    const V v = O::Of(carry, ScanLanes<O>(keys.KeyOf(load(i))));
    write(i, keys.ElementOf(exclusive ? ShiftIn(carry, v) : v));
    carry = SplatLast(v);
  }
  T last = carry[0];
  for (; i < num_items; ++i) {
    const uint64_t at = kReverse ? num_items - 1 - i : i;
    const T value = O::Of(last, keys.KeyOf(in[at]));
    out[at] = keys.ElementOf(exclusive ? last : value);
    last = value;
  }
  return last;
}

// Scans a part that is converted on the way, through a buffer that stays in the first-level cache.
template <class In, class Out, bool kReverse, bool kStream, class O, class Keys>
typename Keys::Key ScanConverted(const ScanPart& part, typename Keys::Key before, Keys keys) {
  using T = typename Keys::Key;
  constexpr int kItems = 2048 / sizeof(T);  // Short: while one is scanned, loads of the next can begin.
  alignas(kVectorBytes) Accumulator<Out> buffer[kItems];
  const auto* const in = static_cast<const In*>(part.in);
  const auto* next = static_cast<const In*>(part.next);
  // Where there is no other part to fetch, this one's items a little ahead: that stages follow each other backwards, in
  // which items stand forwards, is not what the hardware foresees.
  constexpr int kAhead = 8192 / sizeof(In);
  if (kReverse && next == in) next -= kAhead;
  for (uint64_t done = 0; done < part.num_items; done += kItems) {
    const uint64_t left = part.num_items - done;
    const int count = left < kItems ? static_cast<int>(left) : kItems;
    const uint64_t first = kReverse ? left - count : done;
    Convert(in + first, count, buffer);
    Fetch<kItems * sizeof(In)>(next + first);
    auto* const items = reinterpret_cast<T*>(buffer);
    if constexpr (kIsNarrowFloat<Out>) {
      before = ScanItems<O, Keys, kReverse, false>(items, items, count, part.exclusive, before, keys, /*next=*/buffer);
      Convert(buffer, count, static_cast<Out*>(part.out) + first);
    } else {
      before = ScanItems<O, Keys, kReverse, kStream>(items, static_cast<T*>(part.out) + first, count, part.exclusive,
                                                     before, keys, /*next=*/buffer);
    }
  }
  return before;
}

template <class In, class Out, bool kReverse, bool kStream, class O, class Keys>
typename Keys::Key ScanPartOf(const ScanPart& part, typename Keys::Key before, Keys keys) {
  using T = typename Keys::Key;
  if constexpr (sizeof(T) == 8 && !kIsFloating<Out>) {
    if (!VectorsPay<O, std::is_same_v<In, Out>, kReverse, kStream>(part.exclusive)) {
      return ScanRunsByBits<In, Out, kReverse, O>(part, before, keys);
    }
  }
  if constexpr (std::is_same_v<In, Out> && !kIsNarrowFloat<Out>) {
    return ScanItems<O, Keys, kReverse, kStream>(static_cast<const T*>(part.in), static_cast<T*>(part.out),
                                                 part.num_items, part.exclusive, before, keys, part.next);
  } else {
    return ScanConverted<In, Out, kReverse, kStream, O>(part, before, keys);
  }
}

template <class In, class Out, class O, class Keys>
void Scan(const ScanPart& part, void* prefix, Keys keys) {
  using T = typename Keys::Key;
  auto* const last = &static_cast<Prefix<Accumulator<Out>>*>(prefix)->last;
  const T before = keys.KeyOf(BitsOf<T>(last));
  // Vectors of a reverse scan are counted from the end.
  const bool stream = !kIsNarrowFloat<Out> && part.stream &&
                      IsAligned(static_cast<Out*>(part.out) + (part.reverse ? part.num_items : 0));
  T key;
  if (part.reverse) {
    key = stream ? ScanPartOf<In, Out, true, true, O>(part, before, keys)
                 : ScanPartOf<In, Out, true, false, O>(part, before, keys);
  } else {
    key = stream ? ScanPartOf<In, Out, false, true, O>(part, before, keys)
                 : ScanPartOf<In, Out, false, false, O>(part, before, keys);
  }
  const T bits = keys.ElementOf(key);
  __builtin_memcpy(last, &bits, sizeof(bits));
  if (stream) FinishStreaming();
}

// ---- The tables ----------------------------------------------------------------------------------------------------
template <class In, class Out, Op kOp>
void ScanOf(const ScanPart& part, void* prefix) {
  Scan<In, Out, decltype(OperatorOf<kOp>())>(part, prefix, KeysOf<kOp, Accumulator<Out>>());
}

template <class In, class Out, Op kOp>
void ScanArraysOf(const ScanPart& part, const PartArrays& arrays, const void* start) {
  ScanShared<In, Out, decltype(OperatorOf<kOp>())>(part, arrays, start, KeysOf<kOp, Accumulator<Out>>());
}

template <class In, class Out, Op kOp>
void ReduceOf(const ScanPart& part, void* value) {
  const void* const in = part.in;
  const uint64_t num_items = part.num_items;
  Accumulator<Out> result;
  if constexpr (!std::is_same_v<In, Out> && kOp == Op::kSum) {
    result = static_cast<Out>(SumWide(static_cast<const In*>(in), num_items));
  } else if constexpr (!std::is_same_v<In, Out> && kOp == Op::kProd) {
    result = ProductWide<In, Out>(static_cast<const In*>(in), num_items);
  } else {  // The other operators do not care whether items are converted before or after.
    const auto keys = KeysOf<kOp, In>();
    using T = typename decltype(KeysOf<kOp, In>())::Key;
    const T key = ReduceItems<decltype(OperatorOf<kOp>())>(static_cast<const T*>(in), num_items, keys);
    const T bits = keys.ElementOf(key);
    In item;
    __builtin_memcpy(&item, &bits, sizeof(bits));
    result = static_cast<Accumulator<Out>>(item);
  }
  __builtin_memcpy(value, &result, sizeof(result));
}

template <class Value, Op kOp>
void AddOf(const void* values, uint64_t num_values, void* prefix) {
  const auto keys = KeysOf<kOp, Value>();
  using T = typename decltype(KeysOf<kOp, Value>())::Key;
  Value* const last = &static_cast<Prefix<Value>*>(prefix)->last;
  T key = keys.KeyOf(BitsOf<T>(last));
  for (uint64_t i = 0; i < num_values; ++i) {
    key = decltype(OperatorOf<kOp>())::Of(key, keys.KeyOf(BitsOf<T>(static_cast<const Value*>(values) + i)));
  }
  const T bits = keys.ElementOf(key);
  __builtin_memcpy(last, &bits, sizeof(bits));
}

template <class In, class Out, Op kOp>
void ReduceArraysOf(const ScanPart& part, const PartArrays& arrays, const void* start, const void* empty) {
  const auto keys = KeysOf<kOp, Accumulator<Out>>();
  using T = typename decltype(KeysOf<kOp, Accumulator<Out>>())::Key;
  const T before = keys.KeyOf(BitsOf<T>(start));
  ReduceEach<In, Out>(
      part, arrays, empty, [&](const ScanPart& array) __attribute__((always_inline)) {
        T bits;
        ReduceOf<In, Out, kOp>(array, &bits);
        bits = keys.ElementOf(decltype(OperatorOf<kOp>())::Of(before, keys.KeyOf(bits)));
        return static_cast<Out>(BitsOf<Accumulator<Out>>(&bits));
      });
}

template <class In, Op kOp>
uint64_t ExtremumOf(const void* in, uint64_t num_items) {
  return IndexOfLargest(in, num_items, KeysOf<kOp, In>());
}

constexpr ScanTable MakeScans() {
  ScanTable table = {};
  ForEachScan([&]<class In, class Out, Op kOp>() {
    if constexpr (!IsOrdered(kDTypeOf<Out>, kOp)) {
      table.of[static_cast<int>(kDTypeOf<In>)][static_cast<int>(kDTypeOf<Out>)][static_cast<int>(kOp)] = {
          ReduceOf<In, Out, kOp>, AddOf<Accumulator<Out>, kOp>, ScanOf<In, Out, kOp>, ScanArraysOf<In, Out, kOp>,
          ReduceArraysOf<In, Out, kOp>};
    }
  });
  return table;
}

constexpr ExtremumTable MakeExtrema() {
  ExtremumTable table = {};
#define PREFIXD_SET(name, type)                                          \
  table.min[static_cast<int>(DType::name)] = ExtremumOf<type, Op::kMin>; \
  table.max[static_cast<int>(DType::name)] = ExtremumOf<type, Op::kMax>;
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const ScanTable kUnorderedScans = MakeScans();
constinit const ExtremumTable kExtrema = MakeExtrema();

}  // namespace prefixd::cpu::PREFIXD_ISA
