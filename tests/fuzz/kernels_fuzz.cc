// libFuzzer target: every instruction set of this machine gives the same bits, and touches nothing beside its arrays,
// whatever the items are and however many.
//   cmake --preset fuzz && cmake --build --preset fuzz
//   build/fuzz/bin/kernels_fuzz -max_total_time=60 -len_control=0 -max_len=512
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/cpu/compact.h"
#include "kernels/cpu/difference.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scan.h"
#include "tests/fuzz/input.h"

namespace prefixd {
namespace {

constexpr size_t kMaxItems = 40000;  // Ten tiles.

void FuzzScan(Input* input) {
  const Combination types = AnyCombination(input);
  const Op op = static_cast<Op>(input->Below(kNumOps));
  if (!IsSupported(Primitive::kScan, types.in, types.out, op)) return;
  ScanArgs args;
  args.dtype = types.in;
  args.out_dtype = types.out;
  args.op = op;
  if (IsWideSum(types.in, types.out, op) && input->Below(2) == 1) args.precision = Precision::kWide;
  args.kind = input->Below(2) == 0 ? ScanKind::kInclusive : ScanKind::kExclusive;
  args.reverse = input->Below(2) == 0;
  args.num_items = input->Below(kMaxItems);
  const bool in_place = types.in == types.out && input->Below(2) == 0;
  const std::vector<uint8_t> start = input->Items(types.out, 1);
  std::memcpy(&args.init.bits, start.data(), start.size());
  const std::vector<uint8_t> items = input->Items(types.in, args.num_items);
  CompareSets("scan", [&](const cpu::Kernels& kernels) {
    Outcome outcome = {std::vector<uint8_t>(args.num_items * SizeOf(types.out)),
                       std::vector<uint8_t>(CarryBytes(types.out, op, args.precision))};
    if (in_place) outcome.results = items;
    args.in = in_place ? outcome.results.data() : items.data();
    args.out = outcome.results.data();
    args.carry_out = outcome.rest.data();
    cpu::RunScan(kernels, args);
    return outcome;
  });
}

void FuzzReduce(Input* input) {
  const Combination types = AnyCombination(input);
  const Op op = static_cast<Op>(input->Below(kNumOps));
  if (!IsSupported(Primitive::kReduce, types.in, types.out, op)) return;
  ReduceArgs args;
  args.dtype = types.in;
  args.out_dtype = types.out;
  args.op = op;
  if (IsWideSum(types.in, types.out, op) && input->Below(2) == 1) args.precision = Precision::kWide;
  args.num_items = input->Below(kMaxItems);
  args.init = {Neutral(op, args.StateDType()), ReduceState::kNothing};
  const std::vector<uint8_t> items = input->Items(types.in, args.num_items);
  args.in = items.data();
  CompareSets("reduce", [&](const cpu::Kernels& kernels) {
    ReduceState state;
    args.state_out = &state;
    cpu::RunReduce(kernels, args);
    const size_t value_bytes = SizeOf(args.StateDType());
    Outcome outcome = {std::vector<uint8_t>(value_bytes + sizeof(state.second)),
                       std::vector<uint8_t>(sizeof(state.position))};
    std::memcpy(outcome.results.data(), &state.value.bits, value_bytes);
    std::memcpy(outcome.results.data() + value_bytes, &state.second, sizeof(state.second));
    std::memcpy(outcome.rest.data(), &state.position, outcome.rest.size());
    return outcome;
  });
}

void FuzzCompact(Input* input) {
  CompactArgs args;
  args.dtype = AnyType(input);
  args.selector = static_cast<Selector>(input->Below(3));
  args.comparison = static_cast<Comparison>(input->Below(kNumComparisons));
  args.invert = input->Below(2) == 0;
  args.num_items = input->Below(kMaxItems);
  args.index_dtype = input->Below(2) == 0 ? DType::kU32 : DType::kU64;
  const size_t size = SizeOf(args.dtype);
  const std::vector<uint8_t> value = input->Items(args.dtype, 1);
  std::memcpy(&args.value.bits, value.data(), size);
  const std::vector<uint8_t> end = input->Items(args.dtype, 1);
  std::memcpy(&args.end.bits, end.data(), size);
  const std::vector<uint8_t> items = input->Items(args.dtype, args.num_items);
  const std::vector<uint8_t> mask = input->Items(DType::kU8, args.num_items);
  args.in = items.data();
  args.mask = args.selector == Selector::kPredicate ? nullptr : mask.data();
  uint64_t num_kept = args.num_items;  // Room for just what is kept, once it is known.
  const auto run = [&](const cpu::Kernels& kernels) {
    Outcome outcome = {std::vector<uint8_t>(num_kept * size),
                       std::vector<uint8_t>(num_kept * SizeOf(args.index_dtype))};
    uint64_t count = 0;
    args.values = outcome.results.data();
    args.indices = outcome.rest.data();
    args.count = &count;
    cpu::RunCompact(kernels, args);
    num_kept = count;
    return outcome;
  };
  run(*cpu::IsasHere().front().kernels);
  CompareSets("compact", run);
}

void FuzzDifference(Input* input) {
  DifferenceArgs args;
  args.dtype = AnyType(input);
  args.reverse = input->Below(2) == 0;
  args.num_items = input->Below(kMaxItems);
  const std::vector<uint8_t> items = input->Items(args.dtype, args.num_items);
  args.init = Neutral(Op::kSum, args.dtype);
  args.in = items.data();
  CompareSets("difference", [&](const cpu::Kernels& kernels) {
    Outcome outcome = {std::vector<uint8_t>(items.size()), std::vector<uint8_t>(SizeOf(args.dtype))};
    args.out = outcome.results.data();
    args.carry_out = outcome.rest.data();
    cpu::RunDifference(kernels, args);
    return outcome;
  });
}

}  // namespace
}  // namespace prefixd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prefixd::Input input(data, size);
  constexpr void (*kTargets[])(prefixd::Input*) = {prefixd::FuzzScan, prefixd::FuzzReduce, prefixd::FuzzCompact,
                                                   prefixd::FuzzDifference};
  kTargets[input.Below(std::size(kTargets))](&input);
  return 0;
}
