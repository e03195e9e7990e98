#include "server/rpc/identities.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "base/status.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "server/read_file.h"

namespace prefixd {
namespace {

constexpr char kAuthorization[] = "authorization";
constexpr char kCaller[] = "x-prefixd-caller";
constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kTokenFlag = "--token-file";
constexpr size_t kMaxSubjectBytes = 256;

absl::Status Unauthenticated(std::string_view reason, std::string_view message) {
  return Error(absl::StatusCode::kUnauthenticated, reason, "", message);
}

// The first value of a property that gRPC knows of the connection; empty if there is none.
std::string Property(const grpc::AuthContext& known, const std::string& name) {
  const std::vector<grpc::string_ref> values = known.FindPropertyValues(name);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

// Nothing if there is no such header; empty, which is no good value, if there are several: a proxy before us may have
// looked at another one.
std::optional<std::string> Header(const grpc::ServerContextBase& call, const char* name) {
  const auto [begin, end] = call.client_metadata().equal_range(name);
  if (begin == end) return std::nullopt;
  if (std::next(begin) != end) return "";
  return std::string(begin->second.data(), begin->second.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Identities>> Identities::Load(const std::string& token_file, uint64_t min_caller_bytes,
                                                             std::vector<Network> trusted_proxies) {
  std::unique_ptr<Identities> identities(new Identities(token_file, min_caller_bytes, std::move(trusted_proxies)));
  PREFIXD_RETURN_IF_ERROR(identities->Reload());
  return identities;
}

absl::Status Identities::Reload() {
  if (token_file_.empty()) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(const std::string text, ReadFile(kTokenFlag, token_file_));
  absl::StatusOr<TokenTable> parsed = TokenTable::Parse(text, min_caller_bytes_);
  if (!parsed.ok()) {
    return absl::FailedPreconditionError(
        StrCat(kTokenFlag, " ", token_file_, ": ", std::string(parsed.status().message())));
  }
  auto tokens = std::make_shared<const TokenTable>(*std::move(parsed));
  MutexLock lock(mutex_);
  tokens_ = std::move(tokens);
  return absl::OkStatus();
}

std::shared_ptr<const TokenTable> Identities::tokens() const {
  MutexLock lock(mutex_);
  return tokens_;
}

absl::flat_hash_map<std::string, CallerLimits> Identities::limits() const {
  const std::shared_ptr<const TokenTable> tokens = this->tokens();
  return tokens != nullptr ? tokens->limits() : absl::flat_hash_map<std::string, CallerLimits>();
}

bool Identities::IsTrustedProxy(std::string_view peer) const {
  return std::any_of(trusted_proxies_.begin(), trusted_proxies_.end(),
                     [peer](const Network& network) { return network.Has(peer); });
}

absl::StatusOr<std::string> Identities::NameOf(const grpc::ServerContextBase& call) const {
  const std::string peer = call.peer();
  const std::shared_ptr<const grpc::AuthContext> known = call.auth_context();
  const std::string security = known != nullptr ? Property(*known, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) : "";
  const bool has_tls = security == GRPC_SSL_TRANSPORT_SECURITY_TYPE || security == GRPC_TLS_TRANSPORT_SECURITY_TYPE;
  const std::shared_ptr<const TokenTable> tokens = this->tokens();

  std::string proxied;
  if (const std::optional<std::string> said = Header(call, kCaller)) {
    if (!IsTrustedProxy(peer)) {
      return Unauthenticated("PROXY_NOT_TRUSTED",
                             "x-prefixd-caller is taken from a --trusted-proxy only: leave it out, or have the server "
                             "trust this address");
    }
    if (!IsCallerName(*said)) {
      return Unauthenticated("CALLER_NAME", "x-prefixd-caller: expected one name of at most 256 printable letters");
    }
    proxied = *said;
  }
  if (tokens != nullptr) {
    if (const std::optional<std::string> shown = Header(call, kAuthorization)) {
      if (!has_tls && IsTcpPeer(peer)) {
        return Unauthenticated(
            "TOKEN_IN_PLAIN_TEXT",
            "a token came over a connection that is not encrypted, where others can read it: replace "
            "it, and use TLS or a Unix socket");
      }
      const bool is_bearer = absl::StartsWithIgnoreCase(*shown, AbslView(kBearer));
      std::string name = is_bearer ? tokens->NameOf(std::string_view(*shown).substr(kBearer.size())) : "";
      if (!name.empty()) return name;
      return Unauthenticated("WRONG_TOKEN",
                             "authorization: expected 'Bearer TOKEN' with a token that the server knows");
    }
  }
  // An address says where a caller is, not who he is: it stands for no token. Nor does the proxy's own certificate.
  if (!proxied.empty()) {
    if (tokens == nullptr || !Network::Parse(proxied).has_value()) return proxied;
  } else if (has_tls && known->IsPeerAuthenticated()) {
    // RFC 2253 has escaped it already, as a proxy sends it.
    std::string subject = Property(*known, GRPC_X509_SUBJECT_PROPERTY_NAME);
    if (IsCallerName(subject)) return subject;
    if (!subject.empty()) return absl::CHexEscape(subject).substr(0, kMaxSubjectBytes);
  }
  if (tokens == nullptr) return "";
  return Unauthenticated("NO_TOKEN", "expected 'authorization: Bearer TOKEN', over TLS or a Unix socket");
}

}  // namespace prefixd
