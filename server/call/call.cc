#include "server/call/call.h"

#include <utility>

#include "base/status.h"
#include "server/call/request_id.h"

namespace prefixd {

Call::Call(ServerContext* context, CallInfo info) : context_(context), info_(std::move(info)), stop_(info_.deadline) {}

void Call::Begin(const std::string& request_id) {
  MutexLock lock(mutex_);
  if (started_) return;
  started_ = std::chrono::steady_clock::now();
  request_id_ = RequestIdOf(request_id);
}

absl::Status Call::Admit(Admission::Kind kind) {
  PREFIXD_RETURN_IF_ERROR(info_.refusal);
  PREFIXD_ASSIGN_OR_RETURN(Admission::Ticket ticket, context_->admission->Admit(info_.caller, kind));
  MutexLock lock(mutex_);
  ticket_ = std::move(ticket);
  return absl::OkStatus();
}

absl::Status Call::Charge(uint64_t bytes) {
  MutexLock lock(mutex_);
  return ticket_.Charge(bytes);
}

bool Call::ChargeOrWait(uint64_t bytes, Admission::Granted granted) {
  MutexLock lock(mutex_);
  return ticket_.ChargeOrWait(bytes, std::move(granted));
}

void Call::StopWaiting() {
  Admission::Granted unused;  // What it holds is let go without the lock.
  MutexLock lock(mutex_);
  unused = ticket_.StopWaiting();
}

void Call::ShrinkTo(uint64_t kept_bytes) {
  MutexLock lock(mutex_);
  ticket_.ShrinkTo(kept_bytes);
}

void Call::ShrinkWaiting(uint64_t kept_bytes, uint64_t all_bytes, bool is_idle) {
  MutexLock lock(mutex_);
  ticket_.ShrinkWaiting(kept_bytes, all_bytes, is_idle);
}

void Call::Watch() {
  Watch([] { return Watched::Sight{.waits_for = WaitsFor::kReader}; },
        [this](absl::Status why) { GiveUp(std::move(why)); });
}

void Call::Watch(std::function<Watched::Sight()> look, std::function<void(absl::Status)> give_up) {
  if (context_->watchdog == nullptr) return;
  watched_ = std::make_shared<Watched>(std::move(look), std::move(give_up));
  context_->watchdog->Watch(watched_);
}

void Call::GiveUp(absl::Status why) {
  stop_.Cancel(std::move(why));
  const std::function<void()> cancel = info_.cancel;  // Inside it the call may end, and take what it has along.
  cancel();
}

absl::Status Call::Cancel() {
  stop_.Cancel();
  return stop_.Check();
}

void Call::Describe(const Operation& operation) {
  MutexLock lock(mutex_);
  operation_ = operation;
}

void Call::CountReceived(uint64_t num_bytes) {
  MutexLock lock(mutex_);
  num_bytes_in_ += num_bytes;
}

void Call::CountSent(uint64_t num_bytes) {
  MutexLock lock(mutex_);
  num_bytes_out_ += num_bytes;
}

void Call::Observe(const absl::Status& status) {
  if (ErrorReason(status) == "DEVICE_LOST") context_->on_device_lost(status);
}

const Result& Call::Finish(End end) {
  MutexLock lock(mutex_);
  if (request_id_.empty()) request_id_ = RequestIdOf("");
  result_ = std::move(end.result);
  result_.request_id = request_id_;
  result_.timing.device = context_->device_name;
  if (started_) {
    result_.timing.server_total_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - *started_).count();
  }
  is_cut_short_ = end.is_cut_short;
  if (!ticket_.IsCharged()) info_.on_refused();
  ticket_.LeavePlace(end.kept_bytes);
  return result_;
}

void Call::Done(bool delivered) {
  if (watched_ != nullptr) watched_->Detach();
  MutexLock lock(mutex_);
  if (!delivered && (result_.status.ok() || is_cut_short_)) result_.status = Cancel();
  context_->record({.call = info_,
                    .operation = operation_ ? &*operation_ : nullptr,
                    .num_bytes_in = num_bytes_in_,
                    .num_bytes_out = num_bytes_out_,
                    .result = result_});
}

}  // namespace prefixd
