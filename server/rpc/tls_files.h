// The files of TLS, read and checked before gRPC sees them: it takes any bytes, and says at the first handshake at most
// that something is wrong.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_TLS_FILES_H_
#define PREFIXD_SERVER_RPC_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace prefixd {

// Paths of PEM files.
struct TlsFiles {
  std::string certificate;  // The server's, then those between it and its authority.
  std::string key;
  std::string client_ca;  // Authorities of callers, who must have a certificate then. Empty: callers need none.
};

// What is in them.
struct TlsContents {
  std::string certificate;
  std::string key;
  std::string client_ca;
  bool operator==(const TlsContents&) const = default;
};

// Errors: FAILED_PRECONDITION, with the flag and the path, if a file is missing or unreadable.
absl::StatusOr<TlsContents> ReadTlsFiles(const TlsFiles& files);

// Errors: FAILED_PRECONDITION, with the flag and the path, if a file is no PEM or has none of what it should have, if
// the key is encrypted or another certificate's, or if the certificate is not valid now or weaker than OpenSSL allows.
absl::Status CheckTls(const TlsContents& contents, const TlsFiles& files);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_TLS_FILES_H_
