#include "server/codec.h"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/status.h"
#include "server/wire_values.h"

namespace prefixd {
namespace {

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

template <class Request>
absl::StatusOr<Message> DecodeValues(const Request& request, ArrayPayloads& payloads) {
  if (request.has_segment_offsets()) return NotImplemented("segment_offsets", "a segmented operation");
  PREFIXD_RETURN_IF_ERROR(CheckInline(request.values(), "values"));
  Message message;
  message.request_id = request.request_id();
  const v1::InlineChunk& values = request.values().inline_();
  message.chunk.values = std::move(payloads[Request::kValuesFieldNumber]);
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

absl::StatusOr<Message> Decode(const v1::ScanRequest& request, ArrayPayloads payloads) {
  if (request.has_coefficients()) return NotImplemented("coefficients", "a linear recurrence");
  PREFIXD_RETURN_IF_ERROR(CheckInline(request.sink(), "sink"));
  PREFIXD_ASSIGN_OR_RETURN(Message message, DecodeValues(request, payloads));
  if (request.has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.spec, DecodeSpec(request.spec()));
  }
  return message;
}

absl::StatusOr<Message> Decode(const v1::ReduceRequest& request, ArrayPayloads payloads) {
  PREFIXD_RETURN_IF_ERROR(CheckInline(request.sink(), "sink"));
  PREFIXD_ASSIGN_OR_RETURN(Message message, DecodeValues(request, payloads));
  if (request.has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.spec, DecodeSpec(request.spec()));
  }
  return message;
}

absl::StatusOr<Message> Decode(const v1::CompactRequest& request, ArrayPayloads payloads) {
  PREFIXD_RETURN_IF_ERROR(CheckInline(request.values_sink(), "values_sink"));
  PREFIXD_RETURN_IF_ERROR(CheckInline(request.indices_sink(), "indices_sink"));
  PREFIXD_RETURN_IF_ERROR(CheckInline(request.mask(), "mask"));
  PREFIXD_ASSIGN_OR_RETURN(Message message, DecodeValues(request, payloads));
  if (request.has_mask()) {
    const v1::InlineChunk& mask = request.mask().inline_();
    if (mask.has_first_item()) {
      if (message.chunk.first_item.value_or(mask.first_item()) != mask.first_item()) {
        return Error(absl::StatusCode::kInvalidArgument, "CHUNK_OUT_OF_ORDER", "mask.inline.first_item",
                     StrCat("the mask starts at element ", mask.first_item(), " and its message's values at ",
                            *message.chunk.first_item, ": a mask belongs to the values it travels with"));
      }
      message.chunk.first_item = mask.first_item();
    }
    message.chunk.mask = std::move(payloads[v1::CompactRequest::kMaskFieldNumber]);
  }
  if (request.has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.spec, DecodeSpec(request.spec()));
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

}  // namespace prefixd
