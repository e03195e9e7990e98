#include "client/cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace prefixd::cli {

std::string ProgressLine(uint64_t done_bytes, std::optional<uint64_t> total_bytes, absl::Duration elapsed) {
  constexpr double kMiB = 1 << 20;
  const double rate = static_cast<double>(done_bytes) / absl::ToDoubleSeconds(elapsed);
  std::string line = absl::StrFormat("%.1f", done_bytes / kMiB);
  if (total_bytes && *total_bytes > 0) {
    absl::StrAppendFormat(&line, " of %.1f MiB (%d%%), %.1f MiB/s", *total_bytes / kMiB,
                          static_cast<int>(100.0 * done_bytes / *total_bytes), rate / kMiB);
    if (done_bytes <= *total_bytes && rate > 0) {
      const absl::Duration left = absl::Seconds((*total_bytes - done_bytes) / rate);
      absl::StrAppend(&line, ", ", absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))), " left");
    }
  } else {
    absl::StrAppendFormat(&line, " MiB, %.1f MiB/s", rate / kMiB);
  }
  return line;
}

Progress::Progress()
    : enabled_(isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0),
      start_(absl::Now()),
      next_(start_ + absl::Seconds(1)) {}

void Progress::Wipe() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Progress::Update(uint64_t done_bytes, std::optional<uint64_t> total_bytes) {
  if (!enabled_) return;
  const absl::Time now = absl::Now();
  if (now < next_) return;
  next_ = now + absl::Milliseconds(200);
  shown_ = true;
  std::fputs(("\r\x1b[K" + ProgressLine(done_bytes, total_bytes, now - start_)).c_str(), stderr);
}

}  // namespace prefixd::cli
