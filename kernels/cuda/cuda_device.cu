// Device and Lane on the CUDA runtime. A Lane is a stream with its own scratch memory and its own clock; memory comes
// from the device's pool, in the order of the lane. The kernels are behind launch.h.
// Threads: the runtime's current device belongs to a thread, so every entry point sets it first.
#include "kernels/cuda/cuda_device.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cuda/algorithms.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/difference.h"
#include "kernels/cuda/extrema.h"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/stage_clock.h"
#include "kernels/yardsticks/yardsticks.h"

namespace prefixd {
namespace cuda {
namespace {

// The attributes of this kernel tell whether the build has code for the card's architecture.
__global__ void ProbeKernel() {}

// More than twice the largest L2 cache yet, 126 MiB on a B200.
constexpr uint64_t kCacheFlushBytes = uint64_t{256} << 20;

// Arrays up to this size are read and written where they are, in pinned memory over the bus: one launch instead of a
// launch and two copies. On an H200 this took a fifth of the time off a request of 4 KiB. The kernels for these sizes
// read what they need once, but for few columns of bytes, and not by bulk copies.
constexpr uint64_t kDirectBytes = uint64_t{64} << 10;

template <class Args>
Args Resolved(Args args, const Algorithm& algorithm) {
  args.algorithm = algorithm;
  return args;
}

class CudaDevice;

class CudaLane final : public Lane {
 public:
  explicit CudaLane(CudaDevice* device) : device_(device) {}
  ~CudaLane() override;
  absl::Status Init();

  absl::StatusOr<Buffer> Allocate(size_t size_bytes) override;
  absl::Status CopyToDevice(void* d_dst, const void* h_src, size_t size_bytes) override;
  absl::Status CopyToHost(void* h_dst, const void* d_src, size_t size_bytes) override;
  absl::Status CopyOnDevice(void* d_dst, const void* d_src, size_t size_bytes, CopyTiming timing) override;
  absl::Status Scan(const ScanArgs& args) override;
  absl::Status Reduce(const ReduceArgs& args) override;
  absl::Status Compact(const CompactArgs& args) override;
  absl::Status Difference(const DifferenceArgs& args) override;
  absl::Status Fill(const FillArgs& args) override { return Glue(args, "the fill kernel", LaunchFill); }
  absl::Status Map(const MapArgs& args) override { return Glue(args, "the map kernel", LaunchMap); }
  absl::Status Gather(const GatherArgs& args) override { return Glue(args, "the gather kernel", LaunchGather); }
  absl::Status Scatter(const ScatterArgs& args) override { return Glue(args, "the scatter kernel", LaunchScatter); }
  absl::Status CountSegments(const CountArgs& args) override { return Glue(args, "the count kernel", LaunchCount); }
  absl::Status FindRuns(const RunsArgs& args) override;
  absl::Status Transpose(const TransposeArgs& args) override;
  absl::Status Synchronize() override;
  void BeginPart() override { clock_.BeginPart(); }
  std::vector<StageTimes> TakeParts() override { return clock_.TakeParts(); }

 private:
  absl::Status Enter();
  absl::Status Check(cudaError_t error, std::string_view call);

  // Enqueues what `work` enqueues, between a pair of events. `work` may still write to traffic.
  template <class Work>
  absl::Status Timed(Stage stage, const Traffic& traffic, std::string_view call, Work&& work) {
    PREFIXD_RETURN_IF_ERROR(Check(clock_.Begin(context_.stream, stage), "cudaEventRecord"));
    PREFIXD_RETURN_IF_ERROR(Check(work(), call));
    return Check(clock_.End(context_.stream, traffic), "cudaEventRecord");
  }

  absl::Status ScanWithIndices(const ScanArgs& args);

