// The gRPC services: one small reactor per call shape, each the Transport of a Session. Nothing here works or blocks;
// sessions do the deciding, lanes the work.
// Threads: gRPC's callback threads, and lane threads through Session. See session.h.
#ifndef PREFIXD_SERVER_SERVICE_H_
#define PREFIXD_SERVER_SERVICE_H_

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "server/session.h"

namespace prefixd {

class PrefixService final : public v1::PrefixService::CallbackService {
 public:
  // The context must outlive the service.
  explicit PrefixService(ServerContext* context) : context_(context) {}

  grpc::ServerUnaryReactor* Scan(grpc::CallbackServerContext* call, const v1::ScanRequest* request,
                                 v1::ScanResponse* response) override;
  grpc::ServerUnaryReactor* Reduce(grpc::CallbackServerContext* call, const v1::ReduceRequest* request,
                                   v1::ReduceResponse* response) override;
  grpc::ServerUnaryReactor* Compact(grpc::CallbackServerContext* call, const v1::CompactRequest* request,
                                    v1::CompactResponse* response) override;
  grpc::ServerBidiReactor<v1::ScanRequest, v1::ScanResponse>* StreamScan(grpc::CallbackServerContext* call) override;
  grpc::ServerReadReactor<v1::ReduceRequest>* StreamReduce(grpc::CallbackServerContext* call,
                                                           v1::ReduceResponse* response) override;
  grpc::ServerBidiReactor<v1::CompactRequest, v1::CompactResponse>* StreamCompact(
      grpc::CallbackServerContext* call) override;

 private:
  ServerContext* const context_;
};

class AdminService final : public v1::AdminService::CallbackService {
 public:
  explicit AdminService(const ServerContext* context) : context_(context), started_(absl::Now()) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* call, const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override;

 private:
  const ServerContext* const context_;
  const absl::Time started_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_SERVICE_H_
