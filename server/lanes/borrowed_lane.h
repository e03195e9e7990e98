// A lane, and what a task on it needs beside it.
//
// Threads: the lane's own thread, while the task has borrowed it.
#ifndef PREFIXD_SERVER_LANES_BORROWED_LANE_H_
#define PREFIXD_SERVER_LANES_BORROWED_LANE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/association.h"
#include "kernels/device.h"
#include "server/lanes/staging_pool.h"

namespace prefixd {

// The items before a piece that run again with it take at most this much: see open_group.h.
inline constexpr size_t kMaxOpenGroupBytes = size_t{kGroupItems} * sizeof(double);

// One launch serves at most so many requests.
inline constexpr size_t kMaxBatchSize = 1024;

// What one piece of work passes through: a pinned block on the host and its twin on the device.
struct StagingBlock {
  Buffer host;
  Buffer device;

  // Where the bytes are while a kernel works on them: `direct` work reaches into host memory.
  std::byte* data(bool direct) const { return (direct ? host : device).data(); }
};

// Each block has kMaxReplyPayloadBytes.
struct BorrowedLane {
  std::unique_ptr<Lane> lane;
  StagingBlock in;  // Its device's side, and that of values, has room for an open group too.
  StagingBlock mask;
  StagingBlock values;
  StagingBlock indices;
  StagingBlock scalar;             // kMaxBatchSize counts or reduce states.
  uint64_t direct_bytes = 0;       // DeviceInfo's.
  StagingPool* replies = nullptr;  // Takes full blocks of values and indices off the lane.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_BORROWED_LANE_H_
