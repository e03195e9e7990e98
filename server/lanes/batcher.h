// Small requests of one shape that wait together go to the device together: one copy in, one launch, one copy out.
//
// Nobody waits for company: a request is handed to the lanes at once, and the lane that takes it up takes with it
// whatever of its shape has come meanwhile. So an idle server runs each request alone, and a busy one ever larger
// batches. A window makes them larger still under load, at the cost of its length.
// The bits are those that each request has alone.
//
// Threads: Submit from any thread; `done` is called on a lane thread.
// Bounds:  what waits are requests that were admitted. A batch fits a lane's blocks.
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

// A piece that ran, with its runner, which is the caller's again.
struct PieceRun {
  std::unique_ptr<PieceRunner> runner;
  absl::Status status;
  std::optional<Reply> reply;  // As PieceRunner::Run sets it.
  int64_t queue_ns = 0;        // From the submission until a lane took it up.
};

class Batcher {
 public:
  // One request that waits. `stop` lives until done was called.
  struct Entry {
    std::unique_ptr<PieceRunner> runner;
    Piece piece;  // For which the runner's IsBatchable holds.
    const StopSignal* stop = nullptr;
    absl::AnyInvocable<void(PieceRun)> done;
    std::chrono::steady_clock::time_point submitted = std::chrono::steady_clock::now();
  };

  // window: how long a lane waits for more where several requests of a shape wait already; zero: not at all.
  // on_failure: called where a launch for several failed, before each of them is run alone.
  // The lanes outlive the batcher's last entry.
  Batcher(LanePool* lanes, absl::Duration window, std::function<void(const absl::Status&)> on_failure)
      : lanes_(lanes), window_(window), on_failure_(std::move(on_failure)) {}

  void Submit(Entry entry);

 private:
  // What the requests of a batch have in common.
  struct Shape {
    Spec spec;  // As if the length were not declared: that makes no difference.
    uint64_t num_items = 0;

    friend bool operator==(const Shape&, const Shape&) = default;
    template <class H>
    friend H AbslHashValue(H hash, const Shape& shape) {
      return H::combine(std::move(hash), shape.num_items, InputOf(shape.spec), shape.spec.index());
    }
  };

  struct Waiting {
    std::vector<Entry> entries;
    bool is_gathered = false;  // A lane waits for the window, and will take them all.
  };

  static Shape ShapeOf(const Entry& entry);
  void Run(BorrowedLane& lane, const Shape& shape);
  void RunEntries(BorrowedLane& lane, std::vector<Entry> entries);
  // Waits for the window where there is reason to. False if another lane does.
  bool Gather(const Shape& shape);
  // Entries that one launch takes, the first to come first.
  std::vector<Entry> Take(const Shape& shape);

  LanePool* const lanes_;
  const absl::Duration window_;
  const std::function<void(const absl::Status&)> on_failure_;
  Mutex mutex_;
  absl::flat_hash_map<Shape, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_BATCHER_H_
