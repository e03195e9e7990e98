// Gathers and scatters against plain loops, with indices of every kind: in order, at random, and beyond the array.
#include <numeric>
#include <vector>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

enum class IndexPattern { kIdentity, kRandom, kSomeBad, kAllBad };
constexpr int kNumIndexPatterns = 4;

class GatherTest : public DeviceTest<DTypeParam> {
 protected:
  // Calls f with an element and an index of each type.
  template <class F>
  void WithTypes(F f) {
    VisitDType(GetParam().dtype, [&](auto tag) {
      f(typename decltype(tag)::type{}, uint32_t{});
      f(typename decltype(tag)::type{}, uint64_t{});
    });
  }

  template <class Index>
  Index BadIndex(size_t bound) {
    const uint64_t picks[] = {bound, bound + 1, ~uint64_t{0}, uint64_t{1} << 63, bound + (uint64_t{1} << 31)};
    const auto index = static_cast<Index>(picks[random().Below(std::size(picks))]);
    return index < bound ? static_cast<Index>(bound) : index;
  }

  // Distinct indices below `bound`, but for the bad ones. Needs: num_items <= bound.
  template <class Index>
  std::vector<Index> MakeIndices(IndexPattern pattern, size_t num_items, size_t bound) {
    std::vector<Index> indices(bound);
    std::iota(indices.begin(), indices.end(), Index{0});
    if (pattern != IndexPattern::kIdentity) {
      for (size_t i = bound; i > 1; --i) std::swap(indices[i - 1], indices[random().Below(i)]);
    }
    indices.resize(num_items);
    for (Index& index : indices) {
      if (pattern == IndexPattern::kAllBad || (pattern == IndexPattern::kSomeBad && random().OneIn(50)))
        index = BadIndex<Index>(bound);
    }
    return indices;
  }

  template <class T>
  std::vector<T> AnyBits(size_t num_items) {
    std::vector<T> items(num_items);
    for (T& item : items) item = RandomBits<T>(random());
    return items;
  }

  template <class T, class Index>
  testing::AssertionResult Gathers(IndexPattern pattern, size_t num_items, size_t offset) {
    const size_t in_items = num_items + random().Below(10);
    const std::vector<T> in = AnyBits<T>(in_items);
    auto indices = MakeIndices<Index>(pattern, num_items, in_items);
    for (size_t i = 0; i < num_items && pattern == IndexPattern::kRandom; i += 7) indices[i] = indices[num_items / 2];
    std::vector<T> want(num_items);
    uint64_t want_bad = 0;
    for (size_t i = 0; i < num_items; ++i) {
      const bool good = indices[i] < in_items;
      want[i] = good ? in[indices[i]] : T{0};
      want_bad += good ? 0 : 1;
    }
    DeviceArray<T> d_in(lane(), in, random().Below(3));
    DeviceArray<Index> d_indices(lane(), indices, random().OneIn(2) ? 0 : offset);
    auto d_out = DeviceArray<T>::Poisoned(lane(), num_items, offset);
    auto d_bad = DeviceArray<uint64_t>::Poisoned(lane(), 1);
    const GatherArgs args = {.dtype = kDTypeOf<T>,
                             .index_dtype = kDTypeOf<Index>,
                             .in = d_in.data(),
                             .in_items = in_items,
                             .indices = d_indices.data(),
                             .out = d_out.data(),
                             .num_items = num_items,
                             .num_bad = d_bad.data()};
    return Check(lane().Gather(args), d_out, want, d_bad, want_bad, d_in, d_indices);
  }

  template <class T, class Index>
  testing::AssertionResult Scatters(IndexPattern pattern, size_t num_items, size_t offset) {
    const size_t out_items = num_items + random().Below(10);
    const std::vector<T> in = AnyBits<T>(num_items);
    const auto indices = MakeIndices<Index>(pattern, num_items, out_items);
    std::vector<T> want = AnyBits<T>(out_items);
    DeviceArray<T> d_out(lane(), want, random().Below(3));
    uint64_t want_bad = 0;
    for (size_t i = 0; i < num_items; ++i) {
      const bool good = indices[i] < out_items;
      if (good) want[indices[i]] = in[i];
      want_bad += good ? 0 : 1;
    }
    DeviceArray<T> d_in(lane(), in, offset);
    DeviceArray<Index> d_indices(lane(), indices, random().OneIn(2) ? 0 : offset);
    auto d_bad = DeviceArray<uint64_t>::Poisoned(lane(), 1);
    const ScatterArgs args = {.dtype = kDTypeOf<T>,
                              .index_dtype = kDTypeOf<Index>,
                              .in = d_in.data(),
                              .indices = d_indices.data(),
                              .num_items = num_items,
                              .out = d_out.data(),
                              .out_items = out_items,
                              .num_bad = d_bad.data()};
    return Check(lane().Scatter(args), d_out, want, d_bad, want_bad, d_in, d_indices);
  }

