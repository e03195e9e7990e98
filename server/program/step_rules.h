// What each operation asks of the arrays that a step reads, and what it writes: types, lengths, and the roles of
// arrays.
//
//   StepRules rules;
//   StepResult result = *rules.Apply(step, reads, slots);
//
// Threads: one at a time. Ownership: keeps nothing of its arguments.
#ifndef PREFIXD_SERVER_PROGRAM_STEP_RULES_H_
#define PREFIXD_SERVER_PROGRAM_STEP_RULES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/program/plan.h"
#include "server/program/program.h"

namespace prefixd {

struct WrittenArray {
  DType dtype = DType::kI32;
  Length length;
};

struct StepResult {
  Operation operation;                // With all its types.
  std::vector<WrittenArray> writes;   // One for each of the step's writes.
  std::optional<int> selection = {};  // A compact's.
  std::optional<int> runs = {};       // As PlanStep's.
  uint64_t scratch_bytes = 0;         // For a scalar beside what it writes.
  uint64_t working_bytes = 0;         // As PlanStep's.
};

// Knows the selections of a program's steps so far, to tell which arrays are equally long.
class StepRules {
 public:
  // The next step of the program. reads: the slots of the step's reads, in their order.
  // Errors: as MakePlan, with a field of the step's own message.
  absl::StatusOr<StepResult> Apply(const ProgramStep& step, const std::vector<SlotUse>& reads,
                                   const std::vector<Slot>& slots);

  int num_selections() const { return static_cast<int>(selections_.size()); }

 private:
  friend class StepCheck;

  // What decides how many elements a compact keeps, or how many runs of keys there are. Slots don't change, so equal
  // selections keep as many.
  struct Selection {
    int slot = 0;  // The mask's, the keys', or the values' that the predicate looks at.
    bool by_keys = false;
    std::optional<Predicate> predicate = {};  // None: by mask.
    MaskKind mask_kind = MaskKind::kBytes;
    bool invert = false;
    Length of;  // The values' length.

    friend bool operator==(const Selection&, const Selection&) = default;
  };
  int NumberOf(const Selection& selection);

  std::vector<Selection> selections_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_PROGRAM_STEP_RULES_H_
