// What Client::GetServerInfo tells.
#ifndef PREFIXD_CLIENT_SERVER_INFO_H_
#define PREFIXD_CLIENT_SERVER_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options.h"
#include "kernels/algorithm_info.h"
#include "kernels/types.h"

namespace prefixd::client {

using prefixd::AlgorithmInfo;
class Connection;  // connection.h, which is private to the library.

// A budget and its use at the time of the call.
struct Budget {
  uint64_t limit = 0;
  uint64_t used = 0;
};

// One served combination.
struct Capability {
  Primitive primitive = Primitive::kScan;
  DType dtype = DType::kF32;
  DType out_dtype = DType::kF32;
  std::optional<Op> op;   // Absent where the primitive has none, as compact.
  Algorithm algorithm;    // Without its knobs.
  bool has_wide = false;  // Precision::kWide too.
};

struct ServerInfo {
  std::string version;
  uint32_t numerics_version = 0;
  std::string device;
  uint64_t device_memory_bytes = 0;
  uint64_t device_memory_free_bytes = 0;
  uint32_t lanes = 0;
  uint64_t max_message_bytes = 0;
  uint64_t max_reply_payload_bytes = 0;
  Budget requests;
  Budget request_bytes;
  Budget staging_bytes;
  Budget arrays;       // Resident ones.
  Budget array_bytes;  // What their elements take.
  uint64_t uptime_seconds = 0;
  // Both without what this client does not know.
  std::vector<Capability> capabilities;
  std::vector<AlgorithmInfo> algorithms;  // Each primitive's default comes first among its rows.
};

namespace internal {

absl::StatusOr<ServerInfo> GetServerInfo(const Connection& connection, const CallOptions& call);
absl::StatusOr<bool> CheckHealth(const Connection& connection, const CallOptions& call);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_SERVER_INFO_H_
