// One request from its first message to its end, whatever carries it. A Session takes messages from its Transport, runs
// them through a ChunkPipeline on borrowed lanes, piece by piece, and hands replies and the result back; it decides
// when to read and when to run, so that a request never holds more than kMaxHeldChunks messages, one that is being
// read, and two replies.
//
// Threads: the On... methods may be called from any thread, also from inside a Transport's method. The Transport's
//          methods are called without a lock held, from whatever thread had news, and one at a time but for this: while
//          a Write has not returned, which may take as long as sending does, Read may be called. Nothing here blocks
//          but the pipeline, on lane threads.
// Ownership: made as a shared_ptr; a task on a lane keeps its session. The Transport lives until Finish was called and
//          every On... that was running has returned. The ServerContext outlives all sessions.
#ifndef PREFIXD_SERVER_SESSION_H_
#define PREFIXD_SERVER_SESSION_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/device.h"
#include "server/admission.h"
#include "server/batcher.h"
#include "server/chunk_pipeline.h"
#include "server/lane_pool.h"
#include "server/mutex.h"
#include "server/request.h"
#include "server/stop_signal.h"

namespace prefixd {

// The carrier's side of a request.
class Transport {
 public:
  virtual ~Transport() = default;
  // Asks for the next message: one OnMessage, OnInvalidMessage or OnReadEnd follows. Of a unary call there is one.
  virtual void Read() = 0;
  // Sends a reply: one OnWriteDone follows. Not called before the last has returned and its OnWriteDone has come.
  virtual void Write(Reply reply) = 0;
  // Ends the request. The last call, made exactly once, when every Write has returned and is done. One OnDone follows.
  virtual void Finish(const Result& result) = 0;
};

// Who calls what, for the log.
struct CallInfo {
  std::string method;  // "StreamScan"
  std::string caller;  // "ipv4:127.0.0.1:4242"
  std::string trace_parent;
  CallShape shape = CallShape::kUnary;
  absl::Time deadline = absl::InfiniteFuture();
};

// What the log says of a request that ended.
struct RequestRecord {
  const CallInfo& call;
  const Spec* spec;  // Null if none came.
  uint64_t num_bytes_in;
  uint64_t num_bytes_out;
  const Result& result;
};

struct BenchmarkControl;

// What all requests share.
struct ServerContext {
  Device* device = nullptr;
  LanePool* lanes = nullptr;
  Batcher* batcher = nullptr;
  Admission* admission = nullptr;
  BenchmarkControl* benchmarks = nullptr;
  std::string device_name;
  uint64_t max_message_bytes = 0;
  std::function<void(const RequestRecord&)> log;
  // Called for every DEVICE_LOST; may be called more than once.
  std::function<void(const absl::Status&)> on_device_lost;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // The one that is being run among them.
  static constexpr size_t kMaxHeldChunks = 2;

  static std::shared_ptr<Session> Create(ServerContext* context, CallInfo call, Transport* transport);

  // Begins by reading the first message.
  void Start();

  void OnMessage(Message message);
  // A message that has no meaning: the request fails with `status`. The id is that of the message, if it could be read.
  void OnInvalidMessage(absl::Status status, const std::string& request_id);
  void OnReadEnd();  // No message comes any more.
  void OnWriteDone(bool ok);
  void OnCancel();  // The caller is gone.
  // Nothing of the request is under way any more; logs it. `delivered`: the caller could be told how it ended.
  void OnDone(bool delivered);

  // About what gRPC and a session take for a call without its arrays. Of a call that was answered it is charged too, or
  // nothing would bound how many of those there are.
  static constexpr uint64_t kCallBytes = uint64_t{16} << 10;

  // Bytes that a stream is charged for: what it may hold at once. Messages, replies, and on the device an open group.
  static constexpr uint64_t StreamBytes(uint64_t max_message_bytes) {
    return (kMaxHeldChunks + 1) * max_message_bytes + 2 * kMaxReplyPayloadBytes + kMaxOpenGroupBytes;
  }

 private:
  Session(ServerContext* context, CallInfo call, Transport* transport);

  // What there is to do next.
  struct Action {
    std::function<void()> run;  // Null: nothing.
    bool is_write = false;
  };

  // Does whatever there is to do next, until there is nothing. One thread at a time is inside, and another may be
  // inside a Write; the rest leave their news.
  void Pump();
  Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a message's spec and checks its chunk.
  absl::Status Accept(Message& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Begin(Message& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndInput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has a lane run what there is: the next piece, or after the last one the end.
  void SubmitPiece(ChunkPipeline* pipeline, std::optional<Piece> piece);
  void OnPieceDone(uint64_t num_items, const absl::Status& status, std::optional<Reply> reply, int64_t queue_ns);
  void Finish();
  void NameRequest(const std::string& request_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServerContext* const context_;
  const CallInfo call_;
  Transport* const transport_;
  StopSignal stop_;

  Mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> started_ ABSL_GUARDED_BY(mutex_);  // The first message came.
  std::string request_id_ ABSL_GUARDED_BY(mutex_);
  Admission::Ticket ticket_ ABSL_GUARDED_BY(mutex_);
  uint64_t message_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the ticket's, for one message.
  std::optional<Spec> spec_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ChunkPipeline> pipeline_ ABSL_GUARDED_BY(mutex_);  // It runs pieces without the lock.
  std::deque<Chunk> incoming_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;  // Elements of incoming_.front() that were run.
  std::deque<Reply> outgoing_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;   // A thread runs an action that is no write,
  bool in_write_ ABSL_GUARDED_BY(mutex_) = false;  // or one that is.
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_at_end_ ABSL_GUARDED_BY(mutex_) = false;  // For what had not come when no message came any more.
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // OnWriteDone has not come.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  Result result_ ABSL_GUARDED_BY(mutex_);  // Once finished.
  std::optional<int64_t> queue_ns_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_bytes_in_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_bytes_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_SESSION_H_
