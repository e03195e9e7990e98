#include "proto/process.h"

#include <malloc.h>

#include "absl/synchronization/mutex.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_purge_allocator();  // GCC has no header for it.
#endif

namespace prefixd {

void TuneProcess() {
#ifdef M_TRIM_THRESHOLD
  constexpr int kKeptBytes = 32 << 20;  // The most that a block in an arena may have.
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  mallopt(M_TOP_PAD, 1 << 20);
  mallopt(M_ARENA_MAX, 8);
#endif
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

void ReleaseFreeMemory() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_purge_allocator();
#elif defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace prefixd
