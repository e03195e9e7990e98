// What the loops of the glue share: the types that they compute in, and how their results go past the caches.
#ifndef PREFIXD_KERNELS_CPU_SIMD_GLUE_H_
#define PREFIXD_KERNELS_CPU_SIMD_GLUE_H_

#include "kernels/cpu/simd/vector.h"
#include "kernels/types.h"

// What the compiler may do with the loop that follows: unroll it to the end, up to 16 rounds; take its items for
// independent, although out may be in, since none is read after another was written.
#if defined(__clang__)
#define PREFIXD_UNROLL _Pragma("clang loop unroll(full)")
#define PREFIXD_ITEMS_ARE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PREFIXD_UNROLL _Pragma("GCC unroll 16")
#define PREFIXD_ITEMS_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// For what gives signed and unsigned integers the same bits.
template <class T>
using BitsOrFloat = std::conditional_t<std::is_floating_point_v<T>, T, Unsigned<T>>;

// The type in which T wraps round, at least unsigned: narrower integers would become signed ones, which overflow.
template <class T>
using Wraps =
    std::conditional_t<std::is_floating_point_v<T>, T, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <class T>
PREFIXD_INLINE T As(Value value) {
  return BitsOf<T>(&value.bits);
}

template <class T>
PREFIXD_INLINE Value ValueOf(T item) {
  Value value;
  __builtin_memcpy(&value.bits, &item, sizeof(item));
  return value;
}

// A block of results is computed where the first-level cache has it, and stored from there. So short that the machine
// computes the next block while it stores this one.
constexpr uint64_t kStreamBytes = 2048;

// Calls loop(first, count, to), which writes the results of items first .. first + count - 1 to `to`, for all items in
// order, and moves them to out. Needs: out is aligned to its elements of item_bytes, a power of two.
template <class Loop>
PREFIXD_INLINE void InBlocks(void* out, size_t item_bytes, uint64_t num_items, Loop loop) {
  auto* const results = static_cast<uint8_t*>(out);
  alignas(64) uint8_t block[kStreamBytes];
  const uint64_t block_items = kStreamBytes / item_bytes;
  uint64_t i = (-reinterpret_cast<uintptr_t>(out) % kVectorBytes) / item_bytes;
  if (i > num_items) i = num_items;
  if (i > 0) loop(uint64_t{0}, i, out);
  for (; i + block_items <= num_items; i += block_items) {
    loop(i, block_items, static_cast<void*>(block));
    uint8_t* const to = results + i * item_bytes;
    for (uint64_t k = 0; k < kStreamBytes; k += kVectorBytes) Stream(to + k, Load(block + k));
  }
  if (i < num_items) loop(i, num_items - i, static_cast<void*>(results + i * item_bytes));
  FinishStreaming();
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_GLUE_H_
