#include "kernels/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/status.h"

namespace prefixd {
namespace {

using ::testing::HasSubstr;

// A device with two strategies for scan and one for the rest.
class FakeDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  uint64_t FreeMemoryBytes() const override { return 0; }
  absl::StatusOr<std::unique_ptr<Lane>> CreateLane() override { return absl::UnimplementedError(""); }
  absl::StatusOr<Buffer> AllocatePinned(size_t) override { return absl::UnimplementedError(""); }
  std::vector<Strategy> Strategies(Primitive primitive) const override {
    if (primitive == Primitive::kScan) return {Strategy::kChained, Strategy::kNaive};
    return {Strategy::kSequential};
  }

 private:
  const DeviceInfo info_ = {.name = "fake"};
};

TEST(ResolveTest, DefaultIsTheFirst) {
  EXPECT_EQ(FakeDevice().Resolve(Primitive::kScan, Strategy::kDefault).value(), Strategy::kChained);
  EXPECT_EQ(FakeDevice().Resolve(Primitive::kReduce, Strategy::kDefault).value(), Strategy::kSequential);
}

TEST(ResolveTest, ServedStrategiesAreThemselves) {
  EXPECT_EQ(FakeDevice().Resolve(Primitive::kScan, Strategy::kNaive).value(), Strategy::kNaive);
}

TEST(ResolveTest, OthersNameWhatIsServed) {
  const absl::Status status = FakeDevice().Resolve(Primitive::kScan, Strategy::kCub).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(ErrorReason(status), "NOT_IMPLEMENTED");
  EXPECT_EQ(ErrorField(status), "spec.algorithm.strategy");
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("cub"));
  EXPECT_THAT(message, HasSubstr("scan"));
  EXPECT_THAT(message, HasSubstr("fake"));
  EXPECT_THAT(message, HasSubstr("chained, naive"));
}

TEST(ResolveTest, AStrategyMayNotServeEveryCombination) {
  class CubDevice : public FakeDevice {
    std::vector<Strategy> Strategies(Primitive) const override { return {Strategy::kChained, Strategy::kCub}; }
  };
  const CubDevice device;
  const auto resolve = [&](Primitive primitive, DType dtype, DType out_dtype, Op op, Strategy strategy) {
    return device.Resolve(primitive, dtype, out_dtype, op, strategy);
  };
  EXPECT_EQ(resolve(Primitive::kScan, DType::kU8, DType::kU64, Op::kSum, Strategy::kCub).value(), Strategy::kCub);
  EXPECT_EQ(resolve(Primitive::kReduce, DType::kF64, DType::kF64, Op::kMin, Strategy::kCub).value(), Strategy::kCub);
  EXPECT_EQ(resolve(Primitive::kCompact, DType::kU8, DType::kU8, Op::kSum, Strategy::kCub).value(), Strategy::kCub);
  EXPECT_EQ(resolve(Primitive::kScan, DType::kU8, DType::kU8, Op::kMin, Strategy::kDefault).value(),
            Strategy::kChained);
  const absl::Status status = resolve(Primitive::kScan, DType::kF32, DType::kF64, Op::kMin, Strategy::kCub).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(ErrorReason(status), "NOT_IMPLEMENTED");
  EXPECT_EQ(ErrorField(status), "spec.algorithm.strategy");
  EXPECT_THAT(std::string(status.message()), HasSubstr("cub does not serve scan by min of f32 to f64"));
  EXPECT_TRUE(
      absl::IsUnimplemented(resolve(Primitive::kReduce, DType::kI16, DType::kI16, Op::kXor, Strategy::kCub).status()));
}

TEST(ResolveTest, TheCpuHasNoCub) {
  const std::unique_ptr<Device> device = OpenCpuDevice();
  const std::unique_ptr<Lane> lane = *device->CreateLane();
  int32_t x = 1;
  const absl::Status status = lane->Scan({.strategy = Strategy::kCub, .in = &x, .out = &x, .num_items = 1});
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_EQ(ErrorField(status), "spec.algorithm.strategy");
  EXPECT_THAT(std::string(status.message()), HasSubstr("reduce_then_scan"));
  EXPECT_EQ(x, 1);
}

TEST(OpenDeviceTest, Cpu) {
  const auto device = OpenDevice("cpu");
  ASSERT_TRUE(device.ok());
  EXPECT_THAT((*device)->info().name, HasSubstr("cpu ("));
}

TEST(OpenDeviceTest, AutoIsACardWhereThereIsOne) {
  const auto device = OpenDevice("auto");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->info().name.find("cpu") == 0, CudaDeviceCount() == 0);
}

TEST(OpenDeviceTest, UnknownNames) {
  for (const char* name : {"", "gpu", "CPU", "cpu:0", "cuda", "cuda:", "cuda:x", "cuda:1x", "tpu:0"}) {
    const absl::Status status = OpenDevice(name).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("'", name, "'")));
  }
}

TEST(OpenDeviceTest, CardsThatAreNotThere) {
  for (const char* name : {"cuda:999", "cuda:-1"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(OpenDevice(name).status())) << name;
  }
  if (CudaDeviceCount() == 0) {
    EXPECT_TRUE(absl::IsFailedPrecondition(OpenDevice("cuda:0").status()));
  }
}

