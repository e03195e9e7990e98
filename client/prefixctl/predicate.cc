#include "client/prefixctl/predicate.h"

#include "base/status.h"
#include "client/prefixctl/number.h"

namespace prefixd::cli {
namespace {

absl::StatusOr<client::Predicate> ParseRange(DType dtype, std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos || !text.ends_with(')')) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is no range: expected [value, end), of value <= element < end"));
  }
  client::Predicate predicate = {.comparison = Comparison::kInRange};
  PREFIXD_ASSIGN_OR_RETURN(predicate.value, ParseNumber(dtype, Trim(text.substr(1, comma - 1))));
  PREFIXD_ASSIGN_OR_RETURN(predicate.end, ParseNumber(dtype, Trim(text.substr(comma + 1, text.size() - comma - 2))));
  return predicate;
}

}  // namespace

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
  if (trimmed.starts_with('[')) return ParseRange(dtype, trimmed);
  const size_t end = trimmed.find_first_not_of("<>=!");
  if (!FromName(trimmed.substr(0, end), &predicate.comparison)) {
    return absl::InvalidArgumentError(
        StrCat("'", text,
               "' is no predicate: expected <, <=, >, >=, == or != and a value, [value, end), is-nan or "
               "is-finite"));
  }
  const std::string_view value = end == std::string_view::npos ? std::string_view() : Trim(trimmed.substr(end));
  if (value.empty()) return absl::InvalidArgumentError(StrCat("'", text, "' compares with nothing"));
  PREFIXD_ASSIGN_OR_RETURN(predicate.value, ParseNumber(dtype, value));
  return predicate;
}

}  // namespace prefixd::cli
