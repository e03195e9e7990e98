#include "server/rpc/array_service.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/arrays.grpc.pb.h"
#include "proto/array_message.h"
#include "proto/wire_array.h"
#include "proto/wire_fill.h"
#include "proto/wire_spec.h"
#include "server/arrays/array_store.h"
#include "server/rpc/array_reactor.h"
#include "server/rpc/codec.h"
#include "server/rpc/reading_reactor.h"

namespace prefixd {
namespace {

absl::StatusOr<ArrayStore*> StoreOf(const ServerContext& context) {
  if (context.arrays != nullptr) return context.arrays;
  return NotImplemented("", "a resident array (--max-arrays 0)");
}

// ---- What moves elements -------------------------------------------------------------------------------------------

// Makes the first message of a call's session, and those that come after it.
class DecodeArrayCall {
 public:
  explicit DecodeArrayCall(ServerContext* context) : context_(context) {}

  template <class Request>
  absl::StatusOr<Message> operator()(const Request& request, ArrayPayloads&& payloads, const CallInfo& call) const {
    PREFIXD_ASSIGN_OR_RETURN(ArrayStore * store, StoreOf(*context_));
    Message message;
    message.request_id = request.request_id();
    PREFIXD_RETURN_IF_ERROR(Decode(request, payloads, call.caller, *store, &message));
    return message;
  }

 private:
  static absl::StatusOr<FillSpec> FillOf(const v1::Fill& wire, DType dtype) {
    absl::StatusOr<FillSpec> fill = FromWire(wire, dtype);
    if (!fill.ok()) return InPart(fill.status(), "fill");
    return fill;
  }

  static absl::StatusOr<DType> TypeOf(ArrayStore& store, const Caller& caller, const v1::ArraySlice& slice,
                                      std::string_view field) {
    const absl::StatusOr<ArrayInfo> info = store.Get(caller, slice.name());
    if (!info.ok()) return InPart(info.status(), field);
    return info->dtype;
  }

  static absl::Status Decode(const v1::CreateArrayRequest& request, ArrayPayloads& /*payloads*/,
                             const Caller& /*caller*/, ArrayStore& /*store*/, Message* message) {
    PREFIXD_ASSIGN_OR_RETURN(ArraySpec spec, FromWire(request));
    if (spec.shape.empty()) {
      return Error(absl::StatusCode::kInvalidArgument, "SHAPE", "shape",
                   "an array has one dimension or two: say how many elements it has along each");
    }
    FillSpec zeros;
    zeros.dtype = spec.dtype;
    message->operation = zeros;
    if (request.has_fill()) {
      PREFIXD_ASSIGN_OR_RETURN(message->operation, FillOf(request.fill(), spec.dtype));
    }
    message->places.values_sink = {.kind = Sink::Kind::kNewArray, .to_make = std::move(spec)};
    return absl::OkStatus();
  }

  static absl::Status Decode(const v1::FillArrayRequest& request, ArrayPayloads& /*payloads*/, const Caller& caller,
                             ArrayStore& store, Message* message) {
    PREFIXD_ASSIGN_OR_RETURN(const DType dtype, TypeOf(store, caller, request.array(), "array"));
    PREFIXD_ASSIGN_OR_RETURN(message->operation, FillOf(request.fill(), dtype));
    message->places.values_sink = {.kind = Sink::Kind::kArray, .field = "array", .array = FromWire(request.array())};
    return absl::OkStatus();
  }

  static absl::Status Decode(const v1::CopyArrayRequest& request, ArrayPayloads& /*payloads*/, const Caller& caller,
                             ArrayStore& store, Message* message) {
    PREFIXD_ASSIGN_OR_RETURN(const DType dtype, TypeOf(store, caller, request.from(), "from"));
    CopySpec copy = {.dtype = dtype};
    if (request.to().has_num_items()) copy.num_items = request.to().num_items();
    message->operation = copy;
    message->places.values = FromWire(request.from());
    message->places.values_field = "from";
    message->places.values_sink = {.kind = Sink::Kind::kArray, .field = "to", .array = FromWire(request.to())};
    return absl::OkStatus();
  }

  static absl::Status Decode(const v1::WriteArrayRequest& request, ArrayPayloads& payloads, const Caller& caller,
                             ArrayStore& store, Message* message) {
    PREFIXD_ASSIGN_OR_RETURN(message->places.values, FromWire(request.values(), "values"));
    if (message->places.values) {
      return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "values.array",
                   "what is written comes in the messages: use CopyArray for what is resident");
    }
    message->announces_end = request.announces_end();
    message->ends = request.end();
    message->chunk.values = std::move(payloads[v1::WriteArrayRequest::kValuesFieldNumber]);
    if (request.values().inline_().has_first_item()) {
      message->chunk.first_item = request.values().inline_().first_item();
    }
    if (!request.has_array()) return absl::OkStatus();
    PREFIXD_ASSIGN_OR_RETURN(const DType dtype, TypeOf(store, caller, request.array(), "array"));
    CopySpec copy = {.dtype = dtype};
    if (request.array().has_num_items()) copy.num_items = request.array().num_items();
    message->operation = copy;
    message->places.values_sink = {.kind = Sink::Kind::kArray, .field = "array", .array = FromWire(request.array())};
    return absl::OkStatus();
  }

