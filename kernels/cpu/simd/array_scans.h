// Scans of arrays that stand one behind the other, where every order gives the same bits. Short arrays share vectors.
//
// An item's rank is its place in its array. A step of the scan takes in what is some lanes before, where the rank is at
// least that; so no lane takes in what belongs to the array before its own. No step asks for a rank that is larger than
// a vector has lanes, so larger ones may be given as that.
#ifndef PREFIXD_KERNELS_CPU_SIMD_ARRAY_SCANS_H_
#define PREFIXD_KERNELS_CPU_SIMD_ARRAY_SCANS_H_

#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lane_operators.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// In lane i: of(i).
template <auto kOf, class T>
PREFIXD_INLINE Vector<T> LanesOf() {
  return []<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return Vector<T>{static_cast<T>(kOf(i))...};
  }
  (std::make_integer_sequence<int, kLanes<T>>{});
}

// The ranks of the items of arrays, in the order of a scan, as integers of T's size.
template <class T>
class Ranks {
 public:
  using Rank = Signed<T>;

  Ranks(const PartArrays& arrays, bool reverse)
      : offsets_(arrays.offsets == nullptr || !reverse ? arrays.offsets : arrays.offsets + arrays.num_arrays),
        step_(reverse ? -1 : 1),
        length_(arrays.length) {}

  // Sets ranks to those of the next count items. What is up to a vector behind them may be overwritten.
  PREFIXD_INLINE void Next(int count, Rank* ranks) {
    constexpr auto kLane = [](int i) { return i; };
    constexpr Rank kMost = kLanes<T>;
    const auto lanes = LanesOf<kLane, Rank>();
    if (offsets_ == nullptr && length_ <= kMaxRepeated) return Repeat(count, ranks);
    for (int done = 0; done < count;) {
      while (left_ == 0) BeginArray();
      const auto left_here = static_cast<uint64_t>(count - done);
      const int end = done + static_cast<int>(left_ < left_here ? left_ : left_here);
      const auto first = lanes + static_cast<Rank>(begun_ < kMost ? begun_ : kMost);
      Store(ranks + done, first < kMost ? first : Splat(kMost));
      for (int i = done + kMost; i < end; i += kMost) Store(ranks + i, Splat(kMost));
      begun_ += static_cast<uint64_t>(end - done);
      left_ -= static_cast<uint64_t>(end - done);
      done = end;
    }
  }

 private:
  // Arrays of one length up to here repeat their ranks: twice as many fit the shortest Rank.
  static constexpr uint64_t kMaxRepeated = 64;

  void Repeat(int count, Rank* ranks) {
    const auto length = static_cast<int>(length_);
    const auto all = Splat(static_cast<Rank>(length));
    const auto step = Splat(static_cast<Rank>(kLanes<T> % length));
    alignas(kVectorBytes) Rank first[kLanes<T>];
    for (int i = 0, rank = static_cast<int>(begun_); i < kLanes<T>; ++i, rank = rank + 1 == length ? 0 : rank + 1) {
      first[i] = static_cast<Rank>(rank);
    }
    auto rank = Load(first);
    for (int i = 0; i < count; i += kLanes<T>) {
      Store(ranks + i, rank);
      rank += step;
      rank -= reinterpret_cast<decltype(rank)>(rank >= all) & all;
    }
    begun_ = (begun_ + static_cast<uint64_t>(count)) % length_;
  }

  PREFIXD_INLINE void BeginArray() {
    begun_ = 0;
    left_ = length_;
    if (offsets_ == nullptr) return;
    const uint64_t from = *offsets_, to = *(offsets_ += step_);
    left_ = step_ > 0 ? to - from : from - to;
  }

  const uint64_t* offsets_;  // Where the array that is next begins; of a reverse scan, where it ends.
  const int64_t step_;
  const uint64_t length_;
  uint64_t left_ = 0;   // The items of the array that is under way,
  uint64_t begun_ = 0;  // and those that have their ranks.
};

// v where flags are set, and elsewhere the operator's identity.
template <class O, class V, class F>
PREFIXD_INLINE V Where(F flags, V v) {
  if constexpr (O::template kIdentity<Lane<V>> == 0) {
    return reinterpret_cast<V>(flags) & v;
  } else {
    return flags ? v : Splat(O::template kIdentity<Lane<V>>);
  }
}

// There is no rank above this.
constexpr int kNever = 127;

