#include "kernels/device.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/fatal.h"
#include "base/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/spec.h"

namespace prefixd {
namespace {

void Add(std::optional<int64_t>* sum, const std::optional<int64_t>& term) {
  if (term) *sum = sum->value_or(0) + *term;
}

constexpr std::string_view kItemsPerThread = "spec.algorithm.items_per_thread";

absl::Status InvalidChoice(std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, "ALGORITHM_CHOICE", field, message);
}

// For a message: "three_phase, grid_sync".
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

}  // namespace

StageTimes& StageTimes::operator+=(const StageTimes& other) {
  Add(&host_to_device_ns, other.host_to_device_ns);
  Add(&kernel_ns, other.kernel_ns);
  Add(&device_to_host_ns, other.device_to_host_ns);
  launches += other.launches;
  num_bytes += other.num_bytes;
  return *this;
}

StageTimes Lane::TakeStageTimes() {
  StageTimes times;
  for (const StageTimes& part : TakeParts()) times += part;
  return times;
}

absl::StatusOr<Algorithm> Device::Resolve(Primitive primitive, const Algorithm& asked) const {
  PREFIXD_RETURN_IF_ERROR(CheckAlgorithm(primitive, asked));
  std::string names;
  for (const AlgorithmInfo& row : Algorithms()) {
    if (row.primitive != primitive) continue;
    if (!IsOf(row, asked)) {
      if (Serves(row)) names += StrCat(names.empty() ? "" : ", ", Name(row.algorithm));
      continue;
    }
    if (!Serves(row)) {
      return Error(
          absl::StatusCode::kPermissionDenied, "ALGORITHM_OFF", "spec.algorithm",
          StrCat("algorithm ", Name(asked), " is switched off: this server serves the default algorithms only ",
                 "(--algorithms default): leave the algorithm out, or ask another server"));
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
                                          const Algorithm& asked, Precision precision) const {
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm resolved, Resolve(primitive, asked));
  if (op == Op::kLinearRecurrence && HasOp(primitive) && !IsDefault(primitive, resolved)) {
    return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm",
                 StrCat("algorithm ", Name(resolved), " knows no recurrence: leave the algorithm out for one"));
  }
  if (precision == Precision::kWide && !IsDefault(primitive, resolved)) {
    return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm",
                 StrCat("algorithm ", Name(resolved),
                        " knows the elements' precision alone: leave the algorithm out "
                        "for precision ",
                        Name(precision)));
  }
  const Served& serves = RowOf(primitive, resolved).serves;
  if (serves(dtype, out_dtype, op)) return resolved;
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.algorithm",
               StrCat("algorithm ", Name(resolved), " does not serve ", Name(primitive),
                      HasOp(primitive) ? StrCat(" by ", Name(op)) : "", " of ", Name(dtype),
                      out_dtype == dtype ? "" : StrCat(" to ", Name(out_dtype)), ": it serves ", serves.words,
                      "; leave the algorithm out for the rest"));
}

bool Device::IsDefault(Primitive primitive, const Algorithm& resolved) const {
  return RowOf(primitive, {}).algorithm == resolved;
}

const AlgorithmInfo& Device::RowOf(Primitive primitive, const Algorithm& algorithm) const {
  for (const AlgorithmInfo& row : Algorithms()) {
    if (row.primitive == primitive && IsOf(row, algorithm)) return row;
  }
  Fatal(StrCat(info().name, " has no algorithm ", Name(algorithm), " for ", Name(primitive)));
}

absl::Status Device::CheckLength(Primitive primitive, const Algorithm& resolved, uint64_t num_items) const {
  const AlgorithmInfo& row = RowOf(primitive, resolved);
  if (row.max_items == 0 || num_items <= row.max_items) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "ALGORITHM_LIMIT", "spec.algorithm",
               StrCat("algorithm ", Name(resolved), " takes arrays of at most ", row.max_items,
                      " elements: send fewer, or choose another algorithm"));
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

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(std::string_view name, std::string_view cpu_isa) {
  PREFIXD_ASSIGN_OR_RETURN(const cpu::Isa isa, cpu::FindIsa(cpu_isa));
  if (name == "cpu") return OpenCpuDevice(isa);
  if (name == "auto") return CudaDeviceCount() > 0 ? OpenCudaDevice(0) : OpenCpuDevice(isa);
  int ordinal = 0;
  if (absl::string_view number = AbslView(name);
      absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &ordinal)) {
    return OpenCudaDevice(ordinal);
  }
  return absl::InvalidArgumentError(StrCat("no device is called '", name, "': expected auto, cpu or cuda:N"));
}

}  // namespace prefixd
