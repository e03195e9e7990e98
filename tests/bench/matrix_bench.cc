// Scans, reduces and differences along both axes of a matrix, and scans and reduces of segments, beside the device copy
// of as many bytes, on any device:
//
//   matrix_bench [DEVICE] [LOG2_ITEMS] [TYPE [COLUMNS]]      default auto 28, and all; a TYPE leaves segments out
//
// Each figure is the median of seven runs by the device's clock, as a share of the copy in the same process: of as many
// bytes as are read and written. A reduce writes next to nothing, and may be faster than that.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/device.h"

namespace prefixd {
namespace {

template <class T>
T Require(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}
void Require(const absl::Status& status) {
  Require(absl::StatusOr<int>(status.ok() ? absl::StatusOr<int>(0) : status));
}

int64_t MedianNs(Lane& lane, const std::function<absl::Status()>& run) {
  constexpr int kWarmUps = 2, kRuns = 7;
  std::vector<int64_t> times;
  for (int i = 0; i < kWarmUps + kRuns; ++i) {
    Require(lane.Synchronize());
    lane.TakeStageTimes();
    Require(run());
    Require(lane.Synchronize());
    if (i >= kWarmUps) times.push_back(lane.TakeStageTimes().kernel_ns.value_or(0));
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

class Bench {
 public:
  Bench(Device& device, uint64_t num_items)
      : lane_(Require(device.CreateLane())),
        num_items_(num_items),
        in_(Require(lane_->Allocate(num_items * sizeof(double)))),
        out_(Require(lane_->Allocate(num_items * sizeof(double)))) {
    Require(
        lane_->Fill({.dtype = DType::kU64, .kind = FillKind::kConstant, .out = in_.data(), .num_items = num_items}));
  }

  void Run(DType dtype, const std::vector<uint64_t>& row_lengths) {
    const uint64_t num_bytes = num_items_ * SizeOf(dtype);
    const int64_t copy_ns =
        MedianNs(*lane_, [&] { return lane_->CopyOnDevice(out_.data(), in_.data(), num_bytes, CopyTiming::kTimed); });
    ScanArgs scan = {.dtype = dtype, .in = in_.data(), .out = out_.data(), .num_items = num_items_};
    scan.init = ScanStart(scan.op, dtype, scan.kind);
    const int64_t whole_ns = MedianNs(*lane_, [&] { return lane_->Scan(scan); });
    std::printf("\n%s: copy %.1f us, scan of one array %.3f\n", std::string(Name(dtype)).c_str(),
                static_cast<double>(copy_ns) / 1e3, Share(copy_ns, whole_ns));
    std::printf("%12s %12s %8s %8s %8s %8s %8s %8s", "rows", "columns", "scan 1", "scan 0", "reduce 1", "reduce 0",
                "diff 1", "diff 0");
    const bool is_float = dtype == DType::kF32 || dtype == DType::kF64;
    if (is_float) std::printf(" %8s %8s %8s %8s", "wide 1", "wide 0", "recur 1", "recur 0");
    std::printf("\n");
    for (const uint64_t columns : row_lengths) {
      if (columns > num_items_) continue;
      const uint64_t rows = num_items_ / columns;
      std::printf("%12llu %12llu", static_cast<unsigned long long>(rows), static_cast<unsigned long long>(columns));
      PrintBoth(scan, rows, columns, copy_ns, [&](const ScanArgs& args) { return lane_->Scan(args); });
      ReduceArgs reduce = {.dtype = dtype, .in = in_.data()};
      reduce.init = {Neutral(reduce.op, dtype)};
      reduce.values = out_.data();
      PrintBoth(reduce, rows, columns, copy_ns, [&](const ReduceArgs& args) { return lane_->Reduce(args); });
      DifferenceArgs difference = {.dtype = dtype, .in = in_.data(), .out = out_.data()};
      PrintBoth(difference, rows, columns, copy_ns,
                [&](const DifferenceArgs& args) { return lane_->Difference(args); });
      if (is_float) RunFloats(scan, rows, columns, copy_ns);
      std::printf("\n");
      std::fflush(stdout);
    }
  }

  // Segments whose lengths are drawn from a seed, or of 128 beside one of half the elements.
  void RunSegments(DType dtype) {
    const uint64_t num_bytes = num_items_ * SizeOf(dtype);
    const int64_t copy_ns =
        MedianNs(*lane_, [&] { return lane_->CopyOnDevice(out_.data(), in_.data(), num_bytes, CopyTiming::kTimed); });
    const auto print = [&](const std::string& what, const std::vector<uint64_t>& offsets) {
      const auto [scan, reduce] = SharesOf(dtype, offsets, copy_ns);
      std::printf("%8s %12zu %-24s %8.3f %8.3f\n", std::string(Name(dtype)).c_str(), offsets.size() - 1, what.c_str(),
                  scan, reduce);
      std::fflush(stdout);
    };
    for (const uint64_t most : {8, 80, 536, 6'000, 200'000}) {
      std::mt19937_64 random(1);
      std::vector<uint64_t> offsets = {0};
      while (offsets.back() < num_items_) {
        offsets.push_back(std::min(num_items_, offsets.back() + random() % (most + 1)));
      }
      print("of 0 to " + std::to_string(most), offsets);
    }
    std::vector<uint64_t> offsets = {0, num_items_ / 2};
    while (offsets.back() < num_items_) offsets.push_back(std::min(num_items_, offsets.back() + 128));
    print("one of half, 128", offsets);
    print("one", {0, num_items_});
  }

 private:
  // Wide sums; and recurrences with a coefficient for each item, which read half as much again as a copy moves.
  void RunFloats(ScanArgs scan, uint64_t rows, uint64_t columns, int64_t copy_ns) {
    const auto run = [&](const ScanArgs& args) { return lane_->Scan(args); };
    scan.precision = Precision::kWide;
    PrintBoth(scan, rows, columns, copy_ns, run);
    const Buffer coefficients = Require(lane_->Allocate(num_items_ * SizeOf(scan.dtype)));
    const Value coefficient = scan.dtype == DType::kF32 ? Value::Of(0.99F) : Value::Of(0.99);
    Require(
        lane_->Fill({.dtype = scan.dtype, .value = coefficient, .out = coefficients.data(), .num_items = num_items_}));
    scan.precision = Precision::kNative;
    scan.op = Op::kLinearRecurrence;
    scan.init = ScanStart(scan.op, scan.dtype, scan.kind);
    scan.coefficients = coefficients.data();
    PrintBoth(scan, rows, columns, copy_ns * 3 / 2, run);
  }

  // A scan's, of the copy; and a reduce's, of half of it.
  std::pair<double, double> SharesOf(DType dtype, const std::vector<uint64_t>& offsets, int64_t copy_ns) {
    const size_t size_bytes = offsets.size() * sizeof(uint64_t);
    const Buffer d_offsets = Require(lane_->Allocate(size_bytes));
    Require(lane_->CopyToDevice(d_offsets.data(), offsets.data(), size_bytes));
    Require(lane_->Synchronize());
    ScanArgs scan = {.dtype = dtype, .in = in_.data(), .out = out_.data(), .num_items = num_items_};
    scan.num_arrays = offsets.size() - 1;
    scan.offsets = reinterpret_cast<const uint64_t*>(d_offsets.data());
    scan.init = ScanStart(scan.op, dtype, scan.kind);
    ReduceArgs reduce = {.dtype = dtype, .in = in_.data(), .num_items = num_items_};
    reduce.num_arrays = scan.num_arrays;
    reduce.offsets = scan.offsets;
    reduce.init = {Neutral(reduce.op, dtype)};
    reduce.values = out_.data();
    const int64_t scan_ns = MedianNs(*lane_, [&] { return lane_->Scan(scan); });
    const int64_t reduce_ns = MedianNs(*lane_, [&] { return lane_->Reduce(reduce); });
    return {Share(copy_ns, scan_ns), Share(copy_ns / 2, reduce_ns)};
  }

  static double Share(int64_t copy_ns, int64_t ns) { return static_cast<double>(copy_ns) / static_cast<double>(ns); }

  // Along axis 1, and 0.
  template <class Args, class RunArgs>
  void PrintBoth(Args args, uint64_t rows, uint64_t columns, int64_t copy_ns, const RunArgs& run) {
    if constexpr (requires { args.values; }) copy_ns /= 2;
    args.num_items = columns;
    args.num_arrays = rows;
    std::printf(" %8.3f", Share(copy_ns, MedianNs(*lane_, [&] { return run(args); })));
    args.num_items = rows;
    args.num_arrays = columns;
    args.order = BatchOrder::kInterleaved;
    std::printf(" %8.3f", Share(copy_ns, MedianNs(*lane_, [&] { return run(args); })));
  }

  const std::unique_ptr<Lane> lane_;
  const uint64_t num_items_;
  const Buffer in_;
  const Buffer out_;
};

int Main(int argc, char** argv) {
  const std::unique_ptr<Device> device = Require(OpenDevice(argc > 1 ? argv[1] : "auto"));
  const int log2_items = argc > 2 ? std::atoi(argv[2]) : 28;
  if (log2_items < 10 || log2_items > 32) {
    std::fprintf(stderr, "LOG2_ITEMS is %d: expected 10 to 32\n", log2_items);
    return 2;
  }
  std::printf("%s, 2^%d elements, as a share of the copy; 1: along the rows, 0: down the columns\n",
              device->info().name.c_str(), log2_items);
  const uint64_t num_items = uint64_t{1} << log2_items;
  Bench bench(*device, num_items);
  const std::string only = argc > 3 ? argv[3] : "";
  bool has_run = false;
  std::vector<uint64_t> row_lengths = {2, 3, 4, 16, 20, 64, 100, 256, 300, 1024, 1 << 14, 1 << 17, num_items / 3};
  if (argc > 4) row_lengths = {std::max<uint64_t>(1, std::strtoull(argv[4], nullptr, 10))};
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI16, DType::kU8}) {
    if (!only.empty() && only != Name(dtype)) continue;
    has_run = true;
    bench.Run(dtype, row_lengths);
  }
  if (!has_run) {
    std::fprintf(stderr, "TYPE is %s: expected f32, f64, i32, i16 or u8\n", only.c_str());
    return 2;
  }
  if (!only.empty()) return 0;
  std::printf("\nsegments: scans as a share of the copy, reduces of half of it\n");
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kU8}) bench.RunSegments(dtype);
  return 0;
}

}  // namespace
}  // namespace prefixd

int main(int argc, char** argv) { return prefixd::Main(argc, argv); }
