// Whom a client trusts and who it is, read from the files that ClientOptions names. Private to the library.
#ifndef PREFIXD_CLIENT_CREDENTIALS_H_
#define PREFIXD_CLIENT_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/options.h"

namespace prefixd::client {

struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> network;  // For addresses that other hosts can have.
  std::shared_ptr<grpc::ChannelCredentials> local;    // For Unix sockets, which never speak TLS.
  std::string authorization;                          // What calls send under that name; empty: nothing.

  const std::shared_ptr<grpc::ChannelCredentials>& Of(const std::string& address) const;
};

// Errors: FAILED_PRECONDITION (CREDENTIALS), with the option as its field: a file that can't be read or is not what it
//         should be; a secret that everybody can read; a certificate without its key; a token that an address of these
//         would get in the clear.
absl::StatusOr<Credentials> ReadCredentials(absl::Span<const std::string> addresses, const ClientOptions& options);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CREDENTIALS_H_
