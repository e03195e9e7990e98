// The interface between the server and the work: a Device, its Lanes, and the memory they work on.
//
//   std::unique_ptr<Device> device = *OpenDevice("auto");
//   std::unique_ptr<Lane> lane = *device->CreateLane();
//   Buffer d_x = *lane->Allocate(n * sizeof(float));
//   lane->CopyToDevice(d_x.data(), h_x, n * sizeof(float));
//   lane->Scan({.dtype = DType::kF32, .in = d_x.data(), .out = d_x.data(), .num_items = n, .init = ...});
//   lane->CopyToHost(h_x, d_x.data(), n * sizeof(float));
//   lane->Synchronize();
//
// Threads: a Device may be used from any thread. A Lane is one in-order queue with one caller at a time; different
// lanes run in parallel. Work on a lane is enqueued and returns at once unless a method says otherwise; pointers
// handed to it stay valid and unchanged until Synchronize. Work on lane B may use what lane A produced once A was
// synchronized.
// Memory: "Device" in the comments of a call's arguments means memory from a lane's Allocate, or, for arrays of up to
// DeviceInfo::direct_bytes, from AllocatePinned. On a device of kHostMemory it is any memory.
// Ownership: a Device outlives its lanes, and lanes outlive the buffers they allocated.
// Errors: argument errors come at once; a device's own errors may come later, from Synchronize. After DEVICE_LOST
// (UNAVAILABLE) every later call on the device fails the same way.
#ifndef PREFIXD_KERNELS_DEVICE_H_
#define PREFIXD_KERNELS_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/algorithm.h"
#include "kernels/algorithm_info.h"
#include "kernels/args/compact.h"
#include "kernels/args/count.h"
#include "kernels/args/difference.h"
#include "kernels/args/fill.h"
#include "kernels/args/gather.h"
#include "kernels/args/map.h"
#include "kernels/args/reduce.h"
#include "kernels/args/runs.h"
#include "kernels/args/scan.h"
#include "kernels/args/transpose.h"
#include "kernels/types.h"

namespace prefixd {

// What an allocation of so many bytes takes of a device's memory: a multiple of 256 bytes, and never nothing.
// Needs: num_bytes at most 2^64 - 256.
inline constexpr uint64_t kMemoryUnitBytes = 256;
constexpr uint64_t MemoryBytes(uint64_t num_bytes) {
  return num_bytes == 0 ? kMemoryUnitBytes : (num_bytes + kMemoryUnitBytes - 1) / kMemoryUnitBytes * kMemoryUnitBytes;
}

// Memory that gives itself back. Move-only; the deleter may run on any thread.
// data() is aligned to 256 bytes, and not null even where size_bytes() is 0.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, size_t size_bytes, std::function<void(void*)> release)
      : data_(data), size_bytes_(size_bytes), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(data_);
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t size_bytes() const { return size_bytes_; }

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  std::function<void(void*)> release_;
};

// Where a lane's time went since it was last asked. A stage that is not measured is nullopt.
struct StageTimes {
  std::optional<int64_t> host_to_device_ns;
  std::optional<int64_t> kernel_ns;
  std::optional<int64_t> device_to_host_ns;
  uint64_t launches = 0;   // Kernels; on the CPU, parallel loops.
  uint64_t num_bytes = 0;  // What the kernels had to move: read plus written.

  StageTimes& operator+=(const StageTimes& other);
};

// Whether a copy on the device counts in StageTimes: as a kernel that reads and writes each of its bytes.
enum class CopyTiming : uint8_t { kTimed, kUntimed };

// One in-order queue on a device. See the top of the file for threads and ownership.
class Lane {
 public:
  virtual ~Lane() = default;

  // Device memory, ordered on this lane: usable by work enqueued after the call; released in the lane's order.
  // Errors:  RESOURCE_EXHAUSTED if the device lacks that much.
  // Cost:    no device synchronization once the pool is warm.
  virtual absl::StatusOr<Buffer> Allocate(size_t size_bytes) = 0;

