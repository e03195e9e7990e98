// DiagnosticsService: sends back what it gets, so that a caller can measure the wire without the work.
// Threads: gRPC's callback threads; nothing here works, blocks or copies a message's bytes.
#ifndef PREFIXD_SERVER_DIAGNOSTICS_SERVICE_H_
#define PREFIXD_SERVER_DIAGNOSTICS_SERVICE_H_

#include "grpcpp/grpcpp.h"
#include "prefixd/v1/diagnostics.grpc.pb.h"
#include "server/session.h"

namespace prefixd {

// Raw bytes both ways: a request's are those of its response.
using RawDiagnosticsService = v1::DiagnosticsService::WithRawCallbackMethod_Echo<
    v1::DiagnosticsService::WithRawCallbackMethod_StreamEcho<v1::DiagnosticsService::Service>>;

class DiagnosticsService final : public RawDiagnosticsService {
 public:
  // Of a stream, besides the one that is being read.
  static constexpr size_t kMaxHeldMessages = 2;

  // The context must outlive the service.
  explicit DiagnosticsService(ServerContext* context) : context_(context) {}

  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamEcho(grpc::CallbackServerContext* call) override;

 private:
  ServerContext* const context_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_DIAGNOSTICS_SERVICE_H_
