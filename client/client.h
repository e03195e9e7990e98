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
// combine the elements, Float16 and BFloat16 in float: those of PREFIXD_FOR_EACH_OUTPUT, T itself among them; another
// does not compile.
// An array that fits one message with its result (1 MiB) is one unary call; a longer one becomes a stream, in chunks,
// whose results come back while it is still being sent. The answer is the same, except that `reverse` and columns are
// unary only.
//
// Arrays that stay on the server's device, and calls on them: array.h. Several operations in one call: program.h. Scans
// that go on where another ended: carry.h.
//
// Errors: the server's code and message. prefixd::ErrorReason and ErrorField (base/status.h) tell reason and field,
// RetryDelay (call_status.h) how long the server wants to be left alone. The table is in
// proto/prefixd/v1/primitives.proto.
#ifndef PREFIXD_CLIENT_CLIENT_H_
#define PREFIXD_CLIENT_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "client/array.h"
#include "client/benchmark.h"
#include "client/call_status.h"
#include "client/chunk.h"
#include "client/compact.h"
#include "client/difference.h"
#include "client/echo.h"
#include "client/options.h"
#include "client/program.h"
#include "client/reduce.h"
#include "client/scan.h"
#include "client/server_info.h"
#include "client/stream.h"
#include "kernels/spec.h"
#include "kernels/types.h"
#include "proto/timing.h"

namespace prefixd::client {

// The connections to one server, or to several that are alike.
// Threads: every method from any thread, any number at once.
// Cost:    the constructor does not connect; a wrong address shows in the first call.
class Client {
 public:
  explicit Client(std::string_view address, const ClientOptions& options = {});
  // For several servers, any of which will do.
  // Example: Client client(std::vector<std::string>{"10.0.0.1:50051", "10.0.0.2:50051", "unix:/run/prefixd.sock"});
  explicit Client(absl::Span<const std::string> addresses, const ClientOptions& options = {});
  ~Client();

  // Scan of a whole array.
  // Shape:  as many results as values; with include_initial one more.
  // Errors: FAILED_PRECONDITION (REVERSE_ON_STREAM, AXIS_ON_STREAM, SEGMENTS_ON_STREAM) for reverse, columns, segments
  //         or keys, above 1 MiB, of values or of results; INVALID_ARGUMENT
  //         (SHAPE) for values that are no matrix of such rows, (SEGMENT_OFFSETS, KEYS_LENGTH, COEFFICIENTS_LENGTH) for
  //         what does not fit the values, (CARRY) for a carry of another spec, (FIELD_CONFLICT) for one with any of
  //         these, and for segments with an axis.
  // Cost:   the array crosses the wire twice, and is copied once on this side, into the result. It is sent from where
  //         it is, and the call returns when gRPC has let go of it.
  // Example: [3,1,2,4], sum, exclusive, init 10 -> [10,13,14,16]; max with indices -> [3,3,3,4], indices [0,0,0,3]
  template <class T, class Out = T>
  absl::StatusOr<ScanResult<Out>> Scan(absl::Span<const T> values, const ScanOptions<Out>& options = {},
                                       const CallOptions& call = {}) {
    return internal::Scan<T, Out>(*connection_, values, options, call);
  }

  // Reduce of a whole array.
  // Shape:  one value; an empty array gives init or the identity, with count 0. Along an axis, by segments or by keys
  // one
  //         for each row, column, segment or run.
  // Errors: along an axis, by segments or by keys as Scan.
  // Cost:   the array crosses the wire once. Rows whose values have more than 1 MiB are several calls, one behind the
  //         other.
  // Example: [3,1,2,1], min -> value 1, count 4, index 1
  template <class T, class Out = T>
  absl::StatusOr<ReduceResult<Out>> Reduce(absl::Span<const T> values, const ReduceOptions<Out>& options = {},
                                           const CallOptions& call = {}) {
    return internal::Reduce<T, Out>(*connection_, values, options, call);
  }

  // The elements that satisfy a predicate, in their order. With options.segments or keys also how many of each.
  // Errors: with these FAILED_PRECONDITION (SEGMENTS_ON_STREAM) above 1 MiB, INVALID_ARGUMENT (SEGMENT_OFFSETS,
  //         KEYS_LENGTH).
  // Example: [3,1,2,4], > 1 -> values [3,2,4], indices [0,2,3]
  template <class T>
  absl::StatusOr<CompactResult<T>> Compact(absl::Span<const T> values, const Where<T>& where,
                                           const CompactOptions& options = {}, const CallOptions& call = {}) {
    return internal::Compact<T>(*connection_, values, where, options, call);
  }

