// Ends calls whose callers have fallen silent: who opens a call and never sends, stops sending in the middle, or does
// not take the replies. When the server stops, also calls that nothing is under way in.
//
//   auto watched = std::make_shared<Watched>([this] { return Look(); }, [this](absl::Status why) { GiveUp(why); });
//   watchdog.Watch(watched);
//   ...
//   watched->Detach();  // Neither function is called from here on.
//
// A call says what it waits for, and a number that changes whenever something came or went. The watchdog looks at all
// calls once a tick; so calls pay nothing while they run, and a limit is kept to within two ticks.
//
// Threads: Watch and Detach from any thread. The functions are called on the watchdog's thread, one at a time, and may
//          end their call inside: Detach may be called from within them.
#ifndef PREFIXD_SERVER_CALL_WATCHDOG_H_
#define PREFIXD_SERVER_CALL_WATCHDOG_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"

namespace prefixd {

// What a call waits for its caller to do, or for others to give back. kNothing: it is the server's turn.
// kTurn: a question that may not have its message yet.
enum class WaitsFor : uint8_t { kNothing, kFirstMessage, kMessage, kReader, kBytes, kTurn };

class Watched {
 public:
  struct Sight {
    WaitsFor waits_for = WaitsFor::kNothing;
    uint64_t progress = 0;
    bool is_idle = false;  // Nothing would be lost with it.
  };

  Watched(std::function<Sight()> look, std::function<void(absl::Status)> give_up)
      : look_(std::move(look)), give_up_(std::move(give_up)) {}

  // Neither function runs once this has returned, unless it was called from inside it. Waits for one that runs.
  void Detach();

 private:
  friend class Watchdog;
  // kNothing once it is detached.
  Sight Look();
  void GiveUp(absl::Status why);

  // Recursive, because giving up may end the call, and so detach it, on the same thread.
  std::recursive_mutex mutex_;
  bool detached_ = false;
  const std::function<Sight()> look_;
  const std::function<void(absl::Status)> give_up_;
};

class Watchdog {
 public:
  // Whoever asks with headers and message together waits for some microseconds; longer waits he who keeps back many.
  static constexpr std::chrono::seconds kTurnLimit{1};

  // Zero: for ever.
  struct Limits {
    std::chrono::seconds first_message{30};
    std::chrono::seconds message{60};
    std::chrono::seconds reader{60};
  };

  explicit Watchdog(Limits limits, std::chrono::milliseconds tick = std::chrono::milliseconds(250));
  ~Watchdog();

  void Watch(std::weak_ptr<Watched> watched);

  // From now on a call that is idle for a tick is ended, with `why`.
  void EndIdle(absl::Status why);

 private:
  struct Entry {
    std::weak_ptr<Watched> watched;
    Watched::Sight sight;
    std::chrono::steady_clock::time_point since;  // It has looked the same.
  };

  void Run();
  // False: it is over.
  bool LookAt(Entry& entry, std::chrono::steady_clock::time_point now, const absl::Status& end_of_idle) const;
  std::chrono::seconds LimitOf(WaitsFor waits_for) const;

  const Limits limits_;
  const std::chrono::milliseconds tick_;
  Mutex mutex_;
  std::vector<std::weak_ptr<Watched>> arrived_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_of_idle_ ABSL_GUARDED_BY(mutex_);  // OK: those that are idle go on.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar stop_;
  std::vector<Entry> entries_;  // The thread's.
  std::thread thread_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_WATCHDOG_H_
