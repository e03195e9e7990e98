// What a command of prefixctl is. Each stands in a file of its own, which offers one function that adds it; main.cc
// calls these, parses, and runs what was chosen.
#ifndef PREFIXD_CLIENT_PREFIXCTL_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_COMMAND_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace CLI {
class App;
}

namespace prefixd::cli {

// The flags that every command has.
struct GlobalFlags {
  std::vector<std::string> servers = {"127.0.0.1:50051"};
  client::ClientOptions connection;       // --tls and so on; the rest of it is each command's.
  std::optional<absl::Duration> timeout;  // --timeout, else the command's default. Absent: no limit.
  bool json = false;

  absl::Duration TimeLimit() const { return timeout.value_or(absl::InfiniteDuration()); }
};

// Owns: the flags of its own that `run` reads; the subcommand is that of the application to which it was added.
struct Command {
  CLI::App* app;
  // Errors: the call's or the file's; those for which IsUsageError holds are the command line's.
  std::function<absl::Status(const GlobalFlags& global)> run;
  std::optional<absl::Duration> default_timeout = {};  // Where there is no --timeout. Absent: no limit.
};
using Commands = std::vector<Command>;

absl::Status UsageError(std::string_view message);
bool IsUsageError(const absl::Status& status);

client::Client MakeClient(const GlobalFlags& global);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_COMMAND_H_
