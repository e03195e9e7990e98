#include "base/fatal.h"

#include <cstdio>
#include <cstdlib>

namespace prefixd {

void Fatal(std::string_view message) {
  std::fprintf(stderr, "prefixd: fatal: %.*s\n", static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace prefixd
