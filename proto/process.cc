#include "proto/process.h"

#include <malloc.h>

#include "absl/synchronization/mutex.h"

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

}  // namespace prefixd
