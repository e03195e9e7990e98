#include "server/codec.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/status.h"

namespace prefixd {
namespace {

// ---- Enums ---------------------------------------------------------------------------------------------------------
// The wire's enums are the domain's, in the same order, behind an UNSPECIFIED that is 0.
static_assert(v1::DTYPE_F64 - 1 == static_cast<int>(DType::kF64));
static_assert(v1::OP_LINEAR_RECURRENCE - 1 == static_cast<int>(Op::kLinearRecurrence));
static_assert(v1::SCAN_KIND_EXCLUSIVE - 1 == static_cast<int>(ScanKind::kExclusive));
static_assert(v1::COMPARISON_IS_FINITE - 1 == static_cast<int>(Comparison::kIsFinite));
static_assert(v1::PRIMITIVE_COMPACT - 1 == static_cast<int>(Primitive::kCompact));
static_assert(v1::STRATEGY_ATOMIC_COUNTER == static_cast<int>(Strategy::kAtomicCounter));
static_assert(v1::TILE_SCAN_WARP_SHARED_REGISTER == static_cast<int>(TileScan::kWarpSharedRegister));

absl::Status UnknownEnum(std::string_view field, int value) {
  return Error(absl::StatusCode::kInvalidArgument, "UNKNOWN_ENUM", field,
               value == 0 ? StrCat(field, " is required")
                          : StrCat(field, " has the value ", value, ", which this version does not know"));
}

template <class Domain>
absl::StatusOr<Domain> DecodeEnum(int value, Domain last, std::string_view field) {
  if (value < 1 || value > static_cast<int>(last) + 1) return UnknownEnum(field, value);
  return static_cast<Domain>(value - 1);
}

template <class Wire, class Domain>
Wire EncodeEnum(Domain value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

absl::Status NotImplemented(std::string_view field, std::string_view what) {
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", field,
               StrCat(what, " is not implemented by this server: GetServerInfo lists what is"));
}

absl::StatusOr<DType> DecodeDType(int value) {
  PREFIXD_ASSIGN_OR_RETURN(const DType dtype, DecodeEnum(value, DType::kF64, "spec.dtype"));
  if (!IsSupported(dtype)) return NotImplemented("spec.dtype", StrCat("dtype ", Name(dtype)));
  return dtype;
}

// The output type, if one is asked for.
absl::StatusOr<std::optional<DType>> DecodeOutDType(int value, DType dtype) {
  if (value == v1::DTYPE_UNSPECIFIED) return std::nullopt;
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, DecodeEnum(value, DType::kF64, "spec.out_dtype"));
  if (IsOutput(dtype, out_dtype)) return out_dtype;
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.out_dtype",
               StrCat(Name(dtype), " has no output type ", Name(out_dtype), ": use one of ", OutputNames(dtype)));
}

absl::StatusOr<Op> DecodeOp(int value, const Spec& spec, Primitive primitive) {
  PREFIXD_ASSIGN_OR_RETURN(const Op op, DecodeEnum(value, Op::kLinearRecurrence, "spec.op"));
  if (!IsDefined(op, spec.output())) {
    return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.op",
                 StrCat(Name(op), " is not defined on ", Name(spec.output()), ": use an integer dtype"));
  }
  if (!IsSupported(primitive, spec.dtype, spec.output(), op)) {
    return NotImplemented("spec.op", StrCat(Name(primitive), " with ", Name(op), " of ", Name(spec.dtype)));
  }
  return op;
}

absl::Status CheckPrecision(int value) {
  if (value == v1::PRECISION_UNSPECIFIED || value == v1::PRECISION_NATIVE) return absl::OkStatus();
  if (value == v1::PRECISION_WIDE) return NotImplemented("spec.precision", "precision WIDE");
  return UnknownEnum("spec.precision", value);
}

// ---- Scalars -------------------------------------------------------------------------------------------------------
template <class T, class Source>
std::optional<T> ExactInteger(Source value) {
  if constexpr (std::is_floating_point_v<Source>) {
    // The bounds are powers of two, so they are exact as doubles.
    const double lowest = std::is_signed_v<T> ? -std::ldexp(1.0, std::numeric_limits<T>::digits) : 0.0;
    if (!(value >= lowest && value < std::ldexp(1.0, std::numeric_limits<T>::digits))) return std::nullopt;
    if (std::trunc(value) != value) return std::nullopt;
    return static_cast<T>(value);
  } else {
    if (!std::in_range<T>(value)) return std::nullopt;
    return static_cast<T>(value);
  }
}

