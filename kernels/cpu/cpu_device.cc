#include "kernels/cpu/cpu_device.h"

#include <sys/mman.h>
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
#include "kernels/cpu/caches.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/compact.h"
#include "kernels/cpu/difference.h"
#include "kernels/cpu/extrema.h"
#include "kernels/cpu/glue.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/scan.h"
#include "kernels/cpu/segments.h"
#include "kernels/yardsticks/cpu/kahan.h"
#include "kernels/yardsticks/cpu/naive.h"
#include "kernels/yardsticks/cpu/onetbb.h"
#include "kernels/yardsticks/cpu/sequential.h"
#include "kernels/yardsticks/cpu/std_par.h"
#include "kernels/yardsticks/serves.h"

namespace prefixd {
namespace {

constexpr std::align_val_t kAlignment{256};
constexpr size_t kHugePageBytes = size_t{2} << 20;
// From here on a buffer is the kernel's own, and goes back to it at once: the allocator would keep it for minutes. A
// benchmark has such arrays, requests have none.
constexpr size_t kMinMappedBytes = size_t{32} << 20;

uint64_t MemoryBytes(int pages_of_kind) {
  const long pages = sysconf(pages_of_kind);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) : 0;
}

// A large array takes a quarter of its first scan to get its small pages. Advice: what the kernel makes of it is its
// own.
void AskForHugePages(void* data, size_t size_bytes) {
  const size_t head = -reinterpret_cast<uintptr_t>(data) % kHugePageBytes;
  if (size_bytes < head + kHugePageBytes) return;
  const size_t num_pages = (size_bytes - head) / kHugePageBytes;
  static_cast<void>(madvise(static_cast<std::byte*>(data) + head, num_pages * kHugePageBytes, MADV_HUGEPAGE));
}

void* Map(size_t size_bytes) {
  void* const data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

absl::StatusOr<Buffer> AllocateHost(size_t size_bytes) {
  const bool is_mapped = size_bytes >= kMinMappedBytes;
  void* data = nullptr;
  // Linux promises more memory than it has, and takes it back with a signal: ask for no more than could ever be there.
  if (size_bytes <= MemoryBytes(_SC_PHYS_PAGES)) {
    data = is_mapped ? Map(size_bytes) : ::operator new(size_bytes, kAlignment, std::nothrow);
  }
  if (data == nullptr) {
    return Error(absl::StatusCode::kResourceExhausted, "DEVICE_MEMORY", "",
                 StrCat("no ", size_bytes, " bytes of host memory"));
  }
  AskForHugePages(data, size_bytes);
  if (is_mapped) return Buffer(data, size_bytes, [size_bytes](void* p) { munmap(p, size_bytes); });
  return Buffer(data, size_bytes, [](void* p) { ::operator delete(p, kAlignment); });
}

// The best copy there is: no algorithm that writes as much as it reads is faster.
void CopyInParallel(const cpu::Kernels& kernels, std::byte* dst, const std::byte* src, size_t size_bytes) {
  const bool stream = cpu::IsLargerThanCaches(2 * size_bytes);
  const auto copy = [&](uint64_t part) {
    const size_t first = part * cpu::kPartBytes;
    const size_t num_bytes = std::min<size_t>(cpu::kPartBytes, size_bytes - first);
    stream ? kernels.copy_streaming(dst + first, src + first, num_bytes)
           : static_cast<void>(std::memcpy(dst + first, src + first, num_bytes));
  };
  cpu::ForParts(cpu::NumParts(size_bytes, cpu::kPartBytes), copy);
}

// Everything has run when a call returns, so that there is nothing to synchronize.
class CpuLane final : public Lane {
 public:
  CpuLane(const Device& device, const cpu::Kernels& kernels) : device_(device), kernels_(kernels) {}

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
    CopyInParallel(kernels_, static_cast<std::byte*>(d_dst), static_cast<const std::byte*>(d_src), size_bytes);
    if (timing == CopyTiming::kTimed) Count({.launches = 1, .num_bytes = 2 * size_bytes}, begin);
    return absl::OkStatus();
  }

  absl::Status Scan(const ScanArgs& args) override {
    if (args.indices != nullptr) return ScanWithIndices(args);
    return Run(Primitive::kScan, args.output(), args.op, args, [this](Strategy strategy, const ScanArgs& array) {
      switch (strategy) {
        case Strategy::kChained:
          if (array.offsets != nullptr) return cpu::RunSegmentScan(kernels_, array);
          if (array.num_arrays == 1) return cpu::RunScan(kernels_, array);
          return IsInterleaved(array) ? cpu::RunColumnScan(kernels_, array) : cpu::RunRowScan(kernels_, array);
        case Strategy::kSequential:
          return cpu::ScanSequentially(array);
        case Strategy::kNaive:
          return cpu::ScanNaively(array);
        case Strategy::kStd:
          return cpu::ScanStd(array);
        case Strategy::kOneTbb:
          return cpu::ScanOneTbb(array);
        default:
          FatalValue("CpuLane::Scan", strategy);
      }
    });
  }
  absl::Status Reduce(const ReduceArgs& args) override {
    return Run(Primitive::kReduce, args.output(), args.op, args, [this](Strategy strategy, const ReduceArgs& array) {
      switch (strategy) {
        case Strategy::kSingleLaunch:
          if (array.values == nullptr) return cpu::RunReduce(kernels_, array);
          if (array.offsets != nullptr) return cpu::RunSegmentReduce(kernels_, array);
          return IsInterleaved(array) ? cpu::RunColumnReduce(kernels_, array) : cpu::RunRowReduce(kernels_, array);
        case Strategy::kSequential:
          return cpu::ReduceSequentially(array);
        case Strategy::kKahan:
          return cpu::ReduceKahan(array);
        case Strategy::kStd:
          return cpu::ReduceStd(array);
        case Strategy::kOneTbb:
          return cpu::ReduceOneTbb(array);
        default:
          FatalValue("CpuLane::Reduce", strategy);
      }
    });
  }
  absl::Status Compact(const CompactArgs& args) override {
    return Run(Primitive::kCompact, args.dtype, Op::kSum, args, [this](Strategy strategy, const CompactArgs& array) {
      switch (strategy) {
        case Strategy::kChained:
          return cpu::RunCompact(kernels_, array);
        case Strategy::kSequential:
          return cpu::CompactSequentially(array);
        case Strategy::kStd:
          return cpu::CompactStd(array);
        default:
          FatalValue("CpuLane::Compact", strategy);
      }
    });
  }

  absl::Status Difference(const DifferenceArgs& args) override {
    return Run(Primitive::kDifference, args.dtype, Op::kSum, args,
               [this](Strategy strategy, const DifferenceArgs& array) {
                 if (strategy != Strategy::kSingleLaunch) FatalValue("CpuLane::Difference", strategy);
                 if (array.offsets != nullptr) return cpu::RunSegmentDifference(kernels_, array);
                 if (array.num_arrays == 1) return cpu::RunDifference(kernels_, array);
                 return IsInterleaved(array) ? cpu::RunColumnDifference(kernels_, array)
                                             : cpu::RunRowDifference(kernels_, array);
               });
  }

  absl::Status Fill(const FillArgs& args) override { return Glue(args, cpu::RunFill); }
  absl::Status Map(const MapArgs& args) override { return Glue(args, cpu::RunMap); }
  absl::Status Gather(const GatherArgs& args) override { return Glue(args, cpu::RunGather); }
  absl::Status Scatter(const ScatterArgs& args) override { return Glue(args, cpu::RunScatter); }
  absl::Status CountSegments(const CountArgs& args) override { return Glue(args, cpu::RunCount); }
  absl::Status FindRuns(const RunsArgs& args) override { return Glue(args, cpu::RunFindRuns); }
  absl::Status Transpose(const TransposeArgs& args) override {
    if (Validate(args).ok() && IsCopy(args))
      return CopyOnDevice(args.out, args.in, NumBytes(args) / 2, CopyTiming::kTimed);
    return Glue(args, cpu::RunTranspose);
  }

  absl::Status Synchronize() override { return absl::OkStatus(); }

  void BeginPart() override { parts_.emplace_back(); }
  std::vector<StageTimes> TakeParts() override { return std::exchange(parts_, std::vector<StageTimes>(1)); }

 private:
  static absl::Status Copy(void* dst, const void* src, size_t size_bytes) {
    if (size_bytes > 0) std::memcpy(dst, src, size_bytes);  // Null is no argument for memcpy, even of nothing.
    return absl::OkStatus();
  }

  absl::Status ScanWithIndices(const ScanArgs& args) {
    PREFIXD_RETURN_IF_ERROR(Validate(args));
    PREFIXD_RETURN_IF_ERROR(Scan(ExtremaOf(args)));
    const auto begin = std::chrono::steady_clock::now();
    Count(cpu::MarkExtrema(MarksOf(args)), begin);
    PREFIXD_RETURN_IF_ERROR(Scan(ScanOfMarks(args)));
    if (args.carry_out != nullptr) *static_cast<ExtremumCarry*>(args.carry_out) = cpu::CarryOf(args);
    return absl::OkStatus();
  }

  template <class Args>
  static bool IsInterleaved(const Args& args) {
    if constexpr (requires { args.order; }) {
      return args.num_arrays > 1 && args.num_items > 0 && args.order == BatchOrder::kInterleaved;
    }
    return false;
  }
  template <class Args>
  static bool IsSegmented(const Args& args) {
    if constexpr (requires { args.offsets; }) return args.offsets != nullptr;
    return false;
  }
  // Whether the default algorithm has a way of its own for the whole batch.
  template <class Args>
  static bool IsWhole(const Args& args) {
    if constexpr (requires { args.state_out; }) return args.values != nullptr;
    return requires { args.order; };
  }
  // Whether no other algorithm knows what is asked for.
  template <class Args>
  static bool IsDefaultOnly(const Args& args) {
    if constexpr (requires { args.state_out; }) return args.values != nullptr;
    return IsInterleaved(args) || IsSegmented(args);
  }

  // Calls run(strategy, args) for each array, or once for all.
  template <class Args, class RunArray>
  absl::Status Run(Primitive primitive, DType out_dtype, Op op, const Args& args, RunArray run) {
    PREFIXD_RETURN_IF_ERROR(Validate(args));
    PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm,
                             device_.Resolve(primitive, args.dtype, out_dtype, op, args.algorithm, PrecisionOf(args)));
    PREFIXD_RETURN_IF_ERROR(device_.CheckLength(primitive, algorithm, args.num_items));
    const bool is_default = device_.IsDefault(primitive, algorithm);
    if (IsDefaultOnly(args) && !is_default) {
      return Error(
          absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm",
          StrCat("algorithm ", Name(algorithm), " takes no matrix and no segments: leave the algorithm out for them"));
    }
    const auto begin = std::chrono::steady_clock::now();
    if (args.num_arrays == 1 || (is_default && IsWhole(args))) {
      Count(run(algorithm.strategy, args), begin);
      return absl::OkStatus();
    }
    std::atomic<uint64_t> num_bytes = 0;
    cpu::ParallelFor(args.num_arrays, [&](uint64_t array) {
      num_bytes.fetch_add(run(algorithm.strategy, ArrayOf(args, array)).num_bytes, std::memory_order_relaxed);
    });
    Count({.launches = 1, .num_bytes = num_bytes}, begin);
    return absl::OkStatus();
  }

