#include "client/polling_call.h"

#include <grpc/support/time.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace prefixd::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollTime{2};
// If a thread that yields has not got its core back by then, others have work for it.
constexpr std::chrono::microseconds kMaxYield{50};

// False: it gave up, for the time is up or others want the core.
bool Poll(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  const auto start = Clock::now();
  for (auto last = start; last - start < kPollTime;) {
    if (queue->AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT) return true;
    std::this_thread::yield();
    const auto now = Clock::now();
    if (now - last >= kMaxYield) return false;
    last = now;
  }
  return false;
}

}  // namespace

void AwaitPolling(grpc::CompletionQueue* queue) {
  static std::atomic<bool> somebody_polls = false;
  bool has_come = false;
  if (!somebody_polls.exchange(true, std::memory_order_relaxed)) {
    has_come = Poll(queue);
    somebody_polls.store(false, std::memory_order_relaxed);
  }
  void* tag = nullptr;
  bool ok = false;
  if (!has_come) queue->Next(&tag, &ok);
  queue->Shutdown();
  while (queue->Next(&tag, &ok)) continue;
}

}  // namespace prefixd::client
