#include "server/rpc/queue_threads.h"

#include <algorithm>
#include <utility>

#include "base/polling.h"
#include "grpc/support/time.h"

namespace prefixd {
namespace {

// How long the poller waits for the others, who have to wake.
constexpr std::chrono::milliseconds kMaxCalling{1};
// Where there are more, all of them wait for events as ever: to call them outside would take longer than it saves.
constexpr int kMaxThreads = 32;
// When there is work for more threads than the poller: it finds something that often in a row, or it works for more
// than half of such a time. A look that takes long is work, even if it finds no event: gRPC reads from sockets
// meanwhile.
constexpr int kMaxFinds = 32;
constexpr std::chrono::milliseconds kWorkWindow{2};
constexpr std::chrono::microseconds kIdleLook{50};
// How long it may not look, until the others take over.
constexpr std::chrono::milliseconds kMaxStuck{1};
// How long nobody polls after a poller gave up: twice as long each time, unless it had lasted.
constexpr std::chrono::milliseconds kNoPause{0};
constexpr std::chrono::milliseconds kMinPause{5};
constexpr std::chrono::milliseconds kMaxPause{250};
constexpr std::chrono::milliseconds kLasting{50};

}  // namespace

void QueueThreads::Start(grpc::CompletionQueue* queue, int num_threads) {
  auto owned = std::make_unique<Queue>(queue);
  Queue* const started = owned.get();
  started->num_threads = num_threads;
  {
    MutexLock lock(mutex_);
    if (poller_ != 0) EndPolling(kNoPause);  // The new threads are inside.
    queues_.push_back(std::move(owned));
  }
  for (int i = 0; i < num_threads; ++i) started->threads.emplace_back([this, started] { Run(started); });
}

void QueueThreads::NoteCall(bool beside_many) {
  const auto now = Clock::now();
  const auto last = last_call_.exchange(now, std::memory_order_relaxed);
  calls_are_close_.store(!beside_many && now - last < poll_time_, std::memory_order_relaxed);
}

void QueueThreads::Stop(grpc::CompletionQueue* queue) {
  std::unique_ptr<Queue> stopped;
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(queues_.begin(), queues_.end(), [&](const auto& it) { return it->grpc == queue; });
    if (found != queues_.end()) {
      (*found)->is_ending = true;
      if (poller_ != 0) EndPolling(kNoPause);
      while (num_looking_ > 0) is_gone_.Wait(mutex_);
      stopped = std::move(*found);
      queues_.erase(found);
    }
  }
  queue->Shutdown();
  if (stopped != nullptr) {
    for (std::thread& thread : stopped->threads) thread.join();
  }
  void* event = nullptr;
  bool ok = false;
  while (queue->Next(&event, &ok)) {  // Where not all threads were started.
    if (event != stopped.get()) deliver_(event, ok);
  }
}

void QueueThreads::Run(Queue* queue) {
  void* event = nullptr;
  bool ok = false;
  while (queue->grpc->Next(&event, &ok)) {
    if (event == queue) {
      StayOutside(queue);
      continue;
    }
    deliver_(event, ok);
    if (WantsToPoll()) PollAlone(queue);
  }
}

bool QueueThreads::WantsToPoll() const {
  return poll_time_.count() > 0 && calls_are_close_.load(std::memory_order_relaxed) &&
         poller_.load(std::memory_order_relaxed) == 0 && Clock::now() >= not_before_.load(std::memory_order_relaxed) &&
         TimeLeft() > Clock::duration::zero();
}

QueueThreads::Clock::duration QueueThreads::TimeLeft() const {
  return last_call_.load(std::memory_order_relaxed) + poll_time_ - Clock::now();
}

void QueueThreads::PollAlone(Queue* own) {
  std::vector<Queue*> queues;
  int num_others = 0;
  const uint64_t poller = CallOutside(own, &queues, &num_others);
  if (poller == 0) return;
  const auto start = Clock::now();
  const Polled are_outside = Poll(kMaxCalling, [&] {
    last_look_.store(Clock::now(), std::memory_order_relaxed);
    return num_outside_.load(std::memory_order_relaxed) == num_others;
  });
  const bool gave_up = are_outside != Polled::kFound || !DeliverAlone(queues, poller);
  MutexLock lock(mutex_);
  if (poller_ == poller) {
    if (!gave_up || Clock::now() - start > kLasting) pause_ = kNoPause;
    if (gave_up) pause_ = std::clamp(2 * pause_, kMinPause, kMaxPause);
    EndPolling(pause_);
  }
  --num_looking_;
  is_gone_.NotifyAll();
}

