// A progress line on the terminal, for work that takes longer than a second.
#ifndef PREFIXD_CLIENT_PREFIXCTL_PROGRESS_H_
#define PREFIXD_CLIENT_PREFIXCTL_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace prefixd::cli {

// Whether the result itself goes to standard output: where both are one screen they would mix.
enum class ResultTo { kStandardOutput, kFile };

// Writes to standard error, if that is a terminal which can wipe a line.
// Threads: one at a time.
class Progress {
 public:
  explicit Progress(ResultTo result_to);
  ~Progress() { Wipe(); }

  // So many bytes of the input are on their way; total_bytes if it is known.
  void Update(uint64_t done_bytes, std::optional<uint64_t> total_bytes);
  // The same line in other words, at once.
  void Show(std::string line);
  // Makes room for other output.
  void Wipe();

 private:
  const bool enabled_;
  const absl::Time start_;
  absl::Time next_;
  bool shown_ = false;
};

// Example: (50 MiB, 100 MiB, 2 s) -> "50.0 of 100.0 MiB (50%), 25.0 MiB/s, 2s left"
std::string ProgressLine(uint64_t done_bytes, std::optional<uint64_t> total_bytes, absl::Duration elapsed);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_PROGRESS_H_
