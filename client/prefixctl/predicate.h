// The argument of --where.
#ifndef PREFIXD_CLIENT_PREFIXCTL_PREDICATE_H_
#define PREFIXD_CLIENT_PREFIXCTL_PREDICATE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "kernels/types.h"

namespace prefixd::cli {

// Errors:   INVALID_ARGUMENT.
// Example:  "> 0", "<=-1.5", "!= nan", "[0, 10)", "is-nan", "is-finite", "finite"
absl::StatusOr<client::Predicate> ParsePredicate(DType dtype, std::string_view text);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_PREDICATE_H_
