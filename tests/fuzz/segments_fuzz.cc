// libFuzzer target: whatever the offsets of segments are, they are right or refused with a reason, by both checks of
// the server alike. With right ones, and with those of any keys, every instruction set gives the bits that each segment
// has alone, and touches nothing beside its arrays.
//   cmake --preset fuzz && cmake --build --preset fuzz
//   build/fuzz/bin/segments_fuzz -max_total_time=60 -len_control=0 -max_len=512
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "kernels/cpu/compact.h"
#include "kernels/cpu/glue.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scan.h"
#include "kernels/cpu/segments.h"
#include "kernels/device.h"
#include "server/request.h"
#include "server/work/segment_offsets.h"
#include "tests/fuzz/input.h"

namespace prefixd {
namespace {

constexpr uint64_t kMaxItems = 40000;  // Ten tiles.
constexpr uint64_t kMaxOffsets = 3000;

void Check(bool holds, const char* what, const absl::Status& status = absl::OkStatus()) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  std::abort();
}

// Each is a step from the one before, at times back, or past the largest number; or any.
std::vector<uint64_t> AnyOffsets(Input* input) {
  std::vector<uint64_t> offsets = {input->Below(64) == 1 ? input->Below(3) : 0};
  for (uint64_t count = input->Below(100); count > 0 && offsets.size() < kMaxOffsets; --count) {
    const uint64_t before = offsets.back();
    switch (const uint64_t choice = input->Below(256); choice) {
      case 252:
        offsets.push_back(before - 1 - input->Below(3));
        break;
      case 253:
        offsets.push_back(before + (input->Below(65536) << 48));
        break;
      case 254:
        offsets.push_back(input->Below(65536) << 48 | input->Below(65536) << 32 | input->Below(65536));
        break;
      case 255:
        offsets.insert(offsets.end(), input->Below(1000), before);
        break;
      default:  // Short, or about a tile or two.
        offsets.push_back(before + (choice < 200 ? choice : (1 + choice % 2) * 4096 + choice % 3 - 1));
    }
  }
  return offsets;
}

bool AreRight(const std::vector<uint64_t>& offsets, uint64_t num_items) {
  return !offsets.empty() && offsets.front() == 0 && offsets.back() == num_items && std::ranges::is_sorted(offsets);
}

// A lane with what the check of resident offsets takes.
BorrowedLane& CheckingLane() {
  static const std::unique_ptr<Device> device = *OpenDevice("cpu");
  static BorrowedLane lane = [] {
    BorrowedLane made;
    made.lane = *device->CreateLane();
    made.mask.device = *made.lane->Allocate(kMaxReplyPayloadBytes);
    made.scalar.host = *device->AllocatePinned(kMaxReplyPayloadBytes);
    return made;
  }();
  return lane;
}

void CheckVerdict(bool is_right, const absl::Status& status, std::string_view field) {
  if (is_right) return Check(status.ok(), "right offsets are refused", status);
  Check(!status.ok(), "wrong offsets pass");
  Check(ErrorReason(status) == "SEGMENT_OFFSETS" && ErrorField(status) == field && !status.message().empty(),
        "a refusal that does not say what is wrong", status);
}

// The bytes come in two parts, perhaps with some that make no offset.
absl::Status CheckInline(const std::vector<uint64_t>& offsets, uint64_t num_items, uint64_t more_bytes, uint64_t cut) {
  std::string bytes(offsets.size() * sizeof(uint64_t) + more_bytes, '\0');
  if (!offsets.empty()) std::memcpy(bytes.data(), offsets.data(), offsets.size() * sizeof(uint64_t));
  cut = std::min<uint64_t>(cut, bytes.size());
  Payload payload(bytes.substr(0, cut));
  const Payload rest(bytes.substr(cut));
  payload.Append(rest);
  return CheckInlineOffsets(payload, num_items);
}

// Whether they are right, after the server's checks have said the same.
bool CheckOffsets(Input* input, const std::vector<uint64_t>& offsets, uint64_t num_items) {
  const bool is_right = AreRight(offsets, num_items);
  const uint64_t more_bytes = input->Below(32) == 1 ? input->Below(8) : 0;
  CheckVerdict(is_right && more_bytes == 0, CheckInline(offsets, num_items, more_bytes, input->Below(2000)),
               "segment_offsets.inline.data");
  absl::Status resident = CheckNumOffsets(offsets.size(), "field");
  if (resident.ok()) {
    resident = CheckResidentOffsets(CheckingLane(), reinterpret_cast<const std::byte*>(offsets.data()), offsets.size(),
                                    num_items, StopSignal(absl::InfiniteFuture()), "field");
  }
  CheckVerdict(is_right, resident, "field");
  return is_right;
}

void FuzzScan(Input* input, const std::vector<uint64_t>& offsets) {
  const Combination types = AnyCombination(input);
  const Op op = static_cast<Op>(input->Below(kNumOps));
  const bool is_recurrence = IsRecurrence(Primitive::kScan, types.in, types.out, op);
  if (!IsSupported(Primitive::kScan, types.in, types.out, op) && !is_recurrence) return;
  ScanArgs args = {.dtype = types.in, .out_dtype = types.out, .op = op};
  if (IsWideSum(types.in, types.out, op) && input->Below(2) == 1) args.precision = Precision::kWide;
  args.kind = input->Below(2) == 0 ? ScanKind::kInclusive : ScanKind::kExclusive;
  args.reverse = input->Below(2) == 0;
  const bool in_place = types.in == types.out && input->Below(2) == 0;
  const size_t in_bytes = SizeOf(types.in), out_bytes = SizeOf(types.out);
  const std::vector<uint8_t> start = input->Items(types.out, 1);
  std::memcpy(&args.init.bits, start.data(), start.size());
  const std::vector<uint8_t> items = input->Items(types.in, offsets.back());
  const std::vector<uint8_t> coefficients(items.rbegin(), items.rend());
  const auto with_arrays = [&](std::vector<uint8_t>* results, uint64_t first) {
    ScanArgs with = args;
    with.in = (in_place ? results->data() : items.data()) + first * in_bytes;
    with.out = results->data() + first * out_bytes;
    if (is_recurrence) with.coefficients = coefficients.data() + first * in_bytes;
    return with;
  };
  const auto results = [&] { return in_place ? items : std::vector<uint8_t>(offsets.back() * out_bytes); };
  Outcome alone = {results(), {}};
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    ScanArgs one = with_arrays(&alone.results, offsets[i]);
    one.num_items = offsets[i + 1] - offsets[i];
    cpu::RunScan(*cpu::IsasHere().front().kernels, one);
  }
  CompareSets("a scan of segments", alone, [&](const cpu::Kernels& kernels) {
    Outcome outcome = {results(), {}};
    ScanArgs all = with_arrays(&outcome.results, 0);
    all.num_items = offsets.back();
    all.num_arrays = offsets.size() - 1;
    all.offsets = offsets.data();
    cpu::RunSegmentScan(kernels, all);
    return outcome;
  });
}

