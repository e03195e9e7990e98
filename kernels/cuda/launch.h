// The interface between the Lane, which knows of statuses and times, and the kernels, which know of neither. It has one
// function for each primitive and pair of element types, instantiated in one .cu file, and what a launch may use.
#ifndef PREFIXD_KERNELS_CUDA_LAUNCH_H_
#define PREFIXD_KERNELS_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/association.h"
#include "kernels/device.h"

namespace prefixd::cuda {

// cudaMallocAsync from the device's pool. If memory has run out, it gives back the memory that other streams have freed
// and the pool still holds, and tries once more.
inline cudaError_t AllocateOn(cudaStream_t stream, size_t size_bytes, void** d_memory) {
  cudaError_t error = cudaMallocAsync(d_memory, size_bytes, stream);
  if (error != cudaErrorMemoryAllocation) return error;
  int ordinal = 0;
  cudaMemPool_t pool = nullptr;
  cudaGetLastError();  // The error is not sticky: reading it clears it.
  if (error = cudaGetDevice(&ordinal); error != cudaSuccess) return error;
  if (error = cudaDeviceGetDefaultMemPool(&pool, ordinal); error != cudaSuccess) return error;
  if (error = cudaDeviceSynchronize(); error != cudaSuccess) return error;
  if (error = cudaMemPoolTrimTo(pool, 0); error != cudaSuccess) return error;
  return cudaMallocAsync(d_memory, size_bytes, stream);
}

// Device memory that only grows, on one stream. It may be read or written only by work enqueued after the call.
class GrowingMemory {
 public:
  // Gets at least size_bytes; new memory is zero. It grows by replacing the memory, which loses the contents.
  cudaError_t Get(cudaStream_t stream, size_t size_bytes, void** d_memory) {
    if (size_bytes > size_bytes_) {
      Free(stream);
      if (const cudaError_t error = AllocateOn(stream, size_bytes, &d_memory_); error != cudaSuccess) {
        d_memory_ = nullptr;
        return error;
      }
      size_bytes_ = size_bytes;
      if (const cudaError_t error = cudaMemsetAsync(d_memory_, 0, size_bytes, stream); error != cudaSuccess)
        return error;
    }
    *d_memory = d_memory_;
    return cudaSuccess;
  }
  size_t size_bytes() const { return size_bytes_; }

  // Errors are ignored: a device that is lost says so at the next call.
  void Free(cudaStream_t stream) {
    if (d_memory_ != nullptr) cudaFreeAsync(d_memory_, stream);
    d_memory_ = nullptr;
    size_bytes_ = 0;
  }

 private:
  void* d_memory_ = nullptr;
  size_t size_bytes_ = 0;
};

// All zero between launches, except the epoch: see look_back.cuh.
struct TileControl {
  uint64_t sum;
  uint32_t ticket;
  uint32_t blocks_left;
  uint32_t epoch;
};

// The resources that the launches of one lane share. The launches follow each other on its stream.
struct LaunchContext {
  cudaStream_t stream = nullptr;
  int num_multiprocessors = 0;
  // The shared memory that a block can have, if the card and the code have bulk asynchronous copies; else 0.
  size_t bulk_shared_bytes = 0;
  TileControl* d_control = nullptr;
  // How often a block looks for a value that another has to publish, before it computes it by itself where it can:
  // about 50 us.
  uint32_t patience = 64;
  GrowingMemory states;   // The states of tiles, marked with epochs.
  GrowingMemory scratch;  // For algorithms that ask for memory; its contents are arbitrary.
};

// Tiles that hold num_items, at least one: an empty input runs as one empty tile, and needs no case of its own.
// cudaErrorInvalidConfiguration if a grid cannot have that many blocks, which is over 2^41 items.
inline cudaError_t CountTiles(uint64_t num_items, uint64_t tile_items, uint32_t* num_tiles) {
  const uint64_t tiles = num_items / tile_items + (num_items % tile_items != 0 ? 1 : 0);
  if (tiles > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) return cudaErrorInvalidConfiguration;
  *num_tiles = tiles == 0 ? 1 : static_cast<uint32_t>(tiles);
  return cudaSuccess;
}

// shared_bytes: dynamic shared memory. If it is over 48 KiB, the kernel is first allowed to use so much.
template <class Params>
cudaError_t Launch(void (*kernel)(const Params), uint32_t num_blocks, uint32_t threads_per_block, cudaStream_t stream,
                   const Params& params, size_t shared_bytes = 0) {
  cudaLaunchConfig_t config = {};
  if (shared_bytes > size_t{48} * 1024) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  config.dynamicSmemBytes = shared_bytes;
  config.gridDim = dim3(num_blocks);
  config.blockDim = dim3(threads_per_block);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, params);
}

