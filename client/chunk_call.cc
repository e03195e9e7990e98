#include "client/chunk_call.h"

#include "absl/time/clock.h"
#include "base/status.h"

namespace prefixd::client {

SourceGuard::SourceGuard(ChunkSource& source, Cancellation* cancellation, absl::Time deadline)
    : cancellation_(cancellation), deadline_(deadline) {
  if (!source.MayBlock()) return;
  if (cancellation_ != nullptr) id_ = cancellation_->Add([&source] { source.Interrupt(); });
  if (deadline_ == absl::InfiniteFuture()) return;
  timer_ = std::thread([this, &source] {
    if (ended_.SleepUnlessCancelled(deadline_ - absl::Now())) source.Interrupt();
  });
}

SourceGuard::~SourceGuard() {
  if (id_) cancellation_->Remove(*id_);
  ended_.Cancel();
  if (timer_.joinable()) timer_.join();
}

absl::Status SourceGuard::Explain(const absl::Status& status) const {
  if (cancellation_ != nullptr && cancellation_->cancelled()) return absl::CancelledError("the call was cancelled");
  if (absl::Now() < deadline_ || absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError("the timeout passed before the array had been read");
}

absl::Status CheckLength(std::string_view what, uint64_t got_bytes, uint64_t expected_bytes) {
  if (got_bytes == expected_bytes) return absl::OkStatus();
  return absl::InternalError(
      StrCat("the server returned ", got_bytes, " bytes of ", what, " where ", expected_bytes, " were due"));
}

absl::Status CheckWholeItems(std::string_view what, const Payload& elements, size_t item_bytes) {
  if (elements.size() % item_bytes == 0) return absl::OkStatus();
  return absl::InternalError(StrCat("the server returned ", elements.size(), " bytes of ", what,
                                    ", no multiple of the ", item_bytes, " of an element"));
}

}  // namespace prefixd::client
