#include "server/call/session.h"

#include <utility>

#include "base/status.h"
#include "server/call/request_id.h"

namespace prefixd {
namespace {

absl::Status NotServed() {
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "", "this server holds no arrays (--max-arrays 0)");
}

}  // namespace

std::shared_ptr<Session> Session::Create(ServerContext* context, CallInfo call, Transport* transport) {
  return std::shared_ptr<Session>(new Session(context, std::move(call), transport));
}

Session::Session(ServerContext* context, CallInfo call, Transport* transport)
    : context_(context), transport_(transport), call_(context, std::move(call)), held_(call_.info().shape) {}

void Session::Start() {
  call_.Watch([this] { return Look(); }, [this](absl::Status why) { GiveUp(std::move(why)); });
  if (absl::Status status = call_.Admit(); !status.ok()) {
    MutexLock lock(mutex_);
    call_.Begin("");
    Fail(std::move(status));
  }
  Pump();
}

// ---- News ----------------------------------------------------------------------------------------------------------
void Session::OnArrival(uint64_t num_bytes) {
  bool is_charged = false;
  {
    MutexLock lock(mutex_);
    ++progress_;
    is_charged = ChargeArrival(num_bytes);
    if (is_charged) reading_ = ReadState::kDecoding;
  }
  if (is_charged) {
    transport_->Decode();
  } else {
    Pump();
  }
}

void Session::OnCharged() {
  {
    MutexLock lock(mutex_);
    charging_ = false;
    if (!status_.ok()) return;
    reading_ = ReadState::kDecoding;
  }
  transport_->Decode();
}

void Session::OnMessage(Message message) {
  {
    MutexLock lock(mutex_);
    reading_ = ReadState::kIdle;
    call_.Begin(message.request_id);
    const auto size = [](const std::optional<Payload>& beside) { return beside ? beside->size() : 0; };
    const Chunk& chunk = message.chunk;
    call_.CountReceived(chunk.values.size() + size(chunk.mask) + size(chunk.coefficients) + size(chunk.offsets) +
                        size(chunk.keys));
    if (absl::Status status = Accept(message); !status.ok()) Fail(std::move(status));
    if (call_.info().shape == CallShape::kUnary) EndInput();
  }
  Pump();
}

void Session::OnInvalidMessage(absl::Status status, const std::string& request_id) {
  {
    MutexLock lock(mutex_);
    reading_ = ReadState::kIdle;
    call_.Begin(request_id);
    Fail(std::move(status));
  }
  Pump();
}

void Session::OnReadEnd() {
  {
    MutexLock lock(mutex_);
    EndInput();
  }
  Pump();
}

void Session::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    ++progress_;
    writing_ = false;
    if (!ok) Fail(call_.Cancel());
    SettleCharge();
  }
  Pump();
}

void Session::OnCancel() {
  absl::Status cancelled = call_.Cancel();
  {
    MutexLock lock(mutex_);
    Fail(std::move(cancelled));
  }
  Pump();
}

void Session::OnPieceRun(uint64_t num_items, PieceRun run) {
  call_.Observe(run.status);
  {
    MutexLock lock(mutex_);
    ++progress_;
    runner_ = std::move(run.runner);
    running_ = RunState::kIdle;
    queue_ns_ = queue_ns_.value_or(0) + run.queue_ns;
    if (!run.status.ok()) {
      Fail(std::move(run.status));
    } else if (status_.ok() && !incoming_.empty()) {  // Else it was the end, behind all pieces.
      if (run.reply) outgoing_.push_back(*std::move(run.reply));
      first_ += num_items;
      if (first_ == incoming_.front().chunk.num_items) {
        held_.RemoveQueued(incoming_.front().num_bytes);
        incoming_.pop_front();
        first_ = 0;
      }
      SettleCharge();
    }
  }
  Pump();
}

void Session::OnDone(bool delivered) { call_.Done(delivered); }

