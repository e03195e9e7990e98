#include "server/rpc/connection_table.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <utility>

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

// What one connection may have of what is its address's, where so many use it.
uint64_t PartOf(uint64_t all, uint64_t num_connections) {
  return all / std::max(ConnectionTable::kMinParts, num_connections);
}

bool IsWritable(int fd) {
  pollfd state = {.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&state, 1, 0) > 0;
}

// What was taken from a socket of TCP so far, less what a reader of its answers may have to say to them: a 64th. 0
// where the kernel does not tell, as before Linux 4.1.
int64_t BytesTaken(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  int waiting = 0;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || ioctl(fd, FIONREAD, &waiting) != 0) return 0;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) return 0;
  constexpr uint64_t kAnsweredPart = 64;
  return static_cast<int64_t>(info.tcpi_bytes_received) - waiting -
         static_cast<int64_t>(info.tcpi_bytes_acked / kAnsweredPart);
}

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
    const std::string why =
        it->second.shut_out_for == Cause::kStrange
            ? "it has sent what belongs to no call"
            : StrCat("it has cancelled more than ", limits_.cancelled_per_second, " calls in a second");
    return absl::ResourceExhaustedError(StrCat(why, ", and is shut out for ", kShutOut.count(), " s"));
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
  Connection connection = {.fd = fd, .inode = InodeOf(fd), .address = address, .port = port};
  Watch(&connection);
  connections_.push_back(std::move(connection));
  is_empty_ = false;
  Address& its = by_address_[address];
  ++its.num_connections;
  its.by_port.erase(port);  // That was another one's.
  return absl::OkStatus();
}

ConnectionTable::Cancelled& ConnectionTable::CancelledOf(Address* address, uint16_t port, Clock::time_point now) {
  if (now - address->counted_since >= std::chrono::seconds(1)) {
    address->counted_since = now;
    address->by_port.clear();
  }
  return address->by_port[port];
}

