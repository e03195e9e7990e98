// The commands of prefixctl. main.cc turns arguments into these structs, and a status into an exit code.
#ifndef PREFIXD_CLIENT_CLI_COMMANDS_H_
#define PREFIXD_CLIENT_CLI_COMMANDS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/array_reader.h"
#include "client/client.h"
#include "kernels/types.h"

namespace prefixd::cli {

inline constexpr absl::Duration kStatusTimeout = absl::Seconds(5);

struct GlobalFlags {
  std::string server = "127.0.0.1:50051";
  std::optional<absl::Duration> timeout;  // Absent: none for data, kStatusTimeout for info, algorithms and health.
  bool json = false;
};

// What scan, reduce and compact share.
struct ArrayFlags {
  std::string input;
  std::string output = "-";      // Not of reduce.
  std::optional<Format> format;  // Of input, and of output where its name says nothing; absent: by suffix.
  std::optional<DType> dtype;
  Algorithm algorithm;
  // Of scan and reduce.
  std::optional<DType> out_dtype;  // Absent: the array's type.
  Op op = Op::kSum;
  std::optional<std::string> init;  // Read as the output type.
};

struct ScanFlags : ArrayFlags {
  ScanKind kind = ScanKind::kInclusive;
  bool reverse = false;
};

struct CompactFlags : ArrayFlags {
  std::optional<std::string> where;  // This or the mask.
  std::optional<std::string> mask;
  bool invert = false;
  std::optional<std::string> indices;
};

// Errors: the call's or the file's; those for which IsUsageError holds are the command line's.
absl::Status RunScan(const GlobalFlags& global, const ScanFlags& flags);
absl::Status RunReduce(const GlobalFlags& global, const ArrayFlags& flags);
absl::Status RunCompact(const GlobalFlags& global, const CompactFlags& flags);
absl::Status RunInfo(const GlobalFlags& global);
absl::Status RunAlgorithms(const GlobalFlags& global);
// FAILED_PRECONDITION if the server answers, but does not serve.
absl::Status RunHealth(const GlobalFlags& global);

absl::Status UsageError(std::string_view message);
bool IsUsageError(const absl::Status& status);

client::Client MakeClient(const GlobalFlags& global);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_CLI_COMMANDS_H_
