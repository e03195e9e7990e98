#include "kernels/spec.h"

#include <bit>
#include <limits>

#include "base/status.h"

namespace prefixd {

absl::Status CheckItemsPerThread(uint64_t items_per_thread, std::string_view field) {
  if (items_per_thread <= kMaxItemsPerThread && std::popcount(items_per_thread) <= 1) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "ALGORITHM_CHOICE", field,
               StrCat("items_per_thread is ", items_per_thread, ": expected a power of two up to ", kMaxItemsPerThread,
                      ", or 0 for the device's choice"));
}

absl::Status CheckAxis(const Axis& axis, uint64_t num_items) {
  constexpr uint64_t kMaxArrays = std::numeric_limits<int32_t>::max();
  const auto error = [](std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "SHAPE", "spec.row_items", why);
  };
  if (axis.row_items == 0) return error("a row has no elements: say how many it has, at least 1");
  if (num_items % axis.row_items != 0) {
    return error(StrCat(num_items, " elements are no whole number of rows of ", axis.row_items,
                        ": send whole rows, or say how many elements one has"));
  }
  if (axis.NumArrays(num_items) <= kMaxArrays) return absl::OkStatus();
  return error(StrCat(axis.NumArrays(num_items), axis.along == Axis::Along::kRow ? " rows" : " columns",
                      " are more than ", kMaxArrays, ": work on parts of the matrix"));
}

}  // namespace prefixd