template <class T, class Source>
absl::StatusOr<Value> ConvertScalar(Source value, std::string_view field) {
  if constexpr (std::is_floating_point_v<T>) {
    // A NaN comes out canonical whichever way it came in, also where it meets no element.
    const T converted = static_cast<T>(value);
    return Value::Of(converted == converted ? converted : std::numeric_limits<T>::quiet_NaN());
  } else {
    if (const std::optional<T> exact = ExactInteger<T>(value)) return Value::Of(*exact);
    return Error(absl::StatusCode::kInvalidArgument, "SCALAR_OUT_OF_RANGE", field,
                 StrCat(value, " is not a value of ", Name(kDTypeOf<T>)));
  }
}

absl::StatusOr<Value> DecodeScalar(const v1::Scalar& scalar, DType dtype, std::string_view field) {
  return VisitDType(dtype, [&](auto tag) -> absl::StatusOr<Value> {
    using T = typename decltype(tag)::type;
    switch (scalar.value_case()) {
      case v1::Scalar::kInt64Value:
        return ConvertScalar<T>(scalar.int64_value(), field);
      case v1::Scalar::kUint64Value:
        return ConvertScalar<T>(scalar.uint64_value(), field);
      case v1::Scalar::kDoubleValue:
        return ConvertScalar<T>(scalar.double_value(), field);
      case v1::Scalar::VALUE_NOT_SET:
        break;
    }
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", field,
                 StrCat(field, " is there but holds no value: set one of its members, or leave it out"));
  });
}

void EncodeScalar(Value value, DType dtype, v1::Scalar* scalar) {
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
}

// ---- Operands and sinks --------------------------------------------------------------------------------------------
absl::Status CheckInline(const v1::Operand& operand, std::string_view field) {
  switch (operand.source_case()) {
    case v1::Operand::kArray:
      return NotImplemented(StrCat(field, ".array"), "a resident array");
    case v1::Operand::kSharedMemory:
      return NotImplemented(StrCat(field, ".shared_memory"), "shared memory");
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckInline(const v1::Sink& sink, std::string_view field) {
  switch (sink.target_case()) {
    case v1::Sink::kArray:
      return NotImplemented(StrCat(field, ".array"), "a resident array");
    case v1::Sink::kSharedMemory:
      return NotImplemented(StrCat(field, ".shared_memory"), "shared memory");
    default:
      return absl::OkStatus();
  }
}

// The bytes of an operand: `split`, or what the message itself has.
Payload PayloadOf(Payload split, const v1::Operand& operand, Payload::Owner message) {
  if (!split.empty()) return split;
  return Payload(operand.inline_().data(), std::move(message));
}

template <class Request>
absl::StatusOr<Message> DecodeValues(const std::shared_ptr<const Request>& request, ArrayPayloads& payloads) {
  if (request->has_segment_offsets()) return NotImplemented("segment_offsets", "a segmented operation");
  PREFIXD_RETURN_IF_ERROR(CheckInline(request->values(), "values"));
  Message message;
  message.request_id = request->request_id();
  const v1::InlineChunk& values = request->values().inline_();
  message.chunk.values = PayloadOf(std::move(payloads[Request::kValuesFieldNumber]), request->values(), request);
  if (values.has_first_item()) message.chunk.first_item = values.first_item();
  return message;
}

// What scan, reduce and compact specs have in common.
template <class WireSpec>
absl::StatusOr<Spec> DecodeCommon(const WireSpec& wire) {
  Spec spec;
  PREFIXD_ASSIGN_OR_RETURN(spec.dtype, DecodeDType(wire.dtype()));
  PREFIXD_ASSIGN_OR_RETURN(spec.algorithm, DecodeAlgorithm(wire.algorithm(), "spec.algorithm"));
  if (wire.has_num_items()) spec.num_items = wire.num_items();
  return spec;
}

absl::StatusOr<Spec> DecodeSpec(const v1::ScanSpec& wire) {
  PREFIXD_ASSIGN_OR_RETURN(Spec spec, DecodeCommon(wire));
  ScanSpec scan;
  PREFIXD_ASSIGN_OR_RETURN(spec.out_dtype, DecodeOutDType(wire.out_dtype(), spec.dtype));
  PREFIXD_ASSIGN_OR_RETURN(scan.op, DecodeOp(wire.op(), spec, Primitive::kScan));
  if (wire.kind() != v1::SCAN_KIND_UNSPECIFIED) {
    PREFIXD_ASSIGN_OR_RETURN(scan.kind, DecodeEnum(wire.kind(), ScanKind::kExclusive, "spec.kind"));
  }
  if (wire.has_init()) {
    PREFIXD_ASSIGN_OR_RETURN(scan.init, DecodeScalar(wire.init(), spec.output(), "spec.init"));
  }
  PREFIXD_RETURN_IF_ERROR(CheckPrecision(wire.precision()));
  scan.reverse = wire.reverse();
  spec.detail = scan;
  return spec;
}

absl::StatusOr<Spec> DecodeSpec(const v1::ReduceSpec& wire) {
  PREFIXD_ASSIGN_OR_RETURN(Spec spec, DecodeCommon(wire));
  ReduceSpec reduce;
  PREFIXD_ASSIGN_OR_RETURN(spec.out_dtype, DecodeOutDType(wire.out_dtype(), spec.dtype));
  PREFIXD_ASSIGN_OR_RETURN(reduce.op, DecodeOp(wire.op(), spec, Primitive::kReduce));
  if (wire.has_init()) {
    PREFIXD_ASSIGN_OR_RETURN(reduce.init, DecodeScalar(wire.init(), spec.output(), "spec.init"));
  }
  PREFIXD_RETURN_IF_ERROR(CheckPrecision(wire.precision()));
  spec.detail = reduce;
  return spec;
}

absl::Status DecodePredicate(const v1::Predicate& wire, DType dtype, CompactSpec* compact) {
  PREFIXD_ASSIGN_OR_RETURN(compact->comparison,
                           DecodeEnum(wire.comparison(), Comparison::kIsFinite, "spec.predicate.comparison"));
  const bool takes_value = compact->comparison < Comparison::kIsNan;
  if (takes_value != wire.has_value()) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.predicate.value",
                 StrCat("the comparison ", Name(compact->comparison), " takes ", takes_value ? "a" : "no", " value"));
  }
  if (takes_value) {
    PREFIXD_ASSIGN_OR_RETURN(compact->value, DecodeScalar(wire.value(), dtype, "spec.predicate.value"));
  }
  return absl::OkStatus();
}

