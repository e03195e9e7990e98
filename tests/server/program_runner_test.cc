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

constexpr uint64_t kManyItems = 50'000;

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
        .predicate = Predicate{Comparison::kLess, Value::Of<int32_t>(static_cast<int32_t>(kManyItems / 2))}};
    Program program;
    program.steps = {{.operation = fill, .writes = {{Role::kOut, "x"}}, .num_items = kManyItems},
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
  EXPECT_EQ(done->outputs[0].num_items, kManyItems / 2);
  EXPECT_EQ(done->outputs[0].new_array->num_items, kManyItems / 2);
  int32_t sum = 0;
  ASSERT_EQ(done->outputs[1].bytes.size(), sizeof(sum));
  std::memcpy(&sum, done->outputs[1].bytes.data(), sizeof(sum));
  EXPECT_EQ(sum, static_cast<int32_t>(kManyItems * (kManyItems - 1) / 2));
  EXPECT_EQ(done->steps.size(), 4u);
  EXPECT_EQ(done->steps[2].num_items, kManyItems / 2);
  EXPECT_EQ(store_->in_use().requests, 1u);  // The new array, and nothing else.
  EXPECT_EQ(store_->in_use().bytes, done->outputs[0].new_array->num_bytes + ArrayStore::kBytesPerArray);
}

TEST_F(ProgramRunnerTest, TheLaneIsWaitedForWhereTheHostHasToKnowAndAtTheEnd) {
  const int before = device_.waits();
  ASSERT_TRUE(Run(SomeProgram()).ok());
  EXPECT_EQ(device_.waits() - before, 3) << "for the length of the scan, for the sum, and for the end";
  Program glue = SomeProgram();
  glue.steps.resize(1);
  glue.steps.push_back({.operation = MapSpec{.op = MapOp::kAbs, .dtype = DType::kI32},
                        .reads = {{Role::kValues, "x"}},
                        .writes = {{Role::kOut, "sums"}}});
  glue.outputs.resize(1);
  ASSERT_TRUE(Run(std::move(glue)).ok());
  EXPECT_EQ(device_.waits() - before, 3 + 1);
}

// Two reduces of one array, the larger less the smaller, and back to the host together with what they made.
TEST_F(ProgramRunnerTest, StepsReadWhatReducesAndCompactsFound) {
  const auto reduce = [](Op op, std::string_view name) {
    return ProgramStep{.operation = ReduceSpec{.dtype = DType::kI32, .op = op},
                       .reads = {{Role::kValues, "x"}},
                       .writes = {{Role::kOut, std::string(name)}, {Role::kIndexOut, StrCat(name, "_at")}}};
  };
  Program program = SomeProgram();
  program.steps.resize(2);
  program.steps[1].writes = {{Role::kOut, "kept"}, {Role::kCountOut, "count"}};
  program.steps.push_back(reduce(Op::kMin, "least"));
  program.steps.push_back(reduce(Op::kMax, "most"));
  program.steps.push_back({.operation = MapSpec{.op = MapOp::kSubtract, .dtype = DType::kI32},
                           .reads = {{Role::kLeft, "most"}, {Role::kRight, "least"}},
                           .writes = {{Role::kOut, "range"}}});
  program.steps.push_back({.operation = GatherSpec{.dtype = DType::kI32, .index_dtype = DType::kU64},
                           .reads = {{Role::kValues, "x"}, {Role::kIndices, "count"}},
                           .writes = {{Role::kOut, "behind"}}});
  program.steps.push_back({.operation = CopySpec{.dtype = DType::kI32},
                           .reads = {{Role::kValues, "kept"}},
                           .writes = {{Role::kOut, "copy"}}});
  program.outputs = {{.name = "range"},
                     {.name = "most_at"},
                     {.name = "behind"},
                     {.name = "least"},
                     {.name = "most", .sink = {.kind = Sink::Kind::kNewArray}},
                     {.name = "copy"},
                     {.name = "least_at"}};
  const auto done = Run(std::move(program));
  ASSERT_TRUE(done.ok()) << done.status();
  const auto int_of = [&](size_t output) {
    int64_t value = 0;
    std::memcpy(&value, done->outputs[output].bytes.data(), done->outputs[output].bytes.size());
    return value;
  };
  EXPECT_EQ(int_of(0), int64_t{kManyItems - 1});
  EXPECT_EQ(int_of(1), int64_t{kManyItems - 1});
  EXPECT_EQ(int_of(2), int64_t{kManyItems / 2});
  EXPECT_EQ(int_of(3), 0);
  EXPECT_EQ(done->outputs[4].new_array->num_items, 1u);
  ASSERT_EQ(done->outputs[5].bytes.size(), kManyItems / 2 * sizeof(int32_t));
  for (size_t i = 0; i < kManyItems / 2; ++i) {
    int32_t value = 0;
    std::memcpy(&value, &done->outputs[5].bytes[i * sizeof(value)], sizeof(value));
    ASSERT_EQ(value, static_cast<int32_t>(i));
  }
  EXPECT_EQ(int_of(6), 0);
  EXPECT_EQ(done->outputs[6].bytes.size(), sizeof(uint64_t));
  const auto most = store_->Use({.name = "test"}, {.name = done->outputs[4].new_array->name}, Access::kRead, "array");
  ASSERT_TRUE(most.ok()) << most.status();
  int32_t value = 0;
  std::memcpy(&value, most->data(), sizeof(value));
  EXPECT_EQ(value, static_cast<int32_t>(kManyItems - 1));
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
  EXPECT_GT(store_->in_use().bytes, kManyItems * sizeof(int32_t));  // It is charged before it runs.
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
