// Copies from device memory to device memory: the bytes, their order on the lane, and how the lane counts them.
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

using CopyTest = DeviceTest<DeviceParam>;

TEST_P(CopyTest, AllSizesAndOffsets) {
  for (const size_t size : {0, 1, 3, 4096, (1 << 17) - 1, 1 << 17, 1000003}) {
    for (const size_t offset : {0, 1}) {
      std::vector<uint8_t> in(size), out;
      for (uint8_t& byte : in) byte = static_cast<uint8_t>(random().Next());
      DeviceArray<uint8_t> d_in(lane(), in, offset);
      auto d_out = DeviceArray<uint8_t>::Poisoned(lane(), size);
      Require(lane().CopyOnDevice(d_out.data(), d_in.data(), size, CopyTiming::kTimed));
      ASSERT_TRUE(d_out.Read(&out));
      EXPECT_EQ(in, out) << size << " bytes";
      EXPECT_TRUE(d_in.IsUntouched());
    }
  }
}

TEST_P(CopyTest, RunsInTheOrderOfTheLane) {
  const std::vector<int32_t> in(100000, 1);
  DeviceArray<int32_t> d_in(lane(), in);
  auto d_sums = DeviceArray<int32_t>::Poisoned(lane(), in.size());
  auto d_out = DeviceArray<int32_t>::Poisoned(lane(), in.size());
  ScanArgs scan;
  scan.in = d_in.data();
  scan.out = d_sums.data();
  scan.num_items = in.size();
  Require(lane().Scan(scan));
  Require(lane().CopyOnDevice(d_out.data(), d_sums.data(), in.size() * sizeof(int32_t), CopyTiming::kUntimed));
  std::vector<int32_t> out;
  ASSERT_TRUE(d_out.Read(&out));
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<int32_t>(i + 1));
}

TEST_P(CopyTest, ATimedOneCountsAsAKernelAndAnUntimedOneAsNothing) {
  const std::vector<uint8_t> in(1000);
  DeviceArray<uint8_t> d_in(lane(), in);
  auto d_out = DeviceArray<uint8_t>::Poisoned(lane(), in.size());
  Require(lane().Synchronize());
  lane().TakeStageTimes();
  Require(lane().CopyOnDevice(d_out.data(), d_in.data(), in.size(), CopyTiming::kUntimed));
  Require(lane().Synchronize());
  StageTimes times = lane().TakeStageTimes();
  EXPECT_FALSE(times.kernel_ns);
  EXPECT_EQ(times.launches, 0u);
  Require(lane().CopyOnDevice(d_out.data(), d_in.data(), in.size(), CopyTiming::kTimed));
  Require(lane().Synchronize());
  times = lane().TakeStageTimes();
  EXPECT_TRUE(times.kernel_ns);
  EXPECT_EQ(times.launches, 1u);
  EXPECT_EQ(times.num_bytes, 2000u);
}

PREFIXD_ON_EVERY_DEVICE(CopyTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
