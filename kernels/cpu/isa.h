// The instruction sets that the CPU device's loops are compiled for, and the choice of one.
#ifndef PREFIXD_KERNELS_CPU_ISA_H_
#define PREFIXD_KERNELS_CPU_ISA_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/simd/kernels.h"

namespace prefixd::cpu {

// An instruction set of this machine, and the loops in it.
struct Isa {
  std::string_view name;  // "sse2", "avx2", "avx512"; "neon" on ARM.
  const Kernels* kernels;
};

// What this machine has of what was compiled, the widest last. Never empty.
const std::vector<Isa>& IsasHere();

// The one of this name; "auto": the widest.
// Errors:  INVALID_ARGUMENT naming those that there are.
absl::StatusOr<Isa> FindIsa(std::string_view name);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ISA_H_
