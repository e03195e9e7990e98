// A server that only sends messages back, or drops them: it shows the cost of gRPC alone. data_path_bench starts it.
//   bare_server PORT_FILE      writes its loopback port to PORT_FILE, and serves as long as its parent lives
//
// It is built twice. bare_server runs as gRPC and glibc leave it. tuned_bare_server has prefixd's process settings
// (base/process.h), above all its allocator.
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <mutex>
#include <string>

#include "prefixd/v1/primitives.grpc.pb.h"
#if defined(PREFIXD_TUNED)
#include "base/process.h"
#endif

namespace {

using grpc::ByteBuffer;

// Reads the next message while the last one is written; at most five are held.
class EchoReactor final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  EchoReactor() { StartRead(&in_); }
  void OnReadDone(bool ok) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    reading_ = false;
    if (ok) {
      queue_.emplace_back();
      queue_.back().Swap(&in_);
    } else {
      read_ended_ = true;
    }
    Advance();
  }
  void OnWriteDone(bool /*ok*/) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    Advance();
  }
  void OnDone() override { delete this; }

 private:
  void Advance() {
    if (!writing_ && !queue_.empty()) {
      out_.Clear();
      out_.Swap(&queue_.front());
      queue_.pop_front();
      writing_ = true;
      StartWrite(&out_);
    }
    if (!reading_ && !read_ended_ && queue_.size() < 4) {
      reading_ = true;
      StartRead(&in_);
    }
    if (read_ended_ && !writing_ && queue_.empty()) Finish(grpc::Status::OK);
  }
  std::mutex mutex_;
  ByteBuffer in_;
  ByteBuffer out_;
  std::deque<ByteBuffer> queue_;
  bool reading_ = true;
  bool writing_ = false;
  bool read_ended_ = false;
};

class SinkReactor final : public grpc::ServerReadReactor<ByteBuffer> {
 public:
  explicit SinkReactor(ByteBuffer* response) {
    grpc::Slice empty;
    *response = ByteBuffer(&empty, 1);
    StartRead(&in_);
  }
  void OnReadDone(bool ok) override {
    in_.Clear();
    if (ok) {
      StartRead(&in_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  ByteBuffer in_;
};

// prefixd's methods, so that the callers need not know whom they call.
using Service = prefixd::v1::PrefixService;
using RawService = Service::WithRawCallbackMethod_Scan<
    Service::WithRawCallbackMethod_StreamScan<Service::WithRawCallbackMethod_StreamReduce<Service::Service>>>;
class BareService final : public RawService {
  grpc::ServerUnaryReactor* Scan(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                 ByteBuffer* response) override {
    *response = *request;
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* StreamScan(grpc::CallbackServerContext* /*call*/) override {
    return new EchoReactor;
  }
  grpc::ServerReadReactor<ByteBuffer>* StreamReduce(grpc::CallbackServerContext* /*call*/,
                                                    ByteBuffer* response) override {
    return new SinkReactor(response);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PORT_FILE\n", argv[0]);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // Whoever started it measures it, and nobody else wants it.
#if defined(PREFIXD_TUNED)
  prefixd::TuneProcess();
#endif
  BareService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::ofstream(argv[1]) << port << "\n";
  server->Wait();
}
