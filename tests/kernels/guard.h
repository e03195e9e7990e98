// Bytes around a result that nobody may write.
#ifndef PREFIXD_TESTS_KERNELS_GUARD_H_
#define PREFIXD_TESTS_KERNELS_GUARD_H_

#include <cstddef>

namespace prefixd::cpu {

inline constexpr unsigned char kGuard = 0xfe;
inline constexpr size_t kGuardBytes = 128;

}  // namespace prefixd::cpu

#endif  // PREFIXD_TESTS_KERNELS_GUARD_H_
