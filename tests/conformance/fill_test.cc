// Fills against what kernels/NUMERICS.md says of each item, for any index and any cut.
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

// ---- What is right -------------------------------------------------------------------------------------------------
using Words = std::array<uint32_t, 4>;

// Salmon, Moraes, Dror and Shaw 2011, Philox4x32 in ten rounds.
Words Philox(Words counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xd2511f53} * counter[0];
    const uint64_t product1 = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

// The known answers of its authors' library, Random123.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox({}, {}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kAll = 0xffffffff;
  EXPECT_EQ(Philox({kAll, kAll, kAll, kAll}, {kAll, kAll}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

template <class T>
T RandomItem(uint64_t seed, uint64_t index) {
  constexpr uint64_t kBlockItems = 16 / sizeof(T);
  const uint64_t block = index / kBlockItems;
  const Words words = Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t first_byte = index % kBlockItems * sizeof(T);
  BitsOf<T> bits = 0;
  for (uint64_t byte = 0; byte < sizeof(T); ++byte) {  // The lowest comes first.
    const uint64_t at = first_byte + byte;
    bits = static_cast<BitsOf<T>>(bits | uint64_t{words[at / 4] >> (at % 4 * 8) & 0xff} << (8 * byte));
  }
  if constexpr (std::is_same_v<T, Float16>) return T(std::ldexp(bits >> 5, -11));
  if constexpr (std::is_same_v<T, BFloat16>) return T(std::ldexp(bits >> 8, -8));
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(std::ldexp(bits >> 8, -24));
  if constexpr (std::is_same_v<T, double>) return std::ldexp(static_cast<double>(bits >> 11), -53);
  return std::bit_cast<T>(bits);
}

template <class T>
T Item(const FillArgs& args, uint64_t index) {
  const T value = args.value.As<T>(), step = args.step.As<T>();
  switch (args.kind) {
    case FillKind::kConstant:
      return Canonical(value);
    case FillKind::kIota: {
      if constexpr (kIsFloating<T>) {
        using A = Accumulator<T>;
        const A product = static_cast<A>(static_cast<long double>(index)) * static_cast<A>(step);
        return Canonical(static_cast<T>(static_cast<A>(value) + product));
      } else {
        return static_cast<T>(static_cast<uint64_t>(value) + index * static_cast<uint64_t>(step));
      }
    }
    case FillKind::kRandom:
      return RandomItem<T>(args.seed, index);
  }
  throw std::logic_error("no such kind");
}

// ---- The test ------------------------------------------------------------------------------------------------------
template <class T>
T PickValue(Random& random) {
  if constexpr (kIsFloating<T>) {
    if (random.OneIn(2)) return static_cast<T>(random.Uniform() * 100 - 50);
    const T picks[] = {T{0},
                       -T{0},
                       T(0.1),
                       std::bit_cast<T>(static_cast<BitsOf<T>>(~BitsOf<T>{0} >> 2)),
                       -std::numeric_limits<T>::quiet_NaN(),
                       std::bit_cast<T>(static_cast<BitsOf<T>>(~BitsOf<T>{0})),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::denorm_min()};
    return picks[random.Below(std::size(picks))];
  } else {
    const T picks[] = {T{0}, T{1}, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max(),
                       T{7}};
    return random.OneIn(2) ? RandomBits<T>(random) : picks[random.Below(std::size(picks))];
  }
}

// Indices whose low bits, high bits, or rounding to a float show.
uint64_t PickFirst(Random& random) {
  constexpr uint64_t kOne = 1;
  const uint64_t picks[] = {0,
                            0,
                            1,
                            15,
                            (kOne << 24) - 9,
                            (kOne << 32) - 5,
                            kOne << 36,
                            kOne << 51,
                            (kOne << 52) - 3,
                            (kOne << 53) - 4,
                            (kOne << 60) + 1,
                            (kOne << 63) - 7};
  return random.OneIn(4) ? random.Below(1000) : picks[random.Below(std::size(picks))];
}

std::string Describe(const FillArgs& args) {
  std::ostringstream text;
  text << ": " << Name(args.kind) << " of " << args.num_items << " from " << args.first_item << std::hex << ", value "
       << args.value.bits << ", step " << args.step.bits << ", seed " << args.seed;
  return text.str();
}

class FillTest : public DeviceTest<DTypeParam> {
 protected:
  template <class F>
  void WithType(F f) {
    VisitDType(GetParam().dtype, [&](auto tag) { f(typename decltype(tag)::type{}); });
  }

  template <class T>
  FillArgs PickArgs(FillKind kind) {
    return {.dtype = kDTypeOf<T>,
            .kind = kind,
            .value = Value::Of(PickValue<T>(random())),
            .step = Value::Of(PickValue<T>(random())),
            .seed = random().OneIn(4) ? 0 : random().Next(),
            .first_item = PickFirst(random())};
  }

  template <class T>
  testing::AssertionResult Passes(FillArgs args, size_t num_items, size_t offset) {
    auto d_out = DeviceArray<T>::Poisoned(lane(), num_items, offset);
    args.out = d_out.data();
    args.num_items = num_items;
    if (absl::Status status = lane().Fill(args); !status.ok()) return testing::AssertionFailure() << status;
    std::vector<T> got, want(num_items);
    if (auto guards = d_out.Read(&got); !guards) return guards << Describe(args);
    for (size_t i = 0; i < num_items; ++i) want[i] = Item<T>(args, args.first_item + i);
    auto same = AreSame(got, want);
    return same ? same : same << Describe(args) << ", offset " << offset;
  }
};

TEST_P(FillTest, EveryKindAndSize) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (const size_t size : Sizes()) {
      for (int form = 0; form < 5 * kNumFillKinds; ++form) {
        if (!Takes(size)) continue;
        const auto kind = static_cast<FillKind>(form % kNumFillKinds);
        ASSERT_TRUE(Passes<T>(PickArgs<T>(kind), size, random().OneIn(2) ? 0 : random().Below(17)));
      }
    }
  });
}

