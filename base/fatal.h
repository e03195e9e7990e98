// The end of a process that has found a mistake in itself.
#ifndef PREFIXD_BASE_FATAL_H_
#define PREFIXD_BASE_FATAL_H_

#include <string_view>

namespace prefixd {

// Prints the message to standard error and aborts, in every build. For what only a mistake in this program can bring
// about, and what would go on with wrong results: whatever a caller can cause is an absl::Status.
[[noreturn]] void Fatal(std::string_view message);

}  // namespace prefixd

#endif  // PREFIXD_BASE_FATAL_H_
