#include "kernels/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/status.h"

namespace prefixd {
namespace {

void Add(std::optional<int64_t>* sum, const std::optional<int64_t>& term) {
  if (term) *sum = sum->value_or(0) + *term;
}

absl::Status ValidateOp(Primitive primitive, DType dtype, Op op) {
  if (IsSupported(primitive, dtype, dtype, op)) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.op",
               StrCat(Name(primitive), " does not serve ", Name(op), " of ", Name(dtype)));
}

bool IsAligned(const void* pointer, DType dtype) { return reinterpret_cast<uintptr_t>(pointer) % SizeOf(dtype) == 0; }

absl::Status ValidateAligned(const void* pointer, DType dtype, std::string_view what) {
  if (IsAligned(pointer, dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(what, " is not aligned to its ", SizeOf(dtype), "-byte elements"));
}

}  // namespace

StageTimes& StageTimes::operator+=(const StageTimes& other) {
  Add(&host_to_device_ns, other.host_to_device_ns);
  Add(&kernel_ns, other.kernel_ns);
  Add(&device_to_host_ns, other.device_to_host_ns);
  launches += other.launches;
  num_bytes += other.num_bytes;
  return *this;
}

absl::StatusOr<Strategy> Device::Resolve(Primitive primitive, Strategy strategy) const {
  const std::vector<Strategy> served = Strategies(primitive);
  if (strategy == Strategy::kDefault) return served.front();
  std::string names;
  for (const Strategy candidate : served) {
    if (candidate == strategy) return strategy;
    names += StrCat(names.empty() ? "" : ", ", Name(candidate));
  }
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm.strategy",
               StrCat("strategy ", Name(strategy), " is not implemented for ", Name(primitive), " on ", info().name,
                      ", which serves: ", names));
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(std::string_view name) {
  if (name == "cpu") return OpenCpuDevice();
  if (name == "auto") return CudaDeviceCount() > 0 ? OpenCudaDevice(0) : OpenCpuDevice();
  int ordinal = 0;
  if (absl::string_view number = AbslView(name);
      absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &ordinal)) {
    return OpenCudaDevice(ordinal);
  }
  return absl::InvalidArgumentError(StrCat("no device is called '", name, "': expected auto, cpu or cuda:N"));
}

absl::Status Validate(const ScanArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kScan, args.dtype, args.op));
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.out, args.dtype, "out");
}

absl::Status Validate(const ReduceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kReduce, args.dtype, args.op));
  if (args.state_out == nullptr) return absl::InvalidArgumentError("a reduce needs a state_out");
  return ValidateAligned(args.in, args.dtype, "in");
}

absl::Status Validate(const CompactArgs& args) {
  if (!IsSupported(args.dtype)) {
    return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.dtype",
                 StrCat("compact does not serve ", Name(args.dtype)));
  }
  if (args.count == nullptr) return absl::InvalidArgumentError("a compact needs a count");
  if (args.indices != nullptr) {
    if (args.index_dtype != DType::kU64 && args.index_dtype != DType::kU32) {
      return absl::InvalidArgumentError(StrCat("indices are u64 or u32, not ", Name(args.index_dtype)));
    }
    constexpr uint64_t kU32Items = uint64_t{1} << 32;
    if (args.index_dtype == DType::kU32 &&
        (args.first_item > kU32Items || args.num_items > kU32Items - args.first_item)) {
      return Error(absl::StatusCode::kOutOfRange, "INDEX_OVERFLOW", "spec.index_dtype",
                   "the array has more than 2^32 elements, whose indices do not fit u32: ask for u64");
    }
    PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.indices, args.index_dtype, "indices"));
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.values, args.dtype, "values");
}

}  // namespace prefixd
