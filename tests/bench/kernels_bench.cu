// The kernels beside the device copy and CUB, in one process: a line for each figure.
//
//   kernels_bench [FILTER]     only the lines that contain FILTER
//
// Each time is the median of 21 by events, the L2 cache flushed before each by copying 128 MiB. "share" is the rate of
// the bytes that must be moved over the rate of a device-to-device copy of as many elements, from the same run.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cub/cub.cuh>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/bench/cuda_bench.h"

namespace {

using prefixd::Check;
using prefixd::DType;
using prefixd::Median;
using prefixd::Op;

constexpr int kSamples = 21;
constexpr size_t kFlushBytes = size_t{256} << 20;

template <class T>
__global__ void Fill(T* out, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    // Around 0: half of the elements are positive, and sums stay finite.
    if constexpr (prefixd::kIsFloating<T>) {
      out[i] = static_cast<T>(static_cast<prefixd::Accumulator<T>>(static_cast<int64_t>(z) >> 40) * 0x1p-23f);
    } else {
      out[i] = static_cast<T>(z);
    }
  }
}

__global__ void FillMask(uint8_t* out, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    out[i] = (i + 1) * 0x9e3779b97f4a7c15 >> 63;
  }
}

struct IsPositive {
  template <class T>
  __device__ bool operator()(T v) const {
    return v > T{0};
  }
};

class Bench {
 public:
  explicit Bench(std::string filter) : filter_(std::move(filter)) {
    device_ = Check(prefixd::OpenDevice("cuda:0"));
    lane_ = Check(device_->CreateLane());
    Check(cudaMalloc(&d_flush_, kFlushBytes));
    Check(cudaMalloc(&d_scratch_, kScratchBytes));
    Check(cudaEventCreate(&begin_));
    Check(cudaEventCreate(&end_));
    cudaDeviceProp properties;
    Check(cudaGetDeviceProperties(&properties, 0));
    std::printf("# %s, CUB %d\n%-34s %12s %10s %9s %7s\n", properties.name, CUB_VERSION, "what", "items", "us", "GB/s",
                "share");
  }

  template <class T>
  void Run(size_t n, const char* name) {
    T* d_in;
    T* d_out;
    Check(cudaMalloc(&d_in, n * sizeof(T) + 16));
    Check(cudaMalloc(&d_out, n * sizeof(T) + 16));
    Fill<<<2048, 256>>>(d_in, n);
    const double bytes = 2.0 * n * sizeof(T);
    const double copy_us = CopyTime(n * sizeof(T));
    Print(std::string("copy ") + name, n, copy_us, bytes);
    for (const Op op : {Op::kSum, Op::kMin}) {
      ScanAndReduce(d_in, d_out, n, op, prefixd::Precision::kNative,
                    std::string(name) + " " + std::string(prefixd::Name(op)));
    }
    if (!Wanted("cub") && !filter_.empty()) return Free(d_in, d_out);
    size_t temp_bytes = kScratchBytes;
    PrintCub("cub scan inclusive", name, n, bytes, [&] {
      Check(cub::DeviceScan::InclusiveSum(d_scratch_, temp_bytes, d_in, d_out, static_cast<int64_t>(n)));
    });
    PrintCub("cub reduce", name, n, bytes / 2,
             [&] { Check(cub::DeviceReduce::Sum(d_scratch_, temp_bytes, d_in, d_out, static_cast<int64_t>(n))); });
    Free(d_in, d_out);
  }

  // Scans with results of another type.
  template <class In, class Out>
  void RunWide(size_t n, const char* name) {
    auto* const d_in = Allocate<In>(n);
    auto* const d_out = Allocate<Out>(n);
    Fill<<<2048, 256>>>(d_in, n);
    CopyTime(n * sizeof(In));
    for (const auto kind : {prefixd::ScanKind::kInclusive, prefixd::ScanKind::kExclusive}) {
      Line(std::string("scan ") + std::string(prefixd::Name(kind)) + " " + name + " sum", n,
           double(n) * (sizeof(In) + sizeof(Out)), [&] {
             prefixd::ScanArgs args;
             args.dtype = prefixd::kDTypeOf<In>;
             args.out_dtype = prefixd::kDTypeOf<Out>;
             args.kind = kind;
             args.in = d_in;
             args.out = d_out;
             args.num_items = n;
             args.init = prefixd::ScanStart(args.op, args.output(), kind);
             Check(lane_->Scan(args));
           });
    }
    Free(d_in, d_out);
  }

