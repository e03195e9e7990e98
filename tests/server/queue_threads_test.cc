// Threads of completion queues: every event is delivered, by whoever is there; for a lone caller by one thread.
#include "server/rpc/queue_threads.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPollTime{2000};
constexpr std::chrono::minutes kLimit{5};  // A poller gives way to others: beside them it may take seconds to be one.
constexpr int kQueues = 3;
constexpr int kThreadsPerQueue = 2;

// An event is what it does.
using Event = std::function<void()>;
void Deliver(void* event, bool /*ok*/) { (*static_cast<Event*>(event))(); }

// Queues with their threads, from the first event to the last.
class Queues {
 public:
  explicit Queues(std::chrono::microseconds poll_time, int num_queues = kQueues) : threads_(poll_time, Deliver) {
    while (size() < num_queues) Start();
  }
  ~Queues() { Stop(); }

  // One more.
  void Start() {
    queues_.push_back(std::make_unique<grpc::CompletionQueue>());
    threads_.Start(queues_.back().get(), kThreadsPerQueue);
  }
  int size() const { return static_cast<int>(queues_.size()); }

  // As if a call had come, of which the event tells. The event stays until Stop.
  void Call(int queue, Event event) {
    threads_.NoteCall(/*beside_many=*/false);
    events_.push_back(std::make_unique<Event>(std::move(event)));
    alarms_.push_back(std::make_unique<grpc::Alarm>());
    alarms_.back()->Set(queues_[queue].get(), gpr_inf_past(GPR_CLOCK_MONOTONIC), events_.back().get());
  }

  void Stop() {
    if (is_stopped_) return;
    is_stopped_ = true;
    for (const auto& queue : queues_) threads_.Stop(queue.get());
  }

 private:
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::unique_ptr<grpc::Alarm>> alarms_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues_;
  QueueThreads threads_;
  bool is_stopped_ = false;
};

// Calls one after the other, from queue to queue, until one thread has had each queue's twice in a row. No two in a row
// have one thread where each queue has its own. False: they never do.
bool GoToOneThread(Queues* queues) {
  std::thread::id last;
  int in_a_row = 0;
  const auto end = Clock::now() + kLimit;
  for (int i = 0; in_a_row < 2 * queues->size(); ++i) {
    if (Clock::now() > end) return false;
    Gate delivered;
    std::thread::id by;
    queues->Call(i % queues->size(), [&] {
      by = std::this_thread::get_id();
      delivered.Arrive();
    });
    if (!delivered.WaitFor(1)) return false;
    in_a_row = by == last ? in_a_row + 1 : 1;
    last = by;
  }
  return true;
}

TEST(QueueThreadsTest, ALoneCallersEventsGoToOneThread) {
  Queues queues(kPollTime);
  EXPECT_TRUE(GoToOneThread(&queues));
}

TEST(QueueThreadsTest, AQueueThatStartsLaterIsOneOfThem) {
  Queues queues(kPollTime);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(GoToOneThread(&queues));
    queues.Start();  // Mostly while one thread polls.
  }
  EXPECT_TRUE(GoToOneThread(&queues));
}

// No thread delivers another queue's events.
void ExpectOwnThreads(Queues* queues) {
  std::vector<std::set<std::thread::id>> threads(queues->size());
  for (int i = 0; i < 300; ++i) {
    const int queue = i % queues->size();
    Gate delivered;
    queues->Call(queue, [&] {
      threads[queue].insert(std::this_thread::get_id());
      delivered.Arrive();
    });
    ASSERT_TRUE(delivered.WaitFor(1));
  }
  std::set<std::thread::id> all;
  size_t sum = 0;
  for (const auto& some : threads) {
    EXPECT_LE(some.size(), kThreadsPerQueue);
    sum += some.size();
    all.insert(some.begin(), some.end());
  }
  EXPECT_EQ(all.size(), sum);
}

TEST(QueueThreadsTest, WithoutPollingEachQueueHasItsOwn) {
  Queues queues(std::chrono::microseconds(0));
  ExpectOwnThreads(&queues);
}

TEST(QueueThreadsTest, ManyThreadsStayAtTheirQueues) {
  Queues queues(kPollTime, /*num_queues=*/20);
  ExpectOwnThreads(&queues);
}

// The first event is the poller's, and waits for the second.
TEST(QueueThreadsTest, OneThatTakesLongHoldsUpNoOther) {
  for (int round = 0; round < kQueues; ++round) {
    Queues queues(kPollTime);
    ASSERT_TRUE(GoToOneThread(&queues));
    Gate second;
    Gate first;
    std::atomic<bool> have_met = false;
    queues.Call(round % kQueues, [&] {
      have_met = second.WaitFor(1);
      first.Arrive();
    });
    queues.Call((round + 1) % kQueues, [&] { second.Arrive(); });
    ASSERT_TRUE(first.WaitFor(1));
    EXPECT_TRUE(have_met);
  }
}

TEST(QueueThreadsTest, ManyAtOnceGoToMany) {
  Queues queues(kPollTime);
  ASSERT_TRUE(GoToOneThread(&queues));
  const auto end = Clock::now() + kLimit;
  std::set<std::thread::id> threads;
  std::mutex mutex;
  while (threads.size() < 3) {
    ASSERT_LT(Clock::now(), end) << threads.size();
    constexpr int kEvents = 100;
    Gate delivered;
    for (int i = 0; i < kEvents; ++i) {
      queues.Call(i % kQueues, [&] {
        for (const auto until = Clock::now() + std::chrono::microseconds(20); Clock::now() < until;) continue;
        {
          const std::lock_guard<std::mutex> lock(mutex);
          threads.insert(std::this_thread::get_id());
        }
        delivered.Arrive();
      });
    }
    ASSERT_TRUE(delivered.WaitFor(kEvents));
  }
}

// Stops at any time, as threads are called outside, poll, or are let in.
TEST(QueueThreadsTest, NothingIsLostWhenItStops) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 200; ++round) {
    Queues queues(std::chrono::microseconds(rng() % 3000));
    const int num_events = static_cast<int>(rng() % 40);
    std::atomic<int> num_delivered = 0;
    for (int i = 0; i < num_events; ++i) {
      queues.Call(static_cast<int>(rng() % kQueues), [&] { ++num_delivered; });
      std::this_thread::sleep_for(std::chrono::microseconds(rng() % 200));  // Any time, that is.
    }
    queues.Stop();
    ASSERT_EQ(num_delivered, num_events) << "round " << round;
  }
}

TEST(QueueThreadsTest, AQueueMayEndThatWasNeverStarted) {
  grpc::CompletionQueue queue;
  QueueThreads threads(kPollTime, Deliver);
  threads.Stop(&queue);
}

}  // namespace
}  // namespace prefixd
