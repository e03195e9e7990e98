#include "server/rpc/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/fatal.h"
#include "base/status.h"
#include "server/log.h"
#include "server/rpc/caller.h"
#include "server/rpc/network.h"
#include "server/tcp_listeners.h"

namespace prefixd {
namespace {

constexpr std::string_view kUnixScheme = "unix:";
// When there is nothing left to accept with, the thread looks again after so long.
constexpr int kRetryMs = 100;

absl::Status ListenError(const std::string& address, std::string_view what) {
  return absl::UnavailableError(StrCat("can't listen on ", address, ": ", what));
}

absl::Status ListenErrno(const std::string& address) { return ListenError(address, strerror(errno)); }

int NewSocket(int family) { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

// 0 if there is no such file.
uint64_t InodeOf(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Whether somebody serves the socket, even if he is too busy to accept.
bool IsServed(const sockaddr_un& address) {
  const int fd = NewSocket(AF_UNIX);
  if (fd < 0) return false;
  const bool served = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN;
  close(fd);
  return served;
}

// Whose a connection is: as AddressName or UserName, or kUnixCaller where the user can't be told.
std::string ConnectionOwner(int fd, const sockaddr_storage& peer) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (peer.ss_family != AF_UNIX) return AddressName(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 ? UserName(credentials.uid) : kUnixCaller;
}

// For other errors of accept nothing is wrong with the listening socket: the connection is gone, or a resource is.
bool IsFatal(int error) {
  return error == EBADF || error == EINVAL || error == ENOTSOCK || error == EOPNOTSUPP || error == EFAULT;
}

bool IsOutOfResources(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Acceptor::Acceptor(ConnectionTable::Limits limits)
    : limits_(limits), connections_(limits), wake_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Acceptor::~Acceptor() {
  Stop();
  close(wake_event_);
}

// ---- Listening -----------------------------------------------------------------------------------------------------
Acceptor::Door* Acceptor::AddTo(grpc::ServerBuilder* builder,
                                const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  using Builder = grpc::ServerBuilder::experimental_type;
  doors_.push_back(
      builder->experimental().AddExternalConnectionAcceptor(Builder::ExternalConnectionType::FROM_FD, credentials));
  return doors_.back().get();
}

absl::StatusOr<int> Acceptor::Listen(const std::string& address, const SocketAccess& access, DoorOf door_of) {
  if (!address.starts_with(kUnixScheme)) {
    PREFIXD_ASSIGN_OR_RETURN(const TcpListeners tcp, ListenTcp(address));
    for (const int fd : tcp.descriptors) listeners_.push_back({.fd = fd, .door_of = door_of, .path = "", .inode = 0});
    return tcp.port;
  }
  std::string path = address.substr(kUnixScheme.size());
  if (path.starts_with("//")) path.erase(0, 2);
  PREFIXD_RETURN_IF_ERROR(ListenUnix(path, access, std::move(door_of)));
  return 0;
}

absl::Status Acceptor::ListenUnix(const std::string& path, const SocketAccess& access, DoorOf door_of) {
  const std::string name = StrCat(kUnixScheme, path);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return ListenError(name, StrCat("a socket's path has at most ", sizeof(address.sun_path) - 1, " bytes"));
  }
  path.copy(address.sun_path, path.size());
  if (IsServed(address)) return ListenError(name, "another server does");
  std::error_code error;
  if (std::filesystem::is_socket(path, error)) unlink(path.c_str());  // A crash left it.
  const int fd = NewSocket(AF_UNIX);
  if (fd < 0) return ListenErrno(name);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const absl::Status status = ListenErrno(name);
    close(fd);
    return status;
  }
  listeners_.push_back({.fd = fd, .door_of = std::move(door_of), .path = path, .inode = InodeOf(path)});
  // Nobody can connect before it listens, so nobody gets in by the access that it has until here.
  if (access.group && chown(path.c_str(), static_cast<uid_t>(-1), *access.group) != 0) {
    return ListenError(name, StrCat("can't give it to group ", *access.group, ": ", strerror(errno)));
  }
  if (chmod(path.c_str(), access.mode) != 0 || listen(fd, kListenBacklog) != 0) return ListenErrno(name);
  return absl::OkStatus();
}

// ---- Accepting -----------------------------------------------------------------------------------------------------
void Acceptor::Start(std::function<void(const absl::Status&)> on_failed) {
  spare_ = OpenSpare();
  thread_ = std::thread([this, on_failed = std::move(on_failed)] { Run(on_failed); });
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    stopping_ = true;
    eventfd_write(wake_event_, 1);
    thread_.join();
  }
  for (const Listener& listener : listeners_) {
    close(listener.fd);
    if (!listener.path.empty() && InodeOf(listener.path) == listener.inode) unlink(listener.path.c_str());
  }
  listeners_.clear();
  if (spare_ >= 0) close(std::exchange(spare_, -1));
}

void Acceptor::Run(const std::function<void(const absl::Status&)>& on_failed) {
  std::vector<pollfd> waits = {{.fd = wake_event_, .events = POLLIN, .revents = 0}};
  for (const Listener& listener : listeners_) waits.push_back({.fd = listener.fd, .events = POLLIN, .revents = 0});
  while (true) {
    if (poll(waits.data(), waits.size(), WaitMs()) < 0 && errno != EINTR) {
      return on_failed(absl::InternalError(StrCat("can't wait for connections: ", strerror(errno))));
    }
    if (stopping_) return;
    const auto now = std::chrono::steady_clock::now();
    if (waits[0].revents != 0 || (connections_.IsWatching() && now >= next_watch_)) {
      next_watch_ = now + ConnectionTable::kFull;
      CloseMarked();
    }
    if (now >= next_look_) {
      next_look_ = now + ConnectionTable::kLook;
      LogEnded(connections_.CloseStrange());
    }
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (waits[i + 1].revents == 0) continue;
      if (absl::Status status = AcceptFrom(listeners_[i]); !status.ok()) return on_failed(status);
    }
  }
}

absl::Status Acceptor::AcceptFrom(const Listener& listener) {
  constexpr int kMaxAtOnce = 64;  // Then the other addresses have their turn.
  for (int i = 0; i < kMaxAtOnce; ++i) {
    const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      HandOver(listener, fd);
      continue;
    }
    if (errno == EAGAIN) break;
    if (IsFatal(errno)) return absl::InternalError(StrCat("can't accept connections: ", strerror(errno)));
    if (!IsOutOfResources(errno)) continue;
    ++refused_;
    LogWarning(StrCat("a connection was refused: ", strerror(errno)), "connection refused");
    // With the spare descriptor's place it can be accepted, and closed, so that its caller hears of it.
    if (spare_ >= 0) close(spare_);
    if (const int refused = accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC); refused >= 0) {
      close(refused);
    } else {
      pollfd wake = {.fd = wake_event_, .events = POLLIN, .revents = 0};
      poll(&wake, 1, kRetryMs);
      if (wake.revents != 0) break;
    }
    spare_ = OpenSpare();
  }
  return absl::OkStatus();
}

