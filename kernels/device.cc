#include "kernels/device.h"

#include <algorithm>
#include <bit>
#include <limits>

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

// Of scan and reduce.
absl::Status ValidateOp(Primitive primitive, DType dtype, DType out_dtype, Op op) {
  if (IsSupported(primitive, dtype, out_dtype, op)) return absl::OkStatus();
  if (IsSupported(dtype) && !IsOutput(dtype, out_dtype)) {
    return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.out_dtype",
                 StrCat(Name(primitive), " of ", Name(dtype), " does not serve the output type ", Name(out_dtype),
                        ": use one of ", OutputNames(dtype)));
  }
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.op",
               StrCat(Name(primitive), " does not serve ", Name(op), " of ", Name(dtype)));
}

bool IsAligned(const void* pointer, DType dtype) { return reinterpret_cast<uintptr_t>(pointer) % SizeOf(dtype) == 0; }

absl::Status ValidateAligned(const void* pointer, DType dtype, std::string_view what) {
  if (IsAligned(pointer, dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(what, " is not aligned to its ", SizeOf(dtype), "-byte elements"));
}

absl::Status ValidateBatch(uint64_t num_arrays, uint64_t num_items, bool carries) {
  // As many as a grid has blocks.
  constexpr uint64_t kMaxArrays = std::numeric_limits<int32_t>::max();
  if (num_arrays < 1 || num_arrays > kMaxArrays) {
    return absl::InvalidArgumentError(StrCat("num_arrays is ", num_arrays, ": expected 1 to ", kMaxArrays));
  }
  if (num_items > std::numeric_limits<uint64_t>::max() / sizeof(uint64_t) / num_arrays) {
    return absl::InvalidArgumentError(StrCat(num_arrays, " arrays of ", num_items, " items are more than 2^64 bytes"));
  }
  if (num_arrays > 1 && carries) return absl::InvalidArgumentError("the arrays of a batch have no carries");
  return absl::OkStatus();
}

constexpr std::string_view kItemsPerThread = "spec.algorithm.items_per_thread";

absl::Status InvalidChoice(std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, "ALGORITHM_CHOICE", field, message);
}

// Of a message: "three_phase, grid_sync".
template <class Enum>
std::string NamesWhere(int count, bool (*takes)(Enum)) {
  std::string names;
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    if (takes(value)) names += StrCat(names.empty() ? "" : ", ", Name(value));
  }
  return names;
}

// Whether it is the row's algorithm that is asked for: one with a default left open is the first that fits.
bool IsOf(const AlgorithmInfo& row, const Algorithm& asked) {
  return (asked.strategy == Strategy::kDefault || asked.strategy == row.algorithm.strategy) &&
         (asked.tile_scan == TileScan::kDefault || asked.tile_scan == row.algorithm.tile_scan) &&
         (asked.items_per_thread == 0 || row.has_items_per_thread) && (!asked.padding || row.has_padding);
}

// What IsServedBy says, in words. Needs: there is something that it does not serve.
std::string_view ServedBy(const Algorithm& algorithm, Primitive primitive) {
  if (algorithm.strategy == Strategy::kCub) {
    return "sum of all types and outputs, and other operators of 4- and 8-byte types to the same type";
  }
  if (algorithm.strategy == Strategy::kKahan) return "sum of f32 and f64 to the same type";
  if (primitive == Primitive::kCompact) return "4- and 8-byte types";
  return "sum, min and max of 4- and 8-byte types to the same type";
}

}  // namespace

uint64_t MaskBytes(const CompactArgs& args) {
  if (args.selector == Selector::kByteMask) return args.num_items;
  if (args.selector == Selector::kBitMask) return args.num_items / 8 + (args.num_items % 8 != 0);
  return 0;
}

StageTimes& StageTimes::operator+=(const StageTimes& other) {
  Add(&host_to_device_ns, other.host_to_device_ns);
  Add(&kernel_ns, other.kernel_ns);
  Add(&device_to_host_ns, other.device_to_host_ns);
  launches += other.launches;
  num_bytes += other.num_bytes;
  return *this;
}

absl::StatusOr<Algorithm> Device::Resolve(Primitive primitive, const Algorithm& asked) const {
  PREFIXD_RETURN_IF_ERROR(CheckAlgorithm(primitive, asked));
  std::string names;
  for (const AlgorithmInfo& row : Algorithms()) {
    if (row.primitive != primitive) continue;
    if (!IsOf(row, asked)) {
      names += StrCat(names.empty() ? "" : ", ", Name(row.algorithm));
      continue;
    }
    Algorithm resolved = row.algorithm;
    resolved.padding = asked.padding;
    if (row.has_items_per_thread) resolved.items_per_thread = std::max<uint8_t>(asked.items_per_thread, 1);
    return resolved;
  }
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm",
               StrCat("algorithm ", Name(asked), " is not implemented for ", Name(primitive), " on ", info().name,
                      ", which serves: ", names));
}

