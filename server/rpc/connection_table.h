// The connections that are open, and whose they are. gRPC owns their descriptors and closes them without a word; so a
// connection counts as open as long as its descriptor still names the same socket.
// Threads: any.
#ifndef PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_
#define PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/mutex.h"

namespace prefixd {

class ConnectionTable {
 public:
  struct Limits {
    uint64_t connections = 0;
    uint64_t connections_per_address = 0;
  };

  explicit ConnectionTable(Limits limits) : limits_(limits) {}

  // Counts an open socket. Errors: RESOURCE_EXHAUSTED if there are as many as may be, in all or from this address; what
  // was closed in the last tenth of a second may still count.
  // Cost: where a limit is reached, a system call for each connection, ten times a second at most.
  absl::Status Add(int fd, const std::string& address);

  // How many are open; what was closed in the last tenth of a second may still count.
  // Cost: a system call for each, ten times a second at most.
  uint64_t CountOpen();

 private:
  struct Connection {
    int fd;
    uint64_t inode;
    std::string address;
  };

  absl::Status Check(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint64_t> by_address_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_look_ ABSL_GUARDED_BY(mutex_);  // For closed ones.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_
