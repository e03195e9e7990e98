// Scans and reduces of segments beside the device copy and CUB, in one process: a line for each figure.
//
//   segments_bench [SEED]     of the lengths; 1 unless said
//
// Each time is the median of 11 by events. "share" is the rate of the elements that are read and written over that of a
// device-to-device copy of as many, from the same run. By keys the runs of equal keys are found, too.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/bench/cuda_bench.h"

namespace {

using prefixd::Check;
using prefixd::Median;

constexpr int kSamples = 11;
constexpr uint64_t kItems = uint64_t{1} << 28;
constexpr size_t kScratchBytes = size_t{256} << 20;

template <class T>
__global__ void Fill(T* out) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < kItems;
       i += uint64_t{gridDim.x} * blockDim.x) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z ^= z >> 29;
    out[i] = static_cast<T>(static_cast<int64_t>(z) >> 40);
  }
}
// A key for each element: the number of its segment, of which one block has some.
__global__ void FillKeys(const uint64_t* offsets, uint64_t num_segments, uint32_t* keys) {
  for (uint64_t segment = blockIdx.x; segment < num_segments; segment += gridDim.x) {
    for (uint64_t i = offsets[segment] + threadIdx.x; i < offsets[segment + 1]; i += blockDim.x) {
      keys[i] = static_cast<uint32_t>(segment);
    }
  }
}

template <class T>
T* Allocate(uint64_t n) {
  void* d_array = nullptr;
  Check(cudaMalloc(&d_array, n * sizeof(T)));
  return static_cast<T*>(d_array);
}

struct Shape {
  std::string name;
  std::function<uint64_t(uint64_t segment)> length;
};

class Bench {
 public:
  Bench() : device_(Check(prefixd::OpenDevice("cuda:0"))), lane_(Check(device_->CreateLane())) {
    Check(cudaEventCreate(&begin_));
    Check(cudaEventCreate(&end_));
    d_scratch_ = Allocate<unsigned char>(kScratchBytes);
  }

  template <class T>
  void Run(const char* type, const std::vector<Shape>& shapes) {
    auto* const d_in = Allocate<T>(kItems);
    auto* const d_out = Allocate<T>(kItems);
    Fill<<<2048, 256>>>(d_in);
    const double copy_us =
        MedianOfCuda([&] { Check(cudaMemcpyAsync(d_out, d_in, kItems * sizeof(T), cudaMemcpyDeviceToDevice)); });
    copy_rate_ = 2.0 * kItems * sizeof(T) / copy_us;
    for (const Shape& shape : shapes) {
      std::vector<uint64_t> offsets = {0};
      while (offsets.back() < kItems) {
        offsets.push_back(std::min(kItems, offsets.back() + shape.length(offsets.size() - 1)));
      }
      RunShape(std::string(type) + ", " + shape.name, d_in, d_out, offsets);
    }
    Check(cudaFree(d_in));
    Check(cudaFree(d_out));
  }