absl::Status DecodeIndexDType(int value, CompactSpec* compact) {
  if (value == v1::DTYPE_UNSPECIFIED) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(compact->index_dtype, DecodeEnum(value, DType::kF64, "spec.index_dtype"));
  if (compact->index_dtype == DType::kU64 || compact->index_dtype == DType::kU32) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.index_dtype",
               StrCat("indices are u64 or u32, not ", Name(compact->index_dtype)));
}

absl::StatusOr<Spec> DecodeSpec(const v1::CompactSpec& wire) {
  PREFIXD_ASSIGN_OR_RETURN(Spec spec, DecodeCommon(wire));
  CompactSpec compact;
  switch (wire.selector_case()) {
    case v1::CompactSpec::kPredicate:
      PREFIXD_RETURN_IF_ERROR(DecodePredicate(wire.predicate(), spec.dtype, &compact));
      break;
    case v1::CompactSpec::kMask:
      if (wire.mask() == v1::MASK_KIND_BYTES) {
        compact.selector = Selector::kByteMask;
      } else if (wire.mask() == v1::MASK_KIND_BITS) {
        compact.selector = Selector::kBitMask;
      } else {
        return UnknownEnum("spec.mask", wire.mask());
      }
      break;
    case v1::CompactSpec::SELECTOR_NOT_SET:
      return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.selector",
                   "nothing selects: set spec.predicate, or spec.mask and send a mask");
  }
  compact.invert = wire.invert();
  compact.return_values = !wire.omit_values();
  compact.return_indices = wire.return_indices();
  PREFIXD_RETURN_IF_ERROR(DecodeIndexDType(wire.index_dtype(), &compact));
  spec.detail = compact;
  return spec;
}

// ---- Timing --------------------------------------------------------------------------------------------------------
void EncodeTiming(const Timing& timing, v1::Timing* wire) {
  const StageTimes& device = timing.device;
  if (timing.queue_ns) wire->set_queue_ns(*timing.queue_ns);
  if (timing.host_copy_ns) wire->set_host_copy_ns(*timing.host_copy_ns);
  if (device.host_to_device_ns) wire->set_host_to_device_ns(*device.host_to_device_ns);
  if (device.kernel_ns) wire->set_kernel_ns(*device.kernel_ns);
  if (device.device_to_host_ns) wire->set_device_to_host_ns(*device.device_to_host_ns);
  wire->set_server_total_ns(timing.server_total_ns);
  wire->set_device(timing.device_name);
  EncodeAlgorithm(timing.algorithm, wire->mutable_algorithm());
  wire->set_launches(device.launches);
  wire->set_num_items(timing.num_items);
  wire->set_num_bytes(device.num_bytes);
  if (device.kernel_ns && *device.kernel_ns > 0) {
    wire->set_kernel_gb_per_s(static_cast<double>(device.num_bytes) / static_cast<double>(*device.kernel_ns));
  }
  wire->set_batch_size(timing.batch_size);
  if (FollowsNumerics(timing.algorithm)) wire->set_numerics_version(kNumericsVersion);
}

}  // namespace

