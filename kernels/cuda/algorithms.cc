#include "kernels/cuda/algorithms.h"

#include <algorithm>
#include <string_view>

#include "kernels/cuda/catalogue/catalogue.h"

namespace prefixd::cuda {

std::vector<AlgorithmInfo> ServedAlgorithms() {
  constexpr std::string_view kMerrill = "Merrill and Garland, NVR-2016-002; text 000";
  constexpr std::string_view kCub = "NVIDIA's library; text 004";
  std::vector<AlgorithmInfo> rows = {
      {.primitive = Primitive::kScan,
       .algorithm = {Strategy::kChained},
       .work = "2n",
       .depth = "log n",
       .traffic = "2n",
       .launches = "1",
       .source = kMerrill},
      {.primitive = Primitive::kScan,
       .algorithm = {Strategy::kCub},
       .work = "2n",
       .depth = "log n",
       .traffic = "2n",
       .launches = "2 or 3",
       .deterministic = false,
       .source = kCub},
      {.primitive = Primitive::kReduce,
       .algorithm = {Strategy::kSingleLaunch},
       .work = "n",
       .depth = "log n",
       .traffic = "n",
       .launches = "1",
       .source = "Harris 2007; text 004"},
      {.primitive = Primitive::kReduce,
       .algorithm = {Strategy::kCub},
       .work = "n",
       .depth = "log n",
       .traffic = "n",
       .launches = "2 or 3",
       .source = kCub},
      {.primitive = Primitive::kCompact,
       .algorithm = {Strategy::kChained},
       .work = "2n",
       .depth = "log n",
       .traffic = "n and what is kept",
       .launches = "1",
       .source = kMerrill},
      {.primitive = Primitive::kCompact,
       .algorithm = {Strategy::kCub},
       .work = "2n",
       .depth = "log n",
       .traffic = "n and what is kept",
       .launches = "2 and more",
       .source = kCub},
  };
  const std::vector<AlgorithmInfo> catalogue = CatalogueAlgorithms();
  rows.insert(rows.end(), catalogue.begin(), catalogue.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const AlgorithmInfo& a, const AlgorithmInfo& b) { return a.primitive < b.primitive; });
  return rows;
}

}  // namespace prefixd::cuda
