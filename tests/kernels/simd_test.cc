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
#include "kernels/log_add_exp.h"
#include "tests/kernels/guard.h"

namespace prefixd::cpu {
namespace {

class SimdTest : public testing::TestWithParam<Isa> {
 protected:
  SimdTest() { RecordProperty("seed", std::to_string(seed_)); }

  size_t Below(size_t bound) { return random_() % bound; }

  // Random bytes without NaNs: a float's exponent has always a bit that is zero.
  std::vector<unsigned char> Items(DType dtype, size_t num_items) {
    std::vector<unsigned char> bytes(num_items * SizeOf(dtype));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random_());
    for (size_t i = SizeOf(dtype) - 1; IsFloating(dtype) && i < bytes.size(); i += SizeOf(dtype)) bytes[i] &= 0xbf;
    return bytes;
  }

  const unsigned seed_ = std::random_device()();
  std::mt19937_64 random_{seed_};
};

// Results between guards, `shift` elements behind a boundary of 64 bytes.
class Results {
 public:
  Results(size_t size_bytes, size_t shift_bytes) : size_bytes_(size_bytes) {
    bytes_.assign(size_bytes + shift_bytes + 2 * kGuardBytes + 64, kGuard);
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuardBytes;
    begin_ = kGuardBytes + (64 - address % 64) % 64 + shift_bytes;
  }
  unsigned char* data() { return bytes_.data() + begin_; }
  std::vector<unsigned char> Take() {
    std::vector<unsigned char> results(data(), data() + size_bytes_);
    std::memset(data(), kGuard, size_bytes_);
    EXPECT_EQ(bytes_, std::vector<unsigned char>(bytes_.size(), kGuard)) << "something beside the results was written";
    return results;
  }

 private:
  size_t size_bytes_;
  size_t begin_;
  std::vector<unsigned char> bytes_;
};

struct Combination {
  DType in;
  DType out;
  Op op;
};
std::vector<Combination> EveryCombination() {
  std::vector<Combination> all;
  for (int op = 0; op < kNumOps; ++op) {
#define PREFIXD_ADD(name, type, out_name, out_type)                                       \
  if (IsSupported(Primitive::kScan, DType::name, DType::out_name, static_cast<Op>(op))) { \
    all.push_back({DType::name, DType::out_name, static_cast<Op>(op)});                   \
  }
    PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
  }
  return all;
}

// A prefix of any type, in front of the first item.
std::vector<unsigned char> Start(DType out, Op op) {
  return VisitDType(AccumulatorOf(out), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T neutral = Neutral(op, AccumulatorOf(out)).template As<T>();
    const auto bytes_of = [](auto item) {
      const auto prefix = PrefixOf(item, item);
      std::vector<unsigned char> bytes(sizeof(prefix));
      std::memcpy(bytes.data(), &prefix, sizeof(prefix));
      return bytes;
    };
    if constexpr (std::is_floating_point_v<T>) {
      if (op == Op::kLogAddExp) return bytes_of(LogAddExpOf<T>::Load(neutral));
    }
    return bytes_of(neutral);
  });
}

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

// Arrays that stand one behind the other: of one length, or of many, some of which have no items.
struct Arrays {
  PartArrays part;
  std::vector<uint64_t> offsets;
};
Arrays MakeArrays(std::mt19937_64* random) {
  const uint64_t kind = (*random)() % 9;  // Few are longer than 64 tiles.
  const uint64_t length = kind == 0 ? 70'000 : 1 + (*random)() % (kind < 5 ? 9 : 700);
  Arrays arrays = {.part = {.num_arrays = 1 + (*random)() % (kind == 0 ? 2 : 60), .length = length},
                   .offsets = {(*random)() % 5}};
  const bool is_even = (*random)() % 2 == 0;
  for (uint64_t i = 0; i < arrays.part.num_arrays; ++i) {
    arrays.offsets.push_back(arrays.offsets.back() + (is_even ? length : (*random)() % (2 * length + 1)));
  }
  if (!is_even) arrays.part = {.num_arrays = arrays.part.num_arrays, .offsets = arrays.offsets.data()};
  return arrays;
}

