#include "client/reduce.h"

#include <algorithm>
#include <limits>

#include "absl/time/clock.h"
#include "client/caller_stream.h"
#include "client/chunk_call.h"
#include "client/memory_source.h"
#include "client/resident_call.h"
#include "client/row_source.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_array.h"
#include "proto/wire_reduce.h"
#include "proto/wire_values.h"

namespace prefixd::client {

using internal::ReducePart;

template <>
struct Contract<ReducePart> {
  using Request = v1::ReduceRequest;
  using Response = v1::ReduceResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Reduce";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamReduce";

  static void Complete(const ReducePart& part, Request* request) { internal::CutsToWire(part, request); }
};

namespace {

bool HasManyValues(const ReduceSpec& spec) { return spec.axis || spec.segmented; }

// The last response, whose value must be one of the output type.
absl::StatusOr<ReduceReply> ReplyOf(const v1::ReduceResponse& response, const ReducePart& spec) {
  ReduceReply reply;
  reply.count = response.count();
  if (response.has_index()) reply.index = response.index();
  reply.timing = FromWire(response.timing());
  if (HasManyValues(spec)) return reply;
  const DType dtype = spec.output();
  const absl::StatusOr<Value> value = DecodeScalar(response.value(), dtype, "value");
  v1::Scalar as_due;
  if (value.ok()) EncodeScalar(*value, dtype, &as_due);
  if (!value.ok() || as_due.value_case() != response.value().value_case()) {
    return absl::InternalError(StrCat("the server's value is not of type ", Name(dtype)));
  }
  reply.value = *value;
  return reply;
}

// How many values a reduce of so many elements has beside the one.
uint64_t NumValues(const ReducePart& part, uint64_t num_items) {
  if (part.axis) return part.axis->NumArrays(num_items);
  return part.segments ? internal::NumSegments(*part.segments) : 0;
}

// Whether so many bytes are those values, and keys.
absl::Status CheckValues(const ReducePart& part, uint64_t num_items, uint64_t num_bytes, uint64_t num_key_bytes) {
  const uint64_t value_bytes = SizeOf(part.output());
  if (part.keys) {  // As many as the server has found.
    const uint64_t num_runs = num_bytes / value_bytes;
    if (num_runs > num_items) return CheckLength("values", num_bytes, num_items * value_bytes);
    PREFIXD_RETURN_IF_ERROR(CheckLength("values", num_bytes, num_runs * value_bytes));
    return CheckLength("keys", num_key_bytes, part.return_keys ? num_runs * SizeOf(part.keys->dtype()) : 0);
  }
  return CheckLength("values", num_bytes, NumValues(part, num_items) * SizeOf(part.output()));
}

absl::StatusOr<ReduceReply> CallForValue(const Connection& connection, const ReducePart& spec, ChunkSource& source,
                                         const Lender& lender, const CallOptions& call) {
  v1::ReduceResponse last;
  std::string values, keys;
  const auto on_reply = [&](ArrayReply<v1::ReduceResponse>& reply) {
    last = std::move(reply.message);
    Copy(reply.values, &values);
    Copy(reply.indices, &keys);
    return absl::OkStatus();
  };
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t sent_bytes, CallWithChunks(connection, spec, source, lender, call, on_reply));
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, ReplyOf(last, spec));
  PREFIXD_RETURN_IF_ERROR(CheckValues(spec, sent_bytes / SizeOf(spec.dtype), values.size(), keys.size()));
  reply.values = std::move(values);
  reply.keys = std::move(keys);
  return reply;
}

// The same of two calls, one behind the other.
Timing Sum(const Timing& a, Timing b) {
  const auto add = [](const std::optional<int64_t>& x, std::optional<int64_t>* y) {
    if (x) *y = y->value_or(0) + *x;
  };
  add(a.queue_ns, &b.queue_ns);
  add(a.host_copy_ns, &b.host_copy_ns);
  add(a.host_to_device_ns, &b.host_to_device_ns);
  add(a.kernel_ns, &b.kernel_ns);
  add(a.device_to_host_ns, &b.device_to_host_ns);
  add(a.server_total_ns, &b.server_total_ns);
  b.launches += a.launches;
  b.num_items += a.num_items;
  b.num_bytes += a.num_bytes;
  b.kernel_gb_per_s.reset();
  if (b.kernel_ns.value_or(0) > 0) {
    b.kernel_gb_per_s = static_cast<double>(b.num_bytes) / static_cast<double>(*b.kernel_ns);
  }
  return b;
}

// As CallForValue, and what each call brings goes to `take`, whose error ends it: one reply has room for the values of
// so many rows, and where there are more, each call has so many. The last reply tells of all.
template <class Take>
absl::StatusOr<ReduceReply> CallForValues(const Connection& connection, const ReducePart& spec, ChunkSource& source,
                                          const Lender& lender, const CallOptions& call, Take take) {
  const uint64_t most_rows = kMaxPayloadBytes / SizeOf(spec.output());
  const bool has_rows = spec.axis && spec.axis->along == Axis::Along::kRow && spec.axis->row_items > 0;
  if (!has_rows || (spec.num_items && *spec.num_items / spec.axis->row_items <= most_rows)) {
    PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, CallForValue(connection, spec, source, lender, call));
    PREFIXD_RETURN_IF_ERROR(take(reply));
    return reply;
  }
  constexpr uint64_t kMaxItems = std::numeric_limits<uint64_t>::max();
  const uint64_t row_items = spec.axis->row_items;
  const uint64_t most_items = row_items > kMaxItems / most_rows ? kMaxItems : row_items * most_rows;
  const absl::Time deadline = Deadline(call);
  std::optional<ReduceReply> all;
  while (true) {
    ReducePart part = spec;
    if (spec.num_items) part.num_items = std::min(most_items, *spec.num_items - (all ? all->count : 0));
    CallOptions rest = call;
    rest.timeout = deadline - absl::Now();
    RowSource rows(source, SizeOf(spec.dtype), most_items, /*may_rewind=*/!all);
    PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, CallForValue(connection, part, rows, lender, rest));
    PREFIXD_RETURN_IF_ERROR(take(reply));
    if (all) {
      reply.count += all->count;
      reply.timing = Sum(all->timing, std::move(reply.timing));
    }
    if (rows.IsEndOfAll()) return reply;
    all = std::move(reply);
  }
}