  // Enqueues a call of the glue.
  template <class Args>
  absl::Status Glue(const Args& args, std::string_view call, cudaError_t (*launch)(const Args&, LaunchContext*)) {
    PREFIXD_RETURN_IF_ERROR(Validate(args));
    PREFIXD_RETURN_IF_ERROR(Enter());
    const Traffic traffic = {.num_bytes = NumBytes(args)};
    if (traffic.num_bytes == 0) return absl::OkStatus();
    return Timed(Stage::kKernel, traffic, call, [&] { return launch(args, &context_); });
  }

  CudaDevice* const device_;
  LaunchContext context_;
  StageClock clock_;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal), health_(ordinal) {}
  absl::Status Init();

  int num_multiprocessors() const { return properties_.multiProcessorCount; }
  size_t bulk_shared_bytes() const { return has_bulk_copies_ ? properties_.sharedMemPerBlockOptin : 0; }
  uint64_t memory_bytes() const { return properties_.totalGlobalMem; }
  int ordinal() const { return ordinal_; }
  DeviceHealth* health() { return &health_; }
  // Makes the device current. Errors: DEVICE_LOST.
  absl::Status Enter() {
    PREFIXD_RETURN_IF_ERROR(health_.Alive());
    return health_.Check(cudaSetDevice(ordinal_), "cudaSetDevice");
  }

  const DeviceInfo& info() const override { return info_; }
  uint64_t FreeMemoryBytes() const override;
  absl::StatusOr<std::unique_ptr<Lane>> CreateLane() override;
  absl::StatusOr<Buffer> AllocatePinned(size_t size_bytes) override;
  const std::vector<AlgorithmInfo>& Algorithms() const override { return algorithms_; }
  // Resolves the algorithm for the arrays of args. Errors: also CheckLength's; UNIMPLEMENTED if it serves no batches.
  template <class Args>
  absl::StatusOr<Algorithm> ResolveFor(Primitive primitive, DType out_dtype, Op op, const Args& args) const;

