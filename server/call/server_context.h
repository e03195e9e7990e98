// What all calls of a gRPC server share.
#ifndef PREFIXD_SERVER_CALL_SERVER_CONTEXT_H_
#define PREFIXD_SERVER_CALL_SERVER_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/call/call_record.h"

namespace prefixd {

class Admission;
class ArrayStore;
class Batcher;
class Device;
class Identities;
class LanePool;
class Watchdog;
struct BenchmarkControl;

// Outlives all calls.
struct ServerContext {
  Device* device = nullptr;
  LanePool* lanes = nullptr;
  Batcher* batcher = nullptr;
  Admission* admission = nullptr;
  // How many questions that are answered once are under way, and what messages of questions may hold that have not
  // come. Null: neither is bounded.
  Admission* questions = nullptr;
  ArrayStore* arrays = nullptr;  // Null: none are held.
  Watchdog* watchdog = nullptr;
  BenchmarkControl* benchmarks = nullptr;
  const Identities* identities = nullptr;  // Null: callers have no names.
  std::string device_name;
  uint64_t max_message_bytes = 0;
  std::string user;                               // Whose all connections are, "uid:1000". Empty: anybody's.
  std::function<void(const CallRecord&)> record;  // A call that ended: in the log, and in the metrics.
  // Called for every DEVICE_LOST; may be called more than once.
  std::function<void(const absl::Status&)> on_device_lost;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_SERVER_CONTEXT_H_
