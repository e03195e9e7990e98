// The sender of real requests: to a prefixd, or to its echo.
#ifndef PREFIXD_CLIENT_LOAD_SERVER_SENDER_H_
#define PREFIXD_CLIENT_LOAD_SERVER_SENDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cancellation.h"
#include "client/client.h"
#include "client/load/mix.h"
#include "client/load/recorder.h"
#include "kernels/spec.h"

namespace prefixd::load {

// kEcho sends the same bytes in messages of the same sizes, unary or streamed as for kDevice, and gets them all back.
enum class Target : uint8_t { kDevice, kEcho };

// Memory:  1 MiB an operation at most, however long its arrays: a longer one repeats its first 1 MiB.
// Threads: Send from any, any number at once.
class ServerSender {
 public:
  // Callers take turns on `num_channels` clients, with connections of their own. A request is sent once to each address
  // at most, and again nowhere: what fails is counted. `connection`: its retry_window and own_connection do not count.
  // Needs: the cancellation to outlive it.
  ServerSender(absl::Span<const std::string> addresses, client::ClientOptions connection, size_t num_channels,
               Target target, const std::vector<Operation>& operations, absl::Duration timeout,
               client::Cancellation* cancellation);

  Outcome Send(size_t caller, size_t operation);

 private:
  struct Prepared {
    Operation operation;
    Spec spec;          // The request, but for the echo.
    std::string block;  // The elements, or the first 1 MiB of them.
  };
  absl::StatusOr<Outcome> SendTo(client::Client& client, const Prepared& prepared);

  const Target target_;
  const client::CallOptions call_;
  std::vector<std::unique_ptr<client::Client>> clients_;
  std::vector<Prepared> prepared_;
};

}  // namespace prefixd::load

#endif  // PREFIXD_CLIENT_LOAD_SERVER_SENDER_H_
