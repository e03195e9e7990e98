#include "client/credentials.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "base/status.h"

namespace prefixd::client {
namespace {

constexpr size_t kMaxPemBytes = size_t{1} << 20;
constexpr size_t kMaxTokenBytes = 4096;  // gRPC takes 8 KiB of metadata in all.

enum class Secrecy { kPublic, kSecret };

bool IsLocal(std::string_view address) { return address.starts_with("unix:") || address.starts_with("unix-abstract:"); }

absl::Status Wrong(std::string_view option, std::string_view message) {
  return Error(absl::StatusCode::kFailedPrecondition, "CREDENTIALS", option, message);
}

absl::StatusOr<std::string> ReadOpen(int file, size_t max_bytes, Secrecy secrecy) {
  const auto system_error = [] { return absl::InternalError(std::generic_category().message(errno)); };
  struct stat status;
  if (fstat(file, &status) != 0) return system_error();
  if (secrecy == Secrecy::kSecret && S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0) {
    return absl::InternalError("every user of this host can read it; expected a secret (chmod o-r)");
  }
  std::string content(max_bytes + 1, '\0');
  size_t size = 0;
  for (ssize_t got = 1; got != 0 && size < content.size(); size += static_cast<size_t>(got)) {
    got = read(file, content.data() + size, content.size() - size);
    if (got < 0) return system_error();
  }
  if (size == 0) return absl::InternalError("it is empty");
  if (size > max_bytes) return absl::InternalError(StrCat("it has more than ", max_bytes, " bytes"));
  content.resize(size);
  return content;
}

absl::StatusOr<std::string> ReadFile(std::string_view option, std::string_view what, const std::string& path,
                                     size_t max_bytes, Secrecy secrecy) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Wrong(option, StrCat(what, " ", path, ": ", std::generic_category().message(errno)));
  absl::StatusOr<std::string> content = ReadOpen(file, max_bytes, secrecy);
  close(file);
  if (!content.ok()) return Wrong(option, StrCat(what, " ", path, ": ", content.status().message()));
  return content;
}

// A file with a block whose first line ends with `ending`. gRPC takes any bytes, and fails at each handshake.
absl::StatusOr<std::string> ReadPem(std::string_view option, std::string_view what, const std::string& path,
                                    std::string_view ending, Secrecy secrecy) {
  if (path.empty()) return std::string();
  PREFIXD_ASSIGN_OR_RETURN(std::string pem, ReadFile(option, what, path, kMaxPemBytes, secrecy));
  if (pem.find("-----BEGIN ") == std::string::npos || pem.find(ending) == std::string::npos) {
    return Wrong(option, StrCat(what, " ", path, ": it has no block in PEM form that begins with -----BEGIN ", ending));
  }
  if (secrecy == Secrecy::kSecret && pem.find("ENCRYPTED") != std::string::npos) {
    return Wrong(option, StrCat(what, " ", path, ": it has a password; expected a key without one"));
  }
  return pem;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  PREFIXD_ASSIGN_OR_RETURN(std::string token,
                           ReadFile("token_file", "the token file", path, kMaxTokenBytes, Secrecy::kSecret));
  if (token.ends_with('\n')) token.pop_back();
  if (token.ends_with('\r')) token.pop_back();
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  if (token.empty() || !std::all_of(token.begin(), token.end(), is_plain)) {
    return Wrong("token_file", StrCat("the token file ", path,
                                      ": expected a token alone on one line, of printable ASCII without spaces"));
  }
  return token;
}

}  // namespace

const std::shared_ptr<grpc::ChannelCredentials>& Credentials::Of(const std::string& address) const {
  return IsLocal(address) ? local : network;
}

absl::StatusOr<Credentials> ReadCredentials(absl::Span<const std::string> addresses, const ClientOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return options.key_file.empty()
               ? Wrong("key_file", StrCat("the certificate ", options.certificate_file, " needs its private key"))
               : Wrong("certificate_file", StrCat("the private key ", options.key_file, " needs its certificate"));
  }
  const bool tls = options.tls || !options.ca_file.empty() || !options.certificate_file.empty();
  Credentials credentials = {grpc::InsecureChannelCredentials(), grpc::InsecureChannelCredentials(), ""};
  if (tls) {
    grpc::SslCredentialsOptions ssl;  // Without roots: the system's.
    PREFIXD_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem("ca_file", "the authorities' file", options.ca_file,
                                                         "CERTIFICATE-----", Secrecy::kPublic));
    PREFIXD_ASSIGN_OR_RETURN(
        ssl.pem_cert_chain,
        ReadPem("certificate_file", "the certificate", options.certificate_file, "CERTIFICATE-----", Secrecy::kPublic));
    PREFIXD_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadPem("key_file", "the private key", options.key_file,
                                                          "PRIVATE KEY-----", Secrecy::kSecret));
    credentials.network = grpc::SslCredentials(ssl);
  }
  if (!options.token_file.empty()) {
    PREFIXD_ASSIGN_OR_RETURN(const std::string token, ReadToken(options.token_file));
    const auto in_the_clear = std::find_if_not(addresses.begin(), addresses.end(), IsLocal);
    if (!tls && in_the_clear != addresses.end()) {
      return Wrong("token_file", StrCat("a token is sent only over TLS or to a Unix socket, not in the clear to ",
                                        *in_the_clear, ": ask for TLS, or leave the token out"));
    }
    credentials.authorization = "Bearer " + token;
  }
  return credentials;
}

}  // namespace prefixd::client