  // The elements whose byte in the mask is not 0, or whose bit is 1 (CompactOptions::mask_kind), in their order.
  // Errors: INVALID_ARGUMENT (MASK_LENGTH), before anything is sent, unless there is one byte, or bit, an element.
  // Cost:   the mask crosses the wire too.
  template <class T>
  absl::StatusOr<CompactResult<T>> Compact(absl::Span<const T> values, absl::Span<const uint8_t> mask,
                                           const CompactOptions& options = {}, const CallOptions& call = {}) {
    return internal::Compact<T>(*connection_, values, mask, options, call);
  }

  // The differences of neighbours: what an inclusive scan by sum did, undone.
  // Shape:  as many results as values.
  // Errors: FAILED_PRECONDITION (REVERSE_ON_STREAM, AXIS_ON_STREAM) for reverse, or columns, above 1 MiB;
  //         INVALID_ARGUMENT (SHAPE) as Scan.
  // Cost:   as Scan.
  // Example: [13,14,16,20], init 10 -> [3,1,2,4]
  template <class T>
  absl::StatusOr<DifferenceResult<T>> Difference(absl::Span<const T> values, const DifferenceOptions<T>& options = {},
                                                 const CallOptions& call = {}) {
    return internal::Difference<T>(*connection_, values, options, call);
  }

  // ---- Resident arrays: see array.h ----
  // An array as the spec says, of zeros or of what `fill` says.
  // Errors: INVALID_ARGUMENT (SHAPE, LIFETIME, ARRAY_TYPE), RESOURCE_EXHAUSTED (ARRAY_BUDGET, DEVICE_MEMORY).
  // Example: client.CreateArray({.dtype = DType::kF32, .shape = {1000}}, Random<float>(7))
  absl::StatusOr<Array> CreateArray(const ArraySpec& spec, const std::optional<FillSpec>& fill = {},
                                    const CallOptions& call = {}) {
    return internal::CreateArray(*connection_, spec, fill, call);
  }

  // The same, on the server that has `beside`: the arrays of one call are of one server.
  static absl::StatusOr<Array> CreateArrayBeside(const ArrayPart& beside, const ArraySpec& spec,
                                                 const std::optional<FillSpec>& fill = {},
                                                 const CallOptions& call = {}) {
    if (beside.connection() == nullptr) {
      return absl::FailedPreconditionError("there is no array that another one could stand beside");
    }
    return internal::CreateArray(*beside.connection(), spec, fill, call);
  }

  // An array of these values, of one dimension. Cost: Array::Write's.
  template <class T>
  absl::StatusOr<Array> CreateArray(absl::Span<const T> values, const Lifetime& lifetime = {},
                                    const CallOptions& call = {}) {
    return internal::UploadArray(*connection_, kDTypeOf<T>, AsBytes(values), lifetime, call);
  }

  // The array of that name, which stays when the handle goes. Cost: a call, which looks for it.
  absl::StatusOr<Array> BorrowArray(std::string_view name, const CallOptions& call = {}) {
    return internal::BorrowArray(*connection_, name, call);
  }

  absl::Status DeleteArray(std::string_view name, const CallOptions& call = {}) {
    return internal::DeleteArray(*connection_, name, call);
  }

  // The caller's arrays, in the order of their names, server by server.
  // Errors: PERMISSION_DENIED (LIST_NEEDS_NAME) for callers without a name: their arrays' names are secrets.
  absl::StatusOr<std::vector<ArrayInfo>> ListArrays(const CallOptions& call = {}) {
    return internal::ListArrays(*connection_, call);
  }

  // Primitives of a resident array: the result comes to this side, or stays on the device (...Into). T is the array's
  // type. Nothing but the result crosses the wire.
  // Errors: FAILED_PRECONDITION for a reverse result (REVERSE_ON_STREAM), or one of columns (AXIS_ON_STREAM), above 1
  // MiB
  //         that is to come to this side, and OUT_OF_RANGE (REPLY_TOO_LARGE) for the values of a reduce. What stays on
  //         the device has no limit.
  // Order: the calls of one array are the caller's to order: one that needs what another still writes is ABORTED
  //        (ARRAY_IN_USE).
  template <class T, class Out = T>
  absl::StatusOr<ScanResult<Out>> Scan(const ArrayPart& values, const ScanOptions<Out>& options = {},
                                       const CallOptions& call = {}) {
    return internal::Scan<T, Out>(values, options, call);
  }
  // Example: client.ScanInto<float>(array, array) scans in place; client.ScanInto<float>(array, NewArray{}) does not.
  template <class T, class Out = T>
  absl::StatusOr<ResidentResult> ScanInto(const ArrayPart& values, const Target& to,
                                          const ScanOptions<Out>& options = {}, const CallOptions& call = {}) {
    return ScanInto<T, Out>(values, ScanTargets{to}, options, call);
  }
  // The same with indices of extrema. In place they do not go.
  // Example: client.ScanInto<float>(array, {.values = NewArray{}, .indices = NewArray{}}, {.op = Op::kMax})
  template <class T, class Out = T>
  absl::StatusOr<ResidentResult> ScanInto(const ArrayPart& values, const ScanTargets& to,
                                          const ScanOptions<Out>& options = {}, const CallOptions& call = {}) {
    return internal::ScanInto<T, Out>(values, to, options, call);
  }

