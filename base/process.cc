#include "base/process.h"

#if defined(PREFIXD_WITH_TCMALLOC)
#include <gperftools/malloc_extension.h>
#endif

#include <atomic>

#include "absl/synchronization/mutex.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_purge_allocator();  // GCC has no header for it.
#endif

namespace prefixd {

void TuneProcess() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

void ReleaseFreeMemory([[maybe_unused]] size_t size_bytes) {
#if defined(PREFIXD_WITH_TCMALLOC)
  MallocExtension::instance()->ReleaseToSystem(size_bytes);
#elif defined(__SANITIZE_ADDRESS__)
  static std::atomic<int> calls{0};
  // All that is free, and what ASan holds back to find its use: so not each time.
  if (++calls % 10 == 0) __sanitizer_purge_allocator();
#endif
}

}  // namespace prefixd
