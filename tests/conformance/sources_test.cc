// Every algorithm of a device, on the arrays that textbooks about scans print (kernels/yardsticks/SOURCES.md). A reader
// of such a text would try its array first.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

using I32 = std::vector<int32_t>;
using I64 = std::vector<int64_t>;

class SourcesTest : public DeviceTest<DeviceParam> {
 protected:
  template <class T>
  std::vector<T> Scan(const Algorithm& algorithm, ScanKind kind, const std::vector<T>& in) {
    DeviceArray<T> d_in(lane(), in);
    auto d_out = DeviceArray<T>::Poisoned(lane(), in.size());
    ScanArgs args;
    args.dtype = kDTypeOf<T>;
    args.kind = kind;
    args.algorithm = algorithm;
    args.in = d_in.data();
    args.out = d_out.data();
    args.num_items = in.size();
    args.init = ScanStart(Op::kSum, args.dtype, kind);
    Require(lane().Scan(args));
    std::vector<T> got;
    EXPECT_TRUE(d_out.Read(&got));
    return got;
  }

  template <class T>
  T Reduce(const Algorithm& algorithm, const std::vector<T>& in) {
    DeviceArray<T> d_in(lane(), in);
    auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
    ReduceArgs args;
    args.dtype = kDTypeOf<T>;
    args.algorithm = algorithm;
    args.in = d_in.data();
    args.num_items = in.size();
    args.init = {Neutral(Op::kSum, args.dtype), ReduceState::kNothing};
    args.state_out = d_state.data();
    Require(lane().Reduce(args));
    std::vector<ReduceState> state;
    EXPECT_TRUE(d_state.Read(&state));
    return state[0].value.As<T>();
  }

  // Those marked, in order, or, of an algorithm that has none, sorted.
  I32 Compact(const AlgorithmInfo& row, const I32& in, const std::vector<uint8_t>& marks) {
    DeviceArray<int32_t> d_in(lane(), in);
    DeviceArray<uint8_t> d_marks(lane(), marks);
    auto d_values = DeviceArray<int32_t>::Poisoned(lane(), in.size());
    auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
    CompactArgs args;
    args.selector = Selector::kByteMask;
    args.mask = d_marks.data();
    args.algorithm = row.algorithm;
    args.in = d_in.data();
    args.num_items = in.size();
    args.values = d_values.data();
    args.count = d_count.data();
    Require(lane().Compact(args));
    I32 got;
    std::vector<uint64_t> count;
    EXPECT_TRUE(d_values.Read(&got));
    EXPECT_TRUE(d_count.Read(&count));
    got.resize(count[0]);
    if (!row.stable) std::ranges::sort(got);
    return got;
  }

  // Every algorithm of the primitive that serves sums of the type.
  std::vector<AlgorithmInfo> Rows(Primitive primitive, DType dtype = DType::kI32) {
    std::vector<AlgorithmInfo> rows = device().Algorithms();
    std::erase_if(rows, [&](const AlgorithmInfo& row) {
      return row.primitive != primitive || !row.serves(dtype, dtype, Op::kSum);
    });
    return rows;
  }
};

constexpr auto kInclusive = ScanKind::kInclusive;
constexpr auto kExclusive = ScanKind::kExclusive;

