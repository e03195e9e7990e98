#include "server/arrays/array_names.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "base/fatal.h"
#include "base/status.h"

namespace prefixd {
namespace {

constexpr std::string_view kCollection = "arrays/";
constexpr size_t kInstanceBytes = 8;
constexpr size_t kIdBytes = 16;

// So many random bytes, as hexadecimal digits.
std::string RandomDigits(size_t num_bytes) {
  std::string bytes(num_bytes, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got < 0 && errno != EINTR) Fatal("the kernel has no random bytes");
    done += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return absl::BytesToHexString(bytes);
}

bool AreDigits(std::string_view text, size_t num_bytes) {
  return text.size() == 2 * num_bytes && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

ArrayNames::ArrayNames() : prefix_(StrCat(kCollection, RandomDigits(kInstanceBytes), "-")) {}

std::string ArrayNames::New() const { return StrCat(prefix_, RandomDigits(kIdBytes)); }

absl::Status ArrayNames::Check(std::string_view name, std::string_view field) const {
  const std::string_view rest = name.substr(std::min(name.size(), kCollection.size()));
  const size_t dash = rest.find('-');
  if (!name.starts_with(kCollection) || dash == std::string_view::npos ||
      !AreDigits(rest.substr(0, dash), kInstanceBytes) || !AreDigits(rest.substr(dash + 1), kIdBytes)) {
    return Error(absl::StatusCode::kInvalidArgument, "ARRAY_NAME", field,
                 "expected the name of an array, as CreateArray returns it: arrays/INSTANCE-ID");
  }
  if (name.starts_with(prefix_)) return absl::OkStatus();
  return Error(absl::StatusCode::kNotFound, "ARRAY_ELSEWHERE", field,
               "the array is another server's, or was lost when this one was started anew: ask that one, or make it "
               "again");
}

}  // namespace prefixd
