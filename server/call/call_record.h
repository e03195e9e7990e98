// Who called what, and how it ended: what the log says of a call.
#ifndef PREFIXD_SERVER_CALL_CALL_RECORD_H_
#define PREFIXD_SERVER_CALL_CALL_RECORD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/operation.h"
#include "server/call/caller.h"
#include "server/lanes/fair_queue.h"
#include "server/request.h"

namespace prefixd {

struct CallInfo {
  std::string method;  // "StreamScan"
  Caller caller;
  absl::Status refusal;  // Not OK: nobody may call like that. Call::Admit says so.
  std::string trace_parent;
  CallShape shape = CallShape::kUnary;
  absl::Time deadline = absl::InfiniteFuture();
  bool is_logged = true;
  // Ends the call without waiting for its caller: Session::OnCancel, or its like, follows. Valid until Call::Done.
  std::function<void()> cancel = [] {};
  // The call is about to be answered, and has no place in the budgets: nobody is charged for what it takes until it is
  // done.
  std::function<void()> on_refused = [] {};
};

struct CallRecord {
  const CallInfo& call;
  const Operation* operation;  // Null if none came.
  uint64_t num_bytes_in;
  uint64_t num_bytes_out;
  const Result& result;
};

// Whose the call's tasks are on the lanes.
inline FairCaller FairCallerOf(const CallInfo& call) {
  const Caller& caller = call.caller;
  return {.name = caller.name, .connection = caller.is_address ? std::string_view(caller.connection) : ""};
}

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_CALL_RECORD_H_
