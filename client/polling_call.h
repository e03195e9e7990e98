// A unary call whose thread looks for the reply before it sleeps. Private to the library.
//
// A call on resident arrays takes about a millisecond, and a core that has nothing to do halts meanwhile: on virtual
// machines it comes back a tenth of a millisecond late. So the thread looks again and again for up to kPollTime, and
// yields its core to whoever wants it. One thread of a process looks at a time; the others sleep at once.
#ifndef PREFIXD_CLIENT_POLLING_CALL_H_
#define PREFIXD_CLIENT_POLLING_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/status.h>

#include "client/connection.h"

namespace prefixd::client {

// Blocks until the queue's only event has come. Leaves the queue shut down.
void AwaitPolling(grpc::CompletionQueue* queue);

// A unary call of any method.
template <class Request, class Response>
grpc::Status CallPolling(const Server& server, const char* method, grpc::ClientContext* context, const Request& request,
                         Response* response) {
  grpc::CompletionQueue queue;
  grpc::TemplatedGenericStub<Request, Response> stub(server.channel());
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(context, method, request, &queue);
  call->StartCall();
  call->Finish(response, &status, nullptr);
  AwaitPolling(&queue);
  return status;
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_POLLING_CALL_H_
