#include "server/log_limit.h"

#include <gtest/gtest.h>

namespace prefixd {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(LogLimit, TakesSoManyLinesOfAKindASecond) {
  LogLimit limit(2);
  EXPECT_TRUE(limit.Takes("a", kNow));
  EXPECT_TRUE(limit.Takes("a", kNow));
  EXPECT_FALSE(limit.Takes("a", kNow));
  EXPECT_TRUE(limit.Takes("b", kNow));
  EXPECT_TRUE(limit.Takes("a", kNow + absl::Seconds(1)));
}

TEST(LogLimit, CountsWhatItDropsOnce) {
  LogLimit limit(1);
  for (int i = 0; i < 5; ++i) limit.Takes("a", kNow);
  limit.Takes("b", kNow);
  EXPECT_EQ(limit.TakeDropped(), (std::map<std::string, uint64_t>{{"a", 4}}));
  EXPECT_TRUE(limit.TakeDropped().empty());
  EXPECT_EQ(limit.num_dropped(), 4u);
}

TEST(LogLimit, ZeroIsNoBound) {
  LogLimit limit(0);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limit.Takes("a", kNow));
  EXPECT_TRUE(limit.TakeDropped().empty());
}

}  // namespace
}  // namespace prefixd
