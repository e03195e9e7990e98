// libFuzzer target: whatever a RunRequest is, it is refused with a reason or planned, and then no moment of the program
// has more memory than the plan says.
//   cmake --preset fuzz && cmake --build --preset fuzz
//   build/fuzz/bin/program_fuzz -max_total_time=60 -max_len=4096 FOLDER tests/fuzz/corpus/program
// The first eight bytes make up the arrays around the program; the rest is the request.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "google/protobuf/stubs/logging.h"
#include "prefixd/v1/programs.pb.h"
#include "proto/array_message.h"
#include "server/program/plan.h"
#include "server/rpc/wire_program.h"
#include "tests/server/naive_memory.h"

namespace prefixd {
namespace {

void Check(bool holds, const char* what, const absl::Status& status = absl::OkStatus()) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  std::abort();
}

void CheckRefusal(const absl::Status& status) {
  Check(!ErrorReason(status).empty(), "a refusal without a reason", status);
}

// Types and lengths that depend on the seed and the place alone. Equal lengths are common, huge ones are there.
SliceInfo FactsOf(uint64_t seed, uint64_t place) {
  constexpr DType kTypes[] = {DType::kF32, DType::kU8, DType::kU64, DType::kF16, DType::kI32, DType::kF64};
  constexpr uint64_t kLengths[] = {1000, 0, 1, 125, uint64_t{1} << 32, uint64_t{1} << 61, ~uint64_t{0}, 8};
  const uint64_t choice = seed >> (place % 16 * 4) & 15;
  return {kTypes[choice % std::size(kTypes)], kLengths[choice < 8 ? 0 : choice - 8]};
}

void Run(uint64_t seed, const uint8_t* data, size_t size) {
  const grpc::Slice slice(data, size);
  v1::RunRequest request;
  const absl::Status parsed = ParseMessage(grpc::ByteBuffer(&slice, 1), kMaxProgramBytes, &request);
  if (!parsed.ok()) return CheckRefusal(parsed);
  const absl::StatusOr<Program> program = FromWire(std::move(request));
  if (!program.ok()) return CheckRefusal(program.status());
  ProgramArrays arrays;
  for (size_t i = 0; i < program->inputs.size(); ++i) arrays.inputs.push_back(FactsOf(seed, i));
  for (size_t i = 0; i < program->outputs.size(); ++i) arrays.sinks.push_back(FactsOf(seed, i + 8));
  const absl::StatusOr<Plan> plan = MakePlan(*program, arrays);
  if (!plan.ok()) {
    CheckRefusal(plan.status());
    return Check(!ErrorField(plan.status()).empty(), "a refusal without a field", plan.status());
  }
  for (const uint64_t bytes : NaiveMemory(*program, *plan)) {
    Check(bytes <= plan->peak_bytes, "more memory than the plan says");
  }
  for (const uint64_t kept : {uint64_t{0}, uint64_t{1}, uint64_t{700}}) {
    const auto items_of = [&](const Slot& slot) {
      return slot.length.IsKnown() ? slot.length.max_items : std::min(kept, slot.length.max_items);
    };
    for (const uint64_t bytes : NaiveMemory(*program, *plan, items_of)) {
      Check(bytes <= plan->peak_bytes, "more memory than the plan says, of shorter arrays");
    }
  }
}

}  // namespace
}  // namespace prefixd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silencer;  // It complains of strings that are not UTF-8.
  uint64_t seed = 0;
  if (size < sizeof(seed)) return 0;
  std::memcpy(&seed, data, sizeof(seed));
  prefixd::Run(seed, data + sizeof(seed), size - sizeof(seed));
  return 0;
}
