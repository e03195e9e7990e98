#include "client/client.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <type_traits>
#include <utility>

#include "client/convert.h"
#include "client/rpc.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "prefixd/v1/primitives.grpc.pb.h"

namespace prefixd::client {
namespace {

// One attempt's end. An error of the caller's own source or sink is never a reason to try again.
struct Outcome {
  absl::Status status;
  bool may_retry = false;
};

// Runs attempts until one succeeds or there is no point in another.
template <class Attempt>
absl::Status Retry(Backoff backoff, Attempt attempt) {
  for (;;) {
    Outcome outcome = attempt();
    if (outcome.status.code() != absl::StatusCode::kUnavailable || !outcome.may_retry || !backoff.Pause()) {
      return std::move(outcome.status);
    }
  }
}

// Runs a call whose first chunk decides its form: unary(chunk) or stream(chunk), each an attempt.
template <class Spec, class Unary, class Stream>
absl::Status RunChunks(const Spec& spec, ChunkSource& source, Backoff backoff, Unary unary, Stream stream) {
  const size_t chunk_items = ChunkItems(spec);
  PREFIXD_ASSIGN_OR_RETURN(Chunk first, source.Next(chunk_items));
  PREFIXD_RETURN_IF_ERROR(internal::CheckChunk(first, spec));
  bool first_is_fresh = true;
  return Retry(std::move(backoff), [&]() -> Outcome {
    if (first.last) return unary(first);
    if (!first_is_fresh) {
      auto next = source.Next(chunk_items);
      if (!next.ok()) return {next.status()};
      first = *next;
    }
    first_is_fresh = false;
    Outcome outcome = stream(first);
    if (outcome.may_retry) outcome.may_retry = source.Rewind();
    return outcome;
  });
}

// Sends the source's chunks, `chunk` first.
template <class Stream>
absl::Status WriteAll(Stream& stream, ChunkSource& source, Chunk chunk, size_t chunk_items, uint64_t* value_bytes) {
  for (;;) {
    PREFIXD_RETURN_IF_ERROR(stream.Write(chunk));
    *value_bytes += chunk.values.size();
    if (chunk.last || chunk.values.empty()) return absl::OkStatus();
    PREFIXD_ASSIGN_OR_RETURN(chunk, source.Next(chunk_items));
  }
}

// Writes on a thread of its own and reads here, so that replies flow while chunks still go out.
template <class Reply, class Stream, class OnReply>
Outcome Exchange(Stream& stream, ChunkSource& source, const Chunk& first, size_t chunk_items, uint64_t* value_bytes,
                 OnReply on_reply) {
  std::atomic<bool> replies_ended = false;
  absl::Status source_status;
  std::thread writer([&] {
    absl::Status status = WriteAll(stream, source, first, chunk_items, value_bytes);
    if (status.ok()) {
      stream.WritesDone();
    } else if (!absl::IsAborted(status) && !replies_ended) {
      source_status = std::move(status);
      stream.Cancel();
    }
  });
  absl::Status sink_status;
  bool replied = false;
  for (Reply reply; stream.Read(&reply);) {
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
  return {status, !replied};
}

absl::Status WrongLength(std::string_view what, uint64_t got_bytes, uint64_t expected_bytes) {
  if (got_bytes == expected_bytes) return absl::OkStatus();
  return absl::InternalError(
      StrCat("the server returned ", got_bytes, " bytes of ", what, " where ", expected_bytes, " were due"));
}

void SetInline(Bytes bytes, v1::Operand* operand) { operand->mutable_inline_()->set_data(bytes.data(), bytes.size()); }

// One attempt of a unary call with the whole array in `chunk`. Its reply goes to on_response(response).
template <class Request, class Response, class Spec, class OnResponse>
Outcome CallUnary(grpc::Status (v1::PrefixService::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const std::shared_ptr<grpc::Channel>& channel, const Spec& spec, const Chunk& chunk,
                  const CallOptions& call, absl::Time deadline, OnResponse on_response) {
  Request request;
  auto wire_spec = ToWire(spec);
  if (!wire_spec.ok()) return {wire_spec.status()};
  *request.mutable_spec() = *std::move(wire_spec);
  request.set_request_id(call.request_id);
  SetInline(chunk.values, request.mutable_values());
  if constexpr (std::is_same_v<Spec, CompactSpec>) {
    if (!spec.predicate) SetInline(chunk.mask, request.mutable_mask());
  }
  Response response;
  AttemptContext context(call, deadline);
  absl::Status status =
      FromWire((v1::PrefixService::NewStub(channel).get()->*method)(context.get(), request, &response));
  if (!status.ok()) return {std::move(status), true};
  return {on_response(response)};
}

}  // namespace

namespace internal {

absl::StatusOr<Chunk> MemorySource::Next(size_t max_items) {
  const size_t num_items = values_.size() / item_bytes_;
  const size_t count = std::min(max_items, num_items - next_item_);
  Chunk chunk = {values_.subspan(next_item_ * item_bytes_, count * item_bytes_)};
  if (!mask_.empty()) chunk.mask = mask_.subspan(next_item_, count);
  next_item_ += count;
  chunk.last = next_item_ == num_items;
  return chunk;
}

namespace {

absl::Status CheckWhole(Bytes values, DType dtype) {
  if (values.size() % SizeOf(dtype) == 0) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "LENGTH_NOT_MULTIPLE", "values.inline.data",
               StrCat("the chunk has ", values.size(), " bytes, no multiple of the ", SizeOf(dtype),
                      " of an element of type ", Name(dtype)));
}

}  // namespace

absl::Status CheckMaskLength(size_t mask_bytes, size_t num_items) {
  if (mask_bytes == num_items) return absl::OkStatus();
  return Error(
      absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask.inline.data",
      StrCat("the mask has ", mask_bytes, " bytes for ", num_items, " elements; expected one byte an element"));
}

absl::Status CheckChunk(const Chunk& chunk, const ScanSpec& spec) { return CheckWhole(chunk.values, spec.dtype); }
absl::Status CheckChunk(const Chunk& chunk, const ReduceSpec& spec) { return CheckWhole(chunk.values, spec.dtype); }
absl::Status CheckChunk(const Chunk& chunk, const CompactSpec& spec) {
  PREFIXD_RETURN_IF_ERROR(CheckWhole(chunk.values, spec.dtype));
  if (!spec.predicate) return CheckMaskLength(chunk.mask.size(), chunk.values.size() / SizeOf(spec.dtype));
  if (chunk.mask.empty()) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "mask", "there is a mask beside a predicate");
}

}  // namespace internal

Client::Client(std::string_view address, const ClientOptions& options) : connection_(std::make_unique<Connection>()) {
  // gRPC stays up until the process ends. It would shut down with its last channel, and where a write was still under
  // way it waits ten seconds for that (gRPC 1.51, now and then, after a stream that failed).
  [[maybe_unused]] static const bool stays_up = (grpc_init(), true);
  grpc::ChannelArguments arguments;
  const auto milliseconds = [](absl::Duration d) { return static_cast<int>(absl::ToInt64Milliseconds(d)); };
  // Connect again as often as calls are tried again. gRPC calls the limit on one attempt its minimal back-off.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(options.initial_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, milliseconds(options.max_backoff));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(options.connect_timeout));
  // A server is reached directly: an http_proxy of the environment, which gRPC would obey even for loopback, is meant
  // for the web.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  connection_->channel = grpc::CreateCustomChannel(std::string(address), grpc::InsecureChannelCredentials(), arguments);
  connection_->options = options;
}

Client::~Client() = default;

absl::StatusOr<Timing> Client::ScanChunks(const ScanSpec& spec, ChunkSource& source, ScanSink sink,
                                          const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  const size_t chunk_items = ChunkItems(spec);
  Timing timing;
  const auto unary = [&](const Chunk& chunk) {
    return CallUnary(&v1::PrefixService::Stub::Scan, connection_->channel, spec, chunk, call, deadline,
                     [&](const v1::ScanResponse& response) -> absl::Status {
                       timing = FromWire(response.timing());
                       const std::string& values = response.values().inline_().data();
                       PREFIXD_RETURN_IF_ERROR(WrongLength("values", values.size(), chunk.values.size()));
                       return sink(AsBytes(values));
                     });
  };
  const auto stream = [&](const Chunk& first) -> Outcome {
    CallOptions rest = call;
    rest.timeout = deadline - absl::Now();
    auto opened = OpenScan(spec, rest);
    if (!opened.ok()) return {opened.status()};
    uint64_t sent_bytes = 0;
    uint64_t received_bytes = 0;
    Outcome outcome = Exchange<ScanReply>(**opened, source, first, chunk_items, &sent_bytes, [&](ScanReply& reply) {
      received_bytes += reply.values.size();
      if (reply.timing) timing = *std::move(reply.timing);
      return sink(AsBytes(reply.values));
    });
    if (outcome.status.ok()) outcome.status = WrongLength("values", received_bytes, sent_bytes);
    return outcome;
  };
  PREFIXD_RETURN_IF_ERROR(RunChunks(spec, source, Backoff(connection_->options, call, deadline), unary, stream));
  return timing;
}

absl::StatusOr<ReduceReply> Client::ReduceChunks(const ReduceSpec& spec, ChunkSource& source, const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  const size_t chunk_items = ChunkItems(spec);
  ReduceReply reply;
  const auto unary = [&](const Chunk& chunk) {
    return CallUnary(&v1::PrefixService::Stub::Reduce, connection_->channel, spec, chunk, call, deadline,
                     [&](const v1::ReduceResponse& response) -> absl::Status {
                       PREFIXD_ASSIGN_OR_RETURN(reply, FromWire(response, spec.dtype));
                       return absl::OkStatus();
                     });
  };
  const auto stream = [&](const Chunk& first) -> Outcome {
    CallOptions rest = call;
    rest.timeout = deadline - absl::Now();
    auto opened = OpenReduce(spec, rest);
    if (!opened.ok()) return {opened.status()};
    uint64_t sent_bytes = 0;
    absl::Status written = WriteAll(**opened, source, first, chunk_items, &sent_bytes);
    if (!written.ok() && !absl::IsAborted(written)) return {written};
    auto finished = (*opened)->Finish();
    if (!finished.ok()) return {finished.status(), true};
    reply = *std::move(finished);
    return {};
  };
  PREFIXD_RETURN_IF_ERROR(RunChunks(spec, source, Backoff(connection_->options, call, deadline), unary, stream));
  return reply;
}

absl::StatusOr<Timing> Client::CompactChunks(const CompactSpec& spec, ChunkSource& source, CompactSink sink,
                                             const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  const size_t chunk_items = ChunkItems(spec);
  const size_t item_bytes = SizeOf(spec.dtype);
  Timing timing;
  uint64_t kept = 0;
  // Hands on what one reply brought, after a look at whether it adds up.
  const auto accept = [&](Bytes values, Bytes indices, uint64_t count) -> absl::Status {
    kept += values.size() / item_bytes;
    PREFIXD_RETURN_IF_ERROR(WrongLength("values", kept * item_bytes, count * item_bytes));
    const uint64_t index_items = spec.return_indices ? values.size() / item_bytes : 0;
    PREFIXD_RETURN_IF_ERROR(WrongLength("indices", indices.size(), index_items * sizeof(uint64_t)));
    return sink(values, indices);
  };
  const auto unary = [&](const Chunk& chunk) {
    return CallUnary(&v1::PrefixService::Stub::Compact, connection_->channel, spec, chunk, call, deadline,
                     [&](const v1::CompactResponse& response) {
                       timing = FromWire(response.timing());
                       return accept(AsBytes(response.values().inline_().data()),
                                     AsBytes(response.indices().inline_().data()), response.count());
                     });
  };
  const auto stream = [&](const Chunk& first) -> Outcome {
    CallOptions rest = call;
    rest.timeout = deadline - absl::Now();
    auto opened = OpenCompact(spec, rest);
    if (!opened.ok()) return {opened.status()};
    uint64_t sent_bytes = 0;
    return Exchange<CompactReply>(**opened, source, first, chunk_items, &sent_bytes, [&](CompactReply& reply) {
      if (reply.timing) timing = *std::move(reply.timing);
      return accept(AsBytes(reply.values), AsBytes(reply.indices), reply.count);
    });
  };
  PREFIXD_RETURN_IF_ERROR(RunChunks(spec, source, Backoff(connection_->options, call, deadline), unary, stream));
  return timing;
}

absl::StatusOr<ServerInfo> Client::GetServerInfo(const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  v1::GetServerInfoResponse response;
  PREFIXD_RETURN_IF_ERROR(Retry(Backoff(connection_->options, call, deadline), [&]() -> Outcome {
    AttemptContext context(call, deadline);
    auto stub = v1::AdminService::NewStub(connection_->channel);
    return {FromWire(stub->GetServerInfo(context.get(), {}, &response)), true};
  }));
  return FromWire(response);
}

absl::StatusOr<bool> Client::CheckHealth(const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  grpc::health::v1::HealthCheckResponse response;
  PREFIXD_RETURN_IF_ERROR(Retry(Backoff(connection_->options, call, deadline), [&]() -> Outcome {
    AttemptContext context(call, deadline);
    auto stub = grpc::health::v1::Health::NewStub(connection_->channel);
    return {FromWire(stub->Check(context.get(), {}, &response)), true};
  }));
  return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

}  // namespace prefixd::client
