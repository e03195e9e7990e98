#include "server/session.h"

#include <algorithm>
#include <utility>

#include "kernels/status.h"
#include "server/request_id.h"

namespace prefixd {

std::shared_ptr<Session> Session::Create(ServerContext* context, CallInfo call, Transport* transport) {
  return std::shared_ptr<Session>(new Session(context, std::move(call), transport));
}

Session::Session(ServerContext* context, CallInfo call, Transport* transport)
    : context_(context), call_(std::move(call)), transport_(transport), stop_(call_.deadline) {}

void Session::Start() { Pump(); }

void Session::OnMessage(Message message) {
  {
    MutexLock lock(mutex_);
    reading_ = false;
    NameRequest(message.request_id);
    num_bytes_in_ += message.chunk.values.size() + (message.chunk.mask ? message.chunk.mask->size() : 0);
    if (absl::Status status = Accept(message); !status.ok()) Fail(std::move(status));
    if (call_.shape == CallShape::kUnary) EndInput();
  }
  Pump();
}

void Session::OnInvalidMessage(absl::Status status, const std::string& request_id) {
  {
    MutexLock lock(mutex_);
    reading_ = false;
    NameRequest(request_id);
    Fail(std::move(status));
  }
  Pump();
}

void Session::OnReadEnd() {
  {
    MutexLock lock(mutex_);
    reading_ = false;
    EndInput();
  }
  Pump();
}

void Session::EndInput() {
  read_ended_ = true;
  if (!status_.ok()) return;
  absl::Status status = pipeline_ != nullptr ? pipeline_->Finish()
                                             : Error(absl::StatusCode::kInvalidArgument, "SPEC_MISSING", "spec",
                                                     "the request ended without a message: send one with a spec");
  if (status.ok()) return;
  failed_at_end_ = true;
  Fail(std::move(status));
}

void Session::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) {
      stop_.Cancel();
      Fail(stop_.Check());
    }
  }
  Pump();
}

void Session::OnCancel() {
  stop_.Cancel();
  {
    MutexLock lock(mutex_);
    Fail(stop_.Check());
  }
  Pump();
}

absl::Status Session::Accept(Message& message) {
  if (!status_.ok()) return status_;
  if (pipeline_ == nullptr) {
    PREFIXD_RETURN_IF_ERROR(Begin(message));
  } else if (message.spec) {
    return Error(absl::StatusCode::kInvalidArgument, "SPEC_REPEATED", "spec",
                 "a later message has a spec: send it with the first message only");
  }
  PREFIXD_RETURN_IF_ERROR(pipeline_->Check(message.chunk));
  if (!message.chunk.values.empty()) incoming_.push_back(std::move(message.chunk));
  return absl::OkStatus();
}

absl::Status Session::Begin(Message& message) {
  PREFIXD_RETURN_IF_ERROR(CheckRequestId(message.request_id));
  if (!message.spec) {
    return Error(absl::StatusCode::kInvalidArgument, "SPEC_MISSING", "spec",
                 "the first message has no spec: say there what to do");
  }
  spec_ = message.spec;
  const uint64_t bytes = call_.shape == CallShape::kStream ? StreamBytes(context_->max_message_bytes)
                                                           : message.held_bytes + kMaxReplyPayloadBytes;
  message_bytes_ = call_.shape == CallShape::kStream ? context_->max_message_bytes : message.held_bytes;
  PREFIXD_ASSIGN_OR_RETURN(ticket_, context_->admission->Admit(bytes));
  PREFIXD_ASSIGN_OR_RETURN(pipeline_, ChunkPipeline::Create(*context_->device, *spec_, call_.shape));
  return absl::OkStatus();
}

void Session::NameRequest(const std::string& request_id) {
  if (started_) return;
  started_ = std::chrono::steady_clock::now();
  request_id_ = RequestIdOf(request_id);
}

void Session::Fail(absl::Status status) {
  if (!status_.ok()) return;  // The first error is the cause.
  status_ = std::move(status);
  stop_.Cancel();
  incoming_.clear();
  outgoing_.clear();
}

void Session::Pump() {
  const std::shared_ptr<Session> self = shared_from_this();  // Finish may let go of the last other reference.
  while (true) {
    Action action;
    {
      MutexLock lock(mutex_);
      if (pumping_) return;  // Whoever is inside will look again.
      action = NextAction();
      if (!action.run) return;
      (action.is_write ? in_write_ : pumping_) = true;
    }
    action.run();
    {
      MutexLock lock(mutex_);
      (action.is_write ? in_write_ : pumping_) = false;
    }
  }
}