uint64_t QueueThreads::CallOutside(const Queue* own, std::vector<Queue*>* queues, int* num_others) {
  MutexLock lock(mutex_);
  if (poller_ != 0 || own->is_ending || Clock::now() < not_before_.load(std::memory_order_relaxed)) return 0;
  int num_threads = 0;
  for (const auto& queue : queues_) {
    if (queue->is_ending) return 0;
    queues->push_back(queue.get());
    num_threads += queue->num_threads;
  }
  if (num_threads > kMaxThreads) {
    not_before_ = Clock::now() + kMaxPause;
    return 0;
  }
  *num_others = num_threads - 1;
  poller_ = ++num_pollers_;
  ++num_looking_;
  last_look_ = Clock::now();
  for (Queue* const queue : *queues) {
    const int wanted = queue->num_threads - (queue == own ? 1 : 0);
    for (; queue->num_called < wanted; ++queue->num_called) {
      queue->alarms.push_back(std::make_unique<grpc::Alarm>());
      queue->alarms.back()->Set(queue->grpc, gpr_inf_past(GPR_CLOCK_MONOTONIC), queue);
    }
  }
  return poller_;
}

bool QueueThreads::DeliverAlone(const std::vector<Queue*>& queues, uint64_t poller) {
  int num_finds = 0;  // In a row.
  auto window_start = Clock::now();
  Clock::duration work{0};  // Since then.
  const auto has_ended = [&] { return poller_.load(std::memory_order_relaxed) != poller; };
  const auto look = [&] {
    const auto start = Clock::now();
    last_look_.store(start, std::memory_order_relaxed);
    if (start - window_start > kWorkWindow) {
      window_start = start;
      work = Clock::duration::zero();
    }
    const bool has_found = DeliverSome(queues);
    const auto took = Clock::now() - start;
    const bool is_work = has_found || took > kIdleLook;
    num_finds = is_work ? num_finds + 1 : 0;
    if (is_work) work += took;
    return is_work || has_ended();
  };
  while (!has_ended() && calls_are_close_.load(std::memory_order_relaxed)) {
    const Polled polled = Poll(TimeLeft(), look);
    if (polled == Polled::kTimeIsUp) break;
    if (polled == Polled::kOthersWantTheCore || num_finds > kMaxFinds || work > kWorkWindow / 2) return false;
  }
  return true;
}

bool QueueThreads::DeliverSome(const std::vector<Queue*>& queues) {
  bool has_found = false;
  for (Queue* const queue : queues) {
    void* event = nullptr;
    bool ok = false;
    if (queue->grpc->AsyncNext(&event, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) != grpc::CompletionQueue::GOT_EVENT) {
      continue;
    }
    has_found = true;
    if (event == queue) {  // The poller itself was called, before it became one.
      MutexLock lock(mutex_);
      CountTaken(queue);
    } else {
      deliver_(event, ok);
    }
  }
  return has_found;
}

void QueueThreads::EndPolling(std::chrono::milliseconds pause) {
  not_before_ = Clock::now() + pause;
  poller_ = 0;
  num_outside_ = 0;
  let_in_.NotifyAll();
}

void QueueThreads::CountTaken(Queue* queue) {
  if (--queue->num_called == 0) queue->alarms.clear();
}

void QueueThreads::StayOutside(Queue* queue) {
  MutexLock lock(mutex_);
  CountTaken(queue);
  const uint64_t poller = poller_;
  if (poller == 0 || queue->is_ending) return;
  ++num_outside_;
  while (poller_ == poller) {
    if (has_watcher_) {
      let_in_.Wait(mutex_);
      continue;
    }
    has_watcher_ = true;
    let_in_.WaitFor(mutex_, kMaxStuck);
    has_watcher_ = false;
    if (poller_ == poller && Clock::now() - last_look_.load(std::memory_order_relaxed) > kMaxStuck) {
      EndPolling(kMaxPause);
    }
  }
}

}  // namespace prefixd
