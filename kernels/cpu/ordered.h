// The order of kernels/NUMERICS.md on a core: values of leaves, tiles and groups, in one pass over the items.
//
//   const Items<T> items(in, /*num_items=*/n, /*backwards=*/false);
//   T value = GroupValue(items, first, num_items, neutral, op);
//   VisitLeaves(items, first, num_items, neutral, op, [&](int64_t first, int num_items, const BeforeLeaf<T>& before,
//                                                         const T* values) { ... });
//
// Everything here runs on one thread.
#ifndef PREFIXD_KERNELS_CPU_ORDERED_H_
#define PREFIXD_KERNELS_CPU_ORDERED_H_

#include <algorithm>
#include <cstdint>

#include "kernels/association.h"
#include "kernels/types.h"

namespace prefixd::cpu {

// The items of an array as they combine: converted to T, in the order of the scan. Load makes one indirect call a leaf,
// so the code that uses it is compiled once for each T, not for every element type and direction.
template <class T>
class Items {
 public:
  template <class In>
  Items(const In* in, uint64_t num_items, bool backwards)
      : in_(in), last_(num_items - 1), load_(backwards ? &LoadBackwards<In> : &LoadForwards<In>) {}

  // Copies items first .. first + count - 1 to out.
  void Load(uint64_t first, int count, T* out) const { load_(*this, first, count, out); }

 private:
  template <class In>
  static void LoadForwards(const Items& items, uint64_t first, int count, T* out) {
    const In* const in = static_cast<const In*>(items.in_) + first;
    for (int i = 0; i < count; ++i) out[i] = static_cast<T>(in[i]);
  }
  template <class In>
  static void LoadBackwards(const Items& items, uint64_t first, int count, T* out) {
    const In* const in = static_cast<const In*>(items.in_) + (items.last_ - first);
    for (int i = 0; i < count; ++i) out[i] = static_cast<T>(in[-i]);
  }

  const void* in_;
  uint64_t last_;
  void (*load_)(const Items&, uint64_t first, int count, T* out);
};

// The items of an array of dtype. Needs: IsOutput(dtype, kDTypeOf<T>).
template <class T>
Items<T> ItemsOf(DType dtype, const void* in, uint64_t num_items, bool backwards) {
  return VisitDType(dtype, [&](auto tag) -> Items<T> {
    using In = typename decltype(tag)::type;
    if constexpr (IsOutput(kDTypeOf<In>, kDTypeOf<T>)) {
      return Items<T>(static_cast<const In*>(in), num_items, backwards);
    } else {
      FatalValue("ItemsOf", kDTypeOf<In>);
    }
  });
}

// The tree of the slots that were added so far, at most 31.
template <class T, class O>
class PrefixTree {
 public:
  PrefixTree(O op, T neutral) : op_(op), neutral_(neutral) {}

  void Add(T slot) {
    int level = 0;
    for (; num_slots_ >> level & 1; ++level) slot = op_(blocks_[level], slot);
    blocks_[level] = slot;
    ++num_slots_;
  }

  // The tree; neutral if no slots were added.
  T Get() const {
    T tree = neutral_;
    bool empty = true;
    for (int level = 0; num_slots_ >> level; ++level) {  // The later slots are in the smaller blocks.
      if (!(num_slots_ >> level & 1)) continue;
      tree = empty ? blocks_[level] : op_(blocks_[level], tree);
      empty = false;
    }
    return tree;
  }

  void Clear() { num_slots_ = 0; }

 private:
  O op_;
  T neutral_;
  unsigned num_slots_ = 0;
  T blocks_[5];  // blocks_[k]: the tree of 2^k slots, where bit k of num_slots_ is set.
};

// values holds the items of a leaf in num_runs whole runs. Each becomes the value of the items up to it. Fillers in the
// place of items that do not exist change no value of items that do. 1 <= num_runs <= kJoinSlots.
template <class T, class O>
void LeafValues(int num_runs, O op, T* values) {
  T runs[kJoinSlots];  // The values of the runs first; then the trees of runs 0 .. r.
  for (int r = 0; r < num_runs; ++r) {
    T* const run = values + r * kRunItems;
    for (int i = 1; i < kRunItems; ++i) run[i] = op(run[i - 1], run[i]);
    runs[r] = run[kRunItems - 1];
  }
  for (int width = 1; width < num_runs; width *= 2) {
    for (int block = width; block < num_runs; block += 2 * width) {  // `block` begins a right half.
      const T left = runs[block - 1];
      const int end = std::min(block + width, num_runs);
      for (int r = block; r < end; ++r) runs[r] = op(left, runs[r]);
    }
  }
  for (int r = 1; r < num_runs; ++r) {
    T* const run = values + r * kRunItems;
    for (int i = 0; i < kRunItems; ++i) run[i] = op(runs[r - 1], run[i]);
  }
}

// What stands before a leaf, within its group; neutral where there is nothing.
template <class T>
struct BeforeLeaf {
  T group;  // The tree of the tiles before its tile.
  T tile;   // The tree of the leaves before it in its tile.
};

// Calls visit(first, num_items, before, values) for each leaf of a group, in order: the leaf's items begin at `first`
// of the group, and the value of the group up to item first + i is before.group op (before.tile op values[i]). Returns
// the value of the group, which is items group_first .. group_first + num_items - 1. 1 <= num_items <= kGroupItems.
template <class T, class O, class Visit>
T VisitLeaves(const Items<T>& items, uint64_t group_first, int64_t num_items, T neutral, O op, Visit visit) {
  PrefixTree<T, O> tiles(op, neutral);
  PrefixTree<T, O> leaves(op, neutral);
  T values[kLeafItems];
  BeforeLeaf<T> before = {neutral, neutral};
  for (int64_t first = 0;;) {
    const int leaf_items = static_cast<int>(std::min<int64_t>(kLeafItems, num_items - first));
    items.Load(group_first + first, leaf_items, values);
    const int num_runs = (leaf_items + kRunItems - 1) / kRunItems;
    std::fill(values + leaf_items, values + num_runs * kRunItems, neutral);
    LeafValues(num_runs, op, values);
    visit(first, leaf_items, before, static_cast<const T*>(values));
    first += leaf_items;
    const T tile = op(before.tile, values[leaf_items - 1]);
    if (first == num_items) return op(before.group, tile);
    if (first % kTileItems == 0) {
      tiles.Add(tile);
      leaves.Clear();
      before = {tiles.Get(), neutral};
    } else {
      leaves.Add(values[leaf_items - 1]);
      before.tile = leaves.Get();
    }
  }
}

// The value of a group.
template <class T, class O>
T GroupValue(const Items<T>& items, uint64_t group_first, int64_t num_items, T neutral, O op) {
  if constexpr (!kIsFloating<T>) {  // The same in any order, so the order is the one that compilers make vectors of.
    T values[kLeafItems];
    T group = neutral;
    for (int64_t first = 0; first < num_items; first += kLeafItems) {
      const int leaf_items = static_cast<int>(std::min<int64_t>(kLeafItems, num_items - first));
      items.Load(group_first + first, leaf_items, values);
      for (int i = 0; i < leaf_items; ++i) group = op(group, values[i]);
    }
    return group;
  }
  return VisitLeaves(items, group_first, num_items, neutral, op, [](int64_t, int, const BeforeLeaf<T>&, const T*) {});
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ORDERED_H_
