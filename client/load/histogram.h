// Counts latencies: in little memory, however many there are, and exact to 1 %.
#ifndef PREFIXD_CLIENT_LOAD_HISTOGRAM_H_
#define PREFIXD_CLIENT_LOAD_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prefixd::load {

// Threads: one at a time.
// Cost:    60 KiB; a few nanoseconds a value.
class Histogram {
 public:
  // A negative value counts as 0.
  void Add(int64_t ns);
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  int64_t max_ns() const { return max_ns_; }
  // 0 if there is no value.
  double MeanNs() const { return count_ == 0 ? 0 : sum_ns_ / static_cast<double>(count_); }

  // The least value that `share` of all values do not exceed, up to 0.8 % too high; 0 if there is no value.
  // Needs:   0 < share <= 1.
  // Example: of 1, 2, 3, 4 -> Percentile(0.5) 2, Percentile(0.51) 3
  int64_t Percentile(double share) const;

 private:
  // Values below this have a counter each; above, every power of two has as many counters.
  static constexpr int kBits = 7;
  static constexpr uint64_t kSteps = uint64_t{1} << kBits;
  static constexpr size_t kCounters = (64 - kBits) * kSteps;
  static size_t IndexOf(uint64_t value);
  static int64_t LastOf(size_t index);  // The largest value that is counted there.

  std::vector<uint64_t> counters_ = std::vector<uint64_t>(kCounters);
  uint64_t count_ = 0;
  int64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace prefixd::load

#endif  // PREFIXD_CLIENT_LOAD_HISTOGRAM_H_
