// Waiting without sleeping. A core that has nothing to do halts, and on virtual machines it comes back a tenth of a
// millisecond late: longer than a small call takes.
#ifndef PREFIXD_BASE_POLLING_H_
#define PREFIXD_BASE_POLLING_H_

#include <chrono>
#include <cstdint>
#include <thread>

namespace prefixd {

enum class Polled : uint8_t { kFound, kTimeIsUp, kOthersWantTheCore };

// Calls `look` until it returns true or the time is up, and gives the core in between to any other thread that wants
// it. If it has not come back soon, others have work for it.
// Threads: any. Cost: all of the core, and a call of the system for each look.
template <class Look>
Polled Poll(std::chrono::nanoseconds time, Look look) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kMaxYield{50};
  for (const auto end = Clock::now() + time;;) {
    if (look()) return Polled::kFound;
    const auto before = Clock::now();
    if (before >= end) return Polled::kTimeIsUp;
    std::this_thread::yield();
    if (Clock::now() - before >= kMaxYield) return Polled::kOthersWantTheCore;
  }
}

}  // namespace prefixd

#endif  // PREFIXD_BASE_POLLING_H_
