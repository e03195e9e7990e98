#include "client/convert.h"

#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/status.h"

namespace prefixd::client {
namespace {

constexpr char kRetryDelayUrl[] = "prefixd/retry_delay";
constexpr char kCallStatusUrl[] = "prefixd/call_status";

// The contract's enums are the kernels' in the same order, one up to make room for UNSPECIFIED; Strategy and TileScan
// have kDefault for that.
static_assert(v1::DTYPE_I8 == static_cast<int>(DType::kI8) + 1 && v1::DTYPE_F64 == static_cast<int>(DType::kF64) + 1);
static_assert(v1::OP_SUM == static_cast<int>(Op::kSum) + 1);
static_assert(v1::OP_LINEAR_RECURRENCE == static_cast<int>(Op::kLinearRecurrence) + 1);
static_assert(v1::SCAN_KIND_EXCLUSIVE == static_cast<int>(ScanKind::kExclusive) + 1);
static_assert(v1::COMPARISON_LESS == static_cast<int>(Comparison::kLess) + 1);
static_assert(v1::COMPARISON_IS_FINITE == static_cast<int>(Comparison::kIsFinite) + 1);
static_assert(v1::PRIMITIVE_COMPACT == static_cast<int>(Primitive::kCompact) + 1);
static_assert(v1::MASK_KIND_BYTES == static_cast<int>(MaskKind::kBytes) + 1);
static_assert(v1::MASK_KIND_BITS == static_cast<int>(MaskKind::kBits) + 1);
static_assert(v1::STRATEGY_CHAINED == static_cast<int>(Strategy::kChained));
static_assert(v1::STRATEGY_ATOMIC_COUNTER == static_cast<int>(Strategy::kAtomicCounter));
static_assert(v1::TILE_SCAN_WARP_SHARED_REGISTER == static_cast<int>(TileScan::kWarpSharedRegister));

template <class Wire, class Enum>
Wire ToWireEnum(Enum value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

// False for UNSPECIFIED and for what only a newer server knows; its number may not even fit ours.
template <class Enum>
bool FromWireEnum(int wire, Enum* out) {
  *out = static_cast<Enum>(wire - 1);
  return static_cast<int>(*out) == wire - 1 && !Name(*out).empty();
}
// These have kDefault for it.
template <class Enum>
bool FromWireEnumWithDefault(int wire, Enum* out) {
  *out = static_cast<Enum>(wire);
  return static_cast<int>(*out) == wire && !Name(*out).empty();
}

bool FromWire(const v1::AlgorithmChoice& wire, Algorithm* algorithm) {
  algorithm->items_per_thread = static_cast<uint8_t>(wire.items_per_thread());
  algorithm->padding = wire.padding();
  return FromWireEnumWithDefault(wire.strategy(), &algorithm->strategy) &&
         FromWireEnumWithDefault(wire.tile_scan(), &algorithm->tile_scan) &&
         algorithm->items_per_thread == wire.items_per_thread();
}

void ToWire(const Algorithm& algorithm, v1::AlgorithmChoice* wire) {
  wire->set_strategy(static_cast<v1::Strategy>(algorithm.strategy));
  wire->set_tile_scan(static_cast<v1::TileScan>(algorithm.tile_scan));
  wire->set_items_per_thread(algorithm.items_per_thread);
  wire->set_padding(algorithm.padding);
}

absl::Status SetScalar(DType dtype, Value value, v1::Scalar* scalar) {
  if (!IsSupported(dtype)) {
    return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.dtype",
                 StrCat("this client has no values of type ", Name(dtype)));
  }
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      scalar->set_double_value(value.As<T>());
    } else if constexpr (std::is_signed_v<T>) {
      scalar->set_int64_value(value.As<T>());
    } else {
      scalar->set_uint64_value(value.As<T>());
    }
  });
  return absl::OkStatus();
}

template <class Spec, class Wire>
void SetCommon(const Spec& spec, Wire* wire) {
  wire->set_dtype(ToWireEnum<v1::DType>(spec.dtype));
  if (spec.algorithm != Algorithm{}) ToWire(spec.algorithm, wire->mutable_algorithm());
  if (spec.num_items) wire->set_num_items(*spec.num_items);
}

}  // namespace

absl::StatusOr<v1::ScanSpec> ToWire(const ScanSpec& spec) {
  v1::ScanSpec wire;
  SetCommon(spec, &wire);
  if (spec.out_dtype) wire.set_out_dtype(ToWireEnum<v1::DType>(*spec.out_dtype));
  wire.set_op(ToWireEnum<v1::Op>(spec.op));
  wire.set_kind(ToWireEnum<v1::ScanKind>(spec.kind));
  wire.set_reverse(spec.reverse);
  if (spec.init) PREFIXD_RETURN_IF_ERROR(SetScalar(spec.output(), *spec.init, wire.mutable_init()));
  return wire;
}

