// Small requests of one shape that wait at the same time share one copy in, one launch and one copy out.
//
// A request does not wait for others: it is submitted to the lanes at once, and the lane that takes it up takes all
// waiting requests of its shape with it. So an idle server runs each request alone, and a busy server runs larger
// batches. A window makes batches larger under load, and each request may wait as long as the window.
// Each request is taken up in its caller's turn at the latest, and then takes along those of other callers that came
// first. A request has the same bits in a batch as alone.
//
// Threads: Submit from any thread; `done` is called on a lane thread.
// Bounds:  only admitted requests wait. A batch fits a lane's blocks.
#ifndef PREFIXD_SERVER_LANES_BATCHER_H_
#define PREFIXD_SERVER_LANES_BATCHER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/call/stop_signal.h"
#include "server/lanes/lane_pool.h"
#include "server/request.h"
#include "server/work/piece_runner.h"

namespace prefixd {

// A piece that ran. The caller owns the runner again.
struct PieceRun {
  std::unique_ptr<PieceRunner> runner;
  absl::Status status;
  std::optional<Reply> reply;  // As PieceRunner::Run sets it.
  int64_t queue_ns = 0;        // From the submission until a lane took it up.
};

class Batcher {
 public:
  // One waiting request. `stop` lives until done was called.
  struct Entry {
    std::unique_ptr<PieceRunner> runner;
    FairCaller caller;  // Read by Submit only.
    Piece piece;        // The runner's IsBatchable holds for it.
    const StopSignal* stop = nullptr;
    absl::AnyInvocable<void(PieceRun)> done;
    std::chrono::steady_clock::time_point submitted = std::chrono::steady_clock::now();
  };

  // window: how long a lane waits for more requests where several of a shape wait already; zero: not at all.
  // on_failure: called when a batch's launch failed, before each of its requests is run alone.
  // The lanes outlive the batcher's last entry.
  Batcher(LanePool* lanes, absl::Duration window, std::function<void(const absl::Status&)> on_failure)
      : lanes_(lanes), window_(window), on_failure_(std::move(on_failure)) {}

  void Submit(Entry entry);

 private:
  // The requests of a batch have the same.
  struct Shape {
    Operation operation;  // Without the declared length, which changes nothing for the kernel.
    uint64_t num_items = 0;

    friend bool operator==(const Shape&, const Shape&) = default;
    template <class H>
    friend H AbslHashValue(H hash, const Shape& shape) {
      return H::combine(std::move(hash), shape.num_items, InputOf(shape.operation), shape.operation.index());
    }
  };

  struct Waiting {
    std::vector<std::pair<uint64_t, Entry>> entries;  // By number, in the order submitted.
    bool is_gathered = false;                         // A lane waits for the window to pass, and takes them all then.
  };

  static Shape ShapeOf(const Entry& entry);
  // The task of the entry of that number.
  void Run(BorrowedLane& lane, const Shape& shape, uint64_t number);
  void RunEntries(BorrowedLane& lane, std::vector<Entry> entries);
  // Waits for the window if several requests wait. False if another lane waits for it already.
  bool Gather(const Shape& shape);
  // Entries that one launch takes: that of the number, if it is still there, and the first to come.
  std::vector<Entry> Take(const Shape& shape, uint64_t number);

  LanePool* const lanes_;
  const absl::Duration window_;
  const std::function<void(const absl::Status&)> on_failure_;
  Mutex mutex_;
  uint64_t num_submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Shape, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_BATCHER_H_
