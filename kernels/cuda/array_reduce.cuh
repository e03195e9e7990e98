// What the reduces of many arrays to a value each have in common: rows and segments (row_reduce.cuh, range_reduce.cuh,
// segment_reduce.cuh), and columns (column_reduce.cuh).
//
// An array is cut in tiles, which are reduced at once. Who has reduced the last tile of an array waits for the values
// of the others and folds them, in the order of kernels/NUMERICS.md. Those were begun before, so they need nothing of
// who waits: tiles are numbered by tickets.
#ifndef PREFIXD_KERNELS_CUDA_ARRAY_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_ARRAY_REDUCE_CUH_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cuda/array_prefix.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/reduce_parts.cuh"

namespace prefixd::cuda {

template <class In, class Out>
struct ArrayReduceParams {
  ReduceParams<In, Out> each;  // num_items: of an array. num_tiles: the tickets, of whole blocks.
  unsigned char* values;       // An item for each array.
  int value_bytes;             // The size of an item of values.
  Value empty;                 // The value of an array without elements.
  const uint64_t* offsets;     // ReduceArgs::offsets of segments. Null: arrays have one length.
  uint64_t num_arrays;
  uint64_t all_items;    // In all arrays.
  uint64_t array_tiles;  // In an array of one length, at least 1.
  uint64_t num_slots;    // Tiles of all arrays, at most.
  bool is_split;         // Whether an array may have several tiles.
  int slots_of_warp;     // For rows and segments.
};

// Writes what an array of this value, joined with the start, comes to. Needs: it has elements.
template <Op kOp, class In, class Out, class Item>
__device__ void StoreValue(const ArrayReduceParams<In, Out>& p, uint64_t array, Item item) {
  Value value;
  if constexpr (kMakesStates<kOp, Out>) {
    value = ValueOf(Operator<kOp, Out>::Store(item));
  } else {
    value = StateBehind<kOp>(p.each, p.each.init, item, 0).value;
  }
  if constexpr (kIsNarrowFloat<In>) {
    if (p.value_bytes == sizeof(In)) {
      return StoreBits(p.values, p.value_bytes, array, In(ValueAs<float>(value)).bits);
    }
  }
  StoreBits(p.values, p.value_bytes, array, value.bits);
}

// The number of the block: that in the grid, or the ticket that it takes where blocks wait for others. Called by all
// threads, once.
template <class In, class Out>
__device__ uint32_t TakeBlock(const ArrayReduceParams<In, Out>& p, uint32_t* s_ticket) {
  if (!p.is_split) return blockIdx.x;
  if (threadIdx.x == 0) *s_ticket = p.each.states.TakeTile();
  __syncthreads();
  return *s_ticket;
}
// The block reads no more states. Called by all threads, once.
template <class In, class Out>
__device__ void LeaveBlock(const ArrayReduceParams<In, Out>& p) {
  if (!p.is_split) return;
  __syncthreads();
  if (threadIdx.x == 0) p.each.states.Leave();
}

// Sets what depends on the number of tiles. Needs: the rest of params.
// cudaErrorInvalidConfiguration if a grid cannot have that many blocks.
template <class In, class Out>
cudaError_t CountSlots(uint64_t slots_of_block, ArrayReduceParams<In, Out>* params) {
  const uint64_t max_slots = uint64_t{std::numeric_limits<int32_t>::max()} * slots_of_block;
  params->is_split = params->each.num_items > kTileItems;
  if (params->offsets != nullptr) {
    params->num_slots = params->each.num_items / kTileItems + params->num_arrays;
  } else {
    params->array_tiles = std::max<uint64_t>((params->each.num_items + kTileItems - 1) / kTileItems, 1);
    if (params->num_arrays > max_slots / params->array_tiles) return cudaErrorInvalidConfiguration;
    params->num_slots = params->num_arrays * params->array_tiles;
  }
  if (params->num_slots > max_slots) return cudaErrorInvalidConfiguration;
  params->each.num_tiles = static_cast<uint32_t>((params->num_slots + slots_of_block - 1) / slots_of_block);
  return cudaSuccess;
}

// Gets memory for the values of tiles, if any array may have several. Needs: CountSlots was called.
template <class Item, class In, class Out>
cudaError_t PrepareStates(uint64_t num_states, LaunchContext* context, ArrayReduceParams<In, Out>* params) {
  if (!params->is_split) return cudaSuccess;
  void* d_words = nullptr;
  const cudaError_t error =
      context->states.Get(context->stream, num_states * kStateWords<Item> * sizeof(uint64_t), &d_words);
  params->each.states = {.control = context->d_control,
                         .words = static_cast<uint64_t*>(d_words),
                         .num_words = context->states.size_bytes() / sizeof(uint64_t)};
  return error;
}

template <class In, class Out, Op kOp>
ArrayReduceParams<In, Out> ArrayParamsOf(const ReduceArgs& args) {
  return {.each = ReduceParamsOf<In, Out, kOp>(args),
          .values = static_cast<unsigned char*>(args.values),
          .value_bytes = static_cast<int>(SizeOf(args.output())),
          .empty = EmptyValue(args),
          .offsets = args.offsets,
          .num_arrays = args.num_arrays,
          .all_items = args.offsets != nullptr ? args.num_items : args.num_items * args.num_arrays,
          .array_tiles = 0,
          .num_slots = 0,
          .is_split = false,
          .slots_of_warp = 0};
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ARRAY_REDUCE_CUH_
