// The loops of each instruction set over many arrays: arrays one behind the other, short rows, columns. Each has the
// bits that it has alone, wherever it lies, and nothing else is written.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/wide_sum.h"
#include "tests/kernels/simd_harness.h"

namespace prefixd::cpu {
namespace {

using SimdArraysTest = SimdTest;

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

// Scans arrays together, in_place if elements and results have one size, and each alone.
void ExpectAsAlone(const ScanFunctions& functions, DType in_dtype, DType out_dtype, const Arrays& arrays,
                   const std::vector<unsigned char>& before, ScanPart part, size_t shift_bytes, bool in_place,
                   const std::string& what) {
  const size_t in_size = SizeOf(in_dtype), size = SizeOf(out_dtype);
  const auto advance = [](const void* p, size_t n) { return p == nullptr ? p : static_cast<const char*>(p) + n; };
  Results alone(part.num_items * size, 0), together(part.num_items * size, shift_bytes);
  for (uint64_t i = 0; i < arrays.part.num_arrays; ++i) {
    auto prefix = before;
    const uint64_t first = arrays.offsets[i] - arrays.offsets[0];
    ScanPart one = part;
    one.in = one.next = advance(part.in, first * in_size);
    one.coefficients = advance(part.coefficients, first * in_size);
    one.out = alone.data() + first * size;
    one.num_items = arrays.offsets[i + 1] - arrays.offsets[i];
    one.stream = false;
    functions.scan(one, prefix.data());
  }
  part.out = together.data();
  if (in_place && in_size == size) {
    std::memcpy(part.out, part.in, part.num_items * size);
    part.in = part.next = part.out;
    part.stream = false;
  }
  functions.scan_arrays(part, arrays.part, before.data());
  ASSERT_EQ(together.Take(), alone.Take())
      << Name(in_dtype) << " to " << Name(out_dtype) << " " << what << ", " << arrays.part.num_arrays << " arrays, of "
      << arrays.part.length << " items if not 0, reverse " << part.reverse << ", exclusive " << part.exclusive
      << ", stream " << part.stream << ", in place " << (part.in == part.out);
}

TEST_P(SimdArraysTest, ArraysThatShareVectorsHaveTheBitsOfEachAlone) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  for (const Combination& c : EveryCombination()) {
    const ScanFunctions& functions = GetParam().kernels->Scan(c.in, c.out, c.op);
    for (int round = 0; round < 8; ++round) {
      const Arrays arrays = MakeArrays(&random_);
      const size_t num_items = arrays.offsets.back() - arrays.offsets[0];
      const auto in = Items(c.in, num_items), start = Items(AccumulatorOf(c.out), 1);
      ExpectAsAlone(functions, c.in, c.out, arrays, Start(c.out, c.op, start.data()),
                    {in.data(), nullptr, num_items, in.data(), Below(2) != 0, Below(2) != 0, Below(2) != 0},
                    Below(64 / SizeOf(c.out)) * SizeOf(c.out), Below(4) == 0, std::string(Name(c.op)));
    }
  }
}

TEST_P(SimdArraysTest, RecurrencesAndWideSumsOfArraysHaveTheBitsOfEachAlone) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto bytes_of = [](auto item, auto none) {
    const auto prefix = PrefixOf(item, none);
    std::vector<unsigned char> bytes(sizeof(prefix));
    std::memcpy(bytes.data(), &prefix, sizeof(prefix));
    return bytes;
  };
  for (int round = 0; round < 40; ++round) {
    const Arrays arrays = MakeArrays(&random_);
    const bool is_single = Below(2) != 0;
    const DType dtype = is_single ? DType::kF32 : DType::kF64;
    const size_t num_items = arrays.offsets.back() - arrays.offsets[0];
    const auto in = Items(dtype, num_items), coefficients = Items(dtype, num_items), one = Items(dtype, 1);
    const size_t shift_bytes = Below(64 / SizeOf(dtype)) * SizeOf(dtype);
    const bool in_place = Below(4) == 0;
    ScanPart part = {in.data(), nullptr, num_items, in.data(), Below(2) != 0, Below(2) != 0, Below(2) != 0};
    ExpectAsAlone(GetParam().kernels->Scan(dtype, dtype, Op::kSum, Precision::kWide), dtype, dtype, arrays,
                  is_single ? bytes_of(1.5, -0.0) : bytes_of(CompensatedOf(1.5), CompensatedOf(-0.0)), part,
                  shift_bytes, in_place, "wide sum");
    part.coefficients = Below(2) != 0 ? coefficients.data() : nullptr;
    part.coefficient = one.data();
    ExpectAsAlone(GetParam().kernels->Scan(dtype, dtype, Op::kLinearRecurrence), dtype, dtype, arrays,
                  is_single ? bytes_of(Step<float>{1, 1.5F}, Step<float>{1, -0.0F})
                            : bytes_of(Step<double>{1, 1.5}, Step<double>{1, -0.0}),
                  part, shift_bytes, in_place,
                  part.coefficients != nullptr ? "recurrence" : "recurrence of one coefficient");
  }
}

