#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/args/check.h"
#include "kernels/cpu/any_prefix.h"
#include "kernels/cpu/difference.h"
#include "kernels/cpu/glue.h"
#include "kernels/cpu/operators.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scan.h"

namespace prefixd::cpu {
namespace {

// Rows up to here are transposed: a row alone takes 20 to 50 ns to begin with.
constexpr uint64_t kMaxShortRowItems = 128;
// A segment that long has work for all cores by itself.
constexpr uint64_t kLongSegmentParts = 64;

uint64_t NumBytes(const ScanArgs& args) { return args.num_items * args.num_arrays * ItemBytes(args); }

// Calls run(first_row, num_rows) for parts of the rows, on as many threads as pay.
template <class RunRows>
void ForRows(uint64_t num_rows, uint64_t part_rows, const RunRows& run) {
  ForParts(NumParts(num_rows, part_rows),
           [&](uint64_t part) { run(part * part_rows, PartItems(num_rows, part_rows, part)); });
}

// Calls run(segment) for all of them: about as many at once as fill a part, and a long one by itself, on all cores.
// item_bytes: what an item takes to read and write.
template <class Args, class Run>
void ForSegments(const Args& args, size_t item_bytes, const Run& run) {
  const uint64_t long_items = kLongSegmentParts * kPartBytes / item_bytes;
  const auto is_long = [&](uint64_t segment) {
    return args.offsets[segment + 1] - args.offsets[segment] >= long_items;
  };
  const uint64_t mean_bytes = args.num_items * item_bytes / args.num_arrays + sizeof(uint64_t);
  ForRows(args.num_arrays, std::max<uint64_t>(kPartBytes / mean_bytes, 1), [&](uint64_t first, uint64_t count) {
    for (uint64_t segment = first; segment < first + count; ++segment) {
      if (!is_long(segment)) run(segment);
    }
  });
  for (uint64_t segment = 0; segment < args.num_arrays; ++segment) {
    if (is_long(segment)) run(segment);
  }
}

// The difference of an item that has no neighbour.
void SubtractInit(const Kernels& kernels, const DifferenceArgs& args, uint64_t item) {
  const uint64_t at = item * SizeOf(args.dtype);
  kernels.differences->of[static_cast<int>(args.dtype)](Advance(args.in, at), Advance(args.out, at), /*num_items=*/1,
                                                        &args.init.bits, args.reverse, /*stream=*/false);
}

// Transposes a matrix that fits the cache.
void TransposeAll(const Kernels& kernels, DType dtype, const void* in, void* out, uint64_t rows, uint64_t columns) {
  TransposeBlock(kernels, dtype,
                 {.in = in,
                  .out = out,
                  .num_rows = rows,
                  .num_columns = columns,
                  .in_pitch = columns,
                  .out_pitch = rows,
                  .stream = false});
}

// Scans num_rows short rows, at most a strip of columns, as such.
void ScanShortRows(const Kernels& kernels, const ScanArgs& args, uint64_t first_row, uint64_t num_rows) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const uint64_t length = args.num_items;
  alignas(64) std::byte elements[kMaxShortRowItems * kStripBytes];
  alignas(64) std::byte results[kMaxShortRowItems * kStripBytes];
  const uint64_t first = first_row * length;
  TransposeAll(kernels, args.dtype, Advance(args.in, first * in_bytes), elements, num_rows, length);
  const Value start = ToAccumulator(args.init, args.output());
  const uint64_t begin = args.reverse ? (length - 1) * num_rows : 0;
  const auto pitch = static_cast<int64_t>(num_rows);
  kernels.columns->scan[static_cast<int>(args.dtype)][static_cast<int>(args.output())][static_cast<int>(args.op)](
      {.in = elements + begin * in_bytes,
       .out = results + begin * out_bytes,
       .num_rows = length,
       .num_columns = num_rows,
       .pitch = args.reverse ? -pitch : pitch,
       .exclusive = args.kind == ScanKind::kExclusive,
       .start = &start.bits});
  TransposeAll(kernels, args.output(), results, Advance(args.out, first * out_bytes), length, num_rows);
}

// Reduces num_rows short rows as columns, as ScanShortRows.
void ReduceShortRows(const Kernels& kernels, const ReduceArgs& args, uint64_t first_row, uint64_t num_rows) {
  alignas(64) std::byte elements[kMaxShortRowItems * kStripBytes];
  TransposeAll(kernels, args.dtype, ArrayOf(args, first_row).in, elements, num_rows, args.num_items);
  kernels.columns->reduce[static_cast<int>(args.dtype)][static_cast<int>(args.output())][static_cast<int>(args.op)](
      {.in = elements,
       .out = ArrayOf(args, first_row).values,
       .num_rows = args.num_items,
       .num_columns = num_rows,
       .pitch = static_cast<int64_t>(num_rows),
       .exclusive = false,
       .start = &args.init.value.bits});
}

// Scans rows one after the other, without what a scan of an array begins with.
void ScanLongRows(const Kernels& kernels, const ScanArgs& args, uint64_t first_row, uint64_t num_rows) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const AnyPrefix start = AnyPrefix::Before(args);
  const bool stream = StreamsScan(args, NumBytes(args));
  for (uint64_t row = first_row; row < first_row + num_rows; ++row) {
    const ScanArgs one = ArrayOf(args, row);
    AnyPrefix prefix = start;
    functions.scan({.in = one.in,
                    .out = one.out,
                    .num_items = one.num_items,
                    .next = one.in,
                    .reverse = args.reverse,
                    .exclusive = args.kind == ScanKind::kExclusive,
                    .stream = stream,
                    .coefficients = one.coefficients,
                    .coefficient = &one.coefficient.bits},
                   prefix.data());
  }
}

}  // namespace

