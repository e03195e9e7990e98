// Keeps the memory of messages in the process. For programs that stream arrays: main calls it once, first.
//
// gRPC allocates each message anew. By default glibc gives that memory back to the kernel when it is freed, and the
// kernel clears it page by page for the next message: a sixth of a server's time with one stream, more with several,
// whose threads wait for each other there.
#ifndef PREFIXD_PROTO_MESSAGE_MEMORY_H_
#define PREFIXD_PROTO_MESSAGE_MEMORY_H_

#include <malloc.h>

namespace prefixd {

// Each of malloc's arenas may then keep 32 MiB, and there are 8 of them at most, where glibc has 8 for each core:
// memory that was freed in one is of no use to a thread that allocates from another. Without effect where malloc is not
// glibc's.
inline void KeepMessageMemory() {
#ifdef M_TRIM_THRESHOLD
  constexpr int kKeptBytes = 32 << 20;  // The most that a block in an arena may have.
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  mallopt(M_TOP_PAD, 1 << 20);
  mallopt(M_ARENA_MAX, 8);
#endif
}

}  // namespace prefixd

#endif  // PREFIXD_PROTO_MESSAGE_MEMORY_H_