  // Sums in the elements' precision and in more, or where there is no more minima, and sums of exponentials.
  template <class T>
  void RunFloats(size_t n, const char* name) {
    auto* const d_in = Allocate<T>(n);
    auto* const d_out = Allocate<T>(n);
    Fill<<<2048, 256>>>(d_in, n);
    CopyTime(n * sizeof(T));
    const auto run = [&](Op op, prefixd::Precision precision, const char* how) {
      ScanAndReduce(d_in, d_out, n, op, precision, std::string(how) + " " + name);
    };
    run(Op::kSum, prefixd::Precision::kNative, "plain sum");
    if (!prefixd::kIsNarrowFloat<T>) run(Op::kSum, prefixd::Precision::kWide, "wide sum");
    if (prefixd::kIsNarrowFloat<T>) run(Op::kMin, prefixd::Precision::kNative, "min");
    run(Op::kLogAddExp, prefixd::Precision::kNative, "log_add_exp");
    Free(d_in, d_out);
  }

  // Scans by min or max that also say where each extremum stands.
  template <class T>
  void RunWithIndices(size_t n, const char* name) {
    auto* const d_in = Allocate<T>(n);
    auto* const d_out = Allocate<T>(n);
    auto* const d_indices = Allocate<uint64_t>(n);
    Fill<<<2048, 256>>>(d_in, n);
    for (const DType index_dtype : {DType::kU32, DType::kU64}) {
      // The copy moves as many bytes.
      CopyTime(n * (2 * sizeof(T) + prefixd::SizeOf(index_dtype)) / 2);
      for (const Op op : {Op::kMax, Op::kMin}) {
        for (const bool last_index : {false, true}) {
          prefixd::ScanArgs args;
          args.dtype = prefixd::kDTypeOf<T>;
          args.op = op;
          args.in = d_in;
          args.out = d_out;
          args.num_items = n;
          args.init = prefixd::Neutral(op, args.dtype);
          args.indices = d_indices;
          args.index_dtype = index_dtype;
          args.last_index = last_index;
          Line(std::string("cum") + std::string(prefixd::Name(op)) + (last_index ? " last" : " first") + " index " +
                   std::string(prefixd::Name(index_dtype)) + " " + name,
               n, double(n) * prefixd::ItemBytes(args), [&] { Check(lane_->Scan(args)); });
        }
      }
    }
    Check(cudaFree(d_indices));
    Free(d_in, d_out);
  }

  // Many small arrays in one launch, beside as many launches of CUB.
  void RunBatch(size_t num_arrays, size_t num_items) {
    float* d_in;
    float* d_out;
    const size_t n = num_arrays * num_items;
    Check(cudaMalloc(&d_in, n * sizeof(float)));
    Check(cudaMalloc(&d_out, n * sizeof(float)));
    Fill<<<2048, 256>>>(d_in, n);
    const double bytes = 2.0 * n * sizeof(float);
    CopyTime(n * sizeof(float));
    const std::string shape = std::to_string(num_arrays) + " x " + std::to_string(num_items);
    Line("batched scan f32 " + shape, n, bytes, [&] {
      prefixd::ScanArgs args;
      args.dtype = prefixd::DType::kF32;
      args.in = d_in;
      args.out = d_out;
      args.num_items = num_items;
      args.num_arrays = num_arrays;
      args.init = prefixd::ScanStart(args.op, args.dtype, args.kind);
      Check(lane_->Scan(args));
    });
    if (Wanted("cub batched")) {
      PrintCub("cub batched scan", ("f32 " + shape).c_str(), n, bytes, [&] {
        for (size_t a = 0; a < num_arrays; ++a) {
          size_t temp_bytes = kScratchBytes;
          Check(cub::DeviceScan::InclusiveSum(d_scratch_, temp_bytes, d_in + a * num_items, d_out + a * num_items,
                                              static_cast<int>(num_items)));
        }
      });
    }
    Free(d_in, d_out);
  }

  template <class T>
  void RunDifference(size_t n, const char* name) {
    auto* const d_in = Allocate<T>(n);
    auto* const d_out = Allocate<T>(n);
    Fill<<<2048, 256>>>(d_in, n);
    CopyTime(n * sizeof(T));
    for (const bool reverse : {false, true}) {
      Line(std::string("difference ") + (reverse ? "reverse " : "") + name, n, 2.0 * n * sizeof(T), [&] {
        prefixd::DifferenceArgs args;
        args.dtype = prefixd::kDTypeOf<T>;
        args.reverse = reverse;
        args.in = d_in;
        args.out = d_out;
        args.num_items = n;
        Check(lane_->Difference(args));
      });
    }
    Free(d_in, d_out);
  }