absl::StatusOr<v1::ReduceSpec> ToWire(const ReduceSpec& spec) {
  v1::ReduceSpec wire;
  SetCommon(spec, &wire);
  if (spec.out_dtype) wire.set_out_dtype(ToWireEnum<v1::DType>(*spec.out_dtype));
  wire.set_op(ToWireEnum<v1::Op>(spec.op));
  if (spec.init) PREFIXD_RETURN_IF_ERROR(SetScalar(spec.output(), *spec.init, wire.mutable_init()));
  return wire;
}

absl::StatusOr<v1::CompactSpec> ToWire(const CompactSpec& spec) {
  v1::CompactSpec wire;
  SetCommon(spec, &wire);
  wire.set_invert(spec.invert);
  wire.set_return_indices(spec.return_indices);
  if (!spec.predicate) {
    wire.set_mask(ToWireEnum<v1::MaskKind>(spec.mask_kind));
    return wire;
  }
  const Comparison comparison = spec.predicate->comparison;
  wire.mutable_predicate()->set_comparison(ToWireEnum<v1::Comparison>(comparison));
  if (comparison != Comparison::kIsNan && comparison != Comparison::kIsFinite) {
    PREFIXD_RETURN_IF_ERROR(SetScalar(spec.dtype, spec.predicate->value, wire.mutable_predicate()->mutable_value()));
  }
  return wire;
}

Timing FromWire(const v1::Timing& wire) {
  Timing timing;
  if (wire.has_queue_ns()) timing.queue_ns = wire.queue_ns();
  if (wire.has_host_copy_ns()) timing.host_copy_ns = wire.host_copy_ns();
  if (wire.has_host_to_device_ns()) timing.host_to_device_ns = wire.host_to_device_ns();
  if (wire.has_kernel_ns()) timing.kernel_ns = wire.kernel_ns();
  if (wire.has_device_to_host_ns()) timing.device_to_host_ns = wire.device_to_host_ns();
  if (wire.has_server_total_ns()) timing.server_total_ns = wire.server_total_ns();
  timing.device = wire.device();
  if (!FromWire(wire.algorithm(), &timing.algorithm)) timing.algorithm = {};
  timing.launches = wire.launches();
  timing.num_items = wire.num_items();
  timing.num_bytes = wire.num_bytes();
  if (wire.has_kernel_gb_per_s()) timing.kernel_gb_per_s = wire.kernel_gb_per_s();
  timing.batch_size = wire.batch_size();
  timing.numerics_version = wire.numerics_version();
  return timing;
}

absl::StatusOr<ReduceReply> FromWire(const v1::ReduceResponse& response, DType dtype) {
  if (!IsSupported(dtype)) return absl::UnimplementedError("this client has no values of this type");
  const v1::Scalar& scalar = response.value();
  ReduceReply reply;
  const bool of_dtype = VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      reply.value = Value::Of(static_cast<T>(scalar.double_value()));
      return scalar.has_double_value();
    } else if constexpr (std::is_signed_v<T>) {
      reply.value = Value::Of(static_cast<T>(scalar.int64_value()));
      return scalar.has_int64_value();
    } else {
      reply.value = Value::Of(static_cast<T>(scalar.uint64_value()));
      return scalar.has_uint64_value();
    }
  });
  if (!of_dtype) {
    return absl::InternalError(StrCat("the server's value is not of type ", Name(dtype)));
  }
  reply.count = response.count();
  if (response.has_index()) reply.index = response.index();
  reply.timing = FromWire(response.timing());
  return reply;
}

