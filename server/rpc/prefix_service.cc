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

// The message, with its spec.
struct DecodePrimitive {
  template <class Request>
  absl::StatusOr<Message> operator()(const Request& request, ArrayPayloads payloads, const CallInfo& /*call*/) const {
    PREFIXD_ASSIGN_OR_RETURN(Message message, Decode(request, std::move(payloads)));
    if (request.has_spec()) {
      PREFIXD_ASSIGN_OR_RETURN(auto spec, FromWire(request.spec()));
      if constexpr (kServesSegments<Request>) {
        spec.segmented = request.has_segment_offsets();
        if (spec.segmented && spec.axis) {
          return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "segment_offsets",
                       "there are segments and an axis: an array is cut by the one or by the other, leave one out");
        }
      }
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
