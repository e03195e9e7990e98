// Differences of neighbours against a plain loop, and as the inverse of a scan.
#include <ostream>
#include <vector>

#include "tests/conformance/harness.h"
#include "tests/conformance/offsets.h"

namespace prefixd::conformance {
namespace {

// a - b as the contract has it: integers wrap, f16 and bf16 are subtracted as floats, a NaN comes out canonical.
template <class T>
T Minus(T a, T b) {
  if constexpr (kIsFloating<T>) {
    return Canonical(static_cast<T>(static_cast<Accumulator<T>>(a) - static_cast<Accumulator<T>>(b)));
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
}

template <class T>
std::vector<T> Differences(const std::vector<T>& in, T init, bool reverse) {
  std::vector<T> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t item = reverse ? in.size() - 1 - i : i;
    out[item] = Minus(in[item], i == 0 ? init : in[reverse ? item + 1 : item - 1]);
  }
  return out;
}

struct DifferenceCase {
  bool reverse = false;
  bool through_carry_in = false;  // And init holds something else.
  bool aliases_carry_out = false;
  size_t in_offset = 0;
  size_t out_offset = 0;
  size_t num_items = 0;
  Data data = Data::kRandom;
};

std::ostream& operator<<(std::ostream& os, const DifferenceCase& c) {
  return os << (c.reverse ? "reverse " : "") << "offsets " << c.in_offset << "," << c.out_offset << " " << c.num_items
            << " items, " << Name(c.data) << " data" << (c.through_carry_in ? ", carry_in" : "")
            << (c.aliases_carry_out ? ", carry_out aliased" : "");
}

template <class T>
testing::AssertionResult RunCase(Lane& lane, const DifferenceCase& c, Random& random) {
  std::vector<T> in = MakeInput<T>(Op::kSum, c.data, c.num_items + 1, random);
  const T init = in.back();
  in.pop_back();
  DeviceArray<T> d_in(lane, in, c.in_offset);
  auto d_out = DeviceArray<T>::Poisoned(lane, in.size(), c.out_offset);
  DeviceArray<T> d_carry_in(lane, {init});
  auto d_own_carry_out = DeviceArray<T>::Poisoned(lane, 1);
  DeviceArray<T>& d_carry_out = c.aliases_carry_out ? d_carry_in : d_own_carry_out;

  DifferenceArgs args;
  args.dtype = kDTypeOf<T>;
  args.reverse = c.reverse;
  args.in = d_in.data();
  args.out = d_out.data();
  args.num_items = in.size();
  args.init = Value::Of(c.through_carry_in ? Poison<T>() : init);
  if (c.through_carry_in) args.carry_in = d_carry_in.data();
  args.carry_out = d_carry_out.data();
  if (absl::Status status = lane.Difference(args); !status.ok()) return testing::AssertionFailure() << status;

  std::vector<T> got;
  if (auto guards = d_out.Read(&got); !guards) return guards << " (out)";
  if (auto same = AreSame(got, Differences(in, init, c.reverse)); !same) return same;
  std::vector<T> carry;
  if (auto guards = d_carry_out.Read(&carry); !guards) return guards << " (carry_out)";
  const T want_carry = in.empty() ? init : c.reverse ? in.front() : in.back();
  if (auto same = AreSame(carry, {want_carry}); !same) return same << " (carry_out)";
  return d_in.IsUntouched();
}

class DifferenceTest : public DeviceTest<DTypeParam> {
 protected:
  template <class F>
  void WithType(F f) {
    VisitDType(GetParam().dtype, [&](auto tag) { f(typename decltype(tag)::type{}); });
  }
  testing::AssertionResult Passes(const DifferenceCase& c) {
    const auto result = VisitDType(
        GetParam().dtype, [&](auto tag) { return RunCase<typename decltype(tag)::type>(lane(), c, random()); });
    return result ? result : testing::AssertionFailure() << c << ": " << result.message();
  }
};

TEST_P(DifferenceTest, EveryForm) {
  for (const size_t size : Sizes()) {
    for (int form = 0; form < 24; ++form) {
      if (!Takes(size)) continue;
      ASSERT_TRUE(Passes({.reverse = form % 2 == 1,
                          .through_carry_in = form / 2 % 2 == 1,
                          .aliases_carry_out = form / 4 % 2 == 1,
                          .in_offset = random().OneIn(2) ? 0 : random().Below(17),
                          .out_offset = random().OneIn(2) ? 0 : random().Below(17),
                          .num_items = size,
                          .data = static_cast<Data>(form / 8 % kNumData)}));
    }
  }
}

TEST_P(DifferenceTest, Anywhere) {
  for (int round = 0; round < 8; ++round) {
    ASSERT_TRUE(Passes({.reverse = random().OneIn(2),
                        .through_carry_in = random().OneIn(2),
                        .in_offset = random().Below(17),
                        .out_offset = random().Below(17),
                        .num_items = AnywhereSize(GetParam().dtype, random())}));
  }
}

TEST_P(DifferenceTest, ManyTiles) {
  for (const bool reverse : {false, true}) {
    ASSERT_TRUE(Passes(
        {.reverse = reverse, .through_carry_in = true, .aliases_carry_out = true, .num_items = ManyTilesSize()}));
    ASSERT_TRUE(Passes({.reverse = reverse, .num_items = size_t{1} << 15}));  // Whole tiles of every type.
  }
}

// Cut anywhere, an array has the differences of the whole.
TEST_P(DifferenceTest, ChunksCarryOn) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (int round = 0; round < 6; ++round) {
      const size_t size = 1 + random().Below(SmallSizesOnly() ? 5000 : 60000);
      const std::vector<T> in = MakeInput<T>(Op::kSum, Data::kRandom, size, random());
      DeviceArray<T> d_in(lane(), in);
      auto d_out = DeviceArray<T>::Poisoned(lane(), size);
      DeviceArray<T> d_carry(lane(), {T{3}});
      for (size_t begin = 0; begin < size;) {
        const size_t num_items = std::min(size - begin, random().OneIn(8) ? 0 : 1 + random().Below(size));
        DifferenceArgs args;
        args.dtype = kDTypeOf<T>;
        args.in = d_in.data() + begin;
        args.out = d_out.data() + begin;
        args.num_items = num_items;
        args.carry_in = d_carry.data();
        args.carry_out = d_carry.data();
        ASSERT_TRUE(lane().Difference(args).ok());
        begin += num_items;
      }
      std::vector<T> got;
      ASSERT_TRUE(d_out.Read(&got));
      ASSERT_TRUE(AreSame(got, Differences(in, T{3}, false)));
    }
  });
}

