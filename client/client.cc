#include "client/client.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "client/array_call.h"
#include "client/convert.h"
#include "client/memory_source.h"
#include "client/rpc.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "prefixd/v1/admin.grpc.pb.h"

namespace prefixd::client {
namespace {

// One attempt's end. An error of the caller's own source or sink is never a reason to try again.
struct Outcome {
  absl::Status status;
  bool may_retry = false;
};

// Says what a timeout met; gRPC says no more than "Deadline Exceeded".
absl::Status ExplainDeadline(const absl::Status& status, std::string_view what) {
  if (!absl::IsDeadlineExceeded(status) || !ErrorReason(status).empty()) return status;
  absl::Status explained = absl::DeadlineExceededError(AbslView(what));
  // It remains what it was: the end of a call.
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { explained.SetPayload(url, payload); });
  return explained;
}

absl::Status UnaryStatus(const absl::Status& status) {
  return ExplainDeadline(status, "the server had not answered when the timeout passed");
}

// Runs attempts until one succeeds or there is no point in another.
template <class Attempt>
absl::Status Retry(Backoff backoff, Attempt attempt) {
  for (;;) {
    Outcome outcome = attempt();
    if (absl::IsUnavailable(outcome.status) && outcome.may_retry && backoff.Pause()) continue;
    return std::move(outcome.status);
  }
}

// Interrupts a source that may block when its call is cancelled or too late, for gRPC sees neither while a chunk is
// awaited and nothing is sent.
class SourceGuard {
 public:
  SourceGuard(ChunkSource& source, Cancellation* cancellation, absl::Time deadline)
      : cancellation_(cancellation), deadline_(deadline) {
    if (!source.MayBlock()) return;
    if (cancellation_ != nullptr) id_ = cancellation_->Add([&source] { source.Interrupt(); });
    if (deadline_ == absl::InfiniteFuture()) return;
    timer_ = std::thread([this, &source] {
      if (ended_.SleepUnlessCancelled(deadline_ - absl::Now())) source.Interrupt();
    });
  }
  ~SourceGuard() {
    if (id_) cancellation_->Remove(*id_);
    ended_.Cancel();
    if (timer_.joinable()) timer_.join();
  }
  SourceGuard(const SourceGuard&) = delete;
  SourceGuard& operator=(const SourceGuard&) = delete;

  // What a source's error means: an interrupted one may have told anything.
  absl::Status Explain(const absl::Status& status) const {
    if (cancellation_ != nullptr && cancellation_->cancelled()) return absl::CancelledError("the call was cancelled");
    if (absl::Now() < deadline_ || absl::IsDeadlineExceeded(status)) return status;
    return absl::DeadlineExceededError("the timeout passed before the array had been read");
  }

