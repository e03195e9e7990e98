// Marks where extrema may stand, and the carry of a scan with their indices.
//
// A thread has kMarkItems items that stand kMarkThreads apart, so that a warp loads and stores whole lines, and its
// neighbours' extrema come from the cache. Traffic: reads the extrema, or these and the elements; writes the marks.
#include <cstdint>

#include "kernels/args/check.h"
#include "kernels/cuda/extrema.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/types.h"

namespace prefixd::cuda {
namespace {

constexpr int kMarkThreads = 256;
constexpr int kMarkItems = 4;

template <class T, class Index>
struct MarkParams {
  const T* in;
  const T* extrema;
  Index* marks;
  uint64_t num_items;   // In all arrays together.
  uint64_t width;       // Items in a row of memory: those of an array or, of interleaved arrays, one of each.
  uint64_t last_index;  // In an array.
  uint64_t first_item;  // Added to each index.
  const uint64_t* offsets;
  uint64_t num_segments;
  const ExtremumCarry* before;
  bool interleaved;
  bool reverse;
  bool marks_equals;
};

struct Place {
  uint64_t row;
  uint64_t column;
};
__device__ Place PlaceOf(uint64_t item, uint64_t width, uint64_t num_items) {
  if (width == num_items) return {0, item};
  if (num_items >> 32 == 0) {  // Division of 64 bits takes some sixty instructions.
    const auto row = static_cast<uint32_t>(item) / static_cast<uint32_t>(width);
    return {row, static_cast<uint32_t>(item) - row * static_cast<uint32_t>(width)};
  }
  return {item / width, item % width};
}

template <class T, class Index>
__device__ bool IsMarked(const MarkParams<T, Index>& p, uint64_t item, uint64_t index) {
  const T extremum = p.extrema[item];
  if (p.marks_equals) return AreSame(p.in[item], extremum);
  if (index == (p.reverse ? p.last_index : 0)) {
    if (p.before == nullptr) return true;
    return !AreSame(static_cast<T>(ValueAs<Accumulator<T>>(p.before->value)), extremum);
  }
  const uint64_t distance = p.interleaved ? p.width : 1;
  return !AreSame(p.extrema[p.reverse ? item + distance : item - distance], extremum);
}

template <class T, class Index>
__global__ void __launch_bounds__(kMarkThreads) MarkKernel(const MarkParams<T, Index> p) {
  const uint64_t first = blockIdx.x * uint64_t{kMarkThreads * kMarkItems} + threadIdx.x;
  Index marks[kMarkItems];
#pragma unroll
  for (int i = 0; i < kMarkItems; ++i) {
    const uint64_t item = first + i * kMarkThreads;
    if (item >= p.num_items) continue;
    const Place place = PlaceOf(item, p.width, p.num_items);
    const uint64_t index = p.interleaved ? place.row : place.column;
    const Index none = p.reverse ? ~Index{0} : 0;
    marks[i] = IsMarked(p, item, index) ? static_cast<Index>(p.first_item + index) : none;
  }
#pragma unroll
  for (int i = 0; i < kMarkItems; ++i) {
    const uint64_t item = first + i * kMarkThreads;
    if (item < p.num_items) p.marks[item] = marks[i];
  }
}

// A segment's first item has none before it, but for the other kernel it has.
template <class T, class Index>
__global__ void __launch_bounds__(kMarkThreads) MarkFirstsKernel(const MarkParams<T, Index> p) {
  const uint64_t segment = blockIdx.x * uint64_t{kMarkThreads} + threadIdx.x;
  if (segment >= p.num_segments) return;
  const uint64_t begin = p.offsets[segment], end = p.offsets[segment + 1];
  if (begin == end) return;
  const uint64_t item = p.reverse ? end - 1 : begin;
  p.marks[item] = static_cast<Index>(p.first_item + item);
}

template <class T, class Index>
cudaError_t LaunchMarksOf(const MarkArgs& args, LaunchContext* context) {
  const bool interleaved = args.num_arrays > 1 && args.order == BatchOrder::kInterleaved;
  const MarkParams<T, Index> params = {.in = static_cast<const T*>(args.in),
                                       .extrema = static_cast<const T*>(args.extrema),
                                       .marks = static_cast<Index*>(args.marks),
                                       .num_items = args.NumItems(),
                                       .width = interleaved ? args.num_arrays : args.num_items,
                                       .last_index = args.num_items - 1,
                                       .first_item = args.first_item,
                                       .offsets = args.offsets,
                                       .num_segments = args.num_arrays,
                                       .before = args.before,
                                       .interleaved = interleaved,
                                       .reverse = args.reverse,
                                       .marks_equals = args.marks_equals};
  uint32_t num_blocks = 0;
  cudaError_t error = CountTiles(params.num_items, kMarkThreads * kMarkItems, &num_blocks);
  if (error != cudaSuccess) return error;
  error = Launch(MarkKernel<T, Index>, num_blocks, kMarkThreads, context->stream, params);
  if (error != cudaSuccess || NumLaunches(args) == 1) return error;
  error = CountTiles(args.num_arrays, kMarkThreads, &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(MarkFirstsKernel<T, Index>, num_blocks, kMarkThreads, context->stream, params);
}

template <class T>
struct CarryParams {
  const T* extremum;
  const void* index;
  ExtremumCarry* carry;
  bool index_is_u32;
};

template <class T>
__global__ void CarryKernel(const CarryParams<T> p) {
  const uint64_t index =
      p.index_is_u32 ? *static_cast<const uint32_t*>(p.index) : *static_cast<const uint64_t*>(p.index);
  // Conversion gives a NaN other bits.
  *p.carry = {ValueOf(Canonical(static_cast<Accumulator<T>>(*p.extremum))), index};
}

}  // namespace

cudaError_t LaunchMarks(const MarkArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return args.index_dtype == DType::kU32 ? LaunchMarksOf<T, uint32_t>(args, context)
                                           : LaunchMarksOf<T, uint64_t>(args, context);
  });
}

cudaError_t LaunchExtremumCarry(const ScanArgs& args, LaunchContext* context) {
  const uint64_t last = args.reverse ? 0 : args.num_items - 1;
  return VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const CarryParams<T> params = {static_cast<const T*>(args.out) + last,
                                   Advance(args.indices, last * SizeOf(args.index_dtype)),
                                   static_cast<ExtremumCarry*>(args.carry_out), args.index_dtype == DType::kU32};
    return Launch(CarryKernel<T>, 1, 1, context->stream, params);
  });
}

}  // namespace prefixd::cuda