  // Calls run(kernels, args).
  template <class Args>
  absl::Status Glue(const Args& args, cpu::Work (*run)(const cpu::Kernels&, const Args&)) {
    PREFIXD_RETURN_IF_ERROR(Validate(args));
    const auto begin = std::chrono::steady_clock::now();
    Count(run(kernels_, args), begin);
    return absl::OkStatus();
  }

  void Count(const cpu::Work& work, std::chrono::steady_clock::time_point begin) {
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
    if (work.launches > 0) parts_.back().kernel_ns = parts_.back().kernel_ns.value_or(0) + elapsed.count();
    parts_.back().launches += work.launches;
    parts_.back().num_bytes += work.num_bytes;
  }

  const Device& device_;
  const cpu::Kernels& kernels_;
  std::vector<StageTimes> parts_ = std::vector<StageTimes>(1);
};

// Each primitive's default first.
std::vector<AlgorithmInfo> ServedAlgorithms() {
  constexpr char kParallel[] = "Blelloch 1990; kernels/NUMERICS.md";
  constexpr char kSequential[] = "Funktor; Hadwiger; Iriscores; Note and Save";
  return {{.primitive = Primitive::kScan,
           .algorithm = {Strategy::kChained},
           .work = "2n",
           .depth = "n / cores",
           .traffic = "2n",
           .launches = "1",
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
           .algorithm = {Strategy::kSingleLaunch},
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
           .algorithm = {Strategy::kChained},
           .work = "2n",
           .depth = "n / cores",
           .traffic = "n + kept",
           .launches = "1",
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

std::vector<AlgorithmInfo> WithLibraries(std::vector<AlgorithmInfo> rows) {
  for (const std::vector<AlgorithmInfo>& library : {cpu::StdAlgorithms(), cpu::OneTbbAlgorithms()}) {
    rows.insert(rows.end(), library.begin(), library.end());
  }
  return rows;
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const cpu::Isa& isa)
      : kernels_(*isa.kernels),
        info_{.name = StrCat("cpu (", cpu::Concurrency(), " threads, ", isa.name, ")"),
              .memory_bytes = MemoryBytes(_SC_PHYS_PAGES),
              .cache_flush_bytes = uint64_t{64} << 20,
              .direct_bytes = DeviceInfo::kHostMemory} {}

  const DeviceInfo& info() const override { return info_; }
  uint64_t FreeMemoryBytes() const override { return MemoryBytes(_SC_AVPHYS_PAGES); }

  absl::StatusOr<std::unique_ptr<Lane>> CreateLane() override { return std::make_unique<CpuLane>(*this, kernels_); }

  absl::StatusOr<Buffer> AllocatePinned(size_t size_bytes) override { return AllocateHost(size_bytes); }

  const std::vector<AlgorithmInfo>& Algorithms() const override { return algorithms_; }

 private:
  const cpu::Kernels& kernels_;
  const DeviceInfo info_;
  const std::vector<AlgorithmInfo> algorithms_ = WithLibraries(ServedAlgorithms());
};

}  // namespace

std::unique_ptr<Device> OpenCpuDevice(const cpu::Isa& isa) { return std::make_unique<CpuDevice>(isa); }

}  // namespace prefixd
