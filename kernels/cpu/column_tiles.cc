#include "kernels/cpu/column_tiles.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "kernels/args/check.h"
#include "kernels/cpu/any_prefix.h"
#include "kernels/cpu/arrays.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce.h"

namespace prefixd::cpu {
namespace {

// Strips of a thread that are wider are faster: they read once.
constexpr uint64_t kMaxThreadRowBytes = 4 * kLineBytes;
// Shorter rows fill few vectors or none (few_columns.h).
constexpr uint64_t kMinRowBytes = 2 * kLineBytes;

template <class Args>
bool AreTiles(const Args& args) {
  const auto num_threads = static_cast<uint64_t>(Concurrency());
  const uint64_t row_bytes = args.num_arrays * std::max(SizeOf(args.dtype), SizeOf(args.output()));
  return num_threads > 1 && row_bytes >= kMinRowBytes && row_bytes <= num_threads * kMaxThreadRowBytes &&
         NumParts(args.num_items, kTileItems) >= 2 * num_threads;
}

const void* CoefficientsOf(const ScanArgs& args) { return args.coefficients; }
const void* CoefficientsOf(const ReduceArgs&) { return nullptr; }
const void* CoefficientOf(const ScanArgs& args) { return &args.coefficient.bits; }
const void* CoefficientOf(const ReduceArgs&) { return nullptr; }

// The tiles of a matrix's columns in the order of a scan, in strips of columns, and their values.
template <class Args>
class Tiles {
 public:
  Tiles(const Kernels& kernels, const Args& args, bool reverse)
      : args_(args),
        functions_(kernels.Columns(args.dtype, args.output(), args.op, args.precision)),
        item_bytes_(AnyPrefix::ItemBytes(args)),
        strip_columns_(MostStripColumns(args)),
        first_row_(reverse ? args.num_items - 1 : 0),
        step_(reverse ? -1 : 1),
        num_tiles_(NumParts(args.num_items, kTileItems)) {}

  uint64_t num_tiles() const { return num_tiles_; }

  // Calls run(tile, column, part), which has rows, columns and elements, for each strip of the first num_tiles tiles.
  template <class Run>
  void ForEach(uint64_t num_tiles, const Run& run) const {
    const uint64_t num_strips = NumParts(args_.num_arrays, strip_columns_);
    ParallelFor(num_tiles * num_strips, [&](uint64_t index) {
      const uint64_t tile = index / num_strips, strip = index % num_strips;
      const uint64_t column = strip * strip_columns_;
      const uint64_t place = PlaceOf(tile, column) * SizeOf(args_.dtype);
      const void* const coefficients = CoefficientsOf(args_);
      run(tile, column,
          ColumnPart{.in = Advance(args_.in, place),
                     .out = nullptr,
                     .num_rows = PartItems(args_.num_items, kTileItems, tile),
                     .num_columns = PartItems(args_.num_arrays, strip_columns_, strip),
                     .pitch = static_cast<int64_t>(args_.num_arrays) * step_,
                     .before = nullptr,
                     .coefficients = coefficients == nullptr ? nullptr : Advance(coefficients, place),
                     .coefficient = CoefficientOf(args_)});
    });
  }

  // Sets the values of the first num_tiles tiles.
  void Reduce(uint64_t num_tiles) {
    values_ = std::make_unique_for_overwrite<std::byte[]>(num_tiles * args_.num_arrays * item_bytes_);
    const AnyPrefix neutral = AnyPrefix::Neutral(args_);
    ForEach(num_tiles, [&](uint64_t tile, uint64_t column, ColumnPart part) {
      part.out = ValueOf(tile, column);
      part.before = neutral.data();
      functions_.reduce_items(part);
    });
  }

  // Needs: Reduce, of this tile too.
  std::byte* ValueOf(uint64_t tile, uint64_t column) const {
    return values_.get() + (tile * args_.num_arrays + column) * item_bytes_;
  }

