// What every call needs: its deadline, and the context of one attempt. Private to the library.
//
// The library does not use gRPC's callback API: in gRPC 1.51 a process that did pauses for ten seconds when its last
// channel goes, and a command line tool must end at once.
#ifndef PREFIXD_CLIENT_RPC_H_
#define PREFIXD_CLIENT_RPC_H_

#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cancellation.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/options.h"

namespace prefixd::client {

// The deadline of a call that starts now.
inline absl::Time Deadline(const CallOptions& call) { return absl::Now() + call.timeout; }

// The context of one attempt.
class AttemptContext {
 public:
  AttemptContext(const Server& server, const CallOptions& call, absl::Time deadline)
      : cancellation_(call.cancellation) {
    if (deadline != absl::InfiniteFuture()) context_.set_deadline(absl::ToChronoTime(deadline));
    if (!server.authorization().empty()) context_.AddMetadata("authorization", server.authorization());
    if (cancellation_ != nullptr) id_ = cancellation_->Add([this] { context_.TryCancel(); });
  }
  ~AttemptContext() {
    if (cancellation_ != nullptr) cancellation_->Remove(id_);
  }
  AttemptContext(const AttemptContext&) = delete;
  AttemptContext& operator=(const AttemptContext&) = delete;

  grpc::ClientContext* get() { return &context_; }

 private:
  grpc::ClientContext context_;
  Cancellation* const cancellation_;
  int id_ = 0;
};

// How a call with one reply ended.
inline absl::Status UnaryStatus(const absl::Status& status) {
  return ExplainDeadline(status, "the server had not answered when the timeout passed");
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_RPC_H_