// The same, with all values in the reply.
absl::StatusOr<ReduceReply> CallForAllValues(const Connection& connection, const ReducePart& spec, ChunkSource& source,
                                             const Lender& lender, const CallOptions& call) {
  std::string values;
  const auto take = [&](ReduceReply& reply) {
    if (values.empty()) {
      values = std::move(reply.values);
    } else {
      values += reply.values;
    }
    return absl::OkStatus();
  };
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, CallForValues(connection, spec, source, lender, call, take));
  reply.values = std::move(values);
  return reply;
}

class ValueStream : public CallerStream<ReducePart, ReduceReply> {
 public:
  using CallerStream::CallerStream;

  // The reply counts if the call ends well. gRPC allows Finish beside a Write on another thread.
  bool Read(ReduceReply* reply) override {
    if (std::exchange(read_, true)) return false;
    ArrayReply<v1::ReduceResponse> last;
    stream().Read(&last);
    if (!stream().Finish().ok()) return false;
    auto value = ReplyOf(last.message, stream().spec());
    if (!value.ok()) {
      stream().Fail(value.status());
      return false;
    }
    *reply = *std::move(value);
    Copy(last.values, &reply->values);
    return true;
  }

 private:
  bool read_ = false;
};

}  // namespace

namespace internal {

absl::StatusOr<ReduceReply> ReduceBytes(const Connection& connection, const ReducePart& part, Bytes values,
                                        const CallOptions& call) {
  MemorySource source(values, SizeOf(part.dtype));
  return CallForAllValues(connection, part, source, Lender(connection), call);
}

absl::StatusOr<ReduceReply> ReduceChunks(const Connection& connection, const ReduceSpec& spec, ChunkSource& source,
                                         const CallOptions& call) {
  return CallForAllValues(connection, ReducePart{spec}, source, Lender(), call);
}

absl::StatusOr<std::unique_ptr<ReduceStream>> OpenReduce(const Connection& connection, const ReduceSpec& spec,
                                                         const CallOptions& call) {
  return OpenStream<ValueStream>(connection, ReducePart{spec}, call);
}

absl::StatusOr<Timing> RunChunks(const Connection& connection, const ReduceSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call) {
  const auto take = [&](const ReduceReply& reply) {
    return spec.axis ? sink({std::string_view(reply.values)}, {}) : absl::OkStatus();
  };
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply,
                           CallForValues(connection, ReducePart{spec}, source, Lender(), call, take));
  return std::move(reply.timing);
}

absl::StatusOr<ResidentReply> RunOnArrays(const ReduceSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  ReducePart part = {spec};
  part.segments = places.segments;
  part.keys = places.keys;
  return RunOnArrays(part, places, sink, call);
}

absl::StatusOr<ResidentReply> RunOnArrays(const ReducePart& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  v1::ReduceResponse last;
  uint64_t got_bytes = 0, got_key_bytes = 0;
  PREFIXD_RETURN_IF_ERROR(CallResident(spec, places, call, [&](ArrayReply<v1::ReduceResponse>& reply) {
    last = std::move(reply.message);
    got_bytes = reply.values.size();
    got_key_bytes = reply.indices.size();
    const bool is_empty = reply.values.empty() && reply.indices.empty();
    return is_empty ? absl::OkStatus() : sink(reply.values.parts(), reply.indices.parts());
  }));
  // First: what was made has an owner then, whatever else the reply is.
  PREFIXD_ASSIGN_OR_RETURN(Placed placed, PlacedOf(places.values.connection(), places.values_to, last.values()));
  PREFIXD_ASSIGN_OR_RETURN(Placed keys, PlacedOf(places.values.connection(), places.indices_to, last.keys()));
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, ReplyOf(last, spec));
  const size_t value_bytes = SizeOf(spec.output());
  if (HasManyValues(spec)) {
    const uint64_t num_bytes = placed.num_items ? *placed.num_items * value_bytes : got_bytes;
    const uint64_t num_key_bytes =
        keys.num_items && spec.key_dtype ? *keys.num_items * SizeOf(*spec.key_dtype) : got_key_bytes;
    PREFIXD_RETURN_IF_ERROR(CheckValues(spec, places.values.num_items(), num_bytes, num_key_bytes));
  } else {
    PREFIXD_RETURN_IF_ERROR(CheckLength("values", placed.num_items.value_or(1) * value_bytes, value_bytes));
  }
  ResidentReply result;
  result.values = std::move(placed.made);
  result.indices = std::move(keys.made);
  result.count = reply.count;
  result.value = reply.value;
  result.index = reply.index;
  result.timing = std::move(reply.timing);
  return result;
}

}  // namespace internal
}  // namespace prefixd::client