TEST_P(SourcesTest, Scans) {
  I32 first_1024(1024);
  std::iota(first_1024.begin(), first_1024.end(), 1);
  for (const AlgorithmInfo& row : Rows(Primitive::kScan)) {
    SCOPED_TRACE(Name(row.algorithm));
    const Algorithm& by = row.algorithm;
    // Funktor: blocks of four, their sums, and the whole. Its last block has 1 + 7 = 7, and so 58 for 59 in the end.
    EXPECT_EQ(Scan<int32_t>(by, kInclusive, {2, 1, 5, 8, 9, 0, 4, 6, 3, 4, 5, 4, 1, 7, 7, 2}),
              I32({2, 3, 8, 16, 25, 25, 29, 35, 38, 42, 47, 51, 52, 59, 66, 68}));
    EXPECT_EQ(Scan<int32_t>(by, kInclusive, {1, 7, 7, 2}), I32({1, 8, 15, 17}));
    EXPECT_EQ(Scan<int32_t>(by, kInclusive, {16, 19, 16, 17}), I32({16, 35, 51, 68}));
    // Ruan: the first i + 1 of the numbers that the people in a line hold; a warp of them.
    EXPECT_EQ(Scan(by, kInclusive, I32(first_1024.begin(), first_1024.begin() + 32)).back(), 32 * 33 / 2);
    // Hadwiger.
    EXPECT_EQ(Scan<int32_t>(by, kExclusive, {3, 1, 7, 0, 4, 1, 6, 3}), I32({0, 3, 4, 11, 11, 15, 16, 22}));
    EXPECT_EQ(Scan<int32_t>(by, kInclusive, {3, 1, 7, 0, 4, 1, 6, 3}), I32({3, 4, 11, 11, 15, 16, 22, 25}));
    // Iriscores: 1,024 samples; and ints beyond what its float array holds.
    EXPECT_EQ(Scan(by, kInclusive, first_1024).back(), 1024 * 1025 / 2);
    EXPECT_EQ(Scan<int32_t>(by, kInclusive, {1 << 24, 1, 1}), I32({1 << 24, (1 << 24) + 1, (1 << 24) + 2}));
    // Note and Save.
    EXPECT_EQ(Scan<int32_t>(by, kInclusive, {1, 2, 3, 4}), I32({1, 3, 6, 10}));
    EXPECT_EQ(Scan<int32_t>(by, kExclusive, {1, 2, 3, 4}), I32({0, 1, 3, 6}));
    EXPECT_EQ(Scan<int32_t>(by, kInclusive, {1, 2, 3, 4, 5, 6, 7, 8}), I32({1, 3, 6, 10, 15, 21, 28, 36}));
    EXPECT_EQ(Scan<int32_t>(by, kExclusive, {1, 2, 3, 4, 5, 6, 7, 8}), I32({0, 1, 3, 6, 10, 15, 21, 28}));
  }
}

// The n of Funktor's main: 10^7 elements that are all 1 here, so that a float counts exactly to 2^24.
TEST_P(SourcesTest, TenMillion) {
  if (SmallSizesOnly()) GTEST_SKIP() << "ten million elements are no small size";
  constexpr size_t kItems = 10'000'000;
  const std::vector<float> in(kItems, 1.0F);
  for (const AlgorithmInfo& row : Rows(Primitive::kScan, DType::kF32)) {
    if (!device().CheckLength(Primitive::kScan, row.algorithm, kItems).ok()) continue;
    SCOPED_TRACE(Name(row.algorithm));
    const std::vector<float> got = Scan(row.algorithm, kInclusive, in);
    for (size_t i = 0; i < kItems; ++i) ASSERT_EQ(got[i], static_cast<float>(i + 1)) << i;
  }
  for (const AlgorithmInfo& row : Rows(Primitive::kReduce, DType::kF32)) {
    EXPECT_EQ(Reduce(row.algorithm, in), static_cast<float>(kItems)) << Name(row.algorithm);
  }
}

TEST_P(SourcesTest, Reduces) {
  for (const AlgorithmInfo& row : Rows(Primitive::kReduce)) {  // Note and Save; Hadwiger's root.
    EXPECT_EQ(Reduce<int32_t>(row.algorithm, {2, 4, 6, 8, 1, 3, 5, 7}), 36) << Name(row.algorithm);
    EXPECT_EQ(Reduce<int32_t>(row.algorithm, {3, 1, 7, 0, 4, 1, 6, 3}), 25) << Name(row.algorithm);
  }
  for (const AlgorithmInfo& row : Rows(Primitive::kReduce, DType::kF32)) {
    EXPECT_EQ(Reduce<float>(row.algorithm, {2, 4, 6, 8, 1, 3, 5, 7}), 36) << Name(row.algorithm);
  }
}

