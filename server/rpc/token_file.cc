#include "server/rpc/token_file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/status.h"

namespace prefixd {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxEntries = 10'000;  // Each is looked at for every call.

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

absl::StatusOr<TokenTable> TokenTable::Parse(std::string_view text) {
  TokenTable table;
  size_t number = 0;
  for (const absl::string_view line : absl::StrSplit(AbslView(text), '\n')) {
    ++number;
    const auto wrong = [number](std::string_view what) {
      return absl::FailedPreconditionError(StrCat("line ", number, ": ", what));
    };
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0].starts_with('#')) continue;
    if (words.size() != 2) return wrong("expected a name and the SHA-256 of a token");
    Entry entry = {.name = words[0], .digest = {}};
    if (!IsCallerName(entry.name)) return wrong("expected a name of at most 128 printable ASCII letters");
    if (!ReadDigest(words[1], &entry.digest)) {
      return wrong("expected a SHA-256, 64 hexadecimal digits, after the name (printf %s TOKEN | sha256sum)");
    }
    table.entries_.push_back(std::move(entry));
    if (table.entries_.size() > kMaxEntries) return wrong(StrCat("has more than ", kMaxEntries, " tokens"));
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
