// Who called what, and how it ended: what the log says of a call.
#ifndef PREFIXD_SERVER_CALL_CALL_RECORD_H_
#define PREFIXD_SERVER_CALL_CALL_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/spec.h"
#include "server/lanes/fair_queue.h"
#include "server/request.h"

namespace prefixd {

struct CallInfo {
  std::string method;  // "StreamScan"
  std::string caller;  // "ipv4:127.0.0.1:4242", or his name if he has one.
  bool is_named = false;
  absl::Status refusal;  // Not OK: nobody may call like that. Call::Admit says so.
  std::string trace_parent;
  CallShape shape = CallShape::kUnary;
  absl::Time deadline = absl::InfiniteFuture();
};

struct CallRecord {
  const CallInfo& call;
  const Spec* spec;  // Null if none came.
  uint64_t num_bytes_in;
  uint64_t num_bytes_out;
  const Result& result;
};

// Whose the call's tasks are on the lanes: a caller is a name, or an address that has connections.
inline FairCaller FairCallerOf(const CallInfo& call) {
  const std::string_view connection = call.caller;
  if (call.is_named) return {.name = connection, .connection = ""};
  return {.name = connection.substr(0, connection.rfind(':')), .connection = connection};
}

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_CALL_RECORD_H_