TEST_P(SimdTest, ArraysThatShareVectorsHaveTheBitsOfEachAlone) {
  for (const Combination& c : EveryCombination()) {
    const ScanFunctions& functions = GetParam().kernels->Scan(c.in, c.out, c.op);
    ASSERT_EQ(functions.scan_arrays == nullptr, IsOrdered(c.out, c.op));
    for (int round = 0; functions.scan_arrays != nullptr && round < 8; ++round) {
      const Arrays arrays = MakeArrays(&random_);
      const size_t num_items = arrays.offsets.back() - arrays.offsets[0], size = SizeOf(c.out);
      const auto in = Items(c.in, num_items), start = Items(AccumulatorOf(c.out), 1);
      const bool reverse = Below(2) != 0, exclusive = Below(2) != 0, stream = Below(2) != 0;
      Results alone(num_items * size, 0), together(num_items * size, Below(64 / size) * size);
      for (uint64_t i = 0; i < arrays.part.num_arrays; ++i) {
        auto prefix = Start(c.out, c.op);
        std::memcpy(prefix.data(), start.data(), start.size());
        const uint64_t first = arrays.offsets[i] - arrays.offsets[0];
        const void* const items = in.data() + first * SizeOf(c.in);
        functions.scan({items, alone.data() + first * size, arrays.offsets[i + 1] - arrays.offsets[i], items, reverse,
                        exclusive, false},
                       prefix.data());
      }
      functions.scan_arrays({in.data(), together.data(), num_items, in.data(), reverse, exclusive, stream}, arrays.part,
                            start.data());
      ASSERT_EQ(together.Take(), alone.Take())
          << Name(c.in) << " to " << Name(c.out) << " " << Name(c.op) << ", " << arrays.part.num_arrays
          << " arrays, of " << arrays.part.length << " items if not 0, reverse " << reverse << ", exclusive "
          << exclusive << ", stream " << stream << ", seed " << seed_;
    }
  }
}

TEST_P(SimdTest, ArraysAreReducedToTheBitsOfEachAlone) {
  for (const Combination& c : EveryCombination()) {
    const ScanFunctions& functions = GetParam().kernels->Scan(c.in, c.out, c.op);
    for (int round = 0; round < 4; ++round) {
      const Arrays arrays = MakeArrays(&random_);
      const auto in = Items(c.in, arrays.offsets.back() - arrays.offsets[0]);
      const size_t size = SizeOf(c.out);
      const auto empty = Items(c.out, 1);
      // An ordered prefix begins with more than its start.
      auto start = Items(AccumulatorOf(c.out), 1);
      const Value neutral = Neutral(c.op, AccumulatorOf(c.out));
      if (IsOrdered(c.out, c.op)) std::memcpy(start.data(), &neutral.bits, start.size());
      Results together(arrays.part.num_arrays * size, 0), alone(arrays.part.num_arrays * size, 0);
      functions.reduce_arrays({in.data(), together.data(), 0, in.data()}, arrays.part, start.data(), empty.data());
      // Alone, the last result of an inclusive scan.
      for (uint64_t i = 0; i < arrays.part.num_arrays; ++i) {
        const uint64_t first = arrays.offsets[i] - arrays.offsets[0], count = arrays.offsets[i + 1] - arrays.offsets[i];
        auto prefix = Start(c.out, c.op);
        if (!IsOrdered(c.out, c.op)) std::memcpy(prefix.data(), start.data(), start.size());
        std::vector<unsigned char> scanned(count * size);
        const void* const items = in.data() + first * SizeOf(c.in);
        functions.scan({items, scanned.data(), count, items, false, false, false}, prefix.data());
        std::memcpy(alone.data() + i * size, count == 0 ? empty.data() : &scanned[(count - 1) * size], size);
      }
      ASSERT_EQ(together.Take(), alone.Take())
          << Name(c.in) << " to " << Name(c.out) << " " << Name(c.op) << ", " << arrays.part.num_arrays
          << " arrays, of " << arrays.part.length << " items if not 0, seed " << seed_;
    }
  }
}

