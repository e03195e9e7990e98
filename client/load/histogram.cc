#include "client/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace prefixd::load {

// With s the shift that leaves kBits + 1 bits of a value, the first of which is 1: s * kSteps + those bits.
size_t Histogram::IndexOf(uint64_t value) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kBits - 1);
  return static_cast<size_t>(shift) * kSteps + (value >> shift);
}

int64_t Histogram::LastOf(size_t index) {
  if (index < 2 * kSteps) return static_cast<int64_t>(index);
  const size_t shift = index / kSteps - 1;
  const uint64_t bits = index - shift * kSteps;
  return static_cast<int64_t>(((bits + 1) << shift) - 1);
}

void Histogram::Add(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  ++counters_[IndexOf(static_cast<uint64_t>(ns))];
  ++count_;
  max_ns_ = std::max(max_ns_, ns);
  sum_ns_ += static_cast<double>(ns);
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kCounters; ++i) counters_[i] += other.counters_[i];
  count_ += other.count_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
}

int64_t Histogram::Percentile(double share) const {
  // The first rank at which the share is reached. Less a hair: 0.9 of 10 is 9, however 0.9 was rounded.
  const double wanted = std::ceil(share * static_cast<double>(count_) - 1e-6);
  const auto rank = static_cast<uint64_t>(std::max(wanted, 1.0));
  uint64_t seen = 0;
  for (size_t i = 0; i < kCounters; ++i) {
    seen += counters_[i];
    if (seen >= rank) return std::min(LastOf(i), max_ns_);
  }
  return max_ns_;
}

}  // namespace prefixd::load
