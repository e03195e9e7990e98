#include "server/work/batch.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

int64_t NanosecondsSince(Clock::time_point start) { return std::chrono::nanoseconds(Clock::now() - start).count(); }

// What an item takes at most in one block.
uint64_t BlockBytesPerItem(const Work& work) {
  return std::max({work.item_bytes(), work.shape().value_bytes, work.shape().index_bytes});
}

class Batch {
 public:
  Batch(BorrowedLane& lane, absl::Span<BatchedPiece> pieces)
      : lane_(lane),
        pieces_(pieces),
        work_(pieces.front().runner->work()),
        num_items_(pieces.front().piece->num_items),
        direct_(pieces.size() * num_items_ * BlockBytesPerItem(work_) <= lane.direct_bytes) {}

  absl::Status Run() {
    absl::Status status = Enqueue();
    if (const absl::Status idle = lane_.lane->Synchronize(); status.ok()) status = idle;
    done_.device = lane_.lane->TakeStageTimes();
    PREFIXD_RETURN_IF_ERROR(status);
    done_.batch_size = static_cast<uint32_t>(pieces_.size());
    done_.totals.num_items = num_items_;
    HandOut();
    return absl::OkStatus();
  }

 private:
  absl::Status Enqueue() {
    const WorkShape& shape = work_.shape();
    PREFIXD_RETURN_IF_ERROR(CopyIn(lane_.in, num_items_ * work_.item_bytes(),
                                   [](const Chunk& chunk) -> const Payload& { return chunk.values; }));
    if (shape.mask) {
      PREFIXD_RETURN_IF_ERROR(CopyIn(lane_.mask, MaskBytes(*shape.mask, num_items_),
                                     [](const Chunk& chunk) -> const Payload& { return *chunk.mask; }));
    }
    PREFIXD_RETURN_IF_ERROR(work_.Enqueue(*lane_.lane, {.in = lane_.in.data(direct_),
                                                        .mask = lane_.mask.data(direct_),
                                                        .values = lane_.values.data(direct_),
                                                        .indices = lane_.indices.data(direct_),
                                                        .scalar = lane_.scalar.data(direct_),
                                                        .num_items = num_items_,
                                                        .num_arrays = pieces_.size()}));
    PREFIXD_RETURN_IF_ERROR(CopyOut(lane_.scalar, shape.scalar_bytes));
    PREFIXD_RETURN_IF_ERROR(CopyOut(lane_.values, num_items_ * shape.value_bytes));
    return CopyOut(lane_.indices, num_items_ * shape.index_bytes);
  }

  // Copies an array of each request in, one behind the other.
  template <class ArrayOf>
  absl::Status CopyIn(const StagingBlock& block, uint64_t array_bytes, ArrayOf array_of) {
    const auto start = Clock::now();
    std::byte* to = block.host.data();
    for (const BatchedPiece& one : pieces_) {
      array_of(one.piece->chunk).CopyTo(to, 0, array_bytes);
      to += array_bytes;
    }
    copy_ns_ += NanosecondsSince(start);
    if (direct_) return absl::OkStatus();
    return lane_.lane->CopyToDevice(block.device.data(), block.host.data(), pieces_.size() * array_bytes);
  }

  absl::Status CopyOut(const StagingBlock& block, uint64_t array_bytes) {
    if (direct_ || array_bytes == 0) return absl::OkStatus();
    return lane_.lane->CopyToHost(block.host.data(), block.device.data(), pieces_.size() * array_bytes);
  }

  // Gives each request what is its own.
  void HandOut() {
    const WorkShape& shape = work_.shape();
    const auto start = Clock::now();
    std::vector<WorkDone> shares(pieces_.size(), done_);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (shape.scalar_bytes > 0) {
        AddScalar(shape, lane_.scalar.host.data() + i * shape.scalar_bytes, &shares[i].totals);
      }
      if (shape.value_bytes == 0 && !shape.is_counted) continue;
      const uint64_t num_outputs = shape.is_counted ? shares[i].totals.num_kept : num_items_;
      pieces_[i].reply = {.values = ArrayAt(lane_.values, i, num_outputs, shape.value_bytes),
                          .indices = ArrayAt(lane_.indices, i, num_outputs, shape.index_bytes),
                          .num_kept = shares[i].totals.num_kept};
    }
    copy_ns_ += NanosecondsSince(start);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      shares[i].host_copy_ns = copy_ns_;
      pieces_[i].runner->Accept(shares[i]);
    }
  }

  // A copy of the first `count` items of array i, which has room for num_items_.
  Payload ArrayAt(const StagingBlock& block, size_t i, uint64_t count, uint64_t item_bytes) const {
    if (count * item_bytes == 0) return {};
    const auto* const array = reinterpret_cast<const char*>(block.host.data()) + i * num_items_ * item_bytes;
    return Payload(std::string(array, count * item_bytes));
  }

  BorrowedLane& lane_;
  const absl::Span<BatchedPiece> pieces_;
  const Work& work_;
  const uint64_t num_items_;
  const bool direct_;
  int64_t copy_ns_ = 0;
  WorkDone done_;  // What all have in common.
};

}  // namespace

size_t MaxBatchSize(const Work& work, uint64_t num_items) {
  return std::clamp<size_t>(kMaxReplyPayloadBytes / (num_items * BlockBytesPerItem(work)), 1, kMaxBatchSize);
}

absl::Status RunBatch(BorrowedLane& lane, absl::Span<BatchedPiece> batch) { return Batch(lane, batch).Run(); }

}  // namespace prefixd
