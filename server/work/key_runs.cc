#include "server/work/key_runs.h"

#include <cstring>

#include "base/status.h"
#include "server/work/segment_offsets.h"

namespace prefixd {

absl::StatusOr<KeyRuns> FindKeyRuns(BorrowedLane& lane, DType dtype, const std::byte* keys, uint64_t num_items) {
  constexpr uint64_t kBytes = sizeof(uint64_t);
  KeyRuns runs;
  PREFIXD_ASSIGN_OR_RETURN(runs.offsets, lane.lane->Allocate((num_items + 1) * kBytes));
  const auto put = [&](uint64_t index, uint64_t offset) {
    return lane.lane->Fill({.dtype = DType::kU64,
                            .kind = FillKind::kConstant,
                            .value = Value::Of(offset),
                            .out = runs.offsets.data() + index * kBytes,
                            .num_items = 1});
  };
  PREFIXD_RETURN_IF_ERROR(put(0, 0));
  runs.num_offsets = 1;
  if (num_items == 0) return runs;
  uint64_t num_changes = 0;
  Buffer changes;  // Whether each key but the first is another than the one before.
  if (num_items > 1) {
    PREFIXD_ASSIGN_OR_RETURN(changes, lane.lane->Allocate(num_items - 1));
    PREFIXD_RETURN_IF_ERROR(lane.lane->Map({.op = MapOp::kCompareArrays,
                                            .dtype = dtype,
                                            .comparison = Comparison::kNotEqual,
                                            .in = keys + SizeOf(dtype),
                                            .other = keys,
                                            .out = changes.data(),
                                            .num_items = num_items - 1}));
    PREFIXD_RETURN_IF_ERROR(lane.lane->Compact({.dtype = DType::kU8,
                                                .selector = Selector::kByteMask,
                                                .mask = changes.data(),
                                                .num_items = num_items - 1,
                                                .first_item = 1,
                                                .indices = runs.offsets.data() + kBytes,
                                                .count = reinterpret_cast<uint64_t*>(lane.scalar.host.data())}));
    PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
    std::memcpy(&num_changes, lane.scalar.host.data(), sizeof(num_changes));
  }
  runs.num_offsets = num_changes + 2;
  PREFIXD_RETURN_IF_ERROR(CheckNumOffsets(runs.num_offsets, "keys"));
  PREFIXD_RETURN_IF_ERROR(put(runs.num_offsets - 1, num_items));
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
