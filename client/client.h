// The C++ client of prefixd: scan, reduce and compact over gRPC.
//
//   Client client("127.0.0.1:50051");
//   std::vector<float> values = {3, 1, 2};
//   absl::StatusOr<ScanResult<float>> scanned = client.Scan<float>(values);  // [3, 4, 6]
//   auto smallest = client.Reduce<float>(values, {.op = Op::kMin});          // 1, at index 1
//   auto large = client.Compact<float>(values, Where<float>{Comparison::kGreater, 1.5f});  // [3, 2]
//
//   auto total = client.Reduce<float, double>(values);  // 6, accumulated in f64
//
// Element types T: those of PREFIXD_FOR_EACH_DTYPE (kernels/types.h). Output types Out of T, in which scan and reduce
// combine the elements: those of PREFIXD_FOR_EACH_OUTPUT, T itself among them; another does not compile.
// An array that fits one message with its result (1 MiB) is one unary call; a longer one becomes a stream, in chunks,
// whose results come back while it is still being sent. The answer is the same, except that `reverse` is unary only.
//
// Errors: the server's code and message. prefixd::ErrorReason and ErrorField (kernels/status.h) tell reason and field,
// RetryDelay (below) how long the server wants to be left alone. The table is in proto/prefixd/v1/primitives.proto.
#ifndef PREFIXD_CLIENT_CLIENT_H_
#define PREFIXD_CLIENT_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/benchmark.h"
#include "client/options.h"
#include "client/spec.h"
#include "client/stream.h"
#include "kernels/status.h"
#include "kernels/types.h"

namespace prefixd::client {

template <class T>
struct ScanOptions {
  Op op = Op::kSum;
  ScanKind kind = ScanKind::kInclusive;
  std::optional<T> init = {};  // Absent: the operator's identity.
  bool reverse = false;        // From the last element to the first; arrays of up to 1 MiB.
  Algorithm algorithm = {};    // {}: the server chooses.
};

template <class T>
struct ScanResult {
  std::vector<T> values;
  Timing timing;
};

template <class T>
struct ReduceOptions {
  Op op = Op::kSum;
  std::optional<T> init = {};  // Combined in front of the first element.
  Algorithm algorithm = {};    // {}: the server chooses.
};

template <class T>
struct ReduceResult {
  T value = {};
  uint64_t count = 0;             // Elements reduced.
  std::optional<uint64_t> index;  // MIN and MAX: the first element with that value; absent where it is not one's.
  Timing timing;
};

// The elements for which `element comparison value` holds, by IEEE rules: a comparison with NaN is false, but != is
// true. kIsNan and kIsFinite have no use for the value.
template <class T>
struct Where {
  Comparison comparison = Comparison::kGreater;
  T value = {};
};

struct CompactOptions {
  MaskKind mask_kind = MaskKind::kBytes;  // Where a mask selects.
  bool invert = false;                    // Keeps what the selector rejects.
  bool return_indices = false;            // Fills CompactResult::indices.
  Algorithm algorithm = {};               // {}: the server chooses.
};

template <class T>
struct CompactResult {
  std::vector<T> values;
  std::vector<uint64_t> indices;  // Of the kept elements in the array, if asked for.
  Timing timing;
};

// Where a call's elements come from, a chunk at a time.
// Threads: Next and Rewind from one thread at a time, which need not be the caller's; Interrupt from another.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // The next elements: max_items of them, fewer only at the end, none after it. They stay valid until the next call of
  // Next or Rewind. An error ends the call with that error.
  virtual absl::StatusOr<Chunk> Next(size_t max_items) = 0;
  // Goes back to the first element, for another attempt. False: it can't, so there is none.
  virtual bool Rewind() = 0;
  // Whether Next may block, on a file or a pipe. Where it may, a call with a timeout has a thread that calls Interrupt
  // in time; where it says that it does not, Interrupt comes only when a stream has ended.
  virtual bool MayBlock() const { return true; }
  // The call has ended, or was cancelled, or is too late: a Next that blocks should return soon, with whatever error.
  // May come more than once, and while no Next runs. Must not call the Cancellation back. Rewind undoes it.
  virtual void Interrupt() {}
};

namespace internal {
// Where the next elements of a result go.
using Room = absl::FunctionRef<std::byte*(size_t size_bytes)>;
}  // namespace internal

// A connection to one server.
// Threads: every method from any thread, any number at once.
// Cost:    the constructor does not connect; a wrong address shows in the first call.
class Client {
 public:
  explicit Client(std::string_view address, const ClientOptions& options = {});
  ~Client();

  // Scan of a whole array.
  // Shape:  as many results as values.
  // Errors: FAILED_PRECONDITION (REVERSE_ON_STREAM) for reverse above 1 MiB, of values or of results.
  // Cost:   the array crosses the wire twice, and is copied once on this side, into the result: it is sent from where
  // it
  //         is, and the call returns when gRPC has let go of it.
  // Example: [3,1,2,4], sum, exclusive, init 10 -> [10,13,14,16]
  template <class T, class Out = T>
  absl::StatusOr<ScanResult<Out>> Scan(absl::Span<const T> values, const ScanOptions<Out>& options = {},
                                       const CallOptions& call = {});

