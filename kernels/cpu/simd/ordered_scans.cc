// Scan and reduce of floating-point sums and products, in the order of kernels/NUMERICS.md.
//
// A leaf's 32 runs of four items are transposed, so that four vectors hold the first, second, third and fourth items of
// as many runs as a vector has lanes. Then the fold of a run is vertical, and a level of the tree over the runs is one
// shuffle, which brings in the neutral element where there is nothing to add, and one addition. What stands before a
// leaf is the same for all its items, and is added vertically, too.
#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// ---- Trees of slots, on scalars ------------------------------------------------------------------------------------
template <class O, class T>
PREFIXD_INLINE PrefixTree<T> EmptyTree() {
  return {.blocks = {O::kNeutral, O::kNeutral, O::kNeutral, O::kNeutral, O::kNeutral}, .num_slots = 0};
}

template <class O, class T>
PREFIXD_INLINE void AddSlot(PrefixTree<T>* tree, T slot) {
  int level = 0;
  for (uint32_t n = tree->num_slots; n & 1; n >>= 1) {
    slot = O::Of(tree->blocks[level], slot);
    tree->blocks[level++] = O::kNeutral;
  }
  tree->blocks[level] = slot;
  ++tree->num_slots;
}

// The tree of the slots that were added; neutral if there are none. Neutral blocks change nothing: no branch asks which
// there are.
template <class O, class T>
PREFIXD_INLINE T TreeOf(const PrefixTree<T>& tree) {
  const T* const b = tree.blocks;  // The later slots are in the smaller blocks.
  return O::Of(b[4], O::Of(b[3], O::Of(b[2], O::Of(b[1], b[0]))));
}

// Adds a tile to what stands before the next one.
template <class O, class T>
PREFIXD_INLINE void AddTile(Prefix<T>* prefix, T tile) {
  prefix->last = O::Of(prefix->groups, O::Of(TreeOf<O>(prefix->tiles), tile));
  if (prefix->tiles.num_slots == kJoinSlots - 1) {
    prefix->groups = prefix->last;
    prefix->tiles = EmptyTree<O, T>();
  } else {
    AddSlot<O>(&prefix->tiles, tile);
  }
}

// ---- A leaf in vectors ---------------------------------------------------------------------------------------------
// The two steps of a transposition in blocks of four lanes. First lanes of two vectors alternate: those of the lower
// half of each block, or, where lanes are as long as half a block of bytes, every other one. Then pairs of lanes do.
template <int kL, bool kIsWide>
constexpr int LaneFrom(int i) {
  return (i & 1 ? kL : 0) + (kIsWide ? i & ~1 : (i & ~3) + (i & 3) / 2);
}
template <int kL>
constexpr int PairFrom(int i) {
  return (i & 2 ? kL : 0) + (i & ~3) + (i & 1);
}

// Transposes 4 x 4 items in each block of four lanes; with two lanes, 4 x 2 in a vector.
template <class V>
PREFIXD_INLINE void Transpose(V& v0, V& v1, V& v2, V& v3) {
  constexpr int kL = kLanes<Lane<V>>;
  if constexpr (kL == 2) {
    constexpr auto kLow = [](int i) { return i == 0 ? 0 : kL; };
    constexpr auto kHigh = [](int i) { return i == 0 ? 1 : kL + 1; };
    const V t0 = v0, t1 = v1, t2 = v2, t3 = v3;
    v0 = Shuffle<kLow>(t0, t2);
    v1 = Shuffle<kHigh>(t0, t2);
    v2 = Shuffle<kLow>(t1, t3);
    v3 = Shuffle<kHigh>(t1, t3);
  } else {
    constexpr bool kIsWide = sizeof(Lane<V>) == 8;
    constexpr auto kLow = [](int i) { return LaneFrom<kL, kIsWide>(i); };
    constexpr auto kHigh = [](int i) { return LaneFrom<kL, kIsWide>(i) + (kIsWide ? 1 : 2); };
    constexpr auto kLowPair = [](int i) { return PairFrom<kL>(i); };
    constexpr auto kHighPair = [](int i) { return PairFrom<kL>(i) + 2; };
    const V t0 = Shuffle<kLow>(v0, v1), t1 = Shuffle<kHigh>(v0, v1);
    const V t2 = Shuffle<kLow>(v2, v3), t3 = Shuffle<kHigh>(v2, v3);
    v0 = Shuffle<kLowPair>(t0, t2);
    v1 = kIsWide ? Shuffle<kLowPair>(t1, t3) : Shuffle<kHighPair>(t0, t2);
    v2 = kIsWide ? Shuffle<kHighPair>(t0, t2) : Shuffle<kLowPair>(t1, t3);
    v3 = Shuffle<kHighPair>(t1, t3);
  }
}
// The transposition that leads back. With two lanes it is another one.
template <class V>
PREFIXD_INLINE void TransposeBack(V& v0, V& v1, V& v2, V& v3) {
  if constexpr (kLanes<Lane<V>> == 2) {
    constexpr auto kLow = [](int i) { return i == 0 ? 0 : 2; };
    constexpr auto kHigh = [](int i) { return i == 0 ? 1 : 3; };
    const V t0 = v0, t1 = v1, t2 = v2, t3 = v3;
    v0 = Shuffle<kLow>(t0, t1);
    v1 = Shuffle<kLow>(t2, t3);
    v2 = Shuffle<kHigh>(t0, t1);
    v3 = Shuffle<kHigh>(t2, t3);
  } else {
    Transpose(v0, v1, v2, v3);
  }
}

