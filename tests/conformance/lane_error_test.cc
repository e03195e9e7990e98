// Calls that a Lane refuses. It refuses them at once and touches nothing.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

class LaneErrorTest : public DeviceTest<DeviceParam> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    d_x_.emplace(lane(), std::vector<int64_t>{4, 3, 2, 1});
    d_state_.emplace(DeviceArray<ReduceState>::Poisoned(lane(), 1));
    scan_.dtype = reduce_.dtype = compact_.dtype = DType::kI64;
    scan_.in = reduce_.in = compact_.in = d_x_->data();
    scan_.out = d_x_->data();
    scan_.num_items = reduce_.num_items = compact_.num_items = 4;
    reduce_.state_out = d_state_->data();
    compact_.count = reinterpret_cast<uint64_t*>(d_state_->data());
  }
  void TearDown() override {
    if (!d_x_) return;
    EXPECT_TRUE(lane().Synchronize().ok());
    EXPECT_TRUE(d_x_->IsUntouched());
    EXPECT_TRUE(d_state_->IsUntouched());
  }

  const void* Misaligned() { return reinterpret_cast<const std::byte*>(d_x_->data()) + 4; }
  void* MisalignedOut() { return reinterpret_cast<std::byte*>(d_x_->data()) + 4; }

  std::optional<DeviceArray<int64_t>> d_x_;
  std::optional<DeviceArray<ReduceState>> d_state_;
  ScanArgs scan_;
  ReduceArgs reduce_;
  CompactArgs compact_;
};

TEST_P(LaneErrorTest, UnsupportedOperatorsAndTypes) {
  for (int dtype = 0; dtype < kNumDTypes; ++dtype) {
    for (int op = 0; op < kNumOps; ++op) {
      scan_.dtype = reduce_.dtype = static_cast<DType>(dtype);
      scan_.op = reduce_.op = static_cast<Op>(op);
      SCOPED_TRACE(StrCat(Name(scan_.op), " of ", Name(scan_.dtype)));
      if (IsSupported(Primitive::kScan, scan_.dtype, scan_.dtype, scan_.op)) continue;
      EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(reduce_)));
      if (IsRecurrence(Primitive::kScan, scan_.dtype, scan_.dtype, scan_.op)) continue;
      EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(scan_)));
      EXPECT_EQ(ErrorReason(lane().Scan(scan_)), "UNSUPPORTED_COMBINATION");
    }
    compact_.dtype = static_cast<DType>(dtype);
    if (!IsSupported(compact_.dtype)) {
      EXPECT_TRUE(absl::IsUnimplemented(lane().Compact(compact_)));
    }
  }
}

TEST_P(LaneErrorTest, OutputsThatAreNotServed) {
  for (int in = 0; in < kNumDTypes; ++in) {
    for (int out = 0; out < kNumDTypes; ++out) {
      scan_.dtype = reduce_.dtype = static_cast<DType>(in);
      scan_.out_dtype = reduce_.out_dtype = static_cast<DType>(out);
      if (IsOutput(scan_.dtype, *scan_.out_dtype)) continue;
      SCOPED_TRACE(StrCat(Name(scan_.dtype), " to ", Name(*scan_.out_dtype)));
      EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(scan_)));
      EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(reduce_)));
    }
  }
  scan_.dtype = DType::kI32;
  scan_.out_dtype = DType::kI64;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(scan_))) << "in place";
}

TEST_P(LaneErrorTest, AlgorithmsThatAreNotServed) {
  for (int i = 0; i < kNumStrategies; ++i) {
    const Algorithm algorithm = {static_cast<Strategy>(i)};
    scan_.algorithm = reduce_.algorithm = compact_.algorithm = algorithm;
    if (!device().Resolve(Primitive::kScan, algorithm).ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(lane().Scan(scan_)));
    }
    if (!device().Resolve(Primitive::kReduce, algorithm).ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(lane().Reduce(reduce_)));
    }
    if (!device().Resolve(Primitive::kCompact, algorithm).ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(lane().Compact(compact_)));
    }
  }
  scan_.algorithm = {Strategy::kThreePhase, TileScan::kHillisSteele, 4};
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(scan_)));
}