// ---- What is held, and what is waited for --------------------------------------------------------------------------
bool Session::ChargeArrival(uint64_t num_bytes) {
  if (!status_.ok()) return false;  // What comes behind an error is not looked at.
  uint64_t more_bytes = held_.AddArrival(num_bytes);
  if (checker_) {  // A stream that was let in.
    more_bytes += AddOpenGroup();
    charging_ = !call_.ChargeOrWait(more_bytes, [self = shared_from_this()] { self->OnCharged(); });
    if (charging_) SettleCharge();
    return !charging_;
  }
  absl::Status status = call_.Charge(more_bytes);
  if (status.ok()) return true;
  call_.Begin("");
  Fail(std::move(status));
  return false;
}

uint64_t Session::AddOpenGroup() {
  // The runner is with the lane only once there is a group.
  return runner_ == nullptr || held_.has_open_group() ? 0 : held_.AddOpenGroup(runner_->KeptBytes());
}

bool Session::OwesReplies() const {
  return !incoming_.empty() || running_ == RunState::kRunning || !outgoing_.empty() || writing_;
}

void Session::SettleCharge() {
  if (call_.info().shape == CallShape::kUnary) return;  // It is answered at once, with all it has.
  const bool owes_replies = OwesReplies();
  if (charging_) return call_.ShrinkWaiting(held_.WithoutArrival(owes_replies), held_.num_bytes(), !owes_replies);
  if (!owes_replies && !held_.has_arrival()) held_.SettleReplies();
  call_.ShrinkTo(held_.num_bytes());
}

Watched::Sight Session::Look() {
  MutexLock lock(mutex_);
  Watched::Sight sight = {.waits_for = WaitsFor::kNothing, .progress = progress_};
  if (finished_ || writing_) {
    sight.waits_for = WaitsFor::kReader;
  } else if (incoming_.empty() && running_ == RunState::kIdle) {
    if (charging_) sight.waits_for = WaitsFor::kBytes;
    if (!charging_ && reading_ == ReadState::kReading) {
      sight.waits_for = checker_ ? WaitsFor::kMessage : WaitsFor::kFirstMessage;
    }
  }
  return sight;
}

void Session::GiveUp(absl::Status why) {
  bool takes_nothing = false;
  {
    MutexLock lock(mutex_);
    takes_nothing = finished_ || writing_;
    if (!takes_nothing) Fail(why);
  }
  if (takes_nothing) {
    call_.GiveUp(std::move(why));  // The end could not be sent either.
  } else {
    Pump();
  }
}

// ---- Messages ------------------------------------------------------------------------------------------------------
absl::Status Session::Accept(Message& message) {
  if (!status_.ok()) return status_;
  if (has_end_) {
    return Error(absl::StatusCode::kInvalidArgument, "AFTER_END", "end",
                 "a message came behind the one that has `end`: send that one last");
  }
  has_end_ = message.ends;
  if (!checker_) {
    announces_end_ = message.announces_end;
    PREFIXD_RETURN_IF_ERROR(Begin(message));
  } else if (message.operation) {
    return Error(absl::StatusCode::kInvalidArgument, "SPEC_REPEATED", "spec",
                 "a later message has a spec: send it with the first message only");
  } else if (!message.places.AreInline()) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "",
                 "a later message names an array: operands and sinks are named in the first one only");
  } else if (message.carry_in || message.return_carry) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "carry_in",
                 "a later message is about carries: say that with the first one");
  }
  PREFIXD_RETURN_IF_ERROR(checker_->Check(&message.chunk));
  if (call_.info().shape == CallShape::kUnary && !runner_->IsOnePiece(message.chunk.num_items)) {
    PREFIXD_RETURN_IF_ERROR(runner_->work().CheckStream());  // It is cut as a stream is.
  }
  if (!message.chunk.has_work) {
    held_.DropArrival();
  } else {
    PREFIXD_RETURN_IF_ERROR(call_.Charge(AddOpenGroup()));  // There is something only with the first message.
    const Chunk& chunk = message.chunk;
    if ((chunk.keys || chunk.offsets) && runner_->places().AreInline()) {  // Else the store was asked for it.
      PREFIXD_RETURN_IF_ERROR(call_.Charge(ScratchBytes(runner_->work().shape(), chunk.num_items, chunk.num_offsets)));
    }
    incoming_.push_back({.chunk = std::move(message.chunk), .num_bytes = held_.QueueArrival()});
  }
  SettleCharge();
  return absl::OkStatus();
}

