// Serves one page over HTTP, for Prometheus to read: GET /metrics.
//
// One thread does it all, and nothing here waits for a scraper. There are kMaxConnections at once; when one more comes,
// the oldest is closed, so that those who say nothing can't keep others out. A connection lasts kMaxTime, a request has
// kMaxRequestBytes, and a page is made at most every kPageTime, however many ask for it. The endpoint that comes with
// prometheus-cpp has a thread wait for each scraper: forty silent ones kept its page from others for half a minute.
//
//   PREFIXD_ASSIGN_OR_RETURN(auto endpoint, MetricsEndpoint::Listen("127.0.0.1:9464"));
//   endpoint->Start([] { return page; });
//
// Threads: Listen, Start and the destructor by one thread; `page` is called on the endpoint's own.
#ifndef PREFIXD_SERVER_METRICS_ENDPOINT_H_
#define PREFIXD_SERVER_METRICS_ENDPOINT_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "server/tcp_listeners.h"

namespace prefixd {

class MetricsEndpoint {
 public:
  static constexpr size_t kMaxConnections = 16;
  static constexpr size_t kMaxRequestBytes = 8192;
  static constexpr std::chrono::seconds kMaxTime{5};
  static constexpr std::chrono::milliseconds kPageTime{100};

  // Takes HOST:PORT. Errors: UNAVAILABLE if it can't be bound.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Listen(const std::string& address);
  ~MetricsEndpoint();

  int port() const { return listeners_.port; }
  // Answers with what `page` says, until it is destroyed. Once.
  void Start(std::function<std::string()> page);

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    int fd;
    Clock::time_point end;
    std::string request = {};
    std::string answer = {};  // What is still to be sent, once the request is whole.
  };

  explicit MetricsEndpoint(TcpListeners listeners);
  void Run();
  void Accept(int listener);
  // Reads or writes what can be. False: the connection is done.
  bool GoOn(Connection* connection);
  std::string Answer(const std::string& request);
  const std::string& Page();

  const TcpListeners listeners_;
  const int stop_event_;
  std::function<std::string()> make_page_;
  std::thread thread_;
  // The thread's own.
  std::deque<Connection> connections_;  // The oldest first.
  Clock::time_point accepts_from_;      // After descriptors ran out it waits a little.
  std::string page_;
  Clock::time_point page_end_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_METRICS_ENDPOINT_H_
