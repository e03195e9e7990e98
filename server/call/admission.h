// Budgets of the whole server: how many requests it holds at once, and how many bytes of theirs. A request that does
// not fit is refused at once, with a time after which to try again. No request waits here, so there is no queue.
// Threads: any.
#ifndef PREFIXD_SERVER_CALL_ADMISSION_H_
#define PREFIXD_SERVER_CALL_ADMISSION_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace prefixd {

class Admission {
 public:
  struct Use {
    uint64_t requests = 0;
    uint64_t bytes = 0;
  };

  // A place among the requests, and bytes, given back when it is destroyed. Must not outlive its Admission.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(admission_, other.admission_);
      std::swap(bytes_, other.bytes_);
      std::swap(has_place_, other.has_place_);
      return *this;
    }
    ~Ticket() {
      if (admission_ != nullptr) admission_->Release({.requests = has_place_, .bytes = bytes_});
    }
    // Gives the place back and keeps kept_bytes charged. Called before a request is answered: its caller may send the
    // next request before gRPC has let go of this answer, which still takes memory.
    void LeavePlace(uint64_t kept_bytes) {
      const uint64_t bytes = std::min(kept_bytes, bytes_);
      if (std::exchange(has_place_, false)) {
        admission_->Release({.requests = 1, .bytes = std::exchange(bytes_, bytes) - bytes});
      }
    }

   private:
    friend class Admission;
    Ticket(Admission* admission, uint64_t bytes) : admission_(admission), bytes_(bytes), has_place_(true) {}
    Admission* admission_ = nullptr;
    uint64_t bytes_ = 0;
    bool has_place_ = false;
  };

  Admission(uint64_t max_requests, uint64_t max_bytes) : max_requests_(max_requests), max_bytes_(max_bytes) {}

  // Errors: RESOURCE_EXHAUSTED (REQUEST_BUDGET, BYTE_BUDGET): retry later; the status given to Close after it.
  absl::StatusOr<Ticket> Admit(uint64_t bytes);

  // Refuses every later request with `status`, which is not OK. Tickets that are out stay valid.
  void Close(absl::Status status);

  // What Close was given; OK before.
  absl::Status closed() const;

  Use in_use() const;
  Use limits() const { return {max_requests_, max_bytes_}; }

 private:
  void Release(Use share);

  const uint64_t max_requests_;
  const uint64_t max_bytes_;
  mutable Mutex mutex_;
  Use use_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_ADMISSION_H_