absl::Status Session::Begin(Message& message) {
  PREFIXD_RETURN_IF_ERROR(CheckRequestId(message.request_id));
  if (!message.operation) {
    return Error(absl::StatusCode::kInvalidArgument, "SPEC_MISSING", "spec",
                 "the first message has no spec: say there what to do");
  }
  call_.Describe(*message.operation);
  const CallShape shape = call_.info().shape;
  PREFIXD_ASSIGN_OR_RETURN(std::shared_ptr<const Work> work, MakeWork(*context_->device, *message.operation));
  std::optional<ScanCarry> carry_in;
  if (message.carry_in || message.return_carry) PREFIXD_RETURN_IF_ERROR(CheckCarries(*work));
  if (message.carry_in) {
    PREFIXD_ASSIGN_OR_RETURN(carry_in, DecodeCarry(*work, *message.carry_in));
  }
  Places places;
  if (!message.places.AreInline() || !work->shape().has_input) {
    PREFIXD_ASSIGN_OR_RETURN(places, TakePlaces(message, *work));
  }
  checker_.emplace(work, shape, places);
  runner_ = std::make_unique<PieceRunner>(std::move(work), shape, std::move(places), std::move(carry_in),
                                          message.return_carry);
  // What runs as one piece is no stream to the work.
  if (shape == CallShape::kStream && (runner_->IsStaged() || runner_->RepliesWithCounts())) {
    PREFIXD_RETURN_IF_ERROR(runner_->work().CheckStream());
  }
  if (message.carry_in || message.return_carry) {
    PREFIXD_RETURN_IF_ERROR(call_.Charge(AddOpenGroup()));
  }
  if (!runner_->HasUnpaidReplies()) return absl::OkStatus();
  return call_.Charge(held_.AddReplies());
}

absl::StatusOr<Places> Session::TakePlaces(const Message& message, const Work& work) {
  if (context_->arrays == nullptr) return NotServed();
  std::optional<uint64_t> num_items = NumItemsOf(work.operation());
  if (call_.info().shape == CallShape::kUnary && !message.places.values && work.shape().has_input) {
    num_items = message.chunk.values.size() / work.item_bytes();
  }
  const uint64_t num_offsets = message.chunk.offsets ? message.chunk.offsets->size() / sizeof(uint64_t) : 0;
  return Places::Take(context_->arrays, call_.info().caller, work, message.places, num_items, num_offsets);
}

absl::Status Session::CheckEnd() const {
  if (!checker_) {
    return Error(absl::StatusCode::kInvalidArgument, "SPEC_MISSING", "spec",
                 "the request ended without a message: send one with a spec");
  }
  if (announces_end_ && !has_end_ && call_.info().shape == CallShape::kStream) {
    return Error(absl::StatusCode::kInvalidArgument, "INCOMPLETE", "end",
                 "the stream broke off before the message with `end` that the first one announced: send it again");
  }
  return checker_->Finish();
}

void Session::EndInput() {
  reading_ = ReadState::kEnded;
  if (!status_.ok()) return;
  absl::Status status = CheckEnd();
  if (status.ok()) return;
  failed_at_end_ = true;
  Fail(std::move(status));
}

void Session::Fail(absl::Status status) {
  if (!status_.ok()) return;  // The first error is the cause.
  status_ = std::move(status);
  call_.Cancel().IgnoreError();  // For what still runs.
  call_.StopWaiting();
  charging_ = false;
  incoming_.clear();
  held_.RemoveAllQueued();
  outgoing_.clear();
}

// ---- Steps ---------------------------------------------------------------------------------------------------------
void Session::Pump() {
  const std::shared_ptr<Session> self = shared_from_this();  // Finish may let go of the last other reference.
  while (true) {
    Turn turn;
    {
      MutexLock lock(mutex_);
      if (pumping_) return;  // Whoever is inside will look again.
      turn = NextTurn();
      if (turn.step == Step::kWait) return;
      (turn.step == Step::kWrite ? in_write_ : pumping_) = true;
    }
    const bool is_write = turn.step == Step::kWrite;
    Take(std::move(turn));
    MutexLock lock(mutex_);
    (is_write ? in_write_ : pumping_) = false;
  }
}

