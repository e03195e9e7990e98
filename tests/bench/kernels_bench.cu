// The kernels beside the device copy and CUB, in one process: a line for each figure.
//
//   kernels_bench [FILTER]     only the lines that contain FILTER
//
// Each time is the median of 21 by events, the L2 cache flushed before each by copying 128 MiB. "share" is the time of
// a device-to-device copy that moves as many bytes, from the same run, over the figure's.
#include <cuda_runtime.h>

#include <cstdint>
#include <cub/cub.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
#include <functional>
#include <string>
#include <utility>

#include "kernels/device.h"
#include "tests/bench/cuda_bench.h"
#include "tests/bench/fill.cuh"

namespace {

using prefixd::Allocate;
using prefixd::AllocateRandom;
using prefixd::DType;
using prefixd::kDTypeOf;
using prefixd::Op;
using prefixd::Precision;
using prefixd::ScanKind;

struct IsPositive {
  template <class T>
  __device__ bool operator()(T v) const {
    return v > T{0};
  }
};

template <class T>
std::string TypeName() {
  return std::string(prefixd::Name(kDTypeOf<T>));
}

class Bench {
 public:
  explicit Bench(std::string filter) : filter_(std::move(filter)) {}

  template <class T>
  void Run(size_t n) {
    const auto in = AllocateRandom<T>(n);
    const auto out = Allocate<T>(n);
    const uint64_t num_bytes = 2 * n * sizeof(T);
    const std::string copy = "copy " + TypeName<T>();
    if (IsWanted(copy)) card_.Print(copy, n, card_.TimeOfCopy(num_bytes), num_bytes);
    for (const Op op : {Op::kSum, Op::kMin, Op::kMax}) {
      ScanAndReduce(in.get(), out.get(), n, op, Precision::kNative,
                    TypeName<T>() + " " + std::string(prefixd::Name(op)));
    }
    if constexpr (!prefixd::kIsNarrowFloat<T>) {
      const auto scan_by_cub = [&](const std::string& name, auto op) {
        CubLine("cub scan inclusive " + TypeName<T>() + " " + name, n, num_bytes,
                [&](void* d_temp, size_t& temp_bytes) {
                  return cub::DeviceScan::InclusiveScan(d_temp, temp_bytes, in.get(), out.get(), op,
                                                        static_cast<int64_t>(n));
                });
      };
      scan_by_cub("sum", cuda::std::plus<>{});
      scan_by_cub("min", cuda::minimum<>{});
      scan_by_cub("max", cuda::maximum<>{});
      CubLine("cub reduce " + TypeName<T>(), n, num_bytes / 2, [&](void* d_temp, size_t& temp_bytes) {
        return cub::DeviceReduce::Sum(d_temp, temp_bytes, in.get(), out.get(), static_cast<int64_t>(n));
      });
    }
  }

  // Scans with results of another type.
  template <class In, class Out>
  void RunWidening(size_t n) {
    const auto in = AllocateRandom<In>(n);
    const auto out = Allocate<Out>(n);
    for (const auto kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
      prefixd::ScanArgs args = ScanOf(in.get(), out.get(), n);
      args.out_dtype = kDTypeOf<Out>;
      args.kind = kind;
      args.init = prefixd::ScanStart(args.op, args.output(), kind);
      ScanLine(TypeName<In>() + " to " + TypeName<Out>() + " sum", args);
    }
  }

  // Sums in the elements' precision and in more, and sums of exponentials.
  template <class T>
  void RunFloats(size_t n) {
    const auto in = AllocateRandom<T>(n);
    const auto out = Allocate<T>(n);
    const auto run = [&](Op op, Precision precision, const std::string& how) {
      ScanAndReduce(in.get(), out.get(), n, op, precision, how + " " + TypeName<T>());
    };
    run(Op::kSum, Precision::kNative, "plain sum");
    if (!prefixd::kIsNarrowFloat<T>) run(Op::kSum, Precision::kWide, "wide sum");
    run(Op::kLogAddExp, Precision::kNative, "log_add_exp");
  }

  // y[i] = coefficients[i] * y[i-1] + in[i].
  template <class T>
  void RunRecurrence(size_t n) {
    const auto in = AllocateRandom<T>(n);
    const auto coefficients = AllocateRandom<T>(n);
    const auto out = Allocate<T>(n);
    for (const auto kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
      prefixd::ScanArgs args = ScanOf(in.get(), out.get(), n);
      args.op = Op::kLinearRecurrence;
      args.kind = kind;
      args.init = prefixd::ScanStart(args.op, args.dtype, kind);
      args.coefficients = coefficients.get();
      ScanLine(TypeName<T>() + " linear_recurrence", args);
    }
  }

