// The tokens that callers show, by the digests that an operator has written into a file. A line is a name, the SHA-256
// of a token, in hexadecimal, and the limits of that caller, if he has any; a name may have several tokens, so that
// they can be changed while both are good, and its limits on one of its lines, or the same on several.
//
//   # name   printf %s "$TOKEN" | sha256sum
//   alice    2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90 share_percent=80
//
// Threads: any; what is parsed does not change.
#ifndef PREFIXD_SERVER_RPC_TOKEN_FILE_H_
#define PREFIXD_SERVER_RPC_TOKEN_FILE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/call/caller_limits.h"

namespace prefixd {

// Whether a caller may be called that: 1 to 256 bytes of printable ASCII, with no blank at either end.
bool IsCallerName(std::string_view name);

class TokenTable {
 public:
  // Errors: FAILED_PRECONDITION: what is wrong in which line, without the line's text, for it may hold a token. A limit
  // of less than `min_caller_bytes` is wrong.
  static absl::StatusOr<TokenTable> Parse(std::string_view text, uint64_t min_caller_bytes = 1);

  // The name that a token has; empty if nobody has it. Takes as long wherever in the file it is, and for any token of
  // its length.
  std::string NameOf(std::string_view token) const;

  // By the names of those who have any.
  const absl::flat_hash_map<std::string, CallerLimits>& limits() const { return limits_; }

 private:
  using Digest = std::array<uint8_t, 32>;
  struct Entry {
    std::string name;
    Digest digest;
  };
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, CallerLimits> limits_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_TOKEN_FILE_H_
