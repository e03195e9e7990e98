#include "kernels/cpu/isa.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "base/fatal.h"
#include "base/status.h"

namespace prefixd::cpu {

// kernels/CMakeLists.txt compiles kernels/cpu/simd once for each that this build has.
namespace sse2 {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
namespace neon {
extern const Kernels kKernels;
}

namespace {

#ifdef PREFIXD_HAS_avx2
bool HasAvx2() {
  // F16C by its bit: clang 14 does not know its name.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("avx2");
}
#endif

#ifdef PREFIXD_HAS_avx512
bool HasAvx512() {
  return __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

std::vector<Isa> Detect() {
  std::vector<Isa> isas;
#ifdef PREFIXD_HAS_sse2
  isas.push_back({"sse2", &sse2::kKernels});
#endif
#ifdef PREFIXD_HAS_avx2
  if (HasAvx2()) isas.push_back({"avx2", &avx2::kKernels});
#endif
#ifdef PREFIXD_HAS_avx512
  if (HasAvx512()) isas.push_back({"avx512", &avx512::kKernels});
#endif
#ifdef PREFIXD_HAS_neon
  isas.push_back({"neon", &neon::kKernels});
#endif
  if (isas.empty()) {
    Fatal("this build's loops are for a CPU with wider instructions: build it on this machine");
  }
  return isas;
}

}  // namespace

const std::vector<Isa>& IsasHere() {
  static const auto& isas = *new std::vector<Isa>(Detect());
  return isas;
}

absl::StatusOr<Isa> FindIsa(std::string_view name) {
  if (name == "auto") return IsasHere().back();
  std::string names = "auto";
  for (const Isa& isa : IsasHere()) {
    if (isa.name == name) return isa;
    names += StrCat(", ", isa.name);
  }
  return absl::InvalidArgumentError(
      StrCat("this CPU, or this build, has no instruction set '", name, "': choose one of ", names));
}

}  // namespace prefixd::cpu
