// prefixctl array: arrays that stay on the server's device, made, written, read and deleted by name.
#ifndef PREFIXD_CLIENT_PREFIXCTL_RESIDENT_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_RESIDENT_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/prefixctl/command.h"
#include "kernels/types.h"

namespace prefixd::cli {

// Adds array, and a command for each of what it does.
void AddArrayCommands(CLI::App& app, Commands* commands);

// Numbers of elements along each dimension.
// Example: "30x20" -> 30, 20
absl::StatusOr<std::vector<uint64_t>> ParseShape(std::string_view text);

// What to fill an array of that type with: zero, iota, random:SEED, or a value of the type. Nothing for zero.
absl::StatusOr<std::optional<client::FillSpec>> ParseFill(DType dtype, std::string_view text);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_RESIDENT_COMMAND_H_
