// Executes a program on one lane: step by step, in memory that comes before the step that writes it and goes after the
// step that reads it last. Steps are enqueued behind each other. The lane is waited for only where the next step needs
// what the host has to know first: how many elements a compact kept, and the value of a reduce.
//
//   std::unique_ptr<ProgramRunner> runner = *ProgramRunner::Create(device, &store, caller, std::move(program));
//   ... on a lane: PREFIXD_RETURN_IF_ERROR(runner->Run(lane, stop)) ...
//   ProgramResult result = *runner->Finish();
//
// Threads:   one at a time: Create and Finish on any, Run on the lane's.
// Ownership: keeps the arrays that the program uses in use, and its memory and charges, until it is destroyed.
#ifndef PREFIXD_SERVER_PROGRAM_PROGRAM_RUNNER_H_
#define PREFIXD_SERVER_PROGRAM_PROGRAM_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "proto/array_info.h"
#include "server/arrays/array_store.h"
#include "server/call/caller.h"
#include "server/call/stop_signal.h"
#include "server/lanes/lane_pool.h"
#include "server/program/plan.h"
#include "server/program/program.h"
#include "server/work/work.h"

namespace prefixd {

// What one step took.
struct StepDone {
  StageTimes device;
  uint64_t num_items = 0;  // Read; of a fill, written.
  Algorithm algorithm = {};
  uint64_t num_bad_indices = 0;
};

// Where an output went: one of the three.
struct OutputDone {
  std::string name;
  DType dtype = DType::kI32;
  uint64_t num_items = 0;
  std::string bytes = {};  // Inline.
  std::optional<ArrayInfo> new_array = {};
  std::optional<ArraySlice> slice = {};
};

struct ProgramDone {
  std::vector<StepDone> steps;
  std::vector<OutputDone> outputs;
  StageTimes device;  // All of it, the copies in and out included.
  uint64_t peak_bytes = 0;
};

class ProgramRunner {
 public:
  // Checks the program, takes its arrays into use, and charges its memory. The device and the store outlive the runner.
  // Errors: those of MakePlan and MakeWork, with the step's path; the store's.
  static absl::StatusOr<std::unique_ptr<ProgramRunner>> Create(const Device& device, ArrayStore* store,
                                                               const Caller& caller, Program program);

  // What it takes of a lane.
  TaskSize Size() const;
  int64_t EstimateNs() const;

  // Runs all steps, and delivers the outputs. Once. Blocks on the device; on return the lane is idle, also after an
  // error.
  // Errors: the lane's; those of `stop`, which is asked before each step, and hears within some 10 ms of device work
  //         and one step;
  //         OUT_OF_RANGE (SINK_TOO_SMALL, REPLY_TOO_LARGE) where a compact decided a length; the store's, for new
  //         arrays.
  absl::Status Run(BorrowedLane& lane, const StopSignal& stop);

  // What a reply has at most, with the inline outputs. After Run was OK.
  uint64_t MostReplyBytes() const;

  // Gives new arrays their names. After Run was OK. Once. Errors: the store's.
  absl::StatusOr<ProgramDone> Finish();

 private:
  struct StepWork {
    std::unique_ptr<const Work> work;
    uint64_t max_items = 0;
    uint64_t num_segments = 0;
  };

  // The element of an array that has one, as the host knows it: a count, or a reduce's value or index.
  struct HostElement {
    uint64_t bits = 0;
    bool is_on_device = false;
  };

  ProgramRunner(ArrayStore* store, const Caller& caller, Program program)
      : store_(store), caller_(caller), program_(std::move(program)) {}

  absl::Status Plan(const Device& device);
  absl::Status TakeArrays();
  absl::Status Charge();

  absl::Status RunAll(BorrowedLane& lane, const StopSignal& stop);
  absl::Status BringIn(BorrowedLane& lane);
  // Whether the lane has to be waited for before the step can be enqueued.
  bool HasToWait(const PlanStep& step) const;
  // Waits for the lane, and reads the scalars that came.
  absl::Status Await(BorrowedLane& lane);
  absl::Status EnqueueStep(BorrowedLane& lane, size_t step, const StopSignal& stop);
  void ReadScalar(size_t step, const std::byte* scalar);
  // Sees to it that what the host knows of an array is where steps read it.
  absl::Status PutOnDevice(BorrowedLane& lane, int slot);
  absl::Status Deliver(BorrowedLane& lane, size_t output);
  // What is known once the lane is idle: times, and the bytes of inline outputs.
  void Conclude(BorrowedLane& lane, const std::vector<StageTimes>& parts);

  uint64_t NumItems(const Slot& slot) const;
  std::byte* DataOf(int slot) const;
  std::byte* Read(const PlanStep& step, Role role) const;
  std::byte* Written(const PlanStep& step, Role role) const;

  ArrayStore* const store_;
  const Caller caller_;
  Program program_;
  prefixd::Plan plan_;
  std::vector<StepWork> works_;  // One for each step.

  std::vector<ArrayUse> uses_;
  std::vector<std::byte*> outside_;                   // By slot: where an input's or a sink's slice is. Null: none.
  std::vector<ArraySlice> slices_;                    // By output: its slice, with its length.
  std::vector<std::byte*> sinks_;                     // By output: where its slice is.
  std::vector<std::shared_ptr<ResidentArray>> made_;  // By output: its new array, once its length is known.
  Admission::Ticket ticket_;                          // For what is not charged to new arrays.
  uint64_t charged_bytes_ = 0;

  Buffer scratch_;
  std::vector<Buffer> memory_;                       // By slot.
  std::vector<bool> is_undecided_;                   // By slot: its length or its element is on its way to the host.
  std::vector<std::optional<HostElement>> on_host_;  // By slot.
  std::vector<std::optional<uint64_t>> kept_;        // By selection: how many elements, once it is known.
  std::vector<size_t> pending_;                      // The steps whose scalars are on their way to the host.
  int64_t enqueued_ns_ = 0;                          // Estimated, since the lane was waited for.
  uint64_t inline_bytes_ = 0;                        // Those of outputs so far.
  ProgramDone done_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_PROGRAM_PROGRAM_RUNNER_H_