 private:
  const int ordinal_;
  DeviceHealth health_;
  cudaDeviceProp properties_ = {};
  DeviceInfo info_;
  const std::vector<AlgorithmInfo> algorithms_ = ServedAlgorithms();
  bool has_bulk_copies_ = false;
  cudaMemPool_t pool_ = nullptr;
};

// ---- Lane ----------------------------------------------------------------------------------------------------------
absl::Status CudaLane::Enter() { return device_->Enter(); }
absl::Status CudaLane::Check(cudaError_t error, std::string_view call) { return device_->health()->Check(error, call); }

absl::Status CudaLane::Init() {
  PREFIXD_RETURN_IF_ERROR(Enter());
  context_.num_multiprocessors = device_->num_multiprocessors();
  context_.bulk_shared_bytes = device_->bulk_shared_bytes();
  PREFIXD_RETURN_IF_ERROR(
      Check(cudaStreamCreateWithFlags(&context_.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  PREFIXD_RETURN_IF_ERROR(Check(clock_.Init(), "cudaEventCreate"));
  constexpr size_t kBytes = sizeof(*context_.d_control);
  void* d_memory = nullptr;
  PREFIXD_RETURN_IF_ERROR(Check(AllocateOn(context_.stream, kBytes, &d_memory), "cudaMallocAsync"));
  context_.d_control = static_cast<TileControl*>(d_memory);
  return Check(cudaMemsetAsync(d_memory, 0, kBytes, context_.stream), "cudaMemsetAsync");
}

// Errors are ignored here: there is nobody to tell, and a device that is lost says so at the next call.
CudaLane::~CudaLane() {
  cudaSetDevice(device_->ordinal());
  if (context_.stream != nullptr) {
    context_.states.Free(context_.stream);
    context_.scratch.Free(context_.stream);
    if (context_.d_control != nullptr) cudaFreeAsync(context_.d_control, context_.stream);
    cudaStreamSynchronize(context_.stream);  // Kernels may still write to the clock's pinned memory.
    cudaStreamDestroy(context_.stream);
  }
}

absl::StatusOr<Buffer> CudaLane::Allocate(size_t size_bytes) {
  PREFIXD_RETURN_IF_ERROR(Enter());
  if (size_bytes > device_->memory_bytes()) {
    return Error(absl::StatusCode::kResourceExhausted, "DEVICE_MEMORY", "",
                 absl::StrCat(size_bytes, " bytes asked for; cuda:", device_->ordinal(), " has ",
                              device_->memory_bytes(), " in all"));
  }
  void* d_memory = nullptr;
  PREFIXD_RETURN_IF_ERROR(
      Check(AllocateOn(context_.stream, std::max<size_t>(size_bytes, 1), &d_memory), "cudaMallocAsync"));
  // The deleter may run on any thread. It ignores errors for the destructor's reason.
  return Buffer(d_memory, size_bytes, [ordinal = device_->ordinal(), stream = context_.stream](void* d_freed) {
    cudaSetDevice(ordinal);
    cudaFreeAsync(d_freed, stream);
  });
}

absl::Status CudaLane::CopyToDevice(void* d_dst, const void* h_src, size_t size_bytes) {
  PREFIXD_RETURN_IF_ERROR(Enter());
  if (size_bytes == 0) return absl::OkStatus();
  return Timed(Stage::kHostToDevice, {}, "cudaMemcpyAsync to the device",
               [&] { return cudaMemcpyAsync(d_dst, h_src, size_bytes, cudaMemcpyHostToDevice, context_.stream); });
}

absl::Status CudaLane::CopyToHost(void* h_dst, const void* d_src, size_t size_bytes) {
  PREFIXD_RETURN_IF_ERROR(Enter());
  if (size_bytes == 0) return absl::OkStatus();
  return Timed(Stage::kDeviceToHost, {}, "cudaMemcpyAsync to the host",
               [&] { return cudaMemcpyAsync(h_dst, d_src, size_bytes, cudaMemcpyDeviceToHost, context_.stream); });
}

absl::Status CudaLane::CopyOnDevice(void* d_dst, const void* d_src, size_t size_bytes, CopyTiming timing) {
  PREFIXD_RETURN_IF_ERROR(Enter());
  if (size_bytes == 0) return absl::OkStatus();
  constexpr std::string_view kCall = "cudaMemcpyAsync on the device";
  const auto copy = [&] {
    return cudaMemcpyAsync(d_dst, d_src, size_bytes, cudaMemcpyDeviceToDevice, context_.stream);
  };
  if (timing == CopyTiming::kUntimed) return Check(copy(), kCall);
  return Timed(Stage::kKernel, {.num_bytes = 2 * size_bytes}, kCall, copy);
}

// Needs: CastsFirst.
cudaError_t LaunchCastAndScan(const ScanArgs& args, LaunchContext* context) {
  if (args.num_items > 0) {
    const uint64_t num_items = args.offsets != nullptr ? args.num_items : args.num_items * args.num_arrays;
    const MapArgs cast = {.op = MapOp::kCast,
                          .dtype = args.dtype,
                          .cast_dtype = args.output(),
                          .a = {},
                          .b = {},
                          .in = args.in,
                          .out = args.out,
                          .num_items = num_items};
    if (const cudaError_t error = LaunchMap(cast, context); error != cudaSuccess) return error;
  }
  return VisitDType(args.output(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return LaunchScan<T, T>(ScanOfCast(args), context);
  });
}

absl::Status CudaLane::ScanWithIndices(const ScanArgs& args) {
  PREFIXD_RETURN_IF_ERROR(Validate(args));
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm,
                           device_->ResolveFor(Primitive::kScan, args.output(), args.op, args));
  if (FollowsNumerics(algorithm) && RingExtremaServe(args, context_)) {
    PREFIXD_RETURN_IF_ERROR(Enter());
    return Timed(Stage::kKernel, {.num_bytes = args.num_items * ItemBytes(args)}, "the scan kernel with indices",
                 [&] { return LaunchRingExtrema(args, &context_); });
  }
  PREFIXD_RETURN_IF_ERROR(Scan(ExtremaOf(args)));
  const MarkArgs marks = MarksOf(args);
  if (marks.NumItems() == 0) return absl::OkStatus();
  PREFIXD_RETURN_IF_ERROR(Timed(Stage::kKernel, {.launches = NumLaunches(marks), .num_bytes = NumBytes(marks)},
                                "the kernel for marks", [&] { return LaunchMarks(marks, &context_); }));
  PREFIXD_RETURN_IF_ERROR(Scan(ScanOfMarks(args)));
  if (args.carry_out == nullptr) return absl::OkStatus();
  return Timed(Stage::kKernel, {}, "the kernel for a carry", [&] { return LaunchExtremumCarry(args, &context_); });
}

absl::Status CudaLane::Scan(const ScanArgs& args) {
  if (args.indices != nullptr) return ScanWithIndices(args);
  PREFIXD_RETURN_IF_ERROR(Validate(args));
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm,
                           device_->ResolveFor(Primitive::kScan, args.output(), args.op, args));
  PREFIXD_RETURN_IF_ERROR(Enter());
  const size_t item_bytes = ItemBytes(args);
  Traffic traffic = {.launches = NumLaunches(args, context_),
                     .num_bytes = args.num_arrays * args.num_items * item_bytes};
  if (args.offsets != nullptr) {  // One array, and its offsets.
    traffic.num_bytes = args.num_items * item_bytes + (args.num_arrays + 1) * sizeof(*args.offsets);
  }
  return Timed(Stage::kKernel, traffic, "the scan kernel", [&] {
    if (!FollowsNumerics(algorithm)) {
      return LaunchYardstick(Resolved(args, algorithm), &context_, &traffic.launches);
    }
    if (args.IsWide()) {
      return args.dtype == DType::kF32 ? LaunchWideScan<float>(args, &context_)
                                       : LaunchWideScan<double>(args, &context_);
    }
    if (args.op == Op::kLinearRecurrence) {
      return args.dtype == DType::kF32 ? LaunchRecurrence<float>(args, &context_)
                                       : LaunchRecurrence<double>(args, &context_);
    }
    if (CastsFirst(args)) return LaunchCastAndScan(args, &context_);
    return VisitOutput(args.dtype, args.output(), [&](auto in, auto out) {
      return LaunchScan<typename decltype(in)::type, typename decltype(out)::type>(args, &context_);
    });
  });
}

absl::Status CudaLane::Reduce(const ReduceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(Validate(args));
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm,
                           device_->ResolveFor(Primitive::kReduce, args.output(), args.op, args));
  PREFIXD_RETURN_IF_ERROR(Enter());
  const uint64_t result_bytes = args.values != nullptr ? SizeOf(args.output()) : sizeof(ReduceState);
  Traffic traffic = {.num_bytes = args.num_arrays * (args.num_items * SizeOf(args.dtype) + result_bytes)};
  if (args.offsets != nullptr) {  // As in Scan.
    traffic.launches = NumLaunches(args);
    traffic.num_bytes = args.num_items * SizeOf(args.dtype) + args.num_arrays * result_bytes +
                        (args.num_arrays + 1) * sizeof(*args.offsets);
  }
  return Timed(Stage::kKernel, traffic, "the reduce kernel", [&] {
    if (!FollowsNumerics(algorithm)) {
      return LaunchYardstick(Resolved(args, algorithm), &context_, &traffic.launches);
    }
    if (args.IsWide()) {
      return args.dtype == DType::kF32 ? LaunchWideReduce<float>(args, &context_)
                                       : LaunchWideReduce<double>(args, &context_);
    }
    return VisitOutput(args.dtype, args.output(), [&](auto in, auto out) {
      return LaunchReduce<typename decltype(in)::type, typename decltype(out)::type>(args, &context_);
    });
  });
}

absl::Status CudaLane::Compact(const CompactArgs& args) {
  PREFIXD_RETURN_IF_ERROR(Validate(args));
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm,
                           device_->ResolveFor(Primitive::kCompact, args.dtype, Op::kSum, args));
  PREFIXD_RETURN_IF_ERROR(Enter());
  const uint64_t item_bytes = SizeOf(args.dtype);
  const bool reads_elements = args.selector == Selector::kPredicate || args.values != nullptr;
  Traffic traffic = {.num_bytes = args.num_arrays * ((reads_elements ? args.num_items * item_bytes : 0) +
                                                     MaskBytes(args) + sizeof(*args.count)),
                     .num_bytes_per_kept = (args.values != nullptr ? item_bytes : 0) +
                                           (args.indices != nullptr ? SizeOf(args.index_dtype) : 0)};
  return Timed(Stage::kKernel, traffic, "the compact kernel", [&] {
    if (!FollowsNumerics(algorithm)) {
      return LaunchYardstick(Resolved(args, algorithm), clock_.num_kept(), &context_, &traffic.launches);
    }
    return VisitDType(args.dtype, [&](auto tag) {
      return LaunchCompact<typename decltype(tag)::type>(args, clock_.num_kept(), &context_);
    });
  });
}

absl::Status CudaLane::Difference(const DifferenceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(Validate(args));
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm,
                           device_->ResolveFor(Primitive::kDifference, args.dtype, Op::kSum, args));
  if (algorithm.strategy != Strategy::kSingleLaunch) FatalValue("CudaLane::Difference", algorithm.strategy);
  PREFIXD_RETURN_IF_ERROR(Enter());
  const Traffic traffic = {.launches = args.offsets != nullptr ? 2u : 1u, .num_bytes = NumBytes(args)};
  return Timed(Stage::kKernel, traffic, "the difference kernel", [&] { return LaunchDifference(args, &context_); });
}

