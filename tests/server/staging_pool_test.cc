#include "server/lanes/staging_pool.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/fake_device.h"

namespace prefixd {
namespace {

constexpr uint64_t kBlockBytes = 4096;

TEST(StagingPoolTest, AFullBlockIsExchangedForAnEmptyOneAndComesBack) {
  FakeDevice device;
  auto pool = *StagingPool::Create(device, 2 * kBlockBytes, kBlockBytes);
  Buffer block = *device.AllocatePinned(kBlockBytes);
  std::byte* const full = block.data();
  auto lent = pool->Exchange(&block);
  ASSERT_NE(lent, nullptr);
  EXPECT_NE(block.data(), full);
  EXPECT_EQ(block.size_bytes(), kBlockBytes);
  EXPECT_EQ(pool->used_bytes(), kBlockBytes);
  lent.reset();
  EXPECT_EQ(pool->used_bytes(), 0u);
}

TEST(StagingPoolTest, WhereNoneIsEmptyTheBlockStays) {
  FakeDevice device;
  auto pool = *StagingPool::Create(device, 2 * kBlockBytes + 1, kBlockBytes);
  EXPECT_EQ(pool->size_bytes(), 2 * kBlockBytes);
  Buffer block = *device.AllocatePinned(kBlockBytes);
  auto first = pool->Exchange(&block);
  auto second = pool->Exchange(&block);
  std::byte* const data = block.data();
  EXPECT_EQ(pool->Exchange(&block), nullptr);
  EXPECT_EQ(block.data(), data);
  first.reset();
  EXPECT_NE(pool->Exchange(&block), nullptr);
}

TEST(StagingPoolTest, NothingToLend) {
  FakeDevice device;
  auto pool = *StagingPool::Create(device, 0, kBlockBytes);
  Buffer block = *device.AllocatePinned(kBlockBytes);
  EXPECT_EQ(pool->Exchange(&block), nullptr);
}

// gRPC may let go of a slice after the server is gone.
TEST(StagingPoolTest, BlocksThatAreOutKeepThePoolAlive) {
  FakeDevice device;
  auto pool = *StagingPool::Create(device, kBlockBytes, kBlockBytes);
  Buffer block = *device.AllocatePinned(kBlockBytes);
  std::byte* const full = block.data();
  auto lent = pool->Exchange(&block);
  pool.reset();
  *full = std::byte{1};  // ASan sees memory that is gone.
  lent.reset();
}

TEST(StagingPoolTest, CreateFailsAsTheDeviceDoes) {
  FakeDevice device;
  device.memory_status = absl::ResourceExhaustedError("no memory");
  EXPECT_EQ(StagingPool::Create(device, kBlockBytes, kBlockBytes).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(StagingPoolTest, ManyThreads) {
  FakeDevice device;
  auto pool = *StagingPool::Create(device, 3 * kBlockBytes, kBlockBytes);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Buffer block = *device.AllocatePinned(kBlockBytes);
      for (int i = 0; i < 1000; ++i) {
        block.data()[0] = std::byte{1};  // Not atomic: TSan sees a block that two threads have.
        const auto lent = pool->Exchange(&block);
        block.data()[0] = std::byte{2};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->used_bytes(), 0u);
}

}  // namespace
}  // namespace prefixd
