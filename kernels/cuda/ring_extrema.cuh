// Scan by min or max that also says where each extremum stands, in a single pass, at the speed of a copy, for sm_90 and
// later: of one array, forwards, through the ring of ring_scan.cuh.
//
// An element becomes a rank, which says how it compares with every other one: a key that orders as the operator wants,
// and below it the element's position, so that no two ranks are equal. The extremum is the greatest rank, in any order,
// and a rank says all of a result. One kernel serves min and max, first and last, signed and unsigned: they differ in
// the bits that keys and positions are flipped by.
// Traffic: reads n, writes n values and n indices. One launch; nothing is reset before it.
// Source: that of ring_scan.cuh.
#ifndef PREFIXD_KERNELS_CUDA_RING_EXTREMA_CUH_
#define PREFIXD_KERNELS_CUDA_RING_EXTREMA_CUH_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/extrema.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_scan.cuh"
#include "kernels/cuda/ring_scan_shape.cuh"
#include "kernels/cuda/scan_run.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// A key of 64 bits and a tie. In words, so that it takes no more than its 12 bytes.
struct WideRank {
  uint32_t high;
  uint32_t low;
  uint32_t tie;
};

inline __device__ WideRank ShuffleFrom(WideRank rank, int lane) {
  return {ShuffleFrom(rank.high, lane), ShuffleFrom(rank.low, lane), ShuffleFrom(rank.tie, lane)};
}

// Ranks: the key above, the tie below. No element has the rank of zeros.
inline __device__ uint64_t RankOf(uint32_t key, uint32_t tie) { return uint64_t{key} << 32 | tie; }
inline __device__ uint32_t KeyOf(uint64_t rank) { return static_cast<uint32_t>(rank >> 32); }
inline __device__ uint32_t TieOf(uint64_t rank) { return static_cast<uint32_t>(rank); }

inline __device__ WideRank RankOf(uint64_t key, uint32_t tie) {
  return {static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), tie};
}
inline __device__ uint64_t KeyOf(WideRank rank) { return uint64_t{rank.high} << 32 | rank.low; }
inline __device__ uint32_t TieOf(WideRank rank) { return rank.tie; }

inline __device__ uint64_t Greater(uint64_t a, uint64_t b) { return a > b ? a : b; }
inline __device__ WideRank Greater(WideRank a, WideRank b) {
  const uint64_t key_a = KeyOf(a), key_b = KeyOf(b);
  return key_a > key_b || (key_a == key_b && a.tie > b.tie) ? a : b;
}

// The keys of elements of T. Integers are unsigned here: for signed ones the highest bit is flipped.
template <class T>
using RankKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
__device__ RankKey<T> ToKey(Accumulator<T> v, RankKey<T> flip) {
  if constexpr (kIsFloating<T>) {
    return v != v ? ~RankKey<T>{0} : static_cast<RankKey<T>>(OrderKey(v)) ^ flip;
  } else {
    return v ^ flip;
  }
}
// The key of NaNs, flipped either way, is a NaN again.
template <class T>
__device__ Accumulator<T> FromKey(RankKey<T> key, RankKey<T> flip) {
  if constexpr (kIsFloating<T>) {
    return Canonical(FromOrderKey(static_cast<std::make_signed_t<RankKey<T>>>(key ^ flip)));
  } else {
    return static_cast<T>(key ^ flip);
  }
}

// Greater values have greater keys, or by min smaller ones.
template <class T>
RankKey<T> KeyFlip(Op op, DType dtype) {
  using Bits = std::conditional_t<kIsFloating<T>, RankKey<T>, T>;
  constexpr Bits kAllBits = std::numeric_limits<Bits>::max();
  constexpr Bits kSign = kAllBits / 2 + 1;
  const bool is_signed = kIsFloating<T> || TraitsOf(dtype).is_signed_integer;
  return (is_signed ? kSign : 0) ^ (op == Op::kMin ? kAllBits : 0);
}

// What the scan is to: the values, and their indices.
template <class T, class Index>
struct Located {
  T value;
  Index index;
};

template <class T, class Index>
struct Operator<Op::kMax, Located<T, Index>> {
  using Item = decltype(RankOf(RankKey<T>{}, 0));
  static constexpr bool kAnyOrder = true;

  static __device__ Item Load(Item rank) { return rank; }
  static __device__ Item Combine(Item left, Item right) { return Greater(left, right); }
};

template <class T, class Index>
struct RingExtremaParams {
  static constexpr bool exclusive = false;
  using Rank = typename Operator<Op::kMax, Located<T, Index>>::Item;

  const T* in;
  T* out;
  Index* indices;
  uint64_t num_items;
  uint32_t num_tiles;  // The number of tickets.
  const ExtremumCarry* carry_in;
  ExtremumCarry* carry_out;  // May be carry_in.
  Index origin;              // Added to a position, it gives the index.
  RankKey<T> key_flip;
  uint32_t tie_flip;  // All bits if the first of equals is wanted.
  Rank neutral;
  TileStates states;
};

// A stage has 16 KiB, or one tile of narrow elements, and the ring is short, since writing takes most of the time. By
// measurement: with 3 warps that look back it is faster than with 2, 4 or 6, by up to 4 %, and than with 16 warps that
// scan and 6 (H200); with 12 stages it is no faster (H100).
template <class T>
using RingExtremaShape =
    RingScanShape<std::conditional_t<(sizeof(T) >= 4), RingTileShape<RingShape<T, 10>>,
                                     RingTileShape<RingShape<T, 20, kTileItems * sizeof(T), /*kNumTicketStages=*/4>>>,
                  8, 3>;