  template <class T>
  void RunCompact(size_t n, const char* name) {
    auto* const d_in = Allocate<T>(n);
    auto* const d_out = Allocate<T>(n);
    auto* const d_mask = Allocate<uint8_t>(n);
    Fill<<<2048, 256>>>(d_in, n);
    FillMask<<<2048, 256>>>(d_mask, n);
    CopyTime(n * sizeof(T));
    prefixd::CompactArgs args;
    args.dtype = prefixd::kDTypeOf<T>;
    args.comparison = prefixd::Comparison::kGreater;
    args.value = prefixd::Value::Of(T{0});
    args.mask = d_mask;
    args.in = d_in;
    args.num_items = n;
    args.values = d_out;
    args.count = reinterpret_cast<uint64_t*>(d_scratch_);
    for (const auto selector : {prefixd::Selector::kPredicate, prefixd::Selector::kByteMask}) {
      const bool masked = selector == prefixd::Selector::kByteMask;
      args.selector = selector;
      // Half are kept, give or take a millionth.
      Line(std::string("compact by ") + (masked ? "mask " : "predicate ") + name, n,
           n * sizeof(T) * 1.5 + (masked ? n : 0), [&] { Check(lane_->Compact(args)); });
    }
    if constexpr (!prefixd::kIsNarrowFloat<T>) CompactByCub(d_in, d_out, d_mask, n, name);
    Check(cudaFree(d_mask));
    Free(d_in, d_out);
  }

 private:
  static constexpr size_t kScratchBytes = size_t{64} << 20;

  template <class T>
  void CompactByCub(const T* d_in, T* d_out, const uint8_t* d_mask, size_t n, const char* name) {
    if (!Wanted("cub")) return;
    auto* d_count = static_cast<uint64_t*>(d_scratch_);
    void* d_temp = d_count + 32;
    size_t temp_bytes = kScratchBytes - 32 * sizeof(uint64_t);
    PrintCub("cub select if", name, n, n * sizeof(T) * 1.5, [&] {
      Check(cub::DeviceSelect::If(d_temp, temp_bytes, d_in, d_out, d_count, static_cast<int64_t>(n), IsPositive{}));
    });
    PrintCub("cub select flagged", name, n, n * sizeof(T) * 1.5 + n, [&] {
      Check(cub::DeviceSelect::Flagged(d_temp, temp_bytes, d_in, d_mask, d_out, d_count, static_cast<int64_t>(n)));
    });
  }

  // Both kinds of scan, and the reduce.
  template <class T>
  void ScanAndReduce(const T* d_in, T* d_out, size_t n, Op op, prefixd::Precision precision, const std::string& what) {
    for (const auto kind : {prefixd::ScanKind::kInclusive, prefixd::ScanKind::kExclusive}) {
      prefixd::ScanArgs args;
      args.dtype = prefixd::kDTypeOf<T>;
      args.op = op;
      args.precision = precision;
      args.kind = kind;
      args.in = d_in;
      args.out = d_out;
      args.num_items = n;
      args.init = prefixd::ScanStart(op, args.dtype, kind);
      Line("scan " + std::string(prefixd::Name(kind)) + " " + what, n, 2.0 * n * sizeof(T),
           [&] { Check(lane_->Scan(args)); });
    }
    prefixd::ReduceArgs args;
    args.dtype = prefixd::kDTypeOf<T>;
    args.op = op;
    args.precision = precision;
    args.in = d_in;
    args.num_items = n;
    args.init = {prefixd::Neutral(op, args.StateDType()), prefixd::ReduceState::kNothing};
    args.state_out = reinterpret_cast<prefixd::ReduceState*>(d_scratch_);
    Line("reduce " + what, n, 1.0 * n * sizeof(T), [&] { Check(lane_->Reduce(args)); });
  }

  template <class T>
  static T* Allocate(size_t n) {
    T* d_array;
    Check(cudaMalloc(&d_array, n * sizeof(T)));
    return d_array;
  }
  void Free(void* d_in, void* d_out) {
    Check(cudaFree(d_in));
    Check(cudaFree(d_out));
  }

  bool Wanted(const std::string& what) const { return what.find(filter_) != std::string::npos; }

  // Sets copy_rate_ to that of this many bytes. Where two buffers lie makes up to a tenth of difference: the best of
  // some.
  double CopyTime(size_t num_bytes) {
    double best_us = std::numeric_limits<double>::infinity();
    for (const size_t padding : {0, 1 << 20, 3 << 20}) {
      void* d_in;
      void* d_out;
      Check(cudaMalloc(&d_in, num_bytes + padding));
      Check(cudaMalloc(&d_out, num_bytes + padding));
      best_us = std::min(
          best_us, MedianOfCuda([&] { Check(cudaMemcpyAsync(d_out, d_in, num_bytes, cudaMemcpyDeviceToDevice)); }));
      Free(d_in, d_out);
    }
    copy_rate_ = 2.0 * num_bytes / best_us;
    return best_us;
  }