absl::StatusOr<Algorithm> DecodeAlgorithm(const v1::AlgorithmChoice& choice, std::string_view field) {
  if (choice.strategy() < 0 || choice.strategy() >= kNumStrategies) {
    return UnknownEnum(StrCat(field, ".strategy"), choice.strategy());
  }
  if (choice.tile_scan() < 0 || choice.tile_scan() >= kNumTileScans) {
    return UnknownEnum(StrCat(field, ".tile_scan"), choice.tile_scan());
  }
  PREFIXD_RETURN_IF_ERROR(CheckItemsPerThread(choice.items_per_thread(), StrCat(field, ".items_per_thread")));
  return Algorithm{static_cast<Strategy>(choice.strategy()), static_cast<TileScan>(choice.tile_scan()),
                   static_cast<uint8_t>(choice.items_per_thread()), choice.padding()};
}

void EncodeAlgorithm(const Algorithm& algorithm, v1::AlgorithmChoice* choice) {
  choice->set_strategy(static_cast<v1::Strategy>(algorithm.strategy));
  choice->set_tile_scan(static_cast<v1::TileScan>(algorithm.tile_scan));
  choice->set_items_per_thread(algorithm.items_per_thread);
  choice->set_padding(algorithm.padding);
}

absl::StatusOr<Message> Decode(const std::shared_ptr<const v1::ScanRequest>& request, ArrayPayloads payloads) {
  if (request->has_coefficients()) return NotImplemented("coefficients", "a linear recurrence");
  PREFIXD_RETURN_IF_ERROR(CheckInline(request->sink(), "sink"));
  PREFIXD_ASSIGN_OR_RETURN(Message message, DecodeValues(request, payloads));
  if (request->has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.spec, DecodeSpec(request->spec()));
  }
  return message;
}

absl::StatusOr<Message> Decode(const std::shared_ptr<const v1::ReduceRequest>& request, ArrayPayloads payloads) {
  PREFIXD_RETURN_IF_ERROR(CheckInline(request->sink(), "sink"));
  PREFIXD_ASSIGN_OR_RETURN(Message message, DecodeValues(request, payloads));
  if (request->has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.spec, DecodeSpec(request->spec()));
  }
  return message;
}

absl::StatusOr<Message> Decode(const std::shared_ptr<const v1::CompactRequest>& request, ArrayPayloads payloads) {
  PREFIXD_RETURN_IF_ERROR(CheckInline(request->values_sink(), "values_sink"));
  PREFIXD_RETURN_IF_ERROR(CheckInline(request->indices_sink(), "indices_sink"));
  PREFIXD_RETURN_IF_ERROR(CheckInline(request->mask(), "mask"));
  PREFIXD_ASSIGN_OR_RETURN(Message message, DecodeValues(request, payloads));
  if (request->has_mask()) {
    const v1::InlineChunk& mask = request->mask().inline_();
    if (mask.has_first_item()) {
      if (message.chunk.first_item.value_or(mask.first_item()) != mask.first_item()) {
        return Error(absl::StatusCode::kInvalidArgument, "CHUNK_OUT_OF_ORDER", "mask.inline.first_item",
                     StrCat("the mask starts at element ", mask.first_item(), " and its message's values at ",
                            *message.chunk.first_item, ": a mask belongs to the values it travels with"));
      }
      message.chunk.first_item = mask.first_item();
    }
    message.chunk.mask = PayloadOf(std::move(payloads[v1::CompactRequest::kMaskFieldNumber]), request->mask(), request);
  }
  if (request->has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.spec, DecodeSpec(request->spec()));
  }
  return message;
}

void Encode(const Result& result, v1::ScanResponse* response) {
  EncodeTiming(result.timing, response->mutable_timing());
}

void Encode(const Result& result, v1::ReduceResponse* response) {
  EncodeTiming(result.timing, response->mutable_timing());
  EncodeScalar(result.value, result.dtype, response->mutable_value());
  response->set_count(result.timing.num_items);
  if (result.index) response->set_index(*result.index);
}

void Encode(const Result& result, v1::CompactResponse* response) {
  EncodeTiming(result.timing, response->mutable_timing());
  response->set_count(result.num_kept);
}

