// What the caches are like, and when results go past them.
#ifndef PREFIXD_KERNELS_CPU_CACHES_H_
#define PREFIXD_KERNELS_CPU_CACHES_H_

#include <cstdint>

namespace prefixd::cpu {

// What memory brings at once.
inline constexpr uint64_t kLineBytes = 64;

// Whether an operation of this traffic, read and written, should write past the caches. It saves the reading of what is
// overwritten, a third of a copy's traffic; but who reads the results next finds them in memory. So it is for what the
// caches would not hold anyway.
bool IsLargerThanCaches(uint64_t num_bytes);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_CACHES_H_
