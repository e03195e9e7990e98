// Scans and reductions whose bits depend on the order, in that of kernels/NUMERICS.md: of what, says Items.
//
// A leaf's 32 runs of four items are transposed, so that four vectors hold the first, second, third and fourth items of
// as many runs as a vector has lanes. Then the fold of a run is vertical, and a level of the tree over the runs is one
// shuffle, which brings in the neutral item where there is nothing to add, and one operation. What stands before a
// leaf is the same for all its items, and is added vertically, too.
//
// Items: what is scanned, in memory and as the operator O combines it.
//   using Element = float;          // What a result is,
//   using Stored = float;           // and as what it is stored: the same, or half as long.
//   using Item = float;             // What O combines: Item O::Of(Item before, Item after), and O::kNeutral.
//   using V = Vector<float>;        // As many Items as a vector has lanes of Element. O::Of combines them too.
//   explicit Items(const ScanPart& part);
//   template <bool kReverse> void LoadQuad(uint64_t first, int q, V (&v)[4]) const;  // The leaf begins there.
//   Item At(uint64_t i) const;
//   void Ahead(uint64_t first) const;     // Begins to fetch a leaf of what is scanned next.
//   static Element ResultOf(Item item);   // And Vector<Element> of a V.
#ifndef PREFIXD_KERNELS_CPU_SIMD_ORDERED_SCANS_H_
#define PREFIXD_KERNELS_CPU_SIMD_ORDERED_SCANS_H_

#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/compensated.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/prefix_trees.h"
#include "kernels/cpu/simd/quads.h"
#include "kernels/cpu/simd/step.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// ---- A leaf in vectors ---------------------------------------------------------------------------------------------
// kReverse: the leaf's last item in memory comes first.
template <class Items, class O, bool kReverse>
struct Leaf {
  using T = typename Items::Element;
  using Item = typename Items::Item;
  using V = typename Items::V;
  static constexpr int kL = kLanes<T>;
  static constexpr int kQuads = kJoinSlots / kL;  // Times four vectors, which hold kL runs.
  static constexpr int kLaneBlocks = kL < 4 ? 1 : kL / 4;

  // After the transposition the runs of a quad are in this order.
  static constexpr int LaneOf(int run) { return kL < 4 ? run : 4 * (run % kLaneBlocks) + run / kLaneBlocks; }
  static constexpr int RunOf(int lane) { return kL < 4 ? lane : (lane & 3) * kLaneBlocks + lane / 4; }

  V folds[kQuads][4];  // folds[q][j]: the fold of items 0 .. j of each run of the quad.
  V trees[kQuads];     // The tree of the leaf's runs up to each of them.