template <class T, class Index>
struct RingElements<Op::kMax, T, Located<T, Index>> : LeafByLeaf<RingElements<Op::kMax, T, Located<T, Index>>> {
  using Params = RingExtremaParams<T, Index>;
  using Shape = RingExtremaShape<T>;
  using Rank = typename Params::Rank;
  using Operator = prefixd::cuda::Operator<Op::kMax, Located<T, Index>>;
  using Run = ScanRun<Operator, Rank, Located<T, Index>>;

  T items[Shape::kStages][Shape::kStageItems];
  uint64_t carry_index;

  static __device__ void Prefetch(const Params& p, uint32_t ticket) {
    PrefetchTicket<Shape>(ticket, p.in, p.num_items);
  }
  __device__ void LoadStage(const Params& p, RingState<Shape::kStages>& ring, uint32_t stage, uint64_t begin) {
    LoadItems(ring, stage, items[stage], p.in + begin, RingElements::BulkPart(p, begin));
  }
  __device__ void LoadElement(const Params& p, uint32_t stage, uint64_t begin, uint32_t item) {
    items[stage][item] = p.in[begin + item];
  }

  // Positions count from 1, since what the carry stands for has 0.
  __device__ void LoadRun(const Params& p, uint32_t stage, uint64_t begin, int leaf, Rank (&elements)[4]) const {
    const int first_item = leaf * Shape::kLeafItems + 4 * LaneOfWarp();
    T of_run[4];
    prefixd::cuda::LoadRun(&items[stage][first_item], of_run);
    const uint32_t position = static_cast<uint32_t>(begin) + first_item + 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      elements[i] = RankOf(ToKey<T>(of_run[i], p.key_flip), (position + i) ^ p.tie_flip);
    }
  }

  // The carry's index is kept here: when it is needed, another block may have written carry_out in its place.
  __device__ Rank LoadStart(const Params& p) {
    if (p.carry_in == nullptr) return p.neutral;
    const ExtremumCarry carry = *p.carry_in;
    if (threadIdx.x == 0) carry_index = carry.index;
    return RankOf(ToKey<T>(ValueAs<Accumulator<T>>(carry.value), p.key_flip), p.tie_flip);
  }

  __device__ void StoreLeaf(const Params& p, uint64_t leaf_begin, const Run& run) const {
    T values[4];
    Index indices[4];
    GetResults(p, run, values, indices);
    StoreRow(p.out + leaf_begin, values);
    StoreRow(p.indices + leaf_begin, indices);
  }

  __device__ void StoreItems(const Params& p, uint64_t first_item, const Run& run) const {
    T values[4];
    Index indices[4];
    GetResults(p, run, values, indices);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first_item + i >= p.num_items) continue;
      p.out[first_item + i] = values[i];
      p.indices[first_item + i] = indices[i];
    }
  }

  __device__ void KeepCarry(const Params& p, uint64_t first_item, const Run& run) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first_item + i != p.num_items - 1) continue;
      __threadfence();
      const Rank rank = run.items[i];
      *p.carry_out = {ValueOf(FromKey<T>(KeyOf(rank), p.key_flip)), IndexOf(p, rank, static_cast<Index>(carry_index))};
    }
  }

 private:
  static __device__ Index IndexOf(const Params& p, Rank rank, Index of_carry) {
    const uint32_t position = TieOf(rank) ^ p.tie_flip;
    return position == 0 ? of_carry : p.origin + position;
  }

  __device__ void GetResults(const Params& p, const Run& run, T (&values)[4], Index (&indices)[4]) const {
    const auto of_carry = static_cast<Index>(carry_index);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i] = static_cast<T>(FromKey<T>(KeyOf(run.items[i]), p.key_flip));
      indices[i] = IndexOf(p, run.items[i], of_carry);
    }
  }
};

template <class T, class Index>
cudaError_t LaunchRingExtremaTo(const ScanArgs& args, LaunchContext* context) {
  using Elements = RingElements<Op::kMax, T, Located<T, Index>>;
  using RingScan = RingScan<Elements>;
  static_assert(sizeof(typename RingScan::Shared) <= kRingExtremaSharedBytes);
  typename Elements::Params params = {.in = static_cast<const T*>(args.in),
                                      .out = static_cast<T*>(args.out),
                                      .indices = static_cast<Index*>(args.indices),
                                      .num_items = args.num_items,
                                      .num_tiles = 0,
                                      .carry_in = static_cast<const ExtremumCarry*>(args.carry_in),
                                      .carry_out = static_cast<ExtremumCarry*>(args.carry_out),
                                      .origin = static_cast<Index>(args.first_item - 1),
                                      .key_flip = KeyFlip<T>(args.op, args.dtype),
                                      .tie_flip = args.last_index ? 0 : std::numeric_limits<uint32_t>::max(),
                                      .neutral = {},
                                      .states = {}};
  return LaunchRingScan<Elements>(params, context);
}

template <class T>
cudaError_t LaunchRingExtremaOf(const ScanArgs& args, LaunchContext* context) {
  return args.index_dtype == DType::kU32 ? LaunchRingExtremaTo<T, uint32_t>(args, context)
                                         : LaunchRingExtremaTo<T, uint64_t>(args, context);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_EXTREMA_CUH_
