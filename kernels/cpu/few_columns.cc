#include "kernels/cpu/few_columns.h"

#include <algorithm>
#include <atomic>
#include <climits>
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

// Longer rows have strips of columns for most threads, and so many tiles do not stay in the second-level cache.
constexpr uint64_t kMaxRowBytes = 8 * kLineBytes;

constexpr uint64_t RoundUp(uint64_t n, uint64_t unit) { return NumParts(n, unit) * unit; }

template <class Args>
uint64_t RowBytes(const Args& args) {
  return args.num_arrays * std::max(SizeOf(args.dtype), SizeOf(args.output()));
}

// Rows of a part: as many tiles of each column as stay in the second-level cache, or one.
template <class Args>
uint64_t PartRows(const Args& args) {
  return std::max<uint64_t>(kPartBytes / (RowBytes(args) * kTileItems), 1) * kTileItems;
}

// NumThreads counts in kPartBytes, and a part may have several of these.
template <class Args>
int ThreadsOf(const Args& args) {
  const uint64_t num_parts = NumParts(args.num_items, PartRows(args));
  return std::min(NumThreads(args.num_items * RowBytes(args) / kPartBytes),
                  static_cast<int>(std::min<uint64_t>(num_parts, INT_MAX)));
}

template <class Args>
bool AreFew(const Args& args) {
  return RowBytes(args) <= kMaxRowBytes && args.num_items > PartRows(args);
}

// How many values ScanFunctions::reduce has of so many rows.
template <class Args>
uint64_t NumValues(const Args& args, uint64_t num_rows) {
  return IsOrdered(args.output(), args.op) ? NumParts(num_rows, kTileItems) : 1;
}

// Some rows, column by column, in memory that they keep.
class Columns {
 public:
  // For up to max_rows.
  Columns(const Kernels& kernels, DType dtype, uint64_t max_rows, uint64_t num_columns)
      : transposes_(*kernels.transposes),
        copy_streaming_(kernels.copy_streaming),
        dtype_(dtype),
        item_bytes_(SizeOf(dtype)),
        num_columns_(num_columns),
        // A power of two would put all columns into a few sets of the cache.
        pitch_(RoundUp(max_rows, kMaxBlockItems) + kLineBytes / item_bytes_),
        items_(std::make_unique_for_overwrite<std::byte[]>(pitch_ * RoundUp(num_columns, BlockItems(item_bytes_)) *
                                                           item_bytes_)) {}

  void Load(const void* rows, uint64_t num_rows) {
    alignas(16) std::byte copy[kFetchedBytes + kBlockBytes] = {};
    const uint64_t strip_rows = StripRows(kFetchedBytes);
    for (uint64_t row = 0; row < num_rows; row += strip_rows) {
      const uint64_t count = std::min(strip_rows, num_rows - row);
      const void* from = Advance(rows, row * RowBytes());
      // Blocks reach behind a row, and behind the last ones another thread may write.
      if ((num_rows - row - count) * RowBytes() < kBlockBytes) {
        std::memcpy(copy, from, count * RowBytes());
        from = copy;
      }
      transposes_.to_columns[static_cast<int>(dtype_)]({.in = from,
                                                        .out = items_.get() + row * item_bytes_,
                                                        .num_rows = RoundUp(count, kMaxBlockItems),
                                                        .length = num_columns_,
                                                        .pitch = pitch_});
    }
  }

