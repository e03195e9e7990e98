// Steps, each as its message in the contract.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "client/program.h"
#include "client/program_rep.h"
#include "proto/program_limits.h"
#include "proto/wire_compact.h"
#include "proto/wire_difference.h"
#include "proto/wire_fill.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "proto/wire_values.h"

namespace prefixd::client {
namespace {

// Writes one step, and defines what it makes.
class StepWriter {
 public:
  StepWriter(internal::ProgramRep& rep, const Operation& operation, absl::Span<const internal::TermId> reads,
             uint64_t num_items)
      : rep_(rep),
        operation_(OperationName(operation)),
        number_(rep.request.steps_size()),
        reads_(reads),
        num_items_(num_items),
        step_(*rep.request.add_steps()) {}

  absl::Status operator()(ScanSpec spec) {
    v1::ScanStep* const wire = step_.mutable_scan();
    const bool has_indices = std::exchange(spec.return_indices, false);  // What is named is made.
    PREFIXD_RETURN_IF_ERROR(WritePrimitive(spec, wire));
    if (has_indices) DefineIfUsed("_indices", spec.index_dtype, wire->mutable_indices_out());
    WriteSegments(spec, wire);
    if (spec.has_coefficients) wire->set_coefficients(Read("coefficients"));
    return absl::OkStatus();
  }

  absl::Status operator()(const ReduceSpec& spec) {
    v1::ReduceStep* const wire = step_.mutable_reduce();
    PREFIXD_RETURN_IF_ERROR(WritePrimitive(spec, wire));
    WriteSegments(spec, wire);
    if (spec.key_dtype) {
      DefineIfUsed("_keys", *spec.key_dtype, wire->mutable_keys_out());
    } else {
      DefineIfUsed("_index", DType::kU64, wire->mutable_index_out());
    }
    return absl::OkStatus();
  }

  absl::Status operator()(CompactSpec spec) {
    v1::CompactStep* const wire = step_.mutable_compact();
    spec.return_indices = false;  // What is named is made.
    PREFIXD_RETURN_IF_ERROR(WriteSpec(spec, wire));
    wire->set_values(Read("values"));
    if (!spec.predicate) wire->set_mask(Read("mask"));
    DefineIfUsed("", spec.dtype, wire->mutable_out());
    DefineIfUsed("_indices", spec.index_dtype, wire->mutable_indices_out());
    DefineIfUsed("_count", DType::kU64, wire->mutable_count_out());
    WriteSegments(spec, wire);
    if (spec.segmented) DefineIfUsed("_counts", DType::kU64, wire->mutable_counts_out());
    return absl::OkStatus();
  }

  absl::Status operator()(const DifferenceSpec& spec) {
    v1::DifferenceStep* const wire = step_.mutable_difference();
    PREFIXD_RETURN_IF_ERROR(WritePrimitive(spec, wire));
    WriteSegments(spec, wire);
    return absl::OkStatus();
  }

  absl::Status operator()(const FillSpec& spec) {
    v1::FillStep* const wire = step_.mutable_fill();
    wire->set_dtype(EncodeEnum<v1::DType>(spec.dtype));
    *wire->mutable_content() = prefixd::ToWire(spec);
    if (reads_.empty()) {
      wire->set_num_items(num_items_);
    } else {
      wire->set_like(Read("like"));
    }
    wire->set_out(Define(spec.dtype));
    return absl::OkStatus();
  }

  absl::Status operator()(const CopySpec& spec) { return WriteOneArray(spec.dtype, step_.mutable_copy()); }

