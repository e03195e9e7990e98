// Scan, strategy "naive": every output is computed on its own, out[i] = start op in[0] op ... op in[i], on all cores.
//
// Work n^2 / 2, depth n: no better than one loop however many cores there are, and n / 2 times as much to do. It is
// here because it is where everybody begins, and so that the others show what they are worth. Each output is a left
// fold, so the bits are those of "sequential". Source: Funktor (one thread for each index of P), which rightly says
// that it loses to the sequential loop, and no more: it must also be kept from large arrays, since a million elements
// are a quarter of an hour's work.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CPU_NAIVE_H_
#define PREFIXD_KERNELS_YARDSTICKS_CPU_NAIVE_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// So that one call is a fifth of a second of one core, at about 1.3 ns an addition.
inline constexpr uint64_t kMaxNaiveItems = uint64_t{1} << 14;

// Needs:   Validate(args) is OK, num_items <= kMaxNaiveItems, kTextbooksServe the combination.
Work ScanNaively(const ScanArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_YARDSTICKS_CPU_NAIVE_H_