  // Host memory may be pageable, but only pinned memory (Device::AllocatePinned) overlaps with other work.
  virtual absl::Status CopyToDevice(void* d_dst, const void* h_src, size_t size_bytes) = 0;
  virtual absl::Status CopyToHost(void* h_dst, const void* d_src, size_t size_bytes) = 0;

  // Copies from device memory to device memory. No algorithm that writes as much as it reads can be faster, so
  // benchmarks measure against this copy.
  // Shape:   d_dst, d_src: size_bytes, disjoint.
  // Cost:    reads and writes size_bytes; one launch.
  virtual absl::Status CopyOnDevice(void* d_dst, const void* d_src, size_t size_bytes, CopyTiming timing) = 0;

  // Batches: num_arrays arrays of num_items each, in one call. The arrays follow each other in every input and output
  // (each bit mask begins at a byte), or, of a scan and a difference, are interleaved (BatchOrder): the rows or the
  // columns of a matrix. Each array has its own state_out or count, and the bits it would have alone.

  // Scan of one chunk.
  // Shape:   in: num_items of dtype; out: num_items of the output type. Disjoint, or one buffer where the sizes agree.
  // Needs:   in, out aligned to their element sizes.
  // Errors:  INVALID_ARGUMENT if (dtype, out_dtype, op) is not supported, or if in is out and the sizes differ;
  //          those of Device::Resolve and CheckLength; UNIMPLEMENTED for a batch if the algorithm takes only one array;
  //          INVALID_ARGUMENT for indices that scan.h does not allow.
  // Cost:    reads n, writes n; one launch by default, of segments and few columns up to three, of long rows one each.
  //          The bits follow kernels/NUMERICS.md if FollowsNumerics. With indices: extrema.h.
  // Example: [3,1,2,4], sum, carry_in 10 -> [13,14,16,20], carry_out 20; [200,100] of u8, sum, out u32 -> [200,300];
  //          [3,1,2,1], min -> [3,1,1,1], indices [0,1,1,1], or with last_index [0,1,1,3]
  virtual absl::Status Scan(const ScanArgs& args) = 0;

  // Reduce of one chunk.
  // Shape:   in: num_items elements of dtype.
  // Needs:   in aligned to the element size.
  // Errors:  as Scan.
  // Cost:    as Scan, but writes nothing.
  // Example: [3,1,2,1], min, first_item 8 -> value 1, position 10 (element 9)
  virtual absl::Status Reduce(const ReduceArgs& args) = 0;

  // Stable compaction of one chunk.
  // Shape:   in: num_items elements; mask: num_items bytes or ceil(num_items / 8) bytes.
  // Needs:   in, values, indices aligned to their element sizes, and disjoint.
  // Order:   elements of values and indices past count are not written.
  // Errors:  UNIMPLEMENTED if dtype is not served, and as Scan; OUT_OF_RANGE if kU32 can't hold the last index.
  // Cost:    reads n (and the mask), writes what is kept; one launch.
  // Example: [3,1,2,4], > 1, first_item 8 -> values [3,2,4], indices [8,10,11], count 3
  virtual absl::Status Compact(const CompactArgs& args) = 0;

  // Differences of neighbours in one chunk: the inverse of an inclusive scan by sum, forward or reversed.
  // Shape:   in, out: num_items elements of dtype, disjoint.
  // Needs:   in, out aligned to their element size.
  // Errors:  UNIMPLEMENTED if dtype is not served; INVALID_ARGUMENT if in is out; and as Scan.
  // Cost:    reads n, writes n; one launch, of segments two.
  // Example: [3,4,6,10], carry_in 1 -> [2,1,2,4], carry_out 10
  virtual absl::Status Difference(const DifferenceArgs& args) = 0;

  // The glue: what stands between the primitives of a program. One array a call, one launch, and the same bits on every
  // device (kernels/NUMERICS.md). A call without items launches nothing, unless it has to set num_bad.

  // Writes items that their index alone defines: a constant, start + index * step, or random ones.
  // Shape:   out: num_items of dtype.
  // Needs:   out aligned to its element size.
  // Errors:  UNIMPLEMENTED if dtype is not served; INVALID_ARGUMENT if first_item + num_items is 2^64 or more.
  // Cost:    writes n.
  // Example: kIota, value 5, step 3, first_item 2, num_items 3 -> [11,14,17]
  virtual absl::Status Fill(const FillArgs& args) = 0;