TEST_P(SimdTest, ShortRowsBecomeColumnsAndRowsAgain) {
  for (int round = 0; round < 100; ++round) {
    const DType dtype = std::vector{DType::kU8, DType::kI16, DType::kF32, DType::kF64}[Below(4)];
    const size_t size = SizeOf(dtype), block = BlockItems(size);
    const uint64_t length = 1 + Below(round % 2 == 0 ? 2 * block : 128), num_rows = kMaxBlockItems * (1 + Below(9));
    const auto rows = Items(dtype, num_rows * length + block);
    std::vector<unsigned char> columns((length + block - 1) / block * block * num_rows * size);
    GetParam().kernels->transposes->to_columns[static_cast<int>(dtype)](
        {.in = rows.data(), .out = columns.data(), .num_rows = num_rows, .length = length});
    for (uint64_t i = 0; i < num_rows * length; ++i) {
      ASSERT_EQ(std::memcmp(&columns[(i % length * num_rows + i / length) * size], &rows[i * size], size), 0)
          << Name(dtype) << ", " << num_rows << " rows of " << length << ", seed " << seed_;
    }
    std::memset(columns.data() + num_rows * length * size, kGuard, columns.size() - num_rows * length * size);
    Results again((num_rows * length + block) * size, 0);
    GetParam().kernels->transposes->to_rows[static_cast<int>(dtype)](
        {.in = columns.data(), .out = again.data(), .num_rows = num_rows, .length = length});
    ASSERT_EQ(std::memcmp(again.Take().data(), rows.data(), num_rows * length * size), 0)
        << Name(dtype) << ", " << num_rows << " rows of " << length << ", seed " << seed_;
  }
}

TEST_P(SimdTest, StreamsChangeNoBitOfAScanOfColumns) {
  for (const Combination& c : EveryCombination()) {
    for (int round = 0; round < 3; ++round) {
      const size_t size = SizeOf(c.out);
      const size_t num_rows = 1 + Below(300);
      const size_t num_columns = 1 + Below(StripColumns(c.in, c.out));
      const size_t pitch = num_columns + Below(64);  // What stands between the rows is other strips'.
      const bool reverse = Below(2) != 0;
      const auto in = Items(c.in, num_rows * pitch);
      const Value start = Neutral(c.op, AccumulatorOf(c.out));
      const size_t first = reverse ? (num_rows - 1) * pitch : 0;
      ColumnPart part = {.in = in.data() + first * SizeOf(c.in),
                         .out = nullptr,
                         .num_rows = num_rows,
                         .num_columns = num_columns,
                         .pitch = reverse ? -static_cast<int64_t>(pitch) : static_cast<int64_t>(pitch),
                         .exclusive = Below(2) != 0,
                         .start = &start.bits};
      Results results(((num_rows - 1) * pitch + num_columns) * size, Below(64 / size) * size);
      const auto scan = [&](bool stream) {
        part.stream = stream;
        part.out = results.data() + first * size;
        GetParam().kernels->columns->scan[static_cast<int>(c.in)][static_cast<int>(c.out)][static_cast<int>(c.op)](
            part);
        return results.Take();
      };
      const std::vector<unsigned char> want = scan(false);
      ASSERT_EQ(scan(true), want) << Name(c.in) << " " << Name(c.out) << " " << Name(c.op) << ", " << num_rows
                                  << " rows of " << num_columns << ", pitch " << part.pitch << ", seed " << seed_;
    }
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
