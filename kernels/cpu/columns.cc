#include "kernels/cpu/columns.h"

#include <algorithm>
#include <cstddef>

#include "kernels/args/check.h"
#include "kernels/cpu/any_prefix.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/column_tiles.h"
#include "kernels/cpu/few_columns.h"
#include "kernels/cpu/glue.h"

namespace prefixd::cpu {
namespace {

// Below, a thread more takes longer to wake than it saves.
constexpr uint64_t kMinParallelBytes = uint64_t{1} << 20;
// Shorter rows have few strips, which are faster where they are wide.
constexpr uint64_t kMinLongRowBytes = uint64_t{8} << 10;

// Calls run(strip) for each strip of a matrix of so many bytes, on as many threads as pay.
template <class RunStrip>
void ForStrips(uint64_t num_strips, uint64_t num_bytes, const RunStrip& run) {
  if (num_bytes >= kMinParallelBytes && num_strips > 1) return ParallelFor(num_strips, run);
  for (uint64_t strip = 0; strip < num_strips; ++strip) run(strip);
}

// Columns of a strip: as many as have room, or fewer, so that all threads have as many strips; but no less than two
// lines of the cache in a row, which memory often brings where one is asked for.
template <class Args>
uint64_t EvenStripColumns(const Args& args, uint64_t num_bytes) {
  const size_t element_bytes = std::max(SizeOf(args.dtype), SizeOf(args.output()));
  const bool are_short = args.num_arrays * element_bytes < kMinLongRowBytes;
  const uint64_t most = are_short ? MostStripColumns(args) : HalfStripColumns(args);
  if (num_bytes < kMinParallelBytes) return most;
  const uint64_t line = kLineBytes / element_bytes;
  const uint64_t num_threads = Concurrency();
  const uint64_t num_strips = NumParts(NumParts(args.num_arrays, most), num_threads) * num_threads;
  return std::clamp(NumParts(NumParts(args.num_arrays, num_strips), line) * line, 2 * line, most);
}

}  // namespace

Work RunColumnScan(const Kernels& kernels, const ScanArgs& args) {
  if (args.num_items == 0) return {};
  const uint64_t num_columns = args.num_arrays;
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const uint64_t num_bytes = args.num_items * num_columns * ItemBytes(args);
  if (AreColumnTiles(args)) {
    ScanColumnTiles(kernels, args);
    return {.launches = 1, .num_bytes = num_bytes};
  }
  if (AreFewColumns(args)) {
    ScanFewColumns(kernels, args);
    return {.launches = 1, .num_bytes = num_bytes};
  }
  const auto scan = kernels.Columns(args.dtype, args.output(), args.op, args.precision).scan;
  const AnyPrefix before = AnyPrefix::Before(args);
  const uint64_t first_row = args.reverse ? args.num_items - 1 : 0;
  const auto pitch = static_cast<int64_t>(num_columns);
  const uint64_t strip_columns = EvenStripColumns(args, num_bytes);
  // Rows of a strip that are shorter have next to no whole lines.
  constexpr uint64_t kMinStreamedBytes = 4 * kLineBytes;
  const bool stream = IsLargerThanCaches(num_bytes);
  ForStrips(NumParts(num_columns, strip_columns), num_bytes, [&](uint64_t strip) {
    const uint64_t column = strip * strip_columns;
    const uint64_t first = first_row * num_columns + column;
    const uint64_t columns_here = std::min(strip_columns, num_columns - column);
    scan({.in = Advance(args.in, first * in_bytes),
          .out = Advance(args.out, first * out_bytes),
          .num_rows = args.num_items,
          .num_columns = columns_here,
          .pitch = args.reverse ? -pitch : pitch,
          .exclusive = args.kind == ScanKind::kExclusive,
          .stream = stream && columns_here * out_bytes >= kMinStreamedBytes,
          .before = before.data(),
          .coefficients = args.coefficients == nullptr ? nullptr : Advance(args.coefficients, first * in_bytes),
          .coefficient = &args.coefficient.bits});
  });
  return {.launches = 1, .num_bytes = num_bytes};
}

Work RunColumnReduce(const Kernels& kernels, const ReduceArgs& args) {
  const uint64_t num_columns = args.num_arrays;
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const uint64_t num_bytes = (args.num_items * in_bytes + out_bytes) * num_columns;
  if (AreColumnTiles(args)) {
    ReduceColumnTiles(kernels, args);
    return {.launches = 1, .num_bytes = num_bytes};
  }
  if (AreFewColumns(args)) {
    ReduceFewColumns(kernels, args);
    return {.launches = 1, .num_bytes = num_bytes};
  }
  const auto reduce = kernels.Columns(args.dtype, args.output(), args.op, args.precision).reduce;
  const AnyPrefix before = AnyPrefix::Before(args);
  const uint64_t strip_columns = EvenStripColumns(args, num_bytes);
  ForStrips(NumParts(num_columns, strip_columns), num_bytes, [&](uint64_t strip) {
    const uint64_t column = strip * strip_columns;
    reduce({.in = Advance(args.in, column * in_bytes),
            .out = Advance(args.values, column * out_bytes),
            .num_rows = args.num_items,
            .num_columns = std::min(strip_columns, num_columns - column),
            .pitch = static_cast<int64_t>(num_columns),
            .before = before.data()});
  });
  return {.launches = 1, .num_bytes = num_bytes};
}

// A row is what stands there less the row before it, which stands num_arrays items away.
Work RunColumnDifference(const Kernels& kernels, const DifferenceArgs& args) {
  if (args.num_items == 0) return {};
  const uint64_t row_bytes = args.num_arrays * SizeOf(args.dtype);
  const uint64_t rest_bytes = (args.num_items - 1) * row_bytes;
  const uint64_t edge = args.reverse ? rest_bytes : 0;
  VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // x - init is 1 * x + (0 - init) for integers, and x + (-init) for floats.
    T negative = args.init.As<T>();
    if constexpr (kIsFloating<T>) {
      negative = -negative;
    } else {
      negative = static_cast<T>(0 - static_cast<uint64_t>(negative));
    }
    RunMap(kernels, {.op = MapOp::kAffine,
                     .dtype = args.dtype,
                     .a = Value::Of(T{1}),
                     .b = Value::Of(negative),
                     .in = Advance(args.in, edge),
                     .out = Advance(args.out, edge),
                     .num_items = args.num_arrays});
  });
  RunMap(kernels, {.op = MapOp::kSubtract,
                   .dtype = args.dtype,
                   .in = Advance(args.in, args.reverse ? 0 : row_bytes),
                   .other = Advance(args.in, args.reverse ? row_bytes : 0),
                   .out = Advance(args.out, args.reverse ? 0 : row_bytes),
                   .num_items = (args.num_items - 1) * args.num_arrays});
  return {.launches = 1, .num_bytes = 2 * args.num_items * row_bytes};
}

}  // namespace prefixd::cpu
