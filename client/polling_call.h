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

// As CallMethod.
grpc::Status CallPolling(const std::shared_ptr<grpc::Channel>& channel, const char* method,
                         grpc::ClientContext* context, const grpc::ByteBuffer& request, grpc::ByteBuffer* response);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_POLLING_CALL_H_
