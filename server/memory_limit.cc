#include "server/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "server/call/held_bytes.h"

namespace prefixd {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// What an idle server holds: programs, libraries, the lanes' blocks.
constexpr uint64_t kIdleBytes = 64 * kMiB;
// CUDA's context, on the host.
constexpr uint64_t kCudaBytes = 320 * kMiB;
constexpr uint64_t kStackBytes = 8 * kMiB;
// A budget of requests, and what gRPC may hold for them (see server.cc).
constexpr uint64_t kBytesPerRequestByte = 3;
// The share of all memory that pinned memory gets where nobody asked for more.
constexpr uint64_t kStagingShare = 16;

// The first number in a file; nothing if there is none, as in "max".
std::optional<uint64_t> NumberIn(const std::filesystem::path& file) {
  std::ifstream in(file);
  uint64_t number = 0;
  if (!(in >> number)) return std::nullopt;
  return number;
}

// The number behind a name in a file of lines such as "MemTotal: 1024 kB", in bytes.
std::optional<uint64_t> KiloBytesOf(const std::filesystem::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    uint64_t number = 0;
    std::string word;
    if (std::istringstream words(line); words >> word >> number && word == name) return number * 1024;
  }
  return std::nullopt;
}

void Lower(MemoryLimit* limit, std::optional<uint64_t> bytes, const std::string& from) {
  if (bytes && *bytes < limit->bytes) *limit = {.bytes = *bytes, .from = from};
}

// A group may have what all those above it may have as well. A container sees its own as the root.
void LowerToCgroups(const std::string& root, MemoryLimit* limit) {
  std::ifstream in(root + "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool is_v2 = parts[0] == "0" && parts[1].empty();
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (!is_v2 && std::count(controllers.begin(), controllers.end(), "memory") == 0) continue;
    const std::filesystem::path top = root + (is_v2 ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    const char* const name = is_v2 ? "memory.max" : "memory.limit_in_bytes";
    std::filesystem::path group = std::filesystem::path(parts[2]).relative_path();
    for (;; group = group.parent_path()) {
      Lower(limit, NumberIn(top / group / name), "the cgroup allows");
      if (group.empty()) break;
    }
  }
}

std::string InMiB(uint64_t bytes) { return absl::StrFormat("%d MiB", bytes / kMiB); }

}  // namespace

MemoryLimit FindMemoryLimit(int num_threads, const std::string& root) {
  MemoryLimit limit = {.bytes = std::numeric_limits<uint64_t>::max(), .from = ""};
  Lower(&limit, KiloBytesOf(root + "proc/meminfo", "MemTotal:"), "the machine has");
  LowerToCgroups(root, &limit);
  rlimit own = {};
  if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY) {
    const uint64_t used = KiloBytesOf(root + "proc/self/status", "VmSize:").value_or(0) + num_threads * kStackBytes;
    Lower(&limit, own.rlim_cur > used ? own.rlim_cur - used : 0, "the limit of the address space (ulimit -v) leaves");
  }
  return limit;
}

absl::Status FitBudgets(const MemoryLimit& limit, const DeviceInfo& device, Options* options) {
  const uint64_t idle = kIdleBytes + (device.direct_bytes == DeviceInfo::kHostMemory ? 0 : kCudaBytes);
  const uint64_t free = limit.bytes > idle ? limit.bytes - idle : 0;
  if (!options->asks_staging_bytes) options->staging_bytes = std::min(options->staging_bytes, free / kStagingShare);
  const uint64_t for_requests = free > options->staging_bytes ? free - options->staging_bytes : 0;
  const uint64_t fits = for_requests / kBytesPerRequestByte;
  if (!options->asks_max_request_bytes) options->max_request_bytes = std::min(options->max_request_bytes, fits);
  const uint64_t least = HeldBytes::MostOfStream(options->max_message_bytes);
  if (options->max_request_bytes > fits || options->max_request_bytes < least) {
    const uint64_t asked = std::max(options->max_request_bytes, least);
    return absl::FailedPreconditionError(StrCat(
        limit.from, " ", InMiB(limit.bytes), ", and --max-request-bytes ", InMiB(asked), " takes up to ",
        InMiB(kBytesPerRequestByte * asked), " with what gRPC holds, beside --staging-bytes ",
        InMiB(options->staging_bytes), " and ", InMiB(idle), " for the process: ",
        fits >= least ? StrCat("lower --max-request-bytes to ", fits, ", or raise the limit") : "raise the limit"));
  }
  // The CPU device's arrays are in the same memory. A quarter: requests rarely hold what they may.
  const bool has_arrays_on_host = device.direct_bytes == DeviceInfo::kHostMemory;
  if (has_arrays_on_host && !options->max_array_bytes) options->max_array_bytes = limit.bytes / 4;
  return absl::OkStatus();
}

}  // namespace prefixd
