// Which algorithm an operation asks for, or ran: a strategy, a tile scan and its knobs. The lists of their names are in
// types.h. Values: no threads, no ownership.
#ifndef PREFIXD_KERNELS_ALGORITHM_H_
#define PREFIXD_KERNELS_ALGORITHM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/types.h"

namespace prefixd {

// The choice of an algorithm: how tiles are joined, how one tile is scanned, and the knobs of the tile scan. A default
// leaves the choice to the device. CheckAlgorithm in device.h says which values go together.
struct Algorithm {
  Strategy strategy = Strategy::kDefault;
  TileScan tile_scan = TileScan::kDefault;  // For scans whose strategy TakesTileScan.
  uint8_t items_per_thread = 0;             // If TakesItemsPerThread: a power of two up to kMaxItemsPerThread.
  bool padding = false;                     // If TakesPadding: one spare word after every 32, against bank conflicts.

  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

inline constexpr int kMaxItemsPerThread = 16;
// kChained without a tile scan is the fast kernel, which scans its tiles in its own way.
constexpr bool TakesTileScan(Strategy strategy) {
  return strategy == Strategy::kThreePhase || strategy == Strategy::kGridSync || strategy == Strategy::kChainedSerial ||
         strategy == Strategy::kChained;
}
constexpr bool TakesItemsPerThread(TileScan tile_scan) { return tile_scan == TileScan::kBrentKung; }
constexpr bool TakesPadding(TileScan tile_scan) {
  return tile_scan == TileScan::kBrentKung || tile_scan == TileScan::kBlelloch;
}

// The choice as a name, with slashes: "chained", "three_phase/brent_kung", "three_phase/brent_kung/4/padded".
std::string Name(const Algorithm& algorithm);
// The inverse: true and *out set if `name` is one. Knows every name, also of choices that CheckAlgorithm refuses.
bool FromName(std::string_view name, Algorithm* out);

// Whether the results of the algorithm have the bits of NUMERICS.md. Other algorithms have these bits for integers, min
// and max, for which every order gives the same. Ends the process for a strategy outside the list.
constexpr bool FollowsNumerics(const Algorithm& algorithm) {
  const bool names_tile_scan = TakesTileScan(algorithm.strategy) && algorithm.tile_scan != TileScan::kDefault;
  switch (algorithm.strategy) {
#define PREFIXD_CASE(enumerator, name, follows) \
  case Strategy::enumerator:                    \
    return follows && !names_tile_scan;
    PREFIXD_STRATEGIES(PREFIXD_CASE)  // NOLINT(bugprone-branch-clone): the list says which of them are alike.
#undef PREFIXD_CASE
  }
  FatalValue("FollowsNumerics", algorithm.strategy);
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ALGORITHM_H_