Flow Session::CurrentFlow() const {
  return {.has_failed = !status_.ok(),
          .has_finished = finished_,
          .reading = reading_,
          .running = running_,
          .writing = writing_ || in_write_ ? WriteState::kWriting : WriteState::kIdle,
          .num_incoming = incoming_.size(),
          .num_outgoing = outgoing_.size(),
          .needs_end = runner_ != nullptr && runner_->NeedsEnd()};
}

Session::Turn Session::NextTurn() {
  Turn turn = {.step = NextStep(CurrentFlow())};
  switch (turn.step) {
    case Step::kRun: {
      const bool ends = reading_ == ReadState::kEnded && incoming_.size() == 1;
      turn.piece = runner_->Cut(incoming_.front().chunk, first_, ends);
      [[fallthrough]];
    }
    case Step::kRunEnd:
      running_ = RunState::kRunning;
      turn.runner = std::move(runner_);
      break;
    case Step::kRead:
      reading_ = ReadState::kReading;
      break;
    case Step::kWrite:
      writing_ = true;
      turn.reply = std::move(outgoing_.front());
      outgoing_.pop_front();
      held_.AddSent(turn.reply.size_bytes());
      call_.CountSent(turn.reply.size_bytes());
      break;
    case Step::kFinish:
      finished_ = true;
      break;
    case Step::kWait:
      break;
  }
  return turn;
}

void Session::Take(Turn turn) {
  switch (turn.step) {
    case Step::kRun:
    case Step::kRunEnd:
      Submit(std::move(turn.runner), std::move(turn.piece));
      break;
    case Step::kRead:
      transport_->Read();
      break;
    case Step::kWrite:
      transport_->Write(std::move(turn.reply));
      break;
    case Step::kFinish:
      Finish();
      break;
    case Step::kWait:
      break;
  }
}

void Session::Submit(std::unique_ptr<PieceRunner> runner, std::optional<Piece> piece) {
  const uint64_t num_items = piece ? piece->num_items : 0;
  if (piece && runner->IsBatchable(*piece)) {
    context_->batcher->Submit({.runner = std::move(runner),
                               .caller = FairCallerOf(call_.info()),
                               .piece = *std::move(piece),
                               .stop = &call_.stop(),
                               .done = [self = shared_from_this(), num_items](PieceRun run) {
                                 self->OnPieceRun(num_items, std::move(run));
                               }});
    return;
  }
  const uint64_t size = piece ? piece->size() : 0;
  const TaskInfo info = {
      .size = runner->SizeOfTask(size), .estimated_ns = runner->EstimateNs(size), .caller = FairCallerOf(call_.info())};
  context_->lanes->Submit(
      info, [self = shared_from_this(), num_items, runner = std::move(runner), piece = std::move(piece),
             submitted = std::chrono::steady_clock::now()](BorrowedLane& lane) mutable {
        const std::chrono::nanoseconds queue = std::chrono::steady_clock::now() - submitted;
        PieceRun run = {.queue_ns = queue.count()};
        const StopSignal& stop = self->call_.stop();
        run.status = piece ? runner->Run(lane, *piece, stop, &run.reply) : runner->RunEnd(lane, stop);
        piece.reset();  // Or its message would be held as long as the reply takes to be sent.
        run.runner = std::move(runner);
        self->OnPieceRun(num_items, std::move(run));
      });
}

void Session::Finish() {
  Call::End end;
  {
    MutexLock lock(mutex_);
    end.result.status = status_;
    end.result.timing.queue_ns = queue_ns_;
    if (runner_ != nullptr) runner_->Describe(&end.result);
    if (runner_ != nullptr && status_.ok()) end.result.status = runner_->Publish(&end.result);
    end.is_cut_short = failed_at_end_;
    // The device memory, the place and most of the bytes go back now, not when the transport is done with the session:
    // that may be thousands of small requests later.
    runner_.reset();
    const uint64_t carry_bytes = end.result.carry_out ? end.result.carry_out->size() : 0;
    held_.AddSentAtEnd(carry_bytes + end.result.row_values.size());
    call_.CountSent(carry_bytes + end.result.row_values.size());
    end.kept_bytes = held_.AtEnd();
    ++progress_;
  }
  transport_->Finish(call_.Finish(std::move(end)));
}

}  // namespace prefixd
