// When a program's memory is freed, and how much of it there is at once.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_PROGRAM_MEMORY_PLAN_H_
#define PREFIXD_SERVER_PROGRAM_MEMORY_PLAN_H_

#include "absl/status/status.h"
#include "server/program/plan.h"

namespace prefixd {

// Works out what a step takes over, what is dead after it, where its scratch is, and the plan's scratch and peak.
// Needs:  slots, steps with what they read and write and scratch_bytes, and outputs are there.
// Errors: INVALID_ARGUMENT (PROGRAM_SIZE) if there are 2^64 bytes or more at once.
absl::Status PlanMemory(Plan* plan);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_PROGRAM_MEMORY_PLAN_H_
