#include "kernels/cuda/algorithms.h"

#include <algorithm>

#include "kernels/yardsticks/yardsticks.h"

namespace prefixd::cuda {

std::vector<AlgorithmInfo> ServedAlgorithms() {
  constexpr char kMerrill[] = "Merrill and Garland 2016; Funktor";
  std::vector<AlgorithmInfo> rows = {
      {.primitive = Primitive::kScan,
       .algorithm = {Strategy::kChained},
       .work = "2n",
       .depth = "log n",
       .traffic = "2n",
       .launches = "1",
       .source = kMerrill},
      {.primitive = Primitive::kReduce,
       .algorithm = {Strategy::kSingleLaunch},
       .work = "n",
       .depth = "log n",
       .traffic = "n",
       .launches = "1",
       .source = "Harris 2007; Note and Save"},
      {.primitive = Primitive::kCompact,
       .algorithm = {Strategy::kChained},
       .work = "2n",
       .depth = "log n",
       .traffic = "n and what is kept",
       .launches = "1",
       .source = kMerrill},
      {.primitive = Primitive::kDifference,
       .algorithm = {Strategy::kSingleLaunch},
       .work = "n",
       .depth = "1",
       .traffic = "2n",
       .launches = "1",
       .source = "the inverse of a scan"},
  };
  const std::vector<AlgorithmInfo> yardsticks = YardstickAlgorithms();
  rows.insert(rows.end(), yardsticks.begin(), yardsticks.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const AlgorithmInfo& a, const AlgorithmInfo& b) { return a.primitive < b.primitive; });
  return rows;
}

}  // namespace prefixd::cuda
