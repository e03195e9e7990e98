#include "kernels/cpu/column_tiles.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/args/check.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/operators.h"
#include "kernels/cpu/parallel.h"

namespace prefixd::cpu {
namespace {

// Strips of a thread that are wider are faster: they read once.
constexpr uint64_t kMaxThreadRowBytes = 4 * kLineBytes;
// Rows that are shorter, or a little longer, leave most of a vector empty (few_columns.h).
constexpr uint64_t kMinRowBytes = 2 * kLineBytes;

template <class Args>
bool AreTiles(const Args& args) {
  if (args.IsWide() || args.op == Op::kLinearRecurrence || args.op == Op::kLogAddExp) return false;
  const auto num_threads = static_cast<uint64_t>(Concurrency());
  const uint64_t row_bytes = args.num_arrays * std::max(SizeOf(args.dtype), SizeOf(args.output()));
  return num_threads > 1 && row_bytes >= kMinRowBytes && row_bytes < num_threads * kMaxThreadRowBytes &&
         NumParts(args.num_items, kTileItems) >= 2 * num_threads;
}

// The tiles of a matrix's columns in the order of a scan, in strips of columns.
template <class Args>
class Tiles {
 public:
  Tiles(const Kernels& kernels, const Args& args, bool reverse)
      : args_(args),
        item_(AccumulatorOf(args.output())),
        reduce_(kernels.columns->reduce[Index(args.dtype)][Index(item_)][static_cast<int>(args.op)]),
        strip_columns_(StripColumns(args.dtype, item_)),
        first_row_(reverse ? args.num_items - 1 : 0),
        step_(reverse ? -1 : 1),
        num_tiles_(NumParts(args.num_items, kTileItems)) {}

  uint64_t num_tiles() const { return num_tiles_; }
  DType ItemType() const { return item_; }

  // Calls run(tile, part), which has rows, columns and elements, for each strip of the first num_tiles tiles.
  template <class Run>
  void ForEach(uint64_t num_tiles, const Run& run) const {
    const uint64_t num_strips = NumParts(args_.num_arrays, strip_columns_);
    ParallelFor(num_tiles * num_strips, [&](uint64_t index) {
      const uint64_t tile = index / num_strips, strip = index % num_strips;
      const uint64_t column = strip * strip_columns_;
      run(tile, column,
          ColumnPart{.in = Advance(args_.in, PlaceOf(tile, column) * SizeOf(args_.dtype)),
                     .out = nullptr,
                     .num_rows = PartItems(args_.num_items, kTileItems, tile),
                     .num_columns = PartItems(args_.num_arrays, strip_columns_, strip),
                     .pitch = static_cast<int64_t>(args_.num_arrays) * step_,
                     .exclusive = false,
                     .start = nullptr});
    });
  }

  // The values of the first num_tiles tiles, of ItemType(): a row for each.
  std::unique_ptr<std::byte[]> Reduce(uint64_t num_tiles) const {
    const uint64_t row_bytes = args_.num_arrays * SizeOf(item_);
    auto values = std::make_unique_for_overwrite<std::byte[]>(num_tiles * row_bytes);
    const Value neutral = Neutral(args_.op, item_);
    ForEach(num_tiles, [&](uint64_t tile, uint64_t column, ColumnPart part) {
      part.out = values.get() + tile * row_bytes + column * SizeOf(item_);
      part.start = &neutral.bits;
      reduce_(part);
    });
    return values;
  }

  // The first of a tile's items in the order of the scan.
  uint64_t PlaceOf(uint64_t tile, uint64_t column) const {
    const uint64_t row = tile * kTileItems;
    return (step_ < 0 ? first_row_ - row : row) * args_.num_arrays + column;
  }

 private:
  static int Index(DType dtype) { return static_cast<int>(dtype); }

  const Args& args_;
  const DType item_;
  void (*const reduce_)(const ColumnPart& part);
  const uint64_t strip_columns_;
  const uint64_t first_row_;
  const int step_;
  const uint64_t num_tiles_;
};

// Calls f(operator, a value of no meaning of the items' type). Needs: AreTiles.
template <class F>
void VisitTiles(DType item, Op op, F&& f) {
  VisitDType(item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Accumulator<T>>) {
      FatalValue("VisitTiles", item);
    } else {
      VisitFunction<T>(op, [&](auto combine) {
        if constexpr (std::is_same_v<decltype(combine), AddScaled>) {
          FatalValue("VisitTiles", op);
        } else {
          f(combine, T{});
        }
      });
    }
  });
}