TEST_P(DifferenceTest, Batches) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (int round = 0; round < 8; ++round) {
      const size_t num_arrays = 1 + random().Below(20);
      const size_t num_items = random().Below(1500);
      const bool reverse = random().OneIn(2);
      std::vector<T> in = MakeInput<T>(Op::kSum, Data::kSpecial, num_arrays * num_items, random());
      std::vector<T> want;
      for (size_t array = 0; array < num_arrays; ++array) {
        const auto begin = in.begin() + static_cast<std::ptrdiff_t>(array * num_items);
        const auto one =
            Differences(std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(num_items)), T{2}, reverse);
        want.insert(want.end(), one.begin(), one.end());
      }
      DeviceArray<T> d_in(lane(), in);
      auto d_out = DeviceArray<T>::Poisoned(lane(), in.size());
      DifferenceArgs args;
      args.dtype = kDTypeOf<T>;
      args.reverse = reverse;
      args.in = d_in.data();
      args.out = d_out.data();
      args.num_items = num_items;
      args.num_arrays = num_arrays;
      args.init = Value::Of(T{2});
      ASSERT_TRUE(lane().Difference(args).ok());
      std::vector<T> got;
      ASSERT_TRUE(d_out.Read(&got));
      ASSERT_TRUE(AreSame(got, want)) << num_arrays << " of " << num_items;
    }
  });
}

// Each segment has the differences that it has alone.
TEST_P(DifferenceTest, Segments) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (int family = 0; family < kNumLengths; ++family) {
      const auto lengths = static_cast<Lengths>(family);
      const std::vector<uint64_t> offsets = MakeOffsets(lengths, sizeof(T), random());
      const bool reverse = random().OneIn(2);
      const std::vector<T> in = MakeInput<T>(Op::kSum, Data::kSpecial, offsets.back(), random());
      std::vector<T> want;
      for (size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
        const auto one = Differences(std::vector<T>(in.begin() + static_cast<std::ptrdiff_t>(offsets[segment]),
                                                    in.begin() + static_cast<std::ptrdiff_t>(offsets[segment + 1])),
                                     T{2}, reverse);
        want.insert(want.end(), one.begin(), one.end());
      }
      DeviceArray<T> d_in(lane(), in, random().Below(2));
      DeviceArray<uint64_t> d_offsets(lane(), offsets, random().Below(2));
      auto d_out = DeviceArray<T>::Poisoned(lane(), in.size(), random().Below(2));
      const DifferenceArgs args = {.dtype = kDTypeOf<T>,
                                   .reverse = reverse,
                                   .in = d_in.data(),
                                   .out = d_out.data(),
                                   .num_items = in.size(),
                                   .num_arrays = offsets.size() - 1,
                                   .offsets = d_offsets.data(),
                                   .init = Value::Of(T{2})};
      Require(lane().Difference(args));
      std::vector<T> got;
      ASSERT_TRUE(d_out.Read(&got));
      ASSERT_TRUE(AreSame(got, want)) << Name(lengths) << ": " << args.num_arrays << " segments of " << in.size();
      ASSERT_TRUE(d_in.IsUntouched());
      ASSERT_TRUE(d_offsets.IsUntouched());
    }
  });
}

