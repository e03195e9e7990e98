// The tables of one instruction set, which kernels.cc puts together.
#ifndef PREFIXD_KERNELS_CPU_SIMD_TABLES_H_
#define PREFIXD_KERNELS_CPU_SIMD_TABLES_H_

#include "kernels/cpu/simd/kernels.h"

namespace prefixd::cpu::PREFIXD_ISA {

extern const ScanTable kUnorderedScans;
extern const ScanTable kOrderedScans;
extern const RecurrenceTable kRecurrences;
extern const WideSumTable kWideSums;
extern const ExtremumTable kExtrema;
extern const CompactTable kCompacts;
extern const DifferenceTable kDifferences;
extern const FillTable kFills;
extern const MapTable kMaps;
extern const GatherTable kGathers;
extern const TransposeTable kTransposes;
extern const ColumnTable kColumns;
extern const Kernels kKernels;

}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_TABLES_H_
