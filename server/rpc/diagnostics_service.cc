#include "server/rpc/diagnostics_service.h"

#include <deque>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/diagnostics.grpc.pb.h"
#include "server/call/call.h"
#include "server/call/flow.h"
#include "server/rpc/call_info.h"
#include "server/rpc/grpc_status.h"

namespace prefixd {
namespace {

using grpc::ByteBuffer;

grpc::Status FinishEcho(Call& call, absl::Status status) {
  const Result& result = call.Finish({.result = {.status = std::move(status)}});
  return ToGrpcStatus(result.status, result.request_id);
}

class EchoReactor final : public grpc::ServerUnaryReactor {
 public:
  EchoReactor(ServerContext* context, grpc::CallbackServerContext* rpc, const ByteBuffer& request, ByteBuffer* response)
      : rpc_(rpc), call_(context, CallInfoOf(*context, rpc, "Echo", CallShape::kUnary)) {
    call_.Begin("");
    call_.CountReceived(request.Length());
    absl::Status status = call_.Admit(request.Length());
    if (status.ok()) {
      *response = request;  // The same memory once more, not a copy.
      call_.CountSent(request.Length());
    }
    Finish(FinishEcho(call_, std::move(status)));
  }

  void OnDone() override {
    call_.Done(!rpc_->IsCancelled());
    delete this;
  }

 private:
  grpc::CallbackServerContext* const rpc_;
  Call call_;
};

// Reads the next message while the last one is written: its work is the write, and flow.h says what it does next.
class StreamEchoReactor final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  StreamEchoReactor(ServerContext* context, grpc::CallbackServerContext* rpc)
      : held_bytes_((Flow::kMaxIncoming + 1) * context->max_message_bytes),
        rpc_(rpc),
        call_(context, CallInfoOf(*context, rpc, "StreamEcho", CallShape::kStream)) {
    call_.Begin("");
    Pump();
  }

  void OnReadDone(bool ok) override {
    {
      MutexLock lock(mutex_);
      reading_ = ok ? ReadState::kIdle : ReadState::kEnded;
      if (ok) Accept();
    }
    Pump();
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(mutex_);
      writing_ = RunState::kIdle;
      if (ok) call_.CountSent(held_.front().Length());
      held_.pop_front();
      if (!ok) Fail(call_.Cancel());
    }
    Pump();
  }

  void OnDone() override {
    call_.Done(!rpc_->IsCancelled());
    delete this;
  }

 private:
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    call_.CountReceived(read_.Length());
    if (!std::exchange(admitted_, true)) {
      if (absl::Status status = call_.Admit(held_bytes_); !status.ok()) Fail(std::move(status));
    }
    if (status_.ok()) held_.push_back(std::exchange(read_, ByteBuffer()));
  }

  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (status_.ok()) status_ = std::move(status);  // The first error is the cause.
  }

  // One thread at a time is inside; the rest leave their news. So nobody else can finish the call, and with it the
  // reactor, before the thread that is inside leaves.
  void Pump() {
    while (true) {
      Step step = Step::kWait;
      const ByteBuffer* to_write = nullptr;
      absl::Status status;
      {
        MutexLock lock(mutex_);
        if (pumping_) return;
        step = NextStep({.has_failed = !status_.ok(),
                         .has_finished = finished_,
                         .reading = reading_,
                         .running = writing_,
                         .num_incoming = held_.size()});
        if (step == Step::kWait) return;
        pumping_ = true;
        if (step == Step::kRead) reading_ = ReadState::kReading;
        if (step == Step::kRun) {
          writing_ = RunState::kRunning;
          to_write = &held_.front();
        }
        finished_ = step == Step::kFinish;
        status = status_;
      }
      if (step == Step::kFinish) {
        Finish(FinishEcho(call_, std::move(status)));
        return;  // The reactor may be gone.
      }
      if (step == Step::kRead) {
        StartRead(&read_);
      } else {
        StartWrite(to_write);
      }
      MutexLock lock(mutex_);
      pumping_ = false;
    }
  }

  const uint64_t held_bytes_;
  grpc::CallbackServerContext* const rpc_;
  Call call_;

  ByteBuffer read_;  // The read's while there is one.
  Mutex mutex_;
  std::deque<ByteBuffer> held_ ABSL_GUARDED_BY(mutex_);  // The first is the write's while there is one.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool admitted_ ABSL_GUARDED_BY(mutex_) = false;
  ReadState reading_ ABSL_GUARDED_BY(mutex_) = ReadState::kIdle;
  RunState writing_ ABSL_GUARDED_BY(mutex_) = RunState::kIdle;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;  // A thread is inside Pump.
};

class DiagnosticsService final
    : public v1::DiagnosticsService::WithRawCallbackMethod_Echo<
          v1::DiagnosticsService::WithRawCallbackMethod_StreamEcho<v1::DiagnosticsService::Service>> {
 public:
  explicit DiagnosticsService(ServerContext* context) : context_(context) {}

  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* rpc, const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return new EchoReactor(context_, rpc, *request, response);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* StreamEcho(grpc::CallbackServerContext* rpc) override {
    return new StreamEchoReactor(context_, rpc);
  }

 private:
  ServerContext* const context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDiagnosticsService(ServerContext* context) {
  return std::make_unique<DiagnosticsService>(context);
}

}  // namespace prefixd