// What sets others to work comes first, and what takes long, a write, last.
Session::Action Session::NextAction() {
  if (finished_) return {};
  const bool may_write = !outgoing_.empty() && !writing_ && !in_write_;
  // The next piece waits until the reply to the last is the next to be sent: a slow reader holds no lane and no more
  // memory.
  const bool is_caught_up = outgoing_.empty() || (may_write && outgoing_.size() == 1);
  if (!running_ && is_caught_up && status_.ok()) {
    if (!incoming_.empty()) {
      running_ = true;
      const bool ends = read_ended_ && incoming_.size() == 1;
      return {[this, pipeline = pipeline_.get(), piece = pipeline_->Cut(incoming_.front(), first_, ends)] {
        SubmitPiece(pipeline, piece);
      }};
    }
    if (read_ended_ && pipeline_ != nullptr && pipeline_->NeedsEnd()) {
      running_ = true;
      return {[this, pipeline = pipeline_.get()] { SubmitPiece(pipeline, std::nullopt); }};
    }
  }
  if (status_.ok() && !reading_ && !read_ended_ && incoming_.size() < kMaxHeldChunks) {
    reading_ = true;
    return {[this] { transport_->Read(); }};
  }
  if (may_write) {
    writing_ = true;
    auto reply = std::make_shared<Reply>(std::move(outgoing_.front()));
    outgoing_.pop_front();
    num_bytes_out_ += reply->values.size() + reply->indices.size();
    return {[this, reply] { transport_->Write(std::move(*reply)); }, /*is_write=*/true};
  }
  const bool complete = read_ended_ && incoming_.empty() && outgoing_.empty();
  if (running_ || writing_ || in_write_ || (status_.ok() && !complete)) return {};
  finished_ = true;
  return {[this] { Finish(); }};
}

void Session::Finish() {
  Result result;
  {
    MutexLock lock(mutex_);
    if (request_id_.empty()) request_id_ = RequestIdOf("");
    result_.status = status_;
    result_.request_id = request_id_;
    result_.timing.device_name = context_->device_name;
    result_.timing.queue_ns = queue_ns_;
    if (pipeline_ != nullptr) pipeline_->Describe(&result_);
    if (started_) {
      result_.timing.server_total_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - *started_).count();
    }
    // The device memory, the place and what was not used of the bytes go back now, not when the transport is done with
    // the session: that may be thousands of small requests later. Until then it holds a message, and the reply to a
    // unary call, or a stream's last two.
    pipeline_.reset();
    const uint64_t reply_bytes =
        call_.shape == CallShape::kStream ? 2 * kMaxReplyPayloadBytes : std::min(num_bytes_out_, kMaxReplyPayloadBytes);
    ticket_.LeavePlace(message_bytes_ + reply_bytes + kCallBytes);
    result = result_;
  }
  transport_->Finish(result);
}

void Session::OnDone(bool delivered) {
  MutexLock lock(mutex_);
  // A call that breaks off looks like an end of its messages, until here.
  if (!delivered && (result_.status.ok() || failed_at_end_)) {
    stop_.Cancel();
    result_.status = stop_.Check();
  }
  context_->log({.call = call_,
                 .spec = spec_ ? &*spec_ : nullptr,
                 .num_bytes_in = num_bytes_in_,
                 .num_bytes_out = num_bytes_out_,
                 .result = result_});
}

// The pipeline lives at least until running_ is false.
void Session::SubmitPiece(ChunkPipeline* pipeline, std::optional<Piece> piece) {
  const uint64_t num_items = piece ? piece->num_items : 0;
  auto done = [self = shared_from_this(), num_items](const absl::Status& status, std::optional<Reply> reply,
                                                     int64_t queue_ns) {
    self->OnPieceDone(num_items, status, std::move(reply), queue_ns);
  };
  if (piece && pipeline->IsBatchable(*piece)) {
    context_->batcher->Submit(
        {.pipeline = pipeline, .piece = *std::move(piece), .stop = &stop_, .done = std::move(done)});
    return;
  }
  context_->lanes->Submit(pipeline->SizeOfTask(num_items),
                          [this, pipeline, piece = std::move(piece), done = std::move(done),
                           submitted = std::chrono::steady_clock::now()](BorrowedLane& lane) mutable {
                            const std::chrono::nanoseconds queue = std::chrono::steady_clock::now() - submitted;
                            std::optional<Reply> reply;
                            const absl::Status status =
                                piece ? pipeline->RunPiece(lane, *piece, stop_, &reply) : pipeline->RunEnd(lane, stop_);
                            piece.reset();  // Or its message would be held as long as the reply takes to be sent.
                            done(status, std::move(reply), queue.count());
                          });
}

void Session::OnPieceDone(uint64_t num_items, const absl::Status& status, std::optional<Reply> reply,
                          int64_t queue_ns) {
  if (ErrorReason(status) == "DEVICE_LOST") context_->on_device_lost(status);
  {
    MutexLock lock(mutex_);
    running_ = false;
    queue_ns_ = queue_ns_.value_or(0) + queue_ns;
    if (!status.ok()) {
      Fail(status);
    } else if (status_.ok() && num_items > 0) {
      if (reply) outgoing_.push_back(*std::move(reply));
      first_ += num_items;
      if (first_ * SizeOf(spec_->dtype) == incoming_.front().values.size()) {
        incoming_.pop_front();
        first_ = 0;
      }
    }
  }
  Pump();
}

}  // namespace prefixd
