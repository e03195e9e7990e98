#include "client/polling_call.h"

#include <grpc/support/time.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace prefixd::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollTime{2};
// If a thread that yields has not got its core back by then, others have work for it.
constexpr std::chrono::microseconds kMaxYield{50};

// False: it gave up, for the time is up or others want the core.
bool Poll(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  for (const auto end = Clock::now() + kPollTime;;) {
    if (queue->AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT) return true;
    const auto before = Clock::now();
    if (before >= end) return false;
    std::this_thread::yield();
    if (Clock::now() - before >= kMaxYield) return false;
  }
}

// Blocks until the queue's only event has come. Leaves the queue shut down.
void Await(grpc::CompletionQueue* queue) {
  static std::atomic<bool> somebody_polls = false;
  bool has_come = false;
  if (!somebody_polls.exchange(true, std::memory_order_relaxed)) {
    has_come = Poll(queue);
    somebody_polls.store(false, std::memory_order_relaxed);
  }
  void* tag = nullptr;
  bool ok = false;
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
