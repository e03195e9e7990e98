#include "server/rpc/prefix_service.h"

#include <utility>

#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "proto/array_message.h"
#include "proto/wire_compact.h"
#include "proto/wire_difference.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "server/rpc/array_reactor.h"
#include "server/rpc/codec.h"
#include "server/rpc/methods.h"

namespace prefixd {
namespace {

// An array is cut in one way, and keys have a type.
template <class S>
absl::Status CheckCuts(const S& spec, bool has_offsets, bool has_keys) {
  const auto conflict = [](std::string_view field, std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", field, why);
  };
  if (has_keys && !spec.key_dtype) {
    return Error(absl::StatusCode::kInvalidArgument, "UNKNOWN_ENUM", "spec.key_dtype",
                 "there are keys, and their type is not said: set it");
  }
  if (spec.key_dtype && !has_keys) return conflict("spec.key_dtype", "there are no keys: send some, or leave it out");
  if constexpr (requires { spec.return_keys; }) {
    if (spec.return_keys && !has_keys) {
      return conflict("spec.return_keys", "there are no keys that could be returned: send some, or leave it out");
    }
  }
  if (has_keys && has_offsets) {
    return conflict("keys",
                    "there are keys and offsets of segments: an array is cut by the one or by the other, leave "
                    "one out");
  }
  if constexpr (requires { spec.axis; }) {
    if (spec.segmented && spec.axis) {
      return conflict(has_keys ? "keys" : "segment_offsets",
                      "there are segments and an axis: an array is cut by the one or by the other, leave one out");
    }
  }
  return absl::OkStatus();
}

// The message, with its spec.
struct DecodePrimitive {
  template <class Request>
  absl::StatusOr<Message> operator()(const Request& request, ArrayPayloads payloads, const CallInfo& /*call*/) const {
    PREFIXD_ASSIGN_OR_RETURN(Message message, Decode(request, std::move(payloads)));
    if (request.has_spec()) {
      PREFIXD_ASSIGN_OR_RETURN(auto spec, FromWire(request.spec()));
      spec.segmented = request.has_segment_offsets() || request.has_keys();
      PREFIXD_RETURN_IF_ERROR(CheckCuts(spec, request.has_segment_offsets(), request.has_keys()));
      if constexpr (requires { spec.has_coefficients; }) spec.has_coefficients = request.has_coefficients();
      message.operation = std::move(spec);
    }
    return message;
  }
};

// A primitive's two methods: "Scan" and "StreamScan".
template <class Request, class Response>
void Add(const char* unary, const char* stream, ServerContext* context, Methods* methods) {
  const auto add = [&](const char* method, CallShape shape) {
    methods->Add(v1::PrefixService::service_full_name(), method, [=](Rpc* rpc) {
      return new ArrayReactor<Request, Response, DecodePrimitive>(context, rpc, method, shape);
    });
  };
  add(unary, CallShape::kUnary);
  add(stream, CallShape::kStream);
}

}  // namespace

void AddPrefixMethods(ServerContext* context, Methods* methods) {
  Add<v1::ScanRequest, v1::ScanResponse>("Scan", "StreamScan", context, methods);
  Add<v1::ReduceRequest, v1::ReduceResponse>("Reduce", "StreamReduce", context, methods);
  Add<v1::CompactRequest, v1::CompactResponse>("Compact", "StreamCompact", context, methods);
  Add<v1::DifferenceRequest, v1::DifferenceResponse>("Difference", "StreamDifference", context, methods);
}

}  // namespace prefixd
