// Calls that take chunks from a source and hand each reply on: in one message or as a stream, tried again where that
// can help. Private to the library.
#ifndef PREFIXD_CLIENT_CHUNK_CALL_H_
#define PREFIXD_CLIENT_CHUNK_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/array_call.h"
#include "client/attempts.h"
#include "client/cancellation.h"
#include "client/chunk.h"
#include "client/connection.h"
#include "client/options.h"
#include "client/rpc.h"
#include "client/typed.h"

namespace prefixd::client {

// Interrupts a source that may block when its call is cancelled or too late, for gRPC sees neither while a chunk is
// awaited and nothing is sent.
class SourceGuard {
 public:
  SourceGuard(ChunkSource& source, Cancellation* cancellation, absl::Time deadline);
  ~SourceGuard();
  SourceGuard(const SourceGuard&) = delete;
  SourceGuard& operator=(const SourceGuard&) = delete;

  // The error to report for a source's error: an interrupted source may return any.
  absl::Status Explain(const absl::Status& status) const;

 private:
  Cancellation* const cancellation_;
  const absl::Time deadline_;
  std::optional<int> id_;
  Cancellation ended_;
  std::thread timer_;
};

// Sends `chunk`, and what next() brings. Returns the source's error, and OK where the call ends first.
template <class Stream, class Next>
absl::Status WriteAll(Stream& stream, Next next, Chunk chunk, const Lender& lender, uint64_t* sent_bytes,
                      bool* sent_all) {
  for (;;) {
    const absl::Status written = stream.Write(chunk, lender);
    if (absl::IsAborted(written)) return absl::OkStatus();
    PREFIXD_RETURN_IF_ERROR(written);
    *sent_bytes += chunk.values.size();
    *sent_all = chunk.last || chunk.values.empty();
    if (*sent_all) break;
    PREFIXD_ASSIGN_OR_RETURN(chunk, next());
  }
  stream.WritesDone();
  return absl::OkStatus();
}

// Writes on a thread of its own and reads here, so that replies flow while chunks still go out, and a call that ends is
// noticed while the source blocks. Tells whether the source has been read beyond the first chunk.
template <class Stream, class Next, class OnReply>
Outcome Exchange(Stream& stream, ChunkSource& source, Next next, const Chunk& first, const Lender& lender,
                 uint64_t* sent_bytes, bool* read_on, OnReply on_reply) {
  std::atomic<bool> replies_ended = false;
  std::atomic<bool> reads_on = false;
  const auto next_while_wanted = [&]() -> absl::StatusOr<Chunk> {
    reads_on = true;
    if (replies_ended) return absl::AbortedError("the call has ended");
    return next();
  };
  absl::Status source_status;
  bool sent_all = false;
  std::thread writer([&] {
    absl::Status status = WriteAll(stream, next_while_wanted, first, lender, sent_bytes, &sent_all);
    if (status.ok() || replies_ended) return;
    source_status = std::move(status);
    stream.Cancel();
  });
  absl::Status sink_status;
  bool replied = false;
  for (ArrayReply<typename Stream::Response> reply; stream.Read(&reply);) {
    replied = true;
    if (!sink_status.ok()) continue;
    sink_status = on_reply(reply);
    if (!sink_status.ok()) stream.Cancel();
  }
  // No more replies: a writer that still waits for its source would send for nothing.
  replies_ended = true;
  if (reads_on) source.Interrupt();
  writer.join();
  *read_on = reads_on;
  absl::Status status = stream.Finish();
  if (!sink_status.ok()) return {sink_status};
  if (!source_status.ok()) return {source_status};
  if (status.ok() && !sent_all) return {absl::InternalError("the server ended the call before the array had ended")};
  const char* const met = replied ? "the timeout passed before the whole result was there"
                          : sent_all
                              ? "the server had not answered when the timeout passed"
                              : "the timeout passed before the whole array was sent; the server has not answered";
  return {ExplainDeadline(status, met), !replied};
}

// Runs a call whose first chunk decides its form: unary where it is the last, and its results fit a message too, else a
// stream.
// on_reply: takes an ArrayReply of the call, and returns a status; an error ends the call.
// Returns the bytes of the elements sent.
template <class Spec, class OnReply>
absl::StatusOr<uint64_t> CallWithChunks(const Connection& connection, const Spec& spec, ChunkSource& source,
                                        const Lender& lender, const CallOptions& call, OnReply on_reply) {
  const absl::Time deadline = Deadline(call);
  const size_t chunk_items = ChunkItems(spec);
  PREFIXD_RETURN_IF_ERROR(connection.status());
  Attempts attempts(connection, call, deadline);
  const SourceGuard guard(source, call.cancellation, deadline);
  const auto next = [&]() -> absl::StatusOr<Chunk> {
    auto chunk = source.Next(chunk_items);
    if (!chunk.ok()) return guard.Explain(chunk.status());
    PREFIXD_RETURN_IF_ERROR(CheckChunk(*chunk, spec));
    return chunk;
  };
  PREFIXD_ASSIGN_OR_RETURN(Chunk first, next());
  const bool is_unary = first.last && NumResults(spec, first.values.size() / SizeOf(spec.dtype)) <= chunk_items;
  uint64_t sent_bytes = 0;
  bool first_is_fresh = true;
  PREFIXD_RETURN_IF_ERROR(Retry(attempts, [&](const Server& server) -> Outcome {
    if (is_unary) {
      sent_bytes = first.values.size();
      ArrayReply<typename Contract<Spec>::Response> reply;
      absl::Status status = UnaryStatus(CallUnary(server, spec, first, lender, call, deadline, &reply));
      if (!status.ok()) return {std::move(status), true};
      return {on_reply(reply)};
    }
    if (!first_is_fresh) {
      auto again = next();
      if (!again.ok()) return {again.status()};
      first = *again;
    }
    first_is_fresh = false;
    auto stream = ArrayStream<Spec>::Open(server, spec, call, deadline);
    if (!stream.ok()) return {stream.status()};
    sent_bytes = 0;
    bool read_on = false;
    Outcome outcome = Exchange(**stream, source, next, first, lender, &sent_bytes, &read_on, on_reply);
    // Only what is tried again needs the source from its beginning, and only where something of it has gone.
    if (absl::IsUnavailable(outcome.status) && outcome.may_retry) {
      first_is_fresh = !read_on;
      outcome.may_retry = first_is_fresh || source.Rewind();
    }
    return outcome;
  }));
  return sent_bytes;
}

// ---- What replies bring ---------------------------------------------------------------------------------------------
// Returns INTERNAL unless the server sent as many bytes of `what` as were due.
absl::Status CheckLength(std::string_view what, uint64_t got_bytes, uint64_t expected_bytes);

// Returns INTERNAL where a reply ends within an element: each has whole ones.
absl::Status CheckWholeItems(std::string_view what, const Payload& elements, size_t item_bytes);

// Returns the elements in one piece, which lives until the next call.
class Joined {
 public:
  Bytes operator()(const Payload& elements) {
    bytes_.resize(elements.size());
    elements.CopyTo(bytes_.data(), 0, elements.size());
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
};

inline absl::Status CopyInto(internal::Room room, const Payload& elements) {
  elements.CopyTo(room(elements.size()), 0, elements.size());
  return absl::OkStatus();
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CHUNK_CALL_H_
