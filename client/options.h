// How a client connects, and how one call runs.
#ifndef PREFIXD_CLIENT_OPTIONS_H_
#define PREFIXD_CLIENT_OPTIONS_H_

#include <string>

#include "absl/time/time.h"
#include "client/cancellation.h"

namespace prefixd::client {

// Addresses: HOST:PORT, unix:PATH, or dns:///NAME:PORT for all servers behind a name, which are asked in turn
// (HOST:PORT with a name is whichever of them takes the connection). Calls take turns on the addresses; what is not
// connected, or refused a call a moment ago, comes last.
//
// A call that fails with UNAVAILABLE before its first reply, as where there is no server or one is stopping, is tried
// again: at once at the next address, and once all have refused after a pause that doubles each time and is shortened
// at random by up to half, so that many clients of a restarted server do not come back all at once. A call whose server
// falls silent ends with UNAVAILABLE after about forty seconds. Unix sockets are an exception, for there no kernel
// watches over what is sent: a server whose process is stopped can hold a call that was sending, beyond its timeout,
// until the process goes on or ends.
struct ClientOptions {
  // No pause ends later than this after the call began. Zero: there is none, so each address is asked once.
  absl::Duration retry_window = absl::Seconds(2);
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(1);
  // How long one attempt waits for a host that does not answer at all. Other calls go elsewhere meanwhile.
  absl::Duration connect_timeout = absl::Seconds(2);
  // Clients of one address share a connection, and with it what one TCP stream carries. True: this one has its own.
  bool own_connection = false;
};

struct CallOptions {
  // For the whole call, retries included. When it has passed, the server stops and the call ends: DEADLINE_EXCEEDED.
  absl::Duration timeout = absl::InfiniteDuration();
  // Not owned; may be shared by calls, and must outlive them. Null: the call can't be cancelled.
  Cancellation* cancellation = nullptr;
  // Names the call in the server's log. At most 64 printable ASCII characters.
  std::string request_id = {};
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_OPTIONS_H_
