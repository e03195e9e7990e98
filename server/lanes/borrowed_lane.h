// A lane of the device, with the buffers that a task on it uses.
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

// A piece may run again the items of its open group that came before it: at most so many bytes (open_group.h).
inline constexpr size_t kMaxOpenGroupBytes = size_t{kGroupItems} * sizeof(double);

// The most requests that one launch serves.
inline constexpr size_t kMaxBatchSize = 1024;

// A pinned block on the host and one of the same size on the device: a piece's bytes pass through both.
struct StagingBlock {
  Buffer host;
  Buffer device;

  // Where the bytes are while a kernel works on them: `direct` work reaches into host memory.
  std::byte* data(bool direct) const { return (direct ? host : device).data(); }
};

// Each block has kMaxReplyPayloadBytes.
struct BorrowedLane {
  std::unique_ptr<Lane> lane;
  // On the device, `in`, `mask` and `values` have room for an open group too.
  StagingBlock in;    // On its way out its host's block has counts of segments, when all was read.
  StagingBlock mask;  // Or what else comes beside the items: coefficients, offsets of segments, keys.
  StagingBlock values;
  StagingBlock indices;            // Before there are any: keys and offsets that come with a mask or coefficients.
  StagingBlock scalar;             // kMaxBatchSize counts or reduce states.
  uint64_t direct_bytes = 0;       // DeviceInfo's.
  StagingPool* replies = nullptr;  // Takes full blocks of values and indices off the lane.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_BORROWED_LANE_H_
