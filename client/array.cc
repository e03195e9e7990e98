#include "client/array.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "client/array_call.h"
#include "client/array_transfer.h"
#include "client/attempts.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/rpc.h"
#include "prefixd/v1/arrays.grpc.pb.h"
#include "proto/wire_array.h"
#include "proto/wire_fill.h"
#include "proto/wire_timing.h"
#include "proto/wire_values.h"

namespace prefixd::client {
namespace {

using Stub = v1::ArrayService::Stub;

// A method of the service, as its stub has it.
template <class Request, class Response>
using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

template <class Request, class Response>
absl::Status CallOn(const Server& server, Method<Request, Response> method, const Request& request,
                    const CallOptions& call, absl::Time deadline, Response* response) {
  AttemptContext context(server, call, deadline);
  const std::unique_ptr<Stub> stub = v1::ArrayService::NewStub(server.channel());
  return UnaryStatus(FromGrpc(((*stub).*method)(context.get(), request, response)));
}

// A call that only asks, or may as well run twice.
template <class Request, class Response>
absl::Status Ask(const Connection& connection, Method<Request, Response> method, const Request& request,
                 const CallOptions& call, Response* response) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  const absl::Time deadline = Deadline(call);
  Attempts attempts(connection, call, deadline);
  return Retry(attempts, [&](const Server& server) -> Outcome {
    return {CallOn(server, method, request, call, deadline, response), true};
  });
}

// A call that must not run twice. Says which server has taken it.
template <class Request, class Response>
absl::StatusOr<const Server*> AskOnce(const Connection& connection, Method<Request, Response> method,
                                      const Request& request, const CallOptions& call, Response* response) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  const absl::Time deadline = Deadline(call);
  const Server* taken = nullptr;
  PREFIXD_RETURN_IF_ERROR(RunOnce(connection, call, deadline, [&](const Server& server) {
    taken = &server;
    return CallOn(server, method, request, call, deadline, response);
  }));
  return taken;
}

absl::StatusOr<ArrayInfo> InfoOf(const v1::Array& wire) {
  absl::StatusOr<ArrayInfo> info = FromWire(wire);
  if (info.ok()) return info;
  return absl::InternalError(StrCat("the server's array: ", std::string(info.status().message())));
}

// Asks the servers one after another, until one does not say that the array is elsewhere.
absl::Status AtHome(const Connection& connection,
                    const std::function<absl::Status(std::shared_ptr<const Connection>)>& ask) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  absl::Status status;
  for (const Server& server : connection.servers()) {
    status = ask(connection.To(server));
    if (ErrorReason(status) != "ARRAY_ELSEWHERE") return status;
  }
  return status;
}

// It is gone, which is what was wanted, where an attempt before that was not answered has deleted it.
absl::Status DeleteOn(const Connection& connection, std::string_view name, const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  const absl::Time deadline = Deadline(call);
  v1::DeleteArrayRequest request;
  request.set_name(std::string(name));
  v1::DeleteArrayResponse response;
  Attempts attempts(connection, call, deadline);
  bool is_first = true;
  return Retry(attempts, [&](const Server& server) -> Outcome {
    absl::Status status = CallOn(server, &Stub::DeleteArray, request, call, deadline, &response);
    if (!std::exchange(is_first, false) && ErrorReason(status) == "ARRAY_EXPIRED") return {};
    return {std::move(status), true};
  });
}

// The call's options for what is left of its time.
CallOptions Rest(CallOptions call, absl::Time deadline) {
  call.timeout = deadline - absl::Now();
  return call;
}

constexpr absl::Duration kLastWords = absl::Seconds(1);

}  // namespace

// ---- Parts ---------------------------------------------------------------------------------------------------------
ArrayPart::ArrayPart(const Array& array) : ArrayPart(array, 0) {}

ArrayPart::ArrayPart(const Array& array, uint64_t first_item, std::optional<uint64_t> num_items)
    : connection_(array.connection()),
      slice_{.name = array.name(), .first_item = first_item, .num_items = num_items},
      dtype_(array.dtype()),
      num_items_(num_items.value_or(array.num_items() - std::min(array.num_items(), first_item))) {}

// ---- Handles -------------------------------------------------------------------------------------------------------
Array::Array(std::shared_ptr<const Connection> connection, ArrayInfo info, Ownership ownership)
    : connection_(std::move(connection)), info_(std::move(info)), ownership_(ownership) {}

