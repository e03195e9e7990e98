#include "server/program/plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "server/program/memory_plan.h"
#include "server/program/step_rules.h"
#include "server/request.h"

namespace prefixd {
namespace {

absl::Status CheckCount(std::string_view what, size_t count, size_t max_count) {
  if (count <= max_count) return absl::OkStatus();
  return InvalidField(
      "PROGRAM_SIZE", what,
      StrCat("the program has ", count, " ", what, ": expected at most ", max_count, ", make two programs of it"));
}

absl::Status CheckName(std::string_view name, std::string_view field) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto may_follow = [&](char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '_'; };
  if (!name.empty() && name.size() <= kMaxArrayNameBytes && is_lower(name[0]) &&
      std::all_of(name.begin(), name.end(), may_follow)) {
    return absl::OkStatus();
  }
  // What was sent may be anything, so it does not go into the message.
  return InvalidField(
      "PROGRAM_NAME", field,
      StrCat(name.empty() ? "the name is missing" : "this is no name", ": expected a small letter, and up to ",
             kMaxArrayNameBytes - 1, " small letters, digits and underscores"));
}

// Whether two slices have an element in common.
bool Overlap(const ArraySlice& a, uint64_t a_items, const ArraySlice& b, uint64_t b_items) {
  if (a.name != b.name || a_items == 0 || b_items == 0) return false;
  return a.first_item <= b.first_item ? b.first_item - a.first_item < a_items : a.first_item - b.first_item < b_items;
}

class Planner {
 public:
  Planner(const Program& program, const ProgramArrays& arrays) : program_(program), arrays_(arrays) {}

  absl::StatusOr<Plan> Run() {
    if (program_.steps.empty())
      return InvalidField("PROGRAM_SIZE", "steps", "the program has no steps: expected 1 to 64");
    PREFIXD_RETURN_IF_ERROR(CheckCount("steps", program_.steps.size(), kMaxProgramSteps));
    PREFIXD_RETURN_IF_ERROR(CheckCount("inputs", program_.inputs.size(), kMaxProgramInputs));
    PREFIXD_RETURN_IF_ERROR(CheckCount("outputs", program_.outputs.size(), kMaxProgramOutputs));
    for (size_t i = 0; i < program_.inputs.size(); ++i) PREFIXD_RETURN_IF_ERROR(AddInput(i));
    for (size_t i = 0; i < program_.steps.size(); ++i) PREFIXD_RETURN_IF_ERROR(AddStep(i));
    for (size_t i = 0; i < program_.outputs.size(); ++i) PREFIXD_RETURN_IF_ERROR(AddOutput(i));
    for (size_t i = 0; i < plan_.slots.size(); ++i) PREFIXD_RETURN_IF_ERROR(CheckIsUsed(i));
    plan_.num_selections = rules_.num_selections();
    PREFIXD_RETURN_IF_ERROR(PlanMemory(&plan_));
    return std::move(plan_);
  }

 private:
  // What the plan need not tell of a slot.
  struct Origin {
    std::string path;  // The field that has its name.
    bool is_used = false;
    std::optional<size_t> output = {};
  };

  absl::Status AddInput(size_t i) {
    const ProgramInput& input = program_.inputs[i];
    const std::string path = InputPath(i);
    Slot slot = {.name = input.name, .home = Home::kArray};
    if (const Payload* const bytes = std::get_if<Payload>(&input.values)) {
      if (!input.dtype)
        return InvalidField("FIELD_CONFLICT", StrCat(path, ".dtype"), "inline elements need a dtype: set it");
      slot.home = Home::kInline;
      slot.dtype = *input.dtype;
      if (bytes->size() % SizeOf(slot.dtype) != 0) {
        return InvalidField(
            "LENGTH_NOT_MULTIPLE", StrCat(path, ".values.inline.data"),
            StrCat(bytes->size(), " bytes are no whole number of elements of ", SizeOf(slot.dtype), " bytes"));
      }
      slot.length.max_items = bytes->size() / SizeOf(slot.dtype);
    } else {
      const SliceInfo& facts = arrays_.inputs[i];
      slot.dtype = facts.dtype;
      slot.length.max_items = facts.num_items;
      if (input.dtype.value_or(facts.dtype) != facts.dtype) {
        return InvalidField("ARRAY_TYPE", StrCat(path, ".dtype"),
                            StrCat("the array is of ", Name(facts.dtype), ", not of ", Name(*input.dtype),
                                   ": set that, or leave it out"));
      }
    }
    if (!IsSupported(slot.dtype)) {
      return Error(
          absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", StrCat(path, ".dtype"),
          StrCat("dtype ", Name(slot.dtype), " is not implemented by this server: GetServerInfo lists what is"));
    }
    return AddSlot(std::move(slot), StrCat(path, ".name")).status();
  }

