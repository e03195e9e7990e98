#include "client/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace prefixd::load {
namespace {

constexpr double kShares[] = {0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};

// The exact percentile: the least value that at least this share of all values do not exceed.
int64_t Oracle(const std::vector<int64_t>& sorted, double share) {
  size_t rank = 1;
  while (static_cast<double>(rank) / static_cast<double>(sorted.size()) < share - 1e-12) ++rank;
  return sorted[rank - 1];
}

TEST(Histogram, PercentilesAreThoseOfASortedList) {
  std::mt19937_64 random(5);
  for (const int magnitude : {4, 8, 12, 20, 40, 62}) {
    for (const size_t count : {1, 2, 10, 1000, 1001}) {
      Histogram histogram;
      std::vector<int64_t> values;
      for (size_t i = 0; i < count; ++i) {
        values.push_back(static_cast<int64_t>(random() >> (64 - magnitude)));
        histogram.Add(values.back());
      }
      std::sort(values.begin(), values.end());
      for (const double share : kShares) {
        const int64_t exact = Oracle(values, share);
        EXPECT_GE(histogram.Percentile(share), exact) << magnitude << " " << count << " " << share;
        EXPECT_LE(static_cast<double>(histogram.Percentile(share)), static_cast<double>(exact) * 1.008)
            << magnitude << " " << count << " " << share;
      }
      EXPECT_EQ(histogram.max_ns(), values.back());
      EXPECT_EQ(histogram.count(), count);
    }
  }
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (const int64_t value : {4, 3, 2, 1}) histogram.Add(value);
  EXPECT_EQ(histogram.Percentile(0.5), 2);
  EXPECT_EQ(histogram.Percentile(0.51), 3);
  EXPECT_EQ(histogram.Percentile(1), 4);
  EXPECT_EQ(histogram.MeanNs(), 2.5);
}

TEST(Histogram, OfNothingAndOfTheSmallestAndLargest) {
  Histogram histogram;
  EXPECT_EQ(histogram.Percentile(0.5), 0);
  EXPECT_EQ(histogram.MeanNs(), 0);
  histogram.Add(-5);
  EXPECT_EQ(histogram.Percentile(1), 0);
  histogram.Add(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(histogram.Percentile(1), std::numeric_limits<int64_t>::max());
}

TEST(Histogram, MergedIsAsIfAddedToOne) {
  Histogram one;
  Histogram other;
  Histogram both;
  for (int64_t i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? one : other).Add(i * i);
    both.Add(i * i);
  }
  one.Merge(other);
  for (const double share : kShares) EXPECT_EQ(one.Percentile(share), both.Percentile(share));
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.max_ns(), both.max_ns());
  EXPECT_EQ(one.MeanNs(), both.MeanNs());
}

}  // namespace
}  // namespace prefixd::load
