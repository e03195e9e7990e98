#include "kernels/cpu/columns.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

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
  const uint64_t most = StripColumns(args.dtype, args.output());
  if (num_bytes < kMinParallelBytes) return most;
  const uint64_t least = 2 * kLineBytes / std::max(SizeOf(args.dtype), SizeOf(args.output()));
  const uint64_t num_threads = Concurrency();
  const uint64_t num_strips = NumParts(NumParts(args.num_arrays, most), num_threads) * num_threads;
  return std::clamp(NumParts(NumParts(args.num_arrays, num_strips), least) * least, least, most);
}

// ---- Wide sums and recurrences -------------------------------------------------------------------------------------
// Their items are made of several elements, or longer, and only the loops for arrays know them. A strip of columns goes
// tile by tile through a buffer in the cache, where each column stands by itself.

// So many that a tile of them fills a part, but at least four lines of the cache, which memory brings sooner than one
// by itself. No more than what stands before a row has room for.
uint64_t TileStripColumns(uint64_t num_rows, size_t item_bytes) {
  const uint64_t tile_bytes = std::min<uint64_t>(num_rows, kTileItems) * item_bytes;
  return std::clamp(kPartBytes / tile_bytes, 4 * kLineBytes / item_bytes, kStripBytes / item_bytes);
}

// A strip of columns of a matrix.
struct Strip {
  uint64_t first_column;
  uint64_t num_columns;
};

// Up to a tile of rows of a strip, column by column.
class TransposedTile {
 public:
  template <class Args>
  TransposedTile(const Kernels& kernels, const Args& args, const Strip& strip)
      : kernels_(kernels),
        dtype_(args.dtype),
        strip_(strip),
        matrix_columns_(args.num_arrays),
        // A power of two would put all columns into a few sets of the cache.
        pitch_(std::min<uint64_t>(args.num_items, kTileItems) + kLineBytes / SizeOf(args.dtype)),
        items_(std::make_unique_for_overwrite<std::byte[]>(pitch_ * strip.num_columns * SizeOf(args.dtype))) {}

  void Load(const void* matrix, uint64_t first_row, uint64_t num_rows) {
    TransposeBlock(kernels_, dtype_,
                   {.in = Advance(matrix, BytesBefore(first_row)),
                    .out = items_.get(),
                    .num_rows = num_rows,
                    .num_columns = strip_.num_columns,
                    .in_pitch = matrix_columns_,
                    .out_pitch = pitch_,
                    .stream = false});
  }
  void Store(void* matrix, uint64_t first_row, uint64_t num_rows) const {
    TransposeBlock(kernels_, dtype_,
                   {.in = items_.get(),
                    .out = Advance(matrix, BytesBefore(first_row)),
                    .num_rows = strip_.num_columns,
                    .num_columns = num_rows,
                    .in_pitch = pitch_,
                    .out_pitch = matrix_columns_,
                    .stream = false});
  }
  std::byte* Column(uint64_t column) { return items_.get() + column * pitch_ * SizeOf(dtype_); }

 private:
  uint64_t BytesBefore(uint64_t row) const { return (row * matrix_columns_ + strip_.first_column) * SizeOf(dtype_); }

  const Kernels& kernels_;
  const DType dtype_;
  const Strip strip_;
  const uint64_t matrix_columns_;
  const uint64_t pitch_;
  const std::unique_ptr<std::byte[]> items_;
};

// Calls run(strip) for all strips, as ForStrips.
template <class Args, class RunStrip>
void ForTileStrips(const Args& args, uint64_t num_bytes, const RunStrip& run) {
  const uint64_t columns = TileStripColumns(args.num_items, SizeOf(args.dtype));
  ForStrips(NumParts(args.num_arrays, columns), num_bytes, [&](uint64_t strip) {
    run(Strip{.first_column = strip * columns, .num_columns = PartItems(args.num_arrays, columns, strip)});
  });
}