 private:
  template <class T>
  void RunShape(const std::string& name, T* d_in, T* d_out, const std::vector<uint64_t>& offsets) {
    const uint64_t num_segments = offsets.size() - 1;
    auto* const d_offsets = Allocate<uint64_t>(offsets.size());
    auto* const d_keys = Allocate<uint32_t>(kItems);
    Check(cudaMemcpy(d_offsets, offsets.data(), offsets.size() * sizeof(uint64_t), cudaMemcpyHostToDevice));
    FillKeys<<<4096, 128>>>(d_offsets, num_segments, d_keys);
    Check(cudaDeviceSynchronize());
    const double read = kItems * sizeof(T);
    prefixd::ScanArgs scan = {.dtype = prefixd::kDTypeOf<T>, .in = d_in, .out = d_out, .num_items = kItems};
    scan.num_arrays = num_segments;
    scan.offsets = d_offsets;
    scan.init = prefixd::ScanStart(scan.op, scan.dtype, scan.kind);
    prefixd::ReduceArgs reduce = {.dtype = prefixd::kDTypeOf<T>, .in = d_in, .num_items = kItems};
    reduce.num_arrays = num_segments;
    reduce.offsets = d_offsets;
    reduce.init = {prefixd::Neutral(reduce.op, reduce.StateDType()), prefixd::ReduceState::kNothing};
    reduce.values = d_out;
    Print("scan " + name, MedianOfLane([&] { Check(lane_->Scan(scan)); }), 2 * read);
    Print("reduce " + name, MedianOfLane([&] { Check(lane_->Reduce(reduce)); }), read);
    Print("cub segmented reduce " + name, MedianOfCuda([&] {
            size_t temp_bytes = kScratchBytes;
            Check(cub::DeviceSegmentedReduce::Sum(d_scratch_, temp_bytes, d_in, d_out,
                                                  static_cast<int64_t>(num_segments), d_offsets, d_offsets + 1));
          }),
          read);
    auto* const d_found = Allocate<uint64_t>(kItems + 1);
    const prefixd::RunsArgs runs = {.dtype = prefixd::DType::kU32,
                                    .keys = d_keys,
                                    .num_items = kItems,
                                    .scratch = d_scratch_,
                                    .offsets = d_found,
                                    .num_offsets = reinterpret_cast<uint64_t*>(d_scratch_ + kScratchBytes / 2)};
    scan.offsets = d_found;
    Print("scan by keys " + name, MedianOfLane([&] {
            Check(lane_->FindRuns(runs));
            Check(lane_->Scan(scan));
          }),
          2 * read);
    Print("cub scan by key " + name, MedianOfCuda([&] {
            size_t temp_bytes = kScratchBytes;
            Check(cub::DeviceScan::InclusiveSumByKey(d_scratch_, temp_bytes, d_keys, d_in, d_out,
                                                     static_cast<int64_t>(kItems)));
          }),
          2 * read);
    Check(cudaFree(d_found));
    Check(cudaFree(d_keys));
    Check(cudaFree(d_offsets));
  }

  double MedianOfCuda(const std::function<void()>& work) {
    std::vector<double> times;
    for (int i = -2; i < kSamples; ++i) {
      Check(cudaEventRecord(begin_));
      work();
      Check(cudaEventRecord(end_));
      Check(cudaEventSynchronize(end_));
      float ms = 0;
      Check(cudaEventElapsedTime(&ms, begin_, end_));
      if (i >= 0) times.push_back(ms * 1e3);
    }
    return Median(std::move(times));
  }
  double MedianOfLane(const std::function<void()>& enqueue) {
    std::vector<double> times;
    for (int i = -2; i < kSamples; ++i) {
      enqueue();
      Check(lane_->Synchronize());
      const prefixd::StageTimes stage = lane_->TakeStageTimes();
      if (i >= 0) times.push_back(static_cast<double>(stage.kernel_ns.value_or(0)) / 1e3);
    }
    return Median(std::move(times));
  }

  void Print(const std::string& what, double us, double num_bytes) const {
    std::printf("%-48s %9.1f us %7.3f\n", what.c_str(), us, num_bytes / us / copy_rate_);
    std::fflush(stdout);
  }

  std::unique_ptr<prefixd::Device> device_;
  std::unique_ptr<prefixd::Lane> lane_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  unsigned char* d_scratch_ = nullptr;
  double copy_rate_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  std::mt19937_64 random(seed);
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, 0));
  std::printf("# %s, CUB %d, 2^28 elements, lengths by seed %llu; share of the copy\n", properties.name, CUB_VERSION,
              static_cast<unsigned long long>(seed));
  const std::vector<Shape> shapes = {
      {"1 to 536", [&](uint64_t) { return 1 + random() % 536; }},
      {"2^27, then 128", [](uint64_t segment) { return segment == 0 ? uint64_t{1} << 27 : 128; }},
      {"1 to 6,000", [&](uint64_t) { return 1 + random() % 6000; }},
      {"1 to 200,000", [&](uint64_t) { return 1 + random() % 200'000; }},
      {"1 to 160", [&](uint64_t) { return 1 + random() % 160; }},
      {"1 to 32", [&](uint64_t) { return 1 + random() % 32; }}};
  Bench bench;
  bench.Run<float>("f32", shapes);
  bench.Run<double>("f64", {shapes[0], shapes[1]});
}
