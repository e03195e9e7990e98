// Copies to shared memory that a thread starts and waits for later, in words of 4, 8 or 16 bytes; before sm_80 they end
// at once. Addresses in shared memory are numbers of 32 bits here, of which a kernel can keep many.
#ifndef PREFIXD_KERNELS_CUDA_ASYNC_COPY_CUH_
#define PREFIXD_KERNELS_CUDA_ASYNC_COPY_CUH_

#include <cstdint>

namespace prefixd::cuda {

using SharedAddress = uint32_t;
inline constexpr int kCopyWordBytes = 16;

inline __device__ SharedAddress SharedAddressOf(const void* s_memory) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(s_memory));
}

// In its turn among copies.
inline __device__ uint4 LoadShared(SharedAddress from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from));
  return v;
}

// A word, at multiples of one. It is there when WaitForCopies says so.
inline __device__ void CopyWord(SharedAddress to, const unsigned char* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
  const uint4 v = *reinterpret_cast<const uint4*>(from);
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
#endif
}
// A word of T's size, if it exists; the offsets are in bytes. The condition is within: else the compiler computes the
// addresses of many words again for each.
template <class T, uint32_t kToOffset, uint32_t kFromOffset>
__device__ void CopyWordIf(bool exists, SharedAddress to, const unsigned char* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile(
      "{\n.reg .pred exists;\nsetp.ne.b32 exists, %2, 0;\n"
      "@exists cp.async.ca.shared.global [%0 + %3], [%1 + %4], %5;\n}" ::"r"(to),
      "l"(from), "r"(static_cast<int>(exists)), "n"(kToOffset), "n"(kFromOffset), "n"(sizeof(T))
      : "memory");
#else
  if (!exists) return;
  if constexpr (sizeof(T) == 4) {
    const auto word = *reinterpret_cast<const uint32_t*>(from + kFromOffset);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + kToOffset), "r"(word) : "memory");
  } else {
    const auto word = *reinterpret_cast<const uint64_t*>(from + kFromOffset);
    asm volatile("st.shared.u64 [%0], %1;" ::"r"(to + kToOffset), "l"(word) : "memory");
  }
#endif
}
// Bytes, at once.
inline __device__ void CopyBytes(SharedAddress to, const unsigned char* from, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) {
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(to + i), "r"(static_cast<uint32_t>(from[i])) : "memory");
  }
}

// Ends a group of the thread's copies.
inline __device__ void CommitCopies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits for all groups of the thread but the newest ones. (CUDA's own __pipeline_wait_prior knows no more than 8.)
template <int kNewest>
__device__ void WaitForOwnCopies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
#endif
}
// The same of all lanes. Called by a warp.
template <int kNewest>
__device__ void WaitForCopies() {
  WaitForOwnCopies<kNewest>();
  __syncwarp();
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ASYNC_COPY_CUH_
