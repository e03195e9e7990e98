// Arrays of any lengths that follow each other, as blocks share them: segments, or the rows of a matrix.
//
// All elements are cut into ranges, and a block, or a warp (warp_ranges.cuh), has a range: the tiles of arrays that
// begin in it. So it has about as many elements as any other, whatever the lengths. A block brings them to shared
// memory. There arrays of up to a tile are worked on, short ones by a thread and others by a warp. Of the arrays of
// several tiles one has at most one tile that begins in a range, and at most two have any: one that began before, and
// the last that begins here. Ranges are taken by ticket, so that a tile waits only for those of earlier ranges
// (look_back.cuh).
#ifndef PREFIXD_KERNELS_CUDA_ARRAY_RANGES_CUH_
#define PREFIXD_KERNELS_CUDA_ARRAY_RANGES_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/array_states.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

inline constexpr int kRangeThreads = 256;
inline constexpr int kRangeWarps = kRangeThreads / kWarpThreads;
// Elements of a range: no more than a tile, so that at most one tile of an array begins in it.
template <class T>
inline constexpr int kRangeItems = 16'384 / sizeof(T) < kTileItems ? 16'384 / sizeof(T) : kTileItems;
// An array up to here is worked on by a thread.
inline constexpr int kMaxThreadItems = 32;

// What FindRanges finds of a range, or of the end behind the last one.
struct RangeBegin {
  uint64_t array;   // The first array that begins at the range's first item or behind; or num_arrays.
  uint64_t begin;   // Where it begins; or the end.
  uint64_t before;  // Where the array before it begins. 0 if there is none.
};

// Where arrays are. Places are those of a view, whose item i, if it is reversed, is the i-th from the end.
struct ArrayView {
  uint64_t num_items;  // In all arrays.
  uint64_t num_arrays;
  const uint64_t* offsets;   // ScanArgs::offsets. Null: arrays have one length.
  uint64_t array_items;      // That length.
  const RangeBegin* ranges;  // One more than there are ranges. Null: arrays have one length.
  bool reverse;
  bool aligned;  // Items can be moved by words of 16 bytes, from multiples of a word on.

  // Where an array begins. That with the number num_arrays is the end.
  __device__ uint64_t Begin(uint64_t array) const {
    const uint64_t index = reverse ? num_arrays - array : array;
    const uint64_t offset = offsets != nullptr ? offsets[index] : index * array_items;
    return reverse ? num_items - offset : offset;
  }
  __device__ RangeBegin BeginOfRange(uint64_t range, uint64_t range_items) const {
    if (ranges != nullptr) return ranges[range];
    const uint64_t array = (min(range * range_items, num_items) + array_items - 1) / array_items;
    const uint64_t begin = array * array_items;
    return {array, begin, array == 0 ? 0 : begin - array_items};
  }
};

// What arrays without elements come to, and where the values of arrays are. Null: nowhere.
struct EmptyArrays {
  void* values = nullptr;
  DType dtype = DType::kI8;
  Value value = {};
};

// Sets view->ranges, if there are offsets, and writes the values of empty arrays, by a launch of its own. The ranges
// are there until the context's scratch memory is used again.
cudaError_t FindRanges(uint64_t range_items, uint32_t num_ranges, const EmptyArrays& empty, LaunchContext* context,
                       ArrayView* view);

// A tile of an array of several.
struct SplitTile {
  uint64_t array;
  uint64_t begin;  // The array's, and its end.
  uint64_t end;
  uint64_t tile;

  __device__ uint64_t At() const { return begin + tile * kTileItems; }
  __device__ uint64_t End() const { return min(end, At() + kTileItems); }
  __device__ int NumItems() const { return static_cast<int>(End() - At()); }
  __device__ bool IsLast() const { return At() + kTileItems >= end; }
};

// What a block has, or a warp. The same in all threads.
struct Range {
  uint64_t begin;  // The items of its tiles, and their end.
  uint64_t end;
  uint64_t first_array;  // The arrays that begin here,
  uint64_t end_array;    // and their end.
  bool has_earlier;      // Whether a tile of an array that began before begins here.
  bool has_last;         // Whether the last array that begins here has several tiles.
  SplitTile earlier;
  SplitTile last;  // Its first tile.

