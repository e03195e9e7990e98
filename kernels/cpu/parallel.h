// The only ways in which the CPU device uses several cores, and the parts that work is cut into.
//
// Threads: both functions share the threads of one pool with all other calls in the process, and use the caller's. They
// may be called from the body of another: whoever waits, waits for a part that somebody is working on, and who works on
// a part never waits for a later one.
#ifndef PREFIXD_KERNELS_CPU_PARALLEL_H_
#define PREFIXD_KERNELS_CPU_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace prefixd::cpu {

// The number and the length of parts of part_items items. The last part may be shorter.
constexpr uint64_t NumParts(uint64_t num_items, uint64_t part_items) {
  return num_items / part_items + (num_items % part_items != 0);
}
constexpr uint64_t PartItems(uint64_t num_items, uint64_t part_items, uint64_t part) {
  return std::min(part_items, num_items - part * part_items);
}

// What one call did, for StageTimes.
struct Work {
  uint64_t launches = 0;
  uint64_t num_bytes = 0;
};

// Calls body(i) for every i below num_parts, once each, in any order, on any cores; a single call runs on this thread.
// Order:   everything before the call happens before every body, and every body before the return.
// Needs:   body throws nothing.
void ParallelFor(uint64_t num_parts, const std::function<void(uint64_t)>& body);

// Threads that ParallelFor uses.
int Concurrency();

// Threads for an array cut in num_parts. Each has at least 8: it takes as long as some of them to wake one up.
inline int NumThreads(uint64_t num_parts) {
  constexpr uint64_t kMinPartsOfThread = 8;
  if (num_parts < 2 * kMinPartsOfThread) return 1;  // Asking takes longer than a short array.
  const uint64_t num_threads = std::min(num_parts / kMinPartsOfThread, static_cast<uint64_t>(Concurrency()));
  return std::max(1, static_cast<int>(num_threads));
}

// Calls body(part) for every part of an array, on as many threads as pay. As ParallelFor.
template <class Body>
void ForParts(uint64_t num_parts, const Body& body) {
  if (NumThreads(num_parts) > 1) return ParallelFor(num_parts, body);
  for (uint64_t part = 0; part < num_parts; ++part) body(part);
}

// Says whose turn it is among parts that are numbered from 0.
class Turns {
 public:
  // Waits for the turn of `part`, the first moments awake.
  void Await(uint64_t part) const {
    for (int spins = 0;; ++spins) {
      const uint64_t now = part_.load(std::memory_order_acquire);
      if (now == part) return;
      if (spins < kMaxPauses) {
        Pause();
      } else if (spins < kMaxPauses + kMaxYields) {
        std::this_thread::yield();
      } else {
        part_.wait(now, std::memory_order_acquire);
      }
    }
  }

  // Whether Await would return at once.
  bool IsNow(uint64_t part) const { return part_.load(std::memory_order_acquire) == part; }

  // Ends the turn of `part`. What its owner did before happens before what the next one does after its Await.
  void Pass(uint64_t part) {
    part_.store(part + 1, std::memory_order_release);
    part_.notify_all();
  }

 private:
  // 10 to 50 us, what the reduction of a part takes, and some hundred more, which leave the core to who needs it: a
  // sleeper takes as long as several parts to wake up.
  static constexpr int kMaxPauses = 1000;
  static constexpr int kMaxYields = 500;

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<uint64_t> part_ = 0;
};

// Scans parts on num_threads threads. Each part is reduced, waits for the parts before it to have been added to
// *prefix, is added itself, and is finished behind what stood there:
//
//   Value reduce(part);
//   void add(const Value&, Prefix*);
//   void finish(part, const Prefix& before, const Value&, next_part);
//   void whole(part, Prefix*, next_part);
//
// A part whose turn it is when a thread takes it is finished and added at once, by `whole`. So a thread that runs
// alone, because others have the cores, does nothing twice.
//
// A part is finished soon after it was reduced and by the same thread, which has it in its cache. Threads take parts in
// order, from a counter; next_part is the one that the thread reduces next, and none if it is num_parts or more.
template <class Prefix, class Reduce, class Add, class Finish, class Whole>
void Chain(int num_threads, uint64_t num_parts, Prefix* prefix, Reduce reduce, Add add, Finish finish, Whole whole) {
  std::atomic<uint64_t> next_part = 0;
  Turns turns;
  ParallelFor(num_threads, [&](uint64_t /*thread*/) {
    uint64_t part = next_part.fetch_add(1, std::memory_order_relaxed);
    while (part < num_parts) {
      if (turns.IsNow(part)) {
        const uint64_t next = next_part.fetch_add(1, std::memory_order_relaxed);
        whole(part, prefix, next);
        turns.Pass(part);
        part = next;
        continue;
      }
      auto value = reduce(part);
      turns.Await(part);
      const Prefix before = *prefix;
      add(value, prefix);
      turns.Pass(part);
      const uint64_t next = next_part.fetch_add(1, std::memory_order_relaxed);
      finish(part, before, value, next);
      part = next;
    }
  });
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_PARALLEL_H_
