// Scan, strategy "naive": every output is computed on its own, out[i] = start op in[0] op ... op in[i], on all cores.
//
// Work n^2 / 2, depth n: on any number of cores it is no faster than one loop, and it does n / 2 times the work. It is
// here because everybody begins with it, and so that the others show what they are worth. Each output is a left fold,
// so the bits are those of "sequential". Source: Funktor (one thread for each index of P), which rightly says that it
// loses to the sequential loop. Funktor does not say that large arrays must be refused: a million elements take a
// quarter of an hour.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CPU_NAIVE_H_
#define PREFIXD_KERNELS_YARDSTICKS_CPU_NAIVE_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// With this limit one call takes a fifth of a second of one core, at about 1.3 ns an addition.
inline constexpr uint64_t kMaxNaiveItems = uint64_t{1} << 14;

// Needs:   Validate(args) is OK, num_items <= kMaxNaiveItems, kTextbooksServe the combination.
Work ScanNaively(const ScanArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_YARDSTICKS_CPU_NAIVE_H_