  __device__ Range(const ArrayView& view, uint64_t number, uint64_t num_ranges, uint64_t range_items)
      : Range(view, number, num_ranges, range_items, view.BeginOfRange(number, range_items),
              view.BeginOfRange(number + 1, range_items)) {}
  // from, to: where it begins, and the one behind it.
  __device__ Range(const ArrayView& view, uint64_t number, uint64_t num_ranges, uint64_t range_items, RangeBegin from,
                   RangeBegin to) {
    const uint64_t range_begin = number * range_items;
    const uint64_t range_end = min(range_begin + range_items, view.num_items);
    const bool any_begins = to.array > from.array;
    first_array = from.array;
    end_array = number + 1 == num_ranges ? view.num_arrays : to.array;
    earlier = {from.array - 1, from.before, from.begin, (range_begin - from.before + kTileItems - 1) / kTileItems};
    has_earlier = from.array > 0 && earlier.At() < min(from.begin, range_end);
    last = {to.array - 1, to.before, to.begin, 0};
    has_last = any_begins && to.begin - to.before > kTileItems;
    begin = has_earlier ? earlier.At() : min(from.begin, range_end);
    end = has_earlier ? begin + earlier.NumItems() : begin;
    if (any_begins) end = to.before + last.NumItems();
  }
};

// Args: ScanArgs, ReduceArgs.
template <class Args>
ArrayView ViewOf(const Args& args) {
  const bool has_offsets = args.offsets != nullptr;
  ArrayView view = {.num_items = has_offsets ? args.num_items : args.num_items * args.num_arrays,
                    .num_arrays = args.num_arrays,
                    .offsets = args.offsets,
                    .array_items = args.num_items,
                    .ranges = nullptr,
                    .reverse = false,
                    .aligned = false};
  if constexpr (requires { args.reverse; }) view.reverse = args.reverse;
  return view;
}

// The number of ranges, at least one; where they begin; and memory for states.
template <class Item>
cudaError_t PrepareRanges(uint64_t range_items, LaunchContext* context, ArrayView* view, uint32_t* num_ranges,
                          TileStates* states, const EmptyArrays& empty = {}) {
  cudaError_t error = CountTiles(view->num_items, range_items, num_ranges);
  if (error == cudaSuccess) error = FindRanges(range_items, *num_ranges, empty, context, view);
  if (error != cudaSuccess) return error;
  void* d_words = nullptr;
  const uint64_t num_words = ArrayStates::Count(view->num_items) * kStateWords<Item>;
  error = context->states.Get(context->stream, num_words * sizeof(uint64_t), &d_words);
  *states = {.control = context->d_control,
             .words = static_cast<uint64_t*>(d_words),
             .num_words = context->states.size_bytes() / sizeof(uint64_t)};
  return error;
}

// An array of up to a tile.
struct ArrayPiece {
  int begin;  // In RangeItems::items.
  int num_items;
  uint32_t array;
};

// Where an array is, or nothing: begin is end.
struct ArrayBounds {
  uint64_t begin;
  uint64_t end;
};
// For the thread's array among those from `chunk` on.
inline __device__ ArrayBounds BoundsOf(const ArrayView& view, const Range& range, uint64_t chunk) {
  const uint64_t array = chunk + threadIdx.x;
  if (array >= range.end_array) return {};
  return {view.Begin(array), view.Begin(array + 1)};
}

// The first array behind the chunk's. From so many on, arrays without elements that follow each other are passed over:
// all of them begin in one range. Who has a result for them has written it before.
inline constexpr uint64_t kSkippedArrays = uint64_t{1} << 14;
inline __device__ uint64_t NextChunk(const ArrayView& view, const Range& range, uint64_t chunk,
                                     uint64_t chunk_arrays = kRangeThreads) {
  const uint64_t next = chunk + chunk_arrays;
  if (next + kSkippedArrays > range.end_array) return next;
  const uint64_t begin = view.Begin(next);
  if (view.Begin(next + kSkippedArrays) > begin) return next;
  uint64_t low = next + kSkippedArrays, high = range.end_array;  // The last that begins there.
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (view.Begin(middle) > begin) {
      high = middle - 1;
    } else {
      low = middle;
    }
  }
  return low;
}

// A block's range in shared memory.
template <class T>
struct RangeItems {
  static constexpr int kWordItems = 16 / sizeof(T);
  using Word = uint4;

  alignas(16) T items[kRangeItems<T> + kTileItems + kWordItems];
  ArrayPiece pieces[kRangeThreads];
  int num_pieces;
  uint32_t ticket;

  // The place of an item of the view.
  static __device__ int Place(const Range& range, uint64_t item) {
    return static_cast<int>(item - range.begin / kWordItems * kWordItems);
  }