template <class Response>
grpc::ByteBuffer Pack(const Reply* reply, const Result* result) {
  Response response;
  if (result != nullptr) Encode(*result, &response);
  std::vector<OutgoingArray> arrays;
  if (reply != nullptr) {
    if constexpr (std::is_same_v<Response, v1::CompactResponse>) {
      response.set_count(reply->num_kept);
      if (!reply->indices.empty()) arrays.push_back({Response::kIndicesFieldNumber, {}, reply->indices});
    }
    if (!reply->values.empty()) arrays.push_back({Response::kValuesFieldNumber, {}, reply->values});
  }
  return SerializeArrayMessage(response, arrays);
}
template grpc::ByteBuffer Pack<v1::ScanResponse>(const Reply* reply, const Result* result);
template grpc::ByteBuffer Pack<v1::ReduceResponse>(const Reply* reply, const Result* result);
template grpc::ByteBuffer Pack<v1::CompactResponse>(const Reply* reply, const Result* result);

void EncodeAlgorithms(const Device& device, v1::GetServerInfoResponse* response) {
  for (const AlgorithmInfo& row : device.Algorithms()) {
    v1::AlgorithmInfo* wire = response->add_algorithms();
    wire->set_primitive(EncodeEnum<v1::Primitive>(row.primitive));
    EncodeAlgorithm(row.algorithm, wire->mutable_algorithm());
    wire->set_has_items_per_thread(row.has_items_per_thread);
    wire->set_has_padding(row.has_padding);
    wire->set_work(std::string(row.work));
    wire->set_depth(std::string(row.depth));
    wire->set_traffic(std::string(row.traffic));
    wire->set_launches(std::string(row.launches));
    wire->set_stable(row.stable);
    wire->set_deterministic(row.deterministic);
    wire->set_max_items(row.max_items);
    wire->set_source(std::string(row.source));
  }
}

void EncodeCapabilities(const Device& device, v1::GetServerInfoResponse* response) {
  const auto add = [&](Primitive primitive, DType dtype, DType out_dtype, std::optional<Op> op) {
    for (const AlgorithmInfo& row : device.Algorithms()) {
      if (row.primitive != primitive) continue;
      if (!IsServedBy(row.algorithm, primitive, dtype, out_dtype, op.value_or(Op::kSum))) continue;
      v1::Capability* capability = response->add_capabilities();
      capability->set_primitive(EncodeEnum<v1::Primitive>(primitive));
      capability->set_dtype(EncodeEnum<v1::DType>(dtype));
      capability->set_out_dtype(EncodeEnum<v1::DType>(out_dtype));
      if (op) capability->set_op(EncodeEnum<v1::Op>(*op));
      EncodeAlgorithm(row.algorithm, capability->mutable_algorithm());
    }
  };
  for (const Primitive primitive : {Primitive::kScan, Primitive::kReduce}) {
    const auto add_every_op = [&](DType dtype, DType out_dtype) {
      for (int o = 0; o < kNumOps; ++o) {
        const auto op = static_cast<Op>(o);
        if (IsSupported(primitive, dtype, out_dtype, op)) add(primitive, dtype, out_dtype, op);
      }
    };
#define PREFIXD_ADD(name, type, out_name, out_type) add_every_op(DType::name, DType::out_name);
    PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
  }
#define PREFIXD_ADD(name, type) add(Primitive::kCompact, DType::name, DType::name, std::nullopt);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_ADD)
#undef PREFIXD_ADD
}

grpc::Status ToGrpcStatus(const absl::Status& status, const std::string& request_id) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message(status.message());
  const std::string reason = ErrorReason(status);

  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason.empty() ? "DEVICE_ERROR" : reason);
  info.set_domain(std::string(kErrorDomain));
  (*info.mutable_metadata())["request_id"] = request_id;
  details.add_details()->PackFrom(info);
  if (const std::string field = ErrorField(status); !field.empty()) {
    google::rpc::BadRequest bad_request;
    google::rpc::BadRequest::FieldViolation* violation = bad_request.add_field_violations();
    violation->set_field(field);
    violation->set_description(message);
    details.add_details()->PackFrom(bad_request);
  }
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    google::rpc::QuotaFailure quota;
    google::rpc::QuotaFailure::Violation* violation = quota.add_violations();
    violation->set_subject("server");
    violation->set_description(message);
    details.add_details()->PackFrom(quota);
    google::rpc::RetryInfo retry;
    constexpr int kRetryNanos = 100'000'000;  // About the time of a large unary request.
    retry.mutable_retry_delay()->set_nanos(kRetryNanos);
    details.add_details()->PackFrom(retry);
  }
  return grpc::Status(code, message, details.SerializeAsString());
}

}  // namespace prefixd