Array::Array(Array&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)),
      info_(std::exchange(other.info_, {})),
      ownership_(other.ownership_) {}

Array& Array::operator=(Array&& other) noexcept {
  if (this == &other) return *this;
  End();
  connection_ = std::exchange(other.connection_, nullptr);
  info_ = std::exchange(other.info_, {});
  ownership_ = other.ownership_;
  return *this;
}

Array::~Array() { End(); }

void Array::End() {
  if (connection_ == nullptr || ownership_ == Ownership::kBorrowed) return;
  DeleteOn(*connection_, name(), {.timeout = kLastWords}).IgnoreError();  // Else it expires.
}

absl::Status Array::CheckExists() const {
  if (exists()) return absl::OkStatus();
  return absl::FailedPreconditionError("the handle has no array: it was moved from, released or deleted");
}

absl::Status Array::CheckType(DType dtype) const {
  PREFIXD_RETURN_IF_ERROR(CheckExists());
  if (dtype == info_.dtype) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "ARRAY_TYPE", "array",
               StrCat("the array's elements are ", Name(info_.dtype), ", and the call's ", Name(dtype),
                      ": use elements of the array's type"));
}

absl::Status Array::CheckRange(uint64_t first_item, std::optional<uint64_t> num_items) const {
  const uint64_t rest = info_.num_items - std::min(info_.num_items, first_item);
  if (first_item <= info_.num_items && num_items.value_or(0) <= rest) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "ARRAY_RANGE", "array",
               StrCat("the array has ", info_.num_items, " elements: expected a part of them, not ",
                      num_items ? StrCat(*num_items, " elements") : std::string("those"), " from ", first_item, " on"));
}

absl::Status Array::WriteBytes(Bytes values, uint64_t first_item, const CallOptions& call) const {
  PREFIXD_RETURN_IF_ERROR(CheckExists());
  PREFIXD_RETURN_IF_ERROR(CheckWhole(values, info_.dtype));
  PREFIXD_RETURN_IF_ERROR(CheckRange(first_item, values.size() / SizeOf(info_.dtype)));
  return WriteElements(*connection_, info_, first_item, values, call);
}

absl::Status Array::ReadBytes(absl::Span<std::byte> values, uint64_t first_item, const CallOptions& call) const {
  PREFIXD_RETURN_IF_ERROR(CheckExists());
  PREFIXD_RETURN_IF_ERROR(CheckWhole(values, info_.dtype));
  PREFIXD_RETURN_IF_ERROR(CheckRange(first_item, values.size() / SizeOf(info_.dtype)));
  return ReadElements(*connection_, info_, first_item, values, call);
}

absl::StatusOr<Timing> Array::Fill(const FillSpec& fill, uint64_t first_item, std::optional<uint64_t> num_items,
                                   const CallOptions& call) const {
  PREFIXD_RETURN_IF_ERROR(CheckType(fill.dtype));
  v1::FillArrayRequest request;
  request.set_request_id(call.request_id);
  *request.mutable_array() = ToWire(ArraySlice{.name = name(), .first_item = first_item, .num_items = num_items});
  *request.mutable_fill() = ToWire(fill);
  v1::FillArrayResponse response;
  PREFIXD_RETURN_IF_ERROR(AskOnce(*connection_, &Stub::FillArray, request, call, &response).status());
  return FromWire(response.timing());
}

absl::StatusOr<Timing> Array::CopyFrom(const ArrayPart& from, uint64_t first_item, const CallOptions& call) const {
  PREFIXD_RETURN_IF_ERROR(CheckExists());
  v1::CopyArrayRequest request;
  request.set_request_id(call.request_id);
  *request.mutable_from() = ToWire(from.slice());
  *request.mutable_to() = ToWire(ArraySlice{.name = name(), .first_item = first_item, .num_items = from.num_items()});
  v1::CopyArrayResponse response;
  PREFIXD_RETURN_IF_ERROR(AskOnce(*connection_, &Stub::CopyArray, request, call, &response).status());
  return FromWire(response.timing());
}

absl::StatusOr<ArrayInfo> Array::Stat(const CallOptions& call) const {
  PREFIXD_RETURN_IF_ERROR(CheckExists());
  v1::GetArrayRequest request;
  request.set_name(name());
  v1::GetArrayResponse response;
  PREFIXD_RETURN_IF_ERROR(Ask(*connection_, &Stub::GetArray, request, call, &response));
  return InfoOf(response.array());
}