ServerInfo FromWire(const v1::GetServerInfoResponse& response) {
  const auto budget = [](const v1::Budget& wire) { return Budget{wire.limit(), wire.used()}; };
  ServerInfo info;
  info.version = response.version();
  info.numerics_version = response.numerics_version();
  info.device = response.device();
  info.device_memory_bytes = response.device_memory_bytes();
  info.device_memory_free_bytes = response.device_memory_free_bytes();
  info.lanes = response.lanes();
  info.max_message_bytes = response.max_message_bytes();
  info.max_reply_payload_bytes = response.max_reply_payload_bytes();
  info.requests = budget(response.requests());
  info.request_bytes = budget(response.request_bytes());
  info.staging_bytes = budget(response.staging_bytes());
  info.uptime_seconds = response.uptime_seconds();
  for (const v1::Capability& wire : response.capabilities()) {
    Capability capability;
    Op op;
    if (!FromWireEnum(wire.primitive(), &capability.primitive) || !FromWireEnum(wire.dtype(), &capability.dtype)) {
      continue;
    }
    if (!FromWireEnum(wire.out_dtype(), &capability.out_dtype)) capability.out_dtype = capability.dtype;
    if (wire.op() != v1::OP_UNSPECIFIED) {
      if (!FromWireEnum(wire.op(), &op)) continue;
      capability.op = op;
    }
    if (!FromWire(wire.algorithm(), &capability.algorithm)) continue;
    info.capabilities.push_back(capability);
  }
  for (const v1::AlgorithmInfo& wire : response.algorithms()) {
    AlgorithmInfo row = {.has_items_per_thread = wire.has_items_per_thread(),
                         .has_padding = wire.has_padding(),
                         .work = wire.work(),
                         .depth = wire.depth(),
                         .traffic = wire.traffic(),
                         .launches = wire.launches(),
                         .stable = wire.stable(),
                         .deterministic = wire.deterministic(),
                         .max_items = wire.max_items(),
                         .source = wire.source()};
    if (!FromWireEnum(wire.primitive(), &row.primitive) || !FromWire(wire.algorithm(), &row.algorithm)) continue;
    info.algorithms.push_back(std::move(row));
  }
  return info;
}

v1::RunBenchmarkRequest ToWire(const BenchmarkSpec& spec) {
  v1::RunBenchmarkRequest wire;
  for (const Primitive primitive : spec.primitives) wire.add_primitives(ToWireEnum<v1::Primitive>(primitive));
  for (const DType dtype : spec.dtypes) wire.add_dtypes(ToWireEnum<v1::DType>(dtype));
  for (const Op op : spec.ops) wire.add_ops(ToWireEnum<v1::Op>(op));
  for (const Algorithm& algorithm : spec.algorithms) ToWire(algorithm, wire.add_algorithms());
  for (const uint64_t num_items : spec.num_items) wire.add_num_items(num_items);
  wire.set_repetitions(spec.repetitions);
  return wire;
}

std::optional<BenchmarkResult> FromWire(const v1::RunBenchmarkResponse& response) {
  BenchmarkResult result;
  if (!FromWireEnum(response.primitive(), &result.primitive) || !FromWireEnum(response.dtype(), &result.dtype) ||
      !FromWire(response.algorithm(), &result.algorithm)) {
    return std::nullopt;
  }
  Op op;
  if (response.op() != v1::OP_UNSPECIFIED) {
    if (!FromWireEnum(response.op(), &op)) return std::nullopt;
    result.op = op;
  }
  result.num_items = response.num_items();
  result.skipped = response.skipped();
  result.device = response.device();
  result.numerics_version = response.numerics_version();
  if (response.has_measurement()) {
    const v1::Measurement& wire = response.measurement();
    result.times = BenchmarkTimes{wire.p10_ns(), wire.median_ns(), wire.p90_ns(), wire.copy_ns()};
    result.num_bytes = wire.num_bytes();
    result.launches = wire.launches();
    result.repetitions = wire.repetitions();
  }
  return result;
}

absl::Status FromWire(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string reason;
  std::string field;
  google::rpc::RetryInfo retry_info;
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& any : details.details()) {
      google::rpc::ErrorInfo error_info;
      google::rpc::BadRequest bad_request;
      if (any.UnpackTo(&error_info) && error_info.domain() == kErrorDomain) {
        reason = error_info.reason();
      } else if (any.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
        field = bad_request.field_violations(0).field();
      } else {
        any.UnpackTo(&retry_info);
      }
    }
  }
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  absl::Status error =
      reason.empty() ? absl::Status(code, status.error_message()) : Error(code, reason, field, status.error_message());
  error.SetPayload(kCallStatusUrl, absl::Cord());
  if (!reason.empty() && retry_info.has_retry_delay()) {
    const absl::Duration delay =
        absl::Seconds(retry_info.retry_delay().seconds()) + absl::Nanoseconds(retry_info.retry_delay().nanos());
    error.SetPayload(kRetryDelayUrl, absl::Cord(absl::FormatDuration(delay)));
  }
  return error;
}

bool IsCallStatus(const absl::Status& status) { return status.GetPayload(kCallStatusUrl).has_value(); }

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayUrl);
  absl::Duration delay;
  if (!payload || !absl::ParseDuration(std::string(*payload), &delay)) return std::nullopt;
  return delay;
}

}  // namespace prefixd::client
