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
  // Over TLS each client has.
  bool own_connection = false;

  // ---- Whom the client trusts, and who it is ----
  // Files are read once, by the constructor. What is wrong with one is the error of every call, FAILED_PRECONDITION
  // (CREDENTIALS), before anything is sent. Unix sockets never speak TLS, for they do not leave the host.
  // Example: Client client("prefixd.example:50051", {.ca_file = "ca.pem", .token_file = "token"});
  //
  // TLS with the addresses' servers, whose certificates must be for the host of the address, and of an authority that
  // the system trusts.
  bool tls = false;
  // PEM, with the authorities that are trusted in place of the system's. Implies tls.
  std::string ca_file = {};
  // PEM, for a server that asks callers for certificates: the client's own, then those between it and its authority.
  // Implies tls.
  std::string certificate_file = {};
  // PEM, with the certificate's private key, without a password. Must not be readable by everybody.
  std::string key_file = {};
  // A token alone, which each call sends as `authorization: Bearer TOKEN`. Needs TLS, or addresses that are all Unix
  // sockets. Must not be readable by everybody.
  std::string token_file = {};
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