  absl::Status operator()(const MapSpec& spec) {
    switch (spec.op) {
      case MapOp::kCast:
        step_.mutable_cast()->set_dtype(EncodeEnum<v1::DType>(spec.cast_dtype));
        return WriteOneArray(spec.output(), step_.mutable_cast());
      case MapOp::kAffine:
        EncodeScalar(spec.a, spec.dtype, step_.mutable_affine()->mutable_a());
        EncodeScalar(spec.b, spec.dtype, step_.mutable_affine()->mutable_b());
        return WriteOneArray(spec.output(), step_.mutable_affine());
      case MapOp::kAbs:
        return WriteOneArray(spec.output(), step_.mutable_abs());
      case MapOp::kCompare: {
        v1::Predicate* const predicate = step_.mutable_compare()->mutable_predicate();
        predicate->set_comparison(EncodeEnum<v1::Comparison>(spec.comparison));
        if (HasValue(spec.comparison)) EncodeScalar(spec.a, spec.dtype, predicate->mutable_value());
        if (HasEnd(spec.comparison)) EncodeScalar(spec.b, spec.dtype, predicate->mutable_end());
        return WriteOneArray(spec.output(), step_.mutable_compare());
      }
      case MapOp::kCompareArrays:
        step_.mutable_compare_arrays()->set_comparison(EncodeEnum<v1::Comparison>(spec.comparison));
        return WritePair(spec.output(), step_.mutable_compare_arrays());
      case MapOp::kAdd:
        return WritePair(spec.output(), step_.mutable_add());
      case MapOp::kSubtract:
        return WritePair(spec.output(), step_.mutable_subtract());
      case MapOp::kMultiply:
        return WritePair(spec.output(), step_.mutable_multiply());
      case MapOp::kDivide:
        return WritePair(spec.output(), step_.mutable_divide());
      case MapOp::kMinimum:
        return WritePair(spec.output(), step_.mutable_minimum());
      case MapOp::kMaximum:
        return WritePair(spec.output(), step_.mutable_maximum());
    }
    FatalValue("StepWriter", spec.op);
  }

  absl::Status operator()(const GatherSpec& spec) {
    v1::GatherStep* const wire = step_.mutable_gather();
    wire->set_values(Read("values"));
    wire->set_indices(Read("indices"));
    wire->set_out(Define(spec.dtype));
    return absl::OkStatus();
  }

  absl::Status operator()(const ScatterSpec& spec) {
    v1::ScatterStep* const wire = step_.mutable_scatter();
    wire->set_values(Read("values"));
    wire->set_indices(Read("indices"));
    wire->set_into(Read("into"));
    wire->set_out(Define(spec.dtype));
    return absl::OkStatus();
  }

  absl::Status operator()(const TransposeSpec& spec) {
    step_.mutable_transpose()->set_num_rows(spec.num_rows);
    step_.mutable_transpose()->set_num_columns(spec.num_columns);
    return WriteOneArray(spec.dtype, step_.mutable_transpose());
  }

  // Where the step stands in the request.
  std::string Path() const { return StrCat("steps[", number_, "].", operation_); }

 private:
  template <class Spec, class Step>
  absl::Status WriteSpec(Spec spec, Step* wire) {
    spec.num_items.reset();  // Lengths follow from the inputs.
    PREFIXD_ASSIGN_OR_RETURN(*wire->mutable_spec(), prefixd::ToWire(spec));
    return absl::OkStatus();
  }

  template <class Spec, class Step>
  absl::Status WritePrimitive(const Spec& spec, Step* wire) {
    PREFIXD_RETURN_IF_ERROR(WriteSpec(spec, wire));
    return WriteOneArray(spec.output(), wire);
  }

  template <class Spec, class Step>
  void WriteSegments(const Spec& spec, Step* wire) {
    if (!spec.segmented) return;
    spec.key_dtype ? wire->set_keys(Read("keys")) : wire->set_segment_offsets(Read("segment_offsets"));
  }

  template <class Step>
  absl::Status WriteOneArray(DType out_dtype, Step* wire) {
    wire->set_values(Read("values"));
    wire->set_out(Define(out_dtype));
    return absl::OkStatus();
  }

  template <class Step>
  absl::Status WritePair(DType out_dtype, Step* wire) {
    wire->set_left(Read("left"));
    wire->set_right(Read("right"));
    wire->set_out(Define(out_dtype));
    return absl::OkStatus();
  }

  // The name of what the step reads next.
  std::string Read(std::string_view field) {
    const internal::TermId term = reads_.front();
    reads_.remove_prefix(1);
    return rep_.Use(term, StrCat(Path(), ".", field));
  }

  std::string Named(std::string_view suffix) const { return StrCat(operation_, "_", number_, suffix); }
  // Defines what the step makes in any case, and returns its name.
  std::string Define(DType dtype) {
    rep_.Define(Named(""), dtype);
    return Named("");
  }
  void DefineIfUsed(std::string_view suffix, DType dtype, std::string* field) {
    rep_.Define(Named(suffix), dtype, field);
  }

