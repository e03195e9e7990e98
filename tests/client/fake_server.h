// A server in the test's own process, whose answers the test writes.
#ifndef PREFIXD_TESTS_CLIENT_FAKE_SERVER_H_
#define PREFIXD_TESTS_CLIENT_FAKE_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "prefixd/v1/diagnostics.grpc.pb.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "prefixd/v1/programs.grpc.pb.h"
#include "tests/client/fake_array_service.h"

namespace prefixd::client {

// Each method is a function that the test sets; without one it answers UNIMPLEMENTED.
class FakePrefixService : public v1::PrefixService::Service {
 public:
  using Context = grpc::ServerContext;
  std::function<grpc::Status(Context*, const v1::ScanRequest&, v1::ScanResponse*)> scan;
  std::function<grpc::Status(Context*, const v1::ReduceRequest&, v1::ReduceResponse*)> reduce;
  std::function<grpc::Status(Context*, const v1::CompactRequest&, v1::CompactResponse*)> compact;
  std::function<grpc::Status(Context*, const v1::DifferenceRequest&, v1::DifferenceResponse*)> difference;
  std::function<grpc::Status(Context*, grpc::ServerReaderWriter<v1::ScanResponse, v1::ScanRequest>*)> stream_scan;
  std::function<grpc::Status(Context*, grpc::ServerReader<v1::ReduceRequest>*, v1::ReduceResponse*)> stream_reduce;
  std::function<grpc::Status(Context*, grpc::ServerReaderWriter<v1::CompactResponse, v1::CompactRequest>*)>
      stream_compact;
  std::function<grpc::Status(Context*, grpc::ServerReaderWriter<v1::DifferenceResponse, v1::DifferenceRequest>*)>
      stream_difference;

 private:
  grpc::Status Scan(Context* context, const v1::ScanRequest* request, v1::ScanResponse* response) override {
    return scan ? scan(context, *request, response) : Unset();
  }
  grpc::Status Reduce(Context* context, const v1::ReduceRequest* request, v1::ReduceResponse* response) override {
    return reduce ? reduce(context, *request, response) : Unset();
  }
  grpc::Status Compact(Context* context, const v1::CompactRequest* request, v1::CompactResponse* response) override {
    return compact ? compact(context, *request, response) : Unset();
  }
  grpc::Status Difference(Context* context, const v1::DifferenceRequest* request,
                          v1::DifferenceResponse* response) override {
    return difference ? difference(context, *request, response) : Unset();
  }
  grpc::Status StreamScan(Context* context,
                          grpc::ServerReaderWriter<v1::ScanResponse, v1::ScanRequest>* stream) override {
    return stream_scan ? stream_scan(context, stream) : Unset();
  }
  grpc::Status StreamReduce(Context* context, grpc::ServerReader<v1::ReduceRequest>* reader,
                            v1::ReduceResponse* response) override {
    return stream_reduce ? stream_reduce(context, reader, response) : Unset();
  }
  grpc::Status StreamCompact(Context* context,
                             grpc::ServerReaderWriter<v1::CompactResponse, v1::CompactRequest>* stream) override {
    return stream_compact ? stream_compact(context, stream) : Unset();
  }
  grpc::Status StreamDifference(
      Context* context, grpc::ServerReaderWriter<v1::DifferenceResponse, v1::DifferenceRequest>* stream) override {
    return stream_difference ? stream_difference(context, stream) : Unset();
  }

  static grpc::Status Unset() { return {grpc::StatusCode::UNIMPLEMENTED, "the test has set no answer"}; }
};

class FakeProgramService : public v1::ProgramService::Service {
 public:
  std::function<grpc::Status(grpc::ServerContext*, const v1::RunRequest&, v1::RunResponse*)> run;

 private:
  grpc::Status Run(grpc::ServerContext* context, const v1::RunRequest* request, v1::RunResponse* response) override {
    if (!run) return {grpc::StatusCode::UNIMPLEMENTED, "the test has set no answer"};
    return run(context, *request, response);
  }
};

class FakeAdminService : public v1::AdminService::Service {
 public:
  v1::GetServerInfoResponse info;
  std::function<grpc::Status(grpc::ServerContext*, const v1::RunBenchmarkRequest&,
                             grpc::ServerWriter<v1::RunBenchmarkResponse>*)>
      run_benchmark;

