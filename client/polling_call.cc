#include "client/polling_call.h"

#include <grpc/support/time.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>

#include "base/polling.h"

namespace prefixd::client {
namespace {

constexpr std::chrono::milliseconds kPollTime{2};

// Blocks until the queue's only event has come. Leaves the queue shut down.
void Await(grpc::CompletionQueue* queue) {
  static std::atomic<bool> somebody_polls = false;
  void* tag = nullptr;
  bool ok = false;
  bool has_come = false;
  if (!somebody_polls.exchange(true, std::memory_order_relaxed)) {
    has_come =
        Poll(kPollTime, [&] {
          return queue->AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT;
        }) == Polled::kFound;
    somebody_polls.store(false, std::memory_order_relaxed);
  }
  if (!has_come) queue->Next(&tag, &ok);
  queue->Shutdown();
  while (queue->Next(&tag, &ok)) continue;
}

}  // namespace

grpc::Status CallPolling(const std::shared_ptr<grpc::Channel>& channel, const char* method,
                         grpc::ClientContext* context, const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(context, method, request, &queue);
  call->StartCall();
  call->Finish(response, &status, nullptr);
  Await(&queue);
  // A call that blocks says so by itself.
  if (status.ok() && !response->Valid()) return {grpc::StatusCode::UNIMPLEMENTED, "the server sent no reply"};
  return status;
}

}  // namespace prefixd::client
