// Calls whose threads look for their replies: those that take longer than a thread looks, that are ended, and many.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/client/array_fixture.h"

namespace prefixd::client {
namespace {

class PollingCallTest : public ArrayTest {
 protected:
  // Answers after so long with the spec's init; at once where the call is ended.
  void AnswerAfter(std::chrono::milliseconds duration) {
    server_.prefix.reduce = [duration](grpc::ServerContext* context, const v1::ReduceRequest& request,
                                       v1::ReduceResponse* response) {
      const auto end = std::chrono::steady_clock::now() + duration;
      while (std::chrono::steady_clock::now() < end && !context->IsCancelled()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      *response->mutable_value() = request.spec().init();
      return grpc::Status::OK;
    };
  }
};

TEST_F(PollingCallTest, AReplyMayTakeLongerThanAThreadLooks) {
  const Array array = Made(1);
  for (const int ms : {0, 1, 2, 3, 30}) {
    AnswerAfter(std::chrono::milliseconds(ms));
    const auto reduced = client_.Reduce<int32_t>(array, {.init = ms});
    ASSERT_TRUE(reduced.ok()) << reduced.status();
    EXPECT_EQ(reduced->value, ms);
  }
}

TEST_F(PollingCallTest, TimeoutAndCancellationEndIt) {
  const Array array = Made(1);
  AnswerAfter(std::chrono::minutes(1));
  for (const int ms : {1, 20}) {
    EXPECT_TRUE(
        absl::IsDeadlineExceeded(client_.Reduce<int32_t>(array, {}, {.timeout = absl::Milliseconds(ms)}).status()));
    Cancellation cancellation;
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      cancellation.Cancel();
    });
    EXPECT_TRUE(absl::IsCancelled(client_.Reduce<int32_t>(array, {}, {.cancellation = &cancellation}).status()));
    stopper.join();
  }
}

TEST_F(PollingCallTest, EachOfManyThreadsGetsItsOwnReply) {
  const Array array = Made(1);
  AnswerAfter(std::chrono::milliseconds(0));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 100; ++i) {
        const int value = thread * 1000 + i;
        const auto reduced = client_.Reduce<int32_t>(array, {.init = value});
        ASSERT_TRUE(reduced.ok()) << reduced.status();
        EXPECT_EQ(reduced->value, value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace prefixd::client
