// TLS 1.2 and later for the server's TCP addresses, with files that may change while it serves: connections that are
// open keep what they began with, later ones get what is new.
//
//   PREFIXD_ASSIGN_OR_RETURN(auto tls, TlsCredentials::Load(files));
//   acceptor.AddTo(&builder, tls->grpc());
//   ... every second: tls->Reload() ...
//
// gRPC can follow files, but gives up what it has for whatever it finds there, and may find a new key beside an old
// certificate. So it follows copies in memory, which get only what was checked, key and certificate as one.
//
// Threads: one at a time.
#ifndef PREFIXD_SERVER_RPC_TLS_CREDENTIALS_H_
#define PREFIXD_SERVER_RPC_TLS_CREDENTIALS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/security/server_credentials.h"
#include "server/rpc/tls_files.h"

namespace prefixd {

class TlsCredentials {
 public:
  // Errors: FAILED_PRECONDITION if a file can't be used: what is wrong with which.
  static absl::StatusOr<std::unique_ptr<TlsCredentials>> Load(const TlsFiles& files);

  const std::shared_ptr<grpc::ServerCredentials>& grpc() const { return grpc_; }

  enum class Change : uint8_t { kNone, kReloaded };
  // Reads the files again. What is new serves connections from a second later on. Errors: as Load, and what was served
  // is served on.
  absl::StatusOr<Change> Reload();

 private:
  // A file in memory that has a path. Another content comes into its place at once, with another time of change, by
  // which gRPC knows that it has read a part of each.
  class Copy {
   public:
    ~Copy();
    absl::Status Replace(const std::string& content);
    std::string path() const;

   private:
    int fd_ = -1;
    int64_t version_ = 0;
  };

  explicit TlsCredentials(TlsFiles files) : files_(std::move(files)) {}

  const TlsFiles files_;
  std::optional<TlsContents> served_;
  Copy identity_;  // Key and certificate.
  Copy client_ca_;
  std::shared_ptr<grpc::ServerCredentials> grpc_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_TLS_CREDENTIALS_H_
