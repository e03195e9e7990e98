#include "client/prefixctl/number.h"

#include <bit>
#include <cfenv>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
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

// A decimal number, or if no f64 is equal to it, its neighbour with an odd last bit: what is rounded from that to fewer
// bits is rounded as the number itself.
double ToOdd(const std::string& digits) {
  std::fesetround(FE_DOWNWARD);
  const double below = std::strtod(digits.c_str(), nullptr);
  std::fesetround(FE_UPWARD);
  const double above = std::strtod(digits.c_str(), nullptr);
  std::fesetround(FE_TONEAREST);
  return (std::bit_cast<uint64_t>(below) & 1) != 0 ? below : above;  // They are equal or neighbours.
}

template <class T>
T Nearest(const std::string& digits) {
  if constexpr (kIsNarrowFloat<T>) return static_cast<T>(ToOdd(digits));
  if constexpr (std::is_same_v<T, float>) return std::strtof(digits.c_str(), nullptr);
  return static_cast<T>(std::strtod(digits.c_str(), nullptr));
}

// The shortest decimal that is rounded to the number, as an f64, which prints as that.
template <class T>
double Shortest(T number) {
  for (int digits = 1;; ++digits) {
    char text[32];
    const auto [end, error] =
        std::to_chars(text, text + sizeof(text), static_cast<float>(number), std::chars_format::scientific, digits - 1);
    double shortest = 0;
    std::from_chars(text, end, shortest);
    if (T(shortest) == number || digits == std::numeric_limits<T>::max_digits10) return shortest;
  }
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
    std::conditional_t<kIsNarrowFloat<T>, double, T> number{};  // from_chars has no floats of 16 bits.
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (digits.empty() || stop != end) {
      return absl::InvalidArgumentError(StrCat("'", Shown(text), "' is no number of type ", Name(dtype)));
    }
    if constexpr (kIsFloating<T>) {
      if (error == std::errc() && !(kIsNarrowFloat<T> && std::isfinite(number))) {
        return Value::Of(static_cast<T>(number));
      }
      // Too small or too large? from_chars does not say. What is too small becomes the nearest that there is.
      const T nearest = Nearest<T>(std::string(digits));
      if (std::isfinite(nearest)) return Value::Of(nearest);
    } else if (error == std::errc()) {
      return Value::Of(number);
    }
    return absl::InvalidArgumentError(StrCat("'", Shown(text), "' is out of the range of ", Name(dtype)));
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
    const auto print = [&](auto printed) {
      const auto [end, error] = std::to_chars(text, text + sizeof(text), printed);
      out->append(text, end);
    };
    if constexpr (kIsNarrowFloat<T>) {
      print(Shortest(number));
    } else {
      print(number);
    }
  });
}

std::string FormatNumber(DType dtype, Value value) {
  std::string text;
  AppendNumber(dtype, reinterpret_cast<const std::byte*>(&value.bits), &text);
  return text;
}

}  // namespace prefixd::cli
