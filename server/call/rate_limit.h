// So many a second: a bucket of tokens that holds a second's worth, and is full at first.
//
// Threads: one at a time.
// Cost:    two additions, and what it takes to know the time.
#ifndef PREFIXD_SERVER_CALL_RATE_LIMIT_H_
#define PREFIXD_SERVER_CALL_RATE_LIMIT_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace prefixd {

class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr uint64_t kMaxPerSecond = 1'000'000;  // Above, an interval of whole nanoseconds is too coarse.

  // Takes a token, and returns zero; or, if there is none, the time until there is. The rate may be another each time.
  // Needs: per_second is 1 to kMaxPerSecond.
  std::chrono::nanoseconds Take(uint64_t per_second, Time now) {
    constexpr std::chrono::nanoseconds kSecond = std::chrono::seconds(1);
    const Time full_at = std::max(full_at_, now) + kSecond / static_cast<int64_t>(per_second);
    if (full_at - now > kSecond) return full_at - now - kSecond;
    full_at_ = full_at;
    return std::chrono::nanoseconds(0);
  }

  // As if nothing had ever been taken.
  bool IsFull(Time now) const { return full_at_ <= now; }

 private:
  Time full_at_{};  // Each token that is taken puts it off by the time that it takes to come back.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_RATE_LIMIT_H_
