// What a program that carries arrays over gRPC sets for its whole process.
#ifndef PREFIXD_PROTO_PROCESS_H_
#define PREFIXD_PROTO_PROCESS_H_

namespace prefixd {

// main calls it once, first. It changes two things that a library must not decide, and gRPC does not:
//
// - The memory of messages stays in the process, until ReleaseFreeMemory. gRPC allocates each message anew. By default
//   glibc gives that memory back to the kernel when it is freed, and the kernel clears it page by page for the next
//   message: a sixth of a server's time with one stream, more with several, whose threads wait for each other there.
//   Each of malloc's arenas may then keep 32 MiB, and there are 8 of them at most, where glibc has 8 for each core:
//   memory that was freed in one is of no use to a thread that allocates from another. Without effect where malloc is
//   not glibc's.
// - Abseil's mutexes, which gRPC's are, do not look for deadlocks. The distribution's do at every lock, all threads
//   behind one spinlock: 64 callers of small requests got a fifth fewer answers.
void TuneProcess();

// Gives memory that is free back to the kernel, but for the end of each arena: for servers, every few seconds. What
// peaks left behind, thousands of connections or cancelled calls, would stay in each arena in turn.
//
// Threads: any; who allocates meanwhile may wait for some milliseconds.
// Without effect where malloc is not glibc's.
void ReleaseFreeMemory();

}  // namespace prefixd

#endif  // PREFIXD_PROTO_PROCESS_H_
