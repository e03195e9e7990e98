// A server's life over real sockets: where it listens, how it drains, and what it does when its device is lost.
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"

namespace prefixd {
namespace {

TEST_F(ServiceTest, ALostDeviceFailsCallsAndHealth) {
  EXPECT_EQ(Health(), grpc::health::v1::HealthCheckResponse::SERVING);
  device_->before_work = [] { return Error(absl::StatusCode::kUnavailable, "DEVICE_LOST", "", "the card is gone"); };
  v1::ScanResponse response;
  EXPECT_EQ(Scan(ScanRequestOf({1}), &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(lost_.WaitFor(1));
  EXPECT_EQ(Health(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  const grpc::Status later = Scan(ScanRequestOf({1}), &response);
  EXPECT_EQ(later.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(later), "DEVICE_LOST");
}

TEST_F(ServiceTest, DrainServesOnForItsDelayAndThenFinishesWhatIsInFlight) {
  grpc::ClientContext context;
  auto stream = prefix_->StreamScan(&context);
  ASSERT_TRUE(stream->Write(ScanRequestOf({1})));
  v1::ScanResponse reply;
  ASSERT_TRUE(stream->Read(&reply));
  std::thread drain([&] {
    EXPECT_EQ(server_->Drain({.delay = absl::Seconds(2), .timeout = absl::Seconds(20)}, [] { return false; }), 0u);
  });
  for (int i = 0; i < 2000 && Health() == grpc::health::v1::HealthCheckResponse::SERVING; ++i) {
    absl::SleepFor(absl::Milliseconds(1));  // Until the next look: nothing tells when the drain has begun.
  }
  EXPECT_EQ(Health(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(Scan(ScanRequestOf({1}), &reply).ok());
  while (Scan(ScanRequestOf({1}), &reply).ok()) {
  }
  ASSERT_TRUE(stream->Write(ChunkOf({2})));
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(Items<int32_t>(reply.values().inline_().data()), (std::vector<int32_t>{3}));
  stream->WritesDone();
  EXPECT_TRUE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
  drain.join();
}

TEST_F(ServiceTest, DrainCutsOffWhatOutlastsIt) {
  grpc::ClientContext context;
  auto stream = prefix_->StreamScan(&context);
  ASSERT_TRUE(stream->Write(ScanRequestOf({1})));
  v1::ScanResponse reply;
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(server_->Drain({.timeout = absl::Milliseconds(50)}, [] { return false; }), 1u);
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(ServiceTest, DrainDoesNotWaitForADeviceThatHangs) {
  // Drain comes back without the thread that waits here, so what it waits for must outlive the test's frame.
  struct Gates {
    Gate running;
    Gate go_on;
  };
  const auto gates = std::make_shared<Gates>();
  device_->before_work = [gates] {
    gates->running.Arrive();
    EXPECT_TRUE(gates->go_on.WaitFor(1));
    return absl::OkStatus();
  };
  std::thread caller([&] {
    v1::ScanResponse response;
    EXPECT_FALSE(Scan(ScanRequestOf({1}), &response).ok());
  });
  ASSERT_TRUE(gates->running.WaitFor(1));
  EXPECT_EQ(server_->Drain({}, [] { return false; }), 1u);  // Comes back, with the lane still held.
  caller.join();
  gates->go_on.Arrive();
}

TEST_F(ServiceTest, AUnixSocketIsNotTakenOver) {
  Options options = TestOptions();
  const std::string path = testing::TempDir() + "prefixd_service_test.sock";
  options.listen = {"unix:" + path};
  auto first = Server::Start(options, std::make_unique<FakeDevice>(), [](Server::Failure) {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(Server::Start(options, std::make_unique<FakeDevice>(), [](Server::Failure) {}).ok());
  (*first)->Drain({}, [] { return false; });
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST_F(ServiceTest, AnAddressInUseIsNamed) {
  Options options = TestOptions();
  options.listen = {absl::StrCat("127.0.0.1:", server_->ports().front())};
  const auto second = Server::Start(options, std::make_unique<FakeDevice>(), [](Server::Failure) {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(options.listen[0]), absl::string_view::npos) << second.status();
}

TEST_F(ServiceTest, PortFileHoldsTheBoundPort) {
  Options options = TestOptions();
  options.port_file = testing::TempDir() + "prefixd_port_test";
  auto server = Server::Start(options, std::make_unique<FakeDevice>(), [](Server::Failure) {});
  ASSERT_TRUE(server.ok()) << server.status();
  int port = 0;
  std::ifstream(options.port_file) >> port;
  EXPECT_EQ(port, (*server)->ports().front());
  (*server)->Drain({}, [] { return false; });
  EXPECT_FALSE(std::ifstream(options.port_file).good());
  options.port_file = "/no/such/folder/port";
  EXPECT_FALSE(Server::Start(options, std::make_unique<FakeDevice>(), [](Server::Failure) {}).ok());
}

}  // namespace
}  // namespace prefixd