 private:
  Cancellation* const cancellation_;
  const absl::Time deadline_;
  std::optional<int> id_;
  Cancellation ended_;
  std::thread timer_;
};

// Sends `chunk`, and what next() brings. Returns the source's error; that the call has ended is none.
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
// noticed while the source blocks.
template <class Stream, class Next, class OnReply>
Outcome Exchange(Stream& stream, ChunkSource& source, Next next, const Chunk& first, const Lender& lender,
                 uint64_t* sent_bytes, OnReply on_reply) {
  std::atomic<bool> replies_ended = false;
  absl::Status source_status;
  bool sent_all = false;
  std::thread writer([&] {
    absl::Status status = WriteAll(stream, next, first, lender, sent_bytes, &sent_all);
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
  source.Interrupt();
  writer.join();
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

absl::Status WrongLength(std::string_view what, uint64_t got_bytes, uint64_t expected_bytes) {
  if (got_bytes == expected_bytes) return absl::OkStatus();
  return absl::InternalError(
      StrCat("the server returned ", got_bytes, " bytes of ", what, " where ", expected_bytes, " were due"));
}

// Elements are not cut: each reply has whole ones.
absl::Status CheckWholeItems(std::string_view what, const Payload& elements, size_t item_bytes) {
  if (elements.size() % item_bytes == 0) return absl::OkStatus();
  return absl::InternalError(StrCat("the server returned ", elements.size(), " bytes of ", what,
                                    ", no multiple of the ", item_bytes, " of an element"));
}

// Runs a call whose first chunk decides its form: unary where it is the last, else a stream.
// Returns the bytes of the elements sent.
template <class Spec, class OnReply>
absl::StatusOr<uint64_t> RunChunks(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
                                   const Spec& spec, ChunkSource& source, const Lender& lender, const CallOptions& call,
                                   OnReply on_reply) {
  const absl::Time deadline = Deadline(call);
  const size_t chunk_items = ChunkItems(spec);
  Backoff backoff(options, call, deadline);
  const SourceGuard guard(source, call.cancellation, deadline);
  const auto next = [&]() -> absl::StatusOr<Chunk> {
    auto chunk = source.Next(chunk_items);
    if (!chunk.ok()) return guard.Explain(chunk.status());
    PREFIXD_RETURN_IF_ERROR(internal::CheckChunk(*chunk, spec));
    return chunk;
  };
  PREFIXD_ASSIGN_OR_RETURN(Chunk first, next());
  uint64_t sent_bytes = 0;
  bool first_is_fresh = true;
  PREFIXD_RETURN_IF_ERROR(Retry(std::move(backoff), [&]() -> Outcome {
    if (first.last) {
      sent_bytes = first.values.size();
      ArrayReply<typename Contract<Spec>::Response> reply;
      absl::Status status = UnaryStatus(CallUnary(*channel, spec, first, lender, call, deadline, &reply));
      if (!status.ok()) return {std::move(status), true};
      return {on_reply(reply)};
    }
    if (!first_is_fresh) {
      auto again = next();
      if (!again.ok()) return {again.status()};
      first = *again;
    }
    first_is_fresh = false;
    CallOptions rest = call;
    rest.timeout = deadline - absl::Now();
    auto stream = ArrayStream<Spec>::Open(channel, options, spec, rest);
    if (!stream.ok()) return {stream.status()};
    sent_bytes = 0;
    Outcome outcome = Exchange(**stream, source, next, first, lender, &sent_bytes, on_reply);
    // Only what is tried again needs the source from its beginning.
    if (absl::IsUnavailable(outcome.status) && outcome.may_retry) outcome.may_retry = source.Rewind();
    return outcome;
  }));
  return sent_bytes;
}

// The three calls, whose elements go to `take` as each reply has them.
template <class Take>
absl::StatusOr<Timing> RunScan(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
                               const ScanSpec& spec, ChunkSource& source, const Lender& lender, const CallOptions& call,
                               Take take) {
  const size_t item_bytes = SizeOf(spec.output());
  Timing timing;
  uint64_t received_bytes = 0;
  const auto on_reply = [&](ArrayReply<v1::ScanResponse>& reply) {
    timing = TimingOf(reply.message).value_or(std::move(timing));
    received_bytes += reply.values.size();
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("values", reply.values, item_bytes));
    return take(reply.values);
  };
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t sent_bytes,
                           RunChunks(channel, options, spec, source, lender, call, on_reply));
  PREFIXD_RETURN_IF_ERROR(WrongLength("values", received_bytes, sent_bytes / SizeOf(spec.dtype) * item_bytes));
  return timing;
}

absl::StatusOr<ReduceReply> RunReduce(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
                                      const ReduceSpec& spec, ChunkSource& source, const Lender& lender,
                                      const CallOptions& call) {
  v1::ReduceResponse last;
  const auto on_reply = [&](ArrayReply<v1::ReduceResponse>& reply) {
    last = std::move(reply.message);
    return absl::OkStatus();
  };
  PREFIXD_RETURN_IF_ERROR(RunChunks(channel, options, spec, source, lender, call, on_reply).status());
  return FromWire(last, spec.output());
}

template <class Take>
absl::StatusOr<Timing> RunCompact(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
                                  const CompactSpec& spec, ChunkSource& source, const Lender& lender,
                                  const CallOptions& call, Take take) {
  const size_t item_bytes = SizeOf(spec.dtype);
  Timing timing;
  uint64_t kept = 0;
  const auto on_reply = [&](ArrayReply<v1::CompactResponse>& reply) -> absl::Status {
    timing = TimingOf(reply.message).value_or(std::move(timing));
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("values", reply.values, item_bytes));
    const uint64_t count = reply.values.size() / item_bytes;
    kept += count;
    PREFIXD_RETURN_IF_ERROR(WrongLength("values", kept * item_bytes, reply.message.count() * item_bytes));
    const uint64_t index_bytes = spec.return_indices ? count * sizeof(uint64_t) : 0;
    PREFIXD_RETURN_IF_ERROR(WrongLength("indices", reply.indices.size(), index_bytes));
    return take(reply.values, reply.indices);
  };
  PREFIXD_RETURN_IF_ERROR(RunChunks(channel, options, spec, source, lender, call, on_reply).status());
  return timing;
}

// The elements, in one piece until the next call.
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

absl::Status CopyInto(internal::Room room, const Payload& elements) {
  elements.CopyTo(room(elements.size()), 0, elements.size());
  return absl::OkStatus();
}

}  // namespace

