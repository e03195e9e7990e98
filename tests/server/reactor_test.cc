#include "server/rpc/reactor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/rpc/call_queues.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

// Who ends a call.
enum class Ender { kServer, kCaller };

class Ended final : public Reactor {
 public:
  Ended(Rpc* rpc, Ender ender, Gate* came, Gate* done)
      : Reactor(rpc), rpc_(*rpc), ender_(ender), came_(*came), done_(*done) {}

  void OnStart() override {
    if (ender_ == Ender::kServer) rpc_.Cancel();
    came_.Arrive();
  }
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    Gate& done = done_;
    delete this;
    done.Arrive();
  }

 private:
  Rpc& rpc_;
  const Ender ender_;
  Gate& came_;
  Gate& done_;
};

// How often a caller counts as one who has cancelled a call.
int NumCancelled(Ender ender) {
  std::atomic<int> num_cancelled = 0;
  Gate came;
  Gate done;
  QueueThreads threads(std::chrono::microseconds(0), Rpc::Deliver);
  CallQueues queues(&threads);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  queues.AddTo(&builder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  queues.Start([&](Rpc* rpc) { return new Ended(rpc, ender, &came, &done); },
               {.on_cancelled = [&](const std::string& /*peer*/) { ++num_cancelled; }});
  const auto stub = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto call = stub->Watch(&context, grpc::health::v1::HealthCheckRequest());
  EXPECT_TRUE(came.WaitFor(1));
  if (ender == Ender::kCaller) context.TryCancel();
  EXPECT_TRUE(done.WaitFor(1));
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server->Shutdown(std::chrono::system_clock::now());
  queues.Stop();
  return num_cancelled;
}

TEST(ReactorTest, ACallThatItsCallerCancelsCounts) { EXPECT_EQ(NumCancelled(Ender::kCaller), 1); }

TEST(ReactorTest, ACallThatTheServerCancelsDoesNot) { EXPECT_EQ(NumCancelled(Ender::kServer), 0); }

}  // namespace
}  // namespace prefixd