  // Reduce of a whole array.
  // Shape:  one value; of nothing, init or the identity with count 0.
  // Cost:   the array crosses the wire once.
  // Example: [3,1,2,1], min -> value 1, count 4, index 1
  template <class T, class Out = T>
  absl::StatusOr<ReduceResult<Out>> Reduce(absl::Span<const T> values, const ReduceOptions<Out>& options = {},
                                           const CallOptions& call = {});

  // The elements that satisfy a predicate, in their order.
  // Example: [3,1,2,4], > 1 -> values [3,2,4], indices [0,2,3]
  template <class T>
  absl::StatusOr<CompactResult<T>> Compact(absl::Span<const T> values, const Where<T>& where,
                                           const CompactOptions& options = {}, const CallOptions& call = {});

  // The elements whose byte in the mask is not 0, or whose bit is 1 (CompactOptions::mask_kind), in their order.
  // Errors: INVALID_ARGUMENT (MASK_LENGTH), before anything is sent, unless there is one byte, or bit, an element.
  // Cost:   the mask crosses the wire too.
  template <class T>
  absl::StatusOr<CompactResult<T>> Compact(absl::Span<const T> values, absl::Span<const uint8_t> mask,
                                           const CompactOptions& options = {}, const CallOptions& call = {});

  // What the server is and serves.
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& call = {});

  // Whether the server takes work: true for SERVING. A server that answers NOT_SERVING is no error.
  absl::StatusOr<bool> CheckHealth(const CallOptions& call = {});

  // Measures every combination of the spec on the server's device. The sink gets each as it is measured, or skipped, on
  // the calling thread; an error from it ends the benchmark, and the call with that error.
  // Errors: INVALID_ARGUMENT (BENCHMARK_SPEC), PERMISSION_DENIED (BENCHMARK_OFF), RESOURCE_EXHAUSTED
  //         (BENCHMARK_RUNNING) while there is another.
  // Retry:  not after the first result.
  using BenchmarkSink = absl::FunctionRef<absl::Status(const BenchmarkResult& result)>;
  absl::Status RunBenchmark(const BenchmarkSpec& spec, BenchmarkSink sink, const CallOptions& call = {});

  // Has the server send the source's bytes back as they came: what the wire takes for them, without any work. One
  // message if they fit it (1 MiB), else a stream of such messages, as the calls of arrays.
  // Needs:  a source of bytes, whose Next does not block.
  // Errors: UNIMPLEMENTED from a server without DiagnosticsService; INTERNAL if another number of bytes came back.
  // Retry:  never, so that what is measured is one attempt.
  absl::Status Echo(ChunkSource& source, const CallOptions& call = {});

  // ---- Element types known at run time, arrays larger than memory ----
  // As the calls above, from a source to a sink: one unary call where the first chunk is the last and fits, else a
  // stream. The sink gets the result in order, in pieces, on the calling thread; an error from it ends the call with
  // that error. The source is read on another thread once a stream has begun.
  // Retry:  after the first reply never; before it only if the source can rewind or the call is unary.
  // Memory: a few chunks, however long the array.
  using ScanSink = absl::FunctionRef<absl::Status(Bytes values)>;
  absl::StatusOr<Timing> ScanChunks(const ScanSpec& spec, ChunkSource& source, ScanSink sink,
                                    const CallOptions& call = {});

  absl::StatusOr<ReduceReply> ReduceChunks(const ReduceSpec& spec, ChunkSource& source, const CallOptions& call = {});

  using CompactSink = absl::FunctionRef<absl::Status(Bytes values, Bytes indices)>;
  absl::StatusOr<Timing> CompactChunks(const CompactSpec& spec, ChunkSource& source, CompactSink sink,
                                       const CallOptions& call = {});

  // ---- Streams: see stream.h ----
  // Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) if the spec has a value of a type that this client does not know. That
  //         there is no server shows in Write and Finish.
  absl::StatusOr<std::unique_ptr<ScanStream>> OpenScan(const ScanSpec& spec, const CallOptions& call = {});
  absl::StatusOr<std::unique_ptr<ReduceStream>> OpenReduce(const ReduceSpec& spec, const CallOptions& call = {});
  absl::StatusOr<std::unique_ptr<CompactStream>> OpenCompact(const CompactSpec& spec, const CallOptions& call = {});

 private:
  template <class T>
  absl::StatusOr<CompactResult<T>> CompactArray(absl::Span<const T> values, CompactSpec spec, Bytes mask,
                                                const CompactOptions& options, const CallOptions& call);

  // The calls of arrays in memory, which the results are copied into once.
  absl::StatusOr<Timing> ScanBytes(const ScanSpec& spec, Bytes values, internal::Room room, const CallOptions& call);
  absl::StatusOr<ReduceReply> ReduceBytes(const ReduceSpec& spec, Bytes values, const CallOptions& call);
  absl::StatusOr<Timing> CompactBytes(const CompactSpec& spec, Bytes values, Bytes mask, internal::Room value_room,
                                      internal::Room index_room, const CallOptions& call);

  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// How long the server asks to be left alone before another attempt (google.rpc.RetryInfo); nothing if it does not say.
