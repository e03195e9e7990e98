#include "kernels/cpu/isa.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "base/status.h"

namespace prefixd::cpu {

// kernels/CMakeLists.txt compiles kernels/cpu/simd once for each.
#if defined(__x86_64__)
namespace sse2 {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
#elif defined(__aarch64__)
namespace neon {
extern const Kernels kKernels;
}
#endif

namespace {

#if defined(__x86_64__)
// By its bit: clang 14 does not know its name.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

std::vector<Isa> Detect() {
#if defined(__x86_64__)
  std::vector<Isa> isas = {{"sse2", &sse2::kKernels}};
  const bool has_bits = __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi");
  if (!has_bits || !__builtin_cpu_supports("avx2") || !HasF16c()) return isas;
  isas.push_back({"avx2", &avx2::kKernels});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    isas.push_back({"avx512", &avx512::kKernels});
  }
  return isas;
#else
  return {{"neon", &neon::kKernels}};
#endif
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
