#include "kernels/cpu/isa.h"

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

std::vector<Isa> Detect() {
#if defined(__x86_64__)
  std::vector<Isa> isas = {{"sse2", &sse2::kKernels}};
  const bool has_bits = __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi");
  if (!has_bits || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c")) return isas;
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
