#include "kernels/cpu/cpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/compact.h"
#include "kernels/cpu/difference.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scan.h"
#include "kernels/yardsticks/cpu/kahan.h"
#include "kernels/yardsticks/cpu/naive.h"
#include "kernels/yardsticks/cpu/sequential.h"
#include "kernels/yardsticks/serves.h"

namespace prefixd {
namespace {

constexpr std::align_val_t kAlignment{256};

uint64_t MemoryBytes(int pages_of_kind) {
  const long pages = sysconf(pages_of_kind);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) : 0;
}

absl::StatusOr<Buffer> AllocateHost(size_t size_bytes) {
  // Linux promises more memory than it has, and takes it back with a signal: ask for no more than could ever be there.
  void* data =
      size_bytes > MemoryBytes(_SC_PHYS_PAGES) ? nullptr : ::operator new(size_bytes, kAlignment, std::nothrow);
  if (data == nullptr) {
    return Error(absl::StatusCode::kResourceExhausted, "DEVICE_MEMORY", "",
                 StrCat("no ", size_bytes, " bytes of host memory"));
  }
  return Buffer(data, size_bytes, [](void* p) { ::operator delete(p, kAlignment); });
}

void CopyInParallel(std::byte* dst, const std::byte* src, size_t size_bytes) {
  constexpr size_t kPieceBytes = size_t{1} << 17;
  cpu::ParallelFor(size_bytes / kPieceBytes + (size_bytes % kPieceBytes != 0), [&](uint64_t piece) {
    const size_t first = piece * kPieceBytes;
    std::memcpy(dst + first, src + first, std::min(kPieceBytes, size_bytes - first));
  });
}

// Everything has run when a call returns, so that there is nothing to synchronize.
class CpuLane final : public Lane {
 public:
  explicit CpuLane(const Device& device) : device_(device) {}

  absl::StatusOr<Buffer> Allocate(size_t size_bytes) override { return AllocateHost(size_bytes); }

  absl::Status CopyToDevice(void* d_dst, const void* h_src, size_t size_bytes) override {
    return Copy(d_dst, h_src, size_bytes);
  }
  absl::Status CopyToHost(void* h_dst, const void* d_src, size_t size_bytes) override {
    return Copy(h_dst, d_src, size_bytes);
  }

  absl::Status CopyOnDevice(void* d_dst, const void* d_src, size_t size_bytes, CopyTiming timing) override {
    if (size_bytes == 0) return absl::OkStatus();
    const auto begin = std::chrono::steady_clock::now();
    CopyInParallel(static_cast<std::byte*>(d_dst), static_cast<const std::byte*>(d_src), size_bytes);
    if (timing == CopyTiming::kTimed) Count({.launches = 1, .num_bytes = 2 * size_bytes}, begin);
    return absl::OkStatus();
  }

  absl::Status Scan(const ScanArgs& args) override {
    return Run(Primitive::kScan, args.output(), args.op, args, [](Strategy strategy) {
      switch (strategy) {
        case Strategy::kReduceThenScan:
          return cpu::RunScan;
        case Strategy::kSequential:
          return cpu::ScanSequentially;
        case Strategy::kNaive:
          return cpu::ScanNaively;
        default:
          FatalValue("CpuLane::Scan", strategy);
      }
    });
  }
  absl::Status Reduce(const ReduceArgs& args) override {
    return Run(Primitive::kReduce, args.output(), args.op, args, [](Strategy strategy) {
      switch (strategy) {
        case Strategy::kReduceThenScan:
          return cpu::RunReduce;
        case Strategy::kSequential:
          return cpu::ReduceSequentially;
        case Strategy::kKahan:
          return cpu::ReduceKahan;
        default:
          FatalValue("CpuLane::Reduce", strategy);
      }
    });
  }
  absl::Status Compact(const CompactArgs& args) override {
    return Run(Primitive::kCompact, args.dtype, Op::kSum, args, [](Strategy strategy) {
      switch (strategy) {
        case Strategy::kReduceThenScan:
          return cpu::RunCompact;
        case Strategy::kSequential:
          return cpu::CompactSequentially;
        default:
          FatalValue("CpuLane::Compact", strategy);
      }
    });
  }

  absl::Status Difference(const DifferenceArgs& args) override {
    return Run(Primitive::kDifference, args.dtype, Op::kSum, args, [](Strategy strategy) {
      if (strategy != Strategy::kSingleLaunch) FatalValue("CpuLane::Difference", strategy);
      return cpu::RunDifference;
    });
  }

  absl::Status Synchronize() override { return absl::OkStatus(); }

  StageTimes TakeStageTimes() override { return std::exchange(times_, {}); }

 private:
  static absl::Status Copy(void* dst, const void* src, size_t size_bytes) {
    if (size_bytes > 0) std::memcpy(dst, src, size_bytes);  // Null is no argument for memcpy, even of nothing.
    return absl::OkStatus();
  }

