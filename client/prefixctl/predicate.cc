#include "client/prefixctl/predicate.h"

#include "base/status.h"
#include "client/prefixctl/number.h"

namespace prefixd::cli {

absl::StatusOr<client::Predicate> ParsePredicate(DType dtype, std::string_view text) {
  const std::string_view trimmed = Trim(text);
  client::Predicate predicate;
  if (trimmed == "is-nan") {
    predicate.comparison = Comparison::kIsNan;
    return predicate;
  }
  if (trimmed == "is-finite" || trimmed == "finite") {
    predicate.comparison = Comparison::kIsFinite;
    return predicate;
  }
  const size_t end = trimmed.find_first_not_of("<>=!");
  if (!FromName(trimmed.substr(0, end), &predicate.comparison)) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is no predicate: expected <, <=, >, >=, == or != and a value, is-nan or is-finite"));
  }
  const std::string_view value = end == std::string_view::npos ? std::string_view() : Trim(trimmed.substr(end));
  if (value.empty()) return absl::InvalidArgumentError(StrCat("'", text, "' compares with nothing"));
  PREFIXD_ASSIGN_OR_RETURN(predicate.value, ParseNumber(dtype, value));
  return predicate;
}

}  // namespace prefixd::cli
