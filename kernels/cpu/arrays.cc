#include "kernels/cpu/arrays.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "kernels/args/check.h"
#include "kernels/association.h"
#include "kernels/cpu/any_prefix.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scan.h"

namespace prefixd::cpu {
namespace {

// Up to here, on average, arrays share vectors. Longer ones begin with a vector of their own.
constexpr uint64_t kMaxSharedItems = 512;

// Rows of some whole leaves fill vectors too, where the order matters: by themselves they take up to a sixth less.
bool AreWholeLeaves(const ScanArgs& args) {
  return IsOrdered(args.output(), args.op) && args.offsets == nullptr && args.num_items > kLeafItems &&
         args.num_items % kLeafItems == 0;
}

// Results of arrays that stand one behind the other, on their way past the caches: those of short arrays go together,
// since who writes past the caches waits for the last line.
class PassingResults {
 public:
  // passes: else results are made where they belong.
  PassingResults(const Kernels& kernels, void* out, bool passes) : kernels_(kernels), out_(out), passes_(passes) {}
  ~PassingResults() { MoveOn(); }
  PassingResults(const PassingResults&) = delete;
  PassingResults& operator=(const PassingResults&) = delete;

  // Whether results of that size go past the caches by themselves.
  bool Stream(uint64_t num_bytes) const { return passes_ && num_bytes >= kMinStreamBytes; }

  // Where to make the next results. It is there until the next call.
  void* Next(uint64_t num_bytes) {
    if (!passes_ || Stream(num_bytes)) {
      MoveOn();
      return std::exchange(out_, Advance(out_, num_bytes));
    }
    if (num_made_ + num_bytes > sizeof(made_)) MoveOn();
    void* const next = made_ + num_made_;
    num_made_ += num_bytes;
    return next;
  }

 private:
  void MoveOn() {
    if (num_made_ == 0) return;
    kernels_.copy_streaming(out_, made_, num_made_);
    out_ = Advance(out_, num_made_);
    num_made_ = 0;
  }

  const Kernels& kernels_;
  void* out_;
  bool passes_;
  uint64_t num_made_ = 0;
  alignas(64) std::byte made_[kPassingBytes];
};

// Scans arrays without what a scan of an array begins with, if they are not longer than a part.
void ScanEach(const Kernels& kernels, const ScanArgs& args, uint64_t all_bytes, uint64_t first_array,
              uint64_t num_arrays) {
  const size_t out_bytes = SizeOf(args.output());
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const AnyPrefix start = AnyPrefix::Before(args);
  PassingResults results(kernels, Advance(args.out, BeginOf(args, first_array) * out_bytes),
                         args.in != args.out && IsLargerThanCaches(all_bytes));
  for (uint64_t array = first_array; array < first_array + num_arrays; ++array) {
    const uint64_t num_items = BeginOf(args, array + 1) - BeginOf(args, array);
    if (num_items == 0) continue;
    ScanArgs one = ArrayAt(args, array);
    one.out = results.Next(num_items * out_bytes);
    if (num_items * std::max(SizeOf(args.dtype), out_bytes) > kPartBytes) {
      RunScanAmong(kernels, one, all_bytes);
      continue;
    }
    AnyPrefix prefix = start;
    functions.scan({.in = one.in,
                    .out = one.out,
                    .num_items = num_items,
                    .next = one.in,
                    .reverse = args.reverse,
                    .exclusive = args.kind == ScanKind::kExclusive,
                    .stream = results.Stream(num_items * out_bytes),
                    .coefficients = one.coefficients,
                    .coefficient = &one.coefficient.bits},
                   prefix.data());
  }
}

PartArrays PartOf(uint64_t length, const uint64_t* offsets, uint64_t first_array, uint64_t num_arrays) {
  return {.num_arrays = num_arrays, .length = length, .offsets = offsets == nullptr ? nullptr : offsets + first_array};
}

}  // namespace

ScanArgs ArrayAt(const ScanArgs& args, uint64_t array) {
  const uint64_t begin = BeginOf(args, array), in_bytes = SizeOf(args.dtype);
  ScanArgs one = args;
  one.in = Advance(args.in, begin * in_bytes);
  one.out = Advance(args.out, begin * SizeOf(args.output()));
  one.coefficients = Advance(args.coefficients, begin * in_bytes);
  one.num_items = BeginOf(args, array + 1) - begin;
  one.num_arrays = 1;
  one.offsets = nullptr;
  return one;
}

ReduceArgs ArrayAt(const ReduceArgs& args, uint64_t array) {
  const uint64_t begin = BeginOf(args, array);
  ReduceArgs one = args;
  one.in = Advance(args.in, begin * SizeOf(args.dtype));
  one.values = Advance(args.values, array * SizeOf(args.output()));
  one.num_items = BeginOf(args, array + 1) - begin;
  one.num_arrays = 1;
  one.offsets = nullptr;
  return one;
}

void ScanArrays(const Kernels& kernels, const ScanArgs& args, uint64_t first_array, uint64_t num_arrays) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const uint64_t all_bytes = NumItems(args) * ItemBytes(args);
  const uint64_t begin = BeginOf(args, first_array), num_items = BeginOf(args, first_array + num_arrays) - begin;
  if (num_items / num_arrays > kMaxSharedItems || AreWholeLeaves(args)) {
    return ScanEach(kernels, args, all_bytes, first_array, num_arrays);
  }
  AnyPrefix start = AnyPrefix::Before(args);
  const uint64_t begin_bytes = begin * SizeOf(args.dtype);
  const void* const in = Advance(args.in, begin_bytes);
  functions.scan_arrays({.in = in,
                         .out = Advance(args.out, begin * SizeOf(args.output())),
                         .num_items = num_items,
                         .next = in,
                         .reverse = args.reverse,
                         .exclusive = args.kind == ScanKind::kExclusive,
                         .stream = args.in != args.out && IsLargerThanCaches(all_bytes),
                         .coefficients = Advance(args.coefficients, begin_bytes),
                         .coefficient = &args.coefficient.bits},
                        PartOf(args.num_items, args.offsets, first_array, num_arrays), start.data());
}

void ReduceArrays(const Kernels& kernels, const ReduceArgs& args, uint64_t first_array, uint64_t num_arrays) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const Value empty = EmptyValue(args);
  if (functions.reduce_arrays != nullptr) {
    const uint64_t begin = BeginOf(args, first_array);
    const void* const in = Advance(args.in, begin * in_bytes);
    return functions.reduce_arrays({.in = in,
                                    .out = Advance(args.values, first_array * out_bytes),
                                    .num_items = BeginOf(args, first_array + num_arrays) - begin,
                                    .next = in},
                                   PartOf(args.num_items, args.offsets, first_array, num_arrays), &args.init.value.bits,
                                   &empty);
  }
  for (uint64_t array = first_array; array < first_array + num_arrays; ++array) {
    const ReduceArgs one = ArrayAt(args, array);
    one.num_items > 0 ? ReduceToValue(kernels, one) : static_cast<void>(std::memcpy(one.values, &empty, out_bytes));
  }
}

}  // namespace prefixd::cpu
