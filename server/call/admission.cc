#include "server/call/admission.h"

#include "base/status.h"

namespace prefixd {

absl::StatusOr<Admission::Ticket> Admission::Admit(uint64_t bytes) {
  MutexLock lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (use_.requests >= max_requests_) {
    return Error(absl::StatusCode::kResourceExhausted, "REQUEST_BUDGET", "",
                 StrCat("the server is working on ", use_.requests, " requests, as many as it takes at once",
                        " (--max-requests): retry later"));
  }
  if (bytes > max_bytes_ - use_.bytes) {
    return Error(absl::StatusCode::kResourceExhausted, "BYTE_BUDGET", "",
                 StrCat("the request needs ", bytes, " bytes and ", use_.bytes, " of ", max_bytes_,
                        " are in use (--max-request-bytes): retry later"));
  }
  ++use_.requests;
  use_.bytes += bytes;
  return Ticket(this, bytes);
}

void Admission::Close(absl::Status status) {
  MutexLock lock(mutex_);
  closed_ = std::move(status);
}

absl::Status Admission::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

Admission::Use Admission::in_use() const {
  MutexLock lock(mutex_);
  return use_;
}

void Admission::Release(Use share) {
  MutexLock lock(mutex_);
  use_.requests -= share.requests;
  use_.bytes -= share.bytes;
}

}  // namespace prefixd
