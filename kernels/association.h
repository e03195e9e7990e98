// The sizes of the parts in which elements combine: run, leaf, tile and group. NUMERICS.md defines the order.
#ifndef PREFIXD_KERNELS_ASSOCIATION_H_
#define PREFIXD_KERNELS_ASSOCIATION_H_

#include <cstdint>

namespace prefixd {

inline constexpr int kRunItems = 4;
inline constexpr int kJoinSlots = 32;  // Runs in a leaf, leaves in a tile, tiles in a group.
inline constexpr int kLeafItems = kRunItems * kJoinSlots;
inline constexpr int kTileItems = kLeafItems * kJoinSlots;
// An array can be cut after every kGroupItems items and continued with the carry: the bits do not change.
inline constexpr int64_t kGroupItems = int64_t{kTileItems} * kJoinSlots;

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ASSOCIATION_H_