// The difference of a scan is what was scanned: bit for bit for integers, and for floats where no sum rounds. Sums of
// narrow floats soon do, so theirs are of differences of small numbers.
TEST_P(DifferenceTest, UndoesAScan) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (const bool reverse : {false, true}) {
      for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, ManyTilesSize() / 4}) {
        const Data data = kIsFloating<T> ? Data::kExact : Data::kRandom;
        std::vector<T> in = MakeInput<T>(Op::kSum, data, size, random());
        if constexpr (kIsNarrowFloat<T>) in = Differences(in, T{0}, reverse);
        const T init = kIsFloating<T> ? T{0} : T{5};
        DeviceArray<T> d_in(lane(), in);
        auto d_scanned = DeviceArray<T>::Poisoned(lane(), size);
        auto d_out = DeviceArray<T>::Poisoned(lane(), size);
        ScanArgs scan;
        scan.dtype = kDTypeOf<T>;
        scan.reverse = reverse;
        scan.in = d_in.data();
        scan.out = d_scanned.data();
        scan.num_items = size;
        scan.init = Value::Of(init);
        ASSERT_TRUE(lane().Scan(scan).ok());
        DifferenceArgs args;
        args.dtype = kDTypeOf<T>;
        args.reverse = reverse;
        args.in = d_scanned.data();
        args.out = d_out.data();
        args.num_items = size;
        args.init = Value::Of(init);
        ASSERT_TRUE(lane().Difference(args).ok());
        std::vector<T> got;
        ASSERT_TRUE(d_out.Read(&got));
        for (size_t i = 0; i < size; ++i) ASSERT_EQ(got[i], in[i]) << i << " of " << size;
      }
    }
  });
}

TEST_P(DifferenceTest, BadArgumentsAreRefused) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    auto d_array = DeviceArray<T>::Poisoned(lane(), 8);
    DifferenceArgs args;
    args.dtype = kDTypeOf<T>;
    args.in = d_array.data();
    args.out = d_array.data();
    args.num_items = 4;
    EXPECT_EQ(lane().Difference(args).code(), absl::StatusCode::kInvalidArgument) << "in place";
    args.out = d_array.data() + 4;
    args.num_arrays = 0;
    EXPECT_EQ(lane().Difference(args).code(), absl::StatusCode::kInvalidArgument) << "no arrays";
    args.num_arrays = 2;
    args.carry_in = d_array.data();
    EXPECT_EQ(lane().Difference(args).code(), absl::StatusCode::kInvalidArgument) << "a batch with a carry";
    DeviceArray<uint64_t> d_offsets(lane(), {0, 1, 4});
    args.offsets = d_offsets.data();
    EXPECT_EQ(lane().Difference(args).code(), absl::StatusCode::kInvalidArgument) << "segments with a carry";
    args.carry_in = nullptr;
    args.order = BatchOrder::kInterleaved;
    EXPECT_EQ(lane().Difference(args).code(), absl::StatusCode::kInvalidArgument) << "interleaved segments";
    args.offsets = nullptr;
    args.num_arrays = 1;
    args.dtype = static_cast<DType>(kNumDTypes);
    EXPECT_EQ(lane().Difference(args).code(), absl::StatusCode::kUnimplemented);
    args.dtype = kDTypeOf<T>;
    args.algorithm = {Strategy::kCub};
    EXPECT_EQ(lane().Difference(args).code(), absl::StatusCode::kUnimplemented);
    EXPECT_TRUE(d_array.IsUntouched());
  });
}

PREFIXD_ON_EVERY_DEVICE(DifferenceTest, EveryDType);

}  // namespace
}  // namespace prefixd::conformance
