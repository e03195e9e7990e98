// How much memory there is for requests: what the machine, the cgroup and the process's own limits leave. A budget that
// does not fit would end the process, and all its callers' requests, the first time that it is used.
#ifndef PREFIXD_SERVER_MEMORY_LIMIT_H_
#define PREFIXD_SERVER_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "kernels/device.h"
#include "server/options.h"

namespace prefixd {

struct MemoryLimit {
  uint64_t bytes;    // What may still be allocated.
  std::string from;  // Whose limit it is: "the cgroup allows"
};

// The least of all limits. `root` is where proc and sys are. Threads that are still to be started count as
// `num_threads` stacks against a limit of the address space.
MemoryLimit FindMemoryLimit(int num_threads, const std::string& root = "/");

// Lowers budgets that nobody asked for to what the limit allows. Errors: FAILED_PRECONDITION if what is asked for does
// not fit, or if there is not room for one stream.
absl::Status FitBudgets(const MemoryLimit& limit, const DeviceInfo& device, Options* options);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_MEMORY_LIMIT_H_
