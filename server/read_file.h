// Reads the files that an operator gives to the server, some of them while it serves.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_READ_FILE_H_
#define PREFIXD_SERVER_READ_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace prefixd {

// A file's content. Errors: FAILED_PRECONDITION, with flag and path, if it can't be read, is no ordinary file or has
// more than 4 MiB.
absl::StatusOr<std::string> ReadFile(std::string_view flag, const std::string& path);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_READ_FILE_H_
