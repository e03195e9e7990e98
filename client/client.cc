#include "client/client.h"

#include <string>
#include <variant>
#include <vector>

#include "client/connection.h"

namespace prefixd::client {
Client::Client(std::string_view address, const ClientOptions& options)
    : Client(std::vector<std::string>{std::string(address)}, options) {}

Client::Client(absl::Span<const std::string> addresses, const ClientOptions& options)
    : connection_(std::make_unique<Connection>(addresses, options)) {}

Client::~Client() = default;

absl::StatusOr<Timing> Client::RunChunks(const Spec& spec, ChunkSource& source, ResultSink sink,
                                         const CallOptions& call) {
  return std::visit([&](const auto& one) { return internal::RunChunks(*connection_, one, source, sink, call); }, spec);
}

absl::StatusOr<ResidentReply> Client::RunOnArrays(const Spec& spec, const ArrayPlaces& places, ResultSink sink,
                                                  const CallOptions& call) {
  return std::visit([&](const auto& one) { return internal::RunOnArrays(one, places, sink, call); }, spec);
}

}  // namespace prefixd::client
