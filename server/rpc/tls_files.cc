#include "server/rpc/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/read_file.h"

namespace prefixd {
namespace {

// Frees what OpenSSL has made.
template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* made) const {
    kFree(made);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;

constexpr std::string_view kCertificateFlag = "--tls-certificate";
constexpr std::string_view kKeyFlag = "--tls-key";
constexpr std::string_view kClientCaFlag = "--tls-client-ca";

absl::Status Wrong(std::string_view flag, const std::string& path, std::string_view what) {
  return absl::FailedPreconditionError(StrCat(flag, " ", path, ": ", what));
}

// What OpenSSL has to say, and says once.
std::string LastError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason != nullptr ? reason : "OpenSSL does not say why";
}

Bio Reader(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

absl::StatusOr<std::vector<Certificate>> Certificates(const std::string& text, std::string_view flag,
                                                      const std::string& path) {
  const Bio reader = Reader(text);
  std::vector<Certificate> certificates;
  while (Certificate next{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
    certificates.push_back(std::move(next));
  }
  const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = LastError();
  if (!is_at_end) return Wrong(flag, path, StrCat("a certificate in it can't be read: ", error));
  if (certificates.empty()) return Wrong(flag, path, "has no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  return certificates;
}

// "2027-01-31 12:00:00Z"
std::string Text(const ASN1_TIME* time) {
  tm parts = {};
  char text[32] = "?";
  if (ASN1_TIME_to_tm(time, &parts) == 1) strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%SZ", &parts);
  return text;
}

absl::StatusOr<Key> PrivateKey(const std::string& text, const std::string& path) {
  // Without this OpenSSL would ask for the password at the terminal.
  bool is_encrypted = false;
  const auto no_password = [](char*, int, int, void* is_asked) {
    *static_cast<bool*>(is_asked) = true;
    return -1;
  };
  const Bio reader = Reader(text);
  Key key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_password, &is_encrypted));
  const std::string error = LastError();
  if (is_encrypted) return Wrong(kKeyFlag, path, "is encrypted: expected a key without a password");
  if (key == nullptr) return Wrong(kKeyFlag, path, StrCat("has no private key in PEM: ", error));
  return key;
}

}  // namespace

absl::StatusOr<TlsContents> ReadTlsFiles(const TlsFiles& files) {
  TlsContents contents;
  PREFIXD_ASSIGN_OR_RETURN(contents.certificate, ReadFile(kCertificateFlag, files.certificate));
  PREFIXD_ASSIGN_OR_RETURN(contents.key, ReadFile(kKeyFlag, files.key));
  if (!files.client_ca.empty()) {
    PREFIXD_ASSIGN_OR_RETURN(contents.client_ca, ReadFile(kClientCaFlag, files.client_ca));
  }
  return contents;
}

absl::Status CheckTls(const TlsContents& contents, const TlsFiles& files) {
  ERR_clear_error();
  PREFIXD_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                           Certificates(contents.certificate, kCertificateFlag, files.certificate));
  PREFIXD_ASSIGN_OR_RETURN(const Key key, PrivateKey(contents.key, files.key));
  if (!files.client_ca.empty()) {
    PREFIXD_RETURN_IF_ERROR(Certificates(contents.client_ca, kClientCaFlag, files.client_ca).status());
  }
  X509* const certificate = chain.front().get();
  if (const ASN1_TIME* end = X509_get0_notAfter(certificate); X509_cmp_current_time(end) <= 0) {
    return Wrong(kCertificateFlag, files.certificate, StrCat("expired at ", Text(end)));
  }
  if (const ASN1_TIME* begin = X509_get0_notBefore(certificate); X509_cmp_current_time(begin) > 0) {
    return Wrong(kCertificateFlag, files.certificate, StrCat("is not valid before ", Text(begin)));
  }
  const Context context(SSL_CTX_new(TLS_server_method()));
  if (SSL_CTX_use_certificate(context.get(), certificate) != 1) {
    return Wrong(kCertificateFlag, files.certificate, StrCat("can't be used: ", LastError()));
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return Wrong(kCertificateFlag, files.certificate, StrCat("certificate ", i + 1, " in it: ", LastError()));
    }
  }
  if (X509_check_private_key(certificate, key.get()) != 1) {
    ERR_clear_error();
    return Wrong(kKeyFlag, files.key, StrCat("is not the key of the certificate in ", files.certificate));
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return Wrong(kKeyFlag, files.key, StrCat("can't be used: ", LastError()));
  }
  return absl::OkStatus();
}

}  // namespace prefixd
