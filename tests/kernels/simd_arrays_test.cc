// The loops of each instruction set over many arrays: arrays one behind the other, short rows, columns. Each has the
// bits that it has alone, wherever it lies, and nothing else is written.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
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

TEST_P(SimdArraysTest, ArraysThatShareVectorsHaveTheBitsOfEachAlone) {
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

TEST_P(SimdArraysTest, ArraysAreReducedToTheBitsOfEachAlone) {
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

TEST_P(SimdArraysTest, ShortRowsBecomeColumnsAndRowsAgain) {
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

TEST_P(SimdArraysTest, StreamsChangeNoBitOfAScanOfColumns) {
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

INSTANTIATE_TEST_SUITE_P(Isas, SimdArraysTest, testing::ValuesIn(IsasHere()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace prefixd::cpu
