#include "server/rpc/caller_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "server/call/rate_limit.h"

namespace prefixd {
namespace {

constexpr size_t kMaxLines = 10'000;
constexpr size_t kMaxNameBytes = 256;  // As many as a certificate's subject has here.
constexpr std::string_view kBlanks = " \t\r";
constexpr uint64_t kMaxCount = uint64_t{1} << 20;
constexpr uint64_t kMaxBytes = uint64_t{1} << 50;

// Takes the name off the line's begin; nothing if it is none.
std::optional<std::string> TakeName(std::string_view* line) {
  if (!line->starts_with('"')) {
    const std::string_view name = line->substr(0, line->find_first_of(kBlanks));
    line->remove_prefix(name.size());
    return std::string(name);
  }
  std::string name;
  for (size_t i = 1; i < line->size(); ++i) {
    char c = (*line)[i];
    if (c == '"') {
      line->remove_prefix(i + 1);
      if (!line->empty() && kBlanks.find(line->front()) == std::string_view::npos) return std::nullopt;
      return name;
    }
    if (c == '\\' && ++i < line->size()) c = (*line)[i];
    name += c;
  }
  return std::nullopt;  // The second quote is missing.
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return absl::ascii_isprint(c); });
}

struct Field {
  std::string_view key;
  std::optional<uint64_t> CallerLimits::*limit;
  uint64_t least;
  uint64_t most;
};

}  // namespace

absl::Status CallerLine::Error(std::string_view what) const {
  return absl::FailedPreconditionError(StrCat("line ", number, ": ", what));
}

absl::StatusOr<std::vector<CallerLine>> ReadCallerLines(std::string_view text) {
  std::vector<CallerLine> lines;
  CallerLine line;
  for (const absl::string_view whole : absl::StrSplit(AbslView(text), '\n')) {
    ++line.number;
    std::string_view rest(whole.data(), whole.size());
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(kBlanks)));
    if (rest.empty() || rest.front() == '#') continue;
    const std::optional<std::string> name = TakeName(&rest);
    if (!name) return line.Error("expected a second double quote, and a blank, at the end of the name");
    if (!IsName(*name)) return line.Error("expected a name of at most 256 printable ASCII letters");
    line.name = *name;
    line.words = absl::StrSplit(AbslView(rest), absl::ByAnyChar(AbslView(kBlanks)), absl::SkipEmpty());
    lines.push_back(line);
    if (lines.size() > kMaxLines) return line.Error(StrCat("is one more than the ", kMaxLines, " that may be"));
  }
  return lines;
}

absl::StatusOr<CallerLimits> ReadLimits(const CallerLine& line, absl::Span<const std::string> words,
                                        uint64_t min_bytes) {
  const std::array<Field, 5> fields = {{
      {"requests", &CallerLimits::requests, 1, kMaxCount},
      {"bytes", &CallerLimits::bytes, min_bytes, kMaxBytes},
      {"connections", &CallerLimits::connections, 1, kMaxCount},
      {"requests_per_second", &CallerLimits::requests_per_second, 1, RateLimit::kMaxPerSecond},
      {"share_percent", &CallerLimits::share_percent, 1, 100},
  }};
  CallerLimits limits;
  for (const std::string& word : words) {
    const size_t equals = std::min(word.find('='), word.size());
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) {
      return equals < word.size() && f.key == std::string_view(word).substr(0, equals);
    });
    if (field == fields.end()) {
      return line.Error(
          "expected nothing but requests=N, bytes=N, connections=N, requests_per_second=N and share_percent=N behind "
          "what names the caller");
    }
    std::optional<uint64_t>& limit = limits.*(field->limit);
    if (limit) return line.Error(StrCat("has ", field->key, "= twice"));
    uint64_t number = 0;
    const char* const end = word.data() + word.size();
    const auto [parsed, error] = std::from_chars(word.data() + equals + 1, end, number);
    if (error != std::errc() || parsed != end || number < field->least || number > field->most) {
      return line.Error(StrCat("expected a number from ", field->least, " to ", field->most, " behind ", field->key,
                               field->limit == &CallerLimits::bytes ? "=, or a stream might never go on" : "="));
    }
    limit = number;
  }
  return limits;
}

absl::StatusOr<CallerLimitsTable> ReadLimitsFile(std::string_view text, uint64_t min_bytes) {
  PREFIXD_ASSIGN_OR_RETURN(const std::vector<CallerLine> lines, ReadCallerLines(text));
  CallerLimitsTable table;
  for (const CallerLine& line : lines) {
    PREFIXD_ASSIGN_OR_RETURN(const CallerLimits limits, ReadLimits(line, line.words, min_bytes));
    if (!table.Add(line.name, limits)) return line.Error("the name has a line already");
  }
  return table;
}

}  // namespace prefixd
