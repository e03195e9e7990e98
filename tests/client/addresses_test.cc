// Clients of several addresses: whom a call asks, and where it goes when it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/client.h"
#include "tests/client/fake_server.h"
#include "tests/client/name_server.h"
#include "tests/client/silent_host.h"
#include "tests/client/sum_scan.h"
#include "tests/client/temporary_folder.h"

namespace prefixd::client {
namespace {

using ::testing::HasSubstr;

// With these a call that would pause fails.
ClientOptions NoPauses() {
  return {.retry_window = absl::Minutes(1), .initial_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)};
}

grpc::Status Draining() { return DetailedError(grpc::StatusCode::UNAVAILABLE, "DRAINING", "stopping"); }

// A server that counts its calls, and refuses them all while it drains.
struct CountingServer {
  explicit CountingServer(const std::string& address = "127.0.0.1:0") : server(address) {
    server.prefix.reduce = [this](auto*, const v1::ReduceRequest&, v1::ReduceResponse* response) {
      ++calls;
      response->mutable_value()->set_int64_value(5);
      return drains ? Draining() : grpc::Status::OK;
    };
    server.prefix.stream_scan = [this](auto*, ScanRpc* rpc) {
      ++calls;
      if (!drains) return SumScan(rpc);
      v1::ScanRequest request;
      rpc->Read(&request);  // Some of it was already sent.
      return Draining();
    };
    server.admin.run_benchmark = [this](auto*, const auto&, auto* writer) {
      ++calls;
      if (drains) return Draining();
      writer->Write(v1::RunBenchmarkResponse());
      return grpc::Status::OK;
    };
  }
  std::atomic<int> calls = 0;
  std::atomic<bool> drains = false;
  FakeServer server;
};

// An address where nobody listens.
std::string DeadAddress() { return FakeServer().address(); }

// An array that can be read once, as a pipe.
class PipeSource : public ChunkSource {
 public:
  explicit PipeSource(size_t num_items) : items_left_(num_items) {}
  absl::StatusOr<Chunk> Next(size_t max_items) override {
    if (interrupted_) return absl::CancelledError("interrupted");
    ones_.assign(std::min(max_items, items_left_), 1);
    items_left_ -= ones_.size();
    return Chunk{AsBytes<int64_t>(ones_)};
  }
  bool Rewind() override { return false; }
  void Interrupt() override { interrupted_ = true; }

