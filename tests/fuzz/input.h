// What the targets that run kernels make of their input, and how they compare the instruction sets.
#ifndef PREFIXD_TESTS_FUZZ_INPUT_H_
#define PREFIXD_TESTS_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/types.h"

namespace prefixd {

// Takes choices from the front of the input; what is left makes the items, again and again.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  // A choice among at most 65,536.
  uint64_t Below(uint64_t bound) {
    uint64_t value = 0;
    for (uint64_t room = 1; room < bound && size_ > 0; room <<= 8, ++data_, --size_) value = value << 8 | *data_;
    return value % bound;
  }

  // A byte says for each item which of the values that need care it is, or that its bytes follow.
  std::vector<uint8_t> Items(DType dtype, size_t num_items) const {
    std::vector<uint8_t> items(num_items * SizeOf(dtype));
    VisitDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Limits = std::numeric_limits<T>;
      const T special[] = {Limits::quiet_NaN(),  -Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T(-0.0),
                           Limits::denorm_min(), Limits::max(),        Limits::lowest()};
      size_t place = 0;
      for (size_t i = 0; i < num_items; ++i) {
        const uint8_t choice = At(place++);
        T item;
        if (choice < 64) {
          item = special[choice % std::size(special)];
        } else {
          uint8_t bytes[sizeof(T)];
          for (uint8_t& byte : bytes) byte = At(place++);
          std::memcpy(&item, bytes, sizeof(T));
        }
        std::memcpy(&items[i * sizeof(T)], &item, sizeof(T));
      }
    });
    return items;
  }

 private:
  // Not the same each time around.
  uint8_t At(size_t place) const {
    return size_ == 0 ? static_cast<uint8_t>(place) : data_[place % size_] ^ static_cast<uint8_t>(place / size_);
  }

  const uint8_t* data_;
  size_t size_;
};

// Results and what else comes out. Exactly as long as they may be, so that the address sanitizer sees what is beside.
struct Outcome {
  std::vector<uint8_t> results;
  std::vector<uint8_t> rest;
  bool operator==(const Outcome&) const = default;
};

// Runs the work with each instruction set, and ends the process if one gives anything but `want`.
template <class Work>
void CompareSets(const char* what, const Outcome& want, Work work) {
  for (const cpu::Isa& isa : cpu::IsasHere()) {
    if (work(*isa.kernels) == want) continue;
    std::fprintf(stderr, "%s with %s has other bits\n", what, std::string(isa.name).c_str());
    std::abort();
  }
}
// The same if one differs from the first.
template <class Work>
void CompareSets(const char* what, Work work) {
  CompareSets(what, work(*cpu::IsasHere().front().kernels), work);
}

struct Combination {
  DType in;
  DType out;
};
inline Combination AnyCombination(Input* input) {
  constexpr Combination kAll[] = {
#define PREFIXD_ROW(name, type, out_name, out_type) {DType::name, DType::out_name},
      PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ROW)
#undef PREFIXD_ROW
  };
  return kAll[input->Below(std::size(kAll))];
}

inline DType AnyType(Input* input) {
  constexpr DType kAll[] = {
#define PREFIXD_ROW(name, type) DType::name,
      PREFIXD_FOR_EACH_DTYPE(PREFIXD_ROW)
#undef PREFIXD_ROW
  };
  return kAll[input->Below(std::size(kAll))];
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_FUZZ_INPUT_H_