TEST(StageTimesTest, AddsUpAndKeepsWhatWasNotMeasured) {
  StageTimes sum;
  StageTimes term;
  term.kernel_ns = 5;
  term.launches = 1;
  term.num_bytes = 100;
  sum += term;
  sum += term;
  EXPECT_EQ(sum.kernel_ns, 10);
  EXPECT_EQ(sum.launches, 2u);
  EXPECT_EQ(sum.num_bytes, 200u);
  EXPECT_EQ(sum.host_to_device_ns, std::nullopt);
  EXPECT_EQ(sum.device_to_host_ns, std::nullopt);
  term = {};
  term.host_to_device_ns = 3;
  term.device_to_host_ns = 4;
  sum += term;
  EXPECT_EQ(sum.host_to_device_ns, 3);
  EXPECT_EQ(sum.device_to_host_ns, 4);
  EXPECT_EQ(sum.kernel_ns, 10);
}

TEST(BufferTest, GivesItselfBackOnce) {
  int num_releases = 0;
  int memory = 0;
  {
    Buffer a(&memory, sizeof(memory), [&](void* p) { num_releases += p == &memory; });
    Buffer b = std::move(a);
    EXPECT_EQ(static_cast<void*>(b.data()), &memory);
    EXPECT_EQ(b.size_bytes(), sizeof(memory));
    Buffer c;
    c = std::move(b);
    EXPECT_EQ(num_releases, 0);
  }
  EXPECT_EQ(num_releases, 1);
}

class ValidateTest : public testing::Test {
 protected:
  ValidateTest() {
    scan_.dtype = reduce_.dtype = compact_.dtype = DType::kF64;
    scan_.in = reduce_.in = compact_.in = memory_;
    scan_.out = memory_;
    reduce_.state_out = &state_;
    compact_.count = &count_;
  }

  double memory_[4] = {};
  void* misaligned_ = reinterpret_cast<char*>(memory_) + 4;
  ReduceState state_;
  uint64_t count_ = 0;
  ScanArgs scan_;
  ReduceArgs reduce_;
  CompactArgs compact_;
};

TEST_F(ValidateTest, Passes) {
  EXPECT_TRUE(Validate(scan_).ok());
  EXPECT_TRUE(Validate(reduce_).ok());
  EXPECT_TRUE(Validate(compact_).ok());
  compact_.in = nullptr;  // A mask, and no values.
  EXPECT_TRUE(Validate(compact_).ok());
}

TEST_F(ValidateTest, Operators) {
  scan_.op = reduce_.op = Op::kXor;
  for (const absl::Status& status : {Validate(scan_), Validate(reduce_)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(ErrorReason(status), "UNSUPPORTED_COMBINATION");
    EXPECT_EQ(ErrorField(status), "spec.op");
    EXPECT_THAT(std::string(status.message()), HasSubstr("xor of f64"));
  }
  compact_.dtype = DType::kF16;
  EXPECT_TRUE(absl::IsUnimplemented(Validate(compact_)));
  EXPECT_EQ(ErrorField(Validate(compact_)), "spec.dtype");
}

TEST_F(ValidateTest, Outputs) {
  scan_.dtype = reduce_.dtype = DType::kU8;
  for (const DType out_dtype : {DType::kU8, DType::kU32, DType::kU64}) {
    scan_.out_dtype = reduce_.out_dtype = out_dtype;
    scan_.in = memory_ + 1;
    EXPECT_TRUE(Validate(scan_).ok()) << Name(out_dtype);
    EXPECT_TRUE(Validate(reduce_).ok()) << Name(out_dtype);
  }
  scan_.out_dtype = reduce_.out_dtype = DType::kI32;
  for (const absl::Status& status : {Validate(scan_), Validate(reduce_)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(ErrorReason(status), "UNSUPPORTED_COMBINATION");
    EXPECT_EQ(ErrorField(status), "spec.out_dtype");
    EXPECT_THAT(std::string(status.message()), HasSubstr("of u8 does not serve the output type i32"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("use one of u8, u32, u64"));
  }
}

TEST_F(ValidateTest, OnlyOneSizeOfElementsGoesInPlace) {
  scan_.num_items = 2;
  EXPECT_TRUE(Validate(scan_).ok());
  scan_.dtype = DType::kF32;
  scan_.out_dtype = DType::kF64;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(scan_)));
  EXPECT_THAT(std::string(Validate(scan_).message()), HasSubstr("f32 and f64 differ in size"));
  scan_.out = memory_ + 1;
  EXPECT_TRUE(Validate(scan_).ok());
}

TEST_F(ValidateTest, OutIsAlignedToItsOwnElements) {
  scan_.dtype = DType::kF32;
  scan_.in = misaligned_;  // But to f32.
  scan_.out_dtype = DType::kF64;
  EXPECT_TRUE(Validate(scan_).ok());
  scan_.out = misaligned_;
  scan_.in = memory_;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(scan_)));
}

TEST_F(ValidateTest, Alignment) {
  scan_.in = reduce_.in = misaligned_;
  compact_.indices = misaligned_;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(scan_)));
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(reduce_)));
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(compact_)));
  compact_.index_dtype = DType::kU32;  // To which it is aligned.
  EXPECT_TRUE(Validate(compact_).ok());
  compact_.values = misaligned_;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(compact_)));
  scan_.dtype = DType::kF32;
  EXPECT_TRUE(Validate(scan_).ok());
}

TEST_F(ValidateTest, U32Indices) {
  compact_.indices = memory_;
  compact_.index_dtype = DType::kU32;
  compact_.num_items = uint64_t{1} << 32;
  EXPECT_TRUE(Validate(compact_).ok());
  compact_.first_item = 1;
  EXPECT_TRUE(absl::IsOutOfRange(Validate(compact_)));
  EXPECT_EQ(ErrorReason(Validate(compact_)), "INDEX_OVERFLOW");
  compact_.indices = nullptr;  // Nothing to overflow.
  EXPECT_TRUE(Validate(compact_).ok());
}

}  // namespace
}  // namespace prefixd
