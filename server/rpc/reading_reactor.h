// A call that reads one message at a time and answers it: a question about the server, an echo. It is charged and
// watched from its headers on. Subclasses answer.
//
// Threads: those of CallQueues, the watchdog's, and that of the Admission of questions.
#ifndef PREFIXD_SERVER_RPC_READING_REACTOR_H_
#define PREFIXD_SERVER_RPC_READING_REACTOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/call/admission.h"
#include "server/call/call.h"
#include "server/call/server_context.h"
#include "server/rpc/reactor.h"

namespace prefixd {

class ReadingReactor : public Reactor {
 public:
  void OnStart() final;
  void OnReadDone(bool ok) final;
  void OnCancel() override;
  void OnDone() override;

 protected:
  ReadingReactor(ServerContext* context, Rpc* rpc, CallInfo info, Admission::Kind kind);

  // A message has come, and is charged. Answers by End, by ReadNext, or by a write after which one of them follows.
  virtual void OnRequest(const grpc::ByteBuffer& request) = 0;
  // The first time a message has come, before it is charged: names the call, if its messages have names.
  virtual void BeginCall(const grpc::ByteBuffer& /*request*/) { call_.Begin(""); }
  // The caller has ended his side instead.
  virtual void OnReadEnd();
  // While no message is waited for.
  virtual Watched::Sight LookAtAnswer() { return {.waits_for = WaitsFor::kReader}; }

  void ReadNext();
  // Ends the call, with the response if all is well. Once.
  void End(absl::Status status, const grpc::ByteBuffer& response = {}, bool is_cut_short = false);

  // What the call was charged so far.
  uint64_t charged_bytes() const { return charged_bytes_; }
  Call& call() { return call_; }

 private:
  // What the end of a wait for bytes finds, though the reactor may be gone by then.
  struct Turn {
    Mutex mutex;
    ReadingReactor* reactor ABSL_GUARDED_BY(mutex) = nullptr;
  };

  // Asks the Admission of questions to let it in. Requests need not.
  absl::Status AdmitQuestion();
  void OnCharged();
  void BeginRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whoever gets true goes on with the call, for which no message comes any more.
  bool StopReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Watched::Sight Look();
  void GiveUp(absl::Status why);

  const Admission::Kind kind_;
  ServerContext* const context_;
  Call call_;
  grpc::ByteBuffer request_;   // The read's while there is one.
  grpc::ByteBuffer response_;  // The last write's.
  uint64_t charged_bytes_ = 0;
  Mutex mutex_;
  bool waits_ ABSL_GUARDED_BY(mutex_) = false;  // For a message. Whoever sets it back goes on with the call.
  uint64_t num_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC was asked for it.
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // A message that has not come whole may take gRPC as many bytes as a message may have, and nobody is charged for it.
  // Requests are bounded by their places. A question is charged here while it waits, and gRPC is asked for its message,
  // of which it takes a window else, once it is. One that is answered once has a place here, too.
  Admission::Ticket coming_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<Turn> turn_;  // Null: it waits for no charge.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_READING_REACTOR_H_
