// When the requests of an open loop arrive: evenly spaced, each time fixed by its number alone. A request that is late
// moves none of those behind it, so that a stall of the server shows in the latency of all that it held up.
#ifndef PREFIXD_CLIENT_LOAD_SCHEDULE_H_
#define PREFIXD_CLIENT_LOAD_SCHEDULE_H_

#include <chrono>
#include <cstdint>

namespace prefixd::load {

class Schedule {
 public:
  // Needs: rate_per_second above 0.
  explicit Schedule(uint64_t rate_per_second) : rate_(rate_per_second) {}

  // When the request with this number arrives, after the beginning. Exact to the nanosecond, however long it runs.
  // Example: at 3 a second -> 0, 333333333, 666666666, 1000000000
  std::chrono::nanoseconds Arrival(uint64_t number) const {
    const uint64_t seconds = number / rate_;
    const uint64_t rest = number % rate_ * kSecond / rate_;
    return std::chrono::nanoseconds(seconds * kSecond + rest);
  }

  // How many have arrived before `elapsed`: the number of the first that has not.
  uint64_t NumArrived(std::chrono::nanoseconds elapsed) const {
    if (elapsed.count() <= 0) return 0;
    const auto ns = static_cast<uint64_t>(elapsed.count());
    return ns / kSecond * rate_ + (ns % kSecond * rate_ + kSecond - 1) / kSecond;
  }

 private:
  static constexpr uint64_t kSecond = 1'000'000'000;
  uint64_t rate_;  // At most a few billion: its product with a second must fit.
};

}  // namespace prefixd::load

#endif  // PREFIXD_CLIENT_LOAD_SCHEDULE_H_
