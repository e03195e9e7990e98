#include "server/rpc/wire_program.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/wire_array.h"
#include "proto/wire_compact.h"
#include "proto/wire_difference.h"
#include "proto/wire_fill.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "proto/wire_spec.h"
#include "proto/wire_values.h"

namespace prefixd {
namespace {

// ---- Steps, each of the messages in Step. Fields are those of the step's own message. ------------------------------

// An array that a step may do without. Those that it needs are there also without a name, which MakePlan refuses.
void AddIfNamed(Role role, const std::string& name, std::vector<NamedArray>* arrays) {
  if (!name.empty()) arrays->push_back({role, name});
}

ProgramStep OneArray(const std::string& values, const std::string& out, const Operation& operation) {
  return {.operation = operation, .reads = {{Role::kValues, values}}, .writes = {{Role::kOut, out}}};
}

ProgramStep TwoArrays(const std::string& left, const std::string& right, const std::string& out, MapSpec spec) {
  return {.operation = spec, .reads = {{Role::kLeft, left}, {Role::kRight, right}}, .writes = {{Role::kOut, out}}};
}

MapSpec MapOf(MapOp op) {
  MapSpec spec;
  spec.op = op;
  return spec;
}

// A primitive that reads `values` and writes `out`, at least.
template <class WireStep>
absl::StatusOr<ProgramStep> DecodePrimitive(const WireStep& wire) {
  if (!wire.has_spec()) {
    return InvalidField("SPEC_MISSING", "spec", "the step has no spec: set it");
  }
  PREFIXD_ASSIGN_OR_RETURN(const Operation operation, FromWire(wire.spec()));
  return OneArray(wire.values(), wire.out(), operation);
}

// What the spec returns has a name.
template <class WireStep>
absl::Status CheckIndicesOut(const WireStep& wire) {
  if (!wire.spec().return_indices() || !wire.indices_out().empty()) return absl::OkStatus();
  return InvalidField("FIELD_CONFLICT", "spec.return_indices",
                      "nothing names the indices: set indices_out, or leave return_indices out");
}

absl::StatusOr<ProgramStep> Decode(const v1::ScanStep& wire) {
  PREFIXD_ASSIGN_OR_RETURN(ProgramStep step, DecodePrimitive(wire));
  PREFIXD_RETURN_IF_ERROR(CheckIndicesOut(wire));
  AddIfNamed(Role::kSegmentOffsets, wire.segment_offsets(), &step.reads);
  AddIfNamed(Role::kCoefficients, wire.coefficients(), &step.reads);
  AddIfNamed(Role::kKeys, wire.keys(), &step.reads);
  AddIfNamed(Role::kIndicesOut, wire.indices_out(), &step.writes);
  return step;
}
absl::StatusOr<ProgramStep> Decode(const v1::DifferenceStep& wire) {
  PREFIXD_ASSIGN_OR_RETURN(ProgramStep step, DecodePrimitive(wire));
  AddIfNamed(Role::kSegmentOffsets, wire.segment_offsets(), &step.reads);
  AddIfNamed(Role::kKeys, wire.keys(), &step.reads);
  return step;
}

absl::StatusOr<ProgramStep> Decode(const v1::ReduceStep& wire) {
  PREFIXD_ASSIGN_OR_RETURN(ProgramStep step, DecodePrimitive(wire));
  AddIfNamed(Role::kSegmentOffsets, wire.segment_offsets(), &step.reads);
  AddIfNamed(Role::kKeys, wire.keys(), &step.reads);
  AddIfNamed(Role::kIndexOut, wire.index_out(), &step.writes);
  AddIfNamed(Role::kKeysOut, wire.keys_out(), &step.writes);
  return step;
}

absl::StatusOr<ProgramStep> Decode(const v1::CompactStep& wire) {
  PREFIXD_ASSIGN_OR_RETURN(ProgramStep step, DecodePrimitive(wire));
  if (wire.spec().omit_values() && !wire.out().empty()) {
    return InvalidField("FIELD_CONFLICT", "spec.omit_values",
                        "out names values that the spec omits: leave one of them out");
  }
  PREFIXD_RETURN_IF_ERROR(CheckIndicesOut(wire));
  AddIfNamed(Role::kMask, wire.mask(), &step.reads);
  AddIfNamed(Role::kSegmentOffsets, wire.segment_offsets(), &step.reads);
  AddIfNamed(Role::kKeys, wire.keys(), &step.reads);
  step.writes.clear();
  AddIfNamed(Role::kOut, wire.out(), &step.writes);
  AddIfNamed(Role::kIndicesOut, wire.indices_out(), &step.writes);
  AddIfNamed(Role::kCountOut, wire.count_out(), &step.writes);
  AddIfNamed(Role::kCountsOut, wire.counts_out(), &step.writes);
  return step;
}

absl::StatusOr<ProgramStep> Decode(const v1::FillStep& wire) {
  PREFIXD_ASSIGN_OR_RETURN(const DType dtype, DecodeDType(wire.dtype(), "dtype"));
  const absl::StatusOr<FillSpec> spec = FromWire(wire.content(), dtype);
  if (!spec.ok()) return InPart(spec.status(), "content");
  ProgramStep step = {.operation = *spec, .writes = {{Role::kOut, wire.out()}}};
  switch (wire.length_case()) {
    case v1::FillStep::kNumItems:
      step.num_items = wire.num_items();
      return step;
    case v1::FillStep::kLike:
      step.reads = {{Role::kLike, wire.like()}};
      return step;
    case v1::FillStep::LENGTH_NOT_SET:
      break;
  }
  return InvalidField("FIELD_CONFLICT", "num_items", "nothing says how long the array is: set num_items, or like");
}

absl::StatusOr<ProgramStep> Decode(const v1::CopyStep& wire) { return OneArray(wire.values(), wire.out(), CopySpec()); }

absl::StatusOr<ProgramStep> Decode(const v1::CastStep& wire) {
  MapSpec spec = MapOf(MapOp::kCast);
  PREFIXD_ASSIGN_OR_RETURN(spec.cast_dtype, DecodeDType(wire.dtype(), "dtype"));
  return OneArray(wire.values(), wire.out(), spec);
}

absl::StatusOr<ProgramStep> Decode(const v1::AffineStep& wire) {
  ProgramStep step = OneArray(wire.values(), wire.out(), MapOf(MapOp::kAffine));
  if (wire.has_a()) {
    PREFIXD_ASSIGN_OR_RETURN(step.a, DecodeNumber(wire.a(), "a"));
  }
  if (wire.has_b()) {
    PREFIXD_ASSIGN_OR_RETURN(step.b, DecodeNumber(wire.b(), "b"));
  }
  return step;
}

absl::StatusOr<ProgramStep> Decode(const v1::AbsStep& wire) {
  return OneArray(wire.values(), wire.out(), MapOf(MapOp::kAbs));
}

absl::StatusOr<ProgramStep> Decode(const v1::CompareStep& wire) {
  MapSpec spec = MapOf(MapOp::kCompare);
  PREFIXD_ASSIGN_OR_RETURN(spec.comparison,
                           DecodeEnum<Comparison>(wire.predicate().comparison(), "predicate.comparison"));
  ProgramStep step = OneArray(wire.values(), wire.out(), spec);
  if (wire.predicate().has_value()) {
    PREFIXD_ASSIGN_OR_RETURN(step.a, DecodeNumber(wire.predicate().value(), "predicate.value"));
  }
  if (wire.predicate().has_end()) {
    PREFIXD_ASSIGN_OR_RETURN(step.b, DecodeNumber(wire.predicate().end(), "predicate.end"));
  }
  return step;
}

absl::StatusOr<ProgramStep> Decode(const v1::CompareArraysStep& wire) {
  MapSpec spec = MapOf(MapOp::kCompareArrays);
  PREFIXD_ASSIGN_OR_RETURN(spec.comparison, DecodeEnum<Comparison>(wire.comparison(), "comparison"));
  return TwoArrays(wire.left(), wire.right(), wire.out(), spec);
}

absl::StatusOr<ProgramStep> Decode(const v1::PairStep& wire, MapOp op) {
  return TwoArrays(wire.left(), wire.right(), wire.out(), MapOf(op));
}

absl::StatusOr<ProgramStep> Decode(const v1::GatherStep& wire) {
  return ProgramStep{.operation = GatherSpec(),
                     .reads = {{Role::kValues, wire.values()}, {Role::kIndices, wire.indices()}},
                     .writes = {{Role::kOut, wire.out()}}};
}

absl::StatusOr<ProgramStep> Decode(const v1::ScatterStep& wire) {
  return ProgramStep{
      .operation = ScatterSpec(),
      .reads = {{Role::kValues, wire.values()}, {Role::kIndices, wire.indices()}, {Role::kInto, wire.into()}},
      .writes = {{Role::kOut, wire.out()}}};
}

absl::StatusOr<ProgramStep> Decode(const v1::TransposeStep& wire) {
  TransposeSpec spec;
  spec.num_rows = wire.num_rows();
  spec.num_columns = wire.num_columns();
  return OneArray(wire.values(), wire.out(), spec);
}

absl::StatusOr<ProgramStep> Decode(const v1::Step& wire) {
  switch (wire.operation_case()) {
    case v1::Step::kScan:
      return Decode(wire.scan());
    case v1::Step::kReduce:
      return Decode(wire.reduce());
    case v1::Step::kCompact:
      return Decode(wire.compact());
    case v1::Step::kDifference:
      return Decode(wire.difference());
    case v1::Step::kFill:
      return Decode(wire.fill());
    case v1::Step::kCopy:
      return Decode(wire.copy());
    case v1::Step::kCast:
      return Decode(wire.cast());
    case v1::Step::kAffine:
      return Decode(wire.affine());
    case v1::Step::kAbs:
      return Decode(wire.abs());
    case v1::Step::kCompare:
      return Decode(wire.compare());
    case v1::Step::kCompareArrays:
      return Decode(wire.compare_arrays());
    case v1::Step::kAdd:
      return Decode(wire.add(), MapOp::kAdd);
    case v1::Step::kSubtract:
      return Decode(wire.subtract(), MapOp::kSubtract);
    case v1::Step::kMultiply:
      return Decode(wire.multiply(), MapOp::kMultiply);
    case v1::Step::kDivide:
      return Decode(wire.divide(), MapOp::kDivide);
    case v1::Step::kMinimum:
      return Decode(wire.minimum(), MapOp::kMinimum);
    case v1::Step::kMaximum:
      return Decode(wire.maximum(), MapOp::kMaximum);
    case v1::Step::kGather:
      return Decode(wire.gather());
    case v1::Step::kScatter:
      return Decode(wire.scatter());
    case v1::Step::kTranspose:
      return Decode(wire.transpose());
    case v1::Step::OPERATION_NOT_SET:
      break;
  }
  return InvalidField("FIELD_CONFLICT", "",
                      "the step has no operation, or one that only a newer server knows: set one");
}

// "scan"; empty if no operation is set.
std::string OperationField(const v1::Step& step) {
  const auto* const field = v1::Step::descriptor()->FindFieldByNumber(step.operation_case());
  return field == nullptr ? std::string() : std::string(field->name());
}

// ---- What is around them -------------------------------------------------------------------------------------------

absl::StatusOr<ProgramInput> Decode(v1::ProgramInput* wire) {
  ProgramInput input = {.name = wire->name()};
  if (wire->dtype() != v1::DTYPE_UNSPECIFIED) {
    PREFIXD_ASSIGN_OR_RETURN(input.dtype, DecodeDType(wire->dtype(), "dtype"));
  }
  switch (wire->values().source_case()) {
    case v1::Operand::kArray:
      input.values = FromWire(wire->values().array());
      return input;
    case v1::Operand::kInline: {
      v1::InlineChunk* const chunk = wire->mutable_values()->mutable_inline_();
      if (chunk->first_item() != 0) {
        return InvalidField(
            "CHUNK_OUT_OF_ORDER", "values.inline.first_item",
            StrCat("the elements start at number ", chunk->first_item(), ": an input comes whole, from 0 on"));
      }
      input.values = Payload(std::move(*chunk->mutable_data()));
      return input;
    }
    case v1::Operand::kSharedMemory:
      return NotImplemented("values.shared_memory", "shared memory");
    case v1::Operand::kDeviceMemory:
      return NotImplemented("values.device_memory", "a caller's device memory");
    case v1::Operand::SOURCE_NOT_SET:
      break;
  }
  return InvalidField("FIELD_CONFLICT", "values", "nothing says where the elements are: set array, or inline");
}

absl::StatusOr<ProgramOutput> Decode(const v1::ProgramOutput& wire) {
  ProgramOutput output = {.name = wire.name()};
  PREFIXD_ASSIGN_OR_RETURN(output.sink, FromWire(wire.sink(), "sink"));
  return output;
}

}  // namespace

absl::StatusOr<Program> FromWire(v1::RunRequest request) {
  Program program;
  for (int i = 0; i < request.inputs_size(); ++i) {
    absl::StatusOr<ProgramInput> input = Decode(request.mutable_inputs(i));
    if (!input.ok()) return InPart(input.status(), StrCat("inputs[", i, "]"));
    program.inputs.push_back(*std::move(input));
  }
  for (int i = 0; i < request.steps_size(); ++i) {
    const std::string operation = OperationField(request.steps(i));
    absl::StatusOr<ProgramStep> step = Decode(request.steps(i));
    if (!step.ok()) return InPart(step.status(), StrCat("steps[", i, "]", operation.empty() ? "" : ".", operation));
    program.steps.push_back(*std::move(step));
  }
  for (int i = 0; i < request.outputs_size(); ++i) {
    absl::StatusOr<ProgramOutput> output = Decode(request.outputs(i));
    if (!output.ok()) return InPart(output.status(), StrCat("outputs[", i, "]"));
    program.outputs.push_back(*std::move(output));
  }
  return program;
}

}  // namespace prefixd
