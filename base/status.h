// Errors that carry their reason and field, so that the wire can tell a caller what to do next.
//
//   return Error(absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask.inline.data",
//                "the mask has 3 bytes for 4 elements; expected one byte an element");
//
// The reasons are those of the table in proto/prefixd/v1/primitives.proto.
#ifndef PREFIXD_BASE_STATUS_H_
#define PREFIXD_BASE_STATUS_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace prefixd {

inline constexpr std::string_view kErrorDomain = "prefixd";

// A view as Abseil takes it: where Abseil was built for C++14, as in Debian 12, its string_view is not std's.
inline absl::string_view AbslView(std::string_view s) { return {s.data(), s.size()}; }

// absl::StrCat that takes std::string_view too, for the same reason.
template <class... Parts>
std::string StrCat(const Parts&... parts) {
  [[maybe_unused]] const auto adapt = [](const auto& part) -> decltype(auto) {
    if constexpr (std::is_same_v<std::decay_t<decltype(part)>, std::string_view>) {
      return AbslView(part);
    } else {
      return (part);
    }
  };
  return absl::StrCat(adapt(parts)...);
}

// A status with a reason (UPPER_SNAKE_CASE) and, if it is about one, the path of the request's field.
absl::Status Error(absl::StatusCode code, std::string_view reason, std::string_view field, std::string_view message);

inline absl::Status InvalidField(std::string_view reason, std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, reason, field, message);
}

// The reason and field of a status made by Error; empty if it has none.
std::string ErrorReason(const absl::Status& status);
std::string ErrorField(const absl::Status& status);

// The same status, of a field of a larger message: its path has that of the part, and a dot, in front.
absl::Status InPart(absl::Status status, std::string_view part);

// The same status with whom the exhausted quota is of: a caller's name, or "server".
absl::Status WithQuotaSubject(absl::Status status, std::string_view subject);
// Empty if it has none.
std::string QuotaSubject(const absl::Status& status);

// The same status with the time after which what was refused will not be refused again for the same reason.
absl::Status WithRetryDelay(absl::Status status, std::chrono::nanoseconds delay);
// Nothing if it is not known.
std::optional<std::chrono::nanoseconds> RetryDelay(const absl::Status& status);

}  // namespace prefixd

#define PREFIXD_RETURN_IF_ERROR(expr)                                 \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

#define PREFIXD_CONCAT_INNER_(a, b) a##b
#define PREFIXD_CONCAT_(a, b) PREFIXD_CONCAT_INNER_(a, b)
#define PREFIXD_ASSIGN_OR_RETURN(lhs, expr) PREFIXD_ASSIGN_OR_RETURN_(PREFIXD_CONCAT_(or_, __LINE__), lhs, expr)
#define PREFIXD_ASSIGN_OR_RETURN_(var, lhs, expr) \
  auto var = (expr);                              \
  if (!var.ok()) return std::move(var).status();  \
  lhs = *std::move(var)

#endif  // PREFIXD_BASE_STATUS_H_
