#include "kernels/cpu/few_columns.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/args/check.h"
#include "kernels/cpu/any_prefix.h"
#include "kernels/cpu/arrays.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce.h"

namespace prefixd::cpu {
namespace {

// Rows of more fill vectors, and take a tile of each column out of the second-level cache.
constexpr uint64_t kMaxRowBytes = 4 * kLineBytes;

constexpr uint64_t RoundUp(uint64_t n, uint64_t unit) { return NumParts(n, unit) * unit; }

template <class Args>
size_t LongerItemBytes(const Args& args) {
  return std::max(SizeOf(args.dtype), SizeOf(args.output()));
}

// Rows of a part: as many tiles of each column as stay in the second-level cache, or one.
template <class Args>
uint64_t PartRows(const Args& args) {
  const uint64_t tile_bytes = args.num_arrays * LongerItemBytes(args) * kTileItems;
  return std::max<uint64_t>(kPartBytes / tile_bytes, 1) * kTileItems;
}

template <class Args>
bool AreFew(const Args& args) {
  return args.num_arrays <= kMaxRowBytes / LongerItemBytes(args) && args.num_items > PartRows(args);
}

// How many values ScanFunctions::reduce has of so many rows.
template <class Args>
uint64_t NumValues(const Args& args, uint64_t num_rows) {
  return IsOrdered(args.output(), args.op) ? NumParts(num_rows, kTileItems) : 1;
}

// Some rows of a matrix, column by column.
class Columns {
 public:
  Columns(const Kernels& kernels, DType dtype, uint64_t num_rows, uint64_t num_columns)
      : transposes_(*kernels.transposes),
        copy_streaming_(kernels.copy_streaming),
        dtype_(dtype),
        item_bytes_(SizeOf(dtype)),
        num_rows_(num_rows),
        num_columns_(num_columns),
        // A power of two would put all columns into a few sets of the cache.
        pitch_(RoundUp(num_rows, kMaxBlockItems) + kLineBytes / item_bytes_),
        items_(std::make_unique_for_overwrite<std::byte[]>(pitch_ * RoundUp(num_columns, BlockItems(item_bytes_)) *
                                                           item_bytes_)) {}

  void Load(const void* rows) {
    // The last rows come by way of a copy: blocks reach behind a row, where another thread may write.
    const uint64_t first_copied =
        num_rows_ < 2 * kMaxBlockItems ? 0 : num_rows_ / kMaxBlockItems * kMaxBlockItems - kMaxBlockItems;
    const uint64_t strip_rows = StripRows(kFetchedBytes);
    for (uint64_t row = 0; row < first_copied; row += strip_rows) {
      ToColumns(Advance(rows, row * RowBytes()), row, std::min(strip_rows, first_copied - row));
    }
    alignas(16) std::byte copy[2 * kMaxBlockItems * kMaxRowBytes + kBlockBytes] = {};
    std::memcpy(copy, Advance(rows, first_copied * RowBytes()), (num_rows_ - first_copied) * RowBytes());
    ToColumns(copy, first_copied, RoundUp(num_rows_ - first_copied, kMaxBlockItems));
  }

  // stream: past the caches.
  void Store(void* rows, bool stream) const {
    alignas(kLineBytes) std::byte made[kPassingBytes + kBlockBytes];
    const uint64_t strip_rows = StripRows(kPassingBytes);
    for (uint64_t row = 0; row < num_rows_; row += strip_rows) {
      const uint64_t count = std::min(strip_rows, num_rows_ - row), num_bytes = count * RowBytes();
      transposes_.to_rows[static_cast<int>(dtype_)]({.in = items_.get() + row * item_bytes_,
                                                     .out = made,
                                                     .num_rows = RoundUp(count, kMaxBlockItems),
                                                     .length = num_columns_,
                                                     .pitch = pitch_});
      void* const to = Advance(rows, row * RowBytes());
      stream ? copy_streaming_(to, made, num_bytes) : static_cast<void>(std::memcpy(to, made, num_bytes));
    }
  }

  std::byte* Column(uint64_t column) { return items_.get() + column * pitch_ * item_bytes_; }
  uint64_t num_rows() const { return num_rows_; }

