#include "server/rpc/diagnostics_service.h"

#include <deque>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/diagnostics.grpc.pb.h"
#include "server/call/call.h"
#include "server/call/flow.h"
#include "server/rpc/call_info.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/reading_reactor.h"

namespace prefixd {
namespace {

using grpc::ByteBuffer;

grpc::Status FinishEcho(Call& call, absl::Status status) {
  const Result& result = call.Finish({.result = {.status = std::move(status)}});
  return ToGrpcStatus(result.status, result.request_id);
}

class EchoReactor final : public ReadingReactor {
 public:
  EchoReactor(ServerContext* context, Rpc* rpc)
      : ReadingReactor(context, rpc, CallInfoOf(*context, rpc, "Echo", CallShape::kUnary), Admission::Kind::kRequest) {}

 private:
  void OnRequest(const ByteBuffer& request) override {
    call().CountSent(request.Length());
    End(absl::OkStatus(), request);  // The same memory once more, not a copy.
  }
};

// Reads the next message while the last one is written: its work is the write, and flow.h says what it does next.
class StreamEchoReactor final : public Reactor {
 public:
  StreamEchoReactor(ServerContext* context, Rpc* rpc)
      : Reactor(rpc), call_(context, CallInfoOf(*context, rpc, "StreamEcho", CallShape::kStream)) {}

  void OnStart() override {
    call_.Watch([this] { return Look(); }, [this](absl::Status why) { GiveUp(std::move(why)); });
    call_.Begin("");
    if (absl::Status status = call_.Admit(); !status.ok()) {
      MutexLock lock(mutex_);
      Fail(std::move(status));
    }
    Pump();
  }

  void OnReadDone(bool ok) override {
    {
      MutexLock lock(mutex_);
      ++progress_;
      reading_ = ok ? ReadState::kIdle : ReadState::kEnded;
      if (ok) Accept();
    }
    Pump();
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(mutex_);
      ++progress_;
      writing_ = RunState::kIdle;
      if (ok) call_.CountSent(held_.front().Length());
      held_bytes_ -= held_.front().Length();
      held_.pop_front();
      call_.ShrinkTo(held_bytes_);
      if (!ok) Fail(call_.Cancel());
    }
    Pump();
  }

  void OnDone() override {
    call_.Done(!WasCancelled());
    delete this;
  }

 private:
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!status_.ok()) return;
    call_.CountReceived(read_.Length());
    if (absl::Status status = call_.Charge(read_.Length()); !status.ok()) return Fail(std::move(status));
    held_bytes_ += read_.Length();
    held_.push_back(std::exchange(read_, ByteBuffer()));
  }

  bool WaitsForMessage() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !finished_ && writing_ == RunState::kIdle && reading_ == ReadState::kReading;
  }

  Watched::Sight Look() {
    MutexLock lock(mutex_);
    const WaitsFor message = progress_ == 0 ? WaitsFor::kFirstMessage : WaitsFor::kMessage;
    return {.waits_for = WaitsForMessage() ? message : WaitsFor::kReader, .progress = progress_};
  }

  void GiveUp(absl::Status why) {
    bool takes_nothing = false;
    {
      MutexLock lock(mutex_);
      takes_nothing = !WaitsForMessage();
      if (!takes_nothing) Fail(why);
    }
    if (takes_nothing) {
      call_.GiveUp(std::move(why));
    } else {
      Pump();
    }
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

  Call call_;

  ByteBuffer read_;  // The read's while there is one.
  Mutex mutex_;
  std::deque<ByteBuffer> held_ ABSL_GUARDED_BY(mutex_);  // The first is the write's while there is one.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t progress_ ABSL_GUARDED_BY(mutex_) = 0;
  ReadState reading_ ABSL_GUARDED_BY(mutex_) = ReadState::kIdle;
  RunState writing_ ABSL_GUARDED_BY(mutex_) = RunState::kIdle;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;  // A thread is inside Pump.
};

}  // namespace

void AddDiagnosticsMethods(ServerContext* context, Methods* methods) {
  constexpr const char* kService = v1::DiagnosticsService::service_full_name();
  // Echoes pass as bytes. Without this the linker may leave out what describes their messages to reflection.
  google::protobuf::LinkMessageReflection<v1::EchoRequest>();
  methods->Add(kService, "Echo", [=](Rpc* rpc) { return new EchoReactor(context, rpc); });
  methods->Add(kService, "StreamEcho", [=](Rpc* rpc) { return new StreamEchoReactor(context, rpc); });
}

}  // namespace prefixd
