// The connections that are open, whose they are, and which of them are to be closed. gRPC owns their descriptors and
// closes them without a word; so a connection counts as open as long as its descriptor still names the same socket.
// Threads: any, but Add, CloseMarked and CloseStrange one: that which accepts.
#ifndef PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_
#define PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/call/rate_limit.h"
#include "server/rpc/network.h"
#include "server/rpc/traffic.h"

namespace prefixd {

class ConnectionTable {
 public:
  struct Limits {
    uint64_t connections = 0;
    uint64_t connections_per_address = 0;  // And never more than half, rounded up, of what other addresses leave.
    uint64_t cancelled_per_second = kMinCancelledPerSecond;  // Calls that an address may cancel.
    uint64_t unread_bytes_per_call = 0;                      // As Traffic says.
  };

  // An address may cancel as many, or twice --max-requests if that is more: a program that ends with all its calls
  // under way cancels half of that at most. At 20 to 40 us each, this many take a twentieth of a core.
  static constexpr uint64_t kMinCancelledPerSecond = 2'000;
  // Where an address is above its rate, a connection is closed if it has cancelled more than its part within a second:
  // a 16th, or, where more connections cancel calls, as many parts as there are of them. So all of them together may
  // go on to cancel no more than the rate, and the connections of others behind the same address stay.
  static constexpr uint64_t kMinParts = 16;
  // An address that has cancelled more, or sent what belongs to no call, gets no new connection for so long, or it
  // would do the same on the next one. The programs of this host, which share an address, are not shut out together.
  static constexpr std::chrono::seconds kShutOut{5};
  // Refused calls that nobody is charged for, and whose answers have not left: 23 KiB each. An address, or user of a
  // Unix socket, may have half of what the others leave of them. Half of that is for anybody; above it, connections
  // that have more than their part, as above, are looked at, and closed if their sockets are full for kFull.
  static constexpr uint64_t kMaxRefused = 8'192;
  static constexpr std::chrono::milliseconds kFull{250};
  // How often CloseStrange is to be called while there are connections.
  static constexpr std::chrono::milliseconds kLook{50};

  explicit ConnectionTable(Limits limits) : limits_(limits) {}

  // Counts an open socket. `port`: the peer's; 0: it has none. Errors: RESOURCE_EXHAUSTED if there are as many as may
  // be, in all or from this address, or it is shut out; what was closed in the last tenth of a second may still count.
  // Whoever has more than he may have now, for others have come, keeps it.
  // Cost: where a limit is reached, a system call for each connection, ten times a second at most.
  absl::Status Add(int fd, const std::string& address, uint16_t port);

  // The caller has cancelled a call of this connection. Returns whether CloseMarked is to be called: its address has
  // cancelled too many, this connection more than its part of them, and it is marked.
  bool CountCancelled(const std::string& address, uint16_t port);

  // A call of this connection is refused that nobody is charged for. Returns whether CloseMarked is to be called.
  // `port`: the peer's; 0: his connections can't be told apart, and are as one.
  bool CountRefused(const std::string& caller, uint16_t port);
  // It is done.
  void CountRefusalDone(const std::string& caller, uint16_t port);

  // What the calls of a connection from there are counted in; null if there is none.
  std::shared_ptr<Traffic> TrafficOf(const IpAddress& address, uint16_t port);

  // Why a connection is ended: for calls that it has cancelled, for refusals that it does not read, or for bytes that
  // belong to no call.
  enum class Cause : uint8_t { kCancelled, kRefused, kStrange };
  struct Ended {
    std::string address;
    Cause cause;
  };

  // Ends the marked connections, and those that do not read refusals, with all that has arrived and was not read.
  // Returns which they were. On the thread that accepts, because none of their descriptors can become another
  // connection's while that one is here.
  // Cost: a look at each connection, a few system calls for each that is ended, or may have to be.
  std::vector<Ended> CloseMarked();

  // Ends those of the TCP connections whose bytes belong to no call, and shuts their addresses out, but this host's.
  // Looks at some of them, in turn, where there are many. Returns whose they were.
  // Cost: three system calls for each of kMaxLooks connections.
  std::vector<Ended> CloseStrange();
  static constexpr size_t kMaxLooks = 512;

  // Whether there are connections to look at, as CloseStrange found.
  bool IsEmpty() const { return is_empty_; }

  // Whether CloseMarked is to be called again after kFull, for somebody has too many refused calls.
  bool IsWatching() const { return is_watching_; }

  // How many are open; what was closed in the last tenth of a second may still count.
  // Cost: a system call for each, ten times a second at most.
  uint64_t CountOpen();

 private:
  using Clock = std::chrono::steady_clock;
  using Endpoint = std::pair<IpAddress, uint16_t>;  // An address and a port.
  struct Connection {
    int fd;
    uint64_t inode;
    std::string address;
    uint16_t port;
    std::optional<Endpoint> endpoint;  // With its traffic.
    std::shared_ptr<Traffic> traffic;
    bool is_ended = false;
    std::optional<Clock::time_point> full_since;  // Where refusals are not read.
  };
  struct Cancelled {  // What a connection has cancelled.
    uint64_t num_calls = 0;
    bool is_marked = false;  // The rest of its calls ends with it, and is not its caller's doing.
  };
  struct Address {  // Kept while there is a connection, or a limit still holds.
    uint64_t num_connections = 0;
    RateLimit cancelled;
    Clock::time_point shut_out_until;
    Cause shut_out_for = Cause::kCancelled;
    Clock::time_point counted_since;  // A second at most, and then anew:
    absl::flat_hash_map<uint16_t, Cancelled> by_port;
  };

  struct Refused {  // Calls of a caller, which are not done.
    uint64_t num_calls = 0;
    absl::flat_hash_map<uint16_t, uint64_t> by_port;
  };

  // Has a new connection's traffic counted; but not where it can't be told apart: it is none of TCP, or comes from
  // where another one does, to another of the addresses that the server listens on.
  void Watch(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unwatch(const Connection& connection);
  static void ShutOut(Address* address, Cause cause, Clock::time_point now);
  // What a connection has cancelled in the second that lasts.
  static Cancelled& CancelledOf(Address* address, uint16_t port, Clock::time_point now);
  // What a caller may have of refused calls before his connections are looked at.
  uint64_t RefusedFreely(const Refused& caller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasTooManyRefused(const Refused& caller, uint16_t port) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the connection's socket has been full for kFull, while it had too many.
  bool IsFull(Connection& connection, Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Check(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Address> by_address_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Refused> refused_ ABSL_GUARDED_BY(mutex_);  // Those that have some.
  uint64_t num_refused_ ABSL_GUARDED_BY(mutex_) = 0;                           // All of theirs.
  // Apart, because each call asks for its own, and CloseStrange takes its time.
  Mutex traffic_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  absl::flat_hash_map<Endpoint, std::shared_ptr<Traffic>> traffic_ ABSL_GUARDED_BY(traffic_mutex_);
  size_t next_look_ ABSL_GUARDED_BY(mutex_) = 0;  // At which connection.
  std::atomic<bool> is_empty_{true};
  absl::flat_hash_set<std::pair<std::string, uint16_t>> marked_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> is_watching_{false};
  Clock::time_point last_look_ ABSL_GUARDED_BY(mutex_);  // For closed ones.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CONNECTION_TABLE_H_
