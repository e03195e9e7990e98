// Waiting items, shared fairly among callers by the time that each item takes, and a caller's share among his
// connections: self-clocked fair queueing (Golestani 1994), which is as fair as deficit round robin and has no rounds.
//
//   FairClock clock;
//   FairQueue<Task> queue(&clock);
//   queue.Push({.name = "alice", .connection = "1"}, /*estimated_ns=*/100'000, task);
//   Task task = queue.Pop();
//
// The first item of each connection has an end: the time on the clock at which it would be done if all callers who wait
// were served side by side from now on. The item with the least end goes first, and the clock goes on to that end. So a
// caller with many items, or long ones, waits for the others as long as they wait for him. Nobody saves up time or owes
// any: who has no item here is forgotten.
//
// Threads: the user's lock guards queues and their clock.
// Bounds:  as many items as the user pushes; nothing is kept of callers that have none.
// Cost:    Push and Pop are logarithmic in the number of connections that have items.
#ifndef PREFIXD_SERVER_LANES_FAIR_QUEUE_H_
#define PREFIXD_SERVER_LANES_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/node_hash_map.h"

namespace prefixd {

// Whose item it is.
struct FairCaller {
  std::string_view name;
  std::string_view connection;
};

// What queues have in common that take turns: the ends of their next items can be compared.
struct FairClock {
  int64_t now_ns = 0;  // It goes on as items are taken, not by itself.
};

template <class Item>
class FairQueue {
 public:
  // An item is not taken to be longer than this, so that the clock lasts for centuries.
  static constexpr int64_t kMaxItemNs = 60'000'000'000;

  // The clock outlives the queue.
  explicit FairQueue(FairClock* clock) : clock_(clock) {}
  FairQueue(FairQueue&&) = delete;

  bool empty() const { return order_.empty(); }
  size_t size() const { return size_; }

  // The end of the item that goes first. Needs: not empty.
  int64_t NextEnd() const { return order_.begin()->first.first; }

  void Push(const FairCaller& caller, int64_t estimated_ns, Item item) {
    Connections& connections = callers_[std::string(caller.name)];
    Connection& connection = connections[std::string(caller.connection)];
    connection.waiting.emplace_back(std::clamp<int64_t>(estimated_ns, 1, kMaxItemNs), std::move(item));
    ++size_;
    if (connection.waiting.size() > 1) return;
    connection.caller = caller.name;
    connection.name = caller.connection;
    Line(&connection, connections.size());
  }

  // The item that goes first. Needs: not empty.
  Item Pop() {
    const auto first = order_.begin();
    clock_->now_ns = std::max(clock_->now_ns, first->first.first);
    Connection* const connection = first->second;
    order_.erase(first);
    --size_;
    Item item = std::move(connection->waiting.front().second);
    connection->waiting.pop_front();
    const auto caller = callers_.find(connection->caller);
    if (!connection->waiting.empty()) {
      Line(connection, caller->second.size());
    } else {
      caller->second.erase(caller->second.find(connection->name));
      if (caller->second.empty()) callers_.erase(caller);
    }
    return item;
  }

 private:
  struct Connection {
    std::string caller;
    std::string name;
    std::deque<std::pair<int64_t, Item>> waiting;  // Each with the time it takes; never empty between calls.
  };
  using Connections = absl::node_hash_map<std::string, Connection>;

  // Lines up the connection's first item. Each of a caller's connections has a part of his share.
  void Line(Connection* connection, size_t num_connections) {
    const int64_t share_ns = connection->waiting.front().first * static_cast<int64_t>(num_connections);
    order_.emplace(std::pair(clock_->now_ns + share_ns, num_lined_++), connection);
  }

  FairClock* const clock_;
  absl::node_hash_map<std::string, Connections> callers_;
  std::map<std::pair<int64_t, uint64_t>, Connection*> order_;  // By end, and of equal ends by number.
  uint64_t num_lined_ = 0;
  size_t size_ = 0;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_FAIR_QUEUE_H_
