// Counts of kept elements by segment against a plain loop: segments of every length, empty ones, and indices at their
// ends.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

class CountTest : public DeviceTest<DeviceParam> {
 protected:
  // Ascending numbers up to bound, the first 0, the last bound.
  std::vector<uint64_t> MakeOffsets(size_t num_segments, uint64_t bound) {
    std::vector<uint64_t> offsets(num_segments + 1);
    for (uint64_t& offset : offsets) offset = random().OneIn(3) ? bound / 2 : random().Below(bound + 1);
    offsets.front() = 0;
    offsets.back() = bound;
    std::sort(offsets.begin(), offsets.end());
    return offsets;
  }

  template <class Index>
  void Counts(size_t num_segments, uint64_t bound) {
    const std::vector<uint64_t> offsets = MakeOffsets(num_segments, bound);
    const uint64_t one_in = 1 + random().Below(4);
    std::vector<Index> indices;
    for (uint64_t i = 0; i < bound; ++i) {
      if (random().OneIn(one_in)) indices.push_back(static_cast<Index>(i));
    }
    std::vector<uint64_t> want(num_segments);
    for (size_t s = 0; s < num_segments; ++s) {
      want[s] = static_cast<uint64_t>(std::count_if(
          indices.begin(), indices.end(), [&](Index index) { return index >= offsets[s] && index < offsets[s + 1]; }));
    }
    DeviceArray<Index> d_indices(lane(), indices, random().Below(3));
    DeviceArray<uint64_t> d_offsets(lane(), offsets, random().Below(3));
    auto d_counts = DeviceArray<uint64_t>::Poisoned(lane(), num_segments, random().Below(3));
    ASSERT_TRUE(lane()
                    .CountSegments({.index_dtype = kDTypeOf<Index>,
                                    .indices = d_indices.data(),
                                    .num_indices = indices.size(),
                                    .offsets = d_offsets.data(),
                                    .counts = d_counts.data(),
                                    .num_items = num_segments})
                    .ok());
    std::vector<uint64_t> got;
    ASSERT_TRUE(d_counts.Read(&got));
    ASSERT_TRUE(AreSame(got, want)) << num_segments << " segments of " << bound;
    ASSERT_TRUE(d_indices.IsUntouched());
    ASSERT_TRUE(d_offsets.IsUntouched());
  }
};

TEST_P(CountTest, EverySize) {
  for (const size_t num_segments : {size_t{0}, size_t{1}, size_t{2}, size_t{255}, size_t{256}, size_t{1031}}) {
    for (const uint64_t bound : {uint64_t{0}, uint64_t{1}, uint64_t{100}, uint64_t{5000}}) {
      Counts<uint32_t>(num_segments, bound);
      Counts<uint64_t>(num_segments, bound);
    }
  }
}

TEST_P(CountTest, SaysWhatIsWrong) {
  DeviceArray<uint64_t> d_x(lane(), {0, 1, 2});
  const CountArgs good = {
      .indices = d_x.data(), .num_indices = 1, .offsets = d_x.data(), .counts = d_x.data() + 2, .num_items = 1};
  EXPECT_TRUE(lane().CountSegments(good).ok());
  const auto message = [&](auto&& change) {
    CountArgs args = good;
    change(&args);
    return std::string(lane().CountSegments(args).message());
  };
  EXPECT_THAT(message([](CountArgs* args) { args->index_dtype = DType::kI32; }), testing::HasSubstr("index_dtype"));
  EXPECT_THAT(message([](CountArgs* args) { args->num_indices = 3; }), testing::HasSubstr("indices"));
  EXPECT_THAT(message([](CountArgs* args) { args->counts = const_cast<uint64_t*>(args->offsets) + 1; }),
              testing::HasSubstr("offsets"));
  EXPECT_THAT(message([](CountArgs* args) { args->offsets = nullptr; }), testing::HasSubstr("offsets"));
}

PREFIXD_ON_EVERY_DEVICE(CountTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
