// The common parts of CUB's algorithms: our operators under the names by which CUB knows them, iterators that load and
// store as operators.cuh says, and memory for CUB to work in.
//
// CUB joins elements in an order of its own. Integers, min and max have the same bits as ours; floating-point sums
// share only our rules for NaN, -0.0 and overflow.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_PARTS_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_PARTS_CUH_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cuda/functional>
#include <cuda/std/functional>
#include <iterator>
#include <type_traits>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/reduce_parts.cuh"
#include "kernels/yardsticks/serves.h"

namespace prefixd::cuda {

// The Operator that CUB runs. For min and max of floating point it is always the one on order keys: CUB has no operator
// that treats NaN and -0 as we do, but it has one on integers, for which it is tuned.
template <Op kOp, class Out>
struct CubItems : Operator<kOp, Out> {};
template <Op kOp>
requires(kHasPosition<kOp>) struct CubItems<kOp, float> : OrderKeys<kOp, float> {
};

template <Op kOp, class Item>
auto CubOperator() {
  if constexpr (kOp == Op::kSum) {
    return ::cuda::std::plus<Item>();
  } else if constexpr (kOp == Op::kMin) {
    return ::cuda::minimum<Item>();
  } else {
    static_assert(kOp == Op::kMax);
    return ::cuda::maximum<Item>();
  }
}

// The elements of an array as items, from `first` on: forwards (kStep 1) or backwards (-1).
template <class Items, class In, int kStep>
class LoadIterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = typename Items::Item;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = value_type;

  __host__ __device__ explicit LoadIterator(const In* first) : first_(first) {}
  __host__ __device__ LoadIterator operator+(difference_type n) const { return LoadIterator(first_ + kStep * n); }
  __device__ reference operator*() const { return Items::Load(*first_); }
  __device__ reference operator[](difference_type n) const { return Items::Load(first_[kStep * n]); }

 private:
  const In* first_;
};

// The elements of an output array, from `first` on: an item that is assigned to one is stored.
template <class Items, class Out, int kStep>
class StoreIterator {
 public:
  class Element {
   public:
    __device__ explicit Element(Out* element) : element_(element) {}
    __device__ void operator=(typename Items::Item item) const { *element_ = Items::Store(item); }

   private:
    Out* element_;
  };
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Out;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Element;

  __host__ __device__ explicit StoreIterator(Out* first) : first_(first) {}
  __host__ __device__ StoreIterator operator+(difference_type n) const { return StoreIterator(first_ + kStep * n); }
  __device__ reference operator*() const { return Element(first_); }
  __device__ reference operator[](difference_type n) const { return Element(first_ + kStep * n); }

 private:
  Out* first_;
};

// Plain pointers wherever they mean the same, so that CUB takes its fast paths.
template <class Items, int kStep, class In>
auto CubInput(const In* first) {
  using Item = typename Items::Item;
  constexpr bool kIsConversion = !kIsFloating<In> || kIsFloating<Item>;  // Load only converts.
  if constexpr (kStep == 1 && kIsConversion) {
    return first;
  } else {
    return LoadIterator<Items, In, kStep>(first);
  }
}
template <class Items, int kStep, class Out>
auto CubOutput(Out* first) {
  if constexpr (kStep == 1 && !kIsFloating<Out>) {
    return first;
  } else {
    return StoreIterator<Items, Out, kStep>(first);  // A NaN is made canonical.
  }
}

// An output iterator whose every element hands what is assigned to a functor.
template <class Function>
class Sink {
 public:
  class Element {
   public:
    __device__ explicit Element(const Function& function) : function_(function) {}
    template <class T>
    __device__ void operator=(const T& value) const {
      function_(value);
    }

   private:
    Function function_;
  };
  using iterator_category = std::random_access_iterator_tag;
  using value_type = void;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Element;

  __host__ __device__ explicit Sink(const Function& function) : function_(function) {}
  __host__ __device__ Sink operator+(difference_type) const { return *this; }
  __device__ reference operator*() const { return Element(function_); }
  __device__ reference operator[](difference_type) const { return Element(function_); }

 private:
  Function function_;
};

// Bytes for our own use, in front of the memory that CUB asked for.
inline constexpr size_t kScratchFrontBytes = 256;

// Calls algorithm(d_temp, temp_bytes), an algorithm of CUB, twice: first it tells how many bytes it needs; then, after
// prepare(d_front), it does its work.
template <class Algorithm, class Prepare>
cudaError_t RunCub(LaunchContext* context, Algorithm&& algorithm, Prepare&& prepare) {
  size_t temp_bytes = 0;
  cudaError_t error = algorithm(nullptr, temp_bytes);
  if (error != cudaSuccess) return error;
  void* d_scratch = nullptr;
  error = context->scratch.Get(context->stream, kScratchFrontBytes + std::max<size_t>(temp_bytes, 1), &d_scratch);
  if (error != cudaSuccess) return error;
  error = prepare(d_scratch);
  if (error != cudaSuccess) return error;
  return algorithm(static_cast<std::byte*>(d_scratch) + kScratchFrontBytes, temp_bytes);
}
template <class Algorithm>
cudaError_t RunCub(LaunchContext* context, Algorithm&& algorithm) {
  return RunCub(context, algorithm, [](void*) { return cudaSuccess; });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_PARTS_CUH_