// The client itself retries UNAVAILABLE only: RESOURCE_EXHAUSTED is the caller's to judge.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// Whether a status is the end of a call, as the server or gRPC tells it; not an error of the caller's source or sink,
// or one found before anything was sent.
bool IsCallStatus(const absl::Status& status);

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

// What is wrong with a chunk can be seen here, before anything is sent.
absl::Status CheckMaskLength(size_t mask_bytes, size_t num_items, MaskKind kind);
absl::Status CheckChunk(const Chunk& chunk, const ScanSpec& spec);
absl::Status CheckChunk(const Chunk& chunk, const ReduceSpec& spec);
absl::Status CheckChunk(const Chunk& chunk, const CompactSpec& spec);

// Adds elements of so many bytes, and returns where they go.
template <class T>
std::byte* Grow(size_t size_bytes, std::vector<T>* elements) {
  const size_t old_size = elements->size();
  elements->resize(old_size + size_bytes / sizeof(T));
  return reinterpret_cast<std::byte*>(elements->data() + old_size);
}

// What a spec says of the output type: nothing where it is T.
template <class T, class Out>
requires(IsOutput(kDTypeOf<T>,
                  kDTypeOf<Out>)) inline constexpr std::optional<DType> kOutDType = std::is_same_v<T, Out>
                                                                                        ? std::nullopt
                                                                                        : std::optional(kDTypeOf<Out>);

template <class T>
std::optional<Value> ToValue(const std::optional<T>& value) {
  return value ? std::optional(Value::Of(*value)) : std::nullopt;
}

}  // namespace internal

template <class T, class Out>
absl::StatusOr<ScanResult<Out>> Client::Scan(absl::Span<const T> values, const ScanOptions<Out>& options,
                                             const CallOptions& call) {
  const ScanSpec spec = {.dtype = kDTypeOf<T>,
                         .out_dtype = internal::kOutDType<T, Out>,
                         .op = options.op,
                         .kind = options.kind,
                         .init = internal::ToValue(options.init),
                         .reverse = options.reverse,
                         .algorithm = options.algorithm,
                         .num_items = values.size()};
  ScanResult<Out> result;
  result.values.reserve(values.size());
  const auto room = [&](size_t size_bytes) { return internal::Grow(size_bytes, &result.values); };
  PREFIXD_ASSIGN_OR_RETURN(result.timing, ScanBytes(spec, AsBytes(values), room, call));
  return result;
}

template <class T, class Out>
absl::StatusOr<ReduceResult<Out>> Client::Reduce(absl::Span<const T> values, const ReduceOptions<Out>& options,
                                                 const CallOptions& call) {
  const ReduceSpec spec = {.dtype = kDTypeOf<T>,
                           .out_dtype = internal::kOutDType<T, Out>,
                           .op = options.op,
                           .init = internal::ToValue(options.init),
                           .algorithm = options.algorithm,
                           .num_items = values.size()};
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, ReduceBytes(spec, AsBytes(values), call));
  return ReduceResult<Out>{reply.value.As<Out>(), reply.count, reply.index, std::move(reply.timing)};
}

template <class T>
absl::StatusOr<CompactResult<T>> Client::Compact(absl::Span<const T> values, const Where<T>& where,
                                                 const CompactOptions& options, const CallOptions& call) {
  return CompactArray(values, {.predicate = Predicate{where.comparison, Value::Of(where.value)}}, {}, options, call);
}

template <class T>
absl::StatusOr<CompactResult<T>> Client::Compact(absl::Span<const T> values, absl::Span<const uint8_t> mask,
                                                 const CompactOptions& options, const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(internal::CheckMaskLength(mask.size(), values.size(), options.mask_kind));
  return CompactArray(values, {}, AsBytes(mask), options, call);
}

template <class T>
absl::StatusOr<CompactResult<T>> Client::CompactArray(absl::Span<const T> values, CompactSpec spec, Bytes mask,
                                                      const CompactOptions& options, const CallOptions& call) {
  spec.dtype = kDTypeOf<T>;
  spec.mask_kind = options.mask_kind;
  spec.invert = options.invert;
  spec.return_indices = options.return_indices;
  spec.algorithm = options.algorithm;
  spec.num_items = values.size();
  CompactResult<T> result;
  const auto value_room = [&](size_t size_bytes) { return internal::Grow(size_bytes, &result.values); };
  const auto index_room = [&](size_t size_bytes) { return internal::Grow(size_bytes, &result.indices); };
  PREFIXD_ASSIGN_OR_RETURN(result.timing, CompactBytes(spec, AsBytes(values), mask, value_room, index_room, call));
  return result;
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CLIENT_H_