  // The same operator on every item of one array, or of two.
  // Shape:   in, other: num_items of dtype; out: num_items of args.output(). out is in or other, or disjoint from them.
  // Needs:   arrays aligned to their element sizes.
  // Errors:  UNIMPLEMENTED if a type is not served; INVALID_ARGUMENT if out overlaps an input otherwise, or is one
  // whose
  //          elements have another size; if kCompareArrays has a comparison of one item.
  // Cost:    reads n or 2n, writes n.
  // Example: kAffine, a 2, b 1, [1,2,3] -> [3,5,7]; kDivide, [7,-7,7], [2,2,0] -> [3,-3,0]
  virtual absl::Status Map(const MapArgs& args) = 0;

  // Shape:   in: in_items of dtype; indices: num_items of index_dtype; out: num_items of dtype. Disjoint.
  // Needs:   arrays aligned to their element sizes.
  // Errors:  UNIMPLEMENTED if dtype is not served; INVALID_ARGUMENT for another index_dtype than u32 and u64, or arrays
  //          that overlap. An index of in_items or more is none: it reads nothing, gives 0 and counts in *num_bad.
  // Cost:    reads n and the indices, writes n. At the speed of a copy only where neighbours have neighbouring indices.
  // Example: [10,20,30], indices [2,0,7] -> [30,10,0], num_bad 1
  virtual absl::Status Gather(const GatherArgs& args) = 0;

  // The inverse. Distinct indices write each item; which of several items with the same index stays is not defined.
  // Shape:   in: num_items of dtype; indices: num_items of index_dtype; out: out_items of dtype. Disjoint.
  // Needs, Errors, Cost: as Gather, but an index of out_items or more writes nothing.
  // Example: [10,20,30], indices [2,0,7], out [1,2,3] -> [20,2,10], num_bad 1
  virtual absl::Status Scatter(const ScatterArgs& args) = 0;

  // How many of some indices are in each segment: of those that a compact kept, how many were kept of each.
  // Shape:   indices: num_indices of index_dtype; offsets: num_items + 1; counts: num_items.
  // Needs:   indices distinct and ascending, offsets not descending; arrays aligned to their element sizes.
  // Errors:  INVALID_ARGUMENT for another index_dtype than u32 and u64, or counts that overlap another array.
  // Cost:    reads the offsets, and for each some log2(num_indices) indices; writes the counts.
  // Example: [0,2,3,7], offsets [0,3,3,8] -> [2,0,2]
  virtual absl::Status CountSegments(const CountArgs& args) = 0;

  // Where runs of equal keys begin, as offsets of segments.
  // Shape:   keys: num_items of dtype; offsets: as many as there are runs, and one, of room for num_items + 1.
  // Needs:   arrays aligned to their element sizes, scratch to 8 bytes.
  // Errors:  UNIMPLEMENTED for a dtype that is not served; INVALID_ARGUMENT for arrays that overlap, or are null.
  // Cost:    three launches. Reads the keys (on the CPU twice), moves two bits for each, writes the offsets.
  // Example: [7,7,7,2,7] -> offsets [0,3,4,5], num_offsets 4
  virtual absl::Status FindRuns(const RunsArgs& args) = 0;

  // Shape:   in: num_rows x num_columns of dtype; out: num_columns x num_rows. Disjoint. A row's items stand together.
  // Needs:   in, out aligned to their element size.
  // Errors:  UNIMPLEMENTED if dtype is not served; INVALID_ARGUMENT for 2^64 items or more, or arrays that overlap.
  // Cost:    reads n, writes n.
  // Example: 2 x 3, [1,2,3,4,5,6] -> 3 x 2, [1,4,2,5,3,6]
  virtual absl::Status Transpose(const TransposeArgs& args) = 0;

  // Blocks until everything enqueued has run; returns its first error.
  virtual absl::Status Synchronize() = 0;

  // The times of everything that ran since they were last taken. Needs: the lane is synchronized.
  StageTimes TakeStageTimes();

