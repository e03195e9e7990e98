// A server whose messages are bytes. A test sees exactly what a client sends, and can answer as no good server would.
#ifndef PREFIXD_TESTS_CLIENT_RAW_SERVER_H_
#define PREFIXD_TESTS_CLIENT_RAW_SERVER_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>

#include <memory>
#include <string>
#include <vector>

namespace prefixd::client {

inline std::string ToString(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices);
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Keeps the messages of one call in `requests`, then answers with `replies`. A unary call gets the first reply.
class RawServer : private grpc::Service {
 public:
  RawServer() {
    for (const std::string name : {"Scan", "Reduce", "Compact", "Difference"}) {
      names_.push_back(std::make_unique<std::string>("/prefixd.v1.PrefixService/" + name));
      AddMethod(new grpc::internal::RpcServiceMethod(
          names_.back()->c_str(), grpc::internal::RpcMethod::NORMAL_RPC,
          new grpc::internal::RpcMethodHandler<RawServer, Buffer, Buffer>(
              [](RawServer* self, grpc::ServerContext*, const Buffer* request, Buffer* response) {
                self->requests = {ToString(*request)};
                *response = self->Replies().front();
                return grpc::Status::OK;
              },
              this)));
      names_.push_back(std::make_unique<std::string>("/prefixd.v1.PrefixService/Stream" + name));
      AddMethod(new grpc::internal::RpcServiceMethod(
          names_.back()->c_str(), grpc::internal::RpcMethod::BIDI_STREAMING,
          new grpc::internal::BidiStreamingHandler<RawServer, Buffer, Buffer>(
              [](RawServer* self, grpc::ServerContext*, grpc::ServerReaderWriter<Buffer, Buffer>* rpc) {
                self->requests.clear();
                for (Buffer request; rpc->Read(&request);) self->requests.push_back(ToString(request));
                for (const Buffer& reply : self->Replies()) rpc->Write(reply);
                return grpc::Status::OK;
              },
              this)));
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~RawServer() override { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5)); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  std::vector<std::string> requests;
  std::vector<std::string> replies = {""};

 private:
  using Buffer = grpc::ByteBuffer;

  std::vector<Buffer> Replies() const {
    std::vector<Buffer> buffers;
    for (const std::string& reply : replies) {
      const grpc::Slice slice(reply);
      buffers.emplace_back(&slice, 1);
    }
    return buffers;
  }

  std::vector<std::unique_ptr<std::string>> names_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_RAW_SERVER_H_