absl::Status CudaLane::FindRuns(const RunsArgs& args) {
  PREFIXD_RETURN_IF_ERROR(Validate(args));
  PREFIXD_RETURN_IF_ERROR(Enter());
  return Timed(Stage::kKernel, {.launches = kFindRunsLaunches, .num_bytes = NumBytes(args)}, "the kernels for runs",
               [&] { return LaunchFindRuns(args, &context_); });
}

absl::Status CudaLane::Transpose(const TransposeArgs& args) {
  if (Validate(args).ok() && IsCopy(args))
    return CopyOnDevice(args.out, args.in, NumBytes(args) / 2, CopyTiming::kTimed);
  return Glue(args, "the transpose kernel", LaunchTranspose);
}

absl::Status CudaLane::Synchronize() {
  PREFIXD_RETURN_IF_ERROR(Enter());
  PREFIXD_RETURN_IF_ERROR(Check(cudaStreamSynchronize(context_.stream), "cudaStreamSynchronize"));
  return Check(clock_.FoldAll(), "cudaEventElapsedTime");
}

// ---- Device --------------------------------------------------------------------------------------------------------
absl::Status CudaDevice::Init() {
  // A thread that waits for the device polls, and yields its core between two polls. With enough cores this is as quick
  // as keeping the core; with too few it is kinder to small requests.
  PREFIXD_RETURN_IF_ERROR(
      health_.Check(cudaInitDevice(ordinal_, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid), "cudaInitDevice"));
  PREFIXD_RETURN_IF_ERROR(Enter());
  PREFIXD_RETURN_IF_ERROR(health_.Check(cudaGetDeviceProperties(&properties_, ordinal_), "cudaGetDeviceProperties"));
  info_ = {.name = properties_.name,
           .memory_bytes = memory_bytes(),
           .cache_flush_bytes = kCacheFlushBytes,
           .direct_bytes = kDirectBytes};
  cudaFuncAttributes attributes = {};
  const cudaError_t probe = cudaFuncGetAttributes(&attributes, ProbeKernel);
  if (probe == cudaErrorNoKernelImageForDevice || probe == cudaErrorInvalidDeviceFunction ||
      probe == cudaErrorUnsupportedPtxVersion) {
    cudaGetLastError();  // The error is not sticky: reading it clears it.
    return absl::FailedPreconditionError(absl::StrCat(
        "cuda:", ordinal_, " (", properties_.name, ") has compute capability ", properties_.major, ".",
        properties_.minor, ", for which this build has no code: rebuild with it in CMAKE_CUDA_ARCHITECTURES"));
  }
  PREFIXD_RETURN_IF_ERROR(health_.Check(probe, "cudaFuncGetAttributes"));
  has_bulk_copies_ = attributes.ptxVersion >= 90;  // What the code was compiled for, not what the card could do.
  PREFIXD_RETURN_IF_ERROR(health_.Check(cudaDeviceGetDefaultMemPool(&pool_, ordinal_), "cudaDeviceGetDefaultMemPool"));
  // The pool keeps what it has: by default it would return everything to the driver at each synchronization.
  uint64_t threshold_bytes = UINT64_MAX;
  return health_.Check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold_bytes),
                       "cudaMemPoolSetAttribute");
}

