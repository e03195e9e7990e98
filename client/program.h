// Programs: several operations in one call, whose intermediate arrays never leave the server's device.
//
//   Program program;
//   const auto x = program.Input<float>(array);  // A resident array, array.h.
//   const auto positive = program.Compact(x, {Comparison::kGreater, 0});
//   const auto total = program.Reduce<float, double>(positive.values);
//   const auto running = program.Scan(positive.values);
//   program.Output(positive.count);
//   program.Output(total.value);
//   program.Output(running, NewArray{});
//   absl::StatusOr<ProgramResult> result = client.Run(program);
//   uint64_t count = *result->Value(positive.count);
//   Array totals = *result->TakeArray(running);
//
// Each method that adds a step returns terms for what the step makes; later steps and outputs take them. Nothing is
// sent before Client::Run, and a program may run any number of times. What is neither read nor an output is an error
// (PROGRAM_NOT_READ), but for what a scan, a reduce or a compact can leave out: it is made if it is used.
//
// Shape:  (n) is the length of what a step reads, as in programs.proto. Arrays that are read together are equally long,
//         and known to be before the program runs.
// Errors: a mistake that shows while the program is made, as a term of another program, is kept: Run returns the first,
//         before anything is sent. The rest is the server's to find (programs.proto); its errors name steps and arrays
//         as they were numbered: steps[3].scan.values, scan_3. The steps of a program count from 0.
// Source: proto/prefixd/v1/programs.proto has the contract, kernels/NUMERICS.md the arithmetic.
#ifndef PREFIXD_CLIENT_PROGRAM_H_
#define PREFIXD_CLIENT_PROGRAM_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/array.h"
#include "client/chunk.h"
#include "client/compact.h"
#include "client/difference.h"
#include "client/options.h"
#include "client/program_result.h"
#include "client/reduce.h"
#include "client/scan.h"
#include "kernels/operation.h"
#include "kernels/types.h"

namespace prefixd::client {

namespace internal {
struct ProgramRep;  // program_rep.h, which is private to the library.
}  // namespace internal

// What cuts the array of a step into segments, each of which is an array of its own. By default nothing does.
class Cut {
 public:
  Cut() = default;
  // offsets: (segments + 1), as in ScanOptions::segments.
  static Cut AtOffsets(Term<uint64_t> offsets) { return {offsets.id_, std::nullopt}; }
  // keys: (n), as in ScanOptions::keys.
  template <class K>
  static Cut ByKeys(Term<K> keys) {
    return {keys.id_, kDTypeOf<K>};
  }

 private:
  friend Program;
  Cut(internal::TermId by, std::optional<DType> key_dtype) : by_(by), key_dtype_(key_dtype) {}

  std::optional<internal::TermId> by_;
  std::optional<DType> key_dtype_;
};

// What a reduce makes.
template <class T>
struct Reduction {
  Term<T> value;         // (1); along an axis a value for each row or column, of segments for each; no index then.
  Term<uint64_t> index;  // (1), if it is used. MIN and MAX: the first element with that value; 2^64 - 1 where none is.
};

// What a reduce by keys makes.
template <class T, class K>
struct Runs {
  Term<T> values;  // (runs)
  Term<K> keys;    // (runs), if it is used.
};

// What a scan by min or max makes.
template <class T>
struct Extrema {
  Term<T> values;          // (n)
  Term<uint64_t> indices;  // (n), if it is used: where they stand.
};

// What a compact makes, as far as it is used.
template <class T>
struct Selection {
  Term<T> values;          // (kept)
  Term<uint64_t> indices;  // (kept): where they stood.
  Term<uint64_t> count;    // (1): how many they are.
  Term<uint64_t> counts;   // (segments), or (runs): how many of each. Where there is a cut.
};

// The types of indices that gather and scatter read.
template <class T>
concept IndexType = std::same_as<T, uint32_t> || std::same_as<T, uint64_t>;

// A program: up to 64 inputs, 64 steps and 64 outputs. Element types are those of client.h.
// Owns:    copies of what is inline. It keeps no array: those that it names have to be there when it runs.
// Threads: const methods from any thread, any number at once; the others alone.
class Program {
 public:
  Program();
  Program(Program&&) noexcept;  // What was moved from is a program without steps. Terms go with the steps.
  Program& operator=(Program&&) noexcept;
  ~Program();

