#include "server/work/key_runs.h"

#include <cstring>

#include "base/status.h"
#include "server/work/segment_offsets.h"

namespace prefixd {

absl::StatusOr<KeyRuns> FindKeyRuns(BorrowedLane& lane, DType dtype, const std::byte* keys, uint64_t num_items) {
  KeyRuns runs;
  PREFIXD_ASSIGN_OR_RETURN(runs.offsets, lane.lane->Allocate((num_items + 1) * sizeof(uint64_t)));
  PREFIXD_ASSIGN_OR_RETURN(const Buffer scratch, lane.lane->Allocate(RunsScratchBytes(num_items)));
  PREFIXD_RETURN_IF_ERROR(lane.lane->FindRuns({.dtype = dtype,
                                               .keys = keys,
                                               .num_items = num_items,
                                               .scratch = scratch.data(),
                                               .offsets = reinterpret_cast<uint64_t*>(runs.offsets.data()),
                                               .num_offsets = reinterpret_cast<uint64_t*>(lane.scalar.host.data())}));
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  std::memcpy(&runs.num_offsets, lane.scalar.host.data(), sizeof(runs.num_offsets));
  PREFIXD_RETURN_IF_ERROR(CheckNumOffsets(runs.num_offsets, "keys"));
  return runs;
}

absl::Status TakeKeys(BorrowedLane& lane, DType dtype, const KeyRuns& runs, const std::byte* keys, uint64_t num_items,
                      std::byte* out) {
  return lane.lane->Gather({.dtype = dtype,
                            .index_dtype = DType::kU64,
                            .in = keys,
                            .in_items = num_items,
                            .indices = runs.offsets.data(),
                            .out = out,
                            .num_items = runs.num_offsets - 1,
                            .num_bad = reinterpret_cast<uint64_t*>(lane.scalar.host.data())});
}

}  // namespace prefixd
