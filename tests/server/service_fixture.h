// The real gRPC server in this process, over real sockets, on a device that can be made to fail.
#ifndef PREFIXD_TESTS_SERVER_SERVICE_FIXTURE_H_
#define PREFIXD_TESTS_SERVER_SERVICE_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "server/log.h"
#include "server/server.h"
#include "tests/server/fake_device.h"
#include "tests/server/fake_transport.h"
#include "tests/server/gate.h"

namespace prefixd {

inline Options TestOptions() {
  Options options;
  options.listen = {"127.0.0.1:0"};
  options.lanes = 1;
  options.max_requests = 8;
  options.caller_share_percent = 100;
  return options;
}

// gRPC 1.51 takes ten seconds to destroy a process's last server with the callback API. So this server stays.
inline void KeepOneServer() {
  static Server* const kept = [] {
    StartLog("off", "text", /*lines_per_second=*/0);
    return Server::Start(TestOptions(), std::make_unique<FakeDevice>(), [](Server::Failure) {})->release();
  }();
  static_cast<void>(kept);
}

inline std::string Reason(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details_size() == 0) return "";
  return details.details(0).UnpackTo(&info) ? info.reason() : "";
}

inline v1::ScanRequest ScanRequestOf(const std::vector<int32_t>& items) {
  v1::ScanRequest request;
  request.mutable_spec()->set_dtype(v1::DTYPE_I32);
  request.mutable_spec()->set_op(v1::OP_SUM);
  request.mutable_values()->mutable_inline_()->set_data(Bytes(items));
  return request;
}

inline v1::ScanRequest ChunkOf(const std::vector<int32_t>& items) {
  v1::ScanRequest request;
  request.mutable_values()->mutable_inline_()->set_data(Bytes(items));
  return request;
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    KeepOneServer();
    auto device = std::make_unique<FakeDevice>();
    device_ = device.get();
    auto server = Server::Start(TestOptions(), std::move(device), [this](Server::Failure) { lost_.Arrive(); });
    server_ = *std::move(server);
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->ports().front()), grpc::InsecureChannelCredentials());
    prefix_ = v1::PrefixService::NewStub(channel_);
    admin_ = v1::AdminService::NewStub(channel_);
    health_ = grpc::health::v1::Health::NewStub(channel_);
  }

  v1::GetServerInfoResponse Info() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(admin_->GetServerInfo(&context, {}, &info).ok());
    return info;
  }
  // Waits, with a limit, until the server holds no request and no bytes: it notices some ends a moment later.
  bool BecomesIdle() {
    return Becomes([&] { return Info().requests().used() == 0 && Info().request_bytes().used() == 0; });
  }
  // The bytes that calls under way are charged for. Calls that have ended, questions too, may count a moment longer:
  // asks until it is `expected`, with a limit.
  uint64_t ChargedBytes(uint64_t expected) {
    uint64_t charged = 0;
    Becomes([&] { return (charged = Info().request_bytes().used()) == expected; });
    return charged;
  }
  static bool Becomes(const std::function<bool()>& is_so) {
    for (int i = 0; i < 2000; ++i) {
      if (is_so()) return true;
      absl::SleepFor(absl::Milliseconds(5));  // Until the next look.
    }
    return false;
  }
  grpc::Status Scan(const v1::ScanRequest& request, v1::ScanResponse* response) {
    grpc::ClientContext context;
    return prefix_->Scan(&context, request, response);
  }
  grpc::health::v1::HealthCheckResponse::ServingStatus Health() {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    EXPECT_TRUE(health_->Check(&context, {}, &response).ok());
    return response.status();
  }

  Gate lost_;
  FakeDevice* device_ = nullptr;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::PrefixService::Stub> prefix_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_SERVICE_FIXTURE_H_