namespace internal {
namespace {

absl::Status CheckWhole(Bytes values, DType dtype) {
  if (values.size() % SizeOf(dtype) == 0) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "LENGTH_NOT_MULTIPLE", "values.inline.data",
               StrCat("the chunk has ", values.size(), " bytes, no multiple of the ", SizeOf(dtype),
                      " of an element of type ", Name(dtype)));
}

}  // namespace

absl::Status CheckMaskLength(size_t mask_bytes, size_t num_items, MaskKind kind) {
  if (mask_bytes == MaskBytes(num_items, kind)) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask.inline.data",
               StrCat("the mask has ", mask_bytes, " bytes for ", num_items, " elements; expected one ",
                      kind == MaskKind::kBits ? "bit" : "byte", " an element"));
}

absl::Status CheckChunk(const Chunk& chunk, const ScanSpec& spec) { return CheckWhole(chunk.values, spec.dtype); }
absl::Status CheckChunk(const Chunk& chunk, const ReduceSpec& spec) { return CheckWhole(chunk.values, spec.dtype); }
absl::Status CheckChunk(const Chunk& chunk, const CompactSpec& spec) {
  PREFIXD_RETURN_IF_ERROR(CheckWhole(chunk.values, spec.dtype));
  if (!spec.predicate) {
    return CheckMaskLength(chunk.mask.size(), chunk.values.size() / SizeOf(spec.dtype), spec.mask_kind);
  }
  if (chunk.mask.empty()) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "mask", "there is a mask beside a predicate");
}

}  // namespace internal

Client::Client(std::string_view address, const ClientOptions& options) : connection_(std::make_unique<Connection>()) {
  // gRPC stays up until the process ends. It would shut down with its last channel, and where a write was still under
  // way it waits ten seconds for that (gRPC 1.51, now and then, after a stream that failed).
  [[maybe_unused]] static const bool stays_up = (grpc_init(), true);
  grpc::ChannelArguments arguments;
  const auto milliseconds = [](absl::Duration d) {
    return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(d), 0, INT_MAX));
  };
  // Connect again as often as calls are tried again. gRPC calls the limit on one attempt its minimal back-off.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(options.initial_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, milliseconds(options.max_backoff));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(options.connect_timeout));
  // A server that is lost, or stopped, ends the call after forty seconds, not never. A call that waits for its reply
  // sends no data, and would be silent after two pings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Calls are tried again here, where sources rewind. gRPC's own retries would keep a copy of what was sent, and
  // in 1.51 a call that is cancelled just after a write now and then never ends with them.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A server is reached directly: an http_proxy of the environment, which gRPC would obey even for loopback, is meant
  // for the web.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Otherwise gRPC gives channels to one address, with the same arguments, one connection.
  if (options.own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  connection_->channel = grpc::CreateCustomChannel(std::string(address), grpc::InsecureChannelCredentials(), arguments);
  connection_->options = options;
}