 private:
  static constexpr uint64_t kBlockBytes = 16;
  static constexpr uint64_t kFetchedBytes = uint64_t{8} << 10;  // A strip is fetched while that before it is moved.
  static_assert(kMaxBlockItems * kMaxRowBytes <= kFetchedBytes);

  uint64_t RowBytes() const { return num_columns_ * item_bytes_; }
  uint64_t StripRows(uint64_t num_bytes) const { return num_bytes / RowBytes() / kMaxBlockItems * kMaxBlockItems; }
  void ToColumns(const void* rows, uint64_t row, uint64_t num_rows) {
    transposes_.to_columns[static_cast<int>(dtype_)]({.in = rows,
                                                      .out = items_.get() + row * item_bytes_,
                                                      .num_rows = num_rows,
                                                      .length = num_columns_,
                                                      .pitch = pitch_});
  }

  const TransposeTable& transposes_;
  void (*const copy_streaming_)(void* out, const void* in, size_t size_bytes);
  const DType dtype_;
  const size_t item_bytes_;
  const uint64_t num_rows_;
  const uint64_t num_columns_;
  const uint64_t pitch_;
  std::unique_ptr<std::byte[]> items_;
};

// A scan down columns, part by part in its order.
class ColumnsScan {
 public:
  // A part that has been loaded, and the values of its columns.
  struct Part {
    Columns items;
    std::optional<Columns> coefficients;
    std::unique_ptr<std::byte[]> values;
  };
  using Prefixes = std::vector<AnyPrefix>;  // Of each column.

  ColumnsScan(const Kernels& kernels, const ScanArgs& args)
      : kernels_(kernels),
        args_(args),
        functions_(kernels.Scan(args.dtype, args.output(), args.op, args.precision)),
        part_rows_(PartRows(args)),
        stream_(args.in != args.out && IsLargerThanCaches(args.num_items * args.num_arrays * ItemBytes(args))) {}

  uint64_t NumberOfParts() const { return NumParts(args_.num_items, part_rows_); }
  Prefixes Start() const { return Prefixes(args_.num_arrays, AnyPrefix::Before(args_)); }

  Part Load(uint64_t index) const {
    Part part = {.items = ColumnsOf(args_.dtype, index), .coefficients = {}, .values = {}};
    const uint64_t at = FirstRow(index) * args_.num_arrays * SizeOf(args_.dtype);
    part.items.Load(Advance(args_.in, at));
    if (args_.coefficients != nullptr) {
      part.coefficients.emplace(ColumnsOf(args_.dtype, index));
      part.coefficients->Load(Advance(args_.coefficients, at));
    }
    return part;
  }

  void Reduce(Part* part) const {
    part->values = std::make_unique_for_overwrite<std::byte[]>(args_.num_arrays * ValuesBytes());
    for (uint64_t column = 0; column < args_.num_arrays; ++column) {
      functions_.reduce(At(*part, column, nullptr), ValuesOf(*part, column));
    }
  }

  // Needs: it was reduced, and is whole.
  void Add(const Part& part, Prefixes* prefixes) const {
    for (uint64_t column = 0; column < args_.num_arrays; ++column) {
      functions_.add(ValuesOf(part, column), NumValues(args_, part_rows_), (*prefixes)[column].data());
    }
  }

  void Finish(uint64_t index, Part* part, Prefixes* prefixes) const {
    const size_t out_bytes = SizeOf(args_.output());
    std::optional<Columns> longer;
    if (out_bytes != SizeOf(args_.dtype)) longer.emplace(ColumnsOf(args_.output(), index));
    Columns& results = longer ? *longer : part->items;
    for (uint64_t column = 0; column < args_.num_arrays; ++column) {
      functions_.scan(At(*part, column, results.Column(column)), (*prefixes)[column].data());
    }
    results.Store(Advance(args_.out, FirstRow(index) * args_.num_arrays * out_bytes), stream_);
  }

