// Items from and to indices. A bound is checked for every index, and no index beyond it reaches memory.
#include "kernels/cpu/simd/glue.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Needs: bound is not 0.
template <class T, class Index>
PREFIXD_INLINE uint64_t GatherItems(const T* in, uint64_t bound, const Index* indices, uint64_t count, T* out) {
  uint64_t num_bad = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t index = indices[i];
    const bool is_bad = index >= bound;
    const T item = in[is_bad ? 0 : index];  // Without a branch.
    out[i] = is_bad ? T{0} : item;
    num_bad += is_bad;
  }
  return num_bad;
}

template <class T, class Index>
uint64_t Gather(const GatherPart& part) {
  const auto* const in = static_cast<const T*>(part.in);
  const auto* const indices = static_cast<const Index*>(part.indices);
  auto* const out = static_cast<T*>(part.out);
  if (part.bound == 0) {
    for (uint64_t i = 0; i < part.num_items; ++i) out[i] = 0;
    return part.num_items;
  }
  if (!part.stream) return GatherItems(in, part.bound, indices, part.num_items, out);
  uint64_t num_bad = 0;
  InBlocks(
      out, sizeof(T), part.num_items, [&](uint64_t i, uint64_t count, void* to) __attribute__((always_inline)) {
        num_bad += GatherItems(in, part.bound, indices + i, count, static_cast<T*>(to));
      });
  return num_bad;
}

template <class T, class Index>
uint64_t Scatter(const GatherPart& part) {
  const auto* const in = static_cast<const T*>(part.in);
  const auto* const indices = static_cast<const Index*>(part.indices);
  auto* const out = static_cast<T*>(part.out);
  const uint64_t bound = part.bound;
  uint64_t num_bad = 0;
  for (uint64_t i = 0; i < part.num_items; ++i) {
    const uint64_t index = indices[i];
    if (index < bound) {
      __atomic_store_n(out + index, in[i], __ATOMIC_RELAXED);  // Others may have the same index.
    } else {
      ++num_bad;
    }
  }
  return num_bad;
}

constexpr GatherTable MakeTable() {
  GatherTable table = {};
#define PREFIXD_SET(name, type)                                             \
  {                                                                         \
    using T = Unsigned<type>;                                               \
    table.gather[static_cast<int>(DType::name)][0] = Gather<T, uint32_t>;   \
    table.gather[static_cast<int>(DType::name)][1] = Gather<T, uint64_t>;   \
    table.scatter[static_cast<int>(DType::name)][0] = Scatter<T, uint32_t>; \
    table.scatter[static_cast<int>(DType::name)][1] = Scatter<T, uint64_t>; \
  }
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const GatherTable kGathers = MakeTable();

}  // namespace prefixd::cpu::PREFIXD_ISA
