// What stands before the next leaf of an array that one thread, or one warp, goes through from its beginning: in
// registers, in the order of kernels/NUMERICS.md.
#ifndef PREFIXD_KERNELS_CUDA_ARRAY_PREFIX_CUH_
#define PREFIXD_KERNELS_CUDA_ARRAY_PREFIX_CUH_

#include <cstdint>

#include "kernels/association.h"

namespace prefixd::cuda {

// The slots of a part that were added so far, at most 31. blocks[k] is the tree of 2^k of them, if bit k of their
// number is set. The number is the same in all lanes of a warp, so that none goes another way than its neighbours.
template <class Operator>
struct Slots {
  using Item = typename Operator::Item;
  Item tree;  // The tree of all; neutral if there are none.
  Item blocks[5];

  // low: num_slots % kKnownSlots where the compiler knows it, for then most of this folds away.
  static constexpr uint32_t kKnownSlots = 8;
  __device__ void Add(uint32_t num_slots, Item slot) { Add(num_slots, num_slots % kKnownSlots, slot); }
  __device__ void Add(uint32_t num_slots, uint32_t low, Item slot) {
    bool is_placed = false;
#pragma unroll
    for (int level = 0; level < 5; ++level) {
      const bool has_block = ((1u << level < kKnownSlots ? low : num_slots) >> level & 1) != 0;
      if (is_placed) {
        if (has_block) tree = Operator::Combine(blocks[level], tree);
      } else if (has_block) {
        slot = Operator::Combine(blocks[level], slot);
      } else {
        blocks[level] = tree = slot;
        is_placed = true;
      }
    }
  }
};

template <class Operator, bool kAnyOrder = Operator::kAnyOrder>
class ArrayPrefix {
 public:
  using Item = typename Operator::Item;

  ArrayPrefix() = default;
  __device__ ArrayPrefix(Item start, Item neutral) : ArrayPrefix(start, neutral, neutral) {}
  // For no more than a tile, behind whole groups and the tree of whole tiles.
  __device__ ArrayPrefix(Item groups, Item tiles, Item neutral) : neutral_(neutral), groups_(groups) {
    tiles_.tree = tiles;
    leaves_.tree = neutral;
  }
  // The value of the array up to what of the next leaf has the value in_leaf.
  __device__ Item With(Item in_leaf) const {
    return Operator::Combine(groups_, Operator::Combine(tiles_.tree, Operator::Combine(leaves_.tree, in_leaf)));
  }
  // Adds a whole leaf, which is the index-th of the array.
  __device__ void Add(uint64_t index, Item slot) {
    constexpr uint32_t kLast = kJoinSlots - 1;
    const auto leaf = static_cast<uint32_t>(index % kJoinSlots);
    if (leaf < kLast) return leaves_.Add(leaf, slot);
    Close(leaves_, slot);
    const auto tile = static_cast<uint32_t>(index / kJoinSlots % kJoinSlots);
    if (tile < kLast) return tiles_.Add(tile, slot);
    Close(tiles_, slot);
    groups_ = Operator::Combine(groups_, slot);
  }

 private:
  __device__ void Close(Slots<Operator>& slots, Item& slot) const {
    slot = Operator::Combine(slots.tree, slot);
    slots.tree = neutral_;
  }

  Item neutral_;
  Item groups_;
  Slots<Operator> tiles_;
  Slots<Operator> leaves_;
};

// Where the order is free.
template <class Operator>
class ArrayPrefix<Operator, true> {
 public:
  using Item = typename Operator::Item;

  ArrayPrefix() = default;
  __device__ ArrayPrefix(Item start, Item /*neutral*/) : value_(start) {}
  __device__ ArrayPrefix(Item groups, Item tiles, Item /*neutral*/) : value_(Operator::Combine(groups, tiles)) {}
  __device__ Item With(Item item) const { return Operator::Combine(value_, item); }
  __device__ void Add(uint64_t /*index*/, Item item) { value_ = Operator::Combine(value_, item); }

 private:
  Item value_;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ARRAY_PREFIX_CUH_
