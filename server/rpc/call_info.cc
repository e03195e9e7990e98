#include "server/rpc/call_info.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "server/rpc/caller.h"
#include "server/rpc/identities.h"

namespace prefixd {
namespace {

constexpr char kTraceParent[] = "traceparent";

// W3C trace context, version 00: 00-{32 hex}-{16 hex}-{2 hex}. Anything else is dropped: gRPC refuses to send back
// some of what it accepts, and ends the process over it.
bool IsTraceParent(std::string_view value) {
  constexpr std::string_view kShape = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
  if (value.size() != kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool hex = (value[i] >= '0' && value[i] <= '9') || (value[i] >= 'a' && value[i] <= 'f');
    if (kShape[i] == 'h' ? !hex : value[i] != kShape[i]) return false;
  }
  return true;
}

}  // namespace

CallInfo CallInfoOf(const ServerContext& context, Rpc* rpc, std::string method, CallShape shape) {
  grpc::ServerContext* const call = &rpc->context();
  CallInfo info;
  info.method = std::move(method);
  info.caller = CallerOf(*call, context.user);
  info.cancel = [rpc] { rpc->Cancel(); };
  info.on_refused = [rpc] { rpc->CountRefused(); };
  if (context.identities != nullptr) {
    absl::StatusOr<std::string> name = context.identities->NameOf(*call);
    info.refusal = name.status();
    if (name.ok() && !name->empty()) {
      info.caller.name = *std::move(name);
      info.caller.is_address = false;
    }
  }
  info.shape = shape;
  const std::chrono::system_clock::time_point deadline = call->deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) info.deadline = absl::FromChrono(deadline);
  const auto& metadata = call->client_metadata();
  if (const auto it = metadata.find(kTraceParent); it != metadata.end()) {
    const std::string_view value(it->second.data(), it->second.size());
    if (IsTraceParent(value)) {
      info.trace_parent = value;  // The caller finds its own id in our reply and in our log.
      call->AddInitialMetadata(kTraceParent, info.trace_parent);
    }
  }
  return info;
}

}  // namespace prefixd
