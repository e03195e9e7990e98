#include "server/rpc/reading_reactor.h"

#include <utility>

#include "base/status.h"
#include "server/rpc/grpc_status.h"

namespace prefixd {

ReadingReactor::ReadingReactor(ServerContext* context, Rpc* rpc, CallInfo info, Admission::Kind kind)
    : Reactor(rpc),
      kind_(kind),
      context_(context),
      call_(context, std::move(info)),
      turn_(kind == Admission::Kind::kQuestion && context->questions != nullptr ? std::make_shared<Turn>() : nullptr) {}

void ReadingReactor::OnStart() {
  call_.Watch([this] { return Look(); }, [this](absl::Status why) { GiveUp(std::move(why)); });
  absl::Status status = AdmitQuestion();  // First: who is refused here is charged for nothing, and counts as refused.
  if (status.ok()) status = call_.Admit(kind_);
  charged_bytes_ = kind_ == Admission::Kind::kQuestion ? Call::kQuestionBytes : 0;
  if (status.ok()) status = call_.Charge(charged_bytes_);
  if (status.ok()) {
    ReadNext();
  } else {
    End(std::move(status));
  }
}

absl::Status ReadingReactor::AdmitQuestion() {
  if (turn_ == nullptr) return absl::OkStatus();
  {
    MutexLock lock(turn_->mutex);
    turn_->reactor = this;
  }
  // A question that is answered once has a place until its answer was taken. Watches last.
  const bool has_place = call_.info().shape == CallShape::kUnary;
  PREFIXD_ASSIGN_OR_RETURN(Admission::Ticket coming,
                           context_->questions->Admit(call_.info().caller, has_place ? Admission::Kind::kRequest
                                                                                     : Admission::Kind::kQuestion));
  MutexLock lock(mutex_);
  coming_ = std::move(coming);
  return absl::OkStatus();
}

void ReadingReactor::ReadNext() {
  MutexLock lock(mutex_);  // Nobody gives up a read that has not begun.
  waits_ = true;
  ++num_reads_;
  const auto on_charged = [turn = turn_] {
    MutexLock turn_lock(turn->mutex);
    if (turn->reactor != nullptr) turn->reactor->OnCharged();
  };
  // No message comes of a call that was cancelled, and gRPC says so at once.
  if (turn_ == nullptr || is_cancelled_ || coming_.ChargeOrWait(context_->max_message_bytes, on_charged)) BeginRead();
}

void ReadingReactor::OnCharged() {
  MutexLock lock(mutex_);
  if (waits_) BeginRead();
}

void ReadingReactor::BeginRead() {
  is_reading_ = true;
  StartRead(&request_);
}

bool ReadingReactor::StopReading() {
  if (!std::exchange(waits_, false)) return false;
  is_reading_ = false;
  coming_.StopWaiting();
  coming_.ShrinkTo(0);
  return true;
}

void ReadingReactor::OnCancel() {
  {
    MutexLock lock(mutex_);
    is_cancelled_ = true;
    if (is_reading_ || !StopReading()) return;  // The read ends, or whoever answers sees it.
  }
  End(call_.Cancel());
}

void ReadingReactor::OnReadDone(bool ok) {
  {
    MutexLock lock(mutex_);
    if (!StopReading()) return;  // It was given up, and has ended.
  }
  if (!ok) {
    OnReadEnd();
    return;
  }
  BeginCall(request_);
  call_.CountReceived(request_.Length());
  if (absl::Status status = call_.Charge(request_.Length()); !status.ok()) {
    End(std::move(status));
    return;
  }
  charged_bytes_ += request_.Length();
  OnRequest(std::exchange(request_, grpc::ByteBuffer()));
}

void ReadingReactor::OnReadEnd() {
  End(Error(absl::StatusCode::kInvalidArgument, "MESSAGE_MISSING", "", "the call ended without a message: send one"),
      /*response=*/{}, /*is_cut_short=*/true);
}

void ReadingReactor::End(absl::Status status, const grpc::ByteBuffer& response, bool is_cut_short) {
  const Result& result = call_.Finish({.result = {.status = std::move(status)}, .is_cut_short = is_cut_short});
  if (!result.status.ok() || !response.Valid()) {
    Finish(ToGrpcStatus(result.status, result.request_id));
    return;
  }
  response_ = response;
  StartWriteAndFinish(&response_);
}

void ReadingReactor::OnDone() {
  if (turn_ != nullptr) {
    MutexLock lock(turn_->mutex);
    turn_->reactor = nullptr;
  }
  call_.Done(!WasCancelled());
  delete this;
}

Watched::Sight ReadingReactor::Look() {
  {
    MutexLock lock(mutex_);
    const WaitsFor message = num_reads_ == 1 ? WaitsFor::kFirstMessage : WaitsFor::kMessage;
    if (waits_) {
      return {.waits_for = is_reading_ ? message : WaitsFor::kTurn,
              .progress = num_reads_,
              .is_idle = kind_ == Admission::Kind::kQuestion};
    }
  }
  return LookAtAnswer();
}

void ReadingReactor::GiveUp(absl::Status why) {
  bool was_waiting = false;
  {
    MutexLock lock(mutex_);
    was_waiting = StopReading();
  }
  if (was_waiting) {
    End(std::move(why));
  } else {
    call_.GiveUp(std::move(why));  // The end could not be sent either.
  }
}

}  // namespace prefixd
