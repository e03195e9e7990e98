// The parts that the order of combination is made of: see NUMERICS.md.
#ifndef PREFIXD_KERNELS_ASSOCIATION_H_
#define PREFIXD_KERNELS_ASSOCIATION_H_

#include <cstdint>

namespace prefixd {

inline constexpr int kRunItems = 4;
inline constexpr int kJoinSlots = 32;  // Runs of a leaf, leaves of a tile, tiles of a group.
inline constexpr int kLeafItems = kRunItems * kJoinSlots;
inline constexpr int kTileItems = kLeafItems * kJoinSlots;
// An array can be cut after so many items, and carried on, without a change of bits.
inline constexpr int64_t kGroupItems = int64_t{kTileItems} * kJoinSlots;

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ASSOCIATION_H_
