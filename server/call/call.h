// The life of one call, whatever it asks for: it gets a place in the budgets before its first message, a name with it,
// a reason to stop, an end, and a line in the log. Sessions, echoes and benchmarks each have one, and add what is their
// own.
//
//   Call call(context, info);
//   PREFIXD_RETURN_IF_ERROR(call.Admit());
//   PREFIXD_RETURN_IF_ERROR(call.Charge(message_bytes));
//   call.Begin(message.request_id);
//   ... call.stop().Check() before each launch ...
//   transport->Finish(call.Finish({.status = status, .result = ...}));
//   call.Done(delivered);
//
// Threads: any.
#ifndef PREFIXD_SERVER_CALL_CALL_H_
#define PREFIXD_SERVER_CALL_CALL_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/call/admission.h"
#include "server/call/call_record.h"
#include "server/call/server_context.h"
#include "server/call/stop_signal.h"
#include "server/call/watchdog.h"
#include "server/request.h"

namespace prefixd {

class Call {
 public:
  // gRPC and a session take about so much for a call, without its arrays: 10,000 that had sent nothing took 195 MB. A
  // call that was answered is charged for it too, or nothing would bound how many of those there are.
  static constexpr uint64_t kBytes = uint64_t{20} << 10;
  // Beside it, what a question about the server is charged for. It has no place among the requests: its bytes are what
  // bounds how many of them a caller has.
  static constexpr uint64_t kQuestionBytes = uint64_t{1} << 10;
  static constexpr uint64_t kAllBytes = std::numeric_limits<uint64_t>::max();

  // The context outlives the call.
  Call(ServerContext* context, CallInfo info);

  const CallInfo& info() const { return info_; }
  const StopSignal& stop() const { return stop_; }
  // The caller is gone, or nobody wants the work any more. Returns why it stops: what StopSignal::Check says.
  absl::Status Cancel();
  // The same, with the cause.
  void Cancel(absl::Status cause) { stop_.Cancel(std::move(cause)); }

  // The first message came: it names the call (a name is made up if it has none that is fit), and starts its clock.
  // Later messages change nothing.
  void Begin(const std::string& request_id);

  // Takes a place among the requests, and kBytes. Once, before anything else is taken for the call. Errors: that
  // of who may not call, Admission's.
  absl::Status Admit(Admission::Kind kind = Admission::Kind::kRequest);
  // Bytes beside those, as Admission::Ticket says. Needs: Admit was OK.
  absl::Status Charge(uint64_t bytes);
  bool ChargeOrWait(uint64_t bytes, Admission::Granted granted);
  void StopWaiting();
  void ShrinkTo(uint64_t kept_bytes);
  void ShrinkWaiting(uint64_t kept_bytes, uint64_t all_bytes, bool is_idle);

  // Has the watchdog look at the call, and give it up when its caller has been silent for too long. Once. Both
  // functions may be called until Done was. The first form is for a call that waits for nothing but its answer being
  // taken.
  void Watch();
  void Watch(std::function<Watched::Sight()> look, std::function<void(absl::Status)> give_up);
  // The caller has been silent for too long, and will not hear of it: ends the call.
  void GiveUp(absl::Status why);

  // For the log.
  void Describe(const Operation& operation);
  void CountReceived(uint64_t num_bytes);
  void CountSent(uint64_t num_bytes);

  // A lane has returned this. Tells the server if the device was lost.
  void Observe(const absl::Status& status);

  // How a call ends.
  struct End {
    Result result;  // Its status, and what the work says.
    // Gives the place back, and all charges but so much: for the answer, until Done. The caller may be back before.
    uint64_t kept_bytes = kAllBytes;
    // It failed for what had not come when no message came any more. A call that breaks off looks like that.
    bool is_cut_short = false;
  };
  // The result, with name, device and times, as it stays until Done. Once.
  const Result& Finish(End end);

  // Nothing of the call is under way any more; logs it. What was not delivered was cancelled, whatever else had been
  // made of it. After Finish.
  void Done(bool delivered);

 private:
  ServerContext* const context_;
  const CallInfo info_;
  StopSignal stop_;
  std::shared_ptr<Watched> watched_;  // Null: nobody watches.

  Mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> started_ ABSL_GUARDED_BY(mutex_);
  std::string request_id_ ABSL_GUARDED_BY(mutex_);
  Admission::Ticket ticket_ ABSL_GUARDED_BY(mutex_);
  std::optional<Operation> operation_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_bytes_in_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_bytes_out_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_cut_short_ ABSL_GUARDED_BY(mutex_) = false;
  Result result_;  // Finish writes it, and then Done, when nobody has it any more.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_CALL_H_
