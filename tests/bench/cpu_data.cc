#include "tests/bench/cpu_data.h"

#include <sys/mman.h>

#include <cstring>

#include "base/fatal.h"

namespace prefixd::bench {
namespace {

// Item i of a random sequence: splitmix64.
uint64_t Random(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

float Factor(uint64_t i, bool negative) {
  const float magnitude = i % 128 == 5 ? 2.0F : i % 128 == 69 ? 0.5F : 1.0F;  // In one lane of every vector.
  return negative ? -magnitude : magnitude;
}

}  // namespace

Memory::Memory(size_t size_bytes) : size_bytes_(size_bytes) {
  data_ = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) Fatal("cpu_bench: there is not enough memory for so many items");
  madvise(data_, size_bytes, MADV_HUGEPAGE);  // A wish: without, the same with more misses of the TLB.
  std::memset(data_, 1, size_bytes);
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

Data::Data(uint64_t num_items, uint64_t seed)
    : num_items(num_items),
      bits(num_items * sizeof(uint64_t)),
      f32(num_items * sizeof(float)),
      f64(num_items * sizeof(double)),
      f16(num_items * sizeof(Float16)),
      f32_factors(num_items * sizeof(float)),
      f64_factors(num_items * sizeof(double)),
      i32_factors(num_items * sizeof(int32_t)),
      byte_masks{Memory(num_items), Memory(num_items), Memory(num_items)},
      bit_mask((num_items + 7) / 8),
      values(num_items * sizeof(uint64_t)),
      numbers(num_items * sizeof(uint64_t)) {
  std::memset(bit_mask.data(), 0, bit_mask.size_bytes());
  constexpr uint32_t kBounds[] = {42949673, 1U << 31, 4252017623};  // 1 %, 50 % and 99 % of 2^32.
  for (uint64_t i = 0; i < num_items; ++i) {
    const uint64_t random = Random(seed, i);
    const double number = (2 * static_cast<double>(random >> 55) - 511) / 512;
    bits.As<uint64_t>()[i] = random;
    f32.As<float>()[i] = static_cast<float>(number);
    f64.As<double>()[i] = number;
    f16.As<Float16>()[i] = Float16(number);
    f32_factors.As<float>()[i] = Factor(i, random >> 63 != 0);
    f64_factors.As<double>()[i] = f32_factors.As<float>()[i];
    i32_factors.As<uint32_t>()[i] = static_cast<uint32_t>(random) | 1;
    const auto chance = static_cast<uint32_t>(Random(seed + 1, i));
    for (int k = 0; k < 3; ++k) byte_masks[k].As<uint8_t>()[i] = chance < kBounds[k] ? 1 : 0;
    if (chance < kBounds[1]) bit_mask.As<uint8_t>()[i / 8] |= static_cast<uint8_t>(1U << i % 8);
  }
}

}  // namespace prefixd::bench
