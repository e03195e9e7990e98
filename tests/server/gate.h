// A gate at which a test's threads wait for each other. The wait has a limit, so that a failing test does not hang.
#ifndef PREFIXD_TESTS_SERVER_GATE_H_
#define PREFIXD_TESTS_SERVER_GATE_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace prefixd {

// Counts arrivals. Threads: any.
class Gate {
 public:
  void Arrive() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    wake_.notify_all();
  }
  int arrived() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }
  // Whether `count` arrivals came within the limit.
  [[nodiscard]] bool WaitFor(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return wake_.wait_until(lock, std::chrono::system_clock::now() + kLimit, [&] { return count_ >= count; });
  }

 private:
  static constexpr std::chrono::seconds kLimit{20};
  std::mutex mutex_;
  std::condition_variable wake_;
  int count_ = 0;
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_GATE_H_
