#include "client/load/mix.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/status.h"

namespace prefixd::load {
namespace {

// SplitMix64: well mixed bits of consecutive numbers (Steele, Lea and Flood 2014).
uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::string Name(const Operation& operation) {
  const uint64_t n = operation.num_items;
  const bool as_power = n >= 1024 && std::has_single_bit(n);
  return StrCat(Name(operation.primitive), ":", Name(operation.dtype), ":",
                as_power ? StrCat("2^", std::bit_width(n) - 1) : StrCat(n));
}

Mix::Mix(std::vector<Operation> operations, uint64_t seed) : operations_(std::move(operations)), seed_(seed) {
  uint64_t end = 0;
  for (const Operation& operation : operations_) ends_.push_back(end += operation.weight);
}

size_t Mix::Pick(uint64_t number) const {
  const uint64_t place = Mixed(Mixed(seed_) + number) % ends_.back();
  return std::upper_bound(ends_.begin(), ends_.end(), place) - ends_.begin();
}

}  // namespace prefixd::load
