// The items since the last whole group of a stream, kept on the device.
//
// Bits do not depend on how the caller cut the array. kernels/NUMERICS.md lets an array be cut, without new bits, after
// whole groups only. So the items behind the last whole group, the open group, stay on the device, and run again in
// front of the next piece. Each item's result is returned with its own piece all the same.
//
// Threads: one at a time; the lane's.
#ifndef PREFIXD_SERVER_WORK_OPEN_GROUP_H_
#define PREFIXD_SERVER_WORK_OPEN_GROUP_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/association.h"
#include "kernels/device.h"

namespace prefixd {

class OpenGroup {
 public:
  explicit OpenGroup(uint64_t item_bytes) : item_bytes_(item_bytes) {}

  uint64_t num_items() const { return num_items_; }
  uint64_t size_bytes() const { return num_items_ * item_bytes_; }
  const std::byte* data() const { return items_.data(); }

  // So many of num_items, the open group's first, are whole groups.
  static uint64_t ClosedItems(uint64_t num_items) { return num_items - num_items % kGroupItems; }

  // Copies the open group to d_to, in front of what comes next.
  absl::Status CopyTo(Lane& lane, std::byte* d_to) const {
    if (num_items_ == 0) return absl::OkStatus();
    return lane.CopyOnDevice(d_to, items_.data(), size_bytes(), CopyTiming::kUntimed);
  }

  // Takes items over from pinned host memory, in front of the first that come. Needs: none are kept.
  absl::Status Load(Lane& lane, const std::byte* items, uint64_t num_items) {
    auto room = lane.Allocate(kGroupItems * item_bytes_);
    if (!room.ok()) return std::move(room).status();
    items_ = *std::move(room);
    num_items_ = num_items;
    return lane.CopyToDevice(items_.data(), items, size_bytes());
  }

  // Keeps what comes behind the first `closed` of the num_items at d_items, which began with the open group.
  // Errors: the lane's, for the memory that the first items need.
  absl::Status Keep(Lane& lane, const std::byte* d_items, uint64_t closed, uint64_t num_items) {
    if (closed > 0) num_items_ = 0;
    const uint64_t first = closed + num_items_;  // Those before it are kept already.
    if (first == num_items) return absl::OkStatus();
    if (items_.data() == nullptr) {
      auto items = lane.Allocate(kGroupItems * item_bytes_);
      if (!items.ok()) return std::move(items).status();
      items_ = *std::move(items);
    }
    const absl::Status copied = lane.CopyOnDevice(items_.data() + size_bytes(), d_items + first * item_bytes_,
                                                  (num_items - first) * item_bytes_, CopyTiming::kUntimed);
    if (copied.ok()) num_items_ = num_items - closed;
    return copied;
  }

 private:
  const uint64_t item_bytes_;
  uint64_t num_items_ = 0;
  Buffer items_;  // Device: room for a group. Allocated when there is one.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_OPEN_GROUP_H_