  // Scans by min or max that also say where each extremum stands.
  template <class T>
  void RunWithIndices(size_t n) {
    const auto in = AllocateRandom<T>(n);
    const auto out = Allocate<T>(n);
    const auto indices = Allocate<uint64_t>(n);
    for (const DType index_dtype : {DType::kU32, DType::kU64}) {
      for (const Op op : {Op::kMax, Op::kMin}) {
        for (const bool last_index : {false, true}) {
          prefixd::ScanArgs args = ScanOf(in.get(), out.get(), n);
          args.op = op;
          args.init = prefixd::Neutral(op, args.dtype);
          args.indices = indices.get();
          args.index_dtype = index_dtype;
          args.last_index = last_index;
          Line("cum" + std::string(prefixd::Name(op)) + (last_index ? " last" : " first") + " index " +
                   std::string(prefixd::Name(index_dtype)) + " " + TypeName<T>(),
               n, n * prefixd::ItemBytes(args), [&] { return card_.lane().Scan(args); });
        }
      }
    }
  }

  // Many small arrays in one launch, beside as many launches of CUB.
  void RunBatch(size_t num_arrays, size_t num_items) {
    const size_t n = num_arrays * num_items;
    const auto in = AllocateRandom<float>(n);
    const auto out = Allocate<float>(n);
    const std::string shape = std::to_string(num_arrays) + " x " + std::to_string(num_items);
    prefixd::ScanArgs args = ScanOf(in.get(), out.get(), num_items);
    args.num_arrays = num_arrays;
    Line("batched scan f32 " + shape, n, 2 * n * sizeof(float), [&] { return card_.lane().Scan(args); });
    CubLine("cub batched scan f32 " + shape, n, 2 * n * sizeof(float), [&](void* d_temp, size_t& temp_bytes) {
      for (size_t first = 0; first < n; first += num_items) {
        const cudaError_t error = cub::DeviceScan::InclusiveSum(d_temp, temp_bytes, in.get() + first, out.get() + first,
                                                                static_cast<int>(num_items));
        if (error != cudaSuccess) return error;
      }
      return cudaSuccess;
    });
  }

  template <class T>
  void RunDifference(size_t n) {
    const auto in = AllocateRandom<T>(n);
    const auto out = Allocate<T>(n);
    for (const bool reverse : {false, true}) {
      const prefixd::DifferenceArgs args = {
          .dtype = kDTypeOf<T>, .reverse = reverse, .in = in.get(), .out = out.get(), .num_items = n};
      Line(std::string("difference ") + (reverse ? "reverse " : "") + TypeName<T>(), n, 2 * n * sizeof(T),
           [&] { return card_.lane().Difference(args); });
    }
  }

  template <class T>
  void RunCompact(size_t n) {
    const auto in = AllocateRandom<T>(n);
    const auto out = Allocate<T>(n);
    const auto mask = Allocate<uint8_t>(n);
    prefixd::FillByteMask<<<2048, 256>>>(mask.get(), n);
    prefixd::Check(cudaDeviceSynchronize());
    auto* const d_count = reinterpret_cast<uint64_t*>(card_.d_scratch());
    prefixd::CompactArgs args = {.dtype = kDTypeOf<T>, .comparison = prefixd::Comparison::kGreater};
    args.value = prefixd::Value::Of(T{0});
    args.mask = mask.get();
    args.in = in.get();
    args.num_items = n;
    args.values = out.get();
    args.count = d_count;
    const uint64_t num_bytes = n * sizeof(T) * 3 / 2;  // Half are kept, give or take a millionth.
    Line("compact by predicate " + TypeName<T>(), n, num_bytes, [&] { return card_.lane().Compact(args); });
    args.selector = prefixd::Selector::kByteMask;
    Line("compact by mask " + TypeName<T>(), n, num_bytes + n, [&] { return card_.lane().Compact(args); });
    if constexpr (!prefixd::kIsNarrowFloat<T>) {
      const auto num_items = static_cast<int64_t>(n);
      CubLine("cub select if " + TypeName<T>(), n, num_bytes, [&](void* d_temp, size_t& temp_bytes) {
        return cub::DeviceSelect::If(d_temp, temp_bytes, in.get(), out.get(), d_count, num_items, IsPositive{});
      });
      CubLine("cub select flagged " + TypeName<T>(), n, num_bytes + n, [&](void* d_temp, size_t& temp_bytes) {
        return cub::DeviceSelect::Flagged(d_temp, temp_bytes, in.get(), mask.get(), out.get(), d_count, num_items);
      });
    }
  }

