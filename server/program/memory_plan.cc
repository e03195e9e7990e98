#include "server/program/memory_plan.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/status.h"

namespace prefixd {
namespace {

// Memory that comes and goes, and how much there was at most.
class Level {
 public:
  void Add(uint64_t num_bytes) {
    overflows_ |= num_bytes > std::numeric_limits<uint64_t>::max() - now_;
    now_ += num_bytes;
    peak_ = std::max(peak_, now_);
  }
  void Remove(uint64_t num_bytes) { now_ -= num_bytes; }

  uint64_t Peak() const { return peak_; }
  bool Overflows() const { return overflows_; }

 private:
  uint64_t now_ = 0;
  uint64_t peak_ = 0;
  bool overflows_ = false;
};

bool HasMemory(const Slot& slot) { return slot.home == Home::kInline || slot.home == Home::kOwn; }

// For each slot the last step that reads it; -1: none.
std::vector<int> LastReaders(const Plan& plan) {
  std::vector<int> readers(plan.slots.size(), -1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const SlotUse& read : plan.steps[i].reads) readers[read.slot] = static_cast<int>(i);
  }
  return readers;
}

// The slots that are read no more after a step, each once.
std::vector<int> ReadLastBy(int step, const Plan& plan, const std::vector<int>& readers,
                            const std::vector<bool>& kept) {
  std::vector<int> slots;
  for (const SlotUse& read : plan.steps[step].reads) {
    const bool is_new = std::find(slots.begin(), slots.end(), read.slot) == slots.end();
    if (is_new && readers[read.slot] == step && !kept[read.slot] && HasMemory(plan.slots[read.slot])) {
      slots.push_back(read.slot);
    }
  }
  return slots;
}

// A scatter may write into the memory of `into` if nobody reads that any more, and it reads nothing else of it.
void TakeOver(const Plan& plan, PlanStep* step) {
  if (!std::holds_alternative<ScatterSpec>(step->operation)) return;
  const auto into =
      std::find_if(step->reads.begin(), step->reads.end(), [](const SlotUse& use) { return use.role == Role::kInto; });
  const auto reads =
      std::count_if(step->reads.begin(), step->reads.end(), [&](const SlotUse& use) { return use.slot == into->slot; });
  const auto dead = std::find(step->dead.begin(), step->dead.end(), into->slot);
  if (dead == step->dead.end() || reads > 1 || !HasMemory(plan.slots[step->writes[0].slot])) return;
  step->takes_over = true;
  step->dead.erase(dead);
}

}  // namespace

absl::Status PlanMemory(Plan* plan) {
  std::vector<bool> is_output(plan->slots.size());
  for (const PlanOutput& output : plan->outputs) is_output[output.slot] = true;
  for (PlanStep& step : plan->steps) {
    step.scratch_first = plan->scratch_bytes;
    if (step.scratch_bytes > 0) plan->scratch_bytes += MemoryBytes(step.scratch_bytes);
  }

  const std::vector<Slot>& slots = plan->slots;
  const std::vector<int> readers = LastReaders(*plan);
  Level level;
  level.Add(plan->scratch_bytes);
  for (const Slot& slot : slots) {
    if (slot.home == Home::kInline) level.Add(slot.memory_bytes);
  }
  for (size_t i = 0; i < plan->steps.size(); ++i) {
    PlanStep& step = plan->steps[i];
    step.dead = ReadLastBy(static_cast<int>(i), *plan, readers, is_output);
    TakeOver(*plan, &step);
    if (!step.takes_over) {
      for (const SlotUse& write : step.writes) level.Add(slots[write.slot].memory_bytes);
    }
    level.Add(step.working_bytes);
    level.Remove(step.working_bytes);
    for (const int slot : step.dead) level.Remove(slots[slot].memory_bytes);
  }
  for (const PlanOutput& output : plan->outputs) {
    const uint64_t num_bytes = slots[output.slot].memory_bytes;
    if (output.delivery == Delivery::kShrink) level.Add(num_bytes);
    if (output.delivery != Delivery::kHandOver) level.Remove(num_bytes);
  }
  plan->peak_bytes = level.Peak();
  if (!level.Overflows()) return absl::OkStatus();
  return InvalidField("PROGRAM_SIZE", "steps",
                      "the program needs 2^64 bytes of memory at once, or more: use smaller arrays");
}

}  // namespace prefixd