void ScanStrip(const Kernels& kernels, const ScanArgs& args, const Strip& strip) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  std::vector<AnyPrefix> prefixes(strip.num_columns, AnyPrefix::Before(args));
  TransposedTile tile(kernels, args, strip);
  std::optional<TransposedTile> coefficients;
  if (args.coefficients != nullptr) coefficients.emplace(kernels, args, strip);
  for (uint64_t done = 0; done < args.num_items; done += kTileItems) {
    const uint64_t num_rows = std::min<uint64_t>(args.num_items - done, kTileItems);
    const uint64_t first_row = args.reverse ? args.num_items - done - num_rows : done;
    tile.Load(args.in, first_row, num_rows);
    if (coefficients) coefficients->Load(args.coefficients, first_row, num_rows);
    for (uint64_t column = 0; column < strip.num_columns; ++column) {
      std::byte* const items = tile.Column(column);
      functions.scan({.in = items,
                      .out = items,
                      .num_items = num_rows,
                      .next = items,
                      .reverse = args.reverse,
                      .exclusive = args.kind == ScanKind::kExclusive,
                      .coefficients = coefficients ? coefficients->Column(column) : nullptr,
                      .coefficient = &args.coefficient.bits},
                     prefixes[column].data());
    }
    tile.Store(args.out, first_row, num_rows);
  }
}

void ReduceWideStrip(const Kernels& kernels, const ReduceArgs& args, const Strip& strip) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const double start[2] = {args.init.value.As<double>(), args.init.second};  // As a carry.
  const ScanArgs scan = {.dtype = args.dtype, .precision = args.precision, .carry_in = start};
  std::vector<AnyPrefix> prefixes(strip.num_columns, AnyPrefix::Before(scan));
  TransposedTile tile(kernels, args, strip);
  for (uint64_t row = 0; row < args.num_items; row += kTileItems) {
    const uint64_t num_rows = std::min<uint64_t>(args.num_items - row, kTileItems);
    tile.Load(args.in, row, num_rows);
    for (uint64_t column = 0; column < strip.num_columns; ++column) {
      const std::byte* const items = tile.Column(column);
      Compensated<double> value;  // Or its first half.
      functions.reduce({.in = items, .out = nullptr, .num_items = num_rows, .next = items}, &value);
      functions.add(&value, 1, prefixes[column].data());
    }
  }
  for (uint64_t column = 0; column < strip.num_columns; ++column) {
    double sum[2] = {};
    prefixes[column].PutCarry(scan, sum);
    const Value value =
        ResultOf(args.output(), args.op, args.precision, {.value = Value::Of(sum[0]), .position = 0, .second = sum[1]});
    const size_t value_bytes = SizeOf(args.output());
    std::memcpy(Advance(args.values, (strip.first_column + column) * value_bytes), &value, value_bytes);
  }
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
  if (args.IsWide() || args.op == Op::kLinearRecurrence) {
    ForTileStrips(args, num_bytes, [&](const Strip& strip) { ScanStrip(kernels, args, strip); });
    return {.launches = 1, .num_bytes = num_bytes};
  }
  const auto scan =
      kernels.columns->scan[static_cast<int>(args.dtype)][static_cast<int>(args.output())][static_cast<int>(args.op)];
  const Value start = ToAccumulator(args.init, args.output());
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
          .start = &start.bits});
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
  if (args.IsWide()) {
    ForTileStrips(args, num_bytes, [&](const Strip& strip) { ReduceWideStrip(kernels, args, strip); });
    return {.launches = 1, .num_bytes = num_bytes};
  }
  const auto reduce =
      kernels.columns->reduce[static_cast<int>(args.dtype)][static_cast<int>(args.output())][static_cast<int>(args.op)];
  const uint64_t strip_columns = EvenStripColumns(args, num_bytes);
  ForStrips(NumParts(num_columns, strip_columns), num_bytes, [&](uint64_t strip) {
    const uint64_t column = strip * strip_columns;
    reduce({.in = Advance(args.in, column * in_bytes),
            .out = Advance(args.values, column * out_bytes),
            .num_rows = args.num_items,
            .num_columns = std::min(strip_columns, num_columns - column),
            .pitch = static_cast<int64_t>(num_columns),
            .exclusive = false,
            .start = &args.init.value.bits});
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