uint64_t CudaDevice::FreeMemoryBytes() const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  uint64_t reserved_bytes = 0;
  uint64_t used_bytes = 0;
  // A device that cannot be asked has no free memory. What the pool holds unused is free to its lanes.
  if (!health_.Alive().ok() || cudaSetDevice(ordinal_) != cudaSuccess ||
      cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved_bytes) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used_bytes) != cudaSuccess) {
    return 0;
  }
  return free_bytes + (reserved_bytes - std::min(used_bytes, reserved_bytes));
}

template <class Args>
absl::StatusOr<Algorithm> CudaDevice::ResolveFor(Primitive primitive, DType out_dtype, Op op, const Args& args) const {
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm resolved,
                           Resolve(primitive, args.dtype, out_dtype, op, args.algorithm, PrecisionOf(args)));
  PREFIXD_RETURN_IF_ERROR(CheckLength(primitive, resolved, args.num_items));
  bool is_batch = args.num_arrays != 1;
  if constexpr (requires { args.state_out; }) is_batch |= args.values != nullptr;
  if constexpr (requires { args.offsets; }) is_batch |= args.offsets != nullptr;
  if (!is_batch || FollowsNumerics(resolved)) return resolved;  // The defaults take batches.
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm",
               StrCat("algorithm ", Name(resolved), " takes one array at a time: leave the algorithm out for a batch"));
}