// The lanes whose array has begun kCount lanes before or earlier, in the same block.
template <int kCount, class R>
PREFIXD_INLINE auto ReachInBlocks(R ranks) {
  constexpr int kPerBlock = kBlockBytes / static_cast<int>(sizeof(Lane<R>));
  constexpr auto kMost = [](int i) { return i % kPerBlock >= kCount ? kCount - 1 : kNever; };
  return ranks > LanesOf<kMost, Lane<R>>();
}
// The lanes whose array has begun in the block that is kCount blocks before, or earlier.
template <int kCount, class R>
PREFIXD_INLINE auto ReachBlocks(R ranks) {
  constexpr int kPerBlock = kBlockBytes / static_cast<int>(sizeof(Lane<R>));
  constexpr auto kMost = [](int i) {
    return i / kPerBlock >= kCount ? i % kPerBlock + (kCount - 1) * kPerBlock : kNever;
  };
  return ranks > LanesOf<kMost, Lane<R>>();
}

template <class O, int kCount, class V, class R>
PREFIXD_INLINE V StepInBlocks(V v, R ranks) {
  constexpr int kSize = sizeof(Lane<V>);
  if constexpr (kCount * kSize < kBlockBytes) {
    const V before = ShiftInBlocks<kCount * kSize>(v);
    return StepInBlocks<O, 2 * kCount>(O::Of(Where<O>(ReachInBlocks<kCount>(ranks), before), v), ranks);
  } else {
    return v;
  }
}

template <class O, int kCount, class V, class R>
PREFIXD_INLINE V StepBlocks(V v, R ranks) {
  if constexpr (kCount < kBlocks) {
    constexpr int kPerBlock = kBlockBytes / static_cast<int>(sizeof(Lane<V>));
    constexpr auto kLastOfBlock = [](int i) { return i | (kPerBlock - 1); };
    const V before = ShiftBlocks<kCount>(Shuffle<kLastOfBlock>(v, v));
    return StepBlocks<O, 2 * kCount>(O::Of(Where<O>(ReachBlocks<kCount>(ranks), before), v), ranks);
  } else {
    return v;
  }
}

// A scan of arrays that is under way, in keys.
template <class O, class Keys>
class RankedScan {
 public:
  using T = typename Keys::Key;
  using V = Vector<T>;
  using Rank = Signed<T>;
  static constexpr int kL = kLanes<T>;

  // start: what stands before each array, as an element's bits.
  RankedScan(T start, const ScanPart& part, Keys keys)
      : start_(Splat(keys.KeyOf(start))),
        last_(start_),
        keys_(keys),
        has_start_(keys.KeyOf(start) != O::template kIdentity<T>),
        reverse_(part.reverse),
        exclusive_(part.exclusive) {}

  // Scans the next items, and without streams those that make no whole vector.
  template <bool kStream>
  PREFIXD_INLINE void Scan(const T* in, T* out, int num_items, const Rank* ranks) {
    const int rest = num_items % kL;
    const int whole = num_items - rest;
    if (whole > 0) ScanVectors<kStream>(in + (reverse_ ? rest : 0), out + (reverse_ ? rest : 0), whole, ranks);
    if (rest > 0) ScanRest(in + (reverse_ ? 0 : whole), out + (reverse_ ? 0 : whole), rest, ranks + whole);
  }

 private:
  static PREFIXD_INLINE auto Lanes() {
    constexpr auto kLane = [](int i) { return i; };
    return LanesOf<kLane, Rank>();
  }
  PREFIXD_INLINE V Turned(V v) const { return reverse_ ? Reversed(v) : v; }

  // The results of a vector's keys. *last has the result before them in every lane, and then the last of them.
  PREFIXD_INLINE V ResultsOf(V v, Vector<Rank> rank, V* last) const {
    if (has_start_) v = O::Of(Where<O>(rank == 0, start_), v);
    v = StepBlocks<O, 1>(StepInBlocks<O, 1>(v, rank), rank);
    v = O::Of(Where<O>(rank > Lanes(), *last), v);
    const V results = exclusive_ ? (rank == 0 ? start_ : ShiftIn(*last, v)) : v;
    *last = SplatLast(v);
    return results;
  }

  template <bool kStream>
  __attribute__((noinline)) void ScanVectors(const T* in, T* out, int num_items, const Rank* ranks) {
    V last = last_;
    for (int i = 0; i < num_items; i += kL) {
      const int place = reverse_ ? num_items - kL - i : i;
      const V results = ResultsOf(keys_.KeyOf(Turned(Load(in + place))), Load(ranks + i), &last);
      StoreOrStream<kStream>(out + place, Turned(keys_.ElementOf(results)));
    }
    last_ = last;
  }

