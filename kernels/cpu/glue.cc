#include "kernels/cpu/glue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <utility>

#include "kernels/args/check.h"
#include "kernels/cpu/caches.h"
#include "kernels/cpu/compact.h"
#include "kernels/interval.h"

namespace prefixd::cpu {
namespace {

int IndexOf(DType dtype) { return static_cast<int>(dtype); }

// Calls run(first, count) for the parts of an array whose elements, in or out, have at most item_bytes.
template <class RunPart>
void ForItems(uint64_t num_items, size_t item_bytes, const RunPart& run) {
  const uint64_t part_items = kPartBytes / item_bytes;
  ForParts(NumParts(num_items, part_items),
           [&](uint64_t part) { run(part * part_items, PartItems(num_items, part_items, part)); });
}

MapLoop LoopOf(const MapTable& table, const MapArgs& args) {
  switch (args.op) {
    case MapOp::kCast:
      return table.cast[IndexOf(args.dtype)][IndexOf(args.cast_dtype)];
    case MapOp::kCompareArrays:
      return table.compare_arrays[static_cast<int>(args.comparison)][IndexOf(args.dtype)];
    default:
      return table.of[static_cast<int>(args.op)][IndexOf(args.dtype)];
  }
}

MapPart WholeMap(const MapArgs& args) {
  MapPart whole = {.in = args.in, .other = nullptr, .out = args.out, .num_items = args.num_items};
  if (NumInputs(args.op) == 2) whole.other = args.other;
  if (args.op == MapOp::kAffine) {
    whole.a = ToAccumulator(args.a, args.dtype);
    whole.b = ToAccumulator(args.b, args.dtype);
  }
  if (args.op == MapOp::kCompare) {
    VisitDType(args.dtype, [&](auto tag) {
      const auto interval = IntervalOf<typename decltype(tag)::type>(args.comparison, args.a, args.b);
      whole.a = Value::Of(interval.low);
      whole.b = Value::Of(interval.high);
      whole.outside = interval.outside;
    });
  }
  return whole;
}

Work RunAtIndices(const Kernels& kernels, const GatherPart& whole, DType dtype, DType index_dtype, bool gathers,
                  uint64_t* num_bad) {
  const size_t item_bytes = SizeOf(dtype), index_bytes = SizeOf(index_dtype);
  const auto& table = gathers ? kernels.gathers->gather : kernels.gathers->scatter;
  const auto run = table[IndexOf(dtype)][index_dtype == DType::kU64 ? 1 : 0];
  std::atomic<uint64_t> all_bad = 0;
  ForItems(whole.num_items, std::max(item_bytes, index_bytes), [&](uint64_t first, uint64_t count) {
    GatherPart part = whole;
    part.indices = Advance(whole.indices, first * index_bytes);
    (gathers ? part.out = Advance(whole.out, first * item_bytes) : part.in = Advance(whole.in, first * item_bytes));
    part.num_items = count;
    if (const uint64_t bad = run(part); bad > 0) all_bad.fetch_add(bad, std::memory_order_relaxed);
  });
  *num_bad = all_bad.load(std::memory_order_relaxed);
  return {.launches = 1};
}

}  // namespace

Work RunFill(const Kernels& kernels, const FillArgs& args) {
  if (args.num_items == 0) return {};
  const size_t item_bytes = SizeOf(args.dtype);
  const auto fill = kernels.fills->of[static_cast<int>(args.kind)][IndexOf(args.dtype)];
  ForItems(args.num_items, item_bytes, [&](uint64_t first, uint64_t count) {
    fill({.out = Advance(args.out, first * item_bytes),
          .num_items = count,
          .first_item = args.first_item + first,
          .value = args.value,
          .step = args.step,
          .seed = args.seed,
          .stream = IsLargerThanCaches(NumBytes(args))});
  });
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

Work RunMap(const Kernels& kernels, const MapArgs& any_args) {
  const MapArgs args = WithoutGreater(any_args);
  if (args.num_items == 0) return {};
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const MapLoop loop = LoopOf(*kernels.maps, args);
  const MapPart whole = WholeMap(args);
  const bool in_place = whole.out == whole.in || whole.out == whole.other;
  const bool stream = !in_place && IsLargerThanCaches(NumBytes(args));
  ForItems(args.num_items, std::max(in_bytes, out_bytes), [&](uint64_t first, uint64_t count) {
    MapPart part = whole;
    part.in = Advance(whole.in, first * in_bytes);
    part.other = Advance(whole.other, first * in_bytes);
    part.out = Advance(whole.out, first * out_bytes);
    part.num_items = count;
    stream ? kernels.maps->stream(loop, part, in_bytes, out_bytes) : loop(part);
  });
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

Work RunGather(const Kernels& kernels, const GatherArgs& args) {
  Work work = RunAtIndices(kernels,
                           {.in = args.in,
                            .indices = args.indices,
                            .out = args.out,
                            .num_items = args.num_items,
                            .bound = args.in_items,
                            .stream = IsLargerThanCaches(NumBytes(args))},
                           args.dtype, args.index_dtype, /*gathers=*/true, args.num_bad);
  work.num_bytes = NumBytes(args);
  return work;
}

Work RunScatter(const Kernels& kernels, const ScatterArgs& args) {
  Work work = RunAtIndices(kernels,
                           {.in = args.in,
                            .indices = args.indices,
                            .out = args.out,
                            .num_items = args.num_items,
                            .bound = args.out_items,
                            .stream = false},
                           args.dtype, args.index_dtype, /*gathers=*/false, args.num_bad);
  work.num_bytes = NumBytes(args);
  return work;
}

Work RunCount(const Kernels& /*kernels*/, const CountArgs& args) {
  if (args.num_items == 0) return {};
  const auto count = [&](const auto* indices) {
    const auto* const end = indices + args.num_indices;
    ForItems(args.num_items, sizeof(uint64_t), [&](uint64_t first, uint64_t num_items) {
      const auto* at = std::lower_bound(indices, end, args.offsets[first]);
      for (uint64_t i = first; i < first + num_items; ++i) {
        const auto* const next = std::lower_bound(at, end, args.offsets[i + 1]);
        args.counts[i] = static_cast<uint64_t>(next - at);
        at = next;
      }
    });
  };
  if (args.index_dtype == DType::kU64) {
    count(static_cast<const uint64_t*>(args.indices));
  } else {
    count(static_cast<const uint32_t*>(args.indices));
  }
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

Work RunFindRuns(const Kernels& kernels, const RunsArgs& args) {
  const size_t key_bytes = SizeOf(args.dtype);
  const uint64_t num_blocks = NumParts(args.num_items, kRunsPartItems);
  auto* const begins = static_cast<uint64_t*>(args.scratch);  // How many runs begin before each block.
  // Calls run(block, num_items, marks) for each block. marks: a byte for each key, 1 if it begins a run, else 0.
  const auto for_blocks = [&](const auto& run) {
    static_assert(kPartBytes >= kRunsPartItems * sizeof(uint64_t), "a part has a block at least");
    const uint64_t part_blocks = kPartBytes / (kRunsPartItems * key_bytes);
    ForParts(NumParts(num_blocks, part_blocks), [&](uint64_t part) {
      std::array<uint8_t, kRunsPartItems> marks;
      const uint64_t end = part * part_blocks + PartItems(num_blocks, part_blocks, part);
      for (uint64_t block = part * part_blocks; block < end; ++block) {
        const uint64_t first = block * kRunsPartItems;
        const uint64_t num_items = PartItems(args.num_items, kRunsPartItems, block);
        const uint64_t skipped = block == 0 ? 1 : 0;  // The first key has none before it.
        marks[0] = 1;
        RunMap(kernels, {.op = MapOp::kCompareArrays,
                         .dtype = args.dtype,
                         .comparison = Comparison::kNotEqual,
                         .in = Advance(args.keys, (first + skipped) * key_bytes),
                         .other = Advance(args.keys, (first + skipped - 1) * key_bytes),
                         .out = marks.data() + skipped,
                         .num_items = num_items - skipped});
        run(block, num_items, marks);
      }
    });
  };
  for_blocks([&](uint64_t block, uint64_t num_items, const auto& marks) {
    begins[block] = std::accumulate(marks.begin(), marks.begin() + num_items, uint64_t{0});
  });
  uint64_t num_runs = 0;
  for (uint64_t block = 0; block < num_blocks; ++block) num_runs += std::exchange(begins[block], num_runs);
  for_blocks([&](uint64_t block, uint64_t num_items, const auto& marks) {
    uint64_t count = 0;
    RunCompact(kernels, {.dtype = DType::kU8,
                         .selector = Selector::kByteMask,
                         .mask = marks.data(),
                         .num_items = num_items,
                         .first_item = block * kRunsPartItems,
                         .indices = args.offsets + begins[block],
                         .count = &count});
  });
  args.offsets[num_runs] = args.num_items;
  *args.num_offsets = num_runs + 1;
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

Work RunTranspose(const Kernels& kernels, const TransposeArgs& args) {
  if (args.num_rows == 0 || args.num_columns == 0) return {};
  const size_t size = SizeOf(args.dtype);
  const uint64_t side = TransposeSide(size);
  const uint64_t squares_across = NumParts(args.num_columns, side);
  const uint64_t num_squares = NumParts(args.num_rows, side) * squares_across;
  const uint64_t part_squares = kPartBytes / (side * side * size);
  const auto transpose = kernels.transposes->of[IndexOf(args.dtype)];
  const auto run = [&](uint64_t part) {
    const uint64_t begin = part * part_squares;
    for (uint64_t i = begin; i < begin + PartItems(num_squares, part_squares, part); ++i) {
      const uint64_t row = i / squares_across * side, column = i % squares_across * side;
      transpose({.in = Advance(args.in, (row * args.num_columns + column) * size),
                 .out = Advance(args.out, (column * args.num_rows + row) * size),
                 .num_rows = std::min(side, args.num_rows - row),
                 .num_columns = std::min(side, args.num_columns - column),
                 .in_pitch = args.num_columns,
                 .out_pitch = args.num_rows,
                 .stream = IsLargerThanCaches(NumBytes(args))});
    }
  };
  ForParts(NumParts(num_squares, part_squares), run);
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

}  // namespace prefixd::cpu