  // stream: past the caches.
  void Store(void* rows, uint64_t num_rows, bool stream) const {
    alignas(kLineBytes) std::byte made[kPassingBytes + kBlockBytes];
    const uint64_t strip_rows = StripRows(kPassingBytes);
    for (uint64_t row = 0; row < num_rows; row += strip_rows) {
      const uint64_t count = std::min(strip_rows, num_rows - row), num_bytes = count * RowBytes();
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

 private:
  static constexpr uint64_t kBlockBytes = 16;
  static constexpr uint64_t kFetchedBytes = uint64_t{8} << 10;  // A strip is fetched while that before it is moved.
  static_assert(kMaxBlockItems * kMaxRowBytes <= kFetchedBytes);

  uint64_t RowBytes() const { return num_columns_ * item_bytes_; }
  uint64_t StripRows(uint64_t num_bytes) const { return num_bytes / RowBytes() / kMaxBlockItems * kMaxBlockItems; }

  const TransposeTable& transposes_;
  void (*const copy_streaming_)(void* out, const void* in, size_t size_bytes);
  const DType dtype_;
  const size_t item_bytes_;
  const uint64_t num_columns_;
  const uint64_t pitch_;
  std::unique_ptr<std::byte[]> items_;
};

// A scan down columns, part by part in its order.
class ColumnsScan {
 public:
  using Prefixes = std::vector<AnyPrefix>;  // One for each column.

  // What a thread needs for a part. All is made before the threads begin, for who waits for its turn would wait for
  // ever for one that has not got its memory.
  struct Part {
    uint64_t num_rows;
    bool is_last;
    Columns items;
    std::optional<Columns> coefficients;
    std::optional<Columns> longer;  // Results that don't fit into the places of the items.
    std::unique_ptr<std::byte[]> values;
    Prefixes before;
  };

  ColumnsScan(const Kernels& kernels, const ScanArgs& args)
      : args_(args),
        functions_(kernels.Scan(args.dtype, args.output(), args.op, args.precision)),
        part_rows_(PartRows(args)),
        num_parts_(NumParts(args.num_items, part_rows_)),
        stream_(args.in != args.out && IsLargerThanCaches(args.num_items * args.num_arrays * ItemBytes(args))),
        prefixes_(args.num_arrays, AnyPrefix::Before(args)) {
    const auto columns = [&](DType dtype) { return Columns(kernels, dtype, part_rows_, args.num_arrays); };
    for (int thread = 0; thread < ThreadsOf(args); ++thread) {
      parts_.push_back({.num_rows = 0,
                        .is_last = false,
                        .items = columns(args.dtype),
                        .coefficients = {},
                        .longer = {},
                        .values = std::make_unique_for_overwrite<std::byte[]>(args.num_arrays * ValuesBytes()),
                        .before = prefixes_});
      if (args.coefficients != nullptr) parts_.back().coefficients.emplace(columns(args.dtype));
      if (SizeOf(args.output()) != SizeOf(args.dtype)) parts_.back().longer.emplace(columns(args.output()));
    }
    is_taken_ = std::vector<std::atomic<bool>>(parts_.size());
  }

  void Run() {
    const auto reduce = [&](uint64_t index) {
      Part* const part = Load(index);
      if (!part->is_last) Reduce(part);  // Nothing comes behind it.
      return part;
    };
    // What stands before a part is in prefixes_; a part that was reduced keeps it for itself.
    struct Nothing {
    } nothing;
    const auto add = [&](Part* part, Nothing* /*prefix*/) {
      std::copy(prefixes_.begin(), prefixes_.end(), part->before.begin());
      if (!part->is_last) Add(*part);
    };
    const auto finish = [&](uint64_t index, Nothing /*before*/, Part* part, uint64_t /*next*/) {
      Finish(index, part, &part->before);
    };
    const auto whole = [&](uint64_t index, Nothing* /*prefix*/, uint64_t /*next*/) {
      Finish(index, Load(index), &prefixes_);
    };
    Chain(static_cast<int>(parts_.size()), num_parts_, &nothing, reduce, add, finish, whole);
  }

 private:
  Part* Load(uint64_t index) {
    Part* const part = Take();
    part->num_rows = PartItems(args_.num_items, part_rows_, index);
    part->is_last = index + 1 == num_parts_;
    const uint64_t at = PlaceOf(index) * SizeOf(args_.dtype);
    part->items.Load(Advance(args_.in, at), part->num_rows);
    if (part->coefficients) part->coefficients->Load(Advance(args_.coefficients, at), part->num_rows);
    return part;
  }

  void Reduce(Part* part) const {
    for (uint64_t column = 0; column < args_.num_arrays; ++column) {
      functions_.reduce(At(*part, column, nullptr), ValuesOf(*part, column));
    }
  }

  // Needs: it was reduced.
  void Add(const Part& part) {
    for (uint64_t column = 0; column < args_.num_arrays; ++column) {
      functions_.add(ValuesOf(part, column), NumValues(args_, part_rows_), prefixes_[column].data());
    }
  }

  void Finish(uint64_t index, Part* part, Prefixes* prefixes) {
    Columns& results = part->longer ? *part->longer : part->items;
    for (uint64_t column = 0; column < args_.num_arrays; ++column) {
      functions_.scan(At(*part, column, results.Column(column)), (*prefixes)[column].data());
    }
    results.Store(Advance(args_.out, PlaceOf(index) * SizeOf(args_.output())), part->num_rows, stream_);
    is_taken_[part - parts_.data()].store(false, std::memory_order_release);
  }

  // There is one for each thread, so one is free.
  Part* Take() {
    for (size_t i = 0;; i = (i + 1) % parts_.size()) {
      if (!is_taken_[i].exchange(true, std::memory_order_acquire)) return &parts_[i];
    }
  }

  // The part's first item in the matrix.
  uint64_t PlaceOf(uint64_t index) const {
    const uint64_t behind = index * part_rows_;
    const uint64_t first_row =
        args_.reverse ? args_.num_items - behind - PartItems(args_.num_items, part_rows_, index) : behind;
    return first_row * args_.num_arrays;
  }
  // For a column. The longest values are those of a recurrence of f64, a Step.
  uint64_t ValuesBytes() const { return NumValues(args_, part_rows_) * sizeof(Step<double>); }
  std::byte* ValuesOf(const Part& part, uint64_t column) const { return part.values.get() + column * ValuesBytes(); }
  ScanPart At(Part& part, uint64_t column, void* out) const {
    const std::byte* const in = part.items.Column(column);
    return {.in = in,
            .out = out,
            .num_items = part.num_rows,
            .next = in,
            .reverse = args_.reverse,
            .exclusive = args_.kind == ScanKind::kExclusive,
            .coefficients = part.coefficients ? part.coefficients->Column(column) : nullptr,
            .coefficient = &args_.coefficient.bits};
  }

  const ScanArgs& args_;
  const ScanFunctions& functions_;
  const uint64_t part_rows_;
  const uint64_t num_parts_;
  const bool stream_;
  Prefixes prefixes_;  // Owned by the part whose turn it is.
  std::vector<Part> parts_;
  std::vector<std::atomic<bool>> is_taken_;
};

}  // namespace

bool AreFewColumns(const ScanArgs& args) { return AreFew(args); }
bool AreFewColumns(const ReduceArgs& args) { return AreFew(args); }

void ScanFewColumns(const Kernels& kernels, const ScanArgs& args) { ColumnsScan(kernels, args).Run(); }

void ReduceFewColumns(const Kernels& kernels, const ReduceArgs& args) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const uint64_t value_bytes = CarryBytes(args.output(), args.op, args.precision);
  const uint64_t part_rows = PartRows(args), num_parts = NumParts(args.num_items, part_rows);
  // Values of the columns, one column after the other, each in the order of its parts.
  const uint64_t num_values = IsOrdered(args.output(), args.op) ? NumParts(args.num_items, kTileItems) : num_parts;
  const auto values = std::make_unique_for_overwrite<std::byte[]>(args.num_arrays * num_values * value_bytes);
  const auto reduce = [&](uint64_t part) {
    const uint64_t num_rows = PartItems(args.num_items, part_rows, part);
    Columns columns(kernels, args.dtype, num_rows, args.num_arrays);
    columns.Load(Advance(args.in, part * part_rows * args.num_arrays * SizeOf(args.dtype)), num_rows);
    for (uint64_t column = 0; column < args.num_arrays; ++column) {
      const std::byte* const in = columns.Column(column);
      const uint64_t at = column * num_values + part * NumValues(args, part_rows);
      functions.reduce({.in = in, .out = nullptr, .num_items = num_rows, .next = in}, values.get() + at * value_bytes);
    }
  };
  if (ThreadsOf(args) > 1) {
    ParallelFor(num_parts, reduce);
  } else {
    for (uint64_t part = 0; part < num_parts; ++part) reduce(part);
  }
  for (uint64_t column = 0; column < args.num_arrays; ++column) {
    ReduceArgs one = args;
    one.values = Advance(args.values, column * SizeOf(args.output()));
    FoldToValue(kernels, one, values.get() + column * num_values * value_bytes, num_values);
  }
}

}  // namespace prefixd::cpu
