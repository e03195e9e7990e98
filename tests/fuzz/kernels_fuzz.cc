// libFuzzer target: every instruction set of this machine gives the same bits, and touches nothing beside its arrays,
// whatever the items are and however many.
//   cmake --preset fuzz && cmake --build --preset fuzz
//   build/fuzz/bin/kernels_fuzz -max_total_time=60 -len_control=0 -max_len=512
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/compact.h"
#include "kernels/cpu/difference.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scan.h"

namespace prefixd {
namespace {

constexpr size_t kMaxItems = 40000;  // Ten tiles.

// Takes choices from the front of the input; what is left makes the items, again and again.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  // A choice among at most 65,536.
  uint64_t Below(uint64_t bound) {
    uint64_t value = 0;
    for (uint64_t room = 1; room < bound && size_ > 0; room <<= 8, ++data_, --size_) value = value << 8 | *data_;
    return value % bound;
  }

  // A byte says for each item which of the values that need care it is, or that its bytes follow.
  std::vector<uint8_t> Items(DType dtype, size_t num_items) const {
    std::vector<uint8_t> items(num_items * SizeOf(dtype));
    VisitDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Limits = std::numeric_limits<T>;
      const T special[] = {Limits::quiet_NaN(),  -Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T(-0.0),
                           Limits::denorm_min(), Limits::max(),        Limits::lowest()};
      size_t place = 0;
      for (size_t i = 0; i < num_items; ++i) {
        const uint8_t choice = At(place++);
        T item;
        if (choice < 64) {
          item = special[choice % std::size(special)];
        } else {
          uint8_t bytes[sizeof(T)];
          for (uint8_t& byte : bytes) byte = At(place++);
          std::memcpy(&item, bytes, sizeof(T));
        }
        std::memcpy(&items[i * sizeof(T)], &item, sizeof(T));
      }
    });
    return items;
  }

 private:
  // Not the same each time around.
  uint8_t At(size_t place) const {
    return size_ == 0 ? static_cast<uint8_t>(place) : data_[place % size_] ^ static_cast<uint8_t>(place / size_);
  }

  const uint8_t* data_;
  size_t size_;
};

// Results and what else comes out. Exactly as long as they may be, so that the address sanitizer sees what is beside.
struct Outcome {
  std::vector<uint8_t> results;
  std::vector<uint8_t> rest;
  bool operator==(const Outcome&) const = default;
};

// Runs the work with each instruction set, and ends the process if one differs from the first.
template <class Work>
void CompareSets(const char* what, Work work) {
  const Outcome want = work(*cpu::IsasHere().front().kernels);
  for (const cpu::Isa& isa : cpu::IsasHere()) {
    if (work(*isa.kernels) == want) continue;
    std::fprintf(stderr, "%s with %s has other bits than with %s\n", what, std::string(isa.name).c_str(),
                 std::string(cpu::IsasHere().front().name).c_str());
    std::abort();
  }
}

struct Combination {
  DType in;
  DType out;
};
Combination AnyCombination(Input* input) {
  constexpr Combination kAll[] = {
#define PREFIXD_ROW(name, type, out_name, out_type) {DType::name, DType::out_name},
      PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ROW)
#undef PREFIXD_ROW
  };
  return kAll[input->Below(std::size(kAll))];
}

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

DType AnyType(Input* input) {
  constexpr DType kAll[] = {
#define PREFIXD_ROW(name, type) DType::name,
      PREFIXD_FOR_EACH_DTYPE(PREFIXD_ROW)
#undef PREFIXD_ROW
  };
  return kAll[input->Below(std::size(kAll))];
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
