// Callers for tests of what is counted for each.
#ifndef PREFIXD_TESTS_SERVER_CALLERS_H_
#define PREFIXD_TESTS_SERVER_CALLERS_H_

#include <string>

#include "base/status.h"
#include "server/call/caller.h"

namespace prefixd {

// With a name of his own.
inline Caller Known(const std::string& name) { return {.name = name, .connection = "x", .is_address = false}; }
// Without one, by one of the connections of an address.
inline Caller At(const std::string& address, int connection = 0) {
  return {.name = address, .connection = StrCat(address, ":", connection)};
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_CALLERS_H_
