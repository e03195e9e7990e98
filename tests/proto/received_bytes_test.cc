// The bytes of messages that came, given back on threads that gRPC does not know, while it waits for memory.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/array_message.h"

namespace prefixd {
namespace {

constexpr int kMessageBytes = 1 << 20;

// Parses what comes, and keeps it.
class Keeper : public grpc::CallbackGenericService {
 public:
  std::vector<Payload> TakeAll() {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(kept_, {});
  }

 private:
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(Keeper* keeper) : keeper_(keeper) { StartRead(&bytes_); }

   private:
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      v1::ScanRequest request;
      ArrayPayloads payloads;
      if (ParseArrayMessage(bytes_, &request, &payloads).ok()) keeper_->Keep(std::move(payloads[kLastArrayField]));
      bytes_.Clear();
      StartRead(&bytes_);
    }
    void OnDone() override { delete this; }

    Keeper* const keeper_;
    grpc::ByteBuffer bytes_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* /*context*/) override {
    return new Reactor(this);
  }
  void Keep(Payload payload) {
    const absl::MutexLock lock(&mutex_);
    kept_.push_back(std::move(payload));
  }

  absl::Mutex mutex_;
  std::vector<Payload> kept_ ABSL_GUARDED_BY(mutex_);
};

// Sends messages with an array, counts itself in `sent`, and keeps its connection until `given_back`.
void Send(const std::string& address, absl::BlockingCounter* sent, const absl::Notification& given_back) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto call = stub.PrepareCall(&context, "/keep", &queue);
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  OutgoingArray array{.data = Payload(std::string(kMessageBytes, 'x'))};
  const grpc::ByteBuffer message = SerializeArrayMessage(v1::ScanRequest(), {array});
  for (int i = 0; ok && i < 8; ++i) {
    call->Write(message, nullptr);
    queue.Next(&tag, &ok);
  }
  sent->DecrementCount();
  given_back.WaitForNotification();
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
}

TEST(ReceivedBytes, GoOnAnyThreadWhileGrpcWaitsForMemory) {
  Keeper keeper;
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(grpc::ResourceQuota("test").Resize(4 * kMessageBytes));
  builder.RegisterCallbackGenericService(&keeper);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const std::string address = "127.0.0.1:" + std::to_string(port);
  size_t num_kept = 0;
  for (int round = 0; round < 20; ++round) {
    constexpr int kNumSenders = 4;
    absl::BlockingCounter sent(kNumSenders);
    absl::Notification given_back;
    std::vector<std::thread> senders;
    for (int i = 0; i < kNumSenders; ++i) senders.emplace_back(Send, address, &sent, std::cref(given_back));
    sent.Wait();
    std::thread([&] { num_kept += keeper.TakeAll().size(); }).join();
    given_back.Notify();
    for (std::thread& sender : senders) sender.join();
  }
  EXPECT_GT(num_kept, 0u);
  server->Shutdown(absl::ToChronoTime(absl::Now()));
}

}  // namespace
}  // namespace prefixd
