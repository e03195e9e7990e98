// Certificates for tests, made by the openssl command in a folder of their own.
#ifndef PREFIXD_TESTS_CLIENT_CERTIFICATES_H_
#define PREFIXD_TESTS_CLIENT_CERTIFICATES_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/status.h"
#include "tests/client/temporary_folder.h"

namespace prefixd::client {

// An authority, and what it has signed: NAME.pem with the key NAME.key.
class Authority {
 public:
  Authority() { Run(StrCat("openssl req -x509 ", kNewKey, " -keyout ca.key -out ca.pem -days 2 -subj /CN=authority")); }

  // For a host such as "IP:127.0.0.1" or "DNS:example.com". days: how long it is valid; -1: until yesterday.
  void Sign(const std::string& name, const std::string& host, int days = 2) const {
    Run(StrCat("openssl req ", kNewKey, " -keyout ", name, ".key -out request -subj /CN=", name));
    folder_.Write("extensions", "subjectAltName=" + host + "\n");
    const std::string sign =
        StrCat("openssl x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -extfile extensions -out ", name,
               ".pem");
    // OpenSSL from 3.4 on takes no days before today, and older ones take no dates.
    const char* past = " -not_before 20200101000000Z -not_after 20200102000000Z";
    Run(days < 0 ? StrCat(sign, past, " || ", sign, " -days ", days) : StrCat(sign, " -days ", days));
  }

  std::string File(const std::string& name) const { return folder_.File(name); }
  std::string Read(const std::string& name) const { return folder_.Read(name); }
  std::string Write(const std::string& name, const std::string& content) const { return folder_.Write(name, content); }

 private:
  static constexpr char kNewKey[] = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

  void Run(const std::string& command) const {
    EXPECT_EQ(std::system(StrCat("cd ", folder_.File(""), " && ", command, " > log 2>&1 < /dev/null").c_str()), 0)
        << command << '\n'
        << folder_.Read("log");
  }

  const cli::TemporaryFolder folder_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_CERTIFICATES_H_
