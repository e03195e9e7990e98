// The completion queues of a gRPC server, whose events go to reactors.
//
//   QueueThreads threads(poll_time, Rpc::Deliver);
//   CallQueues queues(&threads);
//   queues.AddTo(&builder);
//   auto server = builder.BuildAndStart();
//   queues.Start([](Rpc* rpc) -> Reactor* { return new Echo(rpc); }, CallerEvents());
//   ...
//   server->Shutdown(deadline);
//   queues.Stop();
//
// Threads: AddTo, Start and Stop by one thread.
#ifndef PREFIXD_SERVER_RPC_CALL_QUEUES_H_
#define PREFIXD_SERVER_RPC_CALL_QUEUES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/queue_threads.h"
#include "server/rpc/reactor.h"

namespace prefixd {

class CallQueues {
 public:
  // The threads, which other servers' queues may have too, outlive it.
  explicit CallQueues(QueueThreads* threads) : threads_(*threads) {}
  ~CallQueues() { Stop(); }
  CallQueues(const CallQueues&) = delete;
  CallQueues& operator=(const CallQueues&) = delete;

  // Has the server hand all its calls over, each as soon as its headers have come. Once.
  void AddTo(grpc::ServerBuilder* builder);

  // Once the server is built. `make`, for each call, and the events are called on the threads.
  // Throws std::system_error where there can be no more threads.
  void Start(const std::function<Reactor*(Rpc*)>& make, const CallerEvents& events);

  // Waits for the reactors that there are, and ends the threads. Needs: the server's Shutdown has returned, or it was
  // never built. May be called again.
  void Stop();

 private:
  QueueThreads& threads_;
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<CallSource>> sources_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CALL_QUEUES_H_