  absl::Status AddStep(size_t i) {
    const ProgramStep& step = program_.steps[i];
    const std::string path = StepPath(i, step.operation);
    PlanStep planned;
    for (const NamedArray& read : step.reads) {
      PREFIXD_ASSIGN_OR_RETURN(const int slot, Find(read.name, StrCat(path, ".", Name(read.role)), i));
      origins_[slot].is_used = true;
      planned.reads.push_back({read.role, slot});
    }
    absl::StatusOr<StepResult> result = rules_.Apply(step, planned.reads, plan_.slots);
    if (!result.ok()) return InPart(std::move(result).status(), path);
    for (size_t w = 0; w < step.writes.size(); ++w) {
      const auto& [role, name] = step.writes[w];
      PREFIXD_ASSIGN_OR_RETURN(
          const int slot, AddSlot({.name = name, .dtype = result->writes[w].dtype, .length = result->writes[w].length},
                                  StrCat(path, ".", Name(role))));
      planned.writes.push_back({role, slot});
    }
    planned.operation = result->operation;
    planned.selection = result->selection;
    planned.runs = result->runs;
    planned.scratch_bytes = result->scratch_bytes;
    planned.working_bytes = result->working_bytes;
    plan_.steps.push_back(std::move(planned));
    return absl::OkStatus();
  }

  absl::Status AddOutput(size_t i) {
    const ProgramOutput& output = program_.outputs[i];
    const std::string path = OutputPath(i);
    PREFIXD_ASSIGN_OR_RETURN(const int number, Find(output.name, StrCat(path, ".name"), program_.steps.size()));
    Origin& origin = origins_[number];
    Slot& slot = plan_.slots[number];
    if (static_cast<size_t>(number) < program_.inputs.size()) {
      return InvalidField("PROGRAM_NOT_WRITTEN", StrCat(path, ".name"),
                          StrCat(output.name, " is an input, which no step writes: make a copy of it"));
    }
    if (origin.output) {
      return InvalidField("PROGRAM_WRITTEN_TWICE", StrCat(path, ".name"),
                          StrCat(output.name, " is outputs[", *origin.output, "] already: make a copy of it"));
    }
    origin.output = i;
    origin.is_used = true;
    Delivery delivery = Delivery::kInline;
    if (output.sink.kind == Sink::Kind::kArray) {
      PREFIXD_ASSIGN_OR_RETURN(delivery, Deliver(slot, output.sink.array, i));
      if (delivery == Delivery::kInPlace) {
        slot.home = Home::kSink;
        slot.memory_bytes = 0;
      }
    } else if (output.sink.kind == Sink::Kind::kNewArray) {
      delivery = slot.length.IsKnown() ? Delivery::kHandOver : Delivery::kShrink;
    } else if (slot.length.IsKnown()) {
      const uint64_t num_bytes = slot.length.max_items * SizeOf(slot.dtype);
      if (num_bytes > kMaxReplyPayloadBytes - inline_bytes_) {
        return Error(absl::StatusCode::kOutOfRange, "REPLY_TOO_LARGE", StrCat(path, ".sink"),
                     StrCat("with ", output.name, " the inline outputs have more than ", kMaxReplyPayloadBytes,
                            " bytes: let it go to an array"));
      }
      inline_bytes_ += num_bytes;
    }
    plan_.outputs.push_back({number, delivery});
    return absl::OkStatus();
  }

