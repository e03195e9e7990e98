#include "kernels/spec.h"

#include <bit>

#include "base/status.h"

namespace prefixd {

absl::Status CheckItemsPerThread(uint64_t items_per_thread, std::string_view field) {
  if (items_per_thread <= kMaxItemsPerThread && std::popcount(items_per_thread) <= 1) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "ALGORITHM_CHOICE", field,
               StrCat("items_per_thread is ", items_per_thread, ": expected a power of two up to ", kMaxItemsPerThread,
                      ", or 0 for the device's choice"));
}

}  // namespace prefixd
