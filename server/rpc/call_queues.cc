#include "server/rpc/call_queues.h"

#include <algorithm>
#include <thread>  // For the number of cores.

namespace prefixd {
namespace {

// Half as many threads as there are cores: lanes, and gRPC's callers on the same host, need the others. Of 1, 2, 4, 8
// and 16 queues with 8 or 16 threads in all on 16 cores, this serves the most small calls
// (docs/decisions/own_reactors.md).
constexpr int kThreadsPerQueue = 2;
constexpr int kCoresPerQueue = 4;
constexpr int kMaxQueues = 8;
// Calls that each queue awaits. One that comes while none is awaited waits until one is.
constexpr int kAwaited = 64;
// Calls of a queue that are under way. Where there are more, nobody is a lone caller: those who do not read are many.
constexpr int kManyCalls = 64;

int NumQueues() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / kCoresPerQueue, 1, kMaxQueues);
}

}  // namespace

void CallQueues::AddTo(grpc::ServerBuilder* builder) {
  builder->RegisterAsyncGenericService(&service_);
  for (int i = 0; i < NumQueues(); ++i) {
    sources_.push_back(std::make_unique<CallSource>());
    sources_.back()->service = &service_;
    sources_.back()->queue = builder->AddCompletionQueue();
  }
}

void CallQueues::Start(const std::function<Reactor*(Rpc*)>& make, const CallerEvents& events) {
  for (const auto& source : sources_) {
    source->make = [this, make, &num_holds = source->num_holds](Rpc* rpc) {
      threads_.NoteCall(/*beside_many=*/num_holds.load(std::memory_order_relaxed) > kManyCalls);
      return make(rpc);
    };
    source->events = events;
    for (int i = 0; i < kAwaited; ++i) Rpc::Await(source.get());
    threads_.Start(source->queue.get(), kThreadsPerQueue);
  }
}

void CallQueues::Stop() {
  for (const auto& source : sources_) {
    source->Release();
    source->released.WaitForNotification();
    threads_.Stop(source->queue.get());
  }
  sources_.clear();
}

}  // namespace prefixd
