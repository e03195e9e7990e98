#include "server/lanes/batcher.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "server/work/batch.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Batcher::Shape Batcher::ShapeOf(const Entry& entry) {
  Shape shape = {.operation = entry.runner->work().operation(), .num_items = entry.piece.num_items};
  std::visit(
      [](auto& one) {
        if constexpr (requires { one.num_items.reset(); }) one.num_items.reset();
      },
      shape.operation);
  return shape;
}

void Batcher::Submit(Entry entry) {
  const Shape shape = ShapeOf(entry);
  const TaskInfo info = {.size = TaskSize::kSmall,
                         .estimated_ns = entry.runner->EstimateNs(entry.piece.num_items),
                         .caller = entry.caller};
  lanes_->NoteSmallRequest();
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = num_submitted_++;
    waiting_[shape].entries.emplace_back(number, std::move(entry));
  }
  // One task an entry: where an earlier one took it along, its own finds nothing left.
  lanes_->Submit(info, [this, shape, number](BorrowedLane& lane) { Run(lane, shape, number); });
}

std::vector<Batcher::Entry> Batcher::Take(const Shape& shape, uint64_t number) {
  MutexLock lock(mutex_);
  const auto found = waiting_.find(shape);
  if (found == waiting_.end()) return {};
  auto& entries = found->second.entries;
  const size_t most = std::min(MaxBatchSize(entries.front().second.runner->work(), shape.num_items), entries.size());
  const auto own = std::lower_bound(entries.begin(), entries.end(), number,
                                    [](const auto& entry, uint64_t n) { return entry.first < n; });
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(most);
  // The last one that would be taken makes room for its own, behind which the rest stays in order.
  if (own >= end && own != entries.end() && own->first == number) std::rotate(end - 1, own, own + 1);
  std::vector<Entry> taken;
  taken.reserve(most);
  for (auto entry = entries.begin(); entry != end; ++entry) taken.push_back(std::move(entry->second));
  entries.erase(entries.begin(), end);
  if (entries.empty()) waiting_.erase(found);
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
  absl::SleepFor(window_);  // For more entries to come.
  MutexLock lock(mutex_);
  // A lane that looked when there was one entry may have taken all meanwhile.
  if (const auto found = waiting_.find(shape); found != waiting_.end()) found->second.is_gathered = false;
  return true;
}

void Batcher::Run(BorrowedLane& lane, const Shape& shape, uint64_t number) {
  const bool has_window = window_ > absl::ZeroDuration();
  if (has_window && !Gather(shape)) return;
  // Tasks that found a window open left their entries to it, so that those of several batches may be here.
  do {
    std::vector<Entry> entries = Take(shape, number);
    if (entries.empty()) return;
    RunEntries(lane, std::move(entries));
  } while (has_window);
}

void Batcher::RunEntries(BorrowedLane& lane, std::vector<Entry> entries) {
  const auto begin = Clock::now();
  // Those that nobody waits for any more drop out.
  const auto wanted_end = std::stable_partition(entries.begin(), entries.end(),
                                                [](const Entry& entry) { return entry.stop->Check().ok(); });
  std::vector<BatchedPiece> batch;
  for (auto entry = entries.begin(); entry != wanted_end; ++entry) {
    batch.push_back({.runner = entry->runner.get(), .piece = &entry->piece});
  }
  size_t num_served = 0;
  if (batch.size() > 1) {
    const absl::Status status = RunBatch(lane, absl::MakeSpan(batch));
    if (status.ok()) {
      num_served = batch.size();
    } else {
      on_failure_(status);
    }
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    // A request that is answered goes at once, with its place in the budgets: its caller may be back before the last.
    Entry entry = std::move(entries[i]);
    PieceRun run = {.queue_ns = std::chrono::nanoseconds(begin - entry.submitted).count()};
    if (i < num_served) {
      run.reply = std::move(batch[i].reply);
    } else {  // What fails in company may do alone; what was stopped says why.
      run.status = entry.runner->Run(lane, entry.piece, *entry.stop, &run.reply);
    }
    run.runner = std::move(entry.runner);
    entry.piece = {};  // Or its message would be held as long as the reply takes to be sent.
    entry.done(std::move(run));
  }
}

}  // namespace prefixd