  static absl::Status Decode(const v1::ReadArrayRequest& request, ArrayPayloads& /*payloads*/, const Caller& caller,
                             ArrayStore& store, Message* message) {
    PREFIXD_ASSIGN_OR_RETURN(const DType dtype, TypeOf(store, caller, request.array(), "array"));
    message->operation = CopySpec{.dtype = dtype};
    message->places.values = FromWire(request.array());
    message->places.values_field = "array";
    return absl::OkStatus();
  }

  ServerContext* context_;
};

template <class Request, class Response>
void AddMoving(const char* method, CallShape shape, ServerContext* context, Methods* methods) {
  methods->Add(v1::ArrayService::service_full_name(), method, [=](Rpc* rpc) {
    return new ArrayReactor<Request, Response, DecodeArrayCall>(context, rpc, method, shape, DecodeArrayCall(context));
  });
}

// ---- What does not -------------------------------------------------------------------------------------------------

absl::StatusOr<v1::GetArrayResponse> Answer(ArrayStore& store, const Caller& caller,
                                            const v1::GetArrayRequest& request) {
  PREFIXD_ASSIGN_OR_RETURN(const ArrayInfo info, store.Get(caller, request.name()));
  v1::GetArrayResponse response;
  *response.mutable_array() = ToWire(info);
  return response;
}

absl::StatusOr<v1::RenewArrayResponse> Answer(ArrayStore& store, const Caller& caller,
                                              const v1::RenewArrayRequest& request) {
  PREFIXD_ASSIGN_OR_RETURN(const Lifetime lifetime, FromWire(request.lifetime(), "lifetime"));
  PREFIXD_ASSIGN_OR_RETURN(const ArrayInfo info, store.Renew(caller, request.name(), lifetime));
  v1::RenewArrayResponse response;
  *response.mutable_array() = ToWire(info);
  return response;
}

absl::StatusOr<v1::ListArraysResponse> Answer(ArrayStore& store, const Caller& caller,
                                              const v1::ListArraysRequest& request) {
  constexpr uint32_t kPage = 100;
  constexpr uint32_t kMaxPage = 1000;
  const uint32_t page = request.page_size() == 0 ? kPage : std::min(request.page_size(), kMaxPage);
  PREFIXD_ASSIGN_OR_RETURN(const ArrayStore::Page found, store.List(caller, request.page_token(), page));
  v1::ListArraysResponse response;
  for (const ArrayInfo& info : found.arrays) *response.add_arrays() = ToWire(info);
  response.set_next_page_token(found.next_name);
  return response;
}

absl::StatusOr<v1::DeleteArrayResponse> Answer(ArrayStore& store, const Caller& caller,
                                               const v1::DeleteArrayRequest& request) {
  PREFIXD_RETURN_IF_ERROR(store.Delete(caller, request.name()));
  return v1::DeleteArrayResponse();
}

template <class Request>
class AnswerReactor final : public ReadingReactor {
 public:
  AnswerReactor(ServerContext* context, Rpc* rpc, const char* method)
      : ReadingReactor(context, rpc, CallInfoOf(*context, rpc, method, CallShape::kUnary), Admission::Kind::kRequest),
        context_(context) {}

 private:
  void OnRequest(const grpc::ByteBuffer& bytes) override {
    grpc::ByteBuffer response;
    absl::Status status = Respond(bytes, &response);
    End(std::move(status), response);
  }

  absl::Status Respond(const grpc::ByteBuffer& bytes, grpc::ByteBuffer* response) {
    Request request;
    PREFIXD_RETURN_IF_ERROR(ParseMessage(bytes, &request));
    PREFIXD_ASSIGN_OR_RETURN(ArrayStore * store, StoreOf(*context_));
    PREFIXD_ASSIGN_OR_RETURN(const auto answer, Answer(*store, call().info().caller, request));
    *response = SerializeArrayMessage(answer, {});
    PREFIXD_RETURN_IF_ERROR(call().Charge(response->Length()));
    call().CountSent(response->Length());
    return absl::OkStatus();
  }

  ServerContext* const context_;
};

template <class Request>
void AddAnswering(const char* method, ServerContext* context, Methods* methods) {
  methods->Add(v1::ArrayService::service_full_name(), method,
               [=](Rpc* rpc) { return new AnswerReactor<Request>(context, rpc, method); });
}

}  // namespace

void AddArrayMethods(ServerContext* context, Methods* methods) {
  AddMoving<v1::CreateArrayRequest, v1::CreateArrayResponse>("CreateArray", CallShape::kUnary, context, methods);
  AddMoving<v1::FillArrayRequest, v1::FillArrayResponse>("FillArray", CallShape::kUnary, context, methods);
  AddMoving<v1::CopyArrayRequest, v1::CopyArrayResponse>("CopyArray", CallShape::kUnary, context, methods);
  AddMoving<v1::WriteArrayRequest, v1::WriteArrayResponse>("WriteArray", CallShape::kStream, context, methods);
  AddMoving<v1::ReadArrayRequest, v1::ReadArrayResponse>("ReadArray", CallShape::kStream, context, methods);
  AddAnswering<v1::GetArrayRequest>("GetArray", context, methods);
  AddAnswering<v1::RenewArrayRequest>("RenewArray", context, methods);
  AddAnswering<v1::ListArraysRequest>("ListArrays", context, methods);
  AddAnswering<v1::DeleteArrayRequest>("DeleteArray", context, methods);
}

}  // namespace prefixd
