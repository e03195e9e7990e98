// What a program will do, worked out before any of it runs: every type and length, what each step reads and writes,
// when memory is freed, and how much of it there is at once at most. Whoever executes a plan decides nothing.
//
//   Plan plan = *MakePlan(program, {.inputs = {{DType::kF32, n}}, .sinks = {{}}});
//   plan.peak_bytes ... to be charged
//   for (const PlanStep& step : plan.steps) { make what it writes; run it; free what is dead }
//
// Everything here is a value, and MakePlan is a function of its arguments: no threads, no ownership, no device.
#ifndef PREFIXD_SERVER_PROGRAM_PLAN_H_
#define PREFIXD_SERVER_PROGRAM_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/operation.h"
#include "server/program/program.h"

namespace prefixd {

// How many elements an array has. Two arrays are known to be equally long if their lengths are equal.
struct Length {
  uint64_t max_items = 0;
  // None: just max_items. Else from 0 to max_items: what that selection keeps, one number for all its arrays.
  std::optional<int> selection = {};

  bool IsKnown() const { return !selection; }
  friend bool operator==(const Length&, const Length&) = default;
};

// Where the elements of a slot are.
enum class Home : uint8_t {
  kArray,   // An input's slice of a resident array.
  kInline,  // Memory of the program's, into which an input's elements are copied before the first step.
  kOwn,     // Memory of the program's.
  kSink,    // The slice of a resident array that the output is to go to: a step writes there itself.
};

// An array of the program.
struct Slot {
  std::string name;
  DType dtype = DType::kI32;
  Length length;
  Home home = Home::kOwn;
  uint64_t memory_bytes = 0;  // Rounded up; 0 where the elements are in a resident array.
};

struct SlotUse {
  Role role = Role::kValues;
  int slot = 0;

  friend bool operator==(const SlotUse&, const SlotUse&) = default;
};

struct PlanStep {
  Operation operation;  // With all its types.
  std::vector<SlotUse> reads;
  std::vector<SlotUse> writes;
  // Scatter: what it writes takes over the memory of `into`, which is read no more. Else it is a copy of that first.
  bool takes_over = false;
  std::vector<int> dead;              // The slots whose memory is freed once the step has run.
  std::optional<int> selection = {};  // Compact: the selection whose length is known once the step has run.
  std::optional<int> runs = {};       // By keys: likewise, when it runs.
  uint64_t scratch_first = 0;         // Where in the scratch memory its scalar is: a count, a ReduceState, num_bad.
  uint64_t scratch_bytes = 0;         // 0: it has none.
  uint64_t working_bytes = 0;         // Memory that it has of its own while it runs.
};

// What becomes of an output, once all steps have run. Outputs are delivered in their order, and each slot is freed
// then.
enum class Delivery : uint8_t {
  kInline,    // Its elements go into the reply.
  kInPlace,   // They are in the slice already: Home::kSink.
  kCopy,      // They are copied into the slice. Only now it is known whether they fit: SINK_TOO_SMALL.
  kHandOver,  // The slot's memory becomes the new array's: it has the right size.
  kShrink,    // A new array of the right size is made, and they are copied there.
};

struct PlanOutput {
  int slot = 0;
  Delivery delivery = Delivery::kInline;
};

struct Plan {
  std::vector<Slot> slots;  // The inputs first, in their order.
  std::vector<PlanStep> steps;
  std::vector<PlanOutput> outputs;  // In their order.
  int num_selections = 0;
  uint64_t scratch_bytes = 0;  // For all steps, from before the first to after the last.
  // What the program takes of the device's memory at once at most, beside the arrays that are there. New arrays count.
  uint64_t peak_bytes = 0;
};

// What is known of the arrays around a program: one entry for each input, and one for each output. Entries of others
// than slices are not looked at.
struct ProgramArrays {
  std::vector<SliceInfo> inputs;
  std::vector<SliceInfo> sinks;
};

// Where an input, an output and a step stand in the request: "steps[3].scan".
std::string InputPath(size_t input);
std::string OutputPath(size_t output);
std::string StepPath(size_t step, const Operation& operation);

// Checks the whole program, and works out the plan. Whether the device serves the algorithms that steps ask for is not
// checked here.
// Needs:  entries in `arrays` as said.
// Errors: INVALID_ARGUMENT (PROGRAM_NAME, PROGRAM_WRITTEN_TWICE, PROGRAM_NOT_WRITTEN, PROGRAM_NOT_READ, PROGRAM_TYPE,
//         PROGRAM_LENGTH, PROGRAM_SIZE, UNSUPPORTED_COMBINATION, SCALAR_OUT_OF_RANGE, FIELD_CONFLICT, ARRAY_TYPE,
//         LENGTH_NOT_MULTIPLE, OVERLAP); OUT_OF_RANGE (INDEX_OVERFLOW, SINK_TOO_SMALL, REPLY_TOO_LARGE), for lengths
//         that are known: of others they come when the program runs; UNIMPLEMENTED (NOT_IMPLEMENTED) for a type.
// Cost:   microseconds; a look at each pair of slices.
absl::StatusOr<Plan> MakePlan(const Program& program, const ProgramArrays& arrays);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_PROGRAM_PLAN_H_
