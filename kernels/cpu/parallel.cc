// The only file that includes oneTBB, but for the yardsticks std and onetbb. Under the thread sanitizer these three are
// not instrumented: half of TBB's fork and join is in its headers, half in a library the sanitizer can't see, and from
// half of it the sanitizer concludes that tasks race with their creator. Here, the fork and the join are stated
// instead. The bodies are instrumented as ever, and two of them have no order between them, so their races are still
// found.
#include "kernels/cpu/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#ifdef PREFIXD_STATE_FORK_AND_JOIN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace prefixd::cpu {
namespace {

#ifdef PREFIXD_STATE_FORK_AND_JOIN
void Release(char* point) { __tsan_release(point); }
void Acquire(char* point) { __tsan_acquire(point); }
#else
void Release(char*) {}
void Acquire(char*) {}
#endif

}  // namespace

void ParallelFor(uint64_t num_parts, const std::function<void(uint64_t)>& body) {
  if (num_parts <= 1) {
    if (num_parts == 1) body(0);
    return;
  }
  char fork, join;
  Release(&fork);
  tbb::parallel_for(uint64_t{0}, num_parts, [&](uint64_t part) {
    Acquire(&fork);
    body(part);
    Release(&join);
  });
  Acquire(&join);
}

int Concurrency() {
  const size_t allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return static_cast<int>(std::min(allowed, static_cast<size_t>(tbb::this_task_arena::max_concurrency())));
}

}  // namespace prefixd::cpu
