// Numbers as text: strict on the way in, exact on the way out.
#ifndef PREFIXD_CLIENT_PREFIXCTL_NUMBER_H_
#define PREFIXD_CLIENT_PREFIXCTL_NUMBER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/types.h"

namespace prefixd::cli {

// Errors: INVALID_ARGUMENT for what is not, entirely, a number of the type, or is too large for it. Floats take nan,
//         inf and infinity in any case, and round once, also what is too small; integers are decimal.
absl::StatusOr<Value> ParseNumber(DType dtype, std::string_view text);

// Decimal digits, and nothing else; nullopt for what is not that or exceeds 64 bits.
std::optional<uint64_t> ParseCount(std::string_view digits);

// Sizes in elements: numbers, powers such as 2^20, and ranges, which grow by factors of four up to their end.
// Example: "1000,2^10..2^13" -> 1000, 1024, 4096, 8192
absl::StatusOr<std::vector<uint64_t>> ParseSizes(std::string_view text);

// The shortest text that reads back as the same value; every NaN is "nan", infinities are "inf" and "-inf".
void AppendNumber(DType dtype, const std::byte* element, std::string* out);
std::string FormatNumber(DType dtype, Value value);

// The beginning of what a file has in place of a number, fit for a message: a terminal must not obey it.
std::string Shown(std::string_view word);

// Without the blanks around it, carriage returns among them.
std::string_view Trim(std::string_view text);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_NUMBER_H_
