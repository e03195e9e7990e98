// prefixctl: the client of prefixd for files, from the command line.
#include <signal.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "base/status.h"
#include "client/client.h"
#include "client/prefixctl/bench_command.h"
#include "client/prefixctl/command.h"
#include "client/prefixctl/compact_command.h"
#include "client/prefixctl/difference_command.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/load_command.h"
#include "client/prefixctl/option.h"
#include "client/prefixctl/reduce_command.h"
#include "client/prefixctl/resident_command.h"
#include "client/prefixctl/run_command.h"
#include "client/prefixctl/scan_command.h"
#include "client/prefixctl/server_commands.h"

namespace {

using prefixd::cli::Command;
using prefixd::cli::GlobalFlags;
using prefixd::cli::kNotEmpty;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

absl::Duration ParseTimeout(const std::string& text) {
  absl::Duration timeout;
  if (text == "none" || text == "0") return absl::InfiniteDuration();
  if (!absl::ParseDuration(text, &timeout) || timeout < absl::ZeroDuration()) {
    throw CLI::ValidationError("--timeout", "'" + text + "' is no duration such as 30s, 1.5m or none");
  }
  return timeout == absl::ZeroDuration() ? absl::InfiniteDuration() : timeout;
}

std::vector<std::string> ParseServers(const std::vector<std::string>& lists) {
  std::vector<std::string> servers;
  for (const std::string& list : lists) {
    for (const absl::string_view server : absl::StrSplit(list, ',')) {
      // It is a script's variable that was never set.
      if (server.empty()) throw CLI::ValidationError("--server", "an address in '" + list + "' is empty");
      servers.emplace_back(server);
    }
  }
  return servers;
}

// What there is to say beside gRPC's message where no server has spoken.
std::string ConnectionError(const std::vector<std::string>& servers, const std::string& message) {
  const std::string server = absl::StrJoin(servers, " or ");
  const auto says = [&](std::string_view what) { return message.find(what) != std::string::npos; };
  if (!says("failed to connect") && !says("resolution failed")) {
    return prefixd::StrCat("the connection to prefixd at ", server, " was lost (", message, ")");
  }
  std::string error = prefixd::StrCat("no prefixd answers at ", server, " (", message, ")");
  // Something else that answers there would be in its way.
  const bool could_start = servers.size() == 1 && (says("refused") || says("No such file"));
  if (could_start) error += prefixd::StrCat("\nStart one with: prefixd --listen ", server);
  return error;
}

// Says what went wrong; returns the exit code.
int ReportError(const std::string& command, const GlobalFlags& global, const absl::Status& status) {
  if (prefixd::cli::IsClosedPipe(status)) return kFailed;  // Whoever closed it knows.
  std::string message(status.message());
  if (prefixd::cli::IsUsageError(status)) {
    std::cerr << "prefixctl: " << command << ": " << message << "\nRun prefixctl " << command
              << " --help for more information.\n";
    return kWrongUsage;
  }
  const std::string reason = prefixd::ErrorReason(status);
  const bool of_call = prefixd::client::IsCallStatus(status);
  const bool too_late = absl::IsDeadlineExceeded(status);
  if (of_call && absl::IsUnavailable(status) && reason.empty()) message = ConnectionError(global.servers, message);
  if (too_late && global.timeout) {
    message += prefixd::StrCat(" (--timeout ", absl::FormatDuration(*global.timeout), ")");
  }
  // A code for what is wrong with a file would look as if the server had said it.
  std::string code;
  if (of_call || too_late) code = absl::StatusCodeToString(status.code());
  if (of_call && !reason.empty()) code += " (" + reason + ")";
  std::cerr << "prefixctl: " << command << ": " << code << (code.empty() ? "" : ": ") << message << '\n';
  return kFailed;
}

// As it is written on the command line.
// Example: "scan", "array create"
std::string NameOf(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent->get_parent() == nullptr ? command.get_name() : NameOf(*parent) + " " + command.get_name();
}

// The chosen command, as far as it is known: `array` where none of its own is named. Null: there is none.
const CLI::App* Chosen(const CLI::App& app) {
  const CLI::App* chosen = nullptr;
  for (auto next = app.get_subcommands(); !next.empty(); next = chosen->get_subcommands()) chosen = next.front();
  return chosen;
}

// Example: "scan, reduce or compact"
std::string NamesOf(const CLI::App& app) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string names;
  for (const CLI::App* command : commands) {
    if (!names.empty()) names += command == commands.back() ? " or " : ", ";
    names += command->get_name();
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  prefixd::TuneProcess();
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // What fails is said below, once.
  prefixd::cli::OpenStandardStreams();
  signal(SIGPIPE, SIG_IGN);  // A closed pipe is an error of the write: temporary files go away as after any other.
  prefixd::cli::RemoveTemporaryFilesOnSignal();

  CLI::App app("Scan, reduce and compact arrays on a prefixd server.", "prefixctl");
  app.set_version_flag("--version", "prefixctl " PREFIXD_VERSION);
  app.require_subcommand(0, 1);  // That there is none is found below, with better words.
  app.fallthrough();
  app.footer(
      "Files: *.npy is NumPy's format (one dimension); *.txt, *.csv and - are text with one number a line; anything\n"
      "else is raw little-endian elements, which need --type. OUTPUT is replaced only once it is complete.\n"
      "Exit codes: 0 done, 1 the call or a file failed, 2 wrong usage.\n");
  GlobalFlags global;
  app.add_option_function<std::vector<std::string>>(
         "--server", [&](const std::vector<std::string>& lists) { global.servers = ParseServers(lists); },
         "Address: HOST:PORT, unix:PATH, or dns:///NAME:PORT for all servers behind a name; several separated by "
         "commas, "
         "or repeated: a call that one refuses goes to another at once")
      ->type_name("ADDRESS,...")
      ->allow_extra_args(false)
      ->envname("PREFIXD_SERVER")
      ->default_str(global.servers.front());
  app.add_flag("--tls", global.connection.tls,
               "Speak TLS with servers whose certificates the system's authorities have signed; never to Unix sockets");
  app.add_option("--ca", global.connection.ca_file,
                 "PEM file with the authorities that are trusted in place of the system's; implies --tls")
      ->type_name("FILE")
      ->check(kNotEmpty);
  CLI::Option* const certificate =
      app.add_option("--certificate", global.connection.certificate_file,
                     "PEM file with a certificate for servers that want one, and those between it and its authority; "
                     "implies --tls")
          ->type_name("FILE")
          ->check(kNotEmpty);
  CLI::Option* const key = app.add_option("--key", global.connection.key_file,
                                          "PEM file with the certificate's private key, without a password, which not "
                                          "everybody may read")
                               ->type_name("FILE")
                               ->check(kNotEmpty)
                               ->needs(certificate);
  certificate->needs(key);
  app.add_option("--token-file", global.connection.token_file,
                 "File with a token alone, which not everybody may read: sent with each call, over TLS or to a Unix "
                 "socket only")
      ->type_name("FILE")
      ->check(kNotEmpty);
  app.add_option_function<std::string>(
         "--timeout", [&](const std::string& text) { global.timeout = ParseTimeout(text); },
         "Such as 30s; 0 or none for no limit (default: none, but 5s for algorithms, info, health and array's list, "
         "stat "
         "and delete, 10s for load's requests)")
      ->type_name("DURATION");
  app.add_flag("--json", global.json, "Print one JSON object on standard output");

  prefixd::cli::Commands commands;
  AddScanCommand(app, &commands);
  AddReduceCommand(app, &commands);
  AddCompactCommand(app, &commands);
  AddDifferenceCommand(app, &commands);
  AddArrayCommands(app, &commands);
  AddRunCommand(app, &commands);
  AddBenchCommand(app, &commands);
  AddLoadCommands(app, &commands);
  AddServerCommands(app, &commands);

  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("A command (" + NamesOf(app) + ")");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const CLI::App* const chosen = Chosen(app);
    std::string message = error.what();
    std::string command = "prefixctl";
    if (chosen != nullptr) {
      command += " " + NameOf(*chosen);
    } else if (!app.remaining().empty() && !app.remaining().front().starts_with('-')) {
      message = "there is no command '" + app.remaining().front() + "'";
    }
    std::cerr << "prefixctl: " << message << "\nRun " << command << " --help for more information.\n";
    return kWrongUsage;
  }

  const Command& command =
      *std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.app->parsed(); });
  if (!global.timeout) global.timeout = command.default_timeout;
  const absl::Status status = command.run(global);
  return status.ok() ? 0 : ReportError(NameOf(*command.app), global, status);
}