void Acceptor::HandOver(const Listener& listener, int fd) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {  // It is gone already.
    close(fd);
    return;
  }
  const std::string caller = ConnectionOwner(fd, peer);
  if (absl::Status status = connections_.Add(fd, caller, PortOf(peer)); !status.ok()) {
    ++refused_;
    LogWarning(StrCat("a connection of ", caller, " was refused: ", status.message()), "connection refused");
    close(fd);
    return;
  }
  ++accepted_;
  const int yes = 1;
  if (peer.ss_family != AF_UNIX) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener.fd;
  connection.fd = fd;
  listener.door_of(caller)->HandleNewConnection(&connection);
}

int Acceptor::WaitMs() const {
  const auto ms = [](auto duration) { return static_cast<int>(duration.count()); };
  if (!connections_.IsEmpty()) return ms(ConnectionTable::kLook);
  return connections_.IsWatching() ? ms(ConnectionTable::kFull) : -1;
}

void Acceptor::CloseMarked() {
  eventfd_t unused = 0;
  eventfd_read(wake_event_, &unused);
  LogEnded(connections_.CloseMarked());
}

void Acceptor::LogEnded(const std::vector<ConnectionTable::Ended>& ended) {
  for (const ConnectionTable::Ended& one : ended) {
    ++ended_;
    LogWarning(StrCat("a connection of ", one.address, " was closed: ", WhyEnded(one.cause)), "connection closed");
  }
}

std::string Acceptor::WhyEnded(ConnectionTable::Cause cause) const {
  switch (cause) {
    case ConnectionTable::Cause::kCancelled:
      return StrCat("it cancels calls, and its address has cancelled more than ", limits_.cancelled_per_second,
                    " in a second: cancel fewer, or raise --max-requests");
    case ConnectionTable::Cause::kRefused:
      return "its calls were refused, and it does not read it, while its caller has too many of those: read, or send "
             "fewer";
    case ConnectionTable::Cause::kStrange:
      return "it sends what belongs to no call, such as header blocks that are too large: send calls";
  }
  Fatal("no such cause");
}

void Acceptor::CountCancelled(const std::string& peer) {
  const std::string address = AddressName(peer);
  if (!address.empty() && connections_.CountCancelled(address, PortOfPeer(peer))) eventfd_write(wake_event_, 1);
}

void Acceptor::CountRefused(const std::string& caller, uint16_t port) {
  if (connections_.CountRefused(caller, port)) eventfd_write(wake_event_, 1);
}

void Acceptor::CountRefusalDone(const std::string& caller, uint16_t port) {
  connections_.CountRefusalDone(caller, port);
}

std::shared_ptr<Traffic> Acceptor::TrafficOf(const std::string& peer) {
  const std::optional<IpAddress> address = AddressOfPeer(peer);
  return address ? connections_.TrafficOf(*address, PortOfPeer(peer)) : nullptr;
}

Acceptor::Counts Acceptor::counts() {
  return {.open = connections_.CountOpen(),
          .limit = limits_.connections,
          .accepted = accepted_,
          .refused = refused_,
          .ended = ended_};
}

uint64_t NumFreeDescriptors() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  std::error_code error;
  uint64_t used = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++used;
  }
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

}  // namespace prefixd