// Whether arrays that have so many items together are so short, on average, that most lanes of a warp would have
// nothing of one.
inline bool AreShort(uint64_t all_items, uint64_t num_arrays) { return all_items / num_arrays < 64; }
// Whether bulk asynchronous copies may begin there.
inline constexpr int kBulkAlignment = 16;
inline bool IsBulkAligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % kBulkAlignment == 0; }
// The operators that range_scan.cuh has kernels for: those by which callers scan segments. For the others
// segment_scan.cuh does.
constexpr bool HasRangeScan(Op op) { return op == Op::kSum || op == Op::kWideSum || op == Op::kMin || op == Op::kMax; }
// Whether range_scan.cuh scans these segments, or rows as such. Few short arrays are better off in blocks, of which all
// warps share a range.
inline bool RangesScan(const ScanArgs& args) {
  constexpr uint64_t kMinMeanItemsOfFew = 1024;
  constexpr uint64_t kMinBytes = uint64_t{64} << 20;
  const uint64_t all_items = args.offsets != nullptr ? args.num_items : args.num_items * args.num_arrays;
  const bool is_suited = all_items / args.num_arrays >= kMinMeanItemsOfFew ||
                         (!AreShort(all_items, args.num_arrays) && all_items * SizeOf(args.dtype) >= kMinBytes);
  return is_suited && !args.reverse && HasRangeScan(args.op) && args.dtype == args.output();
}
// Whether rows are so long that each is scanned by a launch of its own, as an array by itself: the ring is faster then,
// though it begins and ends once for each. What segment_scan.cuh does with reverse rows, and range_scan.cuh with bytes,
// is slower; and a recurrence has nothing else but a block for each row.
inline bool AreLongRows(const ScanArgs& args, const LaunchContext& context) {
  if (args.num_arrays < 2 || args.offsets != nullptr || args.order != BatchOrder::kOneByOne ||
      context.bulk_shared_bytes == 0) {
    return false;
  }
  constexpr uint64_t kFewRows = 32;
  const bool is_recurrence = args.op == Op::kLinearRecurrence;
  const bool has_slow_segments = args.reverse || SizeOf(args.output()) == 1;
  const uint64_t min_mebibytes = is_recurrence && args.num_arrays <= kFewRows ? 1 : has_slow_segments ? 16 : 32;
  return args.num_items * SizeOf(args.output()) >= min_mebibytes << 20;
}
// Calls launch(row) with each, until one fails.
template <class LaunchRow>
cudaError_t ForRows(const ScanArgs& args, LaunchRow launch) {
  for (uint64_t row = 0; row < args.num_arrays; ++row) {
    if (const cudaError_t error = launch(ArrayOf(args, row)); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
// Whether column_tiles.cuh scans these columns. Rows that are longer have a thread for each eight bytes, and keep the
// card busy with whole columns.
inline bool AreColumnTiles(const ScanArgs& args) {
  constexpr uint64_t kMaxRowBytes = uint64_t{32} << 10;
  return args.num_arrays > 1 && args.order == BatchOrder::kInterleaved && args.op != Op::kLinearRecurrence &&
         args.num_arrays < kMaxRowBytes / SizeOf(args.dtype) && args.num_items > uint64_t{2} * kTileItems;
}
// Whether elements are cast to the wider type of the results first, into out, and scanned there. Sums have kernels from
// each type to each; for the other operators these would be half of all scan kernels, for results that nobody needs
// wide.
inline bool CastsFirst(const ScanArgs& args) { return args.output() != args.dtype && args.op != Op::kSum; }
// The second step, of the same type.
inline ScanArgs ScanOfCast(ScanArgs args) {
  args.dtype = args.output();
  args.in = args.out;
  return args;
}
// Kernels that a call enqueues. Those for segments are several, of which some find nothing to do.
inline uint64_t NumLaunches(const ScanArgs& args, const LaunchContext& context) {
  if (CastsFirst(args)) return (args.num_items > 0 ? 1 : 0) + NumLaunches(ScanOfCast(args), context);
  if (AreColumnTiles(args)) return 3;
  if (AreLongRows(args, context)) return args.num_arrays;
  if (args.offsets == nullptr || args.op == Op::kLinearRecurrence) return 1;
  if (RangesScan(args)) return 2;
  return AreShort(args.num_items, args.num_arrays) ? 2 : 3;
}
// Whether range_reduce.cuh reduces these segments, or rows. It takes longer to begin than to reduce few, and nothing is
// faster than row_reduce.cuh where rows are aligned.
inline bool RangesReduce(const ReduceArgs& args) {
  constexpr uint64_t kMinBytes = uint64_t{16} << 20;
  if (args.values == nullptr || args.order != BatchOrder::kOneByOne) return false;
  const bool has_offsets = args.offsets != nullptr;
  const uint64_t all_items = has_offsets ? args.num_items : args.num_items * args.num_arrays;
  if (all_items * SizeOf(args.dtype) < kMinBytes || AreShort(all_items, args.num_arrays)) return false;
  if (has_offsets || SizeOf(args.dtype) < 4) return true;
  return !IsBulkAligned(args.in) || args.num_items * SizeOf(args.dtype) % kBulkAlignment != 0;
}
inline uint64_t NumLaunches(const ReduceArgs& args) {
  return args.offsets != nullptr && (AreShort(args.num_items, args.num_arrays) || RangesReduce(args)) ? 2 : 1;
}

// Each enqueues NumLaunches kernels, or one. Needs: Validate(args) was OK, the lane's device is current.
// A scan that is not CastsFirst.
template <class In, class Out>
cudaError_t LaunchScan(const ScanArgs& args, LaunchContext* context);
// A scan by a linear recurrence.
template <class T>
cudaError_t LaunchRecurrence(const ScanArgs& args, LaunchContext* context);
// Sums in more precision than T's.
template <class T>
cudaError_t LaunchWideScan(const ScanArgs& args, LaunchContext* context);
template <class T>
cudaError_t LaunchWideReduce(const ReduceArgs& args, LaunchContext* context);
template <class In, class Out>
cudaError_t LaunchReduce(const ReduceArgs& args, LaunchContext* context);
// The number kept also goes to h_num_kept, in pinned memory.
template <class T>
cudaError_t LaunchCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_LAUNCH_H_
