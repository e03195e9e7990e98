// Items that their index alone defines: kernels/NUMERICS.md says which. A thread writes the items of one vector; random
// ones are the 16 bytes that it draws.
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/operators.cuh"

namespace prefixd::cuda {
namespace {

constexpr int kRounds = 10;

template <class T>
struct FillParams {
  T* out;
  uint64_t num_items;
  uint64_t first_item;
  // Items of the first vector in front of out[0]. Vectors begin where they are aligned in memory, but those of random
  // items where a draw begins.
  uint32_t lead;
  bool aligned;
  T value;
  T step;
  uint2 keys[kRounds];  // The same for all threads.
};

template <class T>
using FillVector = Vector<T, kVectorBytes / static_cast<int>(sizeof(T))>;

// Philox4x32-10.
__device__ uint4 Draw(uint64_t block, const uint2* keys) {
  uint4 c = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53} * c.x;
    const uint64_t p1 = uint64_t{0xcd9e8d57} * c.z;
    c = {static_cast<uint32_t>(p1 >> 32) ^ c.y ^ keys[round].x, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c.w ^ keys[round].y, static_cast<uint32_t>(p0)};
  }
  return c;
}

// The vector whose first item has index `first`.
template <class T, FillKind kKind>
__device__ FillVector<T> Items(const FillParams<T>& p, uint64_t first) {
  constexpr int kItems = sizeof(FillVector<T>) / sizeof(T);
  FillVector<T> v;
  if constexpr (kKind == FillKind::kConstant) {
#pragma unroll
    for (int j = 0; j < kItems; ++j) v.items[j] = p.value;
  } else if constexpr (kKind == FillKind::kIota) {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const auto index = static_cast<Wraps<T>>(first + j);
      v.items[j] = Canonical(static_cast<T>(p.value + index * p.step));
    }
  } else {
    const uint4 bits = Draw(first / kItems, p.keys);
    if constexpr (std::is_same_v<T, float>) {
      v = {{static_cast<float>(bits.x >> 8) * 0x1p-24f, static_cast<float>(bits.y >> 8) * 0x1p-24f,
            static_cast<float>(bits.z >> 8) * 0x1p-24f, static_cast<float>(bits.w >> 8) * 0x1p-24f}};
    } else if constexpr (std::is_same_v<T, double>) {
      const uint64_t low = uint64_t{bits.y} << 32 | bits.x, high = uint64_t{bits.w} << 32 | bits.z;
      v = {{static_cast<double>(low >> 11) * 0x1p-53, static_cast<double>(high >> 11) * 0x1p-53}};
    } else if constexpr (kIsNarrowFloat<T>) {
      constexpr int kDigits = std::numeric_limits<T>::digits;
      const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const uint32_t item = words[j / 2] >> (j % 2 * 16) & 0xffff;
        v.items[j] = T(static_cast<float>(item >> (16 - kDigits)) * (1.0f / (1 << kDigits)));
      }
    } else {
      memcpy(&v, &bits, sizeof(v));
    }
  }
  return v;
}

template <class T, FillKind kKind>
__global__ void __launch_bounds__(kGlueThreads) FillKernel(const FillParams<T> p) {
  constexpr int kItems = sizeof(FillVector<T>) / sizeof(T);
  // Wraps round in front of out[0], for the first vector and for its index.
  const uint64_t i = (blockIdx.x * uint64_t{kGlueThreads} + threadIdx.x) * kItems - p.lead;
  const bool begins = static_cast<int64_t>(i) < 0;
  if (!begins && i >= p.num_items) return;
  const FillVector<T> v = Items<T, kKind>(p, p.first_item + i);
  if (!begins && p.aligned && p.num_items - i >= kItems) {
    // As one store of 16 bytes: in its own type the vector is merged with the stores below, of 4 or 8 bytes, and memory
    // is written at 0.6 of its speed.
    uint4 bits;
    memcpy(&bits, &v, sizeof(bits));
    __stwb(reinterpret_cast<uint4*>(p.out + i), bits);
    return;
  }
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (i + j < p.num_items) p.out[i + j] = v.items[j];
  }
}

template <class T, FillKind kKind>
cudaError_t LaunchOf(const FillArgs& args, LaunchContext* context) {
  constexpr uint32_t kItems = sizeof(FillVector<T>) / sizeof(T);
  FillParams<T> params = {.out = static_cast<T*>(args.out),
                          .num_items = args.num_items,
                          .first_item = args.first_item,
                          .lead = 0,
                          .aligned = true,
                          .value = args.value.As<T>(),
                          .step = args.step.As<T>(),
                          .keys = {}};
  const auto misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(args.out) % kVectorBytes / sizeof(T));
  params.lead = misaligned;
  if (kKind == FillKind::kRandom) {
    params.lead = static_cast<uint32_t>(args.first_item % kItems);
    params.aligned = params.lead == misaligned;
    auto low = static_cast<uint32_t>(args.seed), high = static_cast<uint32_t>(args.seed >> 32);
    for (uint2& key : params.keys) {
      key = {low, high};
      low += 0x9e3779b9;
      high += 0xbb67ae85;
    }
  }
  if constexpr (kIsFloating<T> && kKind == FillKind::kConstant) {
    if (params.value != params.value) params.value = std::numeric_limits<T>::quiet_NaN();
  }
  uint32_t num_blocks = 0;
  const cudaError_t error = CountTiles(args.num_items + params.lead, uint64_t{kGlueThreads} * kItems, &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(FillKernel<T, kKind>, num_blocks, kGlueThreads, context->stream, params);
}

}  // namespace

cudaError_t LaunchFill(const FillArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto tag) {
    using T = BitsOrFloat<typename decltype(tag)::type>;
    switch (args.kind) {
#define PREFIXD_CASE(enumerator, name) \
  case FillKind::enumerator:           \
    return LaunchOf<T, FillKind::enumerator>(args, context);
      PREFIXD_FILL_KINDS(PREFIXD_CASE)
#undef PREFIXD_CASE
    }
    FatalValue("LaunchFill", args.kind);
  });
}

}  // namespace prefixd::cuda
