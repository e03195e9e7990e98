// Whether what a connection brings belongs to calls. Header blocks that are refused, and frames of no stream, never
// become calls, so nobody is charged for them; but gRPC works on them as long as they come: 60 ns a byte in 1.83 for
// the fields of a block that is too large already.
//
// A connection may bring what its messages are, what may have come of its calls and is not read, and 1 MiB. Bytes above
// that, in two looks that follow each other, are those of an attack: in one they may be those of a call that gRPC hands
// over a moment later.
//
// Threads: the Count... any; Look by one.
#ifndef PREFIXD_SERVER_RPC_TRAFFIC_H_
#define PREFIXD_SERVER_RPC_TRAFFIC_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace prefixd {

class Traffic {
 public:
  static constexpr int64_t kFreeBytes = 1 << 20;
  static constexpr int64_t kGrowthBytes = 1 << 18;  // From one look to the next; what comes more slowly does no harm.

  static constexpr uint64_t kMostWindowBytes = 16 << 20;  // That gRPC gives a call.

  // unread_bytes: what may come of a call beside the messages that were read: its headers, a message, a window.
  explicit Traffic(uint64_t unread_bytes) : unread_bytes_(static_cast<int64_t>(unread_bytes)) {}

  // A call has come.
  void CountCall() {
    num_calls_.fetch_add(1, std::memory_order_relaxed);
    explained_bytes_.fetch_add(unread_bytes_, std::memory_order_relaxed);
  }
  // A message of it was read.
  void CountMessage(uint64_t bytes) {
    constexpr int64_t kFrameBytes = 64;  // A frame, and a record of TLS.
    const auto message = static_cast<int64_t>(bytes);
    explained_bytes_.fetch_add(message + message / 16 + kFrameBytes, std::memory_order_relaxed);
  }
  // It is done. is_empty: its caller has cancelled it, or gRPC for what he sent, before a message was read.
  void CountCallDone(bool is_empty) {
    constexpr int64_t kHeaderBytes = 1024;
    if (is_empty) explained_bytes_.fetch_sub(unread_bytes_ - kHeaderBytes, std::memory_order_relaxed);
    num_calls_.fetch_sub(1, std::memory_order_relaxed);
  }

  // The peer is a proxy that is trusted: what its callers do to it is not its own doing.
  void Trust() { is_trusted_.store(true, std::memory_order_relaxed); }

  // Some twenty times a second. `bytes`: what gRPC has taken from the socket so far, less what is owed to its answers.
  // Returns whether the connection is to be closed.
  bool Look(int64_t bytes) {
    // What calls that are done may leave unread comes within a round trip or some: an allowance halves in five looks.
    const int64_t under_way = (1 + num_calls_.load(std::memory_order_relaxed)) * unread_bytes_;
    allowance_bytes_ = std::max(under_way, allowance_bytes_ - allowance_bytes_ / 8);
    int64_t unexplained = bytes - explained_bytes_.load(std::memory_order_relaxed);
    if (unexplained < -allowance_bytes_) {  // Nobody saves up for an attack.
      explained_bytes_.fetch_add(unexplained + allowance_bytes_, std::memory_order_relaxed);
      unexplained = -allowance_bytes_;
    }
    const bool is_strange = unexplained > kFreeBytes && unexplained > last_unexplained_ + kGrowthBytes;
    last_unexplained_ = unexplained;
    return std::exchange(was_strange_, is_strange) && is_strange && !is_trusted_.load(std::memory_order_relaxed);
  }

 private:
  const int64_t unread_bytes_;
  std::atomic<int64_t> explained_bytes_{0};
  std::atomic<int64_t> num_calls_{0};  // Under way.
  std::atomic<bool> is_trusted_{false};
  int64_t allowance_bytes_ = 0;
  int64_t last_unexplained_ = 0;
  bool was_strange_ = false;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_TRAFFIC_H_
