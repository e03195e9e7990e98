// The order of kernels/NUMERICS.md on a core: values of leaves, tiles and groups, in one pass over the items.
//
//   T value = GroupValue(in, 1, num_items, neutral, op);
//   VisitLeaves(in, 1, num_items, neutral, op, [&](int64_t first, int num_items, const BeforeLeaf<T>& before,
//                                                  const T* values) { ... });
//
// Items of another type are converted to T as they are read. Everything here is one thread's.
#ifndef PREFIXD_KERNELS_CPU_ORDERED_H_
#define PREFIXD_KERNELS_CPU_ORDERED_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/association.h"

namespace prefixd::cpu {

// The tree of up to 31 slots that came so far.
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

  // Of no slots: neutral.
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

// values[i] becomes the value of the leaf's items 0 .. i. Items in[0], in[step], ...; 1 <= num_items <= kLeafItems.
template <class T, class In, class O>
void LeafValues(const In* in, ptrdiff_t step, int num_items, O op, T* values) {
  T runs[kJoinSlots];  // Their values; then the trees of runs 0 .. r.
  const int num_runs = (num_items + kRunItems - 1) / kRunItems;
  for (int r = 0; r < num_runs; ++r) {
    const int first = r * kRunItems;
    const int end = std::min(first + kRunItems, num_items);
    values[first] = static_cast<T>(in[first * step]);
    for (int i = first + 1; i < end; ++i) values[i] = op(values[i - 1], static_cast<T>(in[i * step]));
    runs[r] = values[end - 1];
  }
  for (int width = 1; width < num_runs; width *= 2) {
    for (int r = width; r < num_runs; ++r) {
      if (r & width) runs[r] = op(runs[(r & ~(2 * width - 1)) + width - 1], runs[r]);
    }
  }
  for (int i = kRunItems; i < num_items; ++i) values[i] = op(runs[i / kRunItems - 1], values[i]);
}

// What stands before a leaf, within its group; neutral where there is nothing.
template <class T>
struct BeforeLeaf {
  T group;  // The tree of the tiles before its tile.
  T tile;   // The tree of the leaves before it in its tile.
};

// Calls visit(first, num_items, before, values) for each leaf of a group, in order: the leaf's items begin at `first`
// of the group, and the value of the group up to item first + i is before.group op (before.tile op values[i]). Returns
// the value of the group. 1 <= num_items <= kGroupItems.
template <class T, class In, class O, class Visit>
T VisitLeaves(const In* in, ptrdiff_t step, int64_t num_items, T neutral, O op, Visit visit) {
  PrefixTree<T, O> tiles(op, neutral);
  PrefixTree<T, O> leaves(op, neutral);
  T values[kLeafItems];
  BeforeLeaf<T> before = {neutral, neutral};
  for (int64_t first = 0;;) {
    const int leaf_items = static_cast<int>(std::min<int64_t>(kLeafItems, num_items - first));
    LeafValues(in + first * step, step, leaf_items, op, values);
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
template <class T, class In, class O>
T GroupValue(const In* in, ptrdiff_t step, int64_t num_items, T neutral, O op) {
  return VisitLeaves(in, step, num_items, neutral, op, [](int64_t, int, const BeforeLeaf<T>&, const T*) {});
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ORDERED_H_
