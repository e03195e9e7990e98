#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/args/check.h"
#include "kernels/cpu/arrays.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/difference.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scan.h"
#include "kernels/cpu/short_rows.h"

namespace prefixd::cpu {
namespace {

// Rows that are reduced in any order fill vectors by themselves from here on. Those of 64 bytes do not with AVX-512.
constexpr uint64_t kMinReducedBytes = 128;
static_assert(kMinReducedBytes <= kMaxShortRowItems);

// Where the order matters, rows up to here become columns, and longer ones have a lane each: in items. Floats of 16
// bits are converted for that.
constexpr uint64_t MaxColumnItems(DType dtype) { return SizeOf(dtype) == 2 ? 32 : 7; }
static_assert(MaxColumnItems(DType::kF16) <= kMaxShortRowItems);

// The differences of the items at the edges, which have no neighbour in their row. out: those of the first row.
void SubtractEdges(const Kernels& kernels, const DifferenceArgs& args, uint64_t first_row, uint64_t num_rows,
                   void* out) {
  const size_t size = SizeOf(args.dtype);
  const uint64_t edge = args.reverse ? args.num_items - 1 : 0;
  kernels.differences->of_edges[static_cast<int>(args.dtype)](
      Advance(args.in, (first_row * args.num_items + edge) * size), Advance(out, edge * size), num_rows, args.num_items,
      &args.init.bits);
}

}  // namespace

Work RunRowScan(const Kernels& kernels, const ScanArgs& args) {
  if (args.num_items == 0) return {};
  const uint64_t num_bytes = NumItems(args) * ItemBytes(args);
  const uint64_t row_bytes = args.num_items * std::max(SizeOf(args.dtype), SizeOf(args.output()));
  // Where every order gives the same bits, rows share vectors. Short rows that are made columns are of single elements.
  const bool goes_as_columns = IsOrdered(args.output(), args.op) && args.op != Op::kLinearRecurrence &&
                               !args.IsWide() && args.num_arrays > 1 && args.num_items <= MaxColumnItems(args.dtype);
  if (goes_as_columns) {
    ScanShortRows(kernels, args);
  } else if (row_bytes <= kPartBytes) {
    ForArrays(args.num_arrays, kPartBytes / row_bytes,
              [&](uint64_t first_row, uint64_t num_rows) { ScanArrays(kernels, args, first_row, num_rows); });
  } else {
    ParallelFor(args.num_arrays, [&](uint64_t row) { RunScanAmong(kernels, ArrayOf(args, row), num_bytes); });
  }
  return {.launches = 1, .num_bytes = num_bytes};
}

Work RunRowReduce(const Kernels& kernels, const ReduceArgs& args) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const uint64_t row_bytes = args.num_items * std::max(in_bytes, out_bytes);
  const bool is_short = IsOrdered(args.output(), args.op) ? args.num_items <= MaxColumnItems(args.dtype)
                                                          : args.num_items * in_bytes < kMinReducedBytes;
  if (args.num_items == 0) {
    const Value empty = EmptyValue(args);
    for (uint64_t row = 0; row < args.num_arrays; ++row) std::memcpy(ArrayOf(args, row).values, &empty, out_bytes);
  } else if (is_short && args.num_arrays > 1 && !args.IsWide()) {
    ReduceShortRows(kernels, args);
  } else if (row_bytes <= kPartBytes) {
    ForArrays(args.num_arrays, kPartBytes / row_bytes,
              [&](uint64_t first_row, uint64_t num_rows) { ReduceArrays(kernels, args, first_row, num_rows); });
  } else {
    ParallelFor(args.num_arrays, [&](uint64_t row) { ReduceToValue(kernels, ArrayOf(args, row)); });
  }
  return {.launches = 1, .num_bytes = args.num_arrays * (args.num_items * in_bytes + out_bytes)};
}

// The differences of all items as if they were one array, and then those at the edges: of short rows strip by strip,
// while the strip is in the first-level cache.
Work RunRowDifference(const Kernels& kernels, const DifferenceArgs& args) {
  if (args.num_items == 0) return {};
  const uint64_t row_bytes = args.num_items * SizeOf(args.dtype);
  const uint64_t part_rows = std::max<uint64_t>(kPartBytes / row_bytes, 1);
  constexpr uint64_t kMinStripRows = 4;
  const uint64_t strip_rows = kPassingBytes / row_bytes;
  if (strip_rows < kMinStripRows) {
    DifferenceArgs whole = args;
    whole.num_items = args.num_items * args.num_arrays;
    whole.num_arrays = 1;
    RunDifference(kernels, whole);
    ForArrays(args.num_arrays, part_rows, [&](uint64_t first_row, uint64_t num_rows) {
      SubtractEdges(kernels, args, first_row, num_rows, Advance(args.out, first_row * row_bytes));
    });
    return {.launches = 1, .num_bytes = NumBytes(args)};
  }
  const bool stream = IsLargerThanCaches(NumBytes(args));
  ForArrays(args.num_arrays, part_rows, [&](uint64_t first_row, uint64_t num_rows) {
    alignas(kLineBytes) std::byte made[kPassingBytes];
    for (const uint64_t end_row = first_row + num_rows; first_row < end_row; first_row += strip_rows) {
      const uint64_t count = std::min(strip_rows, end_row - first_row), at = first_row * row_bytes;
      void* const to = Advance(args.out, at);
      void* const out = stream ? made : to;
      kernels.differences->of[static_cast<int>(args.dtype)](Advance(args.in, at), out, count * args.num_items,
                                                            &args.init.bits, args.reverse, /*stream=*/false);
      SubtractEdges(kernels, args, first_row, count, out);
      if (stream) kernels.copy_streaming(to, made, count * row_bytes);
    }
  });
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

}  // namespace prefixd::cpu
