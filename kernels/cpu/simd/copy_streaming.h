// memcpy past the caches.
#ifndef PREFIXD_KERNELS_CPU_SIMD_COPY_STREAMING_H_
#define PREFIXD_KERNELS_CPU_SIMD_COPY_STREAMING_H_

#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Kernels::copy_streaming.
void CopyStreaming(void* results, const void* items, size_t size_bytes) {
  auto* out = static_cast<uint8_t*>(results);
  const auto* in = static_cast<const uint8_t*>(items);
  constexpr size_t kBytes = kVectorBytes;
  size_t head = -reinterpret_cast<uintptr_t>(out) % kVectorBytes;
  if (head > size_bytes) head = size_bytes;
  __builtin_memcpy(out, in, head);
  size_t i = head;
  for (; i + 4 * kBytes <= size_bytes; i += 4 * kBytes) {
    const Bytes v0 = Load(in + i), v1 = Load(in + i + kBytes);
    const Bytes v2 = Load(in + i + 2 * kBytes), v3 = Load(in + i + 3 * kBytes);
    Stream(out + i, v0);
    Stream(out + i + kBytes, v1);
    Stream(out + i + 2 * kBytes, v2);
    Stream(out + i + 3 * kBytes, v3);
  }
  FinishStreaming();
  __builtin_memcpy(out + i, in + i, size_bytes - i);
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_COPY_STREAMING_H_