void FuzzReduce(Input* input, const std::vector<uint64_t>& offsets) {
  const Combination types = AnyCombination(input);
  const Op op = static_cast<Op>(input->Below(kNumOps));
  if (!IsSupported(Primitive::kReduce, types.in, types.out, op)) return;
  ReduceArgs args = {.dtype = types.in, .out_dtype = types.out, .op = op};
  if (IsWideSum(types.in, types.out, op) && input->Below(2) == 1) args.precision = Precision::kWide;
  args.init = {Neutral(op, args.StateDType()), ReduceState::kNothing};
  const size_t in_bytes = SizeOf(types.in), out_bytes = SizeOf(types.out);
  const std::vector<uint8_t> items = input->Items(types.in, offsets.back());
  const uint64_t num_arrays = offsets.size() - 1;
  Outcome alone = {std::vector<uint8_t>(num_arrays * out_bytes), {}};
  for (size_t i = 0; i < num_arrays; ++i) {
    Value value = EmptyValue(args);
    if (offsets[i] < offsets[i + 1]) {
      ReduceState state;
      ReduceArgs one = args;
      one.in = items.data() + offsets[i] * in_bytes;
      one.num_items = offsets[i + 1] - offsets[i];
      one.state_out = &state;
      cpu::RunReduce(*cpu::IsasHere().front().kernels, one);
      value = ResultOf(types.out, op, args.precision, state);
    }
    std::memcpy(&alone.results[i * out_bytes], &value.bits, out_bytes);
  }
  CompareSets("a reduce of segments", alone, [&](const cpu::Kernels& kernels) {
    Outcome outcome = {std::vector<uint8_t>(num_arrays * out_bytes), {}};
    ReduceArgs all = args;
    all.in = items.data();
    all.num_items = offsets.back();
    all.num_arrays = num_arrays;
    all.offsets = offsets.data();
    all.values = outcome.results.data();
    cpu::RunSegmentReduce(kernels, all);
    return outcome;
  });
}

