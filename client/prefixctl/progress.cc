#include "client/prefixctl/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace prefixd::cli {
namespace {

bool IsCapableTerminal(int fd) {
  const char* const term = std::getenv("TERM");
  return isatty(fd) != 0 && term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

// A line that is longer than the screen could not be wiped. One column less: behind the last some wrap at once.
void CutToWidth(std::string* line) {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
  if (line->size() >= size.ws_col) line->resize(size.ws_col - 1);
}

}  // namespace

std::string ProgressLine(uint64_t done_bytes, std::optional<uint64_t> total_bytes, absl::Duration elapsed) {
  constexpr double kMiB = 1 << 20;
  const auto done = static_cast<double>(done_bytes);
  const double rate = done / absl::ToDoubleSeconds(elapsed);
  std::string line = absl::StrFormat("%.1f", done / kMiB);
  if (total_bytes && *total_bytes > 0) {
    const auto total = static_cast<double>(*total_bytes);
    absl::StrAppendFormat(&line, " of %.1f MiB (%d%%), %.1f MiB/s", total / kMiB, static_cast<int>(100 * done / total),
                          rate / kMiB);
    if (done <= total && rate > 0) {
      const absl::Duration left = absl::Seconds((total - done) / rate);
      absl::StrAppend(&line, ", ", absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))), " left");
    }
  } else {
    absl::StrAppendFormat(&line, " MiB, %.1f MiB/s", rate / kMiB);
  }
  return line;
}

Progress::Progress(ResultTo result_to)
    : enabled_(IsCapableTerminal(STDERR_FILENO) &&
               !(result_to == ResultTo::kStandardOutput && isatty(STDOUT_FILENO) != 0)),
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
  Show(ProgressLine(done_bytes, total_bytes, now - start_));
}

void Progress::Show(std::string line) {
  if (!enabled_) return;
  shown_ = true;
  CutToWidth(&line);
  std::fputs(("\r\x1b[K" + line).c_str(), stderr);
}

}  // namespace prefixd::cli
