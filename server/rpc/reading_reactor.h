// A call that reads one message at a time and answers it: a question about the server, an echo. It is charged and
// watched from its headers on. Subclasses answer.
//
// Threads: those of CallQueues, and the watchdog's.
#ifndef PREFIXD_SERVER_RPC_READING_REACTOR_H_
#define PREFIXD_SERVER_RPC_READING_REACTOR_H_

#include <cstdint>

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
  void OnDone() override;

 protected:
  ReadingReactor(ServerContext* context, Rpc* rpc, CallInfo info, Admission::Kind kind);

  // A message has come, and is charged. Answers by End, by ReadNext, or by a write after which one of them follows.
  virtual void OnRequest(const grpc::ByteBuffer& request) = 0;
  // The caller has ended his side instead.
  virtual void OnReadEnd();
  // While no message is waited for.
  virtual Watched::Sight LookAtAnswer() { return {.waits_for = WaitsFor::kReader}; }

  // Ends the call where its caller has too many questions whose messages have not come.
  void ReadNext();
  // Ends the call, with the response if all is well. Once.
  void End(absl::Status status, const grpc::ByteBuffer& response = {}, bool is_cut_short = false);

  // What the call was charged so far.
  uint64_t charged_bytes() const { return charged_bytes_; }
  Call& call() { return call_; }

 private:
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
  // A message that has not come whole may take gRPC as much memory as it likes to be long, and nobody is charged for
  // it. Requests have places; a question has one while it waits.
  Admission::Ticket place_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_READING_REACTOR_H_