  // The same in parts: what was enqueued before the first BeginPart since then, and from each BeginPart to the next.
  // So a caller who runs several things learns what each took, and waits once.
  virtual void BeginPart() = 0;
  virtual std::vector<StageTimes> TakeParts() = 0;
};

struct DeviceInfo {
  std::string name;  // "cpu (2 threads, avx2)", "NVIDIA H200".
  uint64_t memory_bytes = 0;
  uint64_t cache_flush_bytes = 0;  // Touching this much memory evicts everything older from the device's caches.
  uint64_t direct_bytes = 0;       // Up to this size, using pinned host memory is faster than copying to the device.

  // direct_bytes of a device that works in the host's memory: all of it is device memory, pinned or not.
  static constexpr uint64_t kHostMemory = std::numeric_limits<uint64_t>::max();
};

class Device {
 public:
  virtual ~Device() = default;

  // Cost: none; the device was asked when it was opened.
  virtual const DeviceInfo& info() const = 0;

  // The bytes that an allocation could still get. 0 if the device can't say.
  // Cost: asks the driver.
  virtual uint64_t FreeMemoryBytes() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Lane>> CreateLane() = 0;

  // Host memory that the device reaches at full speed. Slow to get: do it once, at start-up.
  virtual absl::StatusOr<Buffer> AllocatePinned(size_t size_bytes) = 0;

  // What this device serves; among the rows of a primitive its default comes first.
  virtual const std::vector<AlgorithmInfo>& Algorithms() const = 0;

  // Leaves out what is no default: Resolve refuses it from now on. Before any other thread has the device.
  void ServeDefaultsOnly() { serves_defaults_only_ = true; }
  // Whether the row is served, or left out.
  bool Serves(const AlgorithmInfo& row) const {
    return !serves_defaults_only_ || IsDefault(row.primitive, row.algorithm);
  }

  // Whether a row's algorithm, or one that Resolve returned, is the primitive's default. The others are yardsticks:
  // they are there to be compared with.
  bool IsDefault(Primitive primitive, const Algorithm& resolved) const;

  // The algorithm that runs when a caller asks for `asked`, with every default filled in.
  // Errors: those of CheckAlgorithm; UNIMPLEMENTED (NOT_IMPLEMENTED), naming the algorithms that the device serves;
  //         PERMISSION_DENIED (ALGORITHM_OFF) for one that is left out.
  absl::StatusOr<Algorithm> Resolve(Primitive primitive, const Algorithm& asked) const;

  // Resolves the algorithm for one combination of types and operator. Needs: the combination IsSupported.
  // Errors: also UNIMPLEMENTED (NOT_IMPLEMENTED), saying what the algorithm serves, if it does not serve this one.
  absl::StatusOr<Algorithm> Resolve(Primitive primitive, DType dtype, DType out_dtype, Op op, const Algorithm& asked,
                                    Precision precision = Precision::kNative) const;

  // The row of an algorithm of this device, whatever its knobs are. Ends the process if there is no such row.
  const AlgorithmInfo& RowOf(Primitive primitive, const Algorithm& algorithm) const;

  // Needs:  resolved came from Resolve.
  // Errors: INVALID_ARGUMENT (ALGORITHM_LIMIT) if an array of num_items is longer than the algorithm takes.
  absl::Status CheckLength(Primitive primitive, const Algorithm& resolved, uint64_t num_items) const;

 private:
  bool serves_defaults_only_ = false;
};

// Opens "cpu", "cuda:N", or "auto": the first CUDA device if there is one, else the CPU.
// cpu_isa: the instruction set that the CPU device uses, see kernels/cpu/isa.h.
// Errors: INVALID_ARGUMENT for another name; FAILED_PRECONDITION if there is no such card, or the build has no CUDA.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(std::string_view name, std::string_view cpu_isa = "auto");

// Checks the parts of a choice together: only some strategies take a tile scan, and only some tile scans take knobs.
// Errors: INVALID_ARGUMENT (ALGORITHM_CHOICE) naming the field and what it takes.
absl::Status CheckAlgorithm(Primitive primitive, const Algorithm& algorithm);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_DEVICE_H_
