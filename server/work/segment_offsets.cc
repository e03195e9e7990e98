#include "server/work/segment_offsets.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/status.h"
#include "server/request.h"

namespace prefixd {
namespace {

constexpr std::string_view kInlineField = "segment_offsets.inline.data";

absl::Status Wrong(std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, "SEGMENT_OFFSETS", field, message);
}

absl::Status CheckEnds(uint64_t first, uint64_t last, uint64_t num_offsets, uint64_t num_items,
                       std::string_view field) {
  if (first != 0) {
    return Wrong(field, StrCat("offset 0 is ", first, ": expected 0, for the first segment begins with the array"));
  }
  if (last == num_items) return absl::OkStatus();
  return Wrong(field, StrCat("offset ", num_offsets - 1, ", the last, is ", last, " and the array has ", num_items,
                             " elements: expected that many, for the last segment ends with the array"));
}

absl::Status Descends(uint64_t index, std::string_view field) {
  return Wrong(field, StrCat("offset ", index, " is below offset ", index - 1,
                             ": expected them to ascend, and equal ones for a segment of no elements"));
}

}  // namespace

absl::Status CheckNumOffsets(uint64_t num_offsets, std::string_view field) {
  constexpr uint64_t kMaxSegments = std::numeric_limits<int32_t>::max();
  if (num_offsets == 0) {
    return Wrong(field, "there are no offsets: expected one more than there are segments, 0 alone for none");
  }
  if (num_offsets - 1 <= kMaxSegments) return absl::OkStatus();
  return Wrong(field, StrCat("there are ", num_offsets - 1, " segments: expected at most ", kMaxSegments,
                             ", use several calls"));
}

absl::Status CheckInlineOffsets(const Payload& offsets, uint64_t num_items) {
  constexpr uint64_t kBytes = sizeof(uint64_t);
  if (offsets.size() % kBytes != 0) {
    return Wrong(kInlineField, StrCat(offsets.size(), " bytes are no whole number of u64: expected a multiple of 8"));
  }
  if (offsets.size() > kMaxReplyPayloadBytes) {
    return Wrong(kInlineField, StrCat("there are ", offsets.size() / kBytes, " offsets: expected at most ",
                                      kMaxReplyPayloadBytes / kBytes, " in a message, put them into an array"));
  }
  const uint64_t num_offsets = offsets.size() / kBytes;
  PREFIXD_RETURN_IF_ERROR(CheckNumOffsets(num_offsets, kInlineField));
  std::array<uint64_t, 512> some;
  uint64_t first = 0, before = 0;
  for (uint64_t done = 0; done < num_offsets;) {
    const uint64_t count = std::min<uint64_t>(num_offsets - done, some.size());
    offsets.CopyTo(some.data(), done * kBytes, count * kBytes);
    if (done == 0) first = before = some[0];
    for (uint64_t i = 0; i < count; before = some[i++]) {
      if (some[i] < before) return Descends(done + i, kInlineField);
    }
    done += count;
  }
  return CheckEnds(first, before, num_offsets, num_items, kInlineField);
}

absl::Status CheckResidentOffsets(BorrowedLane& lane, const std::byte* offsets, uint64_t num_offsets,
                                  uint64_t num_items, const StopSignal& stop, std::string_view field) {
  constexpr uint64_t kBytes = sizeof(uint64_t);
  std::byte* const ends = lane.scalar.host.data();
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(ends, offsets, kBytes));
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(ends + kBytes, offsets + (num_offsets - 1) * kBytes, kBytes));
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  uint64_t first_and_last[2];
  std::memcpy(first_and_last, ends, sizeof(first_and_last));
  PREFIXD_RETURN_IF_ERROR(CheckEnds(first_and_last[0], first_and_last[1], num_offsets, num_items, field));
  // Which are below the one before, a byte each; and of those bytes where the first 1 is.
  for (uint64_t done = 0; done + 1 < num_offsets;) {
    PREFIXD_RETURN_IF_ERROR(stop.Check());
    const uint64_t count = std::min<uint64_t>(num_offsets - 1 - done, kMaxReplyPayloadBytes);
    PREFIXD_RETURN_IF_ERROR(lane.lane->Map({.op = MapOp::kCompareArrays,
                                            .dtype = DType::kU64,
                                            .comparison = Comparison::kLess,
                                            .in = offsets + (done + 1) * kBytes,
                                            .other = offsets + done * kBytes,
                                            .out = lane.mask.device.data(),
                                            .num_items = count}));
    PREFIXD_RETURN_IF_ERROR(lane.lane->Reduce({.dtype = DType::kU8,
                                               .op = Op::kMax,
                                               .in = lane.mask.device.data(),
                                               .num_items = count,
                                               .init = {Neutral(Op::kMax, DType::kU8)},
                                               .state_out = reinterpret_cast<ReduceState*>(lane.scalar.host.data())}));
    PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
    ReduceState most;
    std::memcpy(&most, lane.scalar.host.data(), sizeof(most));
    if (most.value.As<uint8_t>() != 0) return Descends(done + most.position, field);
    done += count;
  }
  return absl::OkStatus();
}

}  // namespace prefixd