 private:
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    *response = info;
    return grpc::Status::OK;
  }
  grpc::Status RunBenchmark(grpc::ServerContext* context, const v1::RunBenchmarkRequest* request,
                            grpc::ServerWriter<v1::RunBenchmarkResponse>* writer) override {
    if (!run_benchmark) return {grpc::StatusCode::UNIMPLEMENTED, "the test has set no answer"};
    return run_benchmark(context, *request, writer);
  }
};

// Sends each message back, without its first lost_bytes bytes.
class FakeDiagnosticsService : public v1::DiagnosticsService::Service {
 public:
  size_t lost_bytes = 0;
  std::vector<size_t> sizes;  // The sizes of the last stream's messages.
  grpc::Status status;        // How a call ends.

 private:
  grpc::Status Echo(grpc::ServerContext*, const v1::EchoRequest* request, v1::EchoResponse* response) override {
    response->set_data(request->data().substr(lost_bytes));
    return status;
  }
  grpc::Status StreamEcho(grpc::ServerContext*,
                          grpc::ServerReaderWriter<v1::EchoResponse, v1::EchoRequest>* stream) override {
    sizes.clear();
    v1::EchoResponse response;
    for (v1::EchoRequest request; status.ok() && stream->Read(&request);) {
      sizes.push_back(request.data().size());
      response.set_data(request.data().substr(lost_bytes));
      stream->Write(response);
    }
    return status;
  }
};

class FakeHealthService : public grpc::health::v1::Health::Service {
 public:
  grpc::health::v1::HealthCheckResponse::ServingStatus status = grpc::health::v1::HealthCheckResponse::SERVING;

 private:
  grpc::Status Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest*,
                     grpc::health::v1::HealthCheckResponse* response) override {
    response->set_status(status);
    return grpc::Status::OK;
  }
};

class FakeServer {
 public:
  // Listens on `port`; 0: on a port that the system picks. If window_bytes is not 0, a client may send so many bytes of
  // a stream before the server reads them.
  explicit FakeServer(int port = 0, int window_bytes = 0)
      : FakeServer("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), window_bytes) {}
  // Listens on an address, HOST:PORT or unix:PATH.
  explicit FakeServer(const std::string& address,
                      const std::shared_ptr<grpc::ServerCredentials>& credentials = grpc::InsecureServerCredentials(),
                      int window_bytes = 0)
      : host_(address.substr(0, address.rfind(':'))) {
    grpc::ServerBuilder builder;
    if (window_bytes != 0) {
      builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window_bytes);
    }
    builder.AddListeningPort(address, credentials, &port_);
    builder.RegisterService(&prefix);
    builder.RegisterService(&arrays);
    builder.RegisterService(&programs);
    builder.RegisterService(&admin);
    builder.RegisterService(&diagnostics);
    builder.RegisterService(&health);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5)); }

  // Needs: to listen on HOST:PORT.
  std::string address() const { return host_ + ":" + std::to_string(port_); }
  int port() const { return port_; }

  FakePrefixService prefix;
  FakeArrayService arrays;
  FakeProgramService programs;
  FakeAdminService admin;
  FakeDiagnosticsService diagnostics;
  FakeHealthService health;

 private:
  const std::string host_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

template <class T>
std::vector<T> Elements(const std::string& data) {
  std::vector<T> elements(data.size() / sizeof(T));
  if (!data.empty()) std::memcpy(elements.data(), data.data(), elements.size() * sizeof(T));
  return elements;
}

template <class T>
std::string Data(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

// An error as a prefixd server makes it.
inline grpc::Status DetailedError(grpc::StatusCode code, const std::string& reason, const std::string& message,
                                  const std::string& field = "", int64_t retry_ms = -1) {
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("prefixd");
  static_cast<void>(details.add_details()->PackFrom(info));
  if (!field.empty()) {
    google::rpc::BadRequest bad_request;
    bad_request.add_field_violations()->set_field(field);
    static_cast<void>(details.add_details()->PackFrom(bad_request));
  }
  if (retry_ms >= 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(retry_ms % 1000 * 1000000));
    static_cast<void>(details.add_details()->PackFrom(retry));
  }
  return {code, message, details.SerializeAsString()};
}

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_FAKE_SERVER_H_
