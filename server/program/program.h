// A program in the server's own words: steps over named arrays, each of them written once. The contract is in
// proto/prefixd/v1/programs.proto. Nothing here is checked yet: MakePlan (plan.h) does that.
//
//   Program program = {
//       .inputs = {{.name = "x", .values = ArraySlice{.name = "arrays/..."}}},
//       .steps = {{.operation = ScanSpec{}, .reads = {{Role::kValues, "x"}}, .writes = {{Role::kOut, "y"}}}},
//       .outputs = {{.name = "y", .sink = {.kind = Sink::Kind::kNewArray}}}};
//
// Everything here is a value: no threads. Ownership: a program keeps the bytes of its inline inputs.
#ifndef PREFIXD_SERVER_PROGRAM_PROGRAM_H_
#define PREFIXD_SERVER_PROGRAM_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/number.h"
#include "kernels/operation.h"
#include "proto/array_info.h"
#include "proto/payload.h"
#include "proto/program_limits.h"

namespace prefixd {

inline constexpr size_t kMaxArrayNameBytes = 32;  // In a program.

// What an array is to a step. The names are those of the fields on the wire.
// X(enumerator, name)
#define PREFIXD_ROLES(X)                \
  X(kValues, "values")                  \
  X(kMask, "mask")                      \
  X(kLeft, "left")                      \
  X(kRight, "right")                    \
  X(kIndices, "indices")                \
  X(kInto, "into")                      \
  X(kLike, "like")                      \
  X(kSegmentOffsets, "segment_offsets") \
  X(kCoefficients, "coefficients")      \
  X(kKeys, "keys")                      \
  X(kOut, "out")                        \
  X(kIndicesOut, "indices_out")         \
  X(kIndexOut, "index_out")             \
  X(kKeysOut, "keys_out")               \
  X(kCountsOut, "counts_out")           \
  X(kCountOut, "count_out")
PREFIXD_DEFINE_ENUM_(Role, PREFIXD_ROLES)

struct NamedArray {
  Role role = Role::kValues;
  std::string name;

  friend bool operator==(const NamedArray&, const NamedArray&) = default;
};

struct ProgramInput {
  std::string name;
  std::optional<DType> dtype = {};           // Inline elements need one. A slice's is checked.
  std::variant<Payload, ArraySlice> values;  // Inline: a whole number of elements.
};

struct ProgramStep {
  // Maps, gather, scatter, copy and transpose leave their types to the plan, but for a cast's result.
  Operation operation;
  std::vector<NamedArray> reads;   // The operation's, in the order of Role, each role at most once.
  std::vector<NamedArray> writes;  // Likewise.
  // A map's a and b: the plan makes them values of the type that it reads. Absent: 1 and 0.
  std::optional<Number> a = {};
  std::optional<Number> b = {};
  uint64_t num_items = 0;  // A fill's, if it is `like` no array.

  friend bool operator==(const ProgramStep&, const ProgramStep&) = default;
};

struct ProgramOutput {
  std::string name;
  Sink sink = {};  // A new array has the result's shape.
};

struct Program {
  std::vector<ProgramInput> inputs;
  std::vector<ProgramStep> steps;
  std::vector<ProgramOutput> outputs;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_PROGRAM_PROGRAM_H_