 private:
  std::atomic<bool> interrupted_ = false;
  size_t items_left_;
  std::vector<int64_t> ones_;
};

// Every kind of call.
struct Kind {
  std::string name;
  std::function<absl::Status(Client&)> call;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> Kinds() {
  return {
      {"Unary", [](Client& client) { return client.Reduce<int64_t>({5}).status(); }},
      {"Stream",
       [](Client& client) {
         const std::vector<int64_t> values = RandomInts(4 * kUnaryItems, 1);
         const auto result = client.Scan<int64_t>(values);
         EXPECT_TRUE(!result.ok() || result->values == PrefixSums(values));
         return result.status();
       }},
      {"Benchmark",
       [](Client& client) {
         return client.RunBenchmark({.num_items = {1}}, [](const auto&) { return absl::OkStatus(); });
       }},
  };
}

class Addresses : public testing::TestWithParam<Kind> {};

// Wherever a client begins: so there are several.
TEST_P(Addresses, ACallThatADrainingServerRefusesGoesElsewhereAtOnce) {
  CountingServer draining;
  CountingServer other;
  draining.drains = true;
  const std::vector<std::string> addresses = {draining.server.address(), other.server.address()};
  for (int i = 0; i < 20; ++i) {
    Client client(addresses, NoPauses());
    ASSERT_EQ(GetParam().call(client), absl::OkStatus());
  }
  EXPECT_EQ(other.calls, 20);
  EXPECT_GT(draining.calls, 0);  // All but once in a million runs.
}

TEST_P(Addresses, ADeadAddressIsPassedOverAtOnce) {
  CountingServer server;
  const std::vector<std::string> addresses = {DeadAddress(), "unix:/nonexistent/socket", server.server.address()};
  for (int i = 0; i < 20; ++i) {
    Client client(addresses, NoPauses());
    ASSERT_EQ(GetParam().call(client), absl::OkStatus());
  }
  EXPECT_EQ(server.calls, 20);
}

TEST_P(Addresses, APauseComesOnceAllHaveRefused) {
  CountingServer servers[2];
  for (CountingServer& server : servers) server.drains = true;
  const std::vector<std::string> addresses = {servers[0].server.address(), servers[1].server.address()};
  // Where there is no time for a pause, each is asked once.
  Client hasty(addresses, {.retry_window = absl::ZeroDuration()});
  EXPECT_EQ(ErrorReason(GetParam().call(hasty)), "DRAINING");
  EXPECT_EQ(servers[0].calls, 1);
  EXPECT_EQ(servers[1].calls, 1);
  // Else it goes on until one takes it.
  Client patient(addresses, FastRetries());
  std::thread starter([&] {
    while (servers[0].calls + servers[1].calls < 8) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    servers[1].drains = false;
  });
  EXPECT_EQ(GetParam().call(patient), absl::OkStatus());
  starter.join();
}

TEST_P(Addresses, NobodyAnywhere) {
  const std::vector<std::string> addresses = {DeadAddress(), DeadAddress(), "unix:/nonexistent/socket"};
  Client client(addresses, {.retry_window = absl::Milliseconds(100)});
  const absl::Status status = GetParam().call(client);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

INSTANTIATE_TEST_SUITE_P(Client, Addresses, testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(ClientAddresses, TakeTurns) {
  CountingServer servers[3];
  std::vector<std::string> addresses;
  for (const CountingServer& server : servers) addresses.push_back(server.server.address());
  Client client(addresses);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  for (const CountingServer& server : servers) EXPECT_EQ(server.calls, 10);
}

TEST(ClientAddresses, WhoeverRefusedIsLeftAloneForAWhile) {
  CountingServer draining;
  CountingServer other;
  draining.drains = true;
  const std::vector<std::string> addresses = {draining.server.address(), other.server.address()};
  Client client(addresses, NoPauses());
  for (int i = 0; i < 30; ++i) ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  EXPECT_EQ(draining.calls, 1);
  EXPECT_EQ(other.calls, 30);
}

// A host that takes the connection and says nothing costs one call the wait for it, not every second one.
TEST(ClientAddresses, OthersDoNotWaitForOneThatIsSilent) {
  const SilentHost silent;
  CountingServer server;
  const std::vector<std::string> addresses = {silent.address(), server.server.address()};
  Client client(addresses, {.connect_timeout = absl::Hours(1)});
  absl::Status status;
  while (status.ok()) status = client.Reduce<int64_t>({5}, {}, {.timeout = absl::Milliseconds(200)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(client.Reduce<int64_t>({5}, {}, {.timeout = absl::Seconds(30)}).status(), absl::OkStatus());
  }
}

TEST(ClientAddresses, AServerThatComesBackIsAskedAgain) {
  CountingServer other;
  auto lost = std::make_unique<CountingServer>();
  const std::string address = lost->server.address();
  const std::vector<std::string> addresses = {address, other.server.address()};
  Client client(addresses, {.initial_backoff = absl::Milliseconds(10), .max_backoff = absl::Milliseconds(50)});
  for (int i = 0; i < 2; ++i) ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  EXPECT_EQ(lost->calls, 1);
  lost.reset();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  CountingServer again(address);
  for (int i = 0; i < 1000 && again.calls == 0; ++i) {
    ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
    absl::SleepFor(absl::Milliseconds(10));  // For gRPC to connect again.
  }
  EXPECT_GT(again.calls, 0);
}

TEST(ClientAddresses, NotAfterTheFirstReply) {
  std::atomic<int> calls = 0;
  FakeServer servers[2];
  for (FakeServer& server : servers) {
    server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
      ++calls;
      AnswerOneMessage(rpc);
      return Draining();
    };
  }
  const std::vector<std::string> addresses = {servers[0].address(), servers[1].address()};
  Client client(addresses, FastRetries());
  const absl::Status status = client.Scan<int64_t>(std::vector<int64_t>(4 * kUnaryItems)).status();
  EXPECT_EQ(ErrorReason(status), "DRAINING");
  EXPECT_EQ(calls, 1);
}

// Nothing of it has gone where nobody was.
TEST(ClientAddresses, ASourceThatCantRewindFindsTheServerThatIsThere) {
  CountingServer server;
  const std::vector<std::string> addresses = {DeadAddress(), server.server.address(), DeadAddress()};
  for (int i = 0; i < 10; ++i) {
    Client client(addresses, NoPauses());
    PipeSource source(4 * kUnaryItems);
    uint64_t received_bytes = 0;
    const auto result = client.ScanChunks({.dtype = DType::kI64}, source, [&](Bytes values) {
      received_bytes += values.size();
      return absl::OkStatus();
    });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(received_bytes, 4 * kMaxPayloadBytes);
  }
}

TEST(ClientAddresses, AStreamIsOpenedWhereAServerIs) {
  CountingServer server;
  const std::vector<std::string> addresses = {DeadAddress(), DeadAddress(), server.server.address()};
  const std::vector<int64_t> ones(4, 1);
  for (int i = 0; i < 10; ++i) {
    Client client(addresses, NoPauses());
    auto stream = client.OpenScan({.dtype = DType::kI64});
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_TRUE((*stream)->Write({.values = AsBytes<int64_t>(ones)}).ok());
    (*stream)->WritesDone();
    for (ScanReply reply; (*stream)->Read(&reply);) continue;
    ASSERT_EQ((*stream)->Finish(), absl::OkStatus());
  }
}

TEST(ClientAddresses, OfDifferentSchemes) {
  const cli::TemporaryFolder folder;
  const std::string path = "unix:" + folder.File("socket");
  CountingServer local(path);
  CountingServer remote;
  const std::vector<std::string> addresses = {path, remote.server.address()};
  Client client(addresses);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  EXPECT_EQ(local.calls, 5);
  EXPECT_EQ(remote.calls, 5);
}

TEST(ClientAddresses, NoneAtAll) {
  Client client(absl::Span<const std::string>{});
  const absl::Status status = client.Reduce<int64_t>({5}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no address"));
  EXPECT_FALSE(client.OpenScan({.dtype = DType::kI64}).ok());
}

// Two servers behind one name, on the same port.
class Name : public testing::Test {
 protected:
  std::string target() const {
    return "dns://" + names_.address() + "/prefixd.test:" + std::to_string(first_.server.port());
  }

  NameServer names_{{"127.0.0.1", "127.0.0.2"}};
  CountingServer first_;
  CountingServer second_{"127.0.0.2:" + std::to_string(first_.server.port())};
};

TEST_F(Name, OfSeveralServersAsksThemInTurn) {
  Client client(target());
  for (int i = 0; i < 1000 && (first_.calls == 0 || second_.calls == 0); ++i) {  // For gRPC to connect to both.
    ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  }
  first_.calls = second_.calls = 0;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  EXPECT_EQ(first_.calls, 5);
  EXPECT_EQ(second_.calls, 5);
}

TEST_F(Name, GoesOnToTheNextWhereOneDrains) {
  Client client(target(), NoPauses());
  for (int i = 0; i < 1000 && (first_.calls == 0 || second_.calls == 0); ++i) {  // For gRPC to connect to both.
    ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  }
  first_.drains = true;
  second_.calls = 0;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(client.Reduce<int64_t>({5}).status(), absl::OkStatus());
  EXPECT_EQ(second_.calls, 20);
}

}  // namespace
}  // namespace prefixd::client
