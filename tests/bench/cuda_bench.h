// What the benchmarks on a card have in common: a benchmark ends at the first error, and a time is a median.
#ifndef PREFIXD_TESTS_BENCH_CUDA_BENCH_H_
#define PREFIXD_TESTS_BENCH_CUDA_BENCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace prefixd {

inline void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::cerr << "error: " << cudaGetErrorString(error) << '\n';
  std::exit(1);
}
inline void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "error: " << status << '\n';
  std::exit(1);
}
template <class T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

inline double Median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_BENCH_CUDA_BENCH_H_