  template <class T, class Out = T>
  absl::StatusOr<ReduceResult<Out>> Reduce(const ArrayPart& values, const ReduceOptions<Out>& options = {},
                                           const CallOptions& call = {}) {
    return internal::Reduce<T, Out>(values, options, call);
  }
  // The value goes into an array of one element, or the first of a part, too: where a program finds it.
  // Errors: INVALID_ARGUMENT (OVERLAP) for a part of the values themselves: a reduce does not work in place.
  template <class T, class Out = T>
  absl::StatusOr<ResidentReduceResult<Out>> ReduceInto(const ArrayPart& values, const Target& to,
                                                       const ReduceOptions<Out>& options = {},
                                                       const CallOptions& call = {}) {
    return internal::ReduceInto<T, Out>(values, to, options, call);
  }

  // select: a Where<T>, or an ArrayPart with a mask, of u8.
  template <class T>
  absl::StatusOr<CompactResult<T>> Compact(const ArrayPart& values, const Selector<T>& select,
                                           const CompactOptions& options = {}, const CallOptions& call = {}) {
    return internal::Compact<T>(values, select, options, call);
  }
  // The results that have a target, options.return_indices notwithstanding.
  // Errors: OUT_OF_RANGE (SINK_TOO_SMALL) where more is kept than a part has room for.
  template <class T>
  absl::StatusOr<ResidentCompactResult> CompactInto(const ArrayPart& values, const Selector<T>& select,
                                                    const CompactTargets& to, const CompactOptions& options = {},
                                                    const CallOptions& call = {}) {
    return internal::CompactInto<T>(values, select, to, options, call);
  }

  template <class T>
  absl::StatusOr<DifferenceResult<T>> Difference(const ArrayPart& values, const DifferenceOptions<T>& options = {},
                                                 const CallOptions& call = {}) {
    return internal::Difference<T>(values, options, call);
  }
  template <class T>
  absl::StatusOr<ResidentResult> DifferenceInto(const ArrayPart& values, const Target& to,
                                                const DifferenceOptions<T>& options = {},
                                                const CallOptions& call = {}) {
    return internal::DifferenceInto<T>(values, to, options, call);
  }

  // Any of these calls, chosen at run time; a scan's without carries. The sink gets the arrays of a result that has no
  // target, in order, in pieces, on the calling thread.
  absl::StatusOr<ResidentReply> RunOnArrays(const Spec& spec, const ArrayPlaces& places, ResultSink sink,
                                            const CallOptions& call = {});

  // ---- Element types known at run time, arrays larger than memory ----
  // As the calls above, from a source to a sink: one unary call where the first chunk is the last and fits, else a
  // stream. The sink gets the result in order, in pieces, on the calling thread; an error from it ends the call with
  // that error. The source is read on another thread once a stream has begun.
  // Retry:  after the first reply never; before it only if the call is unary, the source can rewind, or nothing of it
  //         was taken but the first chunk.
  // Memory: a few chunks, however long the array.
  using ScanSink = client::ScanSink;
  absl::StatusOr<Timing> ScanChunks(const ScanSpec& spec, ChunkSource& source, ScanSink sink,
                                    const CallOptions& call = {}) {
    return internal::ScanChunks(*connection_, spec, source, sink, call);
  }

  absl::StatusOr<ReduceReply> ReduceChunks(const ReduceSpec& spec, ChunkSource& source, const CallOptions& call = {}) {
    return internal::ReduceChunks(*connection_, spec, source, call);
  }

  using CompactSink = client::CompactSink;
  absl::StatusOr<Timing> CompactChunks(const CompactSpec& spec, ChunkSource& source, CompactSink sink,
                                       const CallOptions& call = {}) {
    return internal::CompactChunks(*connection_, spec, source, sink, call);
  }