TEST_P(LaneErrorTest, ArraysAboveTheLimitOfAnAlgorithm) {
  for (const AlgorithmInfo& row : device().Algorithms()) {
    if (row.max_items == 0) continue;
    SCOPED_TRACE(StrCat(Name(row.primitive), " ", Name(row.algorithm)));
    scan_.algorithm = reduce_.algorithm = compact_.algorithm = row.algorithm;
    scan_.num_items = reduce_.num_items = compact_.num_items = row.max_items + 1;  // Never read.
    const absl::Status status = row.primitive == Primitive::kScan     ? lane().Scan(scan_)
                                : row.primitive == Primitive::kReduce ? lane().Reduce(reduce_)
                                                                      : lane().Compact(compact_);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(ErrorReason(status), "ALGORITHM_LIMIT");
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(StrCat(row.max_items)));
  }
}

TEST_P(LaneErrorTest, CombinationsThatAnAlgorithmDoesNotServe) {
  for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kScan)) {
    for (const OpParam& param : EveryOp(GetParam().device)) {
      if (device().RowOf(Primitive::kScan, algorithm).serves(param.dtype, param.out_dtype, param.op)) continue;
      SCOPED_TRACE(StrCat(Name(algorithm), ", ", ParamName(param)));
      const auto d_out = DeviceArray<uint64_t>::Poisoned(lane(), 4);
      scan_.algorithm = reduce_.algorithm = algorithm;
      scan_.dtype = reduce_.dtype = param.dtype;
      scan_.out_dtype = reduce_.out_dtype = param.out_dtype;
      scan_.op = reduce_.op = param.op;
      scan_.out = d_out.data();
      const absl::Status status = lane().Scan(scan_);
      EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
      EXPECT_EQ(ErrorField(status), "spec.algorithm");
      if (device().Resolve(Primitive::kReduce, algorithm).ok()) {
        EXPECT_TRUE(absl::IsUnimplemented(lane().Reduce(reduce_)));
      }
    }
  }
}

TEST_P(LaneErrorTest, BatchesOfAnAlgorithmThatTakesOneArray) {
  if (!device().Resolve(Primitive::kScan, {Strategy::kCub}).ok()) GTEST_SKIP() << "cub is served on CUDA only";
  scan_.algorithm = reduce_.algorithm = compact_.algorithm = {Strategy::kCub};
  scan_.num_arrays = reduce_.num_arrays = compact_.num_arrays = 2;
  scan_.num_items = reduce_.num_items = compact_.num_items = 2;
  EXPECT_TRUE(absl::IsUnimplemented(lane().Scan(scan_)));
  EXPECT_TRUE(absl::IsUnimplemented(lane().Reduce(reduce_)));
  EXPECT_TRUE(absl::IsUnimplemented(lane().Compact(compact_)));
}

TEST_P(LaneErrorTest, MisalignedPointers) {
  scan_.in = Misaligned();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(scan_)));
  scan_.in = d_x_->data();
  scan_.out = MisalignedOut();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Scan(scan_)));
  reduce_.in = Misaligned();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(reduce_)));
  compact_.in = Misaligned();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Compact(compact_)));
  compact_.in = d_x_->data();
  compact_.values = MisalignedOut();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Compact(compact_)));
  compact_.values = nullptr;
  compact_.indices = MisalignedOut();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Compact(compact_)));
}

TEST_P(LaneErrorTest, MissingOutputs) {
  reduce_.state_out = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(reduce_)));
  compact_.count = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Compact(compact_)));
}

TEST_P(LaneErrorTest, IndicesBeyondU32) {
  compact_.indices = d_x_->data();
  compact_.index_dtype = DType::kU32;
  for (const uint64_t first_item : {(uint64_t{1} << 32) - 3, uint64_t{1} << 32, ~uint64_t{0}}) {
    compact_.first_item = first_item;
    const absl::Status status = lane().Compact(compact_);
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_EQ(ErrorReason(status), "INDEX_OVERFLOW");
  }
  compact_.index_dtype = DType::kI32;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Compact(compact_)));
}

PREFIXD_ON_EVERY_DEVICE(LaneErrorTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
