// TLS, certificates and tokens, against servers with certificates that the test makes.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "tests/client/certificates.h"
#include "tests/client/fake_server.h"
#include "tests/client/name_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Callers { kAnyone, kWithCertificates };

// For a server with `authority`'s certificate `name`; callers need one of `authority` too, or not.
std::shared_ptr<grpc::ServerCredentials> ServerTls(const Authority& authority, const std::string& name,
                                                   Callers callers = Callers::kAnyone) {
  grpc::SslServerCredentialsOptions options(callers == Callers::kAnyone
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_key_cert_pairs.push_back({authority.Read(name + ".key"), authority.Read(name + ".pem")});
  options.pem_root_certs = authority.Read("ca.pem");
  return grpc::SslServerCredentials(options);
}

// Answers reduces, and keeps what callers send as their authorization and who their certificate says they are.
struct TlsServer {
  explicit TlsServer(const std::shared_ptr<grpc::ServerCredentials>& credentials,
                     const std::string& address = "127.0.0.1:0")
      : server(address, credentials) {
    server.prefix.reduce = [this](grpc::ServerContext* context, const v1::ReduceRequest&,
                                  v1::ReduceResponse* response) {
      Keep(context);
      response->mutable_value()->set_int64_value(5);
      return grpc::Status::OK;
    };
    server.prefix.stream_scan = [this](grpc::ServerContext* context, ScanRpc* rpc) {
      Keep(context);
      return SumScan(rpc);
    };
  }

  void Keep(grpc::ServerContext* context) {
    authorizations.clear();
    const auto range = context->client_metadata().equal_range("authorization");
    for (auto it = range.first; it != range.second; ++it)
      authorizations.emplace_back(it->second.data(), it->second.size());
    names.clear();
    for (const auto& name : context->auth_context()->FindPropertyValues("x509_common_name")) {
      names.emplace_back(name.data(), name.size());
    }
    ++calls;
  }

  std::vector<std::string> authorizations;
  std::vector<std::string> names;
  int calls = 0;
  FakeServer server;
};

absl::Status Call(const std::string& address, ClientOptions options) {
  options.retry_window = absl::ZeroDuration();
  return Client(address, options).Reduce<int64_t>({5}, {}, {.timeout = absl::Seconds(20)}).status();
}

class Tls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    authority_ = new Authority;
    authority_->Sign("server", "IP:127.0.0.1");
    authority_->Sign("elsewhere", "DNS:elsewhere.example");
    authority_->Sign("expired", "IP:127.0.0.1", -1);
    authority_->Sign("alice", "DNS:alice");
    authority_->Write("token", "s3cret\n");
    chmod(authority_->File("token").c_str(), 0600);
  }
  static void TearDownTestSuite() { delete authority_; }

  static std::string File(const std::string& name) { return authority_->File(name); }
  // A file for this test alone.
  static std::string Secret(const std::string& content, mode_t mode = 0600) {
    const std::string path = authority_->Write("secret", content);
    chmod(path.c_str(), mode);
    return path;
  }

  static inline const Authority* authority_;  // NOLINT(readability-identifier-naming): a member, shared by the tests.
};

TEST_F(Tls, CallsAndStreamsOfATrustedServer) {
  TlsServer server(ServerTls(*authority_, "server"));
  Client client(server.server.address(), {.ca_file = File("ca.pem")});
  const auto reduced = client.Reduce<int64_t>({5});
  ASSERT_TRUE(reduced.ok()) << reduced.status();
  const std::vector<int64_t> values = RandomInts(4 * kUnaryItems, 1);
  const auto scanned = client.Scan<int64_t>(values);
  ASSERT_TRUE(scanned.ok()) << scanned.status();
  EXPECT_TRUE(scanned->values == PrefixSums(values));
  EXPECT_TRUE(server.authorizations.empty());
}