// What stands before the next tile of a column.
template <class T>
class TilePrefix {
 public:
  TilePrefix(T start, T neutral) : neutral_(neutral), prefix_(PrefixOf(start, neutral)) {}

  T Last() const { return prefix_.last; }
  T Groups() const { return prefix_.groups; }
  // The later slots are in the smaller blocks. Neutral ones change nothing.
  template <class Combine>
  T Tree(Combine combine) const {
    const T* const b = prefix_.tiles.blocks;
    return combine(b[4], combine(b[3], combine(b[2], combine(b[1], b[0]))));
  }
  template <class Combine>
  void Add(T tile, Combine combine) {
    PrefixTree<T>& tiles = prefix_.tiles;
    prefix_.last = combine(prefix_.groups, combine(Tree(combine), tile));
    if (tiles.num_slots == kJoinSlots - 1) {
      prefix_ = PrefixOf(prefix_.last, neutral_);
      return;
    }
    int level = 0;
    for (uint32_t n = tiles.num_slots; n & 1; n >>= 1) {
      tile = combine(tiles.blocks[level], tile);
      tiles.blocks[level++] = neutral_;
    }
    tiles.blocks[level] = tile;
    ++tiles.num_slots;
  }

 private:
  T neutral_;
  Prefix<T> prefix_;
};

}  // namespace

bool AreColumnTiles(const ScanArgs& args) { return AreTiles(args); }
bool AreColumnTiles(const ReduceArgs& args) { return AreTiles(args); }

void ScanColumnTiles(const Kernels& kernels, const ScanArgs& args) {
  const Tiles<ScanArgs> tiles(kernels, args, args.reverse);
  const auto scan =
      kernels.columns->scan[static_cast<int>(args.dtype)][static_cast<int>(args.output())][static_cast<int>(args.op)];
  const uint64_t num_columns = args.num_arrays, num_tiles = tiles.num_tiles();
  const auto values = tiles.Reduce(num_tiles - 1);
  VisitTiles(tiles.ItemType(), args.op, [&](auto combine, auto item) {
    using T = decltype(item);
    const T neutral = Neutral(args.op, kDTypeOf<T>).template As<T>();
    const T start = ToAccumulator(args.init, args.output()).template As<T>();
    std::vector<TilePrefix<T>> before(num_columns, TilePrefix<T>(start, neutral));
    std::vector<T> last(num_tiles * num_columns), groups(num_tiles * num_columns), trees(num_tiles * num_columns);
    const auto* value = reinterpret_cast<const T*>(values.get());
    for (uint64_t i = 0; i < num_tiles * num_columns; ++i) {
      TilePrefix<T>& prefix = before[i % num_columns];
      last[i] = Canonical(prefix.Last());
      groups[i] = prefix.Groups();
      trees[i] = prefix.Tree(combine);
      if (i + num_columns < num_tiles * num_columns) prefix.Add(*value++, combine);
    }
    const bool stream = args.in != args.out && IsLargerThanCaches(args.num_items * num_columns * ItemBytes(args));
    tiles.ForEach(num_tiles, [&](uint64_t tile, uint64_t column, ColumnPart part) {
      const uint64_t at = tile * num_columns + column;
      const ColumnStarts starts = {.last = &last[at], .groups = &groups[at], .tiles = &trees[at]};
      part.out = Advance(args.out, tiles.PlaceOf(tile, column) * SizeOf(args.output()));
      part.exclusive = args.kind == ScanKind::kExclusive;
      part.stream = stream;
      part.start = &start;
      part.starts = &starts;
      scan(part);
    });
  });
}

void ReduceColumnTiles(const Kernels& kernels, const ReduceArgs& args) {
  const Tiles<ReduceArgs> tiles(kernels, args, /*reverse=*/false);
  const auto values = tiles.Reduce(tiles.num_tiles());
  VisitTiles(tiles.ItemType(), args.op, [&](auto combine, auto item) {
    using T = decltype(item);
    const T neutral = Neutral(args.op, kDTypeOf<T>).template As<T>();
    std::vector<TilePrefix<T>> before(args.num_arrays, TilePrefix<T>(args.init.value.As<T>(), neutral));
    const auto* value = reinterpret_cast<const T*>(values.get());
    for (uint64_t tile = 0; tile < tiles.num_tiles(); ++tile) {
      for (TilePrefix<T>& prefix : before) prefix.Add(*value++, combine);
    }
    VisitDType(args.output(), [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      auto* out = static_cast<Out*>(args.values);
      for (const TilePrefix<T>& prefix : before) *out++ = Out(Canonical(prefix.Last()));
    });
  });
}

}  // namespace prefixd::cpu
