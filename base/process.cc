#include "base/process.h"

#if defined(PREFIXD_WITH_TCMALLOC)
#include <gperftools/malloc_extension.h>
#endif
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "absl/synchronization/mutex.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_purge_allocator();  // GCC has no header for them.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
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

MemoryUse FindMemoryUse() {
  MemoryUse use;
  uint64_t all_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  use.resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#if defined(PREFIXD_WITH_TCMALLOC)
  size_t in_use = 0;
  MallocExtension::instance()->GetNumericProperty("generic.current_allocated_bytes", &in_use);
  use.in_use_bytes = in_use;
#elif defined(__SANITIZE_ADDRESS__)
  use.in_use_bytes = __sanitizer_get_current_allocated_bytes();
#else
  use.in_use_bytes = mallinfo2().uordblks;
#endif
  return use;
}

}  // namespace prefixd
