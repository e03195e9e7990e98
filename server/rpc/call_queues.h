// The completion queues of a gRPC server, and the threads that deliver their events to reactors.
//
//   CallQueues queues;
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
#include <thread>
#include <vector>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/reactor.h"

namespace prefixd {

class CallQueues {
 public:
  CallQueues() = default;
  ~CallQueues() { Stop(); }
  CallQueues(const CallQueues&) = delete;
  CallQueues& operator=(const CallQueues&) = delete;

  // Has the server hand all its calls over, each as soon as its headers have come. Once.
  void AddTo(grpc::ServerBuilder* builder);

  // Once the server is built. `make`, for each call, and the events are called on the threads.
  void Start(const std::function<Reactor*(Rpc*)>& make, const CallerEvents& events);

  // Waits for the reactors that there are, and ends the threads. Needs: the server's Shutdown has returned, or it was
  // never built. May be called again.
  void Stop();

 private:
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<CallSource>> sources_;
  std::vector<std::thread> threads_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CALL_QUEUES_H_
