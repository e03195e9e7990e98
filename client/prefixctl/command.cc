#include "client/prefixctl/command.h"

#include "base/status.h"

namespace prefixd::cli {
namespace {

constexpr std::string_view kUsage = "USAGE";

}  // namespace

absl::Status UsageError(std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, kUsage, "", message);
}

bool IsUsageError(const absl::Status& status) { return ErrorReason(status) == kUsage; }

// A person waits: after a second without a server it is time to say so.
client::Client MakeClient(const GlobalFlags& global) {
  client::ClientOptions options = global.connection;
  options.retry_window = absl::Seconds(1);
  return client::Client(global.servers, options);
}

}  // namespace prefixd::cli
