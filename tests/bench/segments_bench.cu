// Scans and reduces of segments beside the device copy and CUB, in one process: a line for each figure.
//
//   segments_bench [SEED]     of the lengths; 1 unless said
//
// 2^28 elements. Each time is the median of 21 by events, the L2 cache flushed before each. "share" is the time of a
// device-to-device copy that moves as many bytes as the elements in and out have, from the same run, over the figure's.
// By keys the runs of equal keys are found, too.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cub/cub.cuh>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/bench/cuda_bench.h"
#include "tests/bench/fill.cuh"

namespace {

using prefixd::Allocate;
using prefixd::Check;

constexpr uint64_t kItems = uint64_t{1} << 28;

// A key for each element: the number of its segment, of which one block has some.
__global__ void FillKeys(const uint64_t* offsets, uint64_t num_segments, uint32_t* keys) {
  for (uint64_t segment = blockIdx.x; segment < num_segments; segment += gridDim.x) {
    for (uint64_t i = offsets[segment] + threadIdx.x; i < offsets[segment + 1]; i += blockDim.x) {
      keys[i] = static_cast<uint32_t>(segment);
    }
  }
}

struct Shape {
  std::string name;
  std::function<uint64_t(uint64_t segment)> length;
};

class Bench {
 public:
  explicit Bench(uint64_t seed)
      : card_("CUB " + std::to_string(CUB_VERSION) + ", lengths by seed " + std::to_string(seed)) {}

  template <class T>
  void Run(const std::string& type, const std::vector<Shape>& shapes) {
    const auto in = prefixd::AllocateRandom<T>(kItems);
    const auto out = Allocate<T>(kItems);
    for (const Shape& shape : shapes) {
      std::vector<uint64_t> offsets = {0};
      while (offsets.back() < kItems) {
        offsets.push_back(std::min(kItems, offsets.back() + shape.length(offsets.size() - 1)));
      }
      RunShape(type + ", " + shape.name, in.get(), out.get(), offsets);
    }
  }

 private:
  template <class T>
  void RunShape(const std::string& name, const T* d_in, T* d_out, const std::vector<uint64_t>& h_offsets) {
    const uint64_t num_segments = h_offsets.size() - 1;
    const auto offsets = Allocate<uint64_t>(h_offsets.size());
    const auto keys = Allocate<uint32_t>(kItems);
    Check(cudaMemcpy(offsets.get(), h_offsets.data(), h_offsets.size() * sizeof(uint64_t), cudaMemcpyHostToDevice));
    FillKeys<<<4096, 128>>>(offsets.get(), num_segments, keys.get());
    Check(cudaDeviceSynchronize());
    prefixd::ScanArgs scan = {.dtype = prefixd::kDTypeOf<T>, .in = d_in, .out = d_out, .num_items = kItems};
    scan.num_arrays = num_segments;
    scan.offsets = offsets.get();
    scan.init = prefixd::ScanStart(scan.op, scan.dtype, scan.kind);
    prefixd::ReduceArgs reduce = {.dtype = prefixd::kDTypeOf<T>, .in = d_in, .num_items = kItems};
    reduce.num_arrays = num_segments;
    reduce.offsets = offsets.get();
    reduce.init = {prefixd::Neutral(reduce.op, reduce.StateDType()), prefixd::ReduceState::kNothing};
    reduce.values = d_out;
    const uint64_t read = kItems * sizeof(T);
    size_t temp_bytes = prefixd::BenchCard::kScratchBytes;
    Print("scan " + name, card_.TimeOfLane([&] { return card_.lane().Scan(scan); }), 2 * read);
    Print("reduce " + name, card_.TimeOfLane([&] { return card_.lane().Reduce(reduce); }), read);
    Print("cub segmented reduce " + name, card_.TimeOfCuda([&] {
      return cub::DeviceSegmentedReduce::Sum(card_.d_scratch(), temp_bytes, d_in, d_out,
                                             static_cast<int64_t>(num_segments), offsets.get(), offsets.get() + 1);
    }),
          read);
    const auto found = Allocate<uint64_t>(kItems + 1);
    const prefixd::RunsArgs runs = {
        .dtype = prefixd::DType::kU32,
        .keys = keys.get(),
        .num_items = kItems,
        .scratch = card_.d_scratch(),
        .offsets = found.get(),
        .num_offsets = reinterpret_cast<uint64_t*>(card_.d_scratch() + prefixd::BenchCard::kScratchBytes / 2)};
    scan.offsets = found.get();
    Print("scan by keys " + name, card_.TimeOfLane([&] {
      const absl::Status status = card_.lane().FindRuns(runs);
      return status.ok() ? card_.lane().Scan(scan) : status;
    }),
          2 * read);
    Print("cub scan by key " + name, card_.TimeOfCuda([&] {
      return cub::DeviceScan::InclusiveSumByKey(card_.d_scratch(), temp_bytes, keys.get(), d_in, d_out,
                                                static_cast<int64_t>(kItems));
    }),
          2 * read);
  }

  void Print(const std::string& what, double us, uint64_t num_bytes) { card_.Print(what, kItems, us, num_bytes); }

  prefixd::BenchCard card_;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  std::mt19937_64 random(seed);
  const std::vector<Shape> shapes = {
      {"1 to 536", [&](uint64_t) { return 1 + random() % 536; }},
      {"2^27, then 128", [](uint64_t segment) { return segment == 0 ? uint64_t{1} << 27 : 128; }},
      {"1 to 6,000", [&](uint64_t) { return 1 + random() % 6000; }},
      {"1 to 200,000", [&](uint64_t) { return 1 + random() % 200'000; }},
      {"1 to 160", [&](uint64_t) { return 1 + random() % 160; }},
      {"1 to 32", [&](uint64_t) { return 1 + random() % 32; }}};
  Bench bench(seed);
  bench.Run<float>("f32", shapes);
  bench.Run<double>("f64", {shapes[0], shapes[1]});
}
