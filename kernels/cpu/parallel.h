// ParallelFor, the only way in which the CPU device uses several cores, and the parts that work is cut into.
#ifndef PREFIXD_KERNELS_CPU_PARALLEL_H_
#define PREFIXD_KERNELS_CPU_PARALLEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>

namespace prefixd::cpu {

// The number and the length of parts of part_items items. The last part may be shorter.
constexpr uint64_t NumParts(uint64_t num_items, uint64_t part_items) {
  return num_items / part_items + (num_items % part_items != 0);
}
constexpr uint64_t PartItems(uint64_t num_items, uint64_t part_items, uint64_t part) {
  return std::min(part_items, num_items - part * part_items);
}

// What one call did, for StageTimes.
struct Work {
  uint64_t launches = 0;
  uint64_t num_bytes = 0;
};

// Calls body(i) for every i below num_parts, once each, in any order, on any cores; a single call runs on this thread.
// Order:   everything before the call happens before every body, and every body before the return.
// Needs:   body throws nothing.
void ParallelFor(uint64_t num_parts, const std::function<void(uint64_t)>& body);

// Threads that ParallelFor uses.
int Concurrency();

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_PARALLEL_H_
