// Runs of equal keys against a plain loop: of every type, short and long, at the ends of parts, with NaN and both
// zeros.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/conformance/found_runs.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

class RunsTest : public DeviceTest<DTypeParam> {
 protected:
  template <class F>
  void WithType(F f) {
    VisitDType(GetParam().dtype, [&](auto tag) { f(typename decltype(tag)::type{}); });
  }

  // Runs of up to max_length keys, neighbours of which may be equal all the same.
  template <class T>
  std::vector<T> MakeKeys(size_t num_items, uint64_t max_length) {
    std::vector<T> keys;
    while (keys.size() < num_items) {
      keys.insert(keys.end(), 1 + random().Below(max_length), RandomKey<T>(random()));
    }
    keys.resize(num_items);
    return keys;
  }

  template <class T>
  testing::AssertionResult Finds(const std::vector<T>& keys) {
    return FoundRuns<T>(lane(), keys, random()).AreRight();
  }
};

TEST_P(RunsTest, EverySize) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (const size_t num_items : {0, 1, 2, 3, 31, 127, 128, 129, 1023, 1024, 1025, 8191, 8192, 8193, 70001}) {
      if (SmallSizesOnly() && num_items > 10000) continue;
      for (const uint64_t max_length : {1, 2, 300, 20000}) {
        ASSERT_TRUE(Finds(MakeKeys<T>(num_items, max_length))) << num_items << " keys, runs up to " << max_length;
      }
    }
  });
}

// So many tiles that their counts are scanned as a long array is.
TEST_P(RunsTest, ManyTiles) {
  if (GetParam().dtype != DType::kU8 || SmallSizesOnly()) GTEST_SKIP() << "one type is enough for what counts do";
  ASSERT_TRUE(Finds(MakeKeys<uint8_t>(5000 * kRunsPartItems + 77, 300)));
}

// Where a lane, a row, a warp or a tile ends, the key before is somebody else's.
TEST_P(RunsTest, BeginAnywhere) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (const size_t begin : {1, 3, 4, 127, 128, 1023, 1024, 8191, 8192, 8195, 16383, 16384}) {
      std::vector<T> keys(20000, T{1});
      std::fill(keys.begin() + begin, keys.end(), T{2});
      ASSERT_TRUE(Finds(keys)) << begin;
    }
  });
}

TEST_P(RunsTest, SaysWhatIsWrong) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    DeviceArray<T> d_keys(lane(), {T{1}, T{2}, T{3}});
    DeviceArray<uint64_t> d_x(lane(), std::vector<uint64_t>(1000));
    const RunsArgs good = {.dtype = kDTypeOf<T>,
                           .keys = d_keys.data(),
                           .num_items = 3,
                           .scratch = d_x.data(),
                           .offsets = d_x.data() + 900,
                           .num_offsets = d_x.data() + 999};
    EXPECT_TRUE(lane().FindRuns(good).ok());
    const auto message = [&](auto&& change) {
      RunsArgs args = good;
      change(&args);
      return std::string(lane().FindRuns(args).message());
    };
    EXPECT_THAT(message([](RunsArgs* args) { args->keys = nullptr; }), testing::HasSubstr("keys"));
    EXPECT_THAT(message([](RunsArgs* args) { args->offsets = nullptr; }), testing::HasSubstr("offsets"));
    EXPECT_THAT(message([](RunsArgs* args) { args->scratch = nullptr; }), testing::HasSubstr("scratch"));
    EXPECT_THAT(message([](RunsArgs* args) { args->num_offsets = nullptr; }), testing::HasSubstr("num_offsets"));
    EXPECT_THAT(message([](RunsArgs* args) { args->scratch = args->offsets + 1; }), testing::HasSubstr("scratch"));
    EXPECT_THAT(message([](RunsArgs* args) { args->keys = args->offsets; }), testing::HasSubstr("keys"));
  });
}

PREFIXD_ON_EVERY_DEVICE(RunsTest, EveryDType);

}  // namespace
}  // namespace prefixd::conformance
