#include "server/call/flow.h"

namespace prefixd {
namespace {

bool MayWrite(const Flow& flow) {
  return !flow.has_failed && flow.num_outgoing > 0 && flow.writing == WriteState::kIdle;
}

// The reply to the last piece is the next to be sent, or was sent.
bool IsCaughtUp(const Flow& flow) { return flow.num_outgoing == 0 || (flow.num_outgoing == 1 && MayWrite(flow)); }

bool MayRun(const Flow& flow) { return !flow.has_failed && flow.running == RunState::kIdle && IsCaughtUp(flow); }

bool HasAll(const Flow& flow) { return flow.reading == ReadState::kEnded && flow.num_incoming == 0; }

bool MayRead(const Flow& flow) {
  return !flow.has_failed && flow.reading == ReadState::kIdle && flow.num_incoming < Flow::kMaxIncoming;
}

// A read that is under way when a call fails is not waited for: the carrier ends it. What decodes uses the carrier.
bool MayFinish(const Flow& flow) {
  const bool is_complete = HasAll(flow) && flow.num_outgoing == 0;
  return flow.running == RunState::kIdle && flow.writing == WriteState::kIdle && flow.reading != ReadState::kDecoding &&
         (flow.has_failed || is_complete);
}

}  // namespace

Step NextStep(const Flow& flow) {
  if (flow.has_finished) return Step::kWait;
  if (MayRun(flow) && flow.num_incoming > 0) return Step::kRun;
  if (MayRun(flow) && HasAll(flow) && flow.needs_end) return Step::kRunEnd;
  if (MayRead(flow)) return Step::kRead;
  if (MayWrite(flow)) return Step::kWrite;
  if (MayFinish(flow)) return Step::kFinish;
  return Step::kWait;
}

}  // namespace prefixd