  template <class Args, class FunctionOf>
  absl::Status Run(Primitive primitive, DType out_dtype, Op op, const Args& args, FunctionOf function_of) {
    PREFIXD_RETURN_IF_ERROR(Validate(args));
    PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm,
                             device_.Resolve(primitive, args.dtype, out_dtype, op, args.algorithm));
    PREFIXD_RETURN_IF_ERROR(device_.CheckLength(primitive, algorithm, args.num_items));
    const auto run = function_of(algorithm.strategy);
    const auto begin = std::chrono::steady_clock::now();
    if (args.num_arrays == 1) {
      Count(run(args), begin);
      return absl::OkStatus();
    }
    std::atomic<uint64_t> num_bytes = 0;
    cpu::ParallelFor(args.num_arrays, [&](uint64_t array) { num_bytes += run(ArrayOf(args, array)).num_bytes; });
    Count({.launches = 1, .num_bytes = num_bytes}, begin);
    return absl::OkStatus();
  }

  void Count(const cpu::Work& work, std::chrono::steady_clock::time_point begin) {
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
    if (work.launches > 0) times_.kernel_ns = times_.kernel_ns.value_or(0) + elapsed.count();
    times_.launches += work.launches;
    times_.num_bytes += work.num_bytes;
  }

  const Device& device_;
  StageTimes times_;
};

// Each primitive's default first.
std::vector<AlgorithmInfo> ServedAlgorithms() {
  constexpr char kParallel[] = "Blelloch 1990; kernels/NUMERICS.md";
  constexpr char kSequential[] = "Funktor; Hadwiger; Iriscores; Note and Save";
  return {{.primitive = Primitive::kScan,
           .algorithm = {Strategy::kReduceThenScan},
           .work = "2n",
           .depth = "n / cores",
           .traffic = "3n",
           .launches = "1 or 2",
           .source = kParallel},
          {.primitive = Primitive::kScan,
           .algorithm = {Strategy::kSequential},
           .work = "n",
           .depth = "n",
           .traffic = "2n",
           .launches = "1",
           .source = kSequential},
          {.primitive = Primitive::kScan,
           .algorithm = {Strategy::kNaive},
           .work = "n^2 / 2",
           .depth = "n",
           .traffic = "n^2 / 2",
           .launches = "1",
           .max_items = cpu::kMaxNaiveItems,
           .serves = kTextbooksServe,
           .source = "Funktor"},
          {.primitive = Primitive::kReduce,
           .algorithm = {Strategy::kReduceThenScan},
           .work = "n",
           .depth = "n / cores",
           .traffic = "n",
           .launches = "1",
           .source = kParallel},
          {.primitive = Primitive::kReduce,
           .algorithm = {Strategy::kSequential},
           .work = "n",
           .depth = "n",
           .traffic = "n",
           .launches = "1",
           .source = kSequential},
          {.primitive = Primitive::kReduce,
           .algorithm = {Strategy::kKahan},
           .work = "4n",
           .depth = "n",
           .traffic = "n",
           .launches = "1",
           .serves = kKahanServes,
           .source = "Kahan 1965; Neumaier 1974; Note and Save"},
          {.primitive = Primitive::kCompact,
           .algorithm = {Strategy::kReduceThenScan},
           .work = "2n",
           .depth = "n / cores",
           .traffic = "2n + kept",
           .launches = "1 or 2",
           .source = kParallel},
          {.primitive = Primitive::kCompact,
           .algorithm = {Strategy::kSequential},
           .work = "n",
           .depth = "n",
           .traffic = "n + kept",
           .launches = "1",
           .source = kSequential},
          {.primitive = Primitive::kDifference,
           .algorithm = {Strategy::kSingleLaunch},
           .work = "n",
           .depth = "1",
           .traffic = "2n",
           .launches = "1",
           .source = "the inverse of a scan"}};
}

class CpuDevice final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  uint64_t FreeMemoryBytes() const override { return MemoryBytes(_SC_AVPHYS_PAGES); }

  absl::StatusOr<std::unique_ptr<Lane>> CreateLane() override { return std::make_unique<CpuLane>(*this); }

  absl::StatusOr<Buffer> AllocatePinned(size_t size_bytes) override { return AllocateHost(size_bytes); }

  const std::vector<AlgorithmInfo>& Algorithms() const override { return algorithms_; }

 private:
  const DeviceInfo info_ = {.name = StrCat("cpu (", cpu::Concurrency(), " threads)"),
                            .memory_bytes = MemoryBytes(_SC_PHYS_PAGES),
                            .cache_flush_bytes = uint64_t{64} << 20,
                            .direct_bytes = UINT64_MAX};
  const std::vector<AlgorithmInfo> algorithms_ = ServedAlgorithms();
};

}  // namespace

std::unique_ptr<Device> OpenCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace prefixd
