#include "server/batcher.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "kernels/status.h"
#include "server/kernel_args.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

int64_t NanosecondsSince(Clock::time_point start) { return std::chrono::nanoseconds(Clock::now() - start).count(); }

uint64_t BytesPerItem(const Spec& spec) {
  uint64_t bytes = std::max(SizeOf(spec.dtype), SizeOf(spec.output()));
  if (const auto* compact = std::get_if<CompactSpec>(&spec.detail)) {
    bytes = std::max<uint64_t>(bytes, SizeOf(compact->index_dtype));
  }
  return bytes;
}

// Entries of one shape in one launch.
class Together {
 public:
  Together(BorrowedLane& lane, bool direct, absl::Span<Batcher::Entry> entries)
      : lane_(lane),
        entries_(entries),
        spec_(entries.front().pipeline->spec()),
        num_items_(entries.front().piece.num_items),
        direct_(direct) {}

  // A reply for each entry, none for a reduce. Errors: of the device; then the entries are as they were.
  absl::StatusOr<std::vector<std::optional<Reply>>> Run() {
    absl::Status status = std::visit([&](const auto& detail) { return RunAs(detail); }, spec_.detail);
    if (const absl::Status idle = lane_.lane->Synchronize(); status.ok()) status = idle;
    share_.device = lane_.lane->TakeStageTimes();
    PREFIXD_RETURN_IF_ERROR(status);
    share_.num_items = num_items_;
    share_.size = static_cast<uint32_t>(entries_.size());
    std::vector<std::optional<Reply>> replies;
    std::vector<ChunkPipeline::BatchShare> shares;
    const auto start = Clock::now();
    for (size_t i = 0; i < entries_.size(); ++i) {
      std::visit([&](const auto& detail) { replies.push_back(ReplyOf(detail, i)); }, spec_.detail);
      shares.push_back(share_);
    }
    const int64_t copy_out_ns = NanosecondsSince(start);
    for (size_t i = 0; i < entries_.size(); ++i) {
      shares[i].host_copy_ns += copy_out_ns;
      entries_[i].pipeline->AcceptShare(shares[i]);
    }
    return replies;
  }

 private:
  std::byte* Of(const StagingBlock& block) const { return (direct_ ? block.host : block.device).data(); }

  // Copies an array of each entry in, one behind the other.
  template <class ArrayOf>
  absl::Status CopyIn(const StagingBlock& block, uint64_t size_bytes, ArrayOf array_of) {
    const auto start = Clock::now();
    std::byte* to = block.host.data();
    for (const Batcher::Entry& entry : entries_) {
      array_of(entry).CopyTo(to, 0, size_bytes);
      to += size_bytes;
    }
    share_.host_copy_ns += NanosecondsSince(start);
    if (direct_) return absl::OkStatus();
    return lane_.lane->CopyToDevice(block.device.data(), block.host.data(), entries_.size() * size_bytes);
  }
  absl::Status CopyValuesIn() {
    return CopyIn(lane_.in, num_items_ * SizeOf(spec_.dtype),
                  [](const Batcher::Entry& entry) -> const Payload& { return entry.piece.chunk.values; });
  }
  absl::Status CopyOut(const StagingBlock& block, uint64_t size_bytes) {
    if (direct_) return absl::OkStatus();
    return lane_.lane->CopyToHost(block.host.data(), block.device.data(), entries_.size() * size_bytes);
  }

  absl::Status RunAs(const ScanSpec& scan) {
    PREFIXD_RETURN_IF_ERROR(CopyValuesIn());
    ScanArgs args = ArgsOf(spec_, scan);
    args.in = Of(lane_.in);
    args.out = Of(lane_.values);
    args.num_items = num_items_;
    args.num_arrays = entries_.size();
    PREFIXD_RETURN_IF_ERROR(lane_.lane->Scan(args));
    return CopyOut(lane_.values, num_items_ * SizeOf(spec_.output()));
  }
  std::optional<Reply> ReplyOf(const ScanSpec& /*scan*/, size_t i) {
    Reply reply;
    reply.values = ArrayOf(lane_.values, i, num_items_, SizeOf(spec_.output()));
    return reply;
  }

