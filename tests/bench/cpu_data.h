// The arrays that cpu_bench works on: allocated once for a size, in huge pages where the system has them, and touched.
//
// cpu_peers.py makes the same numbers, so that its peers work on the same data.
#ifndef PREFIXD_TESTS_BENCH_CPU_DATA_H_
#define PREFIXD_TESTS_BENCH_CPU_DATA_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/types.h"

namespace prefixd::bench {

// Anonymous memory, touched. Gives itself back. Ends the process if there is none.
class Memory {
 public:
  explicit Memory(size_t size_bytes);
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  ~Memory();

  template <class T>
  T* As() const {
    return static_cast<T*>(data_);
  }
  std::byte* data() const { return As<std::byte>(); }
  size_t size_bytes() const { return size_bytes_; }

 private:
  void* data_;
  size_t size_bytes_;
};

// The shares of the items that a compact keeps.
enum class Kept { kOnePercent, kHalf, kAllButOnePercent };

// Integers are random in all their bits. Floats are random odd multiples of 1/512 in (-1, 1), so that the sums of up to
// 2^28 of them are exact in any order, and every result can be compared bit for bit.
struct Data {
  Data(uint64_t num_items, uint64_t seed);

  uint64_t num_items;
  Memory bits;  // As many u64: the integers of every type are what it begins with.
  Memory f32;
  Memory f64;
  Memory f16;            // The numbers of f32, which it has.
  Memory f32_factors;    // 1 and -1, and in every 128 items a 2 and later a half: products are exact and stay small.
  Memory f64_factors;    // The same numbers.
  Memory i32_factors;    // Odd: products do not vanish.
  Memory byte_masks[3];  // By Kept.
  Memory bit_mask;       // Half.

  Memory values;   // Results: num_items of up to 8 bytes.
  Memory numbers;  // The same for indices.

  template <class T>
  const T* In() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32.As<T>();
    } else if constexpr (std::is_same_v<T, double>) {
      return f64.As<T>();
    } else if constexpr (std::is_same_v<T, Float16>) {
      return f16.As<T>();
    } else {
      static_assert(!kIsFloating<T>);
      return bits.As<T>();
    }
  }
  template <class T>
  const T* Factors() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32_factors.As<T>();
    } else if constexpr (std::is_same_v<T, double>) {
      return f64_factors.As<T>();
    } else {
      return sizeof(T) == 4 ? i32_factors.As<T>() : bits.As<T>();
    }
  }
  const uint8_t* ByteMask(Kept kept) const { return byte_masks[static_cast<int>(kept)].As<uint8_t>(); }
};

// A comparison with `>` of this value keeps such a share of the items.
template <class T>
T ThresholdOf(Kept kept) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T kThresholds[] = {T{250} / 256, T{-1} / 256, T{-251} / 256};
    return kThresholds[static_cast<int>(kept)];
  } else {
    return std::is_signed_v<T> ? T{0} : static_cast<T>(static_cast<T>(~T{0}) / 2);  // Half.
  }
}

}  // namespace prefixd::bench

#endif  // PREFIXD_TESTS_BENCH_CPU_DATA_H_
