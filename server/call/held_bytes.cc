#include "server/call/held_bytes.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace prefixd {

uint64_t HeldBytes::AddArrival(uint64_t num_bytes) {
  arrived_ = num_bytes;
  const uint64_t replies = std::max(replies_, MostReplyBytes(num_bytes));
  return num_bytes + replies - std::exchange(replies_, replies);
}

uint64_t HeldBytes::AddReplies() {
  const uint64_t replies = std::max(replies_, MostReplyBytes(std::numeric_limits<uint64_t>::max()));
  return replies - std::exchange(replies_, replies);
}

uint64_t HeldBytes::QueueArrival() {
  queued_ += arrived_;
  return std::exchange(arrived_, 0);
}

// Replies to a message of so many bytes: an element of a byte may come back as one of eight, or with its index of
// eight.
uint64_t HeldBytes::MostReplyBytes(uint64_t message_bytes) const {
  constexpr uint64_t kMaxGrowth = 9;
  const uint64_t most = (shape_ == CallShape::kStream ? 2 : 1) * kMaxReplyPayloadBytes;
  return message_bytes < most / kMaxGrowth ? message_bytes * kMaxGrowth : most;
}

uint64_t HeldBytes::KeptOfSent() const {
  // Under way to a reader who takes little gRPC holds about so much, which it has told us was sent.
  constexpr uint64_t kTransportBytes = uint64_t{64} << 10;
  return std::min(sent_, kTransportBytes);
}

}  // namespace prefixd