void ConnectionTable::Watch(Connection* connection) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  if (getpeername(connection->fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return;
  const std::optional<IpAddress> address = AddressOf(peer);
  if (!address) return;
  const Endpoint endpoint(*address, PortOf(peer));
  MutexLock lock(traffic_mutex_);
  std::shared_ptr<Traffic>& traffic = traffic_[endpoint];
  const auto is_its = [&](const Connection& one) { return one.traffic == traffic && InodeOf(one.fd) == one.inode; };
  if (traffic != nullptr && std::any_of(connections_.begin(), connections_.end(), is_its)) return;
  traffic = std::make_shared<Traffic>(limits_.unread_bytes_per_call);
  connection->endpoint = endpoint;
  connection->traffic = traffic;
}

void ConnectionTable::Unwatch(const Connection& connection) {
  if (!connection.endpoint) return;
  MutexLock lock(traffic_mutex_);
  const auto it = traffic_.find(*connection.endpoint);
  if (it != traffic_.end() && it->second == connection.traffic) traffic_.erase(it);  // Else it is a later one's.
}

void ConnectionTable::ShutOut(Address* address, Cause cause, Clock::time_point now) {
  address->shut_out_until = now + kShutOut;
  address->shut_out_for = cause;
}

bool ConnectionTable::CountCancelled(const std::string& address, uint16_t port) {
  MutexLock lock(mutex_);
  const auto it = by_address_.find(address);
  if (it == by_address_.end()) return false;
  Address& its = it->second;
  const Clock::time_point now = Clock::now();
  Cancelled& here = CancelledOf(&its, port, now);
  if (here.is_marked) return false;
  ++here.num_calls;
  if (its.cancelled.Take(limits_.cancelled_per_second, now) == std::chrono::nanoseconds(0)) return false;
  if (!IsThisHost(address)) ShutOut(&its, Cause::kCancelled, now);
  if (here.num_calls <= PartOf(limits_.cancelled_per_second, its.by_port.size())) return false;
  here.is_marked = true;
  return marked_.emplace(address, port).second;
}

uint64_t ConnectionTable::RefusedFreely(const Refused& caller) const {
  const uint64_t others = std::min(num_refused_ - caller.num_calls, kMaxRefused - 1);
  return (kMaxRefused - others + 3) / 4;
}

bool ConnectionTable::HasTooManyRefused(const Refused& caller, uint16_t port) const {
  const uint64_t freely = RefusedFreely(caller);
  if (caller.num_calls <= freely) return false;
  const auto here = caller.by_port.find(port);
  return here != caller.by_port.end() && here->second > PartOf(freely, caller.by_port.size());
}

bool ConnectionTable::CountRefused(const std::string& caller, uint16_t port) {
  MutexLock lock(mutex_);
  Refused& its = refused_[caller];
  ++num_refused_;
  ++its.num_calls;
  ++its.by_port[port];
  return HasTooManyRefused(its, port) && !is_watching_.exchange(true);
}

void ConnectionTable::CountRefusalDone(const std::string& caller, uint16_t port) {
  MutexLock lock(mutex_);
  Refused& its = refused_[caller];
  --num_refused_;
  if (--its.by_port[port] == 0) its.by_port.erase(port);
  if (--its.num_calls == 0) refused_.erase(caller);
}

bool ConnectionTable::IsFull(Connection& connection, Clock::time_point now) {
  const auto its = refused_.find(connection.address);
  if (its == refused_.end() || !HasTooManyRefused(its->second, connection.port) || IsWritable(connection.fd)) {
    connection.full_since.reset();
    return false;
  }
  if (!connection.full_since) connection.full_since = now;
  return now - *connection.full_since >= kFull;
}

std::vector<ConnectionTable::Ended> ConnectionTable::CloseMarked() {
  std::vector<Ended> ended;
  MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  bool is_watching = false;
  for (const auto& [caller, its] : refused_) is_watching = is_watching || its.num_calls > RefusedFreely(its);
  is_watching_ = is_watching;
  for (Connection& connection : connections_) {
    const bool is_marked = marked_.contains({connection.address, connection.port});
    if (!is_watching) connection.full_since.reset();
    if (connection.is_ended || (!is_marked && !is_watching)) continue;
    if (InodeOf(connection.fd) != connection.inode) continue;
    if (!is_marked && !IsFull(connection, now)) continue;
    CancelledOf(&by_address_[connection.address], connection.port, now).is_marked = true;
    Disconnect(connection.fd);
    connection.is_ended = true;
    ended.push_back({.address = connection.address, .cause = is_marked ? Cause::kCancelled : Cause::kRefused});
  }
  marked_.clear();
  return ended;
}

std::shared_ptr<Traffic> ConnectionTable::TrafficOf(const IpAddress& address, uint16_t port) {
  MutexLock lock(traffic_mutex_);
  const auto it = traffic_.find(Endpoint(address, port));
  return it != traffic_.end() ? it->second : nullptr;
}

std::vector<ConnectionTable::Ended> ConnectionTable::CloseStrange() {
  std::vector<Ended> ended;
  MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (connections_.size() <= kMaxLooks) ForgetClosed();
  is_empty_ = connections_.empty();
  for (size_t i = 0; i < std::min(kMaxLooks, connections_.size()); ++i) {
    Connection& connection = connections_[next_look_++ % connections_.size()];
    if (connection.traffic == nullptr || connection.is_ended || InodeOf(connection.fd) != connection.inode) continue;
    if (!connection.traffic->Look(BytesTaken(connection.fd))) continue;
    Address& its = by_address_[connection.address];
    CancelledOf(&its, connection.port, now).is_marked = true;
    if (!IsThisHost(connection.address)) ShutOut(&its, Cause::kStrange, now);
    Disconnect(connection.fd);
    connection.is_ended = true;
    ended.push_back({.address = connection.address, .cause = Cause::kStrange});
  }
  return ended;
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
                                      Unwatch(connection);
                                      return true;
                                    }),
                     connections_.end());
  absl::erase_if(by_address_, [now](const auto& entry) {
    const Address& address = entry.second;
    return address.num_connections == 0 && address.cancelled.IsFull(now) && address.shut_out_until <= now;
  });
}

}  // namespace prefixd