// kReverse: the leaf's last item in memory comes first.
template <class T, class O, bool kReverse>
struct Leaf {
  using V = Vector<T>;
  static constexpr int kL = kLanes<T>;
  static constexpr int kQuads = kJoinSlots / kL;  // Times four vectors, which hold kL runs.
  static constexpr int kLaneBlocks = kL < 4 ? 1 : kL / 4;

  // After the transposition the runs of a quad are in this order.
  static constexpr int LaneOf(int run) { return kL < 4 ? run : 4 * (run % kLaneBlocks) + run / kLaneBlocks; }
  static constexpr int RunOf(int lane) { return kL < 4 ? lane : (lane & 3) * kLaneBlocks + lane / 4; }

  // Where the items of a vector lie, of which `first` is the first in the order of the scan.
  static constexpr int PlaceOf(int first) { return kReverse ? kLeafItems - kL - first : first; }
  static PREFIXD_INLINE V Turned(V v) { return kReverse ? Reversed(v) : v; }

  V folds[kQuads][4];  // folds[q][j]: the fold of items 0 .. j of each run of the quad.
  V trees[kQuads];     // The tree of the leaf's runs up to each of them.

  template <class In>
  PREFIXD_INLINE void Fold(const In* in) {
    for (int q = 0; q < kQuads; ++q) {
      V v0 = Turned(LoadAs<T>(in + PlaceOf((4 * q) * kL))), v1 = Turned(LoadAs<T>(in + PlaceOf((4 * q + 1) * kL)));
      V v2 = Turned(LoadAs<T>(in + PlaceOf((4 * q + 2) * kL))), v3 = Turned(LoadAs<T>(in + PlaceOf((4 * q + 3) * kL)));
      Transpose(v0, v1, v2, v3);
      folds[q][0] = v0;
      folds[q][1] = O::Of(v0, v1);
      folds[q][2] = O::Of(folds[q][1], v2);
      folds[q][3] = O::Of(folds[q][2], v3);
    }
  }

  // One level of the trees of a quad's runs: the later half of each 2 * kWidth runs takes in the earlier half's tree.
  template <int kWidth>
  static PREFIXD_INLINE V Step(V v) {
    if constexpr (kWidth < kL) {
      constexpr auto kFrom = [](int lane) {
        const int run = RunOf(lane);
        return run & kWidth ? LaneOf((run & ~(2 * kWidth - 1)) + kWidth - 1) : kL + lane;
      };
      return Step<2 * kWidth>(O::Of(Shuffle<kFrom>(v, Splat(O::kNeutral)), v));
    } else {
      return v;
    }
  }

  PREFIXD_INLINE void Grow() {
    constexpr auto kLast = [](int) { return kL - 1; };
    for (int q = 0; q < kQuads; ++q) trees[q] = Step<1>(folds[q][3]);
    for (int width = 1; width < kQuads; width *= 2) {
      for (int q = 0; q < kQuads; ++q) {
        if ((q & width) == 0) continue;
        const V before = trees[(q & ~(2 * width - 1)) + width - 1];
        trees[q] = O::Of(Shuffle<kLast>(before, before), trees[q]);
      }
    }
  }

  // Moves what belongs to each run of a quad to the next run. The first gets what the last one of `before` has.
  static PREFIXD_INLINE V ToNextRun(V v, V before) {
    constexpr auto kFrom = [](int lane) {
      const int run = RunOf(lane);
      return run == 0 ? kL + kL - 1 : LaneOf(run - 1);
    };
    return Shuffle<kFrom>(v, before);
  }

