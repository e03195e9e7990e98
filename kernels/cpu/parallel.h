// The one way this device uses more than one core, and the blocks that work is cut into.
#ifndef PREFIXD_KERNELS_CPU_PARALLEL_H_
#define PREFIXD_KERNELS_CPU_PARALLEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>

namespace prefixd::cpu {

// Affects behaviour: where floating-point results associate. So it is a constant, never a function of the cores.
// Long enough that starting a task is lost in it; short enough that a block of doubles stays in a core's L2 cache
// between the two passes. A multiple of 8, so that no byte of a bit mask straddles two blocks.
inline constexpr uint64_t kBlockItems = uint64_t{1} << 14;

constexpr uint64_t NumBlocks(uint64_t num_items) { return num_items / kBlockItems + (num_items % kBlockItems != 0); }

constexpr uint64_t BlockItems(uint64_t num_items, uint64_t block) {
  return std::min(kBlockItems, num_items - block * kBlockItems);
}

// What one call did, for StageTimes.
struct Work {
  uint64_t launches = 0;
  uint64_t num_bytes = 0;
};

// Calls body(i) for every i below num_blocks, once each, in any order, on any cores; one block runs on this thread.
// Order:   everything before the call happens before every body, and every body before the return.
// Needs:   body throws nothing.
void ParallelFor(uint64_t num_blocks, const std::function<void(uint64_t)>& body);

// Threads that ParallelFor uses.
int Concurrency();

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_PARALLEL_H_