Client::~Client() = default;

absl::StatusOr<Timing> Client::ScanChunks(const ScanSpec& spec, ChunkSource& source, ScanSink sink,
                                          const CallOptions& call) {
  Joined joined;
  return RunScan(connection_->channel, connection_->options, spec, source, Lender(), call,
                 [&](const Payload& values) { return sink(joined(values)); });
}

absl::StatusOr<Timing> Client::ScanBytes(const ScanSpec& spec, Bytes values, internal::Room room,
                                         const CallOptions& call) {
  MemorySource source(values, SizeOf(spec.dtype));
  return RunScan(connection_->channel, connection_->options, spec, source, Lender(connection_->channel), call,
                 [&](const Payload& scanned) { return CopyInto(room, scanned); });
}

absl::StatusOr<ReduceReply> Client::ReduceChunks(const ReduceSpec& spec, ChunkSource& source, const CallOptions& call) {
  return RunReduce(connection_->channel, connection_->options, spec, source, Lender(), call);
}

absl::StatusOr<ReduceReply> Client::ReduceBytes(const ReduceSpec& spec, Bytes values, const CallOptions& call) {
  MemorySource source(values, SizeOf(spec.dtype));
  return RunReduce(connection_->channel, connection_->options, spec, source, Lender(connection_->channel), call);
}

absl::StatusOr<Timing> Client::CompactChunks(const CompactSpec& spec, ChunkSource& source, CompactSink sink,
                                             const CallOptions& call) {
  Joined values;
  Joined indices;
  return RunCompact(connection_->channel, connection_->options, spec, source, Lender(), call,
                    [&](const Payload& kept, const Payload& places) { return sink(values(kept), indices(places)); });
}

absl::StatusOr<Timing> Client::CompactBytes(const CompactSpec& spec, Bytes values, Bytes mask,
                                            internal::Room value_room, internal::Room index_room,
                                            const CallOptions& call) {
  MemorySource source(values, SizeOf(spec.dtype), mask, spec.mask_kind);
  return RunCompact(connection_->channel, connection_->options, spec, source, Lender(connection_->channel), call,
                    [&](const Payload& kept, const Payload& indices) {
                      PREFIXD_RETURN_IF_ERROR(CopyInto(value_room, kept));
                      return CopyInto(index_room, indices);
                    });
}

absl::StatusOr<ServerInfo> Client::GetServerInfo(const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  v1::GetServerInfoResponse response;
  PREFIXD_RETURN_IF_ERROR(Retry(Backoff(connection_->options, call, deadline), [&]() -> Outcome {
    AttemptContext context(call, deadline);
    auto stub = v1::AdminService::NewStub(connection_->channel);
    return {UnaryStatus(FromWire(stub->GetServerInfo(context.get(), {}, &response))), true};
  }));
  return FromWire(response);
}

absl::StatusOr<bool> Client::CheckHealth(const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  grpc::health::v1::HealthCheckResponse response;
  PREFIXD_RETURN_IF_ERROR(Retry(Backoff(connection_->options, call, deadline), [&]() -> Outcome {
    AttemptContext context(call, deadline);
    auto stub = grpc::health::v1::Health::NewStub(connection_->channel);
    return {UnaryStatus(FromWire(stub->Check(context.get(), {}, &response))), true};
  }));
  return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

}  // namespace prefixd::client
