#include "server/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace prefixd {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;

}  // namespace

absl::StatusOr<std::string> ReadFile(std::string_view flag, const std::string& path) {
  const auto wrong = [&](std::string_view what) {
    return absl::FailedPreconditionError(StrCat(flag, " ", path, ": ", what));
  };
  // A pipe that nobody writes to would be waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return wrong(strerror(errno));
  const absl::Cleanup close_it = [fd] { close(fd); };
  struct stat status = {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return wrong("is no ordinary file");
  std::string content;
  while (true) {
    char block[16384];
    const ssize_t size = read(fd, block, sizeof(block));
    if (size < 0) return wrong(strerror(errno));
    if (size == 0) return content;
    content.append(block, static_cast<size_t>(size));
    if (content.size() > kMaxBytes) return wrong(StrCat("has more than ", kMaxBytes, " bytes"));
  }
}

}  // namespace prefixd
