#include "server/rpc/codec.h"

#include <optional>

#include "kernels/args/check.h"
#include "proto/wire_algorithm_info.h"

namespace prefixd {
namespace {

// What a device serves of a primitive, each combination with each algorithm that takes it.
class CapabilityWriter {
 public:
  CapabilityWriter(const Device& device, Primitive primitive, v1::GetServerInfoResponse* response)
      : device_(device), primitive_(primitive), response_(response) {}

  void AddOutput(DType dtype, DType out_dtype) {
    if (!HasOp(primitive_)) {
      if (IsSupported(primitive_, dtype, out_dtype, Op::kSum)) Add(dtype, out_dtype, std::nullopt);
      return;
    }
    for (int i = 0; i < kNumOps; ++i) {
      const auto op = static_cast<Op>(i);
      if (ValidateOp(primitive_, dtype, out_dtype, op).ok()) Add(dtype, out_dtype, op);
    }
  }

 private:
  void Add(DType dtype, DType out_dtype, std::optional<Op> op) {
    for (const AlgorithmInfo& row : device_.Algorithms()) {
      if (row.primitive != primitive_ || !device_.Serves(row)) continue;
      if (!row.serves(dtype, out_dtype, op.value_or(Op::kSum))) continue;
      if (op == Op::kLinearRecurrence && !device_.IsDefault(primitive_, row.algorithm)) continue;
      v1::Capability* capability = response_->add_capabilities();
      capability->set_primitive(EncodeEnum<v1::Primitive>(primitive_));
      capability->set_dtype(EncodeEnum<v1::DType>(dtype));
      capability->set_out_dtype(EncodeEnum<v1::DType>(out_dtype));
      if (op) capability->set_op(EncodeEnum<v1::Op>(*op));
      EncodeAlgorithm(row.algorithm, capability->mutable_algorithm());
      capability->set_has_wide(op && IsWideSum(dtype, out_dtype, *op) && device_.IsDefault(primitive_, row.algorithm));
    }
  }

  const Device& device_;
  const Primitive primitive_;
  v1::GetServerInfoResponse* const response_;
};

}  // namespace

v1::ResultArray PlaceOf(const std::optional<ArrayInfo>& made, const std::optional<ArraySlice>& written) {
  v1::ResultArray place;
  if (made) *place.mutable_new_array() = ToWire(*made);
  if (written) *place.mutable_array() = ToWire(*written);
  return place;
}

absl::Status TakeBeside(const v1::Operand& operand, std::string_view name, Payload payload,
                        std::optional<ArraySlice>* place, Chunk* chunk, std::optional<Payload>* to) {
  PREFIXD_ASSIGN_OR_RETURN(*place, FromWire(operand, name));
  if (*place) return absl::OkStatus();
  const v1::InlineChunk& from = operand.inline_();
  if (from.has_first_item()) {
    if (chunk->first_item.value_or(from.first_item()) != from.first_item()) {
      return Error(absl::StatusCode::kInvalidArgument, "CHUNK_OUT_OF_ORDER", StrCat(name, ".inline.first_item"),
                   StrCat("the ", name, " of the message start at element ", from.first_item(), " and its values at ",
                          *chunk->first_item, ": they belong to the values they travel with"));
    }
    chunk->first_item = from.first_item();
  }
  *to = std::move(payload);
  return absl::OkStatus();
}

void EncodeAlgorithms(const Device& device, v1::GetServerInfoResponse* response) {
  for (const AlgorithmInfo& row : device.Algorithms()) {
    if (device.Serves(row)) *response->add_algorithms() = ToWire(row);
  }
}

void EncodeCapabilities(const Device& device, v1::GetServerInfoResponse* response) {
  for (int i = 0; i < kNumPrimitives; ++i) {
    CapabilityWriter writer(device, static_cast<Primitive>(i), response);
#define PREFIXD_ADD(name, type, out_name, out_type) writer.AddOutput(DType::name, DType::out_name);
    PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
  }
}

}  // namespace prefixd
