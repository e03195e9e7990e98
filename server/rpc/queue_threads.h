// The threads of gRPC's completion queues: they wait for events and deliver them. For a lone caller one of them does it
// all, and looks again and again instead of waiting.
//
// gRPC lets one thread of a process wait for the sockets, and that thread wakes one of the queue that an event is for.
// Both sleep while a kernel runs. So a caller who calls, waits and calls again pays for two threads to wake: on virtual
// machines 100 to 200 us, more than all else that his call takes beside its kernel. While calls come close, one thread,
// the poller, looks into all queues, and the others stay outside of gRPC, for any of them inside would be the one that
// waits for the sockets.
//
// Polling ends when no call has come for poll_time, so long streams are not delivered by one thread; when there is more
// to deliver than one thread can, or something takes long; and when others want the core. In the last two cases nobody
// polls for 5 to 250 ms. Nobody polls either while many calls are under way, as those who do not read have.
//
// Threads: Start and Stop one thread; NoteCall any.
// Cost:    a core while calls come within poll_time of each other, whoever makes them, refused ones too; else two reads
//          of the clock for each event.
#ifndef PREFIXD_SERVER_RPC_QUEUE_THREADS_H_
#define PREFIXD_SERVER_RPC_QUEUE_THREADS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"

namespace prefixd {

class QueueThreads {
 public:
  // Called for each event, by any of the threads. It must not block.
  using Deliver = void (*)(void* event, bool ok);

  // poll_time: 0: nobody polls.
  QueueThreads(std::chrono::microseconds poll_time, Deliver deliver) : poll_time_(poll_time), deliver_(deliver) {}
  ~QueueThreads() = default;  // Needs: each queue was stopped.
  QueueThreads(const QueueThreads&) = delete;
  QueueThreads& operator=(const QueueThreads&) = delete;

  // Starts threads for the queue, which outlives them. Throws std::system_error; those that were started are there
  // then.
  void Start(grpc::CompletionQueue* queue, int num_threads);

  // A call has come. beside_many: others are under way, so many that nobody is to poll.
  void NoteCall(bool beside_many);

  // Ends the queue, whether it was started or not, and its threads when all its events are delivered.
  void Stop(grpc::CompletionQueue* queue);

 private:
  using Clock = std::chrono::steady_clock;

  struct Queue {
    explicit Queue(grpc::CompletionQueue* its) : grpc(its) {}
    grpc::CompletionQueue* const grpc;
    std::vector<std::thread> threads;                  // The caller's of Start and Stop.
    std::vector<std::unique_ptr<grpc::Alarm>> alarms;  // Each an event that calls a thread outside.
    int num_threads = 0;
    int num_called = 0;  // Such events that no thread has taken yet.
    bool is_ending = false;
  };

  void Run(Queue* queue);
  bool WantsToPoll() const;
  // Until nobody looks for the next call any more.
  Clock::duration TimeLeft() const;
  // What a poller does from calling the others outside to letting them in.
  void PollAlone(Queue* own);
  // A new poller's number, where to look, and how many threads have to be outside; 0: nobody can poll now.
  uint64_t CallOutside(const Queue* own, std::vector<Queue*>* queues, int* num_others);
  // Looks into the queues until polling has to end. False: it gave up.
  bool DeliverAlone(const std::vector<Queue*>& queues, uint64_t poller);
  // Takes an event from each queue. False: none had any.
  bool DeliverSome(const std::vector<Queue*>& queues);
  void EndPolling(std::chrono::milliseconds pause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A thread has been called.
  void CountTaken(Queue* queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StayOutside(Queue* queue);

  const std::chrono::microseconds poll_time_;
  const Deliver deliver_;
  std::atomic<bool> calls_are_close_{false};
  std::atomic<Clock::time_point> last_call_{};
  std::atomic<Clock::time_point> not_before_{};  // Nobody polls until then.
  std::atomic<Clock::time_point> last_look_{};   // The poller's.
  // Changed with the mutex held.
  std::atomic<uint64_t> poller_{0};  // The number of the one that there is; 0: none.
  std::atomic<int> num_outside_{0};
  Mutex mutex_;
  CondVar let_in_;                                              // Those outside.
  CondVar is_gone_;                                             // The poller.
  uint64_t num_pollers_ ABSL_GUARDED_BY(mutex_) = 0;            // That there have been.
  std::chrono::milliseconds pause_ ABSL_GUARDED_BY(mutex_){0};  // For the last poller that gave up.
  int num_looking_ ABSL_GUARDED_BY(mutex_) = 0;                 // Threads that may look into others' queues.
  bool has_watcher_ ABSL_GUARDED_BY(mutex_) = false;  // One of those outside looks whether the poller goes on.
  std::vector<std::unique_ptr<Queue>> queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_QUEUE_THREADS_H_
