#include "server/rpc/tls_credentials.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace prefixd {
namespace {

// How often gRPC looks; the least that it takes.
constexpr unsigned kRefreshSeconds = 1;

bool WriteAll(int fd, const std::string& content) {
  for (size_t written = 0; written < content.size();) {
    const ssize_t size = write(fd, content.data() + written, content.size() - written);
    if (size < 0) return false;
    written += static_cast<size_t>(size);
  }
  return true;
}

}  // namespace

// ---- A copy --------------------------------------------------------------------------------------------------------
TlsCredentials::Copy::~Copy() {
  if (fd_ >= 0) close(fd_);
}

absl::Status TlsCredentials::Copy::Replace(const std::string& content) {
  const int fd = memfd_create("prefixd-tls", MFD_CLOEXEC);
  ++version_;
  const timespec times[2] = {{.tv_sec = version_, .tv_nsec = 0}, {.tv_sec = version_, .tv_nsec = 0}};
  // Who opens the path gets the one or the other.
  if (fd < 0 || !WriteAll(fd, content) || futimens(fd, times) != 0 || (fd_ >= 0 && dup3(fd, fd_, O_CLOEXEC) < 0)) {
    const absl::Status status = absl::InternalError(StrCat("can't keep a copy of TLS's files: ", strerror(errno)));
    if (fd >= 0) close(fd);
    return status;
  }
  if (fd_ < 0) {
    fd_ = fd;
  } else {
    close(fd);
  }
  if (access(path().c_str(), R_OK) != 0) {
    return absl::FailedPreconditionError(StrCat("can't read ", path(), ", which TLS needs: is /proc mounted?"));
  }
  return absl::OkStatus();
}

std::string TlsCredentials::Copy::path() const { return StrCat("/proc/self/fd/", fd_); }

// ---- The credentials -----------------------------------------------------------------------------------------------
absl::StatusOr<std::unique_ptr<TlsCredentials>> TlsCredentials::Load(const TlsFiles& files) {
  using grpc::experimental::FileWatcherCertificateProvider;
  std::unique_ptr<TlsCredentials> tls(new TlsCredentials(files));
  PREFIXD_RETURN_IF_ERROR(tls->Reload().status());
  const std::string identity = tls->identity_.path();
  const bool asks_callers = !files.client_ca.empty();
// Later versions take the two kinds of files apart, and say so; what 1.51 has does the same in all of them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  grpc::experimental::TlsServerCredentialsOptions options(std::make_shared<FileWatcherCertificateProvider>(
      identity, identity, asks_callers ? tls->client_ca_.path() : "", kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  if (asks_callers) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
#pragma GCC diagnostic pop
  tls->grpc_ = grpc::experimental::TlsServerCredentials(options);
  return tls;
}

absl::StatusOr<TlsCredentials::Change> TlsCredentials::Reload() {
  PREFIXD_ASSIGN_OR_RETURN(TlsContents contents, ReadTlsFiles(files_));
  if (contents == served_) return Change::kNone;
  PREFIXD_RETURN_IF_ERROR(CheckTls(contents, files_));
  PREFIXD_RETURN_IF_ERROR(identity_.Replace(StrCat(contents.key, "\n", contents.certificate)));
  if (!files_.client_ca.empty()) PREFIXD_RETURN_IF_ERROR(client_ca_.Replace(contents.client_ca));
  served_ = std::move(contents);
  return Change::kReloaded;
}

}  // namespace prefixd