  internal::ProgramRep& rep_;
  const std::string_view operation_;
  const int number_;
  absl::Span<const internal::TermId> reads_;
  const uint64_t num_items_;
  v1::Step& step_;
};

}  // namespace

internal::TermId Program::AddStep(const Operation& operation, absl::Span<const Id> reads, uint64_t num_items) {
  internal::ProgramRep& program = rep();
  if (!program.status.ok()) return {};
  if (program.request.steps_size() == kMaxProgramSteps) {
    program.Fail(internal::TooMany("steps", kMaxProgramSteps));
    return {};
  }
  const Id first = {program.number, program.terms.size()};
  StepWriter writer(program, operation, reads, num_items);
  if (absl::Status status = std::visit(writer, operation); !status.ok()) {
    program.Fail(InPart(std::move(status), writer.Path()));
  }
  return program.status.ok() ? first : Id();
}

void Program::FailFor(std::string_view step, std::string_view field, std::string_view why) {
  rep().Fail(InvalidField("FIELD_CONFLICT", StrCat("steps[", rep().request.steps_size(), "].", step, ".", field), why));
}

template <class Part>
void Program::FailForArrays(std::string_view step, const Part& part) {
  if (!part.segments && !part.keys) return;
  FailFor(step, part.segments ? "segments" : "keys",
          "what cuts a step's array is an array of the program: expected none here, pass a Cut");
}

template <class Spec>
internal::TermId Program::AddCutStep(Spec spec, std::initializer_list<std::optional<Id>> reads, const Cut& cut) {
  if (!rep().status.ok()) return {};
  spec.segmented = cut.by_.has_value();
  spec.key_dtype = cut.key_dtype_;
  std::vector<Id> ids;
  for (const std::optional<Id>& read : reads) {
    if (read) ids.push_back(*read);
  }
  return AddStep(spec, ids);
}

internal::TermId Program::AddScan(const internal::ScanPart& part, Id values, std::optional<Id> coefficients,
                                  const Cut& cut) {
  if (part.carry_in || part.return_carry) {
    FailFor("scan", part.carry_in ? "carry_in" : "return_carry",
            "carries are of scans in parts, and a step scans all of its array: expected none, use Client::Scan for "
            "parts");
  }
  FailForArrays("scan", part);
  if (part.has_coefficients) {
    FailFor("scan", "coefficients",
            "the coefficients of a step are an array of the program: expected none here, use ScanRecurrence");
  }
  ScanSpec spec = part;
  spec.has_coefficients = coefficients.has_value();
  return AddCutStep(spec, {values, cut.by_, coefficients}, cut);
}

internal::TermId Program::AddReduce(const internal::ReducePart& part, Id values, const Cut& cut) {
  FailForArrays("reduce", part);
  if (part.return_keys) FailFor("reduce", "return_keys", "the keys of a step's runs are made if their term is used");
  return AddCutStep<ReduceSpec>(part, {values, cut.by_}, cut);
}

internal::TermId Program::AddCompact(const internal::CompactPart& part, Id values, std::optional<Id> mask,
                                     const Cut& cut) {
  FailForArrays("compact", part);
  return AddCutStep<CompactSpec>(part, {values, mask, cut.by_}, cut);
}

internal::TermId Program::AddDifference(const internal::DifferencePart& part, Id values, const Cut& cut) {
  FailForArrays("difference", part);
  return AddCutStep<DifferenceSpec>(part, {values, cut.by_}, cut);
}

internal::TermId Program::AddFill(DType dtype, const FillSpec& fill, absl::Span<const Id> reads, uint64_t num_items) {
  internal::ProgramRep& program = rep();
  if (fill.dtype != dtype) {
    program.Fail(InvalidField("PROGRAM_TYPE", StrCat("steps[", program.request.steps_size(), "].fill.content"),
                              StrCat("the array is to be of ", Name(dtype), " and its contents of ", Name(fill.dtype),
                                     ": expected the same type")));
  }
  return AddStep(fill, reads, num_items);
}

}  // namespace prefixd::client