  // Lanes behind the items change nothing: they have the identity, and are further on in the last item's array.
  __attribute__((noinline)) void ScanRest(const T* in, T* out, int num_items, const Rank* ranks) {
    T items[kL] = {};
    T* const begin = items + (reverse_ ? kL - num_items : 0);
    __builtin_memcpy(begin, in, static_cast<size_t>(num_items) * sizeof(T));
    const auto is_item = Lanes() < Splat(static_cast<Rank>(num_items));
    const V key = keys_.KeyOf(Turned(Load(items)));
    const auto rank_behind = Lanes() + Splat(static_cast<Rank>(ranks[num_items - 1] - (num_items - 1)));
    const V results = ResultsOf(Where<O>(is_item, key), is_item ? Load(ranks) : rank_behind, &last_);
    Store(items, Turned(keys_.ElementOf(results)));
    __builtin_memcpy(out, begin, static_cast<size_t>(num_items) * sizeof(T));
  }

  const V start_;
  V last_;  // The last result so far, in every lane.
  const Keys keys_;
  const bool has_start_;  // Whether it is not the identity.
  const bool reverse_;
  const bool exclusive_;
};

// The items before the first vector of a part's results that is aligned, in the order of the scan; never none.
template <class Out>
PREFIXD_INLINE int ItemsToVector(const ScanPart& part) {
  const auto address = reinterpret_cast<uintptr_t>(static_cast<Out*>(part.out) + (part.reverse ? part.num_items : 0));
  const uintptr_t behind = address % kVectorBytes;
  const uintptr_t num_bytes = part.reverse ? behind : kVectorBytes - behind;
  return num_bytes == 0 ? kLanes<Out> : static_cast<int>(num_bytes / sizeof(Out));
}

template <class In, class Out, class O, bool kStream, class Keys>
void ScanSharedTo(const ScanPart& part, const PartArrays& arrays, const void* prefix, Keys keys) {
  using T = typename Keys::Key;
  constexpr bool kIsPlain = std::is_same_v<In, Out> && !kIsNarrowFloat<Out>;
  constexpr int kItems = 2048 / sizeof(T);
  alignas(kVectorBytes) Signed<T> ranks[kItems + kLanes<T>];
  alignas(kVectorBytes) Accumulator<Out> buffer[kIsPlain ? 1 : kItems];
  Ranks<T> next_ranks(arrays, part.reverse);
  RankedScan<O, Keys> scan(BitsOf<T>(prefix), part, keys);  // Prefix::last comes first.
  // Results that go past the caches do so in whole vectors, behind what is before the first of these.
  int most = kStream ? ItemsToVector<Out>(part) : kItems;
  int count = 0;
  for (uint64_t done = 0; done < part.num_items; done += static_cast<uint64_t>(count)) {
    const uint64_t left = part.num_items - done;
    count = left < static_cast<uint64_t>(most) ? static_cast<int>(left) : most;
    most = kItems;
    const uint64_t first = part.reverse ? left - static_cast<uint64_t>(count) : done;
    next_ranks.Next(count, ranks);
    const auto* const in = static_cast<const In*>(part.in) + first;
    auto* const out = static_cast<Out*>(part.out) + first;
    if constexpr (kIsPlain) {
      scan.template Scan<kStream>(reinterpret_cast<const T*>(in), reinterpret_cast<T*>(out), count, ranks);
    } else {
      Convert(in, count, buffer);
      auto* const items = reinterpret_cast<T*>(buffer);
      scan.template Scan<kStream>(items, kIsNarrowFloat<Out> ? items : reinterpret_cast<T*>(out), count, ranks);
      if constexpr (kIsNarrowFloat<Out>) Convert(buffer, count, out);
    }
  }
}

// ScanFunctions::scan_arrays.
template <class In, class Out, class O, class Keys>
void ScanShared(const ScanPart& part, const PartArrays& arrays, const void* prefix, Keys keys) {
  const bool stream = !kIsNarrowFloat<Out> && part.stream;
  stream ? ScanSharedTo<In, Out, O, true>(part, arrays, prefix, keys)
         : ScanSharedTo<In, Out, O, false>(part, arrays, prefix, keys);
  if (stream) FinishStreaming();
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_ARRAY_SCANS_H_
