#include "client/prefixctl/number.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "base/status.h"

namespace prefixd::cli {
namespace {

constexpr uint64_t kRangeFactor = 4;

// "1000" or "2^20"; above 0.
std::optional<uint64_t> ParseSize(std::string_view text) {
  const size_t caret = text.find('^');
  const std::optional<uint64_t> base = ParseCount(text.substr(0, caret));
  const std::optional<uint64_t> exponent = caret == std::string_view::npos ? 1 : ParseCount(text.substr(caret + 1));
  if (!base || !exponent || *base == 0 || *exponent > 64) return std::nullopt;
  uint64_t size = 1;
  for (uint64_t i = 0; i < *exponent; ++i) {
    if (__builtin_mul_overflow(size, *base, &size)) return std::nullopt;
  }
  return size;
}

}  // namespace

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
      if constexpr (kIsFloating<T>) {
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

std::optional<uint64_t> ParseCount(std::string_view digits) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return count;
}

absl::StatusOr<std::vector<uint64_t>> ParseSizes(std::string_view text) {
  std::vector<uint64_t> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const std::string_view word = text.substr(begin, text.find(',', begin) - begin);
    begin += word.size() + 1;
    const size_t dots = word.find("..");
    const std::optional<uint64_t> first = ParseSize(word.substr(0, dots));
    const std::optional<uint64_t> last = dots == std::string_view::npos ? first : ParseSize(word.substr(dots + 2));
    if (!first || !last || *first > *last) {
      return absl::InvalidArgumentError(StrCat("'", Shown(word),
                                               "' is no size: expected a number of elements above 0, such as 1000 or "
                                               "2^20, or a range such as 2^10..2^20"));
    }
    for (uint64_t size = *first; size < *last; size *= kRangeFactor) {
      sizes.push_back(size);
      if (size > *last / kRangeFactor) break;
    }
    sizes.push_back(*last);
  }
  return sizes;
}

void AppendNumber(DType dtype, const std::byte* element, std::string* out) {
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T number;
    std::memcpy(&number, element, sizeof(number));
    if constexpr (kIsFloating<T>) {
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
