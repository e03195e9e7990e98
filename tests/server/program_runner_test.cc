// Programs on a device that fails: nothing is left behind, wherever it fails.
#include "server/program/program_runner.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "server/lanes/lane_pool.h"
#include "tests/server/fake_device.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

constexpr uint64_t kItems = 50'000;

class ProgramRunnerTest : public testing::Test {
 protected:
  ProgramRunnerTest() {
    lanes_ = *LanePool::Create(device_, 1, uint64_t{4} << 20);
    store_ = std::make_unique<ArrayStore>(
        ArrayStore::Limits{.arrays = 10, .bytes = uint64_t{64} << 20, .share_percent = 100});
  }
  ~ProgramRunnerTest() override { store_.reset(); }

  // Fills, keeps the smaller half, scans it, and sums what it was.
  static Program SomeProgram() {
    FillSpec fill;
    fill.kind = FillKind::kIota;
    fill.step = Value::Of<int32_t>(1);
    const CompactSpec compact = {
        .dtype = DType::kI32,
        .predicate = Predicate{Comparison::kLess, Value::Of<int32_t>(static_cast<int32_t>(kItems / 2))}};
    Program program;
    program.steps = {{.operation = fill, .writes = {{Role::kOut, "x"}}, .num_items = kItems},
                     {.operation = compact, .reads = {{Role::kValues, "x"}}, .writes = {{Role::kOut, "kept"}}},
                     {.operation = ScanSpec{.dtype = DType::kI32},
                      .reads = {{Role::kValues, "kept"}},
                      .writes = {{Role::kOut, "sums"}}},
                     {.operation = ReduceSpec{.dtype = DType::kI32},
                      .reads = {{Role::kValues, "x"}},
                      .writes = {{Role::kOut, "sum"}}}};
    program.outputs = {{.name = "sums", .sink = {.kind = Sink::Kind::kNewArray}}, {.name = "sum"}};
    return program;
  }

  absl::StatusOr<ProgramDone> Run(Program program) {
    PREFIXD_ASSIGN_OR_RETURN(auto runner,
                             ProgramRunner::Create(device_, store_.get(), {.name = "test"}, std::move(program)));
    Gate done;
    absl::Status status;
    StopSignal stop(absl::InfiniteFuture());
    lanes_->Submit({runner->Size()}, [&](BorrowedLane& lane) {
      status = runner->Run(lane, stop);
      done.Arrive();
    });
    if (!done.WaitFor(1)) return absl::InternalError("the lane did not come back");
    PREFIXD_RETURN_IF_ERROR(status);
    return runner->Finish();
  }

  void ExpectNothingIsLeft() const {
    EXPECT_EQ(store_->in_use().requests, 0u);
    EXPECT_EQ(store_->in_use().bytes, 0u);
  }

  FakeDevice device_;
  std::unique_ptr<LanePool> lanes_;
  std::unique_ptr<ArrayStore> store_;
};

TEST_F(ProgramRunnerTest, StepsRunAndOutputsAreDelivered) {
  const auto done = Run(SomeProgram());
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_EQ(done->outputs.size(), 2u);
  EXPECT_EQ(done->outputs[0].num_items, kItems / 2);
  EXPECT_EQ(done->outputs[0].new_array->num_items, kItems / 2);
  int32_t sum = 0;
  ASSERT_EQ(done->outputs[1].bytes.size(), sizeof(sum));
  std::memcpy(&sum, done->outputs[1].bytes.data(), sizeof(sum));
  EXPECT_EQ(sum, static_cast<int32_t>(kItems * (kItems - 1) / 2));
  EXPECT_EQ(done->steps.size(), 4u);
  EXPECT_EQ(done->steps[2].num_items, kItems / 2);
  EXPECT_EQ(store_->in_use().requests, 1u);  // The new array, and nothing else.
  EXPECT_EQ(store_->in_use().bytes, done->outputs[0].new_array->num_bytes + ArrayStore::kBytesPerArray);
}

TEST_F(ProgramRunnerTest, NothingIsLeftOfAProgramWhoseStepFails) {
  for (int failing = 1; failing <= 4; ++failing) {
    int steps = 0;
    device_.before_work = [&] { return ++steps == failing ? absl::InternalError("it broke") : absl::OkStatus(); };
    EXPECT_EQ(Run(SomeProgram()).status().message(), "it broke") << failing;
    EXPECT_EQ(steps, failing);
    ExpectNothingIsLeft();
  }
}

TEST_F(ProgramRunnerTest, NothingIsLeftWhereTheDeviceIsFullInTheMiddle) {
  for (int last = 0; last < 4; ++last) {
    int steps = 0;
    device_.memory_status = last == 0 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
    device_.before_work = [&] {
      if (++steps == last) device_.memory_status = absl::ResourceExhaustedError("full");
      return absl::OkStatus();
    };
    EXPECT_EQ(Run(SomeProgram()).status().message(), "full") << last;
    device_.memory_status = absl::OkStatus();
    ExpectNothingIsLeft();
  }
}

TEST_F(ProgramRunnerTest, AProgramThatIsStoppedEndsBeforeItsNextStep) {
  auto runner = ProgramRunner::Create(device_, store_.get(), {.name = "test"}, SomeProgram());
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_GT(store_->in_use().bytes, kItems * sizeof(int32_t));  // It is charged before it runs.
  StopSignal stop(absl::InfiniteFuture());
  device_.before_work = [&] {
    stop.Cancel();
    return absl::OkStatus();
  };
  Gate done;
  absl::Status status;
  lanes_->Submit({TaskSize::kLarge}, [&](BorrowedLane& lane) {
    status = (*runner)->Run(lane, stop);
    done.Arrive();
  });
  ASSERT_TRUE(done.WaitFor(1));
  EXPECT_EQ(ErrorReason(status), "CANCELLED");
  EXPECT_EQ(device_.works(), 1);
  runner->reset();
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace prefixd