  // How a result gets into a slice of an array that is there.
  absl::StatusOr<Delivery> Deliver(const Slot& slot, const ArraySlice& slice, size_t output) {
    const std::string path = StrCat(OutputPath(output), ".sink.array");
    const SliceInfo& facts = arrays_.sinks[output];
    if (facts.dtype != slot.dtype) {
      return InvalidField("ARRAY_TYPE", path,
                          StrCat(slot.name, " is of ", Name(slot.dtype), " and the array of ", Name(facts.dtype),
                                 ": cast it, or use another array"));
    }
    const bool fits = slot.length.max_items <= facts.num_items;
    if (!fits && slot.length.IsKnown()) {
      return Error(absl::StatusCode::kOutOfRange, "SINK_TOO_SMALL", path,
                   StrCat(slot.name, " has ", slot.length.max_items, " elements and the slice ", facts.num_items,
                          ": use a larger one"));
    }
    for (size_t i = 0; i < output; ++i) {
      const Sink& other = program_.outputs[i].sink;
      if (other.kind != Sink::Kind::kArray) continue;
      if (!Overlap(slice, facts.num_items, other.array, arrays_.sinks[i].num_items)) continue;
      return InvalidField("OVERLAP", path, StrCat("the slice overlaps that of outputs[", i, "]: use another"));
    }
    bool is_input = false;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const auto* const other = std::get_if<ArraySlice>(&program_.inputs[i].values);
      const uint64_t num_items = arrays_.inputs[i].num_items;
      if (other == nullptr || !Overlap(slice, facts.num_items, *other, num_items)) continue;
      if (slice.first_item != other->first_item || facts.num_items != num_items) {
        return InvalidField("OVERLAP", path,
                            StrCat("the slice overlaps that of inputs[", i, "] in part: use the same, or another"));
      }
      is_input = true;
    }
    return fits && !is_input ? Delivery::kInPlace : Delivery::kCopy;
  }

  // A new slot. Errors: PROGRAM_NAME, PROGRAM_WRITTEN_TWICE, PROGRAM_SIZE.
  absl::StatusOr<int> AddSlot(Slot slot, std::string path) {
    PREFIXD_RETURN_IF_ERROR(CheckName(slot.name, path));
    const auto number = static_cast<int>(plan_.slots.size());
    const auto [place, is_new] = slot_of_.try_emplace(slot.name, number);
    if (!is_new) {
      return InvalidField("PROGRAM_WRITTEN_TWICE", path,
                          StrCat(slot.name, " is written by ", origins_[place->second].path,
                                 " already: each name is written once, use another"));
    }
    const uint64_t num_items = slot.length.max_items;
    if (num_items > (std::numeric_limits<uint64_t>::max() - kMemoryUnitBytes) / SizeOf(slot.dtype)) {
      return InvalidField("PROGRAM_SIZE", path,
                          StrCat(slot.name, " has ", num_items, " items of ", SizeOf(slot.dtype),
                                 " bytes, about 2^64 bytes or more: use a smaller array"));
    }
    if (slot.home != Home::kArray) slot.memory_bytes = MemoryBytes(num_items * SizeOf(slot.dtype));
    plan_.slots.push_back(std::move(slot));
    origins_.push_back({.path = std::move(path)});
    return number;
  }

  // The slot of a name that is read in front of a step. Errors: PROGRAM_NAME, PROGRAM_NOT_WRITTEN.
  absl::StatusOr<int> Find(const std::string& name, std::string_view path, size_t step) {
    PREFIXD_RETURN_IF_ERROR(CheckName(name, path));
    if (const auto place = slot_of_.find(name); place != slot_of_.end()) return place->second;
    for (size_t i = step; i < program_.steps.size(); ++i) {
      for (const NamedArray& write : program_.steps[i].writes) {
        if (write.name != name) continue;
        return InvalidField(
            "PROGRAM_NOT_WRITTEN", path,
            StrCat(name, " is written by steps[", i, "], ", i == step ? "this step itself" : "behind this one",
                   ": a step reads inputs and what steps before it write, so there are no cycles; change the "
                   "order"));
      }
    }
    return InvalidField("PROGRAM_NOT_WRITTEN", path,
                        StrCat(name, " is no input, and no step writes it: look at its spelling"));
  }

  absl::Status CheckIsUsed(size_t slot) {
    if (origins_[slot].is_used) return absl::OkStatus();
    return InvalidField("PROGRAM_NOT_READ", origins_[slot].path,
                        StrCat("no step reads ", plan_.slots[slot].name, ", and it is no output: leave it out"));
  }

  const Program& program_;
  const ProgramArrays& arrays_;
  Plan plan_;
  std::vector<Origin> origins_;                    // One for each slot.
  absl::flat_hash_map<std::string, int> slot_of_;  // By name.
  StepRules rules_;
  uint64_t inline_bytes_ = 0;  // In inline outputs of known length; at most kMaxReplyPayloadBytes.
};

}  // namespace

std::string InputPath(size_t input) { return StrCat("inputs[", input, "]"); }
std::string OutputPath(size_t output) { return StrCat("outputs[", output, "]"); }
std::string StepPath(size_t step, const Operation& operation) {
  return StrCat("steps[", step, "].", OperationName(operation));
}

absl::StatusOr<Plan> MakePlan(const Program& program, const ProgramArrays& arrays) {
  return Planner(program, arrays).Run();
}

}  // namespace prefixd