absl::StatusOr<std::unique_ptr<Lane>> CudaDevice::CreateLane() {
  auto lane = std::make_unique<CudaLane>(this);
  PREFIXD_RETURN_IF_ERROR(lane->Init());
  return lane;
}

absl::StatusOr<Buffer> CudaDevice::AllocatePinned(size_t size_bytes) {
  PREFIXD_RETURN_IF_ERROR(Enter());
  void* h_memory = nullptr;
  PREFIXD_RETURN_IF_ERROR(
      health_.Check(cudaHostAlloc(&h_memory, std::max<size_t>(size_bytes, 1), cudaHostAllocPortable), "cudaHostAlloc"));
  // An error here can only come from earlier work, and whoever waited for that work got the report.
  return Buffer(h_memory, size_bytes, [](void* h_freed) { cudaFreeHost(h_freed); });
}

}  // namespace
}  // namespace cuda

int CudaDeviceCount() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // No driver or no card is an answer, not an error that a later call should find.
  return 0;
}

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int ordinal) {
  const int count = CudaDeviceCount();
  if (ordinal < 0 || ordinal >= count) {
    return absl::FailedPreconditionError(
        count == 0 ? absl::StrCat("there is no cuda:", ordinal, ": no NVIDIA card or no driver was found")
                   : absl::StrCat("there is no cuda:", ordinal, ": the last is cuda:", count - 1));
  }
  auto device = std::make_unique<cuda::CudaDevice>(ordinal);
  PREFIXD_RETURN_IF_ERROR(device->Init());
  return device;
}

}  // namespace prefixd
