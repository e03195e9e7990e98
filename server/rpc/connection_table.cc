#include "server/rpc/connection_table.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/status.h"

namespace prefixd {
namespace {

// 0 if the descriptor is closed. No two sockets that are open have the same.
uint64_t InodeOf(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// What programs that reach this host by its name for itself have in common, as AddressName says it.
bool IsThisHost(const std::string& address) { return address == "127.0.0.1" || address == "::/64"; }

// Ends a connection at once. A shutdown would leave what has arrived to be read: megabytes of streams and their resets.
void Disconnect(int fd) {
  const sockaddr nobody = {.sa_family = AF_UNSPEC, .sa_data = {}};
  if (connect(fd, &nobody, sizeof(nobody)) != 0) shutdown(fd, SHUT_RDWR);
}

}  // namespace

absl::Status ConnectionTable::Check(const std::string& address) const {
  if (connections_.size() >= limits_.connections) {
    return absl::ResourceExhaustedError(StrCat("there are ", connections_.size(),
                                               " connections, which is --max-connections or all that the limit of ",
                                               "open files allows"));
  }
  const auto it = by_address_.find(address);
  if (it == by_address_.end()) return absl::OkStatus();
  if (Clock::now() < it->second.shut_out_until) {
    return absl::ResourceExhaustedError(StrCat("it has cancelled more than ", limits_.cancelled_per_second,
                                               " calls in a second, and is shut out for ", kShutOut.count(), " s"));
  }
  // Half of what the others leave, so that something is left for whoever comes next.
  const uint64_t own = it->second.num_connections;
  const uint64_t share = (limits_.connections - (connections_.size() - own) + 1) / 2;
  if (own < std::min(share, limits_.connections_per_address)) return absl::OkStatus();
  if (limits_.connections_per_address <= share) {
    return absl::ResourceExhaustedError(
        StrCat("it has ", own, " of the ", limits_.connections_per_address,
               " connections that it may have, which is --max-connections-per-address: close some, or raise it"));
  }
  return absl::ResourceExhaustedError(
      StrCat("it has ", own, " of the ", share, " connections that it may have, which is half of what other addresses ",
             "leave of ", limits_.connections, ": close some, or raise --max-connections and the limit of open files"));
}

absl::Status ConnectionTable::Add(int fd, const std::string& address, uint16_t port) {
  MutexLock lock(mutex_);
  if (!Check(address).ok()) {
    ForgetClosed();
    PREFIXD_RETURN_IF_ERROR(Check(address));
  }
  connections_.push_back({.fd = fd, .inode = InodeOf(fd), .address = address, .port = port});
  Address& its = by_address_[address];
  ++its.num_connections;
  its.by_port.erase(port);  // That was another one's.
  return absl::OkStatus();
}

bool ConnectionTable::CountCancelled(const std::string& address, uint16_t port) {
  MutexLock lock(mutex_);
  const auto it = by_address_.find(address);
  if (it == by_address_.end()) return false;
  Address& its = it->second;
  const Clock::time_point now = Clock::now();
  if (now - its.counted_since >= std::chrono::seconds(1)) {
    its.counted_since = now;
    its.by_port.clear();
  }
  Cancelled& here = its.by_port[port];
  if (here.is_marked) return false;
  ++here.num_calls;
  if (its.cancelled.Take(limits_.cancelled_per_second, now) == std::chrono::nanoseconds(0)) return false;
  if (!IsThisHost(address)) its.shut_out_until = now + kShutOut;
  if (here.num_calls <= limits_.cancelled_per_second / std::max(kMinParts, uint64_t{its.by_port.size()})) return false;
  here.is_marked = true;
  return marked_.emplace(address, port).second;
}

std::vector<std::string> ConnectionTable::CloseMarked() {
  std::vector<std::string> addresses;
  MutexLock lock(mutex_);
  for (Connection& connection : connections_) {
    if (connection.is_ended || !marked_.contains({connection.address, connection.port})) continue;
    if (InodeOf(connection.fd) != connection.inode) continue;
    Disconnect(connection.fd);
    connection.is_ended = true;
    addresses.push_back(connection.address);
  }
  marked_.clear();
  return addresses;
}

uint64_t ConnectionTable::CountOpen() {
  MutexLock lock(mutex_);
  ForgetClosed();
  return connections_.size();
}

void ConnectionTable::ForgetClosed() {
  // Who connects again and again does not keep us busy with it.
  const Clock::time_point now = Clock::now();
  if (now - last_look_ < std::chrono::milliseconds(100)) return;
  last_look_ = now;
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(),
                                    [&](const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                      if (InodeOf(connection.fd) == connection.inode) return false;
                                      --by_address_[connection.address].num_connections;
                                      return true;
                                    }),
                     connections_.end());
  absl::erase_if(by_address_, [now](const auto& entry) {
    const Address& address = entry.second;
    return address.num_connections == 0 && address.cancelled.IsFull(now) && address.shut_out_until <= now;
  });
}

}  // namespace prefixd
