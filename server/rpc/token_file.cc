#include "server/rpc/token_file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/types/span.h"
#include "base/status.h"
#include "server/rpc/caller_lines.h"

namespace prefixd {
namespace {

constexpr size_t kMaxNameBytes = 256;

template <class Digest>
bool ReadDigest(std::string_view digits, Digest* digest) {
  if (digits.size() != 2 * digest->size()) return false;
  const char* next = digits.data();
  for (uint8_t& byte : *digest) {
    const char* const end = next + 2;
    const auto [parsed, error] = std::from_chars(next, end, byte, 16);
    if (error != std::errc() || parsed != end) return false;
    next = end;
  }
  return true;
}

}  // namespace

bool IsCallerName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name.front() != ' ' && name.back() != ' ' &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

absl::StatusOr<TokenTable> TokenTable::Parse(std::string_view text, uint64_t min_caller_bytes) {
  PREFIXD_ASSIGN_OR_RETURN(const std::vector<CallerLine> lines, ReadCallerLines(text));
  TokenTable table;
  for (const CallerLine& line : lines) {
    if (line.words.empty()) return line.Error("expected a name and the SHA-256 of a token");
    Entry entry = {.name = line.name, .digest = {}};
    if (!IsCallerName(entry.name)) return line.Error("expected a name of at most 256 printable ASCII letters");
    if (!ReadDigest(line.words[0], &entry.digest)) {
      return line.Error("expected a SHA-256, 64 hexadecimal digits, after the name (printf %s TOKEN | sha256sum)");
    }
    table.entries_.push_back(std::move(entry));
    if (line.words.size() == 1) continue;
    PREFIXD_ASSIGN_OR_RETURN(const CallerLimits limits,
                             ReadLimits(line, absl::MakeConstSpan(line.words).subspan(1), min_caller_bytes));
    const auto [known, is_new] = table.limits_.emplace(line.name, limits);
    if (!is_new && known->second != limits) return line.Error("the name has other limits in an earlier line");
  }
  if (table.entries_.empty()) return absl::FailedPreconditionError("has no token, so that nobody could call");
  return table;
}

std::string TokenTable::NameOf(std::string_view token) const {
  Digest digest;
  SHA256(reinterpret_cast<const uint8_t*>(token.data()), token.size(), digest.data());
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  return found != nullptr ? found->name : "";
}

}  // namespace prefixd