 private:
  template <class T, class Index>
  static testing::AssertionResult Check(const absl::Status& status, DeviceArray<T>& d_out, const std::vector<T>& want,
                                        DeviceArray<uint64_t>& d_bad, uint64_t want_bad, DeviceArray<T>& d_in,
                                        DeviceArray<Index>& d_indices) {
    if (!status.ok()) return testing::AssertionFailure() << status;
    std::vector<T> got;
    if (auto guards = d_out.Read(&got); !guards) return guards << " (out)";
    if (auto same = AreSame(got, want); !same) return same;
    std::vector<uint64_t> bad;
    if (auto guards = d_bad.Read(&bad); !guards) return guards << " (num_bad)";
    if (auto same = AreSame(bad, {want_bad}); !same) return same << " (num_bad)";
    if (auto untouched = d_indices.IsUntouched(); !untouched) return untouched << " (indices)";
    return d_in.IsUntouched();
  }
};

TEST_P(GatherTest, EveryPatternAndSize) {
  WithTypes([&](auto zero, auto index) {
    using T = decltype(zero);
    using Index = decltype(index);
    for (const size_t size : Sizes()) {
      for (int form = 0; form < 2 * kNumIndexPatterns; ++form) {
        if (!Takes(size)) continue;
        const auto pattern = static_cast<IndexPattern>(form / 2);
        const size_t offset = random().OneIn(2) ? 0 : random().Below(9);
        ASSERT_TRUE((Gathers<T, Index>(pattern, size, offset))) << size << " items, pattern " << form / 2;
        ASSERT_TRUE((Scatters<T, Index>(pattern, size, offset))) << size << " items, pattern " << form / 2;
      }
    }
  });
}

TEST_P(GatherTest, ManyTiles) {
  WithTypes([&](auto zero, auto index) {
    using T = decltype(zero);
    using Index = decltype(index);
    for (int pattern = 0; pattern < kNumIndexPatterns; ++pattern) {
      ASSERT_TRUE((Gathers<T, Index>(static_cast<IndexPattern>(pattern), ManyTilesSize(), 0))) << "pattern " << pattern;
      ASSERT_TRUE((Scatters<T, Index>(static_cast<IndexPattern>(pattern), ManyTilesSize(), 0)))
          << "pattern " << pattern;
    }
  });
}

// A gather from nothing has no good index; a scatter undoes a gather.
TEST_P(GatherTest, EdgesAndInverses) {
  WithTypes([&](auto zero, auto index) {
    using T = decltype(zero);
    using Index = decltype(index);
    auto d_out = DeviceArray<T>::Poisoned(lane(), 3);
    DeviceArray<Index> d_indices(lane(), {2, 0, 1});
    auto d_bad = DeviceArray<uint64_t>::Poisoned(lane(), 1);
    GatherArgs gather = {.dtype = kDTypeOf<T>,
                         .index_dtype = kDTypeOf<Index>,
                         .indices = d_indices.data(),
                         .out = d_out.data(),
                         .num_items = 3,
                         .num_bad = d_bad.data()};
    ASSERT_TRUE(lane().Gather(gather).ok());
    std::vector<T> got;
    std::vector<uint64_t> bad;
    ASSERT_TRUE(d_out.Read(&got) && d_bad.Read(&bad));
    EXPECT_TRUE(AreSame(got, {T{0}, T{0}, T{0}}));
    EXPECT_EQ(bad[0], 3u);

    DeviceArray<T> d_in(lane(), {T{10}, T{20}, T{30}});
    auto d_back = DeviceArray<T>::Poisoned(lane(), 3);
    gather.in = d_in.data();
    gather.in_items = 3;
    ASSERT_TRUE(lane().Gather(gather).ok());
    const ScatterArgs scatter = {.dtype = kDTypeOf<T>,
                                 .index_dtype = kDTypeOf<Index>,
                                 .in = d_out.data(),
                                 .indices = d_indices.data(),
                                 .num_items = 3,
                                 .out = d_back.data(),
                                 .out_items = 3,
                                 .num_bad = d_bad.data()};
    ASSERT_TRUE(lane().Scatter(scatter).ok());
    ASSERT_TRUE(d_out.Read(&got));
    EXPECT_TRUE(AreSame(got, {T{30}, T{10}, T{20}}));
    ASSERT_TRUE(d_back.Read(&got) && d_bad.Read(&bad));
    EXPECT_TRUE(AreSame(got, {T{10}, T{20}, T{30}}));
    EXPECT_EQ(bad[0], 0u);
  });
}

