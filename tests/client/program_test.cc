// Where a program's results go, and how it runs.
#include "client/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "tests/client/program_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(ProgramTest, OutputsGoWhereTheyAreToGo) {
  const auto values = Values<float>(Count());
  const Array array = Uploaded(values);
  const Array other = Uploaded(std::vector<float>(values.size() + 20, 9));
  Program program;
  const auto x = program.Input<float>(array);
  const auto twice = program.Affine(x, 2, 0);
  const auto negative = program.Affine(x, -1, 0);
  const auto positive = program.Compact(x, {Comparison::kGreater, 0});
  program.Output(twice, array);  // In place: the steps behind still read the old elements.
  program.Output(negative, other.Part(8));
  program.Output(positive.values, NewArray{.lifetime = {.ttl = absl::Minutes(3)}});
  ProgramResult result = Run(program);

  EXPECT_EQ(*array.Read<float>(), Map<float>(values, [](float v) { return 2 * v; }));
  std::vector<float> expected(values.size() + 20, 9);
  for (size_t i = 0; i < values.size(); ++i) expected[8 + i] = -values[i];
  EXPECT_EQ(*other.Read<float>(), expected);
  std::vector<float> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), [](float v) { return v > 0; });
  EXPECT_EQ(result.NumItems(positive.values).value_or(-1), kept.size());
  EXPECT_EQ(result.NumItems(negative).value_or(-1), values.size());
  EXPECT_EQ(result.Value(twice).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(result.Values(positive.values).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(result.TakeArray(twice).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.TakeArray(twice).status().message()), HasSubstr("no array was made for affine_0"));
  std::string name;
  {
    const absl::StatusOr<Array> made = result.TakeArray(positive.values);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->info().ttl, absl::Minutes(3));
    EXPECT_EQ(*made->Read<float>(), kept);
    name = made->name();
    EXPECT_EQ(result.TakeArray(positive.values).status().code(), absl::StatusCode::kFailedPrecondition);
    // It can be an input of other programs.
    Program next;
    const auto again = next.Copy(next.Input<float>(*made));
    next.Output(again);
    EXPECT_EQ(ValuesOf(Run(next), again), kept);
  }
  EXPECT_EQ(ErrorReason(client_.BorrowArray(name).status()), "ARRAY_EXPIRED");
}

TEST_F(ProgramTest, AnArrayThatIsNotTakenGoesWithTheResult) {
  Program program;
  const auto x = program.Fill<int32_t>(5, Iota<int32_t>());
  program.Output(x, NewArray{});
  std::string name;
  {
    ProgramResult result = Run(program);
    Array array = *result.TakeArray(x);  // It knows its server, though the program had no arrays.
    EXPECT_THAT(*array.Read<int32_t>(), ElementsAre(0, 1, 2, 3, 4));
    name = array.Release();
  }
  EXPECT_TRUE(client_.BorrowArray(name).ok());
  EXPECT_TRUE(client_.DeleteArray(name).ok());
}

TEST_F(ProgramTest, RunsAnyNumberOfTimes) {
  const Array array = Uploaded<int64_t>({1, 2, 3});
  Program made;
  const auto x = made.Input<int64_t>(array.Part(0, 3));
  const auto sums = made.Scan(x);
  const auto total = made.Reduce(x);
  made.Output(sums, array);
  made.Output(total.value);
  const Program program = std::move(made);  // Its terms go along.
  const ProgramResult first = Run(program);
  const ProgramResult second = Run(program);
  EXPECT_EQ(first.Value(total.value).value_or(-1), 6);
  EXPECT_EQ(second.Value(total.value).value_or(-1), 10);
  EXPECT_THAT(*array.Read<int64_t>(), ElementsAre(1, 4, 10));
  EXPECT_EQ(ErrorReason(RunStatus(made)), "PROGRAM_SIZE");  // NOLINT(bugprone-use-after-move): it has no steps.
  // A program goes on after it ran.
  Program more;
  const auto one = more.Fill<uint16_t>(3, Constant<uint16_t>(1));
  more.Output(one);
  EXPECT_THAT(ValuesOf(Run(more), one), ElementsAre(1, 1, 1));
  const auto two = more.Add(one, one);
  more.Output(two);
  EXPECT_THAT(ValuesOf(Run(more), two), ElementsAre(2, 2, 2));
}

TEST_F(ProgramTest, ThreadsShareAProgram) {
  const Array array = Uploaded(Values<int32_t>(777));
  Program program;
  const auto sums = program.Scan(program.Input<int32_t>(array));
  program.Output(sums);
  program.Output(program.Copy(sums), NewArray{});
  const std::vector<int32_t> expected = ValuesOf(Run(program), sums);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 10; ++turn) EXPECT_EQ(ValuesOf(Run(program), sums), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ProgramTest, TellsWhatItTook) {
  const auto values = Values<int32_t>(999);
  const Array array = Uploaded(values);
  Program program;
  const auto x = program.Input<int32_t>(array);
  program.Output(program.Scan(program.Abs(x)));
  const ProgramResult result = Run(program);
  ASSERT_THAT(result.steps(), SizeIs(2));
  EXPECT_EQ(result.steps()[0].num_items, 999u);
  EXPECT_EQ(result.steps()[0].num_bytes, 2u * 4 * 999);
  EXPECT_GT(result.steps()[1].launches, 0u);
  EXPECT_NE(result.steps()[1].algorithm, Algorithm{});
  EXPECT_EQ(result.timing().num_items, 2u * 999);
  EXPECT_FALSE(result.timing().device.empty());
  EXPECT_GE(result.peak_bytes(), 2u * 4 * 999);
}

TEST_F(ProgramTest, GoesToTheServerOfItsArrays) {
  const Array array = Uploaded<int32_t>({5, 6});
  Program program;
  const auto x = program.Copy(program.Input<int32_t>(array));
  program.Output(x);
  Client other("127.0.0.1:1", {.retry_window = absl::ZeroDuration()});
  const auto result = other.Run(program);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ValuesOf(*result, x), ElementsAre(5, 6));
  Program without;
  without.Output(without.Fill<int32_t>(1, Constant<int32_t>(1)));
  EXPECT_EQ(other.Run(without).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ProgramTest, CanBeCancelled) {
  Program program;
  program.Output(program.Fill<int32_t>(1, Constant<int32_t>(1)));
  Cancellation cancellation;
  cancellation.Cancel();
  EXPECT_EQ(client_.Run(program, {.cancellation = &cancellation}).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace prefixd::client
