// How a client connects, and how one call runs.
#ifndef PREFIXD_CLIENT_OPTIONS_H_
#define PREFIXD_CLIENT_OPTIONS_H_

#include <string>

#include "absl/time/time.h"
#include "client/cancellation.h"

namespace prefixd::client {

// A call that fails with UNAVAILABLE before its first reply is tried again, after a pause that doubles each time and is
// shortened at random by up to half, so that many clients of a restarted server do not come back all at once.
// A server that falls silent in the middle of a call ends it with UNAVAILABLE after about forty seconds. Not over a
// unix socket, where no kernel watches over what is sent: a server that is stopped there, but has not ended, may hold a
// call that was sending, its timeout notwithstanding, until it goes on or ends.
struct ClientOptions {
  // New attempts begin only this long after the call did; zero: never.
  absl::Duration retry_window = absl::Seconds(2);
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(1);
  // How long one attempt waits for a host that does not answer at all.
  absl::Duration connect_timeout = absl::Seconds(2);
  // Clients of one address share a connection, and with it what one TCP stream carries. True: this one has its own.
  bool own_connection = false;
};

struct CallOptions {
  // Of the whole call, retries included. When it has passed, the server stops and the call ends: DEADLINE_EXCEEDED.
  absl::Duration timeout = absl::InfiniteDuration();
  // Not owned; may be shared by calls, and must outlive them. Null: the call can't be cancelled.
  Cancellation* cancellation = nullptr;
  // Names the call in the server's log. At most 64 printable ASCII characters.
  std::string request_id = {};
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_OPTIONS_H_
