// Reduce, strategy "kahan", for sums of floats: one loop that keeps what each addition rounds away, and adds it at the
// end.
//
// Work 4n and more, depth n, traffic n. The error is that of one rounding, plus n epsilon^2 times the sum of
// magnitudes, where a plain loop may lose n epsilon of it. A stream carries the sum between pieces, and not what was
// rounded away. Source: Note and Save, which advises compensated summation where precision matters and shows none. This
// is the form of Neumaier 1974, which also survives an element larger than the sum; that of Kahan 1965 loses it, and
// turns infinity into NaN.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CPU_KAHAN_H_
#define PREFIXD_KERNELS_YARDSTICKS_CPU_KAHAN_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK, kKahanServes the combination.
Work ReduceKahan(const ReduceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_YARDSTICKS_CPU_KAHAN_H_
