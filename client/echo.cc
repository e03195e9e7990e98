#include "client/echo.h"

#include <memory>
#include <thread>

#include "base/status.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/rpc.h"
#include "prefixd/v1/diagnostics.grpc.pb.h"

namespace prefixd::client {
namespace {

absl::Status CheckLength(uint64_t received_bytes, uint64_t sent_bytes) {
  if (received_bytes == sent_bytes) return absl::OkStatus();
  return absl::InternalError(StrCat("the server sent ", received_bytes, " of ", sent_bytes, " bytes back"));
}

v1::EchoRequest RequestOf(const Chunk& chunk) {
  v1::EchoRequest request;
  request.set_data(chunk.values.data(), chunk.values.size());
  return request;
}

}  // namespace

namespace internal {

absl::Status Echo(const Connection& connection, ChunkSource& source, const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  const Server& server = *connection.Order().front();
  AttemptContext context(server, call, Deadline(call));
  const auto stub = v1::DiagnosticsService::NewStub(server.channel());
  PREFIXD_ASSIGN_OR_RETURN(Chunk chunk, source.Next(kMaxPayloadBytes));
  v1::EchoResponse response;
  if (chunk.last) {
    PREFIXD_RETURN_IF_ERROR(FromGrpc(stub->Echo(context.get(), RequestOf(chunk), &response)));
    return CheckLength(response.data().size(), chunk.values.size());
  }
  const auto stream = stub->StreamEcho(context.get());
  absl::Status source_status;
  uint64_t sent_bytes = 0;
  std::thread writer([&] {
    while (stream->Write(RequestOf(chunk))) {
      sent_bytes += chunk.values.size();
      if (chunk.last || chunk.values.empty()) break;
      absl::StatusOr<Chunk> next = source.Next(kMaxPayloadBytes);
      source_status = next.status();
      if (!next.ok()) return context.get()->TryCancel();
      chunk = *next;
    }
    stream->WritesDone();
  });
  uint64_t received_bytes = 0;
  while (stream->Read(&response)) received_bytes += response.data().size();
  writer.join();
  const absl::Status status = FromGrpc(stream->Finish());
  PREFIXD_RETURN_IF_ERROR(source_status);
  PREFIXD_RETURN_IF_ERROR(status);
  return CheckLength(received_bytes, sent_bytes);
}

}  // namespace internal
}  // namespace prefixd::client
