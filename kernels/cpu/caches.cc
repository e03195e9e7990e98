#include "kernels/cpu/caches.h"

#include <unistd.h>

#include <algorithm>

namespace prefixd::cpu {

bool IsLargerThanCaches(uint64_t num_bytes) {
  static const uint64_t cache_bytes = [] {
    constexpr int64_t kUnknown = int64_t{32} << 20;
    const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return static_cast<uint64_t>(last_level > 0 ? last_level : kUnknown);
  }();
  return num_bytes > cache_bytes;
}

}  // namespace prefixd::cpu
