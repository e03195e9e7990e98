// Programs for tests: steps by short names, and a program with what is known of the arrays around it.
#ifndef PREFIXD_TESTS_SERVER_PROGRAMS_H_
#define PREFIXD_TESTS_SERVER_PROGRAMS_H_

#include <string>
#include <utility>

#include "server/program/plan.h"
#include "server/program/program.h"

namespace prefixd {

inline ProgramStep One(const std::string& values, Operation operation, const std::string& out) {
  return {.operation = operation, .reads = {{Role::kValues, values}}, .writes = {{Role::kOut, out}}};
}
inline MapSpec MapOf(MapOp op) {
  MapSpec spec;
  spec.op = op;
  return spec;
}
inline MapSpec CastTo(DType dtype) {
  MapSpec spec = MapOf(MapOp::kCast);
  spec.cast_dtype = dtype;
  return spec;
}
inline ProgramStep Two(const std::string& left, const std::string& right, MapOp op, const std::string& out) {
  return {.operation = MapOf(op), .reads = {{Role::kLeft, left}, {Role::kRight, right}}, .writes = {{Role::kOut, out}}};
}
inline ProgramStep CompactByMask(const std::string& values, const std::string& mask, const std::string& out,
                                 MaskKind kind = MaskKind::kBytes) {
  return {.operation = CompactSpec{.mask_kind = kind},
          .reads = {{Role::kValues, values}, {Role::kMask, mask}},
          .writes = {{Role::kOut, out}}};
}
inline ProgramStep CompactPositive(const std::string& values, const std::string& out) {
  return One(values, CompactSpec{.predicate = Predicate{.comparison = Comparison::kGreater}}, out);
}
inline ProgramStep FillOf(DType dtype, uint64_t num_items, const std::string& out) {
  FillSpec spec;
  spec.dtype = dtype;
  return {.operation = spec, .writes = {{Role::kOut, out}}, .num_items = num_items};
}
inline ProgramStep GatherFrom(const std::string& values, const std::string& indices, const std::string& out) {
  return {.operation = GatherSpec(),
          .reads = {{Role::kValues, values}, {Role::kIndices, indices}},
          .writes = {{Role::kOut, out}}};
}
inline ProgramStep ScatterInto(const std::string& values, const std::string& indices, const std::string& into,
                               const std::string& out) {
  return {.operation = ScatterSpec(),
          .reads = {{Role::kValues, values}, {Role::kIndices, indices}, {Role::kInto, into}},
          .writes = {{Role::kOut, out}}};
}
inline ProgramStep TransposeOf(const std::string& values, uint64_t num_rows, uint64_t num_columns,
                               const std::string& out) {
  TransposeSpec spec;
  spec.num_rows = num_rows;
  spec.num_columns = num_columns;
  return One(values, spec, out);
}
inline ProgramInput Slice(const std::string& name) {
  return {.name = name, .values = ArraySlice{.name = "arrays/" + name}};
}
// A slice as a sink.
inline Sink Into(ArraySlice slice) { return {.kind = Sink::Kind::kArray, .array = std::move(slice)}; }
inline ProgramOutput New(const std::string& name) { return {.name = name, .sink = {.kind = Sink::Kind::kNewArray}}; }

// A program and what is around it.
struct Case {
  Program program;
  ProgramArrays arrays;

  absl::StatusOr<Plan> Planned() const { return MakePlan(program, arrays); }
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_PROGRAMS_H_