template <class T>
std::vector<uint8_t> BytesOf(const std::vector<T>& items) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(items.data());
  return {bytes, bytes + items.size() * sizeof(T)};
}

// What a mask keeps, counted by segments.
void FuzzCompact(Input* input, const std::vector<uint64_t>& offsets) {
  const uint64_t num_items = offsets.back(), num_arrays = offsets.size() - 1;
  const std::vector<uint8_t> mask = input->Items(DType::kU8, num_items);
  std::vector<uint64_t> indices, counts(num_arrays);
  for (size_t i = 0; i < num_arrays; ++i) {
    for (uint64_t item = offsets[i]; item < offsets[i + 1]; ++item) {
      if (mask[item] == 0) continue;
      indices.push_back(item);
      ++counts[i];
    }
  }
  CompareSets("a compact of segments", {BytesOf(indices), BytesOf(counts)}, [&](const cpu::Kernels& kernels) {
    std::vector<uint64_t> some(indices.size()), some_counts(num_arrays);
    uint64_t count = 0;
    CompactArgs args = {.dtype = DType::kU8, .selector = Selector::kByteMask, .mask = mask.data()};
    args.num_items = num_items;
    args.indices = some.data();
    args.count = &count;
    cpu::RunCompact(kernels, args);
    cpu::RunCount(kernels, {.indices = some.data(),
                            .num_indices = count,
                            .offsets = offsets.data(),
                            .counts = some_counts.data(),
                            .num_items = num_arrays});
    return Outcome{BytesOf(some), BytesOf(some_counts)};
  });
}

void FuzzSegments(Input* input, const std::vector<uint64_t>& offsets) {
  constexpr void (*kTargets[])(Input*, const std::vector<uint64_t>&) = {FuzzScan, FuzzReduce, FuzzCompact};
  if (offsets.size() > 1) kTargets[input->Below(std::size(kTargets))](input, offsets);
}

// Runs of any keys, by each instruction set as by a plain loop.
std::vector<uint64_t> FuzzKeys(Input* input) {
  const DType dtype = AnyType(input);
  const uint64_t num_items = input->Below(kMaxItems), run_items = 1 + input->Below(256);
  const size_t key_bytes = SizeOf(dtype);
  const std::vector<uint8_t> some = input->Items(dtype, num_items / run_items + 1);
  std::vector<uint8_t> keys(num_items * key_bytes);
  for (uint64_t i = 0; i < num_items; ++i) {
    std::memcpy(&keys[i * key_bytes], &some[i / run_items * key_bytes], key_bytes);
  }
  std::vector<uint64_t> want;
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* const all = reinterpret_cast<const T*>(keys.data());
    for (uint64_t i = 0; i < num_items; ++i) {
      if (i == 0 || all[i] != all[i - 1]) want.push_back(i);
    }
  });
  want.push_back(num_items);
  CompareSets("runs of keys", {BytesOf(want), {}}, [&](const cpu::Kernels& kernels) {
    std::vector<uint64_t> scratch(RunsScratchBytes(num_items) / sizeof(uint64_t)), offsets(num_items + 1);
    uint64_t num_offsets = 0;
    cpu::RunFindRuns(kernels, {.dtype = dtype,
                               .keys = keys.data(),
                               .num_items = num_items,
                               .scratch = scratch.data(),
                               .offsets = offsets.data(),
                               .num_offsets = &num_offsets});
    offsets.resize(num_offsets);
    return Outcome{BytesOf(offsets), {}};
  });
  return want;
}

void Run(Input input) {
  if (input.Below(4) == 3) return FuzzSegments(&input, FuzzKeys(&input));
  const std::vector<uint64_t> offsets = AnyOffsets(&input);
  const uint64_t choice = input.Below(16);  // Mostly as many items as they say.
  const uint64_t num_items = offsets.back() + (choice == 14 ? 1 : 0) - (choice == 15 ? 1 : 0);
  if (CheckOffsets(&input, offsets, num_items) && num_items <= kMaxItems) FuzzSegments(&input, offsets);
}

}  // namespace
}  // namespace prefixd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prefixd::Run({data, size});
  return 0;
}
