// One request from its first message to its end, whatever carries it. A Session takes messages from its Transport, has
// lanes run them piece by piece, and hands replies and the result back. flow.h says what it does next; call.h what all
// calls have in common.
//
// Threads:   the On... methods may be called from any thread, also from inside a Transport's method. The Transport's
//            methods are called without a lock held, on the thread that called an On... method, on a lane's, or on
//            Admission's. They are called one at a time, with one exception: Read and Decode may be called while a
//            Write has not returned, because a Write may take as long as sending does. Nothing here blocks.
// Ownership: a session is made as a shared_ptr; a task on a lane keeps its session. What checks messages is guarded by
//            the session's lock; what runs them is handed to the lane with each piece and comes back with it. The
//            Transport lives until Finish was called and every On... that was running has returned. The ServerContext
//            outlives all sessions.
#ifndef PREFIXD_SERVER_CALL_SESSION_H_
#define PREFIXD_SERVER_CALL_SESSION_H_

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/arrays/places.h"
#include "server/call/call.h"
#include "server/call/flow.h"
#include "server/call/held_bytes.h"
#include "server/call/server_context.h"
#include "server/lanes/batcher.h"
#include "server/request.h"
#include "server/work/chunk_checker.h"
#include "server/work/piece_runner.h"

namespace prefixd {

// The carrier's side of a request.
class Transport {
 public:
  virtual ~Transport() = default;
  // Asks for the next message: one OnArrival or OnReadEnd follows. Of a unary call there is one.
  virtual void Read() = 0;
  // Asks for what arrived, now that it is charged: one OnMessage or OnInvalidMessage follows, before it returns. A
  // message that is not charged is never decoded.
  virtual void Decode() = 0;
  // Sends a reply: one OnWriteDone follows. Not called before the last has returned and its OnWriteDone has come.
  virtual void Write(Reply reply) = 0;
  // Ends the request. The last call, made exactly once, when every Write has returned and is done. One OnDone follows.
  virtual void Finish(const Result& result) = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  static std::shared_ptr<Session> Create(ServerContext* context, CallInfo call, Transport* transport);

  // Begins by taking a place in the budgets and reading the first message.
  void Start();

  void OnArrival(uint64_t num_bytes);  // A message of so many bytes as sent.
  void OnMessage(Message message);
  // A message that has no meaning: the request fails with `status`. The id is that of the message, if it could be read.
  void OnInvalidMessage(absl::Status status, const std::string& request_id);
  void OnReadEnd();  // No message comes any more.
  void OnWriteDone(bool ok);
  void OnCancel();  // The caller is gone.
  // Nothing of the request is under way any more; logs it. `delivered`: the caller could be told how it ended.
  void OnDone(bool delivered);

 private:
  Session(ServerContext* context, CallInfo call, Transport* transport);

  // A step, with what it takes out of the session.
  struct Turn {
    Step step = Step::kWait;
    Reply reply;                          // kWrite.
    std::unique_ptr<PieceRunner> runner;  // kRun, kRunEnd.
    std::optional<Piece> piece;           // kRun.
  };

  // Takes turns until there is nothing to do. One thread at a time is inside, and another may be inside a Write; the
  // rest leave their news.
  void Pump();
  Flow CurrentFlow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Turn NextTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(Turn turn);
  // Has a lane run the piece, or after the last one the end.
  void Submit(std::unique_ptr<PieceRunner> runner, std::optional<Piece> piece);
  void OnPieceRun(uint64_t num_items, PieceRun run);
  void Finish();

  // Charges what arrived. True: it may be decoded now. False: later, or the request has failed.
  bool ChargeArrival(uint64_t num_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is to be charged for what stays between a stream's pieces: once, with the first elements or before.
  uint64_t AddOpenGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What arrived is charged, after it had to wait.
  void OnCharged();
  // Gives back what a stream is charged for and does not hold any more.
  void SettleCharge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OwesReplies() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Watched::Sight Look();
  void GiveUp(absl::Status why);

  // Takes a message's spec and checks its chunk.
  absl::Status Accept(Message& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Begin(Message& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Places> TakePlaces(const Message& message, const Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndInput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is missing when no message comes any more.
  absl::Status CheckEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServerContext* const context_;
  Transport* const transport_;
  Call call_;

  Mutex mutex_;
  std::optional<ChunkChecker> checker_ ABSL_GUARDED_BY(mutex_);  // Once there is a spec.
  std::unique_ptr<PieceRunner> runner_ ABSL_GUARDED_BY(mutex_);  // Null also while a lane has it.
  struct QueuedChunk {
    Chunk chunk;
    uint64_t num_bytes = 0;  // Its message's.
  };
  std::deque<QueuedChunk> incoming_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;  // Elements of incoming_.front() that were run.
  std::deque<Reply> outgoing_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  ReadState reading_ ABSL_GUARDED_BY(mutex_) = ReadState::kIdle;
  bool announces_end_ ABSL_GUARDED_BY(mutex_) = false;  // The caller will say which message is the last,
  bool has_end_ ABSL_GUARDED_BY(mutex_) = false;        // and that one has come.
  RunState running_ ABSL_GUARDED_BY(mutex_) = RunState::kIdle;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;   // OnWriteDone has not come.
  bool in_write_ ABSL_GUARDED_BY(mutex_) = false;  // A thread is inside a Write,
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;   // or in another step.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_at_end_ ABSL_GUARDED_BY(mutex_) = false;  // For what had not come when no message came any more.
  HeldBytes held_ ABSL_GUARDED_BY(mutex_);
  bool charging_ ABSL_GUARDED_BY(mutex_) = false;  // What arrived waits until it is charged.
  uint64_t progress_ ABSL_GUARDED_BY(mutex_) = 0;  // Counts what came and went.
  std::optional<int64_t> queue_ns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_SESSION_H_