// One of the items with the same index stays, whole.
TEST_P(GatherTest, EqualIndicesKeepOneOfTheirItems) {
  WithTypes([&](auto zero, auto index) {
    using T = decltype(zero);
    using Index = decltype(index);
    const size_t size = 5000;
    std::vector<T> in(size);
    for (size_t i = 0; i < size; ++i) in[i] = i % 2 == 0 ? T{5} : T{9};
    DeviceArray<T> d_in(lane(), in);
    DeviceArray<Index> d_indices(lane(), std::vector<Index>(size, Index{1}));
    auto d_out = DeviceArray<T>::Poisoned(lane(), 3);
    auto d_bad = DeviceArray<uint64_t>::Poisoned(lane(), 1);
    ASSERT_TRUE(lane()
                    .Scatter({.dtype = kDTypeOf<T>,
                              .index_dtype = kDTypeOf<Index>,
                              .in = d_in.data(),
                              .indices = d_indices.data(),
                              .num_items = size,
                              .out = d_out.data(),
                              .out_items = 3,
                              .num_bad = d_bad.data()})
                    .ok());
    std::vector<T> got;
    ASSERT_TRUE(d_out.Read(&got));
    EXPECT_TRUE(got[1] == T{5} || got[1] == T{9}) << Show(got[1]);
    EXPECT_TRUE(AreSame(got, {Poison<T>(), got[1], Poison<T>()}));
  });
}

TEST_P(GatherTest, IsOneLaunch) {
  const size_t size = SizeOf(GetParam().dtype);
  auto d_items = DeviceArray<uint64_t>::Poisoned(lane(), 2000);
  DeviceArray<uint32_t> d_indices(lane(), std::vector<uint32_t>(1000, 3));
  auto d_bad = DeviceArray<uint64_t>::Poisoned(lane(), 1);
  const GatherArgs args = {.dtype = GetParam().dtype,
                           .index_dtype = DType::kU32,
                           .in = d_items.data(),
                           .in_items = 1000,
                           .indices = d_indices.data(),
                           .out = d_items.data() + 1000,
                           .num_items = 1000,
                           .num_bad = d_bad.data()};
  Require(lane().Synchronize());
  lane().TakeStageTimes();
  Require(lane().Gather(args));
  Require(lane().Synchronize());
  const StageTimes times = lane().TakeStageTimes();
  EXPECT_TRUE(times.kernel_ns);
  EXPECT_EQ(times.launches, 1u);
  EXPECT_EQ(times.num_bytes, 1000 * (4 + 2 * size) + 8);
}

TEST_P(GatherTest, BadArgumentsAreRefused) {
  auto d_items = DeviceArray<uint64_t>::Poisoned(lane(), 16);
  auto d_indices = DeviceArray<uint64_t>::Poisoned(lane(), 8);
  auto d_bad = DeviceArray<uint64_t>::Poisoned(lane(), 1);
  GatherArgs args;
  const auto refuses = [&](absl::StatusCode code, std::string_view text) {
    const ScatterArgs scatter = {.dtype = args.dtype,
                                 .index_dtype = args.index_dtype,
                                 .in = args.in,
                                 .indices = args.indices,
                                 .num_items = args.num_items,
                                 .out = args.out,
                                 .out_items = args.in_items,
                                 .num_bad = args.num_bad};
    for (const absl::Status& status : {lane().Gather(args), lane().Scatter(scatter)}) {
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_NE(status.message().find(AbslView(text)), absl::string_view::npos) << status;
    }
    args = {.dtype = GetParam().dtype,
            .in = d_items.data(),
            .in_items = 8,
            .indices = d_indices.data(),
            .out = d_items.data() + 8,
            .num_items = 8,
            .num_bad = d_bad.data()};
  };
  args.dtype = static_cast<DType>(kNumDTypes);
  refuses(absl::StatusCode::kUnimplemented, "does not serve");
  args.index_dtype = DType::kI32;
  refuses(absl::StatusCode::kInvalidArgument, "index_dtype is i32");
  args.in = nullptr;
  refuses(absl::StatusCode::kInvalidArgument, "in is null");
  args.indices = nullptr;
  refuses(absl::StatusCode::kInvalidArgument, "indices is null");
  args.out = nullptr;
  refuses(absl::StatusCode::kInvalidArgument, "out is null");
  args.num_bad = nullptr;
  refuses(absl::StatusCode::kInvalidArgument, "num_bad is null");
  args.out = d_items.data();
  refuses(absl::StatusCode::kInvalidArgument, "in and out overlap");
  args.out = d_indices.data();
  refuses(absl::StatusCode::kInvalidArgument, "indices and out overlap");
  args.num_bad = d_items.data() + 8;
  refuses(absl::StatusCode::kInvalidArgument, "num_bad and out overlap");
  args.num_bad = d_indices.data() + 7;
  refuses(absl::StatusCode::kInvalidArgument, "indices and num_bad overlap");
  args.indices = reinterpret_cast<uint8_t*>(d_indices.data()) + 4;
  args.num_items = 1;
  refuses(absl::StatusCode::kInvalidArgument, "indices is not aligned");
  EXPECT_TRUE(d_items.IsUntouched());
  EXPECT_TRUE(d_bad.IsUntouched());
}

PREFIXD_ON_EVERY_DEVICE(GatherTest, EveryDType);

}  // namespace
}  // namespace prefixd::conformance
