// One call of gRPC's: bytes in, bytes out. A reactor starts reads and writes, and is told when they are done.
//
//   class Echo final : public Reactor {
//     explicit Echo(Rpc* rpc) : Reactor(rpc) {}
//     void OnStart() override { StartRead(&message_); }
//     void OnReadDone(bool ok) override { ok ? StartWriteAndFinish(&message_) : Finish(grpc::Status::OK); }
//     void OnDone() override { delete this; }
//     grpc::ByteBuffer message_;
//   };
//
// gRPC has reactors too, which share one completion queue in the whole process: with many small calls its threads wait
// for that queue's lock (docs/decisions/own_reactors.md). Ours are spread over several (call_queues.h).
//
// Threads: the On... are called by the threads of CallQueues, also several at the same time, but OnStart comes before
//          OnCancel, and OnDone last, when nothing else is under way. They must not block. The Start... and Finish may
//          be called by any thread: one read and one write at a time, no write with or after Finish, which is called
//          once.
// Ownership: a reactor is made with new and deletes itself in OnDone. The Rpc is gRPC's side of it, and lives longer.
#ifndef PREFIXD_SERVER_RPC_REACTOR_H_
#define PREFIXD_SERVER_RPC_REACTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "server/rpc/traffic.h"

namespace prefixd {

class Reactor;
class Rpc;

// What callers do that concerns all that they do, at a peer as gRPC writes it. Threads: those of CallQueues.
struct CallerEvents {
  // One has cancelled a call, or let its deadline pass without a message. What the server has cancelled is not among
  // these.
  std::function<void(const std::string& peer)> on_cancelled = [](const std::string&) {};
  // A call is about to be refused that nobody is charged for.
  std::function<void(const std::string& peer)> on_refused = [](const std::string&) {};
  // It is done.
  std::function<void(const std::string& peer)> on_refusal_done = [](const std::string&) {};
  // Where a call's coming, its messages and its end are counted; null: nowhere.
  std::function<std::shared_ptr<Traffic>(const std::string& peer)> traffic_of = [](const std::string&) {
    return nullptr;
  };
};

// Where a server's calls come from. Outlives them.
struct CallSource {
  grpc::AsyncGenericService* service = nullptr;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::function<Reactor*(Rpc*)> make;  // The reactor of a call that came.
  CallerEvents events;
  std::atomic<int64_t> num_holds{1};  // Its owner's, and one of each call that has come and is not done.
  absl::Notification released;        // There is none any more.

  void Release() {
    if (num_holds.fetch_sub(1, std::memory_order_acq_rel) == 1) released.Notify();
  }
};

// gRPC's side of a call, from before it comes until it is done.
class Rpc {
 public:
  // Takes the next call that comes, and then the one after it.
  static void Await(CallSource* source);

  // What comes out of a completion queue: an event of a call.
  static void Deliver(void* event, bool ok);

  grpc::GenericServerContext& context() { return context_; }

  // Ends the call without waiting for its caller. Before its reactor's OnDone.
  void Cancel();

  // The call is about to be refused, and nobody is charged for it. Once, on its reactor's way to Finish.
  void CountRefused();

 private:
  friend class Reactor;
  struct Event {
    Rpc* rpc;
    void (Rpc::*deliver)(bool ok);
  };

  explicit Rpc(CallSource* source) : source_(*source) {}

  void OnCall(bool ok);
  void OnEnd(bool ok);  // The call has ended, for gRPC or for its caller.
  void OnRead(bool ok);
  void OnWrite(bool ok);
  void OnFinish(bool ok);
  // One of the two that `cancel_` counts has happened.
  void MaybeCancel();
  // One of those that `holds_` counts is over. The last one ends the reactor.
  void Release();

  CallSource& source_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  Reactor* reactor_ = nullptr;
  std::shared_ptr<Traffic> traffic_;                // The connection's. May be null.
  const grpc::ByteBuffer* read_message_ = nullptr;  // The last read's.
  std::atomic<int> cancel_{2};  // OnStart has returned; the caller is gone. Then the reactor is told.
  std::atomic<bool> has_message_{false};
  std::atomic<bool> is_given_up_{false};  // Cancelled by the server.
  std::string refused_peer_;              // Whose refused call it is. Empty: it is none.
  std::atomic<int> holds_{3};             // OnStart, OnEnd and OnFinish; beside these each read and each write.
  Event call_{this, &Rpc::OnCall};
  Event end_{this, &Rpc::OnEnd};
  Event read_{this, &Rpc::OnRead};
  Event write_{this, &Rpc::OnWrite};
  Event finish_{this, &Rpc::OnFinish};
};

class Reactor {
 public:
  explicit Reactor(Rpc* rpc) : rpc_(rpc) {}
  virtual ~Reactor() = default;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  virtual void OnStart() = 0;
  // ok: a message has come. Else none comes any more.
  virtual void OnReadDone(bool /*ok*/) {}
  // Not ok: the caller is gone.
  virtual void OnWriteDone(bool /*ok*/) {}
  // The caller is gone, has cancelled the call, or its deadline has passed; Finish is called all the same.
  virtual void OnCancel() {}
  virtual void OnDone() = 0;

 protected:
  // What is read into, or written, stays where it is until it is done.
  void StartRead(grpc::ByteBuffer* message);
  void StartWrite(const grpc::ByteBuffer* message);
  // The last write, and then the end, OK. It needs no OnWriteDone: OnDone follows.
  void StartWriteAndFinish(const grpc::ByteBuffer* message);
  void Finish(const grpc::Status& status);

  // Valid in OnDone: whether the caller can't have been told how the call ended.
  bool WasCancelled() const { return rpc_->context_.IsCancelled(); }

 private:
  Rpc* const rpc_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_REACTOR_H_
