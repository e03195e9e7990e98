// Runs of equal keys as a device finds them, beside those of a plain loop.
#ifndef PREFIXD_TESTS_CONFORMANCE_FOUND_RUNS_H_
#define PREFIXD_TESTS_CONFORMANCE_FOUND_RUNS_H_

#include <cstdint>
#include <vector>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {

// Where runs begin, and the end. Needs: the lane outlives it.
template <class T>
class FoundRuns {
 public:
  // Finds them on the lane. The arrays begin anywhere.
  FoundRuns(Lane& lane, const std::vector<T>& keys, Random& random)
      : d_keys_(lane, keys, random.Below(5)),
        d_scratch_(DeviceArray<uint64_t>::Poisoned(lane, RunsScratchBytes(keys.size()) / 8, random.Below(3))),
        d_offsets_(DeviceArray<uint64_t>::Poisoned(lane, keys.size() + 1, random.Below(3))),
        d_num_offsets_(DeviceArray<uint64_t>::Poisoned(lane, 1)) {
    for (uint64_t i = 0; i < keys.size(); ++i) {
      if (i == 0 || keys[i] != keys[i - 1]) want_.push_back(i);
    }
    want_.push_back(keys.size());
    Require(lane.FindRuns({.dtype = kDTypeOf<T>,
                           .keys = d_keys_.data(),
                           .num_items = keys.size(),
                           .scratch = d_scratch_.data(),
                           .offsets = d_offsets_.data(),
                           .num_offsets = d_num_offsets_.data()}));
  }

  const uint64_t* DeviceOffsets() { return d_offsets_.data(); }
  const std::vector<uint64_t>& Want() const { return want_; }

  // Whether they are those of the loop, and nothing else was written.
  testing::AssertionResult AreRight() {
    std::vector<uint64_t> got, num_offsets, unused;
    if (auto result = d_num_offsets_.Read(&num_offsets); !result) return result;
    if (auto result = d_scratch_.Read(&unused); !result) return result;
    if (auto result = d_keys_.IsUntouched(); !result) return result;
    if (auto result = d_offsets_.Read(&got); !result) return result;
    if (num_offsets[0] != want_.size()) {
      return testing::AssertionFailure() << num_offsets[0] << " offsets, expected " << want_.size();
    }
    std::vector<uint64_t> want = want_;
    want.resize(got.size(), Poison<uint64_t>());  // Nothing is written behind them.
    return AreSame(got, want);
  }

 private:
  DeviceArray<T> d_keys_;
  DeviceArray<uint64_t> d_scratch_;
  DeviceArray<uint64_t> d_offsets_;
  DeviceArray<uint64_t> d_num_offsets_;
  std::vector<uint64_t> want_;
};

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_FOUND_RUNS_H_