  // The tree of the runs before each run of a quad; neutral before the first.
  PREFIXD_INLINE V Before(int q) const { return ToNextRun(trees[q], q == 0 ? Splat(O::kNeutral) : trees[q - 1]); }

  // The join of all runs.
  PREFIXD_INLINE T Value() const {
    return O::Of(static_cast<T>(trees[kQuads - 1][LaneOf(kL - 2)]), static_cast<T>(folds[kQuads - 1][3][kL - 1]));
  }

  // Writes the results of the leaf's items behind what stands before the leaf. *last, of an exclusive scan alone: the
  // result before the leaf in the last lane, and then that of its last item.
  template <bool kExclusive, bool kStream>
  PREFIXD_INLINE void Write(V leaves, V tiles, V groups, V* last, T* out) const {
    for (int q = 0; q < kQuads; ++q) {
      const V before = Before(q);
      V v[4];
      for (int j = 0; j < 4; ++j) {
        v[j] = Canonical(O::Of(groups, O::Of(tiles, O::Of(leaves, O::Of(before, folds[q][j])))));
      }
      if constexpr (kExclusive) {
        const V first = ToNextRun(v[3], *last);
        *last = v[3];
        v[3] = v[2];
        v[2] = v[1];
        v[1] = v[0];
        v[0] = first;
      }
      TransposeBack(v[0], v[1], v[2], v[3]);
      for (int j = 0; j < 4; ++j) StoreOrStream<kStream>(out + PlaceOf((4 * q + j) * kL), Turned(v[j]));
    }
  }
};

// values holds num_items >= 1 items of a leaf that is cut short. Each becomes the value of the leaf up to it. Returns
// the last of them.
template <class O, class T>
__attribute__((noinline)) T ScanShortLeaf(int num_items, T* values) {
  PrefixTree<T> runs = EmptyTree<O, T>();
  T value = O::kNeutral;
  for (int first = 0; first < num_items; first += kRunItems) {
    const T before = TreeOf<O>(runs);
    T fold = values[first];
    values[first] = value = O::Of(before, fold);
    for (int i = first + 1; i < num_items && i < first + kRunItems; ++i) {
      fold = O::Of(fold, values[i]);
      values[i] = value = O::Of(before, fold);
    }
    if (first + kRunItems < num_items) AddSlot<O>(&runs, fold);  // A tree has room for 31.
  }
  return value;
}

// ---- Parts ---------------------------------------------------------------------------------------------------------
// Copies the items of a leaf that is cut short, converted, in the order of the scan.
template <bool kReverse, class In, class T>
__attribute__((noinline)) void CopyShortLeaf(const In* in, int count, T* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<T>(in[kReverse ? count - 1 - i : i]);
}

template <class In, class T, class O, bool kReverse>
__attribute__((noinline)) void ReduceTiles(const In* in, uint64_t num_items, T* values) {
  for (uint64_t done = 0; done < num_items;) {
    PrefixTree<T> leaves = EmptyTree<O, T>();
    T tile = O::kNeutral;
    for (int leaf = 0; leaf < kJoinSlots && done < num_items; ++leaf) {
      const uint64_t left = num_items - done;
      const int count = left < kLeafItems ? static_cast<int>(left) : kLeafItems;
      const In* const items = in + (kReverse ? left - count : done);
      T value;
      if (count == kLeafItems) {
        Leaf<T, O, kReverse> l;
        l.Fold(items);
        l.Grow();
        value = l.Value();
      } else {
        T buffer[kLeafItems];
        CopyShortLeaf<kReverse>(items, count, buffer);
        value = ScanShortLeaf<O>(count, buffer);
      }
      tile = O::Of(TreeOf<O>(leaves), value);
      if (leaf < kJoinSlots - 1) AddSlot<O>(&leaves, value);
      done += count;
    }
    *values++ = tile;
  }
}

// Scans a leaf that is cut short, and returns its value. last: the result before it, for an exclusive scan.
template <class O, bool kReverse, bool kExclusive, class In, class T>
__attribute__((noinline)) T WriteShortLeaf(const In* in, int count, T leaves, T tiles, T groups, T last, T* out) {
  T buffer[kLeafItems];
  CopyShortLeaf<kReverse>(in, count, buffer);
  const T value = ScanShortLeaf<O>(count, buffer);
  for (int i = 0; i < count; ++i) {
    const T result = Canonical(O::Of(groups, O::Of(tiles, O::Of(leaves, buffer[i]))));
    out[kReverse ? count - 1 - i : i] = kExclusive ? last : result;
    last = result;
  }
  return value;
}

