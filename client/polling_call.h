// A unary call whose thread looks for the reply before it sleeps. Private to the library.
//
// A call on resident arrays takes about a millisecond, and a core that has nothing to do halts meanwhile: on virtual
// machines it comes back a tenth of a millisecond late. So the thread looks again and again for up to 2 ms, and yields
// its core to whoever wants it. One thread of a process looks at a time; the others sleep at once.
#ifndef PREFIXD_CLIENT_POLLING_CALL_H_
#define PREFIXD_CLIENT_POLLING_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <memory>

namespace prefixd::client {

// A unary call of any method, with bytes for its messages, on the channel.
// Blocks until the call has ended: with a reply, or by the context's deadline or cancellation.
// Errors: the call's; UNIMPLEMENTED where it ended well and without a reply, as gRPC's own blocking call says.
// Cost: up to 2 ms of a core, and two calls of the system each time that it looks.
grpc::Status CallPolling(const std::shared_ptr<grpc::Channel>& channel, const char* method,
                         grpc::ClientContext* context, const grpc::ByteBuffer& request, grpc::ByteBuffer* response);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_POLLING_CALL_H_
