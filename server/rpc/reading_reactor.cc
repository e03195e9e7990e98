#include "server/rpc/reading_reactor.h"

#include <utility>

#include "base/status.h"
#include "server/rpc/grpc_status.h"

namespace prefixd {

ReadingReactor::ReadingReactor(ServerContext* context, Rpc* rpc, CallInfo info, Admission::Kind kind)
    : Reactor(rpc), kind_(kind), context_(context), call_(context, std::move(info)) {}

void ReadingReactor::OnStart() {
  call_.Watch([this] { return Look(); }, [this](absl::Status why) { GiveUp(std::move(why)); });
  absl::Status status = call_.Admit(kind_);
  charged_bytes_ = kind_ == Admission::Kind::kQuestion ? Call::kQuestionBytes : 0;
  if (status.ok()) status = call_.Charge(charged_bytes_);
  if (status.ok()) {
    ReadNext();
  } else {
    End(std::move(status));
  }
}

void ReadingReactor::ReadNext() {
  Admission::Ticket place;
  if (kind_ == Admission::Kind::kQuestion && context_->questions != nullptr) {
    absl::StatusOr<Admission::Ticket> ticket = context_->questions->Admit(call_.info().caller);
    if (!ticket.ok()) {
      End(std::move(ticket).status());
      return;
    }
    place = *std::move(ticket);
  }
  MutexLock lock(mutex_);  // Nobody gives up a read that has not begun.
  place_ = std::move(place);
  waits_ = true;
  ++num_reads_;
  StartRead(&request_);
}

void ReadingReactor::OnReadDone(bool ok) {
  {
    MutexLock lock(mutex_);
    if (!std::exchange(waits_, false)) return;  // It was given up, and has ended.
    place_ = Admission::Ticket();
  }
  if (!ok) {
    OnReadEnd();
    return;
  }
  call_.Begin("");
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
  call_.Done(!WasCancelled());
  delete this;
}

Watched::Sight ReadingReactor::Look() {
  {
    MutexLock lock(mutex_);
    const WaitsFor message = num_reads_ == 1 ? WaitsFor::kFirstMessage : WaitsFor::kMessage;
    if (waits_) {
      return {.waits_for = message, .progress = num_reads_, .is_idle = kind_ == Admission::Kind::kQuestion};
    }
  }
  return LookAtAnswer();
}

void ReadingReactor::GiveUp(absl::Status why) {
  bool was_waiting = false;
  {
    MutexLock lock(mutex_);
    was_waiting = std::exchange(waits_, false);
    if (was_waiting) place_ = Admission::Ticket();
  }
  if (was_waiting) {
    End(std::move(why));
  } else {
    call_.GiveUp(std::move(why));  // The end could not be sent either.
  }
}

}  // namespace prefixd
