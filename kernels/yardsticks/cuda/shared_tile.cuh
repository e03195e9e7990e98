// A tile in shared memory, and what every strategy does with one: load it, have it scanned, store it.
//
// A tile scan is a struct with
//   using Operator, Item;
//   kItemsPerThread      how many items of the tile a thread has
//   ScratchItems(n)      shared memory that it needs behind a tile of n items
//   kMakesExclusive      whether Run itself makes an exclusive scan; if not, the tile's store reads the item before
//   Run(tile, exclusive, neutral)   the items become their scan, without what stands before the tile; returns the
//                        value of them all, on every thread. All threads call it, behind a barrier; it ends with one.
// Past the end of the array a tile holds neutral items, which change no bit, so no tile scan has a case for its tail.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_SHARED_TILE_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_SHARED_TILE_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/device.h"

namespace prefixd::cuda {

// Shared memory has 32 banks of 4 bytes, so the same bank comes again 128 bytes later. Padding leaves out an item every
// 128 bytes: every 32 items of 4 bytes, or every 16 of 8 bytes, of which a half-warp is served at a time.
inline constexpr int kPadBytes = 128;

// With one item a thread a tile is 2 KiB: 512 items of 4 bytes, or 256 of 8. So 16 items a thread, padded, are less
// than the 48 KiB that a block has on every card without asking.
template <class Item>
inline constexpr int kTileThreads = 2048 / sizeof(Item);
template <class Item>
inline constexpr int kTileWarps = kTileThreads<Item> / kWarpThreads;
static_assert(kMaxItemsPerThread * 2048 * (kPadBytes + sizeof(double)) / kPadBytes <= 40 * 1024);

// Item i is at i, or, padded, at i + i / 32 (8-byte items: i / 16). Padding is known only at run time, so the index
// always takes one shift: by 5 (or 4) if padded, by 31 if not.
template <class Item>
class SharedTile {
 public:
  __device__ SharedTile(Item* items, int num_items, bool padded)
      : items_(items), num_items_(num_items), pad_shift_(padded ? (sizeof(Item) == 4 ? 5 : 4) : 31) {}

  __device__ Item& operator[](int i) const { return items_[i + (i >> pad_shift_)]; }
  __device__ int size() const { return num_items_; }
  // The memory behind the tile's items.
  __device__ Item* scratch() const { return items_ + num_items_ + (num_items_ >> pad_shift_); }

 private:
  Item* items_;
  int num_items_;
  int pad_shift_;
};

template <class T>
struct TileParams {
  const T* in;
  T* out;  // May be in; so neither is __restrict__.
  uint64_t num_items;
  uint32_t num_tiles;
  int tile_items;
  bool padded;
  bool exclusive;
  bool reverse;
  T init;
  T neutral;
  const T* carry_in;
  T* carry_out;  // May be carry_in.

  // The index in the array of the scan's item i.
  __device__ uint64_t At(uint64_t i) const { return reverse ? num_items - 1 - i : i; }
  __device__ T Start() const { return carry_in != nullptr ? *carry_in : init; }
};

// The memory for one tile. A tile is used once: a tile scan may have moved it to other memory.
template <class Scan, class Params>
__device__ SharedTile<typename Scan::Item> MakeTile(const Params& p) {
  extern __shared__ __align__(16) unsigned char s_dynamic[];
  return SharedTile<typename Scan::Item>(reinterpret_cast<typename Scan::Item*>(s_dynamic), p.tile_items, p.padded);
}

// Loads and scans a tile; returns its value, on every thread. Neighbouring threads load neighbouring items: coalesced,
// and no bank is met twice, padded or not.
template <class Scan, class T>
__device__ typename Scan::Item LoadAndScan(const TileParams<T>& p, uint32_t number,
                                           SharedTile<typename Scan::Item>& tile) {
  const auto neutral = Scan::Operator::Load(p.neutral);
  const uint64_t begin = uint64_t{number} * p.tile_items;
  for (int i = static_cast<int>(threadIdx.x); i < tile.size(); i += kTileThreads<T>) {
    tile[i] = begin + i < p.num_items ? Scan::Operator::Load(p.in[p.At(begin + i)]) : neutral;
  }
  __syncthreads();
  return Scan::Run(tile, p.exclusive, neutral);
}

// Writes `before`, what stands before the tile, joined with each of its items. Ends with a barrier: the tile's memory
// may be used again.
template <class Scan, class T>
__device__ void JoinAndStore(const TileParams<T>& p, uint32_t number, const SharedTile<typename Scan::Item>& tile,
                             typename Scan::Item before) {
  using Operator = typename Scan::Operator;
  const uint64_t begin = uint64_t{number} * p.tile_items;
  const int shift = p.exclusive && !Scan::kMakesExclusive ? 1 : 0;
  for (int i = static_cast<int>(threadIdx.x); i < tile.size() && begin + i < p.num_items; i += kTileThreads<T>) {
    p.out[p.At(begin + i)] = Operator::Store(i < shift ? before : Operator::Combine(before, tile[i - shift]));
  }
  __syncthreads();
}

template <class T>
TileParams<T> MakeTileParams(const ScanArgs& args) {
  return {.in = static_cast<const T*>(args.in),
          .out = static_cast<T*>(args.out),
          .num_items = args.num_items,
          .num_tiles = 0,
          .tile_items = 0,
          .padded = args.algorithm.padding,
          .exclusive = args.kind == ScanKind::kExclusive,
          .reverse = args.reverse,
          .init = args.init.As<T>(),
          .neutral = Neutral(args.op, args.dtype).As<T>(),
          .carry_in = static_cast<const T*>(args.carry_in),
          .carry_out = static_cast<T*>(args.carry_out)};
}

// Sets tile_items and num_tiles, and *shared_bytes to what a block needs for its tile.
template <class Scan, class T>
cudaError_t CutIntoTiles(int items_per_thread, TileParams<T>* p, size_t* shared_bytes) {
  p->tile_items = kTileThreads<T> * (items_per_thread > 0 ? items_per_thread : Scan::kItemsPerThread);
  const int pads = p->padded ? p->tile_items * static_cast<int>(sizeof(T)) / kPadBytes : 0;
  *shared_bytes = (p->tile_items + pads + Scan::ScratchItems(p->tile_items)) * sizeof(typename Scan::Item);
  return CountTiles(p->num_items, p->tile_items, &p->num_tiles);
}

// Calls f(OpTag<op>{}) for the operators that the textbooks serve; ends the process for another.
template <class F>
cudaError_t VisitTextbookOp(Op op, F&& f) {
  if (op == Op::kSum) return f(OpTag<Op::kSum>{});
  if (op == Op::kMin) return f(OpTag<Op::kMin>{});
  if (op == Op::kMax) return f(OpTag<Op::kMax>{});
  FatalValue("VisitTextbookOp", op);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_SHARED_TILE_CUH_
