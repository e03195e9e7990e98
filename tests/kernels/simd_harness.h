// What tests of the loops of each instruction set share: random items, results between guards, every scan that is
// served.
#ifndef PREFIXD_TESTS_KERNELS_SIMD_HARNESS_H_
#define PREFIXD_TESTS_KERNELS_SIMD_HARNESS_H_

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/log_add_exp.h"
#include "tests/kernels/guard.h"

namespace prefixd::cpu {

class SimdTest : public testing::TestWithParam<Isa> {
 protected:
  SimdTest() { RecordProperty("seed", std::to_string(seed_)); }

  size_t Below(size_t bound) { return random_() % bound; }

  // Random bytes without NaNs: a float's exponent has always a bit that is zero.
  std::vector<unsigned char> Items(DType dtype, size_t num_items) {
    std::vector<unsigned char> bytes(num_items * SizeOf(dtype));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random_());
    for (size_t i = SizeOf(dtype) - 1; IsFloating(dtype) && i < bytes.size(); i += SizeOf(dtype)) bytes[i] &= 0xbf;
    return bytes;
  }

  const unsigned seed_ = std::random_device()();
  std::mt19937_64 random_{seed_};
};

// Results between guards, `shift` elements behind a boundary of 64 bytes.
class Results {
 public:
  Results(size_t size_bytes, size_t shift_bytes) : size_bytes_(size_bytes) {
    bytes_.assign(size_bytes + shift_bytes + 2 * kGuardBytes + 64, kGuard);
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuardBytes;
    begin_ = kGuardBytes + (64 - address % 64) % 64 + shift_bytes;
  }
  unsigned char* data() { return bytes_.data() + begin_; }
  std::vector<unsigned char> Take() {
    std::vector<unsigned char> results(data(), data() + size_bytes_);
    std::memset(data(), kGuard, size_bytes_);
    EXPECT_EQ(bytes_, std::vector<unsigned char>(bytes_.size(), kGuard)) << "something beside the results was written";
    return results;
  }

 private:
  size_t size_bytes_;
  size_t begin_;
  std::vector<unsigned char> bytes_;
};

struct Combination {
  DType in;
  DType out;
  Op op;
};
inline std::vector<Combination> EveryCombination() {
  std::vector<Combination> all;
  for (int op = 0; op < kNumOps; ++op) {
#define PREFIXD_ADD(name, type, out_name, out_type)                                       \
  if (IsSupported(Primitive::kScan, DType::name, DType::out_name, static_cast<Op>(op))) { \
    all.push_back({DType::name, DType::out_name, static_cast<Op>(op)});                   \
  }
    PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
  }
  return all;
}

// A prefix of any type, in front of the first item: of `start`, an accumulator's bits.
inline std::vector<unsigned char> Start(DType out, Op op, const void* start) {
  return VisitDType(AccumulatorOf(out), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T neutral = Neutral(op, AccumulatorOf(out)).template As<T>();
    T first;
    std::memcpy(&first, start, sizeof(first));
    const auto bytes_of = [](auto item, auto none) {
      const auto prefix = PrefixOf(item, none);
      std::vector<unsigned char> bytes(sizeof(prefix));
      std::memcpy(bytes.data(), &prefix, sizeof(prefix));
      return bytes;
    };
    if constexpr (std::is_floating_point_v<T>) {
      if (op == Op::kLogAddExp) return bytes_of(LogAddExpOf<T>::Load(first), LogAddExpOf<T>::Load(neutral));
    }
    return bytes_of(first, neutral);
  });
}
inline std::vector<unsigned char> Start(DType out, Op op) {
  const Value neutral = Neutral(op, AccumulatorOf(out));
  return Start(out, op, &neutral.bits);
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_TESTS_KERNELS_SIMD_HARNESS_H_
