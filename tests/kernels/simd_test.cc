// The loops of each instruction set by themselves: that streaming, alignment and cuts change no bit, and that nothing
// else is written. What they compute is compared with an oracle in conformance/.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/isa.h"
#include "tests/kernels/simd_harness.h"

namespace prefixd::cpu {
namespace {

TEST_P(SimdTest, HasEveryCombination) {
  for (const Combination& c : EveryCombination()) {
    const ScanFunctions& functions = GetParam().kernels->Scan(c.in, c.out, c.op);
    EXPECT_TRUE(functions.reduce && functions.add && functions.scan) << Name(c.in) << " " << Name(c.out) << Name(c.op);
  }
}

TEST_P(SimdTest, StreamsAndShiftsChangeNoBitOfAScan) {
  for (const Combination& c : EveryCombination()) {
    for (int round = 0; round < 6; ++round) {
      const size_t num_items = 1 + Below(round < 3 ? 300 : 20000);
      const auto in = Items(c.in, num_items);
      const size_t size = SizeOf(c.out);
      std::vector<unsigned char> want;
      const bool reverse = Below(2) != 0, exclusive = Below(2) != 0;
      for (const bool stream : {false, true}) {
        for (const size_t shift : {size_t{0}, 1 + Below(63 / size)}) {
          Results out(num_items * size, shift * size);
          auto prefix = Start(c.out, c.op);
          GetParam()
              .kernels->Scan(c.in, c.out, c.op)
              .scan({in.data(), out.data(), num_items, in.data(), reverse, exclusive, stream}, prefix.data());
          const auto got = out.Take();
          if (want.empty()) want = got;
          ASSERT_EQ(got, want) << Name(c.in) << " to " << Name(c.out) << " " << Name(c.op) << ", " << num_items
                               << " items, reverse " << reverse << ", exclusive " << exclusive << ", stream " << stream
                               << ", shift " << shift << ", seed " << seed_;
        }
      }
    }
  }
}

// Random floats, of which one in `rarity` is a NaN of any kind, an infinity or a zero of either sign.
template <class T>
std::vector<T> SpecialItems(size_t num_items, unsigned rarity, std::mt19937_64* random) {
  const T special[] = {
      std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::quiet_NaN(), T{0}, T(-0.0), T{0}, T(-0.0),
      std::numeric_limits<T>::infinity(),  -std::numeric_limits<T>::infinity()};
  // Without NaNs, which end the search, half of the time.
  const unsigned first = (*random)() % 2 == 0 ? 2 : 0;
  std::vector<T> items(num_items);
  for (T& item : items) {
    const auto size = static_cast<T>((*random)() % 1000 + 1);
    item = (*random)() % rarity == 0 ? special[first + (*random)() % (8 - first)] : (*random)() % 2 == 0 ? size : -size;
  }
  return items;
}

// The larger of two floats, or the smaller, in NUMERICS.md's order: a NaN is either, and -0 is below +0.
template <class T>
T Extremum(Op op, T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) == (op == Op::kMin) ? a : b;
  return (a < b) == (op == Op::kMin) ? a : b;
}

template <class T>
void CheckExtrema(const Kernels& kernels, Op op, unsigned rarity, unsigned seed) {
  std::mt19937_64 random(seed);
  const DType dtype = kDTypeOf<T>;
  const std::vector<T> items = SpecialItems<T>(1 + random() % 3000, rarity, &random);
  const bool reverse = random() % 2 == 0, exclusive = random() % 2 == 0;
  std::vector<T> want(items.size()), got(items.size());
  T value = Neutral(op, dtype).As<T>();
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t at = reverse ? items.size() - 1 - i : i;
    if (exclusive) want[at] = value;
    value = Extremum(op, value, items[at]);
    if (!exclusive) want[at] = value;
  }
  auto prefix = Start(dtype, op);
  kernels.Scan(dtype, dtype, op)
      .scan({items.data(), got.data(), items.size(), items.data(), reverse, exclusive, false}, prefix.data());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), items.size() * sizeof(T)), 0)
      << Name(dtype) << " " << Name(op) << ", " << items.size() << " items, one in " << rarity << " special, reverse "
      << reverse << ", exclusive " << exclusive << ", seed " << seed;
}

TEST_P(SimdTest, TheLargestFloatIsFoundAmongNansAndZeros) {
  for (int round = 0; round < 40; ++round) {
    for (const Op op : {Op::kMin, Op::kMax}) {
      for (const unsigned rarity : {1, 7, 200, 5000}) {
        const auto seed = static_cast<unsigned>(random_());
        CheckExtrema<Float16>(*GetParam().kernels, op, rarity, seed);
        CheckExtrema<BFloat16>(*GetParam().kernels, op, rarity, seed);
        CheckExtrema<float>(*GetParam().kernels, op, rarity, seed);
        CheckExtrema<double>(*GetParam().kernels, op, rarity, seed);
      }
    }
  }
}