absl::StatusOr<Algorithm> Device::Resolve(Primitive primitive, DType dtype, DType out_dtype, Op op,
                                          const Algorithm& asked) const {
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm resolved, Resolve(primitive, asked));
  if (IsServedBy(resolved, primitive, dtype, out_dtype, op)) return resolved;
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm",
               StrCat("algorithm ", Name(resolved), " does not serve ", Name(primitive),
                      primitive == Primitive::kCompact ? "" : StrCat(" by ", Name(op)), " of ", Name(dtype),
                      out_dtype == dtype ? "" : StrCat(" to ", Name(out_dtype)), ": it serves ",
                      ServedBy(resolved, primitive), "; leave the algorithm out for the rest"));
}

absl::Status Device::CheckLength(Primitive primitive, const Algorithm& resolved, uint64_t num_items) const {
  for (const AlgorithmInfo& row : Algorithms()) {
    if (row.primitive != primitive || !IsOf(row, resolved)) continue;
    if (row.max_items == 0 || num_items <= row.max_items) return absl::OkStatus();
    return Error(absl::StatusCode::kInvalidArgument, "ALGORITHM_LIMIT", "spec.algorithm",
                 StrCat("algorithm ", Name(resolved), " takes arrays of at most ", row.max_items,
                        " elements: send fewer, or choose another algorithm"));
  }
  return absl::OkStatus();
}

absl::Status CheckItemsPerThread(uint64_t items_per_thread, std::string_view field) {
  if (items_per_thread <= kMaxItemsPerThread && std::popcount(items_per_thread) <= 1) return absl::OkStatus();
  return InvalidChoice(field, StrCat("items_per_thread is ", items_per_thread, ": expected a power of two up to ",
                                     kMaxItemsPerThread, ", or 0 for the device's choice"));
}

absl::Status CheckAlgorithm(Primitive primitive, const Algorithm& algorithm) {
  const TileScan tile_scan = algorithm.tile_scan;
  PREFIXD_RETURN_IF_ERROR(CheckItemsPerThread(algorithm.items_per_thread, kItemsPerThread));
  if (tile_scan != TileScan::kDefault && (primitive != Primitive::kScan || !TakesTileScan(algorithm.strategy))) {
    return InvalidChoice(
        "spec.algorithm.tile_scan",
        StrCat("strategy ", Name(algorithm.strategy), " of ", Name(primitive), " takes no tile scan, and ",
               Name(tile_scan), " was asked for: leave it out, or scan by ",
               NamesWhere<Strategy>(kNumStrategies, TakesTileScan)));
  }
  const std::string chosen =
      tile_scan == TileScan::kDefault ? "a choice without a tile scan" : StrCat("tile scan ", Name(tile_scan));
  if (algorithm.items_per_thread != 0 && !TakesItemsPerThread(tile_scan)) {
    return InvalidChoice(kItemsPerThread, StrCat(chosen, " takes no items_per_thread, and ", algorithm.items_per_thread,
                                                 " was asked for: leave it out, or choose tile scan ",
                                                 NamesWhere<TileScan>(kNumTileScans, TakesItemsPerThread)));
  }
  if (algorithm.padding && !TakesPadding(tile_scan)) {
    return InvalidChoice("spec.algorithm.padding",
                         StrCat(chosen, " takes no padding: leave it out, or choose tile scan ",
                                NamesWhere<TileScan>(kNumTileScans, TakesPadding)));
  }
  return absl::OkStatus();
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
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kScan, args.dtype, args.output(), args.op));
  PREFIXD_RETURN_IF_ERROR(
      ValidateBatch(args.num_arrays, args.num_items, args.carry_in != nullptr || args.carry_out != nullptr));
  if (args.in == args.out && args.num_items > 0 && SizeOf(args.dtype) != SizeOf(args.output())) {
    return absl::InvalidArgumentError(StrCat("in is out, but elements of ", Name(args.dtype), " and ",
                                             Name(args.output()), " differ in size: use another buffer for out"));
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.out, args.output(), "out");
}

absl::Status Validate(const ReduceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kReduce, args.dtype, args.output(), args.op));
  if (args.state_out == nullptr) return absl::InvalidArgumentError("a reduce needs a state_out");
  PREFIXD_RETURN_IF_ERROR(ValidateBatch(args.num_arrays, args.num_items, args.state_in != nullptr));
  return ValidateAligned(args.in, args.dtype, "in");
}

absl::Status Validate(const CompactArgs& args) {
  if (!IsSupported(args.dtype)) {
    return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.dtype",
                 StrCat("compact does not serve ", Name(args.dtype)));
  }
  if (args.count == nullptr) return absl::InvalidArgumentError("a compact needs a count");
  PREFIXD_RETURN_IF_ERROR(ValidateBatch(args.num_arrays, args.num_items, /*carries=*/false));
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