  // Calls run(first, num_columns) for groups of columns. One thread takes all tiles of a group.
  template <class Run>
  void ForColumns(const Run& run) const {
    constexpr uint64_t kColumns = 16;
    ParallelFor(NumParts(args_.num_arrays, kColumns),
                [&](uint64_t i) { run(i * kColumns, PartItems(args_.num_arrays, kColumns, i)); });
  }

  size_t item_bytes() const { return item_bytes_; }
  const ColumnFunctions& Functions() const { return functions_; }
  // The first of a tile's items in the order of the scan.
  uint64_t PlaceOf(uint64_t tile, uint64_t column) const {
    const uint64_t row = tile * kTileItems;
    return (step_ < 0 ? first_row_ - row : row) * args_.num_arrays + column;
  }

 private:
  const Args& args_;
  const ColumnFunctions& functions_;
  const size_t item_bytes_;
  const uint64_t strip_columns_;
  const uint64_t first_row_;
  const int step_;
  const uint64_t num_tiles_;
  std::unique_ptr<std::byte[]> values_;  // A row for each tile.
};

}  // namespace

bool AreColumnTiles(const ScanArgs& args) { return AreTiles(args); }
bool AreColumnTiles(const ReduceArgs& args) { return AreTiles(args); }

void ScanColumnTiles(const Kernels& kernels, const ScanArgs& args) {
  Tiles<ScanArgs> tiles(kernels, args, args.reverse);
  const uint64_t num_columns = args.num_arrays, num_tiles = tiles.num_tiles();
  tiles.Reduce(num_tiles - 1);
  // What stands before each tile of each column.
  const auto before = std::make_unique_for_overwrite<AnyPrefix[]>(num_tiles * num_columns);
  const auto add = kernels.Scan(args.dtype, args.output(), args.op, args.precision).add;
  const AnyPrefix first = AnyPrefix::Before(args);
  tiles.ForColumns([&](uint64_t first_column, uint64_t count) {
    std::fill_n(&before[first_column], count, first);
    for (uint64_t tile = 1; tile < num_tiles; ++tile) {
      AnyPrefix* const here = &before[tile * num_columns + first_column];
      std::copy_n(here - num_columns, count, here);
      for (uint64_t i = 0; i < count; ++i) add(tiles.ValueOf(tile - 1, first_column + i), 1, here[i].data());
    }
  });
  const bool stream = args.in != args.out && IsLargerThanCaches(args.num_items * num_columns * ItemBytes(args));
  tiles.ForEach(num_tiles, [&](uint64_t tile, uint64_t column, ColumnPart part) {
    part.out = Advance(args.out, tiles.PlaceOf(tile, column) * SizeOf(args.output()));
    part.exclusive = args.kind == ScanKind::kExclusive;
    part.stream = stream;
    part.before = before[tile * num_columns + column].data();
    part.before_bytes = sizeof(AnyPrefix);
    tiles.Functions().scan(part);
  });
}

void ReduceColumnTiles(const Kernels& kernels, const ReduceArgs& args) {
  Tiles<ReduceArgs> tiles(kernels, args, /*reverse=*/false);
  const uint64_t num_tiles = tiles.num_tiles();
  const size_t item_bytes = tiles.item_bytes();
  tiles.Reduce(num_tiles);
  tiles.ForColumns([&](uint64_t first_column, uint64_t count) {
    const auto values = std::make_unique_for_overwrite<std::byte[]>(num_tiles * item_bytes);
    for (uint64_t column = first_column; column < first_column + count; ++column) {
      for (uint64_t tile = 0; tile < num_tiles; ++tile) {
        std::memcpy(values.get() + tile * item_bytes, tiles.ValueOf(tile, column), item_bytes);
      }
      ReduceArgs one = args;
      one.values = Advance(args.values, column * SizeOf(args.output()));
      FoldToValue(kernels, one, values.get(), num_tiles);
    }
  });
}

}  // namespace prefixd::cpu
