// Resident arrays: transfers over several connections.
#include "client/array_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/client/array_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::SizeIs;

// ---- Several connections -------------------------------------------------------------------------------------------
constexpr size_t kLargeItems = (64 << 20) / 4 + 12'345;

TEST(ArrayTransfer, ConnectionsBySize) {
  EXPECT_EQ(NumLines(0), 1u);
  EXPECT_EQ(NumLines((16 << 20) - 1), 1u);
  EXPECT_EQ(NumLines(16 << 20), 2u);
  EXPECT_EQ(NumLines(64 << 20), 8u);
  EXPECT_EQ(NumLines(uint64_t{1} << 40), 8u);
}

TEST_F(ArrayTest, LargeArraysTakeSeveralConnections) {
  const std::vector<int32_t> values = Numbers(kLargeItems);
  const Array array = Made(kLargeItems + 7);
  ASSERT_TRUE(array.Write<int32_t>(values, 7).ok());
  EXPECT_THAT(server_.arrays.peers(), SizeIs(8));
  EXPECT_EQ(server_.arrays.Contents(array.name()).substr(28), Data(values));
  EXPECT_EQ(*array.Read<int32_t>(7), values);
  EXPECT_THAT(server_.arrays.peers(), SizeIs(8));  // They stay, and are used again.
}

TEST_F(ArrayTest, SmallArraysTakeOne) {
  const Array array = Made(3'000'000);
  ASSERT_TRUE(array.Write<int32_t>(Numbers(3'000'000)).ok());
  EXPECT_THAT(server_.arrays.peers(), SizeIs(1));
}

// The first error ends the other shares, and is the one that is told.
TEST_F(ArrayTest, AnErrorOfOneConnectionEndsTheOthers) {
  const Array array = Made(kLargeItems);
  const absl::Time end = absl::Now() + absl::Seconds(20);    // For a hang.
  const auto ended = std::make_shared<std::atomic<int>>(0);  // Also the server's, which goes on longer.
  const auto begun = std::make_shared<std::atomic<int>>(0);  // The others: a call that is cancelled before never comes.
  server_.arrays.while_writing = [ended, begun, end](grpc::ServerContext* context, uint64_t first_item, uint64_t) {
    if (first_item == 0) {
      while (*begun < 7 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
      return grpc::Status(grpc::StatusCode::DATA_LOSS, "the first");
    }
    ++*begun;
    while (!context->IsCancelled() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    if (context->IsCancelled()) ++*ended;
    return grpc::Status::CANCELLED;
  };
  const absl::Status status = array.Write<int32_t>(Numbers(kLargeItems));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  while (*ended < 7 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(*ended, 7);
}

TEST_F(ArrayTest, TheCallersCancellationEndsAllConnections) {
  const Array array = Made(kLargeItems);
  const auto cancellation = std::make_shared<Cancellation>();  // Also the server's, which goes on longer.
  server_.arrays.while_writing = [cancellation](grpc::ServerContext* context, uint64_t, uint64_t) {
    cancellation->Cancel();
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  EXPECT_TRUE(absl::IsCancelled(array.Write<int32_t>(Numbers(kLargeItems), 0, {.cancellation = cancellation.get()})));
}

// A server that allows its caller few connections gets all over them.
TEST_F(ArrayTest, AConnectionTooManyLeavesItsShareToTheFirst) {
  const std::vector<int32_t> values = Numbers(kLargeItems);
  const Array array = Made(kLargeItems);
  ASSERT_TRUE(array.Write<int32_t>(std::vector<int32_t>{0}).ok());
  const std::string first = *server_.arrays.peers().begin();
  std::atomic<int> refused = 0;
  server_.arrays.before = [&](const std::string&, const std::string& peer) {
    if (peer == first) return grpc::Status::OK;
    ++refused;
    return DetailedError(grpc::StatusCode::RESOURCE_EXHAUSTED, "CALLER_CONNECTIONS", "too many");
  };
  const absl::Status status = array.Write<int32_t>(values);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(*array.Read<int32_t>(), values);
  server_.arrays.before = nullptr;
}

}  // namespace
}  // namespace prefixd::client
