// The glue beside the device copy, in one process: a line for each figure.
//
//   glue_bench [FILTER]     only the lines that contain FILTER
//
// 2^28 items. Each time is the median of 11 by events, the L2 cache flushed before each by copying 128 MiB. "share" is
// the rate of the bytes that must be moved over the rate of a device-to-device copy that moves as many, from the same
// run.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/bench/cuda_bench.h"

namespace {

using prefixd::Check;
using prefixd::DType;
using prefixd::FillKind;
using prefixd::MapOp;
using prefixd::Median;
using prefixd::Value;

constexpr int kSamples = 11;
constexpr uint64_t kItems = uint64_t{1} << 28;
constexpr size_t kFlushBytes = size_t{256} << 20;

// Item i of a permutation that takes neighbours far apart: odd factors permute the numbers below 2^28.
__global__ void FillPermutation(uint32_t* out) {
  const auto i = static_cast<uint32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  uint32_t x = i * 0x9e3779b1u & (kItems - 1);
  x ^= x >> 14;
  out[i] = x * 0x85ebca6bu & (kItems - 1);
}

class Bench {
 public:
  explicit Bench(std::string filter) : filter_(std::move(filter)) {
    in_ = Check(lane_->Allocate(kItems * 8));
    other_ = Check(lane_->Allocate(kItems * 8));
    out_ = Check(lane_->Allocate(kItems * 8));
    flush_ = Check(lane_->Allocate(kFlushBytes));
    num_bad_ = Check(lane_->Allocate(sizeof(uint64_t)));
    std::printf("# %s\n%-34s %10s %9s %7s\n", device_->info().name.c_str(), "what", "us", "GB/s", "share");
  }

  void Fills(DType dtype) {
    for (const auto kind : {FillKind::kConstant, FillKind::kIota, FillKind::kRandom}) {
      Line("fill " + Text(Name(kind)) + " " + Text(Name(dtype)), kItems * SizeOf(dtype), [=, this] {
        return lane_->Fill({.dtype = dtype,
                            .kind = kind,
                            .value = One(dtype),
                            .step = One(dtype),
                            .seed = 7,
                            .out = out_.data(),
                            .num_items = kItems});
      });
    }
  }

  void Map(MapOp op, DType dtype, DType cast_dtype = DType::kI32) {
    for (const prefixd::Buffer* array : {&in_, &other_}) {
      Check(lane_->Fill({.dtype = dtype,
                         .kind = FillKind::kRandom,
                         .seed = array == &in_ ? 1u : 2u,
                         .out = array->data(),
                         .num_items = kItems}));
    }
    const prefixd::MapArgs args = {.op = op,
                                   .dtype = dtype,
                                   .cast_dtype = cast_dtype,
                                   .a = One(dtype),
                                   .b = One(dtype),
                                   .in = in_.data(),
                                   .other = other_.data(),
                                   .out = out_.data(),
                                   .num_items = kItems};
    Line(Text(Name(op)) + " " + Text(Name(dtype)) + (op == MapOp::kCast ? " to " + Text(Name(cast_dtype)) : ""),
         NumBytes(args), [=, this] { return lane_->Map(args); });
  }

  // Indices are in other_.
  void Indexed(DType dtype, DType index_dtype, const std::string& order) {
    const prefixd::GatherArgs gather = {.dtype = dtype,
                                        .index_dtype = index_dtype,
                                        .in = in_.data(),
                                        .in_items = kItems,
                                        .indices = other_.data(),
                                        .out = out_.data(),
                                        .num_items = kItems,
                                        .num_bad = reinterpret_cast<uint64_t*>(num_bad_.data())};
    const prefixd::ScatterArgs scatter = {.dtype = dtype,
                                          .index_dtype = index_dtype,
                                          .in = in_.data(),
                                          .indices = other_.data(),
                                          .num_items = kItems,
                                          .out = out_.data(),
                                          .out_items = kItems,
                                          .num_bad = gather.num_bad};
    const std::string what = Text(Name(dtype)) + " by " + Text(Name(index_dtype)) + " " + order;
    Line("gather " + what, NumBytes(gather), [=, this] { return lane_->Gather(gather); });
    Line("scatter " + what, NumBytes(scatter), [=, this] { return lane_->Scatter(scatter); });
  }

  void Gathers() {
    for (const DType index_dtype : {DType::kU32, DType::kU64}) {
      Check(lane_->Fill({.dtype = index_dtype,
                         .kind = FillKind::kIota,
                         .step = One(index_dtype),
                         .out = other_.data(),
                         .num_items = kItems}));
      for (const DType dtype : {DType::kF32, DType::kF64, DType::kU8}) Indexed(dtype, index_dtype, "identity");
    }
    Check(lane_->Synchronize());
    FillPermutation<<<kItems / 256, 256>>>(reinterpret_cast<uint32_t*>(other_.data()));
    cudaDeviceSynchronize();
    Indexed(DType::kF32, DType::kU32, "random");
  }