absl::StatusOr<ArrayInfo> Array::Renew(const Lifetime& lifetime, const CallOptions& call) const {
  PREFIXD_RETURN_IF_ERROR(CheckExists());
  v1::RenewArrayRequest request;
  request.set_name(name());
  *request.mutable_lifetime() = ToWire(lifetime);
  v1::RenewArrayResponse response;
  PREFIXD_RETURN_IF_ERROR(Ask(*connection_, &Stub::RenewArray, request, call, &response));
  return InfoOf(response.array());
}

absl::Status Array::Delete(const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(CheckExists());
  PREFIXD_RETURN_IF_ERROR(DeleteOn(*connection_, name(), call));
  Release();
  return absl::OkStatus();
}

std::string Array::Release() {
  connection_ = nullptr;
  return std::exchange(info_, {}).name;
}

// ---- What Client offers --------------------------------------------------------------------------------------------
namespace internal {

absl::StatusOr<Array> CreateArray(const Connection& connection, const ArraySpec& spec,
                                  const std::optional<FillSpec>& fill, const CallOptions& call) {
  if (fill && fill->dtype != spec.dtype) {
    return Error(absl::StatusCode::kInvalidArgument, "ARRAY_TYPE", "fill",
                 StrCat("the array's elements are ", Name(spec.dtype), ", and the fill's ", Name(fill->dtype),
                        ": fill it with values of its own type"));
  }
  v1::CreateArrayRequest request;
  request.set_request_id(call.request_id);
  request.set_dtype(EncodeEnum<v1::DType>(spec.dtype));
  for (const uint64_t along : spec.shape) request.add_shape(along);
  *request.mutable_lifetime() = ToWire(spec.lifetime);
  if (fill) *request.mutable_fill() = ToWire(*fill);
  v1::CreateArrayResponse response;
  PREFIXD_ASSIGN_OR_RETURN(const Server* const server,
                           AskOnce(connection, &Stub::CreateArray, request, call, &response));
  PREFIXD_ASSIGN_OR_RETURN(ArrayInfo info, InfoOf(response.array()));
  return Array(connection.To(*server), std::move(info), Ownership::kOwned);
}

absl::StatusOr<Array> UploadArray(const Connection& connection, DType dtype, Bytes values, const Lifetime& lifetime,
                                  const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  PREFIXD_ASSIGN_OR_RETURN(
      Array array,
      CreateArray(connection, {.dtype = dtype, .shape = {values.size() / SizeOf(dtype)}, .lifetime = lifetime},
                  std::nullopt, call));
  PREFIXD_RETURN_IF_ERROR(array.WriteBytes(values, 0, Rest(call, deadline)));
  return array;
}

absl::StatusOr<Array> BorrowArray(const Connection& connection, std::string_view name, const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  Array array;
  PREFIXD_RETURN_IF_ERROR(AtHome(connection, [&](std::shared_ptr<const Connection> home) -> absl::Status {
    Array found(std::move(home), {.name = std::string(name)}, Ownership::kBorrowed);
    PREFIXD_ASSIGN_OR_RETURN(ArrayInfo info, found.Stat(Rest(call, deadline)));
    array = Array(found.connection(), std::move(info), Ownership::kBorrowed);
    return absl::OkStatus();
  }));
  return array;
}

absl::Status DeleteArray(const Connection& connection, std::string_view name, const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  return AtHome(connection, [&](const std::shared_ptr<const Connection>& home) {
    return DeleteOn(*home, name, Rest(call, deadline));
  });
}

absl::StatusOr<std::vector<ArrayInfo>> ListArrays(const Connection& connection, const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  PREFIXD_RETURN_IF_ERROR(connection.status());
  std::vector<ArrayInfo> arrays;
  for (const Server& server : connection.servers()) {
    const std::shared_ptr<const Connection> home = connection.To(server);
    v1::ListArraysRequest request;
    request.set_page_size(1000);
    do {
      v1::ListArraysResponse page;
      PREFIXD_RETURN_IF_ERROR(Ask(*home, &Stub::ListArrays, request, Rest(call, deadline), &page));
      for (const v1::Array& wire : page.arrays()) {
        PREFIXD_ASSIGN_OR_RETURN(ArrayInfo info, InfoOf(wire));
        arrays.push_back(std::move(info));
      }
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
  }
  return arrays;
}

}  // namespace internal
}  // namespace prefixd::client