TEST_P(SourcesTest, Compacts) {
  for (const AlgorithmInfo& row : Rows(Primitive::kCompact)) {
    SCOPED_TRACE(Name(row.algorithm));
    const auto sorted = [&row](I32 want) {
      if (!row.stable) std::ranges::sort(want);
      return want;
    };
    // Hadwiger.
    EXPECT_EQ(Compact(row, {3, 1, 7, 4, 2, 1, 5, 6, 3, 1}, {1, 0, 1, 0, 0, 0, 0, 1, 0, 0}), sorted({3, 7, 6}));
    // Note and Save, whose elements are letters.
    EXPECT_EQ(Compact(row, {'A', 'B', 'C', 'D', 'E'}, {1, 0, 1, 1, 0}), I32({'A', 'C', 'D'}));
  }
  // The positions of both, by scans.
  for (const AlgorithmInfo& row : Rows(Primitive::kScan)) {
    EXPECT_EQ(Scan<int32_t>(row.algorithm, kExclusive, {1, 0, 1, 0, 0, 0, 0, 1, 0, 0}),
              I32({0, 1, 1, 2, 2, 2, 2, 2, 3, 3}))
        << Name(row.algorithm);
    EXPECT_EQ(Scan<int32_t>(row.algorithm, kExclusive, {1, 0, 1, 1, 0}), I32({0, 1, 1, 2, 3})) << Name(row.algorithm);
  }
}

// Hadwiger's range histogram: the number of values in [a, b] is a difference of two prefixes.
TEST_P(SourcesTest, RangeHistogram) {
  I64 histogram(256);
  for (int i = 0; i < 10000; ++i) ++histogram[random().Below(16) * random().Below(16)];
  for (const AlgorithmInfo& row : Rows(Primitive::kScan, DType::kI64)) {
    const I64 prefix = Scan(row.algorithm, kExclusive, histogram);
    const I64 through = Scan(row.algorithm, kInclusive, histogram);
    for (int query = 0; query < 20; ++query) {
      const size_t a = random().Below(256), b = a + random().Below(256 - a);
      ASSERT_EQ(through[b] - prefix[a], std::accumulate(histogram.begin() + a, histogram.begin() + b + 1, int64_t{0}))
          << Name(row.algorithm) << " [" << a << ", " << b << "]";
    }
  }
}

// Note and Save's histogram equalisation: an image in 100 .. 103 is spread over 0 .. 255.
TEST_P(SourcesTest, HistogramEqualisation) {
  I32 histogram(256);
  histogram[100] = 4;
  histogram[101] = 4;
  histogram[102] = 4;
  histogram[103] = 4;
  for (const AlgorithmInfo& row : Rows(Primitive::kScan)) {
    const I32 cdf = Scan(row.algorithm, kInclusive, histogram);
    const auto new_value = [&](int pixel) {
      constexpr double kTotal = 16;
      const double cdf_min = cdf[100];
      return std::lround((cdf[pixel] - cdf_min) / (kTotal - cdf_min) * 255);
    };
    EXPECT_EQ(new_value(100), 0) << Name(row.algorithm);
    EXPECT_EQ(new_value(101), 85) << Name(row.algorithm);
    EXPECT_EQ(new_value(102), 170) << Name(row.algorithm);
    EXPECT_EQ(new_value(103), 255) << Name(row.algorithm);
  }
}

// Note and Save's radix sort: one pass a bit, each a scan of the flags of the zeros.
TEST_P(SourcesTest, RadixSortBySplits) {
  I32 keys(1000);
  for (int32_t& key : keys) key = static_cast<int32_t>(random().Below(256));
  I32 want = keys;
  std::ranges::sort(want);
  for (const AlgorithmInfo& row : Rows(Primitive::kScan)) {
    I32 sorted = keys;
    for (int bit = 0; bit < 8; ++bit) {
      I32 is_zero(sorted.size()), next(sorted.size());
      for (size_t i = 0; i < sorted.size(); ++i) is_zero[i] = (sorted[i] >> bit & 1) == 0;
      const I32 zeros_before = Scan(row.algorithm, kExclusive, is_zero);
      const size_t num_zeros = zeros_before.back() + is_zero.back();
      for (size_t i = 0; i < sorted.size(); ++i) {
        next[is_zero[i] ? zeros_before[i] : num_zeros + i - zeros_before[i]] = sorted[i];
      }
      sorted = next;
    }
    EXPECT_EQ(sorted, want) << Name(row.algorithm);
  }
}

PREFIXD_ON_EVERY_DEVICE(SourcesTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