  void Transpose(DType dtype, uint64_t num_rows, uint64_t num_columns) {
    const prefixd::TransposeArgs args = {
        .dtype = dtype, .in = in_.data(), .out = out_.data(), .num_rows = num_rows, .num_columns = num_columns};
    Line("transpose " + Text(Name(dtype)) + " " + std::to_string(num_rows) + " x " + std::to_string(num_columns),
         NumBytes(args), [=, this] { return lane_->Transpose(args); });
  }

 private:
  static std::string Text(std::string_view text) { return std::string(text); }

  static Value One(DType dtype) {
    return prefixd::VisitDType(dtype, [](auto tag) { return Value::Of(typename decltype(tag)::type{1}); });
  }

  // Microseconds.
  double MedianOf(const std::function<absl::Status()>& enqueue) {
    std::vector<double> times;
    Check(lane_->Synchronize());
    lane_->TakeStageTimes();  // Those of what prepared the arrays.
    for (int i = -2; i < kSamples; ++i) {
      Check(lane_->CopyOnDevice(flush_.data(), flush_.data() + kFlushBytes / 2, kFlushBytes / 2,
                                prefixd::CopyTiming::kUntimed));
      Check(enqueue());
      Check(lane_->Synchronize());
      const prefixd::StageTimes stage = lane_->TakeStageTimes();
      if (i >= 0) times.push_back(stage.kernel_ns.value_or(0) / 1e3);
    }
    return Median(std::move(times));
  }

  // A copy that moves as many bytes.
  double CopyTime(uint64_t num_bytes) {
    double& known_us = copies_us_.try_emplace(num_bytes, 0).first->second;
    if (known_us > 0) return known_us;
    // Where two buffers lie makes up to a tenth of difference: the best of some.
    known_us = std::numeric_limits<double>::infinity();
    for (const size_t padding : {size_t{0}, size_t{1} << 20, size_t{3} << 20}) {
      const auto in = Check(lane_->Allocate(num_bytes / 2 + padding));
      const auto out = Check(lane_->Allocate(num_bytes / 2 + padding));
      known_us =
          std::min(known_us, MedianOf([&] {
                     return lane_->CopyOnDevice(out.data(), in.data(), num_bytes / 2, prefixd::CopyTiming::kTimed);
                   }));
    }
    return known_us;
  }

  void Line(const std::string& what, uint64_t num_bytes, const std::function<absl::Status()>& enqueue) {
    if (what.find(filter_) == std::string::npos) return;
    const double us = MedianOf(enqueue), copy_us = CopyTime(num_bytes);
    std::printf("%-34s %10.2f %9.1f %7.3f\n", what.c_str(), us, num_bytes / us / 1e3, copy_us / us);
    std::fflush(stdout);
  }

  std::string filter_;
  const std::unique_ptr<prefixd::Device> device_ = Check(prefixd::OpenDevice("cuda:0"));
  const std::unique_ptr<prefixd::Lane> lane_ = Check(device_->CreateLane());
  prefixd::Buffer in_, other_, out_, flush_, num_bad_;
  std::map<uint64_t, double> copies_us_;
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench(argc > 1 ? argv[1] : "");
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kU8, DType::kU64}) bench.Fills(dtype);
  for (const MapOp op : {MapOp::kAffine, MapOp::kAbs, MapOp::kCompare, MapOp::kCompareArrays, MapOp::kAdd,
                         MapOp::kSubtract, MapOp::kMultiply, MapOp::kDivide, MapOp::kMinimum, MapOp::kMaximum}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kU8, DType::kI32, DType::kI64}) bench.Map(op, dtype);
  }
  for (const auto& [from, to] : {std::pair{DType::kF32, DType::kI32},
                                 {DType::kI32, DType::kF32},
                                 {DType::kF32, DType::kF64},
                                 {DType::kF64, DType::kF32},
                                 {DType::kF64, DType::kI64},
                                 {DType::kI64, DType::kF64},
                                 {DType::kU8, DType::kF32},
                                 {DType::kF32, DType::kU8},
                                 {DType::kU8, DType::kI64},
                                 {DType::kI64, DType::kU8},
                                 {DType::kU8, DType::kF64},
                                 {DType::kI32, DType::kI64}}) {
    bench.Map(MapOp::kCast, from, to);
  }
  bench.Gathers();
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32, DType::kF64}) {
    bench.Transpose(dtype, 1 << 14, 1 << 14);
    bench.Transpose(dtype, 16001, 16411);  // Primes or nearly so: no row is aligned.
  }
  bench.Transpose(DType::kF32, 4, kItems / 4);
  bench.Transpose(DType::kF32, kItems / 4, 4);
}