  absl::Status RunAs(const ReduceSpec& reduce) {
    PREFIXD_RETURN_IF_ERROR(CopyValuesIn());
    ReduceArgs args = ArgsOf(spec_, reduce);
    args.in = Of(lane_.in);
    args.num_items = num_items_;
    args.num_arrays = entries_.size();
    args.state_out = reinterpret_cast<ReduceState*>(Of(lane_.scalar));
    PREFIXD_RETURN_IF_ERROR(lane_.lane->Reduce(args));
    return CopyOut(lane_.scalar, sizeof(ReduceState));
  }
  std::optional<Reply> ReplyOf(const ReduceSpec& /*reduce*/, size_t i) {
    std::memcpy(&share_.reduced, lane_.scalar.host.data() + i * sizeof(ReduceState), sizeof(ReduceState));
    return std::nullopt;
  }

  absl::Status RunAs(const CompactSpec& compact) {
    PREFIXD_RETURN_IF_ERROR(CopyValuesIn());
    CompactArgs args = ArgsOf(spec_, compact);
    if (compact.selector != Selector::kPredicate) {
      PREFIXD_RETURN_IF_ERROR(
          CopyIn(lane_.mask, MaskBytesOf(compact.selector, num_items_),
                 [](const Batcher::Entry& entry) -> const Payload& { return *entry.piece.chunk.mask; }));
    }
    args.in = Of(lane_.in);
    args.mask = Of(lane_.mask);
    args.num_items = num_items_;
    args.num_arrays = entries_.size();
    args.values = compact.return_values ? Of(lane_.values) : nullptr;
    args.indices = compact.return_indices ? Of(lane_.indices) : nullptr;
    args.count = reinterpret_cast<uint64_t*>(Of(lane_.scalar));
    PREFIXD_RETURN_IF_ERROR(lane_.lane->Compact(args));
    PREFIXD_RETURN_IF_ERROR(CopyOut(lane_.scalar, sizeof(uint64_t)));
    if (compact.return_values) PREFIXD_RETURN_IF_ERROR(CopyOut(lane_.values, num_items_ * SizeOf(spec_.dtype)));
    if (compact.return_indices)
      PREFIXD_RETURN_IF_ERROR(CopyOut(lane_.indices, num_items_ * SizeOf(compact.index_dtype)));
    return absl::OkStatus();
  }
  std::optional<Reply> ReplyOf(const CompactSpec& compact, size_t i) {
    std::memcpy(&share_.num_kept, lane_.scalar.host.data() + i * sizeof(uint64_t), sizeof(uint64_t));
    Reply reply;
    reply.num_kept = share_.num_kept;
    if (compact.return_values) reply.values = ArrayOf(lane_.values, i, share_.num_kept, SizeOf(spec_.dtype));
    if (compact.return_indices) reply.indices = ArrayOf(lane_.indices, i, share_.num_kept, SizeOf(compact.index_dtype));
    return reply;
  }

  // A copy of the first `count` items of array i, which has room for num_items_.
  Payload ArrayOf(const StagingBlock& block, size_t i, uint64_t count, uint64_t item_bytes) const {
    const auto* const array = reinterpret_cast<const char*>(block.host.data()) + i * num_items_ * item_bytes;
    return Payload(std::string(array, count * item_bytes));
  }

  BorrowedLane& lane_;
  const absl::Span<Batcher::Entry> entries_;
  const Spec& spec_;
  const uint64_t num_items_;
  const bool direct_;
  ChunkPipeline::BatchShare share_;
};

void RunAlone(BorrowedLane& lane, Batcher::Entry& entry, int64_t queue_ns) {
  std::optional<Reply> reply;
  const absl::Status status = entry.pipeline->RunPiece(lane, entry.piece, *entry.stop, &reply);
  entry.done(status, std::move(reply), queue_ns);
}

}  // namespace

