// Scans and reduces of arrays that stand one behind the other, one array after the other on the calling thread: rows of
// a matrix, or segments.
#ifndef PREFIXD_KERNELS_CPU_ARRAYS_H_
#define PREFIXD_KERNELS_CPU_ARRAYS_H_

#include <cstdint>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Where an array of a batch begins, in items.
template <class Args>
uint64_t BeginOf(const Args& args, uint64_t array) {
  return args.offsets != nullptr ? args.offsets[array] : array * args.num_items;
}
// The items of all arrays.
template <class Args>
uint64_t NumItems(const Args& args) {
  return args.offsets != nullptr ? args.num_items : args.num_arrays * args.num_items;
}

// An array of a batch, by itself.
ScanArgs ArrayAt(const ScanArgs& args, uint64_t array);
ReduceArgs ArrayAt(const ReduceArgs& args, uint64_t array);

// Results of short arrays go past the caches together, so many of them.
inline constexpr uint64_t kPassingBytes = uint64_t{32} << 10;

// Calls run(first, count) for parts of some arrays, on as many threads as pay.
template <class Run>
void ForArrays(uint64_t num_arrays, uint64_t part_arrays, const Run& run) {
  ForParts(NumParts(num_arrays, part_arrays),
           [&](uint64_t part) { run(part * part_arrays, PartItems(num_arrays, part_arrays, part)); });
}

// Scans arrays from the first on.
// Needs:   Validate(args) is OK; arrays one by one.
// Cost:    reads n, writes n, on this thread. Short arrays share vectors: where every order gives the same bits, one
//          behind the other (simd/array_scans.h), and else a lane each (simd/array_lanes.h).
void ScanArrays(const Kernels& kernels, const ScanArgs& args, uint64_t first_array, uint64_t num_arrays);

// Reduces arrays to their values. As ScanArrays.
// Needs:   args.values too.
void ReduceArrays(const Kernels& kernels, const ReduceArgs& args, uint64_t first_array, uint64_t num_arrays);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ARRAYS_H_
