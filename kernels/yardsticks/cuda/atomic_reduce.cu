// Reduce, strategy "atomic": a tree in each block, and one atomic operation a block on the one result.
//
// Cost: work n, depth a block's tree and n / 512 atomics, which the L2 cache does one after the other. Three launches:
// one thread sets the result to the neutral item, the blocks add to it, one thread joins it with the start. Min and max
// also have a position, which no atomic operation finds along with the value: one more launch looks for the first
// element that has the value. Traffic n; for min and max 2n.
// Order: floating-point sums differ from run to run, with the order in which the blocks come.
// Source: Funktor, which recommends it in a sentence.
#include <cstdint>
#include <cuda/atomic>
#include <type_traits>

#include "kernels/yardsticks/cuda/reduce_items.cuh"
#include "kernels/yardsticks/cuda/reduces.h"

namespace prefixd::cuda {
namespace {

// The items of the atomic operations: for floating-point min and max, integers that order as the values do.
template <Op kOp, class T>
struct AtomicKeys : Operator<kOp, T> {};
template <Op kOp, class T>
requires(kHasPosition<kOp>&& kIsFloating<T>) struct AtomicKeys<kOp, T> : OrderKeys<kOp, T> {
};

// Floats are added as doubles: the card's atomic addition of floats takes denormals for zero.
template <>
struct AtomicKeys<Op::kSum, float> : Operator<Op::kSum, double> {};

template <Op kOp, class T>
struct AtomicItems {
  using Keys = AtomicKeys<kOp, T>;
  using Item = typename Keys::Item;

  static __device__ Item Load(T element, uint64_t /*position*/) { return Keys::Load(element); }
  static __device__ Item Neutral(T neutral) { return Keys::Load(neutral); }
  static __device__ Item Combine(Item left, Item right) { return Keys::Combine(left, right); }
};

template <class T>
using DeviceAtomic = ::cuda::atomic_ref<T, ::cuda::thread_scope_device>;

template <class Item>
struct AtomicResult {
  Item value;
  uint64_t position;
};

template <class T, class Item>
struct AtomicParams : ReduceTileParams<T> {
  AtomicResult<Item>* result;
};

template <class Items, class T, class Item>
__global__ void PrepareAtomicKernel(const __grid_constant__ AtomicParams<T, Item> p) {
  *p.result = {Items::Neutral(p.neutral), ReduceState::kNothing};
}

template <class Items, Op kOp, class T, class Item>
__global__ void __launch_bounds__(kReduceThreads) AtomicReduceKernel(const __grid_constant__ AtomicParams<T, Item> p) {
  __shared__ Item s_items[kReduceThreads];
  const Item mine = p.template Load<Items>(uint64_t{blockIdx.x} * kReduceThreads + threadIdx.x);
  const Item value = WarpShuffleTree::Run<Items>(mine, s_items, static_cast<int>(threadIdx.x));
  if (threadIdx.x != 0) return;
  const DeviceAtomic<Item> result(p.result->value);
  if constexpr (kOp == Op::kSum) result.fetch_add(value, ::cuda::memory_order_relaxed);
  if constexpr (kOp == Op::kMin) result.fetch_min(value, ::cuda::memory_order_relaxed);
  if constexpr (kOp == Op::kMax) result.fetch_max(value, ::cuda::memory_order_relaxed);
}

template <class Items, class T, class Item>
__global__ void __launch_bounds__(kReduceThreads) FindPositionKernel(const __grid_constant__ AtomicParams<T, Item> p) {
  const uint64_t i = uint64_t{blockIdx.x} * kReduceThreads + threadIdx.x;
  if (i >= p.num_items || Items::Load(p.in[i], 0) != p.result->value) return;
  const DeviceAtomic<uint64_t> first(p.result->position);
  const uint64_t position = p.first_item + i + 1;
  // Where many elements have the value, most find that they are not the first.
  if (first.load(::cuda::memory_order_relaxed) > position) first.fetch_min(position, ::cuda::memory_order_relaxed);
}

template <Op kOp, class Items, class T, class Item>
__global__ void FinishAtomicKernel(const __grid_constant__ AtomicParams<T, Item> p) {
  using Reduced = ReduceItems<kOp, T>;
  const T value = static_cast<T>(Items::Keys::Store(p.result->value));
  p.template Finish<Reduced>(Reduced::Load(value, p.result->position));
}

template <Op kOp, class T>
cudaError_t LaunchAtomic(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  using Items = AtomicItems<kOp, T>;
  using Item = typename Items::Item;
  AtomicParams<T, Item> params = {MakeReduceTileParams<T>(args), nullptr};
  void* d_result = nullptr;
  cudaError_t error = context->scratch.Get(context->stream, sizeof(AtomicResult<Item>), &d_result);
  if (error != cudaSuccess) return error;
  params.result = static_cast<AtomicResult<Item>*>(d_result);
  error = CountTiles(args.num_items, kReduceThreads, &params.num_tiles);
  if (error != cudaSuccess) return error;
  *num_launches = kHasPosition<kOp> ? 4 : 3;
  const cudaStream_t stream = context->stream;
  error = Launch(PrepareAtomicKernel<Items, T, Item>, 1, 1, stream, params);
  if (error != cudaSuccess) return error;
  error = Launch(AtomicReduceKernel<Items, kOp, T, Item>, params.num_tiles, kReduceThreads, stream, params);
  if (error != cudaSuccess) return error;
  if constexpr (kHasPosition<kOp>) {
    error = Launch(FindPositionKernel<Items, T, Item>, params.num_tiles, kReduceThreads, stream, params);
    if (error != cudaSuccess) return error;
  }
  return Launch(FinishAtomicKernel<kOp, Items, T, Item>, 1, 1, stream, params);
}

}  // namespace

template <class T>
cudaError_t LaunchAtomicReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTextbookOp(args.op,
                         [&](auto op) { return LaunchAtomic<decltype(op)::kValue, T>(args, context, num_launches); });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchAtomicReduce<T>(const ReduceArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
