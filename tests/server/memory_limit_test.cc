#include "server/memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/status.h"

namespace prefixd {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A folder that looks like the root of a system.
class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest() {
    std::filesystem::remove_all(root_);
    Write("proc/meminfo", "MemFree:  1 kB\nMemTotal:       16777216 kB\n");
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  MemoryLimit Find() { return FindMemoryLimit(/*num_threads=*/1, root_); }

  const std::string root_ = testing::TempDir() + "prefixd_memory_limit_test/";
};

TEST_F(MemoryLimitTest, TheMachinesMemory) {
  EXPECT_EQ(Find().bytes, 16 * kGiB);
  EXPECT_EQ(Find().from, "the machine has");
}

TEST_F(MemoryLimitTest, TheCgroupsOrThatOfOneAboveIt) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("sys/fs/cgroup/a/memory.max", "4294967296\n");
  EXPECT_EQ(Find().bytes, 4 * kGiB);
  EXPECT_EQ(Find().from, "the cgroup allows");
  Write("sys/fs/cgroup/a/b/memory.max", "1073741824\n");
  EXPECT_EQ(Find().bytes, kGiB);
}

TEST_F(MemoryLimitTest, ACgroupOfTheFirstVersion) {
  Write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/y:z\n0::/\n");
  Write("sys/fs/cgroup/memory/y:z/memory.limit_in_bytes", "2147483648\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Find().bytes, 2 * kGiB);
}

TEST_F(MemoryLimitTest, WhatCanNotBeReadLimitsNothing) {
  Write("proc/self/cgroup", "nonsense\n::\n0::/../../x\n");
  EXPECT_EQ(Find().bytes, 16 * kGiB);
}

const DeviceInfo kCpu = {.direct_bytes = DeviceInfo::kHostMemory};

TEST(FitBudgetsTest, LowersWhatNobodyAskedFor) {
  Options options;
  ASSERT_TRUE(FitBudgets({.bytes = 64 * kGiB, .from = ""}, kCpu, &options).ok());
  EXPECT_EQ(options.max_request_bytes, Options().max_request_bytes);
  ASSERT_TRUE(FitBudgets({.bytes = kGiB, .from = ""}, kCpu, &options).ok());
  EXPECT_LT(3 * options.max_request_bytes + options.staging_bytes, kGiB);
  EXPECT_GT(3 * options.max_request_bytes + options.staging_bytes, kGiB * 9 / 10);
}

TEST(FitBudgetsTest, ArraysOfTheCpuDeviceHaveAQuarterOfTheLimit) {
  Options on_cpu, asks, on_card;
  const MemoryLimit limit = {.bytes = 4 * kGiB, .from = ""};
  ASSERT_TRUE(FitBudgets(limit, kCpu, &on_cpu).ok());
  EXPECT_EQ(on_cpu.max_array_bytes, kGiB);
  asks.max_array_bytes = 5;
  ASSERT_TRUE(FitBudgets(limit, kCpu, &asks).ok());
  EXPECT_EQ(asks.max_array_bytes, 5u);
  ASSERT_TRUE(FitBudgets(limit, {.direct_bytes = 4096}, &on_card).ok());
  EXPECT_FALSE(on_card.max_array_bytes);  // They are in the card's memory.
}

TEST(FitBudgetsTest, RefusesWhatIsAskedForAndDoesNotFit) {
  Options options;
  options.asks_max_request_bytes = true;
  const absl::Status status = FitBudgets({.bytes = 4 * kGiB, .from = "the cgroup allows"}, kCpu, &options);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the cgroup allows 4096 MiB, and --max-request-bytes 2048 MiB"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("lower --max-request-bytes to "));
  EXPECT_EQ(options.max_request_bytes, Options().max_request_bytes);
}

TEST(FitBudgetsTest, RefusesWhereNotOneStreamFits) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{100} << 20}) {
    Options options;
    const absl::Status status = FitBudgets({.bytes = bytes, .from = "the cgroup allows"}, kCpu, &options);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << bytes;
    EXPECT_THAT(std::string(status.message()), HasSubstr("raise the limit"));
  }
}

TEST(FitBudgetsTest, ACardNeedsRoomForItsContext) {
  Options on_cpu, on_card;
  const MemoryLimit limit = {.bytes = kGiB, .from = ""};
  ASSERT_TRUE(FitBudgets(limit, kCpu, &on_cpu).ok());
  ASSERT_TRUE(FitBudgets(limit, {.direct_bytes = 4096}, &on_card).ok());
  EXPECT_LT(on_card.max_request_bytes, on_cpu.max_request_bytes);
}

}  // namespace
}  // namespace prefixd