TEST_P(FillTest, ManyTiles) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (int kind = 0; kind < kNumFillKinds; ++kind) {
      ASSERT_TRUE(Passes<T>(PickArgs<T>(static_cast<FillKind>(kind)), ManyTilesSize(), 0));
      ASSERT_TRUE(Passes<T>(PickArgs<T>(static_cast<FillKind>(kind)), ManyTilesSize(), 1));
    }
  });
}

// Pieces of any length are the whole.
TEST_P(FillTest, CutAnywhere) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (int round = 0; round < 9; ++round) {
      const size_t size = 1 + random().Below(5000);
      FillArgs args = PickArgs<T>(static_cast<FillKind>(round % kNumFillKinds));
      auto d_out = DeviceArray<T>::Poisoned(lane(), size);
      std::vector<T> want(size), got;
      for (size_t i = 0; i < size; ++i) want[i] = Item<T>(args, args.first_item + i);
      for (size_t begin = 0; begin < size;) {
        FillArgs piece = args;
        piece.first_item += begin;
        piece.out = d_out.data() + begin;
        piece.num_items = std::min<size_t>(size - begin, random().Below(random().OneIn(2) ? 20 : 2000));
        ASSERT_TRUE(lane().Fill(piece).ok());
        begin += piece.num_items;
      }
      ASSERT_TRUE(d_out.Read(&got));
      ASSERT_TRUE(AreSame(got, want)) << Describe(args);
    }
  });
}

TEST_P(FillTest, IsOneLaunchThatWritesItsItems) {
  auto d_out = DeviceArray<uint8_t>::Poisoned(lane(), 8000);
  FillArgs args = {.dtype = GetParam().dtype, .out = d_out.data(), .num_items = 1000};
  Require(lane().Synchronize());
  lane().TakeStageTimes();
  Require(lane().Fill(args));
  Require(lane().Synchronize());
  const StageTimes times = lane().TakeStageTimes();
  EXPECT_TRUE(times.kernel_ns);
  EXPECT_EQ(times.launches, 1u);
  EXPECT_EQ(times.num_bytes, 1000 * SizeOf(GetParam().dtype));
}

TEST_P(FillTest, BadArgumentsAreRefused) {
  auto d_out = DeviceArray<uint64_t>::Poisoned(lane(), 8);
  const FillArgs good = {.dtype = GetParam().dtype, .out = d_out.data(), .num_items = 8};
  const auto refuses = [&](const FillArgs& args, absl::StatusCode code, std::string_view text) {
    const absl::Status status = lane().Fill(args);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(AbslView(text)), absl::string_view::npos) << status;
  };
  FillArgs args = good;
  args.dtype = static_cast<DType>(kNumDTypes);
  refuses(args, absl::StatusCode::kUnimplemented, "fill does not serve");
  args = good;
  args.kind = static_cast<FillKind>(kNumFillKinds);
  refuses(args, absl::StatusCode::kInvalidArgument, "kind is 3");
  args = good;
  args.out = nullptr;
  refuses(args, absl::StatusCode::kInvalidArgument, "out is null");
  args = good;
  args.first_item = ~uint64_t{0} - 7;
  refuses(args, absl::StatusCode::kInvalidArgument, "first_item");
  args = good;
  args.num_items = uint64_t{1} << 63;
  refuses(args, absl::StatusCode::kInvalidArgument, "which no memory holds");
  if (SizeOf(args.dtype) > 1) {
    args = good;
    args.out = reinterpret_cast<uint8_t*>(d_out.data()) + 1;
    args.num_items = 1;
    refuses(args, absl::StatusCode::kInvalidArgument, "not aligned");
  }
  EXPECT_TRUE(d_out.IsUntouched());
}

PREFIXD_ON_EVERY_DEVICE(FillTest, EveryDType);

}  // namespace
}  // namespace prefixd::conformance
