// grpc.health.v1: whether the server serves. Asks nobody for a token. "" is the server as a whole, and each service
// that an address serves has its name; all are served, or none.
//
// Threads: any; those of CallQueues answer. Nothing here blocks.
// Ownership: outlives the Methods that it was added to.
#ifndef PREFIXD_SERVER_RPC_HEALTH_SERVICE_H_
#define PREFIXD_SERVER_RPC_HEALTH_SERVICE_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"
#include "server/call/server_context.h"
#include "server/rpc/methods.h"

namespace prefixd {

class HealthService {
 public:
  // Answers for all that `methods` serves. The context outlives the methods.
  void AddTo(ServerContext* context, Methods* methods);

  // From here on all is NOT_SERVING; those who watch are told.
  void StopServing();
  // Ends watches, which nothing else would, when they have been told.
  void EndWatches();

 private:
  class CheckReactor;
  class WatchReactor;

  void UpdateAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  bool is_serving_ ABSL_GUARDED_BY(mutex_) = true;
  bool ends_watches_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<WatchReactor*> watches_ ABSL_GUARDED_BY(mutex_);  // That have said what they watch.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_HEALTH_SERVICE_H_
