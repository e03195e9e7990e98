#include "server/rpc/connection_table.h"

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

}  // namespace

absl::Status ConnectionTable::Check(const std::string& address) const {
  if (connections_.size() >= limits_.connections) {
    return absl::ResourceExhaustedError(StrCat("there are ", connections_.size(),
                                               " connections, which is --max-connections or all that the limit of ",
                                               "open files allows"));
  }
  const auto it = by_address_.find(address);
  if (it != by_address_.end() && it->second >= limits_.connections_per_address) {
    return absl::ResourceExhaustedError(
        StrCat("it has ", it->second, " connections, which is --max-connections-per-address"));
  }
  return absl::OkStatus();
}

absl::Status ConnectionTable::Add(int fd, const std::string& address) {
  MutexLock lock(mutex_);
  if (!Check(address).ok()) {
    ForgetClosed();
    PREFIXD_RETURN_IF_ERROR(Check(address));
  }
  connections_.push_back({.fd = fd, .inode = InodeOf(fd), .address = address});
  ++by_address_[address];
  return absl::OkStatus();
}

uint64_t ConnectionTable::CountOpen() {
  MutexLock lock(mutex_);
  ForgetClosed();
  return connections_.size();
}

void ConnectionTable::ForgetClosed() {
  // Who connects again and again does not keep us busy with it.
  const auto now = std::chrono::steady_clock::now();
  if (now - last_look_ < std::chrono::milliseconds(100)) return;
  last_look_ = now;
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(),
                                    [&](const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                      if (InodeOf(connection.fd) == connection.inode) return false;
                                      const auto it = by_address_.find(connection.address);
                                      if (--it->second == 0) by_address_.erase(it);
                                      return true;
                                    }),
                     connections_.end());
}

}  // namespace prefixd
