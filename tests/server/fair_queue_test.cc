#include "server/lanes/fair_queue.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

constexpr int64_t kMs = 1'000'000;

// An item that knows whose it is, and how long it takes.
struct Item {
  std::string name;
  int64_t ns = 0;
};

class FairQueueTest : public testing::Test {
 protected:
  void Push(const std::string& name, int64_t ns = kMs, const std::string& connection = "") {
    queue_.Push({.name = name, .connection = connection}, ns, {.name = name + connection, .ns = ns});
  }
  // The names of the next ones, at most so many.
  std::string Pop(int most = 1000) {
    std::string names;
    for (int i = 0; i < most && !queue_.empty(); ++i) names += queue_.Pop().name;
    return names;
  }

  FairClock clock_;
  FairQueue<Item> queue_{&clock_};
};

TEST_F(FairQueueTest, OneCallersItemsStayInOrder) {
  for (const int64_t ns : {5 * kMs, kMs, 3 * kMs}) Push("a", ns);
  for (const int64_t ns : {5 * kMs, kMs, 3 * kMs}) EXPECT_EQ(queue_.Pop().ns, ns);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(FairQueueTest, CallersTakeTurnsHoweverManyItemsTheyHave) {
  for (int i = 0; i < 6; ++i) Push("a");
  for (int i = 0; i < 2; ++i) Push("b");
  EXPECT_EQ(Pop(), "ababaaaa");
}

TEST_F(FairQueueTest, WhoComesLaterNeedNotWaitForAllThatIsThere) {
  for (int i = 0; i < 100; ++i) Push("a");
  EXPECT_EQ(Pop(10), "aaaaaaaaaa");
  Push("b");
  EXPECT_NE(Pop(2).find('b'), std::string::npos);
}

TEST_F(FairQueueTest, LongItemsCountForMore) {
  for (int i = 0; i < 10; ++i) Push("a", 4 * kMs);
  for (int i = 0; i < 40; ++i) Push("b", kMs);
  const std::string first = Pop(25);
  EXPECT_EQ(std::count(first.begin(), first.end(), 'a'), 5) << first;
}

// With an item at a time he is never found in the queue for long, and yet gets no more than his half.
TEST_F(FairQueueTest, ALongItemAtATimeIsNoWayRound) {
  for (int i = 0; i < 1000; ++i) Push("b", kMs);
  int64_t of_a = 0;
  int64_t of_b = 0;
  Push("a", 50 * kMs);
  for (int i = 0; i < 400; ++i) {
    const Item item = queue_.Pop();
    (item.name == "a" ? of_a : of_b) += item.ns;
    if (item.name == "a") Push("a", 50 * kMs);
  }
  EXPECT_NEAR(static_cast<double>(of_a), static_cast<double>(of_b), 50.0 * kMs);
}

TEST_F(FairQueueTest, WhoWasIdleHasSavedNothingUp) {
  Push("b");
  Pop();
  for (int i = 0; i < 200; ++i) Push("a");
  Pop(100);
  for (int i = 0; i < 50; ++i) Push("b");
  const std::string next = Pop(20);
  EXPECT_NEAR(static_cast<double>(std::count(next.begin(), next.end(), 'b')), 10, 1) << next;
}

TEST_F(FairQueueTest, ConnectionsDivideTheirCallersShare) {
  for (int i = 0; i < 100; ++i) {
    for (int c = 0; c < 9; ++c) Push("a", kMs, std::to_string(c));
    Push("b");
  }
  Pop(20);  // Ends were lined up before all connections were there.
  std::map<std::string, int> counts;
  for (int i = 0; i < 180; ++i) ++counts[queue_.Pop().name];
  EXPECT_NEAR(counts["b"], 90, 4);
  for (int c = 0; c < 9; ++c) EXPECT_NEAR(counts[StrCat("a", c)], 10, 2) << c;
}

TEST_F(FairQueueTest, QueuesOfOneClockCompare) {
  FairQueue<Item> other(&clock_);
  for (int i = 0; i < 10; ++i) Push("a", 2 * kMs);
  for (int i = 0; i < 20; ++i) other.Push({.name = "b", .connection = ""}, kMs, {.name = "b", .ns = kMs});
  int others = 0;
  for (int i = 0; i < 15; ++i) {
    const bool is_others = other.NextEnd() < queue_.NextEnd();
    others += is_others;
    (is_others ? other : queue_).Pop();
  }
  EXPECT_NEAR(others, 10, 1);
}

TEST_F(FairQueueTest, AbsurdTimesAreBounded) {
  Push("a", std::numeric_limits<int64_t>::max());
  Push("b", -1);
  Push("c", 0);
  EXPECT_EQ(Pop(), "bca");
  EXPECT_LE(clock_.now_ns, FairQueue<Item>::kMaxItemNs);
}

TEST_F(FairQueueTest, ItemsMayBeMovedOnly) {
  FairQueue<std::unique_ptr<int>> queue(&clock_);
  queue.Push({.name = "a", .connection = ""}, 1, std::make_unique<int>(7));
  EXPECT_EQ(*queue.Pop(), 7);
}

// Callers who always have something get the same time, whatever their items take, up to an item or two.
TEST_F(FairQueueTest, BusyCallersGetEqualTime) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937 random(seed);
  constexpr int kCallers = 7;
  constexpr int64_t kLongest = 10 * kMs;
  std::map<std::string, int64_t> got;
  const auto push = [&](const std::string& name) {
    const int64_t own = kLongest >> (name[0] - 'a');  // Each has a size of its own,
    Push(name, 1 + static_cast<int64_t>(random() % own), std::to_string(random() % 3));
  };
  for (char name = 'a'; name < 'a' + kCallers; ++name) {
    for (int i = 0; i < 20; ++i) push(std::string(1, name));  // and always as many items.
  }
  for (int i = 0; i < 100'000; ++i) {
    const Item item = queue_.Pop();
    const std::string name = item.name.substr(0, 1);
    got[name] += item.ns;
    push(name);
  }
  for (const auto& [name, ns] : got) {
    EXPECT_NEAR(static_cast<double>(ns), static_cast<double>(got["a"]), 0.05 * static_cast<double>(got["a"])) << name;
  }
}

}  // namespace
}  // namespace prefixd