  // ---- Inputs ----
  // A part of a resident array. All arrays of a program, those of its outputs too, are of one server and one client.
  // Errors: INVALID_ARGUMENT (FIELD_CONFLICT) for another server's, FAILED_PRECONDITION for no array's.
  template <class T>
  Term<T> Input(const ArrayPart& array) {
    return Term<T>(AddInput(kDTypeOf<T>, array));
  }
  // Elements that go with the program, each time it runs: a program has 64 KiB with them.
  template <class T>
  Term<T> Input(absl::Span<const T> elements) {
    return Term<T>(AddInput(kDTypeOf<T>, AsBytes(elements)));
  }

  // ---- Primitives: options and arithmetic are those of the calls ----
  // Whatever a step reads is a term: segments, keys and coefficients of the options have no use here.

  // (n) from (n). Without a carry: a step scans all of its array.
  template <class T, class Out = T>
  Term<Out> Scan(Term<T> values, const ScanOptions<Out>& options = {}, Cut cut = {}) {
    return Term<Out>(AddScan(internal::PartOf<T>(options, 0), values.id_, std::nullopt, cut));
  }

  // Extrema, and where they stand: options.op is kMin or kMax, and return_indices has no use here.
  template <class T>
  Extrema<T> ScanExtrema(Term<T> values, ScanOptions<T> options, Cut cut = {}) {
    options.return_indices = true;
    const Id extrema = AddScan(internal::PartOf<T>(options, 0), values.id_, std::nullopt, cut);
    return {Term<T>(extrema), Term<uint64_t>(Behind(extrema, 1))};
  }

  // By a linear recurrence. coefficients: (n); one for all is ScanOptions::coefficient.
  template <class T>
  Term<T> ScanRecurrence(Term<T> values, Term<T> coefficients, ScanOptions<T> options = {}, Cut cut = {}) {
    options.op = Op::kLinearRecurrence;
    return Term<T>(AddScan(internal::PartOf<T>(options, 0), values.id_, coefficients.id_, cut));
  }

  template <class T, class Out = T>
  Reduction<Out> Reduce(Term<T> values, const ReduceOptions<Out>& options = {}, Cut cut = {}) {
    const Id value = AddReduce(internal::PartOf<T>(options, 0), values.id_, cut);
    return {Term<Out>(value), Term<uint64_t>(cut.by_ ? Id() : Behind(value, 1))};
  }
  // A value for each run of equal keys, and its key, if that is used. return_keys has no use here.
  template <class T, class K, class Out = T>
  Runs<Out, K> ReduceByKeys(Term<T> values, Term<K> keys, const ReduceOptions<Out>& options = {}) {
    const Id value = AddReduce(internal::PartOf<T>(options, 0), values.id_, Cut::ByKeys(keys));
    return {Term<Out>(value), Term<K>(Behind(value, 1))};
  }

  // options.return_indices has no use here: indices are made if their term is used.
  template <class T>
  Selection<T> Compact(Term<T> values, const Where<std::type_identity_t<T>>& where, const CompactOptions& options = {},
                       Cut cut = {}) {
    return SelectionOf<T>(
        AddCompact(internal::SpecOf<T>(Selector<T>(where), options, 0), values.id_, std::nullopt, cut), cut);
  }
  // mask: (n), or an eighth of it, rounded up, where options.mask_kind says bits.
  template <class T>
  Selection<T> Compact(Term<T> values, Term<uint8_t> mask, const CompactOptions& options = {}, Cut cut = {}) {
    return SelectionOf<T>(
        AddCompact(internal::PartOf(CompactSpec{.dtype = kDTypeOf<T>}, options), values.id_, mask.id_, cut), cut);
  }

  // (n) from (n)
  template <class T>
  Term<T> Difference(Term<T> values, const DifferenceOptions<T>& options = {}, Cut cut = {}) {
    return Term<T>(AddDifference(internal::PartOf(options, 0), values.id_, cut));
  }