 private:
  uint64_t FirstRow(uint64_t index) const {
    const uint64_t behind = index * part_rows_;
    return args_.reverse ? args_.num_items - behind - PartItems(args_.num_items, part_rows_, index) : behind;
  }
  Columns ColumnsOf(DType dtype, uint64_t index) const {
    return Columns(kernels_, dtype, PartItems(args_.num_items, part_rows_, index), args_.num_arrays);
  }
  // Of a column. The longest values are those of a recurrence of f64, a Step.
  uint64_t ValuesBytes() const { return NumValues(args_, part_rows_) * sizeof(Step<double>); }
  std::byte* ValuesOf(const Part& part, uint64_t column) const { return part.values.get() + column * ValuesBytes(); }
  ScanPart At(Part& part, uint64_t column, void* out) const {
    const std::byte* const in = part.items.Column(column);
    return {.in = in,
            .out = out,
            .num_items = part.items.num_rows(),
            .next = in,
            .reverse = args_.reverse,
            .exclusive = args_.kind == ScanKind::kExclusive,
            .coefficients = part.coefficients ? part.coefficients->Column(column) : nullptr,
            .coefficient = &args_.coefficient.bits};
  }

  const Kernels& kernels_;
  const ScanArgs& args_;
  const ScanFunctions& functions_;
  const uint64_t part_rows_;
  const bool stream_;
};

}  // namespace

bool AreFewColumns(const ScanArgs& args) { return AreFew(args); }
bool AreFewColumns(const ReduceArgs& args) { return AreFew(args); }

void ScanFewColumns(const Kernels& kernels, const ScanArgs& args) {
  const ColumnsScan scan(kernels, args);
  const uint64_t num_parts = scan.NumberOfParts();
  ColumnsScan::Prefixes prefixes = scan.Start();
  const auto reduce = [&](uint64_t index) {
    ColumnsScan::Part part = scan.Load(index);
    if (index + 1 < num_parts) scan.Reduce(&part);  // Nothing comes behind the last.
    return part;
  };
  const auto add = [&](const ColumnsScan::Part& part, ColumnsScan::Prefixes* sum) {
    if (part.values != nullptr) scan.Add(part, sum);
  };
  const auto finish = [&](uint64_t index, ColumnsScan::Prefixes before, ColumnsScan::Part& part, uint64_t /*next*/) {
    scan.Finish(index, &part, &before);
  };
  const auto whole = [&](uint64_t index, ColumnsScan::Prefixes* before, uint64_t /*next*/) {
    ColumnsScan::Part part = scan.Load(index);
    scan.Finish(index, &part, before);
  };
  Chain(NumThreads(num_parts), num_parts, &prefixes, reduce, add, finish, whole);
}

void ReduceFewColumns(const Kernels& kernels, const ReduceArgs& args) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const uint64_t value_bytes = CarryBytes(args.output(), args.op, args.precision);
  const uint64_t part_rows = PartRows(args), num_parts = NumParts(args.num_items, part_rows);
  // Values of the columns, one column after the other, each in the order of its parts.
  const uint64_t num_values = IsOrdered(args.output(), args.op) ? NumParts(args.num_items, kTileItems) : num_parts;
  const auto values = std::make_unique_for_overwrite<std::byte[]>(args.num_arrays * num_values * value_bytes);
  ForParts(num_parts, [&](uint64_t part) {
    Columns columns(kernels, args.dtype, PartItems(args.num_items, part_rows, part), args.num_arrays);
    columns.Load(Advance(args.in, part * part_rows * args.num_arrays * SizeOf(args.dtype)));
    for (uint64_t column = 0; column < args.num_arrays; ++column) {
      const std::byte* const in = columns.Column(column);
      const uint64_t at = column * num_values + part * NumValues(args, part_rows);
      functions.reduce({.in = in, .out = nullptr, .num_items = columns.num_rows(), .next = in},
                       values.get() + at * value_bytes);
    }
  });
  for (uint64_t column = 0; column < args.num_arrays; ++column) {
    ReduceArgs one = args;
    one.values = Advance(args.values, column * SizeOf(args.output()));
    FoldToValue(kernels, one, values.get() + column * num_values * value_bytes, num_values);
  }
}

}  // namespace prefixd::cpu
