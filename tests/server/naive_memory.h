// What a program has of memory while it runs, worked out step by step from the contract's words: an array is made by
// the step that writes it, and freed after the step that reads it last. It knows of the plan only what was promised to
// outputs, and how long arrays are.
#ifndef PREFIXD_TESTS_SERVER_NAIVE_MEMORY_H_
#define PREFIXD_TESTS_SERVER_NAIVE_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "server/program/plan.h"
#include "server/program/program.h"

namespace prefixd {

inline uint64_t InUnits(uint64_t num_bytes) {
  return std::max<uint64_t>(num_bytes / 256 + (num_bytes % 256 != 0), 1) * 256;
}

// The bytes there are at once, at every moment when there may be more than before.
// Needs: plan is program's. items_of: how many items a slot has, at most as many as its length says.
inline std::vector<uint64_t> NaiveMemory(const Program& program, const Plan& plan,
                                         const std::function<uint64_t(const Slot&)>& items_of) {
  std::map<std::string, uint64_t> bytes_of;  // What an array takes of the program's memory; absent: nothing.
  for (const Slot& slot : plan.slots) bytes_of[slot.name] = InUnits(items_of(slot) * SizeOf(slot.dtype));
  for (const ProgramInput& input : program.inputs) {
    if (std::holds_alternative<ArraySlice>(input.values)) bytes_of.erase(input.name);
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    if (plan.outputs[i].delivery == Delivery::kInPlace) bytes_of.erase(program.outputs[i].name);
  }
  const auto is_output = [&](const std::string& name) {
    return std::any_of(program.outputs.begin(), program.outputs.end(), [&](const auto& o) { return o.name == name; });
  };
  const auto is_read_after = [&](size_t step, const std::string& name) {
    for (size_t i = step + 1; i < program.steps.size(); ++i) {
      for (const NamedArray& read : program.steps[i].reads) {
        if (read.name == name) return true;
      }
    }
    return false;
  };

  uint64_t scalars = 0;
  for (const ProgramStep& step : program.steps) {
    const auto& op = step.operation;
    scalars += std::holds_alternative<ReduceSpec>(op) || std::holds_alternative<CompactSpec>(op) ||
               std::holds_alternative<GatherSpec>(op) || std::holds_alternative<ScatterSpec>(op);
  }
  std::map<std::string, uint64_t> live = {{"(scalars)", scalars * 256}};
  std::vector<uint64_t> moments;
  const auto note = [&] {
    uint64_t sum = 0;
    for (const auto& [name, bytes] : live) sum += bytes;
    moments.push_back(sum);
  };
  for (const ProgramInput& input : program.inputs) {
    if (bytes_of.count(input.name) > 0) live[input.name] = bytes_of[input.name];
  }
  note();
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const ProgramStep& step = program.steps[i];
    for (const NamedArray& write : step.writes) {
      if (bytes_of.count(write.name) == 0) continue;
      if (std::holds_alternative<ScatterSpec>(step.operation)) {
        const std::string& into = step.reads.back().name;
        const auto uses = std::count_if(step.reads.begin(), step.reads.end(),
                                        [&](const NamedArray& read) { return read.name == into; });
        if (live.count(into) > 0 && uses == 1 && !is_output(into) && !is_read_after(i, into)) live.erase(into);
      }
      live[write.name] = bytes_of[write.name];
    }
    note();
    for (const NamedArray& read : step.reads) {
      if (!is_output(read.name) && !is_read_after(i, read.name)) live.erase(read.name);
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const std::string& name = program.outputs[i].name;
    const bool is_new = program.outputs[i].sink.kind == Sink::Kind::kNewArray;
    if (plan.outputs[i].delivery == Delivery::kShrink) live["(new) " + name] = bytes_of[name];
    note();
    if (!is_new || plan.outputs[i].delivery == Delivery::kShrink) live.erase(name);
  }
  return moments;
}

// With every array as long as it may be.
inline std::vector<uint64_t> NaiveMemory(const Program& program, const Plan& plan) {
  return NaiveMemory(program, plan, [](const Slot& slot) { return slot.length.max_items; });
}

inline uint64_t MaxOf(const std::vector<uint64_t>& moments) {
  return *std::max_element(moments.begin(), moments.end());
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_NAIVE_MEMORY_H_
