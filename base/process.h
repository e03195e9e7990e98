// What a program that carries arrays over gRPC sets for its whole process. Who links this gets its allocator with it:
// tcmalloc, of gperftools.
//
// gRPC allocates each message anew, and with glibc's allocator that is slow or large. As it comes, it gives the memory
// of a message back to the kernel when it is freed, which clears it page by page for the next one: a sixth of a
// server's time with one stream, more with several, whose threads wait for each other there. Told to keep it, it keeps
// some in each of its arenas, where threads that allocate from another have no use for it: three minutes of a mixed
// load on 16 cores took 599, then 682 MiB. tcmalloc has one heap for all threads: there 494, then 503, and 64 callers
// got a tenth more answers.
#ifndef PREFIXD_BASE_PROCESS_H_
#define PREFIXD_BASE_PROCESS_H_

#include <cstddef>
#include <cstdint>

namespace prefixd {

// main calls it once, first. Abseil's mutexes, which gRPC's are, then do not look for deadlocks. The distribution's do
// at every lock, all threads behind one spinlock: 64 callers of small requests got a fifth fewer answers.
void TuneProcess();

// Gives that much of the memory that is free back to the kernel, on average: it goes in whole free blocks, and what was
// too much counts for the next calls. For servers, again and again: the allocator alone does so only while memory is
// freed, and what a peak left behind would stay.
//
// Threads: any; who allocates a large block meanwhile may wait for a tenth of a millisecond a MiB.
void ReleaseFreeMemory(size_t size_bytes);

// What the process holds. Threads: any.
struct MemoryUse {
  uint64_t resident_bytes = 0;
  uint64_t in_use_bytes = 0;  // What the allocator has handed out. The rest of what is resident is free, or is no heap.
};
MemoryUse FindMemoryUse();

}  // namespace prefixd

#endif  // PREFIXD_BASE_PROCESS_H_
