// Who calls: the name of the token that a call shows, else what a trusted proxy says, else the subject of the caller's
// certificate. Callers without any of these have no name; where there are tokens, they are refused.
//
// Threads: NameOf any; Reload one at a time.
#ifndef PREFIXD_SERVER_RPC_IDENTITIES_H_
#define PREFIXD_SERVER_RPC_IDENTITIES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "grpcpp/server_context.h"
#include "server/call/caller_limits.h"
#include "server/rpc/network.h"
#include "server/rpc/token_file.h"

namespace prefixd {

class Identities {
 public:
  // Errors: FAILED_PRECONDITION: what is wrong with the token file, if there is one; a limit in it of less than
  // `min_caller_bytes` is.
  static absl::StatusOr<std::unique_ptr<Identities>> Load(const std::string& token_file, uint64_t min_caller_bytes,
                                                          std::vector<Network> trusted_proxies);

  // Reads the token file again. Errors: as Load, and the tokens stay as they are.
  absl::Status Reload();

  // The limits that the token file has.
  absl::flat_hash_map<std::string, CallerLimits> limits() const;

  // Whether callers stand behind this peer, as gRPC writes it, who are told apart by what it says.
  bool IsTrustedProxy(std::string_view peer) const;

  // Empty: the caller has no name. Errors: UNAUTHENTICATED (NO_TOKEN, WRONG_TOKEN, TOKEN_IN_PLAIN_TEXT,
  // PROXY_NOT_TRUSTED, CALLER_NAME). Nothing in them is from the token.
  absl::StatusOr<std::string> NameOf(const grpc::ServerContextBase& call) const;

 private:
  Identities(std::string token_file, uint64_t min_caller_bytes, std::vector<Network> trusted_proxies)
      : token_file_(std::move(token_file)),
        min_caller_bytes_(min_caller_bytes),
        trusted_proxies_(std::move(trusted_proxies)) {}
  std::shared_ptr<const TokenTable> tokens() const;

  const std::string token_file_;  // Empty: there are no tokens.
  const uint64_t min_caller_bytes_;
  const std::vector<Network> trusted_proxies_;
  mutable Mutex mutex_;
  std::shared_ptr<const TokenTable> tokens_ ABSL_GUARDED_BY(mutex_);  // Null: there are none.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_IDENTITIES_H_
