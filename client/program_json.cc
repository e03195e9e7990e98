#include "client/program.h"

#include <google/protobuf/util/json_util.h>

#include "base/status.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/rpc.h"
#include "prefixd/v1/programs.grpc.pb.h"

namespace prefixd::client::internal {

absl::StatusOr<std::string> RunProgram(const Connection& connection, std::string_view program_json,
                                       const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  v1::RunRequest request;
  const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(program_json), &request);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        StrCat("this is no program as JSON, which is a prefixd.v1.RunRequest: ", parsed.ToString()));
  }
  const Server& server = *connection.Order().front();
  AttemptContext context(server, call, Deadline(call));
  v1::RunResponse response;
  PREFIXD_RETURN_IF_ERROR(
      UnaryStatus(FromGrpc(v1::ProgramService::NewStub(server.channel())->Run(context.get(), request, &response))));
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto printed = google::protobuf::util::MessageToJsonString(response, &json, options);
  if (!printed.ok()) return absl::InternalError(StrCat("the result is none that JSON has: ", printed.ToString()));
  return json;
}

}  // namespace prefixd::client::internal
