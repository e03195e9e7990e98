#include "client/prefixctl/server_commands.h"

#include <CLI/CLI.hpp>
#include <string>

#include "base/status.h"
#include "client/prefixctl/report.h"

namespace prefixd::cli {
namespace {

constexpr absl::Duration kStatusTimeout = absl::Seconds(5);

absl::StatusOr<client::ServerInfo> GetInfo(const GlobalFlags& global) {
  return MakeClient(global).GetServerInfo({.timeout = global.TimeLimit()});
}

absl::Status RunInfo(const GlobalFlags& global) {
  PREFIXD_ASSIGN_OR_RETURN(const client::ServerInfo info, GetInfo(global));
  return global.json ? PrintJson(ToJson(info)) : PrintText(Table(info));
}

absl::Status RunAlgorithms(const GlobalFlags& global) {
  PREFIXD_ASSIGN_OR_RETURN(const client::ServerInfo info, GetInfo(global));
  return global.json ? PrintJson(AlgorithmsToJson(info)) : PrintText(AlgorithmTable(info));
}

absl::Status RunHealth(const GlobalFlags& global) {
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const bool serving, client.CheckHealth({.timeout = global.TimeLimit()}));
  const std::string status = serving ? "SERVING" : "NOT_SERVING";
  PREFIXD_RETURN_IF_ERROR(global.json ? PrintJson(Json{{"status", status}}) : PrintText(status + "\n"));
  return serving ? absl::OkStatus() : absl::FailedPreconditionError("the server takes no work at the moment");
}

}  // namespace

void AddServerCommands(CLI::App& app, Commands* commands) {
  CLI::App* algorithms = app.add_subcommand("algorithms", "What the server's device can run, and what each costs");
  algorithms->footer(
      "Costs are for n elements: work in operations, depth in the longest chain of them, traffic in elements read and\n"
      "written. [/N]: items per thread, 1 to 16, may follow; [/padded]: so may that. limit: the longest array.\n");
  CLI::App* info = app.add_subcommand("info", "What the server is, serves and is doing");
  CLI::App* health = app.add_subcommand("health", "Whether the server serves: exit code 0 if it does");
  commands->push_back({algorithms, RunAlgorithms, kStatusTimeout});
  commands->push_back({info, RunInfo, kStatusTimeout});
  commands->push_back({health, RunHealth, kStatusTimeout});
}

}  // namespace prefixd::cli