 private:
  // An inclusive sum.
  template <class In, class Out>
  static prefixd::ScanArgs ScanOf(const In* d_in, Out* d_out, size_t n) {
    prefixd::ScanArgs args = {.dtype = kDTypeOf<In>, .in = d_in, .out = d_out, .num_items = n};
    args.init = prefixd::ScanStart(args.op, args.dtype, args.kind);
    return args;
  }

  // Both kinds of scan, and the reduce.
  template <class T>
  void ScanAndReduce(const T* d_in, T* d_out, size_t n, Op op, Precision precision, const std::string& what) {
    for (const auto kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
      prefixd::ScanArgs args = ScanOf(d_in, d_out, n);
      args.op = op;
      args.precision = precision;
      args.kind = kind;
      args.init = prefixd::ScanStart(op, args.dtype, kind);
      ScanLine(what, args);
    }
    prefixd::ReduceArgs args = {.dtype = kDTypeOf<T>, .op = op, .precision = precision, .in = d_in, .num_items = n};
    args.init = {prefixd::Neutral(op, args.StateDType()), prefixd::ReduceState::kNothing};
    args.state_out = reinterpret_cast<prefixd::ReduceState*>(card_.d_scratch());
    Line("reduce " + what, n, n * sizeof(T), [&] { return card_.lane().Reduce(args); });
  }

  void ScanLine(const std::string& what, const prefixd::ScanArgs& args) {
    Line("scan " + std::string(prefixd::Name(args.kind)) + " " + what, args.num_items,
         args.num_items * prefixd::ItemBytes(args), [&] { return card_.lane().Scan(args); });
  }

  void Line(const std::string& what, size_t n, uint64_t num_bytes, const std::function<absl::Status()>& enqueue) {
    if (IsWanted(what)) card_.Print(what, n, card_.TimeOfLane(enqueue), num_bytes);
  }

  void CubLine(const std::string& what, size_t n, uint64_t num_bytes,
               const std::function<cudaError_t(void* d_temp, size_t& temp_bytes)>& enqueue) {
    constexpr size_t kCountBytes = 256;  // A compaction's count is in front.
    size_t temp_bytes = prefixd::BenchCard::kScratchBytes - kCountBytes;
    const auto run = [&] { return enqueue(card_.d_scratch() + kCountBytes, temp_bytes); };
    if (IsWanted(what)) card_.Print(what, n, card_.TimeOfCuda(run), num_bytes);
  }

  bool IsWanted(const std::string& what) const { return what.find(filter_) != std::string::npos; }

  const std::string filter_;
  prefixd::BenchCard card_{"CUB " + std::to_string(CUB_VERSION)};
};

}  // namespace

int main(int argc, char** argv) {
  using prefixd::BFloat16;
  using prefixd::Float16;
  Bench bench(argc > 1 ? argv[1] : "");
  for (const int log2 : {10, 14, 18, 20, 24, 28}) bench.Run<float>(size_t{1} << log2);
  bench.RunBatch(256, 1024);
  const size_t n = size_t{1} << 28;
  bench.Run<int8_t>(n);
  bench.Run<uint8_t>(n);
  bench.Run<int16_t>(n);
  bench.Run<uint16_t>(n);
  bench.Run<int32_t>(n);
  bench.Run<uint32_t>(n);
  bench.Run<int64_t>(n);
  bench.Run<uint64_t>(n);
  bench.Run<double>(n);
  bench.Run<Float16>(n);
  bench.Run<BFloat16>(n);
  bench.RunWidening<uint8_t, uint32_t>(n);
  bench.RunWidening<int16_t, int32_t>(n);
  bench.RunWidening<float, double>(n);
  bench.RunWidening<Float16, float>(n);
  bench.RunWidening<BFloat16, float>(n);
  bench.RunFloats<float>(n);
  bench.RunFloats<double>(n);
  bench.RunFloats<Float16>(n);
  bench.RunFloats<BFloat16>(n);
  bench.RunRecurrence<float>(n);
  bench.RunRecurrence<double>(n);
  bench.Run<float>(size_t{1} << 30);
  bench.Run<uint8_t>((size_t{1} << 32) + 17);
  for (const int log2 : {14, 16, 18, 20, 28}) bench.RunWithIndices<float>(size_t{1} << log2);
  bench.RunWithIndices<double>(n);
  bench.RunWithIndices<int32_t>(n);
  bench.RunWithIndices<BFloat16>(n);
  bench.RunWithIndices<uint8_t>(n);
  bench.RunDifference<float>(n);
  bench.RunDifference<double>(n);
  bench.RunDifference<Float16>(n);
  bench.RunDifference<int16_t>(n);
  bench.RunDifference<uint8_t>(n);
  bench.RunCompact<float>(n);
  bench.RunCompact<int64_t>(n);
  bench.RunCompact<Float16>(n);
}