template <class In, class T, class O, bool kReverse, bool kExclusive, bool kStream>
__attribute__((noinline)) void ScanTiles(const ScanPart& part, Prefix<T>* prefix) {
  const auto* const in = static_cast<const In*>(part.in);
  auto* const out = static_cast<T*>(part.out);
  // Where there is no other part to fetch, this one's items a little ahead: a leaf's loads begin at once and end at
  // once, which is not what the hardware foresees.
  constexpr int kAhead = 8192 / sizeof(In);
  const auto* next = static_cast<const In*>(part.next);
  if (next == in) next += kReverse ? -kAhead : kAhead;
  Vector<T> last = Splat(Canonical(prefix->last));
  for (uint64_t done = 0; done < part.num_items;) {
    const T groups = prefix->groups;
    const T tiles = TreeOf<O>(prefix->tiles);
    PrefixTree<T> leaves = EmptyTree<O, T>();
    T tile = O::kNeutral;
    for (int leaf = 0; leaf < kJoinSlots && done < part.num_items; ++leaf) {
      const uint64_t left = part.num_items - done;
      const int count = left < kLeafItems ? static_cast<int>(left) : kLeafItems;
      const uint64_t first = kReverse ? left - count : done;
      Fetch<kLeafItems * sizeof(In)>(next + first);
      const T before = TreeOf<O>(leaves);
      T value;
      if (count == kLeafItems) {
        Leaf<T, O, kReverse> l;
        l.Fold(in + first);
        l.Grow();
        value = l.Value();
        l.template Write<kExclusive, kStream>(Splat(before), Splat(tiles), Splat(groups), &last, out + first);
      } else {
        value = WriteShortLeaf<O, kReverse, kExclusive>(in + first, count, before, tiles, groups, last[kLanes<T> - 1],
                                                        out + first);
      }
      tile = O::Of(before, value);
      if (leaf < kJoinSlots - 1) AddSlot<O>(&leaves, value);
      done += count;
    }
    AddTile<O>(prefix, tile);
  }
}

template <class In, class T, class O, bool kReverse, bool kExclusive>
PREFIXD_INLINE void ScanTo(const ScanPart& part, bool stream, Prefix<T>* prefix) {
  stream ? ScanTiles<In, T, O, kReverse, kExclusive, true>(part, prefix)
         : ScanTiles<In, T, O, kReverse, kExclusive, false>(part, prefix);
}

template <class In, class T, class O>
void Scan(const ScanPart& part, void* prefix) {
  auto* const typed = static_cast<Prefix<T>*>(prefix);
  // Vectors of a reverse scan are counted from the end.
  const bool stream = part.stream && IsAligned(static_cast<T*>(part.out) + (part.reverse ? part.num_items : 0));
  if (part.reverse) {
    part.exclusive ? ScanTo<In, T, O, true, true>(part, stream, typed)
                   : ScanTo<In, T, O, true, false>(part, stream, typed);
  } else {
    part.exclusive ? ScanTo<In, T, O, false, true>(part, stream, typed)
                   : ScanTo<In, T, O, false, false>(part, stream, typed);
  }
  if (stream) FinishStreaming();
}

template <class In, class T, class O>
void Reduce(const void* in, uint64_t num_items, bool reverse, void* values) {
  auto* const items = static_cast<const In*>(in);
  reverse ? ReduceTiles<In, T, O, true>(items, num_items, static_cast<T*>(values))
          : ReduceTiles<In, T, O, false>(items, num_items, static_cast<T*>(values));
}

template <class O, class T>
void AddTiles(const void* values, uint64_t num_tiles, void* prefix) {
  for (uint64_t tile = 0; tile < num_tiles; ++tile) {
    AddTile<O>(static_cast<Prefix<T>*>(prefix), static_cast<const T*>(values)[tile]);
  }
}

template <class In, class T>
constexpr void SetScans(ScanTable* table) {
  if constexpr (kIsFloating<T>) {
    auto& of = table->of[static_cast<int>(kDTypeOf<In>)][static_cast<int>(kDTypeOf<T>)];
    of[static_cast<int>(Op::kSum)] = {Reduce<In, T, Plus<T>>, AddTiles<Plus<T>, T>, Scan<In, T, Plus<T>>};
    of[static_cast<int>(Op::kProd)] = {Reduce<In, T, Times<T>>, AddTiles<Times<T>, T>, Scan<In, T, Times<T>>};
  }
}

constexpr ScanTable MakeScans() {
  ScanTable table = {};
#define PREFIXD_SET(name, type, out_name, out_type) SetScans<type, out_type>(&table);
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const ScanTable kOrderedScans = MakeScans();

}  // namespace prefixd::cpu::PREFIXD_ISA
