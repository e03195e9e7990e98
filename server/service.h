// The gRPC services: one small reactor per call shape, each the Transport of a Session. Nothing here works or blocks;
// sessions do the deciding, lanes the work.
// Threads: gRPC's callback threads, and lane threads through Session. See session.h.
#ifndef PREFIXD_SERVER_SERVICE_H_
#define PREFIXD_SERVER_SERVICE_H_

#include <string>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "server/session.h"

namespace prefixd {

// Who calls, and until when. Echoes a trace parent that is one.
CallInfo Describe(grpc::CallbackServerContext* call, std::string method, CallShape shape);

// Every method of PrefixService takes and gives raw bytes, so that a message that does not parse can be told from the
// end of a stream: gRPC's own parser reports both alike.
using RawPrefixService = v1::PrefixService::WithRawCallbackMethod_Scan<
    v1::PrefixService::WithRawCallbackMethod_Reduce<v1::PrefixService::WithRawCallbackMethod_Compact<
        v1::PrefixService::WithRawCallbackMethod_StreamScan<v1::PrefixService::WithRawCallbackMethod_StreamReduce<
            v1::PrefixService::WithRawCallbackMethod_StreamCompact<v1::PrefixService::Service>>>>>>;

class PrefixService final : public RawPrefixService {
 public:
  // The context must outlive the service.
  explicit PrefixService(ServerContext* context) : context_(context) {}

  grpc::ServerUnaryReactor* Scan(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Reduce(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Compact(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamScan(grpc::CallbackServerContext* call) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* StreamReduce(grpc::CallbackServerContext* call,
                                                          grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamCompact(
      grpc::CallbackServerContext* call) override;

 private:
  ServerContext* const context_;
};

class AdminService final : public v1::AdminService::CallbackService {
 public:
  // The context must outlive the service.
  explicit AdminService(ServerContext* context) : context_(context), started_(absl::Now()) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* call, const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override;
  // In benchmark_service.cc.
  grpc::ServerWriteReactor<v1::RunBenchmarkResponse>* RunBenchmark(grpc::CallbackServerContext* call,
                                                                   const v1::RunBenchmarkRequest* request) override;

 private:
  ServerContext* const context_;
  const absl::Time started_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_SERVICE_H_