TEST_P(SimdArraysTest, ArraysAreReducedToTheBitsOfEachAlone) {
  for (const Combination& c : EveryCombination()) {
    const ScanFunctions& functions = GetParam().kernels->Scan(c.in, c.out, c.op);
    for (int round = 0; round < 4; ++round) {
      const Arrays arrays = MakeArrays(&random_);
      const size_t num_items = arrays.offsets.back() - arrays.offsets[0];
      const auto in = Items(c.in, num_items);
      const size_t size = SizeOf(c.out);
      const auto empty = Items(c.out, 1);
      const auto start = Items(AccumulatorOf(c.out), 1);
      Results together(arrays.part.num_arrays * size, 0), alone(arrays.part.num_arrays * size, 0);
      functions.reduce_arrays({in.data(), together.data(), num_items, in.data()}, arrays.part, start.data(),
                              empty.data());
      // Alone, the last result of an inclusive scan.
      for (uint64_t i = 0; i < arrays.part.num_arrays; ++i) {
        const uint64_t first = arrays.offsets[i] - arrays.offsets[0], count = arrays.offsets[i + 1] - arrays.offsets[i];
        auto prefix = Start(c.out, c.op, start.data());
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

TEST_P(SimdArraysTest, ShortRowsBecomeColumnsAndRowsAgain) {
  for (int round = 0; round < 100; ++round) {
    const DType dtype = std::vector{DType::kU8, DType::kI16, DType::kF32, DType::kF64}[Below(4)];
    const size_t size = SizeOf(dtype), block = BlockItems(size);
    const uint64_t length = 1 + Below(round % 2 == 0 ? 2 * block : 128), num_rows = kMaxBlockItems * (1 + Below(9));
    const uint64_t pitch = num_rows + Below(2) * Below(100);
    const auto rows = Items(dtype, num_rows * length + block);
    std::vector<unsigned char> columns((length + block - 1) / block * block * pitch * size, kGuard);
    GetParam().kernels->transposes->to_columns[static_cast<int>(dtype)](
        {.in = rows.data(), .out = columns.data(), .num_rows = num_rows, .length = length, .pitch = pitch});
    for (uint64_t i = 0; i < num_rows * length; ++i) {
      ASSERT_EQ(std::memcmp(&columns[(i % length * pitch + i / length) * size], &rows[i * size], size), 0)
          << Name(dtype) << ", " << num_rows << " rows of " << length << ", seed " << seed_;
    }
    for (uint64_t i = 0; i < length * pitch * size; ++i) {
      if (i / size % pitch < num_rows) continue;
      ASSERT_EQ(columns[i], kGuard) << "behind a column of " << Name(dtype) << ", seed " << seed_;
    }
    std::memset(columns.data() + pitch * length * size, kGuard, columns.size() - pitch * length * size);
    Results again((num_rows * length + block) * size, 0);
    GetParam().kernels->transposes->to_rows[static_cast<int>(dtype)](
        {.in = columns.data(), .out = again.data(), .num_rows = num_rows, .length = length, .pitch = pitch});
    ASSERT_EQ(std::memcmp(again.Take().data(), rows.data(), num_rows * length * size), 0)
        << Name(dtype) << ", " << num_rows << " rows of " << length << ", seed " << seed_;
  }
}

TEST_P(SimdArraysTest, StreamsChangeNoBitOfAScanOfColumns) {
  for (const Combination& c : EveryCombination()) {
    for (int round = 0; round < 3; ++round) {
      const size_t size = SizeOf(c.out);
      const size_t num_rows = 1 + Below(300);
      const size_t num_columns =
          1 + Below(StripColumns(SizeOf(c.in), SizeOf(AccumulatorOf(c.out)) * (c.op == Op::kLogAddExp ? 2 : 1)));
      const size_t pitch = num_columns + Below(64);  // What stands between the rows is other strips'.
      const bool reverse = Below(2) != 0;
      const auto in = Items(c.in, num_rows * pitch);
      const Value neutral = Neutral(c.op, AccumulatorOf(c.out));
      const auto before = Start(c.out, c.op, &neutral.bits);
      const size_t first = reverse ? (num_rows - 1) * pitch : 0;
      ColumnPart part = {.in = in.data() + first * SizeOf(c.in),
                         .out = nullptr,
                         .num_rows = num_rows,
                         .num_columns = num_columns,
                         .pitch = reverse ? -static_cast<int64_t>(pitch) : static_cast<int64_t>(pitch),
                         .exclusive = Below(2) != 0,
                         .before = before.data()};
      Results results(((num_rows - 1) * pitch + num_columns) * size, Below(64 / size) * size);
      const auto scan = [&](bool stream) {
        part.stream = stream;
        part.out = results.data() + first * size;
        GetParam().kernels->Columns(c.in, c.out, c.op).scan(part);
        return results.Take();
      };
      const std::vector<unsigned char> want = scan(false);
      ASSERT_EQ(scan(true), want) << Name(c.in) << " " << Name(c.out) << " " << Name(c.op) << ", " << num_rows
                                  << " rows of " << num_columns << ", pitch " << part.pitch << ", seed " << seed_;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, SimdArraysTest, testing::ValuesIn(IsasHere()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace prefixd::cpu
