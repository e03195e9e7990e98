// The trees of a Prefix, of single items. O combines them.
#ifndef PREFIXD_KERNELS_CPU_SIMD_PREFIX_TREES_H_
#define PREFIXD_KERNELS_CPU_SIMD_PREFIX_TREES_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

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

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_PREFIX_TREES_H_
