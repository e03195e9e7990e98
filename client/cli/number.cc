#include "client/cli/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "kernels/status.h"

namespace prefixd::cli {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string Shown(std::string_view word) { return absl::CHexEscape(AbslView(word.substr(0, 40))); }

absl::StatusOr<Value> ParseNumber(DType dtype, std::string_view text) {
  return VisitDType(dtype, [&](auto tag) -> absl::StatusOr<Value> {
    using T = typename decltype(tag)::type;
    std::string_view digits = text;
    // from_chars knows no plus sign.
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    const char* const end = digits.data() + digits.size();
    T number{};
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    const bool whole = !digits.empty() && stop == end;
    if (whole && error == std::errc()) return Value::Of(number);
    const std::string shown = Shown(text);
    if (whole && error == std::errc::result_out_of_range) {
      if constexpr (std::is_floating_point_v<T>) {
        // Too small or too large? from_chars does not say. What is too small becomes the nearest that there is.
        const std::string terminated(digits);
        number = std::is_same_v<T, float> ? std::strtof(terminated.c_str(), nullptr)
                                          : static_cast<T>(std::strtod(terminated.c_str(), nullptr));
        if (std::isfinite(number)) return Value::Of(number);
      }
      return absl::InvalidArgumentError(StrCat("'", shown, "' is out of the range of ", Name(dtype)));
    }
    return absl::InvalidArgumentError(StrCat("'", shown, "' is no number of type ", Name(dtype)));
  });
}

void AppendNumber(DType dtype, const std::byte* element, std::string* out) {
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T number;
    std::memcpy(&number, element, sizeof(number));
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(number)) {
        *out += "nan";
        return;
      }
    }
    char text[32];  // The longest f64 has 24 characters.
    const auto [end, error] = std::to_chars(text, text + sizeof(text), number);
    out->append(text, end);
  });
}

std::string FormatNumber(DType dtype, Value value) {
  std::string text;
  AppendNumber(dtype, reinterpret_cast<const std::byte*>(&value.bits), &text);
  return text;
}

}  // namespace prefixd::cli
