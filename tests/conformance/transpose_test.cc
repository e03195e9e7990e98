// Transpositions of every shape against a plain loop.
#include <utility>
#include <vector>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

class TransposeTest : public DeviceTest<DTypeParam> {
 protected:
  template <class F>
  void WithType(F f) {
    VisitDType(GetParam().dtype, [&](auto tag) { f(typename decltype(tag)::type{}); });
  }

  template <class T>
  testing::AssertionResult Passes(size_t num_rows, size_t num_columns, size_t in_offset, size_t out_offset) {
    std::vector<T> in(num_rows * num_columns), want(in.size()), got;
    for (T& item : in) item = RandomBits<T>(random());
    for (size_t r = 0; r < num_rows; ++r) {
      for (size_t c = 0; c < num_columns; ++c) want[c * num_rows + r] = in[r * num_columns + c];
    }
    DeviceArray<T> d_in(lane(), in, in_offset);
    auto d_out = DeviceArray<T>::Poisoned(lane(), in.size(), out_offset);
    const TransposeArgs args = {
        .dtype = kDTypeOf<T>, .in = d_in.data(), .out = d_out.data(), .num_rows = num_rows, .num_columns = num_columns};
    if (absl::Status status = lane().Transpose(args); !status.ok()) return testing::AssertionFailure() << status;
    if (auto guards = d_out.Read(&got); !guards) return guards << " (out)";
    if (auto same = AreSame(got, want); !same) {
      return same << ": " << num_rows << " x " << num_columns << ", offsets " << in_offset << "," << out_offset;
    }
    return d_in.IsUntouched();
  }
};

TEST_P(TransposeTest, EveryShape) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    // Around words, vectors, and tiles of every type; primes.
    const size_t sides[] = {0,  1,  2,  3,   4,   5,   8,   16,  17,  31,  32, 33,
                            63, 64, 65, 127, 128, 129, 130, 132, 192, 257, 509};
    for (const size_t num_rows : sides) {
      for (const size_t num_columns : sides) {
        const size_t size = num_rows * num_columns;
        if (!Takes(size) || (SmallSizesOnly() && size > 5000)) continue;
        const bool aligned = random().OneIn(2);
        ASSERT_TRUE(Passes<T>(num_rows, num_columns, aligned ? 0 : random().Below(9), aligned ? 0 : random().Below(9)));
      }
    }
  });
}

TEST_P(TransposeTest, WholeAndManyTiles) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    ASSERT_TRUE(Passes<T>(128, 128, 0, 0));
    if (SmallSizesOnly()) return;
    for (const auto& [num_rows, num_columns] :
         {std::pair{256, 384}, {1024, 512}, {1024, 1026}, {1, 100003}, {100003, 1}, {2, 100003}, {100003, 3}}) {
      ASSERT_TRUE(Passes<T>(num_rows, num_columns, 0, 0));
      ASSERT_TRUE(Passes<T>(num_rows, num_columns, 1, 0));
      ASSERT_TRUE(Passes<T>(num_rows, num_columns, 0, 1));
    }
  });
}

TEST_P(TransposeTest, IsOneLaunch) {
  auto d_items = DeviceArray<uint64_t>::Poisoned(lane(), 2000);
  for (const uint64_t num_rows : {uint64_t{20}, uint64_t{1}}) {
    const TransposeArgs args = {.dtype = GetParam().dtype,
                                .in = d_items.data(),
                                .out = d_items.data() + 1000,
                                .num_rows = num_rows,
                                .num_columns = 1000 / num_rows};
    Require(lane().Synchronize());
    lane().TakeStageTimes();
    Require(lane().Transpose(args));
    Require(lane().Synchronize());
    const StageTimes times = lane().TakeStageTimes();
    EXPECT_TRUE(times.kernel_ns);
    EXPECT_EQ(times.launches, 1u);
    EXPECT_EQ(times.num_bytes, 2000 * SizeOf(GetParam().dtype));
  }
}

TEST_P(TransposeTest, BadArgumentsAreRefused) {
  auto d_items = DeviceArray<uint64_t>::Poisoned(lane(), 16);
  const TransposeArgs good = {
      .dtype = GetParam().dtype, .in = d_items.data(), .out = d_items.data() + 8, .num_rows = 2, .num_columns = 4};
  const auto refuses = [&](const TransposeArgs& args, absl::StatusCode code, std::string_view text) {
    const absl::Status status = lane().Transpose(args);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(AbslView(text)), absl::string_view::npos) << status;
  };
  TransposeArgs args = good;
  args.dtype = static_cast<DType>(kNumDTypes);
  refuses(args, absl::StatusCode::kUnimplemented, "transpose does not serve");
  args = good;
  args.in = nullptr;
  refuses(args, absl::StatusCode::kInvalidArgument, "in is null");
  args = good;
  args.out = nullptr;
  refuses(args, absl::StatusCode::kInvalidArgument, "out is null");
  args = good;
  args.out = d_items.data();
  refuses(args, absl::StatusCode::kInvalidArgument, "in and out overlap");
  args = good;
  args.num_rows = args.num_columns = uint64_t{1} << 32;
  refuses(args, absl::StatusCode::kInvalidArgument, "expected a product below 2^64");
  args.num_columns = uint64_t{1} << 31;
  refuses(args, absl::StatusCode::kInvalidArgument, "which no memory holds");
  EXPECT_TRUE(d_items.IsUntouched());
}

PREFIXD_ON_EVERY_DEVICE(TransposeTest, EveryDType);

}  // namespace
}  // namespace prefixd::conformance