TEST_F(Tls, ACertificateOfItsOwnNamesTheCaller) {
  TlsServer server(ServerTls(*authority_, "server", Callers::kWithCertificates));
  const absl::Status named =
      Call(server.server.address(),
           {.ca_file = File("ca.pem"), .certificate_file = File("alice.pem"), .key_file = File("alice.key")});
  EXPECT_EQ(named, absl::OkStatus());
  EXPECT_THAT(server.names, ElementsAre("alice"));
  const absl::Status nameless = Call(server.server.address(), {.ca_file = File("ca.pem")});
  EXPECT_EQ(nameless.code(), absl::StatusCode::kUnavailable) << nameless;
  EXPECT_THAT(std::string(nameless.message()), HasSubstr("want a certificate"));
  EXPECT_EQ(server.calls, 1);
}

TEST_F(Tls, WhatIsWrongIsSaid) {
  const Authority other;
  TlsServer server(ServerTls(*authority_, "server"));
  TlsServer elsewhere(ServerTls(*authority_, "elsewhere"));
  TlsServer expired(ServerTls(*authority_, "expired"));
  TlsServer plain(grpc::InsecureServerCredentials());
  const ClientOptions trusting = {.ca_file = File("ca.pem")};
  const auto message = [](const TlsServer& to, const ClientOptions& options) {
    const absl::Status status = Call(to.server.address(), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(to.calls, 0);
    return std::string(status.message());
  };
  EXPECT_THAT(message(server, {.ca_file = other.File("ca.pem")}), HasSubstr("not trusted"));
  EXPECT_THAT(message(server, {.tls = true}), HasSubstr("not trusted"));
  EXPECT_THAT(message(expired, trusting), HasSubstr("expired"));
  EXPECT_THAT(message(elsewhere, trusting), HasSubstr("for another host"));
  EXPECT_THAT(message(plain, trusting), HasSubstr("not speak TLS"));
  EXPECT_THAT(message(server, {}), HasSubstr("may speak TLS only"));
}

TEST_F(Tls, GoesElsewhereFromAServerThatIsNotTrusted) {
  TlsServer wrong(ServerTls(*authority_, "elsewhere"));
  TlsServer server(ServerTls(*authority_, "server"));
  const std::vector<std::string> addresses = {wrong.server.address(), server.server.address()};
  for (int i = 0; i < 10; ++i) {
    Client client(addresses, {.retry_window = absl::ZeroDuration(), .ca_file = File("ca.pem")});
    ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  }
  EXPECT_EQ(wrong.calls, 0);
}

// The name is checked, not the address that it stands for.
TEST_F(Tls, ANameOfSeveralServers) {
  TlsServer server(ServerTls(*authority_, "elsewhere"));
  NameServer names({"127.0.0.1"});
  const std::string target = "dns://" + names.address() + "/elsewhere.example:" + std::to_string(server.server.port());
  EXPECT_EQ(Call(target, {.ca_file = File("ca.pem")}), absl::OkStatus());
}

TEST_F(Tls, ATokenIsSentOverTlsAndToUnixSockets) {
  const std::string path = "unix:" + File("socket");
  TlsServer remote(ServerTls(*authority_, "server"));
  TlsServer local(grpc::InsecureServerCredentials(), path);
  const std::vector<std::string> addresses = {remote.server.address(), path};
  Client both(addresses, {.ca_file = File("ca.pem"), .token_file = File("token")});
  const std::vector<int64_t> values = RandomInts(4 * kUnaryItems, 1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(both.Reduce<int64_t>({5}).status(), absl::OkStatus());
    ASSERT_EQ(both.Reduce<int64_t>({5}).status(), absl::OkStatus());
    EXPECT_THAT(remote.authorizations, ElementsAre("Bearer s3cret"));
    EXPECT_THAT(local.authorizations, ElementsAre("Bearer s3cret"));
    remote.authorizations.clear();
    local.authorizations.clear();
    ASSERT_EQ(both.Scan<int64_t>(values).status(), absl::OkStatus());
    ASSERT_EQ(both.Scan<int64_t>(values).status(), absl::OkStatus());
    EXPECT_THAT(remote.authorizations, ElementsAre("Bearer s3cret"));
    EXPECT_THAT(local.authorizations, ElementsAre("Bearer s3cret"));
  }
  EXPECT_EQ(Call(path, {.token_file = File("token")}), absl::OkStatus());
}

TEST_F(Tls, ATokenIsNeverSentInTheClear) {
  TlsServer plain(grpc::InsecureServerCredentials());
  const std::vector<std::string> addresses = {"unix:/nonexistent/socket", plain.server.address()};
  Client client(addresses, {.token_file = File("token")});
  const absl::Status unary = client.Reduce<int64_t>({5}).status();
  EXPECT_EQ(unary.code(), absl::StatusCode::kFailedPrecondition) << unary;
  EXPECT_THAT(std::string(unary.message()), HasSubstr("not in the clear to " + plain.server.address()));
  for (const absl::Status& status :
       {client.Scan<int64_t>(std::vector<int64_t>(4 * kUnaryItems)).status(), client.CheckHealth().status(),
        client.GetServerInfo().status(), client.OpenReduce({}).status(),
        client.RunBenchmark({}, [](const auto&) { return absl::OkStatus(); })}) {
    EXPECT_EQ(status, unary);
  }
  EXPECT_EQ(plain.calls, 0);
}

TEST_F(Tls, FilesThatAreNoGoodAreNamedBeforeAnythingIsSent) {
  TlsServer server(ServerTls(*authority_, "server"));
  const auto expect = [&](const ClientOptions& options, const std::string& field, const std::string& says) {
    const absl::Status status = Call(server.server.address(), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(ErrorReason(status), "CREDENTIALS");
    EXPECT_EQ(ErrorField(status), field) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
    EXPECT_FALSE(IsCallStatus(status));
  };
  const std::string ca = File("ca.pem");
  const std::string alice = File("alice.pem");
  expect({.ca_file = File("missing")}, "ca_file", "missing: No such file");
  expect({.ca_file = File("")}, "ca_file", "Is a directory");
  expect({.ca_file = Secret("")}, "ca_file", "it is empty");
  expect({.ca_file = Secret("no PEM")}, "ca_file", "-----BEGIN CERTIFICATE-----");
  expect({.ca_file = File("alice.key")}, "ca_file", "-----BEGIN CERTIFICATE-----");
  expect({.ca_file = Secret(std::string(2 << 20, 'x'))}, "ca_file", "more than 1048576 bytes");
  expect({.certificate_file = alice}, "key_file", "needs its private key");
  expect({.key_file = File("alice.key")}, "certificate_file", "needs its certificate");
  expect({.certificate_file = alice, .key_file = alice}, "key_file", "can read it");
  expect({.certificate_file = alice, .key_file = Secret(authority_->Read("alice.key"), 0644)}, "key_file", "chmod o-r");
  expect({.certificate_file = alice, .key_file = Secret(authority_->Read("alice.pem"))}, "key_file",
         "-----BEGIN PRIVATE KEY-----");
  expect({.certificate_file = alice, .key_file = Secret("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")}, "key_file",
         "without one");
  expect({.ca_file = ca, .token_file = Secret("s3cret", 0604)}, "token_file", "can read it");
  expect({.ca_file = ca, .token_file = Secret("\n")}, "token_file", "a token alone");
  expect({.ca_file = ca, .token_file = Secret("two\nlines\n")}, "token_file", "a token alone");
  expect({.ca_file = ca, .token_file = Secret("t\xc3\xb6ken")}, "token_file", "printable ASCII");
  expect({.ca_file = ca, .token_file = Secret(std::string(5000, 'x'))}, "token_file", "more than 4096 bytes");
  EXPECT_EQ(server.calls, 0);
}

// gRPC finds out at the handshake.
TEST_F(Tls, AKeyOfAnotherCertificate) {
  TlsServer server(ServerTls(*authority_, "server", Callers::kWithCertificates));
  const absl::Status status =
      Call(server.server.address(),
           {.ca_file = File("ca.pem"), .certificate_file = File("alice.pem"), .key_file = File("server.key")});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(server.calls, 0);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the private key is not the certificate's"));
}

}  // namespace
}  // namespace prefixd::client
