// What a session holds of memory, in bytes: so much its caller is charged for. A count only: the session charges what
// the Add... methods return, and gives back all above num_bytes().
//
//   held            from                                  to
//   a message       its arrival                           its last element was run
//   replies         the arrival of a message, for they    none is owed any more; then what gRPC may have of the last
//                   are made whatever the budgets say     one, to the end
//   an open group   the first elements of a stream, or    the end; then, if it goes out in a carry, until that has
//                   the message that brings a carry, or   left
//                   asks for one
//   values of rows  the first elements of a stream that   the end, with which they go out; then until they have left
//                   reduces them: with the open group
//
// Threads: one at a time.
#ifndef PREFIXD_SERVER_CALL_HELD_BYTES_H_
#define PREFIXD_SERVER_CALL_HELD_BYTES_H_

#include <cstdint>

#include "server/call/flow.h"
#include "server/lanes/borrowed_lane.h"
#include "server/request.h"

namespace prefixd {

class HeldBytes {
 public:
  // What a stream may be charged for at most. With less no stream would go on.
  static constexpr uint64_t MostOfStream(uint64_t max_message_bytes) {
    return (Flow::kMaxIncoming + 1) * max_message_bytes + 2 * kMaxReplyPayloadBytes + 2 * kMaxOpenGroupBytes;
  }

  explicit HeldBytes(CallShape shape) : shape_(shape) {}

  // A message of so many bytes arrived. Returns what is to be charged for it, and for the replies it may have.
  uint64_t AddArrival(uint64_t num_bytes);
  // A stream's elements begin, and so much memory will be kept between them; or a carry, whose elements these are.
  // Once. Returns what is to be charged.
  uint64_t AddOpenGroup(uint64_t num_bytes) { return open_group_ = num_bytes; }
  bool has_open_group() const { return open_group_ > 0; }

  // Replies will be made that no message pays for: to elements that are resident. Once. Returns what is to be charged.
  uint64_t AddReplies();

  // The message that arrived waits to be run, or it has nothing to run and is gone. Returns its bytes.
  uint64_t QueueArrival();
  void DropArrival() { arrived_ = 0; }
  bool has_arrival() const { return arrived_ > 0; }
  // A queued message of so many bytes was run.
  void RemoveQueued(uint64_t num_bytes) { queued_ -= num_bytes; }
  void RemoveAllQueued() { queued_ = 0; }

  // A reply of so many bytes is handed to gRPC.
  void AddSent(uint64_t num_bytes) { sent_ += num_bytes; }
  // A carry, or values of rows, of so many bytes are handed to gRPC with the end.
  void AddSentAtEnd(uint64_t num_bytes) { sent_at_end_ += num_bytes; }
  // No reply is owed, and none is on its way.
  void SettleReplies() { replies_ = KeptOfSent(); }

  uint64_t num_bytes() const { return arrived_ + queued_ + replies_ + open_group_; }
  // What is held while the arrival waits to be charged. owes_replies: to the messages before it.
  uint64_t WithoutArrival(bool owes_replies) const {
    return queued_ + (owes_replies ? replies_ : KeptOfSent()) + open_group_;
  }
  // What gRPC may still hold when the call has ended: the reply of a unary call, what has not left of a stream's last,
  // what goes with the end.
  uint64_t AtEnd() const { return (shape_ == CallShape::kStream ? KeptOfSent() : sent_) + sent_at_end_; }

 private:
  uint64_t MostReplyBytes(uint64_t message_bytes) const;
  uint64_t KeptOfSent() const;

  const CallShape shape_;
  uint64_t arrived_ = 0;
  uint64_t queued_ = 0;
  uint64_t replies_ = 0;
  uint64_t open_group_ = 0;
  uint64_t sent_at_end_ = 0;
  uint64_t sent_ = 0;  // In all replies so far.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_HELD_BYTES_H_
