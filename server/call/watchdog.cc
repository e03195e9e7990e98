#include "server/call/watchdog.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

absl::Status TooLong(WaitsFor waits_for, std::chrono::seconds limit) {
  const auto error = [&](std::string_view reason, std::string_view what, std::string_view flag) {
    return Error(absl::StatusCode::kDeadlineExceeded, reason, "",
                 StrCat(what, " for ", limit.count(), " s (", flag, "): the call was ended"));
  };
  switch (waits_for) {
    case WaitsFor::kFirstMessage:
      return error("FIRST_MESSAGE_TIMEOUT", "no message came", "--first-message-timeout-seconds");
    case WaitsFor::kMessage:
      return error("MESSAGE_TIMEOUT", "no further message came", "--message-timeout-seconds");
    case WaitsFor::kBytes:  // Streams that have some and want more may wait for each other.
      return Error(absl::StatusCode::kResourceExhausted, "BYTE_BUDGET", "",
                   StrCat("there was no memory for the next message for ", limit.count(),
                          " s (--message-timeout-seconds): the call was ended, retry later"));
    case WaitsFor::kTurn:
      return Error(absl::StatusCode::kResourceExhausted, "BYTE_BUDGET", "",
                   "too many questions of this caller wait for their messages: send messages whole, and retry later");
    case WaitsFor::kReader:
    case WaitsFor::kNothing:
      break;
  }
  return error("REPLY_TIMEOUT", "a reply was not taken", "--reply-timeout-seconds");
}

}  // namespace

void Watched::Detach() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  detached_ = true;
}

Watched::Sight Watched::Look() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return detached_ ? Sight() : look_();
}

void Watched::GiveUp(absl::Status why) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (!detached_) give_up_(std::move(why));
}

Watchdog::Watchdog(Limits limits, std::chrono::milliseconds tick) : limits_(limits), tick_(tick) {
  thread_ = std::thread([this] { Run(); });
}

Watchdog::~Watchdog() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyOne();
  thread_.join();
}

void Watchdog::Watch(std::weak_ptr<Watched> watched) {
  MutexLock lock(mutex_);
  arrived_.push_back(std::move(watched));
}

void Watchdog::EndIdle(absl::Status why) {
  MutexLock lock(mutex_);
  end_of_idle_ = std::move(why);
}

std::chrono::seconds Watchdog::LimitOf(WaitsFor waits_for) const {
  switch (waits_for) {
    case WaitsFor::kFirstMessage:
      return limits_.first_message;
    case WaitsFor::kMessage:
    case WaitsFor::kBytes:
      return limits_.message;
    case WaitsFor::kReader:
      return limits_.reader;
    case WaitsFor::kTurn:
      return kTurnLimit;
    case WaitsFor::kNothing:
      break;
  }
  return std::chrono::seconds(0);
}

bool Watchdog::LookAt(Entry& entry, Clock::time_point now, const absl::Status& end_of_idle) const {
  const std::shared_ptr<Watched> watched = entry.watched.lock();
  if (watched == nullptr) return false;
  const Watched::Sight sight = watched->Look();
  const bool is_same = sight.waits_for == entry.sight.waits_for && sight.progress == entry.sight.progress;
  if (!is_same) {
    entry.sight = sight;
    entry.since = now;
    return true;
  }
  if (sight.is_idle && !end_of_idle.ok()) {
    watched->GiveUp(end_of_idle);
    return true;
  }
  const std::chrono::seconds limit = LimitOf(sight.waits_for);
  if (limit.count() == 0 || now - entry.since < limit) return true;
  watched->GiveUp(TooLong(sight.waits_for, limit));
  entry.since = now;  // It is told again if that did not help.
  return true;
}

void Watchdog::Run() {
  std::vector<std::weak_ptr<Watched>> arrived;
  absl::Status end_of_idle;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) stop_.WaitFor(mutex_, tick_);
      if (stopping_) return;
      end_of_idle = end_of_idle_;
      arrived.swap(arrived_);  // Calls that begin do not wait for us to look at thousands that have ended.
    }
    const Clock::time_point now = Clock::now();
    for (std::weak_ptr<Watched>& watched : arrived) {
      if (!watched.expired()) entries_.push_back({.watched = std::move(watched), .sight = {}, .since = now});
    }
    arrived.clear();
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                  [&](Entry& entry) { return !LookAt(entry, now, end_of_idle); }),
                   entries_.end());
  }
}

}  // namespace prefixd
