#include "server/call/request_id.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/status.h"

namespace prefixd {
namespace {

constexpr size_t kMaxRequestIdBytes = 64;

// Unique in this process, and unlikely to be met in another.
std::string NewRequestId() {
  static const uint32_t process = std::random_device{}();
  static std::atomic<uint64_t> next{0};
  return absl::StrFormat("%08x-%x", process, next.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

absl::Status CheckRequestId(std::string_view id) {
  if (id.size() <= kMaxRequestIdBytes && std::all_of(id.begin(), id.end(), absl::ascii_isgraph)) {
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kInvalidArgument, "REQUEST_ID", "request_id",
               StrCat("expected at most ", kMaxRequestIdBytes, " printable ASCII characters without spaces"));
}

std::string RequestIdOf(const std::string& asked_for) {
  return !asked_for.empty() && CheckRequestId(asked_for).ok() ? asked_for : NewRequestId();
}

}  // namespace prefixd