  // Called by all threads, once.
  __device__ uint32_t TakeRange(const TileStates& states) {
    if (threadIdx.x == 0) {
      ticket = states.TakeTile();
      num_pieces = 0;
    }
    __syncthreads();
    return ticket;
  }

  // Brings the range in. Called by all threads, which meet after it.
  template <class In>
  __device__ void Load(const ArrayView& view, const In* in, const Range& range) {
    constexpr int kUnroll = 4;
    const uint64_t first = range.begin / kWordItems * kWordItems;
    const int begin = Place(range, range.begin), end = Place(range, range.end);
    const auto thread = static_cast<int>(threadIdx.x);
    int done = begin;
    if (std::is_same_v<In, T> && view.aligned) {
      // From the word's beginning, where an array before has items too, to the last whole word.
      const auto* const from = reinterpret_cast<const Word*>(in + first);
      const int num_words = end / kWordItems;
      for (int i = thread; i < num_words; i += kUnroll * kRangeThreads) {
        Word words[kUnroll];
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
          if (i + k * kRangeThreads < num_words) words[k] = from[i + k * kRangeThreads];
        }
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
          if (i + k * kRangeThreads < num_words) reinterpret_cast<Word*>(items)[i + k * kRangeThreads] = words[k];
        }
      }
      done = max(num_words * kWordItems, begin);
    }
    const TileView<const In> from(in, view.num_items, first, view.reverse);
    for (int i = done + thread; i < end; i += kUnroll * kRangeThreads) {
      In some[kUnroll];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        if (i + k * kRangeThreads < end) some[k] = from[i + k * kRangeThreads];
      }
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        if (i + k * kRangeThreads < end) items[i + k * kRangeThreads] = static_cast<T>(some[k]);
      }
    }
  }
  // Takes out the items from `from` to `until`. Called by all threads, which met before it.
  __device__ void Store(const ArrayView& view, const Range& range, uint64_t from, uint64_t until, T* out) const {
    const uint64_t first = range.begin / kWordItems * kWordItems;
    const int begin = Place(range, from), end = Place(range, until);
    const TileView<T> to(out, view.num_items, first, view.reverse);
    const auto thread = static_cast<int>(threadIdx.x);
    int done = begin;
    if (view.aligned) {
      const int middle = min((begin + kWordItems - 1) / kWordItems * kWordItems, end);
      done = max(end / kWordItems * kWordItems, middle);
      if (begin + thread < middle) to[begin + thread] = items[begin + thread];
      for (int i = middle + thread * kWordItems; i < done; i += kRangeThreads * kWordItems) {
        *reinterpret_cast<Word*>(to.first + i) = *reinterpret_cast<const Word*>(items + i);
      }
    }
    for (int i = done + thread; i < end; i += kRangeThreads) to[i] = items[i];
  }

  // For the arrays that begin in the range and have no more than a tile, but some: calls by_thread(items, num_items,
  // array), from one thread; or by_warp(items, num_items, array), from a warp. bounds: BoundsOf the first chunk, which
  // are asked for before the range is loaded. Called by all threads, which meet in between and afterwards.
  template <class ByThread, class ByWarp>
  __device__ void ForArrays(const ArrayView& view, const Range& range, ArrayBounds bounds, ByThread by_thread,
                            ByWarp by_warp) {
    for (uint64_t chunk = range.first_array; chunk < range.end_array; chunk = NextChunk(view, range, chunk)) {
      if (chunk > range.first_array) {
        bounds = BoundsOf(view, range, chunk);
        if (threadIdx.x == 0) num_pieces = 0;
        __syncthreads();
      }
      const uint64_t array = chunk + threadIdx.x;
      const uint64_t num_items = bounds.end - bounds.begin;
      if (num_items == 0) {
        // Nothing is to be done.
      } else if (num_items <= kMaxThreadItems) {
        by_thread(items + Place(range, bounds.begin), static_cast<int>(num_items), array);
      } else if (num_items <= kTileItems) {
        pieces[atomicAdd(&num_pieces, 1)] = {Place(range, bounds.begin), static_cast<int>(num_items),
                                             static_cast<uint32_t>(array)};
      }
      __syncthreads();
      for (int i = WarpOfBlock(); i < num_pieces; i += kRangeWarps) {
        by_warp(items + pieces[i].begin, pieces[i].num_items, pieces[i].array);
      }
      __syncthreads();
    }
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ARRAY_RANGES_CUH_
