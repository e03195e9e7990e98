// prefixctl load and prefixctl wire: requests of many callers to a server, or to its echo, shown as they are measured.
#ifndef PREFIXD_CLIENT_PREFIXCTL_LOAD_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_LOAD_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/load/load.h"
#include "client/load/mix.h"
#include "client/load/server_sender.h"
#include "client/prefixctl/command.h"

namespace prefixd::cli {

struct LoadFlags {
  std::vector<uint64_t> callers;           // A closed loop each; of open loops one number at most. Empty: the default.
  std::vector<uint64_t> rates_per_second;  // An open loop each.
  uint32_t channels = 1;
  std::vector<load::Operation> mix = {{}};
  std::optional<uint64_t> seed;  // Absent: a random one.
  double warmup_seconds = 1;
  double seconds = 3;
  bool stable = false;
  bool csv = false;
  std::optional<std::string> plot;  // An SVG file.
};

// Adds load and wire, which have the same flags.
void AddLoadCommands(CLI::App& app, Commands* commands);

// Numbers from 1 to `most`, 64 of them at most.
// Example: "1,4,16" -> 1, 4, 16
absl::StatusOr<std::vector<uint64_t>> ParseCounts(std::string_view text, uint64_t most);

// Operations as primitive:type:size, 32 of them at most, each with a weight of 1 to 1,000,000, which is 1 unless said.
// Example: "scan:f32:1024=8,reduce:f64:2^16"
absl::StatusOr<std::vector<load::Operation>> ParseMix(std::string_view text);

// What the flags ask for, in order.
absl::StatusOr<std::vector<load::Load>> LoadsOf(const LoadFlags& flags);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_LOAD_COMMAND_H_