Batcher::Shape Batcher::ShapeOf(const Entry& entry) {
  Shape shape = {.spec = entry.pipeline->spec(), .num_items = entry.piece.num_items};
  shape.spec.num_items = shape.num_items;  // Declared or not.
  return shape;
}

void Batcher::Submit(Entry entry) {
  const Shape shape = ShapeOf(entry);
  lanes_->NoteSmallRequest();
  {
    MutexLock lock(mutex_);
    waiting_[shape].entries.push_back(std::move(entry));
  }
  // One task an entry: where an earlier one took it along, its own finds nothing left.
  lanes_->Submit(TaskSize::kSmall, [this, shape](BorrowedLane& lane) { Run(lane, shape); });
}

std::vector<Batcher::Entry> Batcher::Take(const Shape& shape) {
  const uint64_t array_bytes = shape.num_items * BytesPerItem(shape.spec);
  const size_t most = std::clamp<size_t>(kMaxReplyPayloadBytes / array_bytes, 1, kMaxBatchSize);
  MutexLock lock(mutex_);
  const auto found = waiting_.find(shape);
  if (found == waiting_.end()) return {};
  std::vector<Entry>& entries = found->second.entries;
  if (entries.size() <= most) {
    std::vector<Entry> all = std::move(entries);
    waiting_.erase(found);
    return all;
  }
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(most);
  std::vector<Entry> taken(std::make_move_iterator(entries.begin()), std::make_move_iterator(end));
  entries.erase(entries.begin(), end);
  return taken;
}

bool Batcher::Gather(const Shape& shape) {
  {
    MutexLock lock(mutex_);
    const auto found = waiting_.find(shape);
    if (found == waiting_.end()) return true;
    if (found->second.is_gathered) return false;
    if (found->second.entries.size() == 1) return true;
    found->second.is_gathered = true;
  }
  absl::SleepFor(window_);
  MutexLock lock(mutex_);
  // A lane that looked when there was one entry may have taken all meanwhile.
  if (const auto found = waiting_.find(shape); found != waiting_.end()) found->second.is_gathered = false;
  return true;
}

void Batcher::Run(BorrowedLane& lane, const Shape& shape) {
  const bool has_window = window_ > absl::ZeroDuration();
  if (has_window && !Gather(shape)) return;
  // Tasks that found a window open left their entries to it, so that those of several batches may be here.
  do {
    std::vector<Entry> entries = Take(shape);
    if (entries.empty()) return;
    RunEntries(lane, std::move(entries));
  } while (has_window);
}

void Batcher::RunEntries(BorrowedLane& lane, std::vector<Entry> entries) {
  const auto begin = Clock::now();
  // Those that nobody waits for any more drop out.
  const auto wanted_end = std::stable_partition(entries.begin(), entries.end(),
                                                [](const Entry& entry) { return entry.stop->Check().ok(); });
  const absl::Span<Entry> wanted(entries.data(), static_cast<size_t>(wanted_end - entries.begin()));
  absl::StatusOr<std::vector<std::optional<Reply>>> replies = std::vector<std::optional<Reply>>();
  if (wanted.size() > 1) {
    const Spec& spec = wanted.front().pipeline->spec();
    const uint64_t batch_bytes = wanted.size() * wanted.front().piece.num_items * BytesPerItem(spec);
    replies = Together(lane, batch_bytes <= lane.direct_bytes, wanted).Run();
    if (!replies.ok()) on_failure_(replies.status());
  }
  const size_t num_served = replies.ok() ? replies->size() : 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    // A request that is answered goes at once, with its place in the budgets: its caller may be back before the last.
    Entry entry = std::move(entries[i]);
    const int64_t queue_ns = std::chrono::nanoseconds(begin - entry.submitted).count();
    if (i < num_served) {
      entry.done(absl::OkStatus(), std::move((*replies)[i]), queue_ns);
    } else {
      RunAlone(lane, entry, queue_ns);  // What fails in company may do alone; what was stopped says why.
    }
  }
}

}  // namespace prefixd
