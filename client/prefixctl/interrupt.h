// Ctrl-C as a cancellation: what has come so far can still be used.
#ifndef PREFIXD_CLIENT_PREFIXCTL_INTERRUPT_H_
#define PREFIXD_CLIENT_PREFIXCTL_INTERRUPT_H_

#include <atomic>
#include <thread>

#include "client/cancellation.h"

namespace prefixd::cli {

// While it lives, the first SIGINT or SIGTERM cancels; a second one does what it did before.
// Needs:   to come before other threads begin, which inherit that these signals are not for them; one at a time.
// Threads: cancellation() from any.
class CancelOnInterrupt {
 public:
  CancelOnInterrupt();
  ~CancelOnInterrupt();

  client::Cancellation& cancellation() { return cancellation_; }

 private:
  void Watch();

  client::Cancellation cancellation_;
  std::atomic<bool> ended_ = false;
  std::thread watcher_;
};

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_INTERRUPT_H_
