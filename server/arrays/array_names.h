// Names of resident arrays: "arrays/INSTANCE-ID". INSTANCE is the server's, 16 hexadecimal digits, anew at every start,
// so that a name of another server, or of this one before a restart, can be told from one that has expired. ID is 128
// random bits, which nobody guesses.
//
// Threads: any.
#ifndef PREFIXD_SERVER_ARRAYS_ARRAY_NAMES_H_
#define PREFIXD_SERVER_ARRAYS_ARRAY_NAMES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace prefixd {

class ArrayNames {
 public:
  ArrayNames();  // A new instance's.

  // A name that there was never before. Cost: a system call.
  std::string New() const;

  // OK for a name that this instance may have given out. field: where it stands, for the message.
  // Errors: INVALID_ARGUMENT (ARRAY_NAME) for what is no name; NOT_FOUND (ARRAY_ELSEWHERE) for one of another instance.
  absl::Status Check(std::string_view name, std::string_view field) const;

 private:
  const std::string prefix_;  // "arrays/INSTANCE-"
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_ARRAYS_ARRAY_NAMES_H_