  using DifferenceSink = client::DifferenceSink;
  absl::StatusOr<Timing> DifferenceChunks(const DifferenceSpec& spec, ChunkSource& source, DifferenceSink sink,
                                          const CallOptions& call = {}) {
    return internal::DifferenceChunks(*connection_, spec, source, sink, call);
  }

  // Any of these calls, chosen at run time, for callers who measure. The sink gets the arrays of the result, a MiB at
  // most at a time; the value of a reduce is dropped.
  absl::StatusOr<Timing> RunChunks(const Spec& spec, ChunkSource& source, ResultSink sink,
                                   const CallOptions& call = {});

  // ---- Programs: program.h ----
  // Runs several operations in one call, whose intermediate arrays never leave the device. The call goes to the server
  // of the program's arrays, whichever client this is; where it uses none, to any of this client's.
  // Shape:  the outputs that have no target come to this side, 1 MiB in all.
  // Errors: the first mistake in making the program; those at the top of programs.proto; INTERNAL where the answer is
  //         none to this program. A program that fails may have written into parts of arrays.
  // Retry:  only where it has not begun: no server was there, or it refused.
  // Cost:   one unary call, and a copy of what is inline.
  absl::StatusOr<ProgramResult> Run(const Program& program, const CallOptions& call = {}) {
    return program.Run(*connection_, call);
  }

  // The same of a program that is known at run time.
  // program_json: a prefixd.v1.RunRequest as JSON. Returns the RunResponse as JSON, with the contract's field names.
  // Errors: INVALID_ARGUMENT for what is no such JSON; those at the top of programs.proto.
  // Retry:  never: a program may have written into arrays.
  absl::StatusOr<std::string> RunProgram(std::string_view program_json, const CallOptions& call = {}) {
    return internal::RunProgram(*connection_, program_json, call);
  }

  // ---- Streams: see stream.h ----
  // Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) if the spec has a value of a type that this client does not know. That
  //         there is no server shows in Write and Finish.
  absl::StatusOr<std::unique_ptr<ScanStream>> OpenScan(const ScanSpec& spec, const CallOptions& call = {}) {
    return internal::OpenScan(*connection_, spec, call);
  }
  absl::StatusOr<std::unique_ptr<ReduceStream>> OpenReduce(const ReduceSpec& spec, const CallOptions& call = {}) {
    return internal::OpenReduce(*connection_, spec, call);
  }
  absl::StatusOr<std::unique_ptr<CompactStream>> OpenCompact(const CompactSpec& spec, const CallOptions& call = {}) {
    return internal::OpenCompact(*connection_, spec, call);
  }

  absl::StatusOr<std::unique_ptr<DifferenceStream>> OpenDifference(const DifferenceSpec& spec,
                                                                   const CallOptions& call = {}) {
    return internal::OpenDifference(*connection_, spec, call);
  }

  // ---- The server itself ----
  // What the server is and serves.
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& call = {}) {
    return internal::GetServerInfo(*connection_, call);
  }

  // Whether the server takes work: true for SERVING. A server that answers NOT_SERVING is no error.
  absl::StatusOr<bool> CheckHealth(const CallOptions& call = {}) { return internal::CheckHealth(*connection_, call); }

  // Measures every combination of the spec on the server's device. The sink gets each as it is measured, or skipped, on
  // the calling thread; an error from it ends the benchmark, and the call with that error.
  // Errors: INVALID_ARGUMENT (BENCHMARK_SPEC), PERMISSION_DENIED (BENCHMARK_OFF), RESOURCE_EXHAUSTED
  //         (BENCHMARK_RUNNING) while there is another.
  // Retry:  not after the first result.
  using BenchmarkSink = client::BenchmarkSink;
  absl::Status RunBenchmark(const BenchmarkSpec& spec, BenchmarkSink sink, const CallOptions& call = {}) {
    return internal::RunBenchmark(*connection_, spec, sink, call);
  }

  // Has the server send the source's bytes back as they came: what the wire takes for them, without any work. One
  // message if they fit it (1 MiB), else a stream of such messages, as the calls of arrays.
  // Needs:  a source of bytes, whose Next does not block.
  // Errors: UNIMPLEMENTED from a server without DiagnosticsService; INTERNAL if another number of bytes came back.
  // Retry:  never, so that what is measured is one attempt.
  absl::Status Echo(ChunkSource& source, const CallOptions& call = {}) {
    return internal::Echo(*connection_, source, call);
  }

 private:
  const std::unique_ptr<const Connection> connection_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CLIENT_H_
