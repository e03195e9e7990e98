#include "kernels/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/yardsticks/serves.h"

namespace prefixd {
namespace {

using ::testing::HasSubstr;

// A device with several algorithms for scan and one for the rest.
class FakeDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  uint64_t FreeMemoryBytes() const override { return 0; }
  absl::StatusOr<std::unique_ptr<Lane>> CreateLane() override { return absl::UnimplementedError(""); }
  absl::StatusOr<Buffer> AllocatePinned(size_t) override { return absl::UnimplementedError(""); }
  const std::vector<AlgorithmInfo>& Algorithms() const override { return algorithms_; }

 private:
  const DeviceInfo info_ = {.name = "fake"};
  const std::vector<AlgorithmInfo> algorithms_ = {
      {.primitive = Primitive::kReduce, .algorithm = {Strategy::kSequential}},
      {.primitive = Primitive::kScan, .algorithm = {Strategy::kChained}},
      {.primitive = Primitive::kScan, .algorithm = {Strategy::kNaive}, .max_items = 100, .serves = kTextbooksServe},
      {.primitive = Primitive::kScan, .algorithm = {Strategy::kCub}, .serves = kCubServes},
      {.primitive = Primitive::kScan, .algorithm = {Strategy::kThreePhase, TileScan::kKoggeStone}},
      {.primitive = Primitive::kScan,
       .algorithm = {Strategy::kThreePhase, TileScan::kBrentKung},
       .has_items_per_thread = true,
       .has_padding = true},
      {.primitive = Primitive::kCompact, .algorithm = {Strategy::kThreeKernel}, .serves = kTextbookCompactsServe},
  };
};

constexpr auto kScan = Primitive::kScan;
constexpr auto kReduce = Primitive::kReduce;
constexpr auto kCompact = Primitive::kCompact;

// The name of what runs, or the status's code.
std::string Resolved(Primitive primitive, const Algorithm& asked) {
  const auto resolved = FakeDevice().Resolve(primitive, asked);
  return resolved.ok() ? Name(*resolved) : absl::StatusCodeToString(resolved.status().code());
}

TEST(ResolveTest, DefaultIsTheFirst) {
  EXPECT_EQ(Resolved(kScan, {}), "chained");
  EXPECT_EQ(Resolved(kReduce, {}), "sequential");
  EXPECT_EQ(Resolved(kCompact, {}), "three_kernel");
}

TEST(ResolveTest, WhatIsLeftOutIsRefused) {
  FakeDevice device;
  device.ServeDefaultsOnly();
  EXPECT_EQ(Name(*device.Resolve(kScan, {})), "chained");
  EXPECT_EQ(Name(*device.Resolve(kScan, {Strategy::kChained})), "chained");
  for (const Strategy strategy : {Strategy::kNaive, Strategy::kCub, Strategy::kThreePhase}) {
    const absl::Status status = device.Resolve(kScan, {strategy}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(ErrorReason(status), "ALGORITHM_OFF");
    EXPECT_THAT(std::string(status.message()), HasSubstr("--algorithms default"));
  }
  const absl::Status unknown = device.Resolve(kScan, {Strategy::kThrust}).status();
  EXPECT_EQ(ErrorReason(unknown), "NOT_IMPLEMENTED");
  EXPECT_THAT(std::string(unknown.message()), ::testing::EndsWith("which serves: chained"));
}

TEST(ResolveTest, WhatIsServedIsItself) {
  EXPECT_EQ(Resolved(kScan, {Strategy::kNaive}), "naive");
  EXPECT_EQ(Resolved(kScan, {Strategy::kThreePhase, TileScan::kKoggeStone}), "three_phase/kogge_stone");
  EXPECT_EQ(Resolved(kScan, {Strategy::kThreePhase, TileScan::kBrentKung, 8, true}), "three_phase/brent_kung/8/padded");
}

TEST(ResolveTest, EveryDefaultIsFilledIn) {
  EXPECT_EQ(Resolved(kScan, {Strategy::kThreePhase}), "three_phase/kogge_stone");
  EXPECT_EQ(Resolved(kScan, {Strategy::kThreePhase, TileScan::kBrentKung}), "three_phase/brent_kung/1");
  EXPECT_EQ(Resolved(kScan, {Strategy::kThreePhase, TileScan::kBrentKung, 0, true}), "three_phase/brent_kung/1/padded");
}

TEST(ResolveTest, OthersNameWhatIsServed) {
  EXPECT_EQ(Resolved(kReduce, {Strategy::kNaive}), "UNIMPLEMENTED");
  EXPECT_EQ(Resolved(kScan, {Strategy::kThreePhase, TileScan::kBlelloch}), "UNIMPLEMENTED");
  EXPECT_EQ(Resolved(kScan, {Strategy::kChained, TileScan::kKoggeStone}), "UNIMPLEMENTED");
  const absl::Status status = FakeDevice().Resolve(kScan, {Strategy::kSequential}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(ErrorReason(status), "NOT_IMPLEMENTED");
  EXPECT_EQ(ErrorField(status), "spec.algorithm");
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("sequential"));
  EXPECT_THAT(message, HasSubstr("scan"));
  EXPECT_THAT(message, HasSubstr("fake"));
  EXPECT_THAT(message, HasSubstr("chained, naive, cub, three_phase/kogge_stone, three_phase/brent_kung"));
}

TEST(ResolveTest, AnAlgorithmMayNotServeEveryCombination) {
  const FakeDevice device;
  const Algorithm cub = {Strategy::kCub};
  EXPECT_EQ(device.Resolve(kScan, DType::kU8, DType::kU64, Op::kSum, cub).value(), cub);
  EXPECT_EQ(device.Resolve(kScan, DType::kF64, DType::kF64, Op::kMin, cub).value(), cub);
  EXPECT_EQ(device.Resolve(kScan, DType::kU8, DType::kU8, Op::kMin, {}).value(), Algorithm{Strategy::kChained});
  const absl::Status status = device.Resolve(kScan, DType::kF32, DType::kF64, Op::kMin, cub).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(ErrorReason(status), "NOT_IMPLEMENTED");
  EXPECT_EQ(ErrorField(status), "spec.algorithm");
  EXPECT_THAT(std::string(status.message()), HasSubstr("cub does not serve scan by min of f32 to f64"));
  const Algorithm naive = {Strategy::kNaive};
  EXPECT_EQ(device.Resolve(kScan, DType::kF32, DType::kF32, Op::kMax, naive).value(), naive);
  for (const absl::Status& refused : {device.Resolve(kScan, DType::kI16, DType::kI16, Op::kSum, naive).status(),
                                      device.Resolve(kScan, DType::kI32, DType::kI64, Op::kSum, naive).status(),
                                      device.Resolve(kScan, DType::kI32, DType::kI32, Op::kXor, naive).status()}) {
    EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("it serves sum, min and max of 4- and 8-byte types"));
  }
  const absl::Status compact =
      device.Resolve(kCompact, DType::kU8, DType::kU8, Op::kSum, {Strategy::kThreeKernel}).status();
  EXPECT_THAT(std::string(compact.message()), HasSubstr("three_kernel does not serve compact of u8: it serves 4- and"));
}

TEST(ResolveTest, TheCpuHasNoCub) {
  const std::unique_ptr<Device> device = OpenCpuDevice();
  const std::unique_ptr<Lane> lane = *device->CreateLane();
  int32_t x = 1;
  const absl::Status status = lane->Scan({.algorithm = {Strategy::kCub}, .in = &x, .out = &x, .num_items = 1});
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_EQ(ErrorField(status), "spec.algorithm");
  EXPECT_THAT(std::string(status.message()), HasSubstr("chained"));
  EXPECT_EQ(x, 1);
}

TEST(CheckLengthTest, NamesTheLimit) {
  const FakeDevice device;
  EXPECT_TRUE(device.CheckLength(kScan, {Strategy::kNaive}, 100).ok());
  EXPECT_TRUE(device.CheckLength(kScan, {Strategy::kChained}, ~uint64_t{0}).ok());
  const absl::Status status = device.CheckLength(kScan, {Strategy::kNaive}, 101);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(ErrorReason(status), "ALGORITHM_LIMIT");
  EXPECT_EQ(ErrorField(status), "spec.algorithm");
  EXPECT_EQ(std::string(status.message()),
            "algorithm naive takes arrays of at most 100 elements: send fewer, or choose another algorithm");
}

TEST(RowOfDeathTest, AnAlgorithmThatTheDeviceLacks) {
  const FakeDevice device;
  EXPECT_EQ(&device.RowOf(kScan, {Strategy::kThreePhase, TileScan::kBrentKung, 4, true}), &device.Algorithms()[5]);
  EXPECT_DEATH(device.RowOf(kReduce, {Strategy::kCub}), "fake has no algorithm cub for reduce");
}

// What is wrong with the choice: the field, and the message; empty if nothing.
std::pair<std::string, std::string> Wrong(Primitive primitive, const Algorithm& algorithm) {
  const absl::Status status = CheckAlgorithm(primitive, algorithm);
  if (status.ok()) return {};
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(ErrorReason(status), "ALGORITHM_CHOICE");
  EXPECT_EQ(FakeDevice().Resolve(primitive, algorithm).status(), status) << "served all the same";
  return {ErrorField(status), std::string(status.message())};
}

TEST(CheckAlgorithmTest, WhatGoesWithWhat) {
  using Names = std::pair<std::string, std::string>;
  const Names fine;
  EXPECT_EQ(Wrong(kScan, {}), fine);
  EXPECT_EQ(Wrong(kReduce, {Strategy::kKahan}), fine);
  for (const Strategy strategy :
       {Strategy::kThreePhase, Strategy::kGridSync, Strategy::kChainedSerial, Strategy::kChained}) {
    EXPECT_EQ(Wrong(kScan, {strategy}), fine);
    EXPECT_EQ(Wrong(kScan, {strategy, TileScan::kWarpSharedRegister}), fine);
    EXPECT_EQ(Wrong(kScan, {strategy, TileScan::kBlelloch, 0, true}), fine);
    for (const uint8_t items : {1, 2, 4, 8, 16}) {
      EXPECT_EQ(Wrong(kScan, {strategy, TileScan::kBrentKung, items, true}), fine);
    }
  }
}

TEST(CheckAlgorithmTest, SaysWhichFieldIsWrongAndWhatItTakes) {
  using testing::FieldsAre;
  constexpr auto kThreePhase = Strategy::kThreePhase;
  EXPECT_THAT(Wrong(kScan, {Strategy::kCub, TileScan::kBlelloch}),
              FieldsAre("spec.algorithm.tile_scan",
                        "strategy cub of scan takes no tile scan, and blelloch was asked for: leave it out, or scan by "
                        "chained, three_phase, grid_sync, chained_serial"));
  EXPECT_THAT(Wrong(kScan, {Strategy::kDefault, TileScan::kBlelloch}).first, "spec.algorithm.tile_scan");
  EXPECT_THAT(Wrong(kCompact, {Strategy::kChained, TileScan::kBlelloch}).second, HasSubstr("chained of compact"));
  EXPECT_THAT(Wrong(kScan, {kThreePhase, TileScan::kDefault, 4}),
              FieldsAre("spec.algorithm.items_per_thread",
                        "a choice without a tile scan takes no items_per_thread, and 4 was asked for: leave it out, or "
                        "choose tile scan brent_kung"));
  EXPECT_THAT(Wrong(kScan, {kThreePhase, TileScan::kBlelloch, 4}).second, HasSubstr("blelloch takes no items_per"));
  EXPECT_THAT(Wrong(kScan, {kThreePhase, TileScan::kKoggeStone, 0, true}),
              FieldsAre("spec.algorithm.padding",
                        "tile scan kogge_stone takes no padding: leave it out, or choose tile scan brent_kung, "
                        "blelloch"));
  EXPECT_THAT(Wrong(kReduce, {Strategy::kSequential, TileScan::kDefault, 0, true}).first, "spec.algorithm.padding");
  for (const uint8_t items : {3, 5, 12, 15, 17, 32, 255}) {
    EXPECT_THAT(Wrong(kScan, {kThreePhase, TileScan::kBrentKung, items}),
                FieldsAre("spec.algorithm.items_per_thread",
                          StrCat("items_per_thread is ", items,
                                 ": expected a power of two up to 16, or 0 for the device's choice")));
  }
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
  compact_.dtype = static_cast<DType>(kNumDTypes);
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