  // ---- What stands between them ----
  // (num_items) of what the fill says, as CreateArray.
  // Errors: INVALID_ARGUMENT (PROGRAM_TYPE) for a fill of another type.
  // Example: program.Fill<int32_t>(3, Iota<int32_t>(5)) -> [5,6,7]
  template <class T>
  Term<T> Fill(uint64_t num_items, const FillSpec& fill) {
    return Term<T>(AddFill(kDTypeOf<T>, fill, {}, num_items));
  }
  // The same, as long as an array of any type.
  template <class T, class Like>
  Term<T> FillLike(Term<Like> like, const FillSpec& fill) {
    return Term<T>(AddFill(kDTypeOf<T>, fill, {like.id_}, 0));
  }

  // An input that is to be an output, or what is to be two.
  template <class T>
  Term<T> Copy(Term<T> values) {
    return Term<T>(AddStep(CopySpec{.dtype = kDTypeOf<T>}, {values.id_}));
  }

  // Integers keep their low bits; floats lose their fraction, and what is too large becomes the largest.
  template <class To, class T>
  Term<To> Cast(Term<T> values) {
    return Term<To>(
        AddStep(MapSpec{.op = MapOp::kCast, .dtype = kDTypeOf<T>, .cast_dtype = kDTypeOf<To>}, {values.id_}));
  }

  // out[i] = a * values[i] + b
  template <class T>
  Term<T> Affine(Term<T> values, std::type_identity_t<T> a, std::type_identity_t<T> b) {
    const MapSpec spec = {.op = MapOp::kAffine, .dtype = kDTypeOf<T>, .a = Value::Of(a), .b = Value::Of(b)};
    return Term<T>(AddStep(spec, {values.id_}));
  }

  template <class T>
  Term<T> Abs(Term<T> values) {
    return Term<T>(AddStep(MapSpec{.op = MapOp::kAbs, .dtype = kDTypeOf<T>}, {values.id_}));
  }

  // A mask: 1 where the comparison holds, else 0.
  template <class T>
  Term<uint8_t> Compare(Term<T> values, const Where<std::type_identity_t<T>>& where) {
    const MapSpec spec = {.op = MapOp::kCompare,
                          .dtype = kDTypeOf<T>,
                          .comparison = where.comparison,
                          .a = Value::Of(where.value),
                          .b = Value::Of(where.end)};
    return Term<uint8_t>(AddStep(spec, {values.id_}));
  }
  // left[i] comparison right[i]; not of kIsNan, kIsFinite and kInRange.
  template <class T>
  Term<uint8_t> Compare(Term<T> left, Comparison comparison, Term<T> right) {
    return Term<uint8_t>(AddStep(MapSpec{.op = MapOp::kCompareArrays, .dtype = kDTypeOf<T>, .comparison = comparison},
                                 {left.id_, right.id_}));
  }

  // (n) from (n) and (n). Integers wrap.
  template <class T>
  Term<T> Add(Term<T> left, Term<T> right) {
    return Pair(MapOp::kAdd, left, right);
  }
  template <class T>
  Term<T> Subtract(Term<T> left, Term<T> right) {
    return Pair(MapOp::kSubtract, left, right);
  }
  template <class T>
  Term<T> Multiply(Term<T> left, Term<T> right) {
    return Pair(MapOp::kMultiply, left, right);
  }
  // Integers: toward zero, and by zero 0.
  template <class T>
  Term<T> Divide(Term<T> left, Term<T> right) {
    return Pair(MapOp::kDivide, left, right);
  }
  // A NaN if one is, and -0 is below +0; so Maximum.
  template <class T>
  Term<T> Minimum(Term<T> left, Term<T> right) {
    return Pair(MapOp::kMinimum, left, right);
  }
  template <class T>
  Term<T> Maximum(Term<T> left, Term<T> right) {
    return Pair(MapOp::kMaximum, left, right);
  }

  // out[i] = values[indices[i]]; 0 where the index is too large, which StepTiming::num_bad_indices counts.
  // Shape: as many as indices.
  template <class T, IndexType Index>
  Term<T> Gather(Term<T> values, Term<Index> indices) {
    const GatherSpec spec = {.dtype = kDTypeOf<T>, .index_dtype = kDTypeOf<Index>};
    return Term<T>(AddStep(spec, {values.id_, indices.id_}));
  }