TEST_P(SimdTest, PartsAddUpToTheWhole) {
  for (const Combination& c : EveryCombination()) {
    const ScanFunctions& functions = GetParam().kernels->Scan(c.in, c.out, c.op);
    const size_t cut = (1 + Below(40)) * kTileItems;  // More than a group, at times.
    const size_t num_items = cut + 1 + Below(3 * kTileItems);
    const auto in = Items(c.in, num_items);
    const size_t size = SizeOf(c.out);
    Results whole(num_items * size, 0), parts(num_items * size, 0);
    auto prefix = Start(c.out, c.op);
    functions.scan({in.data(), whole.data(), num_items, in.data(), false, false, false}, prefix.data());

    auto added = Start(c.out, c.op);
    std::vector<unsigned char> values(cut / kTileItems * 2 * sizeof(double));
    functions.reduce({in.data(), nullptr, cut, in.data()}, values.data());
    functions.add(values.data(), IsOrdered(c.out, c.op) ? cut / kTileItems : 1, added.data());
    auto scanned = Start(c.out, c.op);
    functions.scan({in.data(), parts.data(), cut, in.data(), false, false, false}, scanned.data());
    const size_t item_bytes = SizeOf(AccumulatorOf(c.out)) * (c.op == Op::kLogAddExp ? 2 : 1);
    EXPECT_EQ(std::memcmp(added.data(), scanned.data(), item_bytes), 0) << Name(c.in) << Name(c.out) << Name(c.op);
    functions.scan(
        {in.data() + cut * SizeOf(c.in), parts.data() + cut * size, num_items - cut, in.data(), false, false, false},
        added.data());
    EXPECT_EQ(parts.Take(), whole.Take())
        << Name(c.in) << Name(c.out) << Name(c.op) << ", cut " << cut << " of " << num_items << ", seed " << seed_;
  }
}

TEST_P(SimdTest, StreamsAndShiftsChangeNoBitOfADifference) {
#define PREFIXD_DTYPE(name, type) DType::name,
  for (const DType dtype : {PREFIXD_FOR_EACH_DTYPE(PREFIXD_DTYPE)}) {
#undef PREFIXD_DTYPE
    const size_t num_items = 1 + Below(2000), size = SizeOf(dtype);
    const auto in = Items(dtype, num_items), edge = Items(dtype, 1);
    for (const bool reverse : {false, true}) {
      std::vector<unsigned char> want;
      for (const bool stream : {false, true}) {
        for (const size_t shift : {size_t{0}, 1 + Below(63 / size)}) {
          Results out(num_items * size, shift * size);
          GetParam().kernels->differences->of[static_cast<int>(dtype)](in.data(), out.data(), num_items, edge.data(),
                                                                       reverse, stream);
          const auto got = out.Take();
          if (want.empty()) want = got;
          ASSERT_EQ(got, want) << Name(dtype) << ", " << num_items << " items, seed " << seed_;
        }
      }
    }
  }
}

TEST_P(SimdTest, KeepsTheItemsWhoseBitsAreSetAndWritesNothingElse) {
  const CompactTable& table = *GetParam().kernels->compacts;
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32, DType::kF64}) {
    for (int round = 0; round < 24; ++round) {
      const size_t num_items = 1 + Below(round % 2 == 0 ? 300 : 20000), size = SizeOf(dtype);
      const size_t percent = std::vector<size_t>{0, 1, 50, 100}[Below(4)];
      const uint64_t of_first = random_();
      const auto items = Items(dtype, num_items);
      std::vector<uint64_t> bits((num_items + 63) / 64);
      std::vector<unsigned char> want, want_indices;
      KeptPart part = {.bits = bits.data(), .num_items = num_items, .num_kept = 0, .stream = false};
      for (size_t i = 0; i < num_items; ++i) {
        if (Below(100) >= percent) continue;
        bits[i / 64] |= uint64_t{1} << i % 64;
        ++part.num_kept;
        const uint64_t index = of_first + i;
        want.insert(want.end(), &items[i * size], &items[i * size] + size);
        want_indices.resize(want_indices.size() + sizeof(index));
        std::memcpy(&want_indices[want_indices.size() - sizeof(index)], &index, sizeof(index));
      }
      for (const bool stream : {false, true}) {
        part.stream = stream;
        Results kept(want.size(), Below(64 / size) * size), indices(want_indices.size(), Below(8) * 8);
        table.keep[static_cast<int>(dtype)](part, items.data(), items.data(), kept.data());
        table.keep_indices_64(part, of_first, indices.data());
        ASSERT_EQ(kept.Take(), want) << Name(dtype) << ", " << part.num_kept << " of " << num_items << ", stream "
                                     << stream << ", seed " << seed_;
        ASSERT_EQ(indices.Take(), want_indices)
            << part.num_kept << " of " << num_items << ", stream " << stream << ", seed " << seed_;
      }
    }
  }
}

TEST_P(SimdTest, CopiesEveryByteAndNoOther) {
  for (int round = 0; round < 50; ++round) {
    const auto in = Items(DType::kU8, Below(3000));
    Results out(in.size(), Below(64));
    GetParam().kernels->copy_streaming(out.data(), in.data(), in.size());
    ASSERT_EQ(out.Take(), in) << "seed " << seed_;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, SimdTest, testing::ValuesIn(IsasHere()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(IsaTest, AutoIsTheWidest) {
  EXPECT_EQ(FindIsa("auto")->name, IsasHere().back().name);
  for (const Isa& isa : IsasHere()) EXPECT_EQ(FindIsa(isa.name)->kernels, isa.kernels) << isa.name;
}

TEST(IsaTest, OthersAreRefusedByName) {
  for (const char* name : {"", "avx", "AVX2", "avx1024"}) {
    const absl::Status status = FindIsa(name).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_NE(status.message().find(IsasHere().front().name.data()), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace prefixd::cpu
