// A lane's run of a leaf in the ring scan. It joins its leaf, then the array once the prefix is known, and is stored.
#ifndef PREFIXD_KERNELS_CUDA_SCAN_RUN_CUH_
#define PREFIXD_KERNELS_CUDA_SCAN_RUN_CUH_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/packed_run.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// A run is read as four Elements and written as four Results.
template <class Operator, class In, class Out>
struct ScanRun {
  using Item = typename Operator::Item;
  using Element = In;
  using Result = Out;

  Item items[kRunItems];
  Item before;

  // The value of the whole run.
  static __device__ Item Value(const Element (&elements)[4]) {
    Item value = Operator::Load(elements[0]);
#pragma unroll
    for (int i = 1; i < 4; ++i) value = Operator::Combine(value, Operator::Load(elements[i]));
    return value;
  }

  // Joins the run into its leaf. Called by all lanes of the warp.
  __device__ void Join(const Element (&elements)[4], Item neutral) {
#pragma unroll
    for (int i = 0; i < 4; ++i) items[i] = Operator::Load(elements[i]);
    before = JoinRun<Operator>(items, neutral);
  }

  // Joins the run into the array. Its results are inclusive from then on.
  __device__ void Finish(const LeafPrefix<Item>& leaf, const TilePrefix<Item>& tile) {
    JoinArray<Operator>(items, before, leaf.before, tile);
  }

  // Makes the results exclusive. Called by all lanes of the warp.
  __device__ void MakeExclusive(const LeafPrefix<Item>& leaf, bool is_first_leaf, const TilePrefix<Item>& tile) {
    MoveByOne<Operator>(items, is_first_leaf, leaf.up_to, tile);
  }

  __device__ void GetResults(Result (&results)[4]) const {
    if constexpr (kIsNarrowFloat<Out>) {
      const uint32_t pairs[2] = {RoundedPair<Out>(Operator::Unrounded(items[0]), Operator::Unrounded(items[1])),
                                 RoundedPair<Out>(Operator::Unrounded(items[2]), Operator::Unrounded(items[3]))};
      memcpy(results, pairs, sizeof(pairs));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) results[i] = Operator::Store(items[i]);
    }
  }
};

// Narrow elements whose order is free, and whose results have their type, stay in words: a run is 16 bytes.
template <Op kOp, class T>
requires(Operator<kOp, T>::kAnyOrder && sizeof(T) < 4) struct ScanRun<Operator<kOp, T>, T, T> {
  using Packed = PackedRun<kOp, T>;
  using Operator = prefixd::cuda::Operator<kOp, T>;
  using Item = typename Operator::Item;
  using Element = uint32_t;
  using Result = uint32_t;

  uint32_t words[4];
  Item before;

  static __device__ Item Value(const uint32_t (&elements)[4]) { return PackedValue<kOp, T, T>(elements); }

  __device__ void Join(const uint32_t (&elements)[4], Item neutral) {
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = elements[w];
    before = ShuffleFrom(WarpTrees<Operator>(Value(words)), LaneOfWarp() - 1);
    if (LaneOfWarp() == 0) before = neutral;
  }

  __device__ void Finish(const LeafPrefix<Item>& leaf, const TilePrefix<Item>& tile) {
    before = Operator::Combine(Operator::Combine(tile.array, tile.group), Operator::Combine(leaf.before, before));
    Packed::Scan(before, words);
  }

  __device__ void MakeExclusive(const LeafPrefix<Item>&, bool, const TilePrefix<Item>&) {
    Packed::MoveByOne(before, words);
  }

  __device__ void GetResults(uint32_t (&results)[4]) const {
#pragma unroll
    for (int w = 0; w < 4; ++w) results[w] = kIsNarrowFloat<T> ? CanonicalPair<T>(words[w]) : words[w];
  }
};

// Sums of narrow integers in a wider type: the four elements stay in one or two words, added by dot products with ones.
template <class In, class Out>
requires(!kIsFloating<In> && sizeof(In) < 4 && sizeof(Out) >= 4) struct ScanRun<Operator<Op::kSum, Out>, In, Out> {
  using Operator = prefixd::cuda::Operator<Op::kSum, Out>;
  using Item = typename Operator::Item;
  using Element = In;
  using Result = Out;
  using Small = std::conditional_t<kIsSignedInteger<In>, int32_t, uint32_t>;
  static constexpr int kWords = sizeof(In);

  Small words[kWords];
  Item before;
  bool exclusive = false;

  // The sum of the first i + 1 elements and `from`.
  static __device__ Small SumUpTo(int i, const Small (&words)[kWords], Small from) {
    if constexpr (sizeof(In) == 1) {
      return __dp4a(words[0], static_cast<Small>(0x01010101u >> (24 - 8 * i)), from);
    } else {
      const Small low = __dp2a_lo(words[0], static_cast<Small>(i == 0 ? 0x01 : 0x0101), from);
      return i < 2 ? low : __dp2a_lo(words[1], static_cast<Small>(i == 2 ? 0x01 : 0x0101), low);
    }
  }

  static __device__ Item Value(const Element (&elements)[4]) {
    Small words[kWords];
    memcpy(words, elements, sizeof(words));
    return SumUpTo(3, words, 0);
  }

  __device__ void Join(const Element (&elements)[4], Item neutral) {
    memcpy(words, elements, sizeof(words));
    before = ShuffleFrom(WarpTrees<Operator>(static_cast<Item>(SumUpTo(3, words, 0))), LaneOfWarp() - 1);
    if (LaneOfWarp() == 0) before = neutral;
  }

  __device__ void Finish(const LeafPrefix<Item>& leaf, const TilePrefix<Item>& tile) {
    before = Operator::Combine(Operator::Combine(tile.array, tile.group), Operator::Combine(leaf.before, before));
  }

  __device__ void MakeExclusive(const LeafPrefix<Item>&, bool, const TilePrefix<Item>&) { exclusive = true; }

  __device__ void GetResults(Result (&results)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int last = exclusive ? i - 1 : i;
      if constexpr (sizeof(Out) == 4) {
        results[i] = last < 0 ? before : static_cast<Out>(SumUpTo(last, words, static_cast<Small>(before)));
      } else {
        results[i] = last < 0 ? before : Operator::Combine(before, SumUpTo(last, words, 0));
      }
    }
  }
};

// Stores four results of each lane, lane after lane, to global memory by whole sectors. All lanes of the warp call it.
template <class T>
__device__ void StoreRow(T* row, const T (&results)[4]) {
  if constexpr (sizeof(T) <= 4) {
    reinterpret_cast<Vector<T, 4>*>(row)[LaneOfWarp()] = {{results[0], results[1], results[2], results[3]}};
  } else {
    // Two stores of 16 bytes: neighbouring lanes swap halves, and store the even lane's results, then the odd lane's.
    using Half = Vector<T, 2>;
    static_assert(sizeof(Half) == 16);
    const bool is_odd = LaneOfWarp() % 2 != 0;
    const Half low = {{results[0], results[1]}};
    const Half high = {{results[2], results[3]}};
    Half swapped;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      swapped.items[i] = ShuffleFrom(is_odd ? low.items[i] : high.items[i], LaneOfWarp() ^ 1);
    }
    Half* halves = reinterpret_cast<Half*>(row) + LaneOfWarp() / 2 * 4 + LaneOfWarp() % 2;
    halves[0] = is_odd ? swapped : low;
    halves[2] = is_odd ? high : swapped;
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SCAN_RUN_CUH_
