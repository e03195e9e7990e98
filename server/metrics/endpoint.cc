#include "server/metrics/endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "server/log.h"

namespace prefixd {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string Response(std::string_view status, std::string_view headers, std::string_view body, bool with_body = true) {
  return StrCat("HTTP/1.1 ", status, "\r\n", headers, "Connection: close\r\nContent-Length: ", body.size(), kHeadEnd,
                with_body ? body : "");
}

std::string Refusal(std::string_view status, std::string_view headers, std::string_view what) {
  return Response(status, StrCat("Content-Type: text/plain\r\n", headers), StrCat(what, "\n"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Listen(const std::string& address) {
  PREFIXD_ASSIGN_OR_RETURN(TcpListeners listeners, ListenTcp(address));
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(listeners)));
}

MetricsEndpoint::MetricsEndpoint(TcpListeners listeners)
    : listeners_(std::move(listeners)), stop_event_(eventfd(0, EFD_CLOEXEC)) {}

MetricsEndpoint::~MetricsEndpoint() {
  if (thread_.joinable()) {
    eventfd_write(stop_event_, 1);
    thread_.join();
  }
  for (const Connection& connection : connections_) close(connection.fd);
  for (const int fd : listeners_.descriptors) close(fd);
  close(stop_event_);
}

void MetricsEndpoint::Start(std::function<std::string()> page) {
  make_page_ = std::move(page);
  thread_ = std::thread([this] { Run(); });
}

void MetricsEndpoint::Run() {
  while (true) {
    // First the connections, then the listeners, then the end.
    auto wake = Clock::time_point::max();
    std::vector<pollfd> waits;
    for (const Connection& connection : connections_) {
      const short events = connection.answer.empty() ? POLLIN : POLLOUT;
      waits.push_back({.fd = connection.fd, .events = events, .revents = 0});
      wake = std::min(wake, connection.end);
    }
    const bool accepts = Clock::now() >= accepts_from_;
    if (!accepts) wake = std::min(wake, accepts_from_);
    for (const int fd : listeners_.descriptors) {
      waits.push_back({.fd = accepts ? fd : -1, .events = POLLIN, .revents = 0});
    }
    waits.push_back({.fd = stop_event_, .events = POLLIN, .revents = 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(wake - Clock::now()).count();
    const int timeout = wake == Clock::time_point::max() ? -1 : static_cast<int>(std::max<int64_t>(left, 0));
    if (poll(waits.data(), waits.size(), timeout) < 0 && errno != EINTR) {
      LogError(StrCat("metrics are served no more: can't wait for connections: ", strerror(errno)));
      return;
    }
    if (waits.back().revents != 0) return;

    const size_t num_connections = connections_.size();
    std::deque<Connection> still_open;
    for (size_t i = 0; i < num_connections; ++i) {
      Connection& connection = connections_[i];
      if (Clock::now() < connection.end && (waits[i].revents == 0 || GoOn(&connection))) {
        still_open.push_back(std::move(connection));
      } else {
        close(connection.fd);
      }
    }
    connections_ = std::move(still_open);
    for (size_t i = 0; i < listeners_.descriptors.size(); ++i) {
      if (waits[num_connections + i].revents != 0) Accept(listeners_.descriptors[i]);
    }
  }
}

void MetricsEndpoint::Accept(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) accepts_from_ = Clock::now() + kPageTime;
    return;
  }
  if (connections_.size() == kMaxConnections) {
    close(connections_.front().fd);
    connections_.pop_front();
  }
  connections_.push_back({.fd = fd, .end = Clock::now() + kMaxTime});
}

bool MetricsEndpoint::GoOn(Connection* connection) {
  if (connection->answer.empty()) {
    std::array<char, kMaxRequestBytes> bytes;
    const ssize_t size = recv(connection->fd, bytes.data(), bytes.size() - connection->request.size(), 0);
    if (size <= 0) return size < 0 && errno == EAGAIN;
    connection->request.append(bytes.data(), static_cast<size_t>(size));
    if (connection->request.find(kHeadEnd) != std::string::npos) {
      connection->answer = Answer(connection->request);
    } else if (connection->request.size() == kMaxRequestBytes) {
      connection->answer = Refusal("431 Request Header Fields Too Large", "", "the request is too long");
    } else {
      return true;
    }
  }
  const ssize_t sent = send(connection->fd, connection->answer.data(), connection->answer.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN;
  connection->answer.erase(0, static_cast<size_t>(sent));
  return !connection->answer.empty();
}

std::string MetricsEndpoint::Answer(const std::string& request) {
  const std::vector<std::string> words = absl::StrSplit(request.substr(0, request.find("\r\n")), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) {
    return Refusal("400 Bad Request", "", "this is no HTTP/1 request");
  }
  const std::string& method = words[0];
  if (method != "GET" && method != "HEAD") {
    return Refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "only GET and HEAD");
  }
  if (words[1].substr(0, words[1].find('?')) != "/metrics") return Refusal("404 Not Found", "", "see /metrics");
  return Response("200 OK", "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n", Page(), method == "GET");
}

const std::string& MetricsEndpoint::Page() {
  if (const auto now = Clock::now(); now >= page_end_) {
    page_ = make_page_();
    page_end_ = now + kPageTime;
  }
  return page_;
}

}  // namespace prefixd
