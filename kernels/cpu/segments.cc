#include "kernels/cpu/segments.h"

#include <algorithm>
#include <cstddef>

#include "kernels/args/check.h"
#include "kernels/cpu/arrays.h"
#include "kernels/cpu/difference.h"
#include "kernels/cpu/reduce.h"

namespace prefixd::cpu {
namespace {

// A segment of so many parts is cut into them, for whoever is idle,
constexpr uint64_t kCutSegmentParts = 16;
// and one of so many has work for all cores by itself.
constexpr uint64_t kLongSegmentParts = 64;

// Calls run_some(first, count) for segments that together fill about a part, as many at once as pay, and
// run_one(segment) for each of those that are cut into parts. All of them are in the one or the other. item_bytes: what
// an item takes to read and write.
template <class Args, class RunSome, class RunOne>
void ForSegments(const Args& args, size_t item_bytes, const RunSome& run_some, const RunOne& run_one) {
  const uint64_t part_items = kPartBytes / item_bytes;
  const auto has_parts = [&](uint64_t segment, uint64_t num_parts) {
    return args.offsets[segment + 1] - args.offsets[segment] >= num_parts * part_items;
  };
  const uint64_t mean_bytes = args.num_items * item_bytes / args.num_arrays + sizeof(uint64_t);
  ForArrays(args.num_arrays, std::max<uint64_t>(kPartBytes / mean_bytes, 1), [&](uint64_t first, uint64_t count) {
    const uint64_t end = first + count;
    for (uint64_t segment = first; segment < end; ++segment) {
      if (!has_parts(segment, kCutSegmentParts)) continue;
      if (first < segment) run_some(first, segment - first);
      if (!has_parts(segment, kLongSegmentParts)) run_one(segment);
      first = segment + 1;
    }
    if (first < end) run_some(first, end - first);
  });
  for (uint64_t segment = 0; segment < args.num_arrays; ++segment) {
    if (has_parts(segment, kLongSegmentParts)) run_one(segment);
  }
}

}  // namespace

Work RunSegmentScan(const Kernels& kernels, const ScanArgs& args) {
  ForSegments(
      args, SizeOf(args.dtype) + SizeOf(args.output()),
      [&](uint64_t first, uint64_t count) { ScanArrays(kernels, args, first, count); },
      [&](uint64_t segment) { ScanArrays(kernels, args, segment, 1); });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * ItemBytes(args) + (args.num_arrays + 1) * sizeof(*args.offsets)};
}

Work RunSegmentReduce(const Kernels& kernels, const ReduceArgs& args) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  ForSegments(
      args, in_bytes, [&](uint64_t first, uint64_t count) { ReduceArrays(kernels, args, first, count); },
      [&](uint64_t segment) { ReduceToValue(kernels, ArrayAt(args, segment)); });
  return {.launches = 1,
          .num_bytes =
              args.num_items * in_bytes + args.num_arrays * out_bytes + (args.num_arrays + 1) * sizeof(*args.offsets)};
}

Work RunSegmentDifference(const Kernels& kernels, const DifferenceArgs& args) {
  if (args.num_items == 0) return {};
  DifferenceArgs whole = args;
  whole.num_arrays = 1;
  Work work = RunDifference(kernels, whole);
  // The items that have no neighbour in their segment.
  const auto subtract_init = kernels.differences->of_edges[static_cast<int>(args.dtype)];
  ForArrays(args.num_arrays, kPartBytes / sizeof(*args.offsets), [&](uint64_t first, uint64_t count) {
    for (uint64_t segment = first; segment < first + count; ++segment) {
      const uint64_t begin = args.offsets[segment], end = args.offsets[segment + 1];
      if (begin == end) continue;
      const uint64_t at = (args.reverse ? end - 1 : begin) * SizeOf(args.dtype);
      subtract_init(Advance(args.in, at), Advance(args.out, at), /*num_items=*/1, /*pitch=*/1, &args.init.bits);
    }
  });
  work.num_bytes = NumBytes(args);
  return work;
}

}  // namespace prefixd::cpu