Work RunRowScan(const Kernels& kernels, const ScanArgs& args) {
  if (args.num_items == 0) return {};
  const size_t item_bytes = std::max(SizeOf(args.dtype), SizeOf(args.output()));
  const uint64_t row_bytes = args.num_items * item_bytes;
  const bool has_columns = args.op != Op::kLinearRecurrence && !args.IsWide();  // That short rows could be.
  if (args.num_items <= kMaxShortRowItems && args.num_arrays > 1 && has_columns) {
    ForRows(args.num_arrays, StripColumns(args.dtype, args.output()),
            [&](uint64_t first_row, uint64_t num_rows) { ScanShortRows(kernels, args, first_row, num_rows); });
  } else if (row_bytes <= kPartBytes) {
    ForRows(args.num_arrays, kPartBytes / row_bytes,
            [&](uint64_t first_row, uint64_t num_rows) { ScanLongRows(kernels, args, first_row, num_rows); });
  } else {
    ParallelFor(args.num_arrays, [&](uint64_t row) { RunScanAmong(kernels, ArrayOf(args, row), NumBytes(args)); });
  }
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

Work RunSegmentScan(const Kernels& kernels, const ScanArgs& args) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  ForSegments(args, in_bytes + out_bytes, [&](uint64_t segment) {
    ScanArgs one = args;
    one.in = Advance(args.in, args.offsets[segment] * in_bytes);
    one.out = Advance(args.out, args.offsets[segment] * out_bytes);
    one.coefficients = Advance(args.coefficients, args.offsets[segment] * in_bytes);
    one.num_items = args.offsets[segment + 1] - args.offsets[segment];
    one.num_arrays = 1;
    if (one.num_items > 0) RunScanAmong(kernels, one, args.num_items * ItemBytes(args));
  });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * ItemBytes(args) + (args.num_arrays + 1) * sizeof(uint64_t)};
}

Work RunRowReduce(const Kernels& kernels, const ReduceArgs& args) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const uint64_t row_bytes = args.num_items * std::max(in_bytes, out_bytes);
  if (args.num_items == 0) {
    const Value empty = EmptyValue(args);
    for (uint64_t row = 0; row < args.num_arrays; ++row) std::memcpy(ArrayOf(args, row).values, &empty, out_bytes);
  } else if (args.num_items <= kMaxShortRowItems && args.num_arrays > 1 && !args.IsWide()) {
    ForRows(args.num_arrays, StripColumns(args.dtype, args.output()),
            [&](uint64_t first_row, uint64_t num_rows) { ReduceShortRows(kernels, args, first_row, num_rows); });
  } else if (row_bytes <= kPartBytes) {
    ForRows(args.num_arrays, kPartBytes / row_bytes, [&](uint64_t first_row, uint64_t num_rows) {
      for (uint64_t row = first_row; row < first_row + num_rows; ++row) ReduceToValue(kernels, ArrayOf(args, row));
    });
  } else {  // Each on all cores.
    for (uint64_t row = 0; row < args.num_arrays; ++row) ReduceToValue(kernels, ArrayOf(args, row));
  }
  return {.launches = 1, .num_bytes = args.num_arrays * (args.num_items * in_bytes + out_bytes)};
}

Work RunSegmentReduce(const Kernels& kernels, const ReduceArgs& args) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const Value empty = EmptyValue(args);
  ForSegments(args, in_bytes, [&](uint64_t segment) {
    ReduceArgs one = args;
    one.in = Advance(args.in, args.offsets[segment] * in_bytes);
    one.values = Advance(args.values, segment * out_bytes);
    one.num_items = args.offsets[segment + 1] - args.offsets[segment];
    one.num_arrays = 1;
    if (one.num_items > 0) return ReduceToValue(kernels, one);
    std::memcpy(one.values, &empty, out_bytes);
  });
  return {
      .launches = 1,
      .num_bytes = args.num_items * in_bytes + args.num_arrays * out_bytes + (args.num_arrays + 1) * sizeof(uint64_t)};
}

// The differences of all items as if they were one array; then those of the items at the edges, which have no
// neighbour in their row.
Work RunRowDifference(const Kernels& kernels, const DifferenceArgs& args) {
  if (args.num_items == 0) return {};
  DifferenceArgs whole = args;
  whole.num_items = args.num_items * args.num_arrays;
  whole.num_arrays = 1;
  const Work work = RunDifference(kernels, whole);
  const uint64_t edge = args.reverse ? args.num_items - 1 : 0;
  const uint64_t part_rows = std::max<uint64_t>(kPartBytes / SizeOf(args.dtype) / args.num_items, 1);
  ForRows(args.num_arrays, part_rows, [&](uint64_t first_row, uint64_t num_rows) {
    for (uint64_t row = first_row; row < first_row + num_rows; ++row) {
      SubtractInit(kernels, args, row * args.num_items + edge);
    }
  });
  return work;
}

Work RunSegmentDifference(const Kernels& kernels, const DifferenceArgs& args) {
  if (args.num_items == 0) return {};
  DifferenceArgs whole = args;
  whole.num_arrays = 1;
  Work work = RunDifference(kernels, whole);
  ForRows(args.num_arrays, kPartBytes / sizeof(*args.offsets), [&](uint64_t first, uint64_t count) {
    for (uint64_t segment = first; segment < first + count; ++segment) {
      const uint64_t begin = args.offsets[segment], end = args.offsets[segment + 1];
      if (begin < end) SubtractInit(kernels, args, args.reverse ? end - 1 : begin);
    }
  });
  work.num_bytes = NumBytes(args);
  return work;
}

}  // namespace prefixd::cpu
