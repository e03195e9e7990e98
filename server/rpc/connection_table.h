// The connections that are open, and whose they are. gRPC owns their descriptors and closes them without a word; so a
// connection counts as open as long as its descriptor still names the same socket.
// Threads: one at a time.
#ifndef PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_
#define PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

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

  uint64_t size() const { return connections_.size(); }

 private:
  struct Connection {
    int fd;
    uint64_t inode;
    std::string address;
  };

  absl::Status Check(const std::string& address) const;
  void ForgetClosed();

  const Limits limits_;
  std::vector<Connection> connections_;
  absl::flat_hash_map<std::string, uint64_t> by_address_;
  std::chrono::steady_clock::time_point last_look_;  // For closed ones.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_