  // `into`, but for out[indices[i]] = values[i]. An index that is too large writes nothing, and is counted as in
  // Gather; of several items with the same index one is written, and it is not defined which. Shape: as many as into.
  template <class T, IndexType Index>
  Term<T> Scatter(Term<T> values, Term<Index> indices, Term<T> into) {
    const ScatterSpec spec = {.dtype = kDTypeOf<T>, .index_dtype = kDTypeOf<Index>};
    return Term<T>(AddStep(spec, {values.id_, indices.id_, into.id_}));
  }

  // out[c][r] = values[r][c]. Shape: (num_rows * num_columns), a known number; so the result.
  template <class T>
  Term<T> Transpose(Term<T> values, uint64_t num_rows, uint64_t num_columns) {
    const TransposeSpec spec = {.dtype = kDTypeOf<T>, .num_rows = num_rows, .num_columns = num_columns};
    return Term<T>(AddStep(spec, {values.id_}));
  }

  // ---- Outputs: what steps make, each once ----
  // Comes to this side. A program has 1 MiB of that.
  template <class T>
  void Output(Term<T> term) {
    AddOutput(term.id_, std::nullopt);
  }
  // Goes into an array that is made for it each time the program runs, or into a part of one, which may be an input's,
  // exactly: the input keeps its elements until all steps have run.
  // Errors: as Input.
  template <class T>
  void Output(Term<T> term, const Target& to) {
    AddOutput(term.id_, to);
  }

  // For Client, which says more.
  absl::StatusOr<ProgramResult> Run(const Connection& connection, const CallOptions& call) const;

 private:
  using Id = internal::TermId;

  Id AddInput(DType dtype, const ArrayPart& array);
  Id AddInput(DType dtype, Bytes elements);
  // Adds a step that reads these, in the order of its message's fields, and returns the first term of what it makes.
  // The others have the numbers behind it. num_items: a fill's, where it reads nothing.
  Id AddStep(const Operation& operation, absl::Span<const Id> reads, uint64_t num_items = 0);
  Id AddStep(const Operation& operation, std::initializer_list<Id> reads) {
    return AddStep(operation, absl::MakeConstSpan(reads.begin(), reads.size()));
  }
  // Errors: INVALID_ARGUMENT (FIELD_CONFLICT) for a carry, or where the options name what a step reads as a term.
  Id AddScan(const internal::ScanPart& part, Id values, std::optional<Id> coefficients, const Cut& cut);
  Id AddReduce(const internal::ReducePart& part, Id values, const Cut& cut);
  Id AddCompact(const internal::CompactPart& part, Id values, std::optional<Id> mask, const Cut& cut);
  Id AddDifference(const internal::DifferencePart& part, Id values, const Cut& cut);
  // reads: what of these there is.
  template <class Spec>
  Id AddCutStep(Spec spec, std::initializer_list<std::optional<Id>> reads, const Cut& cut);
  // Fails with FIELD_CONFLICT. field: of the options.
  void FailFor(std::string_view step, std::string_view field, std::string_view why);
  // Fails where the options have arrays that cut.
  template <class Part>
  void FailForArrays(std::string_view step, const Part& part);
  Id AddFill(DType dtype, const FillSpec& fill, absl::Span<const Id> reads, uint64_t num_items);
  void AddOutput(Id term, const std::optional<Target>& to);
  internal::ProgramRep& rep();

  static Id Behind(Id first, uint64_t count) { return {first.program, first.number + count}; }
  template <class T>
  static Selection<T> SelectionOf(Id first, const Cut& cut) {
    return {Term<T>(first), Term<uint64_t>(Behind(first, 1)), Term<uint64_t>(Behind(first, 2)),
            Term<uint64_t>(cut.by_ ? Behind(first, 3) : Id())};
  }
  template <class T>
  Term<T> Pair(MapOp op, Term<T> left, Term<T> right) {
    return Term<T>(AddStep(MapSpec{.op = op, .dtype = kDTypeOf<T>}, {left.id_, right.id_}));
  }

  std::unique_ptr<internal::ProgramRep> rep_;  // Null: nothing was added.
};

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

absl::StatusOr<std::string> RunProgram(const Connection& connection, std::string_view program_json,
                                       const CallOptions& call);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_PROGRAM_H_
