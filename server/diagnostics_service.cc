#include "server/diagnostics_service.h"

#include <chrono>
#include <deque>
#include <utility>

#include "kernels/status.h"
#include "server/admission.h"
#include "server/grpc_status.h"
#include "server/mutex.h"
#include "server/request_id.h"
#include "server/service.h"
#include "server/stop_signal.h"

namespace prefixd {
namespace {

using grpc::ByteBuffer;

// What both calls do beside their messages: a place in the budgets, how it ended, and a line in the log.
// Threads: one at a time.
class EchoCall {
 public:
  EchoCall(ServerContext* context, CallInfo call)
      : context_(context), call_(std::move(call)), started_(std::chrono::steady_clock::now()) {
    result_.request_id = RequestIdOf("");
    result_.timing.device_name = context_->device_name;
  }

  // The first call takes a place for `held_bytes`; every call counts a message.
  absl::Status Accept(const ByteBuffer& message, uint64_t held_bytes) {
    num_bytes_in_ += message.Length();
    if (std::exchange(admitted_, true)) return absl::OkStatus();
    PREFIXD_ASSIGN_OR_RETURN(ticket_, context_->admission->Admit(held_bytes));
    return absl::OkStatus();
  }
  void Sent(const ByteBuffer& message) { num_bytes_out_ += message.Length(); }

  // Returns what the caller is to be told.
  grpc::Status Finish(absl::Status status) {
    ticket_.LeavePlace(/*kept_bytes=*/UINT64_MAX);
    result_.status = std::move(status);
    result_.timing.server_total_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - started_).count();
    return ToGrpcStatus(result_.status, result_.request_id);
  }

  void OnDone(bool delivered) {
    if (!delivered && result_.status.ok()) {
      StopSignal stop(call_.deadline);
      stop.Cancel();
      result_.status = stop.Check();
    }
    context_->log({.call = call_,
                   .spec = nullptr,
                   .num_bytes_in = num_bytes_in_,
                   .num_bytes_out = num_bytes_out_,
                   .result = result_});
  }

 private:
  ServerContext* const context_;
  const CallInfo call_;
  const std::chrono::steady_clock::time_point started_;
  bool admitted_ = false;
  Admission::Ticket ticket_;
  uint64_t num_bytes_in_ = 0;
  uint64_t num_bytes_out_ = 0;
  Result result_;
};

class EchoReactor final : public grpc::ServerUnaryReactor {
 public:
  EchoReactor(ServerContext* context, grpc::CallbackServerContext* call, const ByteBuffer& request,
              ByteBuffer* response)
      : call_(call), echo_(context, Describe(call, "Echo", CallShape::kUnary)) {
    absl::Status status = echo_.Accept(request, request.Length());
    if (status.ok()) {
      *response = request;  // The same memory once more, not a copy.
      echo_.Sent(request);
    }
    Finish(echo_.Finish(std::move(status)));
  }

  void OnDone() override {
    echo_.OnDone(!call_->IsCancelled());
    delete this;
  }

 private:
  grpc::CallbackServerContext* const call_;
  EchoCall echo_;
};

// Reads the next message while the last one is written. What is next is decided under the lock and done without it. It
// ends once nothing is under way: of a call that has failed or was cancelled gRPC ends the read and the write.
class StreamEchoReactor final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  StreamEchoReactor(ServerContext* context, grpc::CallbackServerContext* call)
      : held_bytes_((DiagnosticsService::kMaxHeldMessages + 1) * context->max_message_bytes),
        call_(call),
        echo_(context, Describe(call, "StreamEcho", CallShape::kStream)) {
    Advance();
  }

  void OnReadDone(bool ok) override {
    {
      MutexLock lock(mutex_);
      reading_ = false;
      if (!ok) {
        read_ended_ = true;
      } else if (absl::Status status = echo_.Accept(incoming_, held_bytes_); !status.ok()) {
        Fail(std::move(status));
      } else if (status_.ok()) {
        held_.push_back(std::exchange(incoming_, ByteBuffer()));
      }
    }
    Advance();
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(mutex_);
      writing_ = false;
      if (ok) {
        echo_.Sent(held_.front());
        held_.pop_front();
      } else {
        Fail(Error(absl::StatusCode::kCancelled, "CANCELLED", "", "the caller went away; work has stopped"));
      }
    }
    Advance();
  }

  void OnDone() override {
    {
      MutexLock lock(mutex_);
      echo_.OnDone(!call_->IsCancelled());
    }
    delete this;
  }

 private:
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (status_.ok()) status_ = std::move(status);  // The first error is the cause.
    if (!writing_) held_.clear();
  }

  void Advance() {
    const ByteBuffer* to_write = nullptr;
    bool reads = false;
    bool finishes = false;
    grpc::Status status;
    {
      MutexLock lock(mutex_);
      if (status_.ok() && !writing_ && !held_.empty()) {
        writing_ = true;
        to_write = &held_.front();
      }
      if (status_.ok() && !reading_ && !read_ended_ && held_.size() < DiagnosticsService::kMaxHeldMessages) {
        reading_ = reads = true;
      }
      if (!reading_ && !writing_ && !finished_) {
        finished_ = finishes = true;
        status = echo_.Finish(status_);
      }
    }
    // What was begun keeps this alive until the last line that touches it.
    if (to_write != nullptr && reads) {
      StartWrite(to_write);
      StartRead(&incoming_);
    } else if (to_write != nullptr) {
      StartWrite(to_write);
    } else if (reads) {
      StartRead(&incoming_);
    } else if (finishes) {
      Finish(status);
    }
  }

  const uint64_t held_bytes_;
  grpc::CallbackServerContext* const call_;

  Mutex mutex_;
  EchoCall echo_ ABSL_GUARDED_BY(mutex_);
  ByteBuffer incoming_;                                  // The read's while there is one.
  std::deque<ByteBuffer> held_ ABSL_GUARDED_BY(mutex_);  // The first is the write's while there is one.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerUnaryReactor* DiagnosticsService::Echo(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                                   ByteBuffer* response) {
  return new EchoReactor(context_, call, *request, response);
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* DiagnosticsService::StreamEcho(grpc::CallbackServerContext* call) {
  return new StreamEchoReactor(context_, call);
}

}  // namespace prefixd