  double MedianOfCuda(const std::function<void()>& work) {
    std::vector<double> times;
    for (int i = -3; i < kSamples; ++i) {
      Check(cudaMemcpyAsync(d_flush_, static_cast<std::byte*>(d_flush_) + kFlushBytes / 2, kFlushBytes / 2,
                            cudaMemcpyDeviceToDevice));
      Check(cudaEventRecord(begin_));
      work();
      Check(cudaEventRecord(end_));
      Check(cudaEventSynchronize(end_));
      float ms = 0;
      Check(cudaEventElapsedTime(&ms, begin_, end_));
      if (i >= 0) times.push_back(ms * 1e3);
    }
    return Median(times);
  }

  void Line(const std::string& what, size_t n, double bytes, const std::function<void()>& enqueue) {
    if (!Wanted(what)) return;
    std::vector<double> times;
    for (int i = -3; i < kSamples; ++i) {
      Check(lane_->CopyOnDevice(d_flush_, static_cast<std::byte*>(d_flush_) + kFlushBytes / 2, kFlushBytes / 2,
                                prefixd::CopyTiming::kUntimed));
      enqueue();
      Check(lane_->Synchronize());
      const prefixd::StageTimes stage = lane_->TakeStageTimes();
      if (i >= 0) times.push_back(stage.kernel_ns.value_or(0) / 1e3);
    }
    Print(what, n, Median(times), bytes);
  }

  void PrintCub(const std::string& what, const char* name, size_t n, double bytes, const std::function<void()>& work) {
    Print(what + " " + name, n, MedianOfCuda(work), bytes);
  }

  void Print(const std::string& what, size_t n, double us, double bytes) const {
    std::printf("%-34s %12zu %10.2f %9.1f %7.3f\n", what.c_str(), n, us, bytes / us / 1e3, bytes / us / copy_rate_);
    std::fflush(stdout);
  }

  std::string filter_;
  std::unique_ptr<prefixd::Device> device_;
  std::unique_ptr<prefixd::Lane> lane_;
  void* d_flush_ = nullptr;
  void* d_scratch_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  double copy_rate_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench(argc > 1 ? argv[1] : "");
  for (const int log2 : {10, 14, 18, 20, 24, 28}) bench.Run<float>(size_t{1} << log2, "f32");
  bench.RunBatch(256, 1024);
  const size_t n = size_t{1} << 28;
  bench.Run<int32_t>(n, "i32");
  bench.Run<double>(n, "f64");
  bench.Run<int64_t>(n, "i64");
  bench.Run<uint8_t>(n, "u8");
  bench.Run<int16_t>(n, "i16");
  bench.RunWide<uint8_t, uint32_t>(n, "u8 to u32");
  bench.RunWide<int16_t, int32_t>(n, "i16 to i32");
  bench.RunWide<float, double>(n, "f32 to f64");
  bench.RunFloats<float>(n, "f32");
  bench.RunFloats<double>(n, "f64");
  bench.RunFloats<prefixd::Float16>(n, "f16");
  bench.RunFloats<prefixd::BFloat16>(n, "bf16");
  bench.RunWide<prefixd::Float16, float>(n, "f16 to f32");
  bench.RunWide<prefixd::BFloat16, float>(n, "bf16 to f32");
  bench.Run<float>(size_t{1} << 30, "f32");
  bench.Run<uint8_t>((size_t{1} << 32) + 17, "u8");
  for (const int log2 : {14, 16, 18, 20, 28}) bench.RunWithIndices<float>(size_t{1} << log2, "f32");
  bench.RunWithIndices<double>(n, "f64");
  bench.RunWithIndices<int32_t>(n, "i32");
  bench.RunWithIndices<prefixd::BFloat16>(n, "bf16");
  bench.RunWithIndices<uint8_t>(n, "u8");
  bench.RunDifference<float>(n, "f32");
  bench.RunDifference<double>(n, "f64");
  bench.RunDifference<prefixd::Float16>(n, "f16");
  bench.RunDifference<int16_t>(n, "i16");
  bench.RunDifference<uint8_t>(n, "u8");
  bench.RunCompact<float>(n, "f32");
  bench.RunCompact<int64_t>(n, "i64");
  bench.RunCompact<prefixd::Float16>(n, "f16");
}