  // first: the index in memory of the leaf's first item there.
  PREFIXD_INLINE void Fold(const Items& items, uint64_t first) {
    for (int q = 0; q < kQuads; ++q) {
      V v[4];
      items.template LoadQuad<kReverse>(first, q, v);
      folds[q][0] = v[0];
      for (int j = 1; j < 4; ++j) folds[q][j] = O::Of(folds[q][j - 1], v[j]);
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
  template <class Lanes>
  static PREFIXD_INLINE Lanes ToNextRun(Lanes v, Lanes before) {
    constexpr auto kFrom = [](int lane) {
      const int run = RunOf(lane);
      return run == 0 ? kL + kL - 1 : LaneOf(run - 1);
    };
    return Shuffle<kFrom>(v, before);
  }

  // The tree of the runs before each run of a quad; neutral before the first.
  PREFIXD_INLINE V Before(int q) const { return ToNextRun(trees[q], q == 0 ? Splat(O::kNeutral) : trees[q - 1]); }

  // The join of all runs.
  PREFIXD_INLINE Item Value() const {
    return O::Of(LaneAt(trees[kQuads - 1], LaneOf(kL - 2)), LaneAt(folds[kQuads - 1][3], kL - 1));
  }

  // Writes the results of the leaf's items behind what stands before the leaf. *last, of an exclusive scan alone: the
  // result before the leaf in the last lane, and then that of its last item.
  template <bool kExclusive, bool kStream>
  PREFIXD_INLINE void Write(V leaves, V tiles, V groups, Vector<T>* last, typename Items::Stored* out) const {
    for (int q = 0; q < kQuads; ++q) {
      const V before = Before(q);
      Vector<T> v[4];
      for (int j = 0; j < 4; ++j) {
        v[j] = Canonical(Items::ResultOf(O::Of(groups, O::Of(tiles, O::Of(leaves, O::Of(before, folds[q][j]))))));
      }
      if constexpr (kExclusive) {
        const Vector<T> first = ToNextRun(v[3], *last);
        *last = v[3];
        v[3] = v[2];
        v[2] = v[1];
        v[1] = v[0];
        v[0] = first;
      }
      TransposeBack(v[0], v[1], v[2], v[3]);
      for (Vector<T>& x : v) x = Turned<kReverse>(x);
      StoreQuad<kReverse, kStream>(q, v, out);
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
// Copies the items of a leaf that is cut short, in the order of the scan.
template <bool kReverse, class Items, class Item>
__attribute__((noinline)) void CopyShortLeaf(const Items& items, uint64_t first, int count, Item* out) {
  for (int i = 0; i < count; ++i) out[i] = items.At(first + (kReverse ? count - 1 - i : i));
}

// The join of a leaf that is cut short.
template <class O, bool kReverse, class Items>
__attribute__((noinline)) typename Items::Item ReduceShortLeaf(const Items& items, uint64_t first, int count) {
  using Item = typename Items::Item;
  const auto at = [&](int i) { return items.At(first + (kReverse ? count - 1 - i : i)); };
  PrefixTree<Item> runs = EmptyTree<O, Item>();
  Item fold = at(0);
  for (int i = 1; i < count; ++i) {
    if (i % kRunItems != 0) {
      fold = O::Of(fold, at(i));
    } else {
      AddSlot<O>(&runs, fold);
      fold = at(i);
    }
  }
  return O::Of(TreeOf<O>(runs), fold);
}

// values: an Item for each tile.
template <class Items, class O, bool kReverse>
__attribute__((noinline)) void ReduceTiles(const ScanPart& part, void* values) {
  using Item = typename Items::Item;
  const Items items(part);
  auto* value_of_tile = static_cast<Item*>(values);
  for (uint64_t done = 0; done < part.num_items;) {
    PrefixTree<Item> leaves = EmptyTree<O, Item>();
    Item tile = O::kNeutral;
    for (int leaf = 0; leaf < kJoinSlots && done < part.num_items; ++leaf) {
      const uint64_t left = part.num_items - done;
      const int count = left < kLeafItems ? static_cast<int>(left) : kLeafItems;
      const uint64_t first = kReverse ? left - count : done;
      Item value;
      if (count == kLeafItems) {
        Leaf<Items, O, kReverse> l;
        l.Fold(items, first);
        l.Grow();
        value = l.Value();
      } else {
        value = ReduceShortLeaf<O, kReverse>(items, first, count);
      }
      tile = O::Of(TreeOf<O>(leaves), value);
      if (leaf < kJoinSlots - 1) AddSlot<O>(&leaves, value);
      done += count;
    }
    *value_of_tile++ = tile;
  }
}

// Scans a leaf that is cut short, and returns its value. last: the result before it, for an exclusive scan.
template <class O, bool kReverse, bool kExclusive, class Items, class Item, class T, class To>
__attribute__((noinline)) Item WriteShortLeaf(const Items& items, uint64_t first, int count, Item leaves, Item tiles,
                                              Item groups, T last, To* out) {
  Item buffer[kLeafItems];
  CopyShortLeaf<kReverse>(items, first, count, buffer);
  const Item value = ScanShortLeaf<O>(count, buffer);
  for (int i = 0; i < count; ++i) {
    const T result = Canonical(Items::ResultOf(O::Of(groups, O::Of(tiles, O::Of(leaves, buffer[i])))));
    out[first + (kReverse ? count - 1 - i : i)] = static_cast<To>(kExclusive ? last : result);
    last = result;
  }
  return value;
}

template <class Items, class O, bool kReverse, bool kExclusive, bool kStream>
__attribute__((noinline)) void ScanTiles(const ScanPart& part, Prefix<typename Items::Item>* prefix) {
  using T = typename Items::Element;
  using Item = typename Items::Item;
  const Items items(part);
  auto* const out = static_cast<typename Items::Stored*>(part.out);
  Vector<T> last = Splat(Canonical(Items::ResultOf(prefix->last)));
  for (uint64_t done = 0; done < part.num_items;) {
    const Item groups = prefix->groups;
    const Item tiles = TreeOf<O>(prefix->tiles);
    PrefixTree<Item> leaves = EmptyTree<O, Item>();
    Item tile = O::kNeutral;
    for (int leaf = 0; leaf < kJoinSlots && done < part.num_items; ++leaf) {
      const uint64_t left = part.num_items - done;
      const int count = left < kLeafItems ? static_cast<int>(left) : kLeafItems;
      const uint64_t first = kReverse ? left - count : done;
      items.Ahead(first);
      const Item before = TreeOf<O>(leaves);
      Item value;
      if (count == kLeafItems) {
        Leaf<Items, O, kReverse> l;
        l.Fold(items, first);
        l.Grow();
        value = l.Value();
        l.template Write<kExclusive, kStream>(Splat(before), Splat(tiles), Splat(groups), &last, out + first);
      } else {
        value = WriteShortLeaf<O, kReverse, kExclusive>(items, first, count, before, tiles, groups,
                                                        static_cast<T>(last[kLanes<T> - 1]), out);
      }
      tile = O::Of(before, value);
      if (leaf < kJoinSlots - 1) AddSlot<O>(&leaves, value);
      done += count;
    }
    AddTile<O>(prefix, tile);
  }
}

template <class Items, class O, bool kReverse, bool kExclusive>
PREFIXD_INLINE void ScanTo(const ScanPart& part, bool stream, Prefix<typename Items::Item>* prefix) {
  stream ? ScanTiles<Items, O, kReverse, kExclusive, true>(part, prefix)
         : ScanTiles<Items, O, kReverse, kExclusive, false>(part, prefix);
}

// ScanFunctions::scan, reduce and add.
template <class Items, class O>
void ScanOrdered(const ScanPart& part, void* prefix) {
  auto* const typed = static_cast<Prefix<typename Items::Item>*>(prefix);
  // Vectors of a reverse scan are counted from the end.
  const bool stream =
      part.stream && IsAligned(static_cast<typename Items::Stored*>(part.out) + (part.reverse ? part.num_items : 0));
  if (part.reverse) {
    part.exclusive ? ScanTo<Items, O, true, true>(part, stream, typed)
                   : ScanTo<Items, O, true, false>(part, stream, typed);
  } else {
    part.exclusive ? ScanTo<Items, O, false, true>(part, stream, typed)
                   : ScanTo<Items, O, false, false>(part, stream, typed);
  }
  if (stream) FinishStreaming();
}

template <class Items, class O>
void ReduceOrdered(const ScanPart& part, void* values) {
  part.reverse ? ReduceTiles<Items, O, true>(part, values) : ReduceTiles<Items, O, false>(part, values);
}

// The value of an array of elements of In, behind `start`.
template <class Items, class O, class In>
typename Items::Element ReduceArray(ScanPart array, typename Items::Item start) {
  using Item = typename Items::Item;
  constexpr uint64_t kTiles = 64;
  Prefix<Item> prefix = PrefixOf<Item>(start, O::kNeutral);
  for (uint64_t left = array.num_items; left > 0; left -= array.num_items) {
    Item values[kTiles];
    array.num_items = left < kTiles * kTileItems ? left : kTiles * kTileItems;
    ReduceTiles<Items, O, false>(array, values);
    for (uint64_t done = 0; done < array.num_items; done += kTileItems) AddTile<O>(&prefix, values[done / kTileItems]);
    array.in = array.next = static_cast<const In*>(array.in) + array.num_items;
  }
  return Canonical(Items::ResultOf(prefix.last));
}

template <class O, class Item>
void AddTiles(const void* values, uint64_t num_tiles, void* prefix) {
  for (uint64_t tile = 0; tile < num_tiles; ++tile) {
    AddTile<O>(static_cast<Prefix<Item>*>(prefix), static_cast<const Item*>(values)[tile]);
  }
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_ORDERED_SCANS_H_
