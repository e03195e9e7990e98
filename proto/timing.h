// Where the time of one call went on the server: the contract's Timing, as a plain struct for both sides.
#ifndef PREFIXD_PROTO_TIMING_H_
#define PREFIXD_PROTO_TIMING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/algorithm.h"
#include "kernels/types.h"

namespace prefixd {

// Times are nanoseconds. Stages overlap, so they need not add up. A stage that was not measured is absent, not zero.
struct Timing {
  std::optional<int64_t> queue_ns;      // Waiting for a lane, over all chunks.
  std::optional<int64_t> host_copy_ns;  // Between messages and staging memory, on the host.
  std::optional<int64_t> host_to_device_ns;
  std::optional<int64_t> kernel_ns;  // A batch has one for all its requests.
  std::optional<int64_t> device_to_host_ns;
  std::optional<int64_t> server_total_ns;  // From the first message read to the last reply made.
  std::string device;                      // Such as "cpu (2 threads, avx512)".
  Algorithm algorithm = {};                // What really ran. {}: one that the reader does not know.
  uint64_t launches = 0;                   // Kernels; on the CPU, parallel loops.
  uint64_t num_items = 0;                  // Elements read.
  uint64_t num_bytes = 0;                  // Bytes that the kernels had to move: read plus written.
  std::optional<double> kernel_gb_per_s;   // num_bytes / kernel_ns.
  uint32_t batch_size = 1;                 // Requests that shared the launch.
  uint32_t numerics_version = 0;           // Equal versions give equal bits. 0: the algorithm has an order of its own.

  friend bool operator==(const Timing&, const Timing&) = default;
};

}  // namespace prefixd

#endif  // PREFIXD_PROTO_TIMING_H_
