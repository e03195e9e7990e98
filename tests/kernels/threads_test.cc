// Arrays that several threads share have the bits that one thread gives them: every type and operator, more threads
// than cores. What one thread computes is compared with an oracle in conformance/.
#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd {
namespace {

constexpr int kNumThreads = 4;
// Enough for all threads, and some parts more.
constexpr size_t kArrayBytes = 36 * cpu::kPartBytes;

class ThreadsTest : public testing::Test {
 protected:
  ThreadsTest() {
    RecordProperty("seed", std::to_string(seed_));
    for (size_t i = 0; i < items_.size(); i += 4) {
      // Floats below 2, whose sums show their order; and few that may be infinite, or a NaN.
      const uint32_t mask = Below(uint64_t{1} << 16) == 0 ? ~uint32_t{0} : 0xbfffbfff;
      const uint32_t random = static_cast<uint32_t>(random_() >> 7) & mask;
      std::memcpy(&items_[i], &random, sizeof(random));
    }
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Coin() { return Below(2) != 0; }

  // As many items of such a size as an array holds, less a few.
  uint64_t NumItems(size_t item_bytes) { return kArrayBytes / item_bytes - Below(cpu::kPartBytes / item_bytes); }

  // Columns of which no row has more than 512 bytes, often very few.
  uint64_t FewColumns(size_t item_bytes) { return 2 + Below(Coin() ? 7 : 512 / item_bytes - 1); }

  // Columns of rows of up to a kibibyte, too long for those above.
  uint64_t TiledColumns(size_t item_bytes) { return 512 / item_bytes + 1 + Below(511 / item_bytes); }
  // Rows of so many tiles and some more, of which items_ has enough then.
  uint64_t TiledRows(uint64_t num_tiles, uint64_t row_bytes) {
    const uint64_t num_rows = num_tiles * kTileItems + Below(kTileItems);
    const size_t num_bytes = items_.size();
    items_.resize(std::max<size_t>(num_bytes, num_rows * row_bytes));
    // Random ones again, at other places in their tiles.
    for (size_t i = num_bytes; i < items_.size(); ++i) items_[i] = items_[i - num_bytes + 8];
    return num_rows;
  }

  // Runs `work`, which leaves its results in *results and what else comes out in *rest, on one thread and on several.
  void Compare(const std::string& what, std::vector<std::byte>* results, std::vector<std::byte>* rest,
               const std::function<absl::Status()>& work) {
    std::vector<std::byte> one_results, one_rest;
    for (const int num_threads : {1, kNumThreads}) {
      results->assign(results->size(), std::byte{0xa5});
      tbb::task_arena arena(num_threads);
      ASSERT_EQ(arena.execute(cpu::Concurrency), num_threads);
      const absl::Status status = arena.execute(work);
      ASSERT_TRUE(status.ok()) << what << ": " << status;
      if (num_threads == 1) {
        one_results = *results;
        one_rest = *rest;
      }
    }
    EXPECT_TRUE(*results == one_results) << what << ", seed " << seed_;
    EXPECT_TRUE(*rest == one_rest) << what << ", seed " << seed_;
  }

  // Any precision in which these are combined.
  Precision AnyPrecision(DType dtype, DType out_dtype, Op op) {
    return IsWideSum(dtype, out_dtype, op) && Coin() ? Precision::kWide : Precision::kNative;
  }

  // An initial value that is not neutral.
  static Value Three(DType dtype) {
    return VisitDType(dtype, [](auto tag) { return Value::Of(static_cast<typename decltype(tag)::type>(3.0F)); });
  }

  // Those of a recurrence; or none, and it has one for all.
  const void* Coefficients(Op op) { return op == Op::kLinearRecurrence && Coin() ? items_.data() : nullptr; }

  // Compares such a scan of items_, of any kind and direction, in place or not. rest: what it writes beside its
  // results.
  void CompareScan(ScanArgs args, std::vector<std::byte>* rest) {
    args.kind = Coin() ? ScanKind::kInclusive : ScanKind::kExclusive;
    args.reverse = Coin();
    args.init = Coin() ? Neutral(args.op, args.output()) : Three(args.output());
    args.coefficient = args.dtype == DType::kF32 ? Value::Of(0.75F) : Value::Of(0.75);
    std::vector<std::byte> results(args.num_items * args.num_arrays * SizeOf(args.output()));
    const bool in_place = args.dtype == args.output() && Coin();
    args.in = in_place ? results.data() : items_.data();
    args.out = results.data();
    Compare(StrCat("scan of ", args.num_arrays, " arrays of ", Name(args.dtype), " to ", Name(args.output()), " ",
                   Name(args.op), args.IsWide() ? " wide" : "", args.reverse ? " reverse" : "",
                   in_place ? " in place " : " ", Name(args.kind)),
            &results, rest, [&] {
              if (in_place) std::memcpy(results.data(), items_.data(), results.size());
              return lane_->Scan(args);
            });
  }

  // Compares such a reduce of columns of items_.
  void CompareReduceOfColumns(ReduceArgs args) {
    args.order = BatchOrder::kInterleaved;
    args.init = {Coin() ? Neutral(args.op, args.StateDType()) : Three(args.StateDType()), ReduceState::kNothing};
    args.in = items_.data();
    std::vector<std::byte> results(args.num_arrays * SizeOf(args.output())), none;
    args.values = results.data();
    Compare(StrCat("reduce of ", args.num_arrays, " columns ", Name(args.dtype), " to ", Name(args.output()), " ",
                   Name(args.op), args.IsWide() ? " wide" : ""),
            &results, &none, [&] { return lane_->Reduce(args); });
  }

  const unsigned seed_ = std::random_device()();
  std::mt19937_64 random_{seed_};
  const tbb::global_control allowed_{tbb::global_control::max_allowed_parallelism, kNumThreads};
  std::vector<std::byte> items_ = std::vector<std::byte>(kArrayBytes);
  std::unique_ptr<Device> device_ = *OpenDevice("cpu");
  std::unique_ptr<Lane> lane_ = *device_->CreateLane();
};

// What threads share does not depend on the type, and the thread sanitizer slows loops a hundred times.
bool IsTested(DType dtype) {
#ifdef __SANITIZE_THREAD__
  return dtype == DType::kU8 || dtype == DType::kI32 || dtype == DType::kF64;
#else
  return IsSupported(dtype);
#endif
}

// Calls f(dtype, output, op) for all that a primitive serves.
template <class F>
void ForEveryCombination(Primitive primitive, F f) {
  for (int i = 0; i < kNumOps; ++i) {
    const Op op = static_cast<Op>(i);
#define PREFIXD_CALL(name, type, out_name, out_type)                                          \
  if (IsTested(DType::name) && (IsSupported(primitive, DType::name, DType::out_name, op) ||   \
                                IsRecurrence(primitive, DType::name, DType::out_name, op))) { \
    f(DType::name, DType::out_name, op);                                                      \
  }
    PREFIXD_FOR_EACH_OUTPUT(PREFIXD_CALL)
#undef PREFIXD_CALL
  }
}

template <class F>
void ForEveryType(F f) {
#define PREFIXD_CALL(name, type) \
  if (IsTested(DType::name)) f(DType::name);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_CALL)
#undef PREFIXD_CALL
}

TEST_F(ThreadsTest, Scan) {
  ForEveryCombination(Primitive::kScan, [&](DType dtype, DType out_dtype, Op op) {
    std::vector<std::byte> carry(CarryBytes(out_dtype, op, Precision::kNative));
    CompareScan({.dtype = dtype,
                 .out_dtype = out_dtype,
                 .op = op,
                 .num_items = NumItems(std::max(SizeOf(dtype), SizeOf(out_dtype))),
                 .coefficients = Coefficients(op),
                 .carry_out = carry.data()},
                &carry);
  });
}

TEST_F(ThreadsTest, Reduce) {
  ForEveryCombination(Primitive::kReduce, [&](DType dtype, DType out_dtype, Op op) {
    ReduceArgs args;
    args.dtype = dtype;
    args.out_dtype = out_dtype;
    args.op = op;
    args.in = items_.data();
    args.num_items = NumItems(SizeOf(dtype));
    args.init = {Neutral(op, args.StateDType()), ReduceState::kNothing};
    const size_t value_bytes = SizeOf(args.StateDType());
    std::vector<std::byte> results, rest(value_bytes + sizeof(uint64_t));
    Compare(StrCat("reduce ", Name(dtype), " to ", Name(out_dtype), " ", Name(op)), &results, &rest, [&] {
      ReduceState state;
      args.state_out = &state;
      const absl::Status status = lane_->Reduce(args);
      std::memcpy(rest.data(), &state.value.bits, value_bytes);
      std::memcpy(&rest[value_bytes], &state.position, sizeof(state.position));
      return status;
    });
  });
}

// Columns that are too few for threads of their own, which share the rows.
TEST_F(ThreadsTest, ScanOfFewColumns) {
  ForEveryCombination(Primitive::kScan, [&](DType dtype, DType out_dtype, Op op) {
    const size_t item_bytes = std::max(SizeOf(dtype), SizeOf(out_dtype));
    const uint64_t num_columns = FewColumns(item_bytes);
    std::vector<std::byte> no_carry;
    CompareScan({.dtype = dtype,
                 .out_dtype = out_dtype,
                 .op = op,
                 .precision = AnyPrecision(dtype, out_dtype, op),
                 .num_items = NumItems(item_bytes) / num_columns,
                 .num_arrays = num_columns,
                 .order = BatchOrder::kInterleaved,
                 .coefficients = Coefficients(op)},
                &no_carry);
  });
}

// Columns of which threads share the rows by tiles, in up to two groups where the order matters.
TEST_F(ThreadsTest, ScanOfColumnTiles) {
  ForEveryCombination(Primitive::kScan, [&](DType dtype, DType out_dtype, Op op) {
    const size_t item_bytes = std::max(SizeOf(dtype), SizeOf(out_dtype));
    const uint64_t num_columns = TiledColumns(item_bytes), num_tiles = IsOrdered(out_dtype, op) && Coin() ? 34 : 9;
    std::vector<std::byte> no_carry;
    CompareScan({.dtype = dtype,
                 .out_dtype = out_dtype,
                 .op = op,
                 .precision = AnyPrecision(dtype, out_dtype, op),
                 .num_items = TiledRows(num_tiles, num_columns * item_bytes),
                 .num_arrays = num_columns,
                 .order = BatchOrder::kInterleaved,
                 .coefficients = Coefficients(op)},
                &no_carry);
  });
}

TEST_F(ThreadsTest, ReduceOfColumnTiles) {
  ForEveryCombination(Primitive::kReduce, [&](DType dtype, DType out_dtype, Op op) {
    ReduceArgs args = {
        .dtype = dtype, .out_dtype = out_dtype, .op = op, .precision = AnyPrecision(dtype, out_dtype, op)};
    args.num_arrays = TiledColumns(std::max(SizeOf(dtype), SizeOf(out_dtype)));
    args.num_items = TiledRows(IsOrdered(out_dtype, op) && Coin() ? 34 : 9, args.num_arrays * SizeOf(dtype));
    CompareReduceOfColumns(args);
  });
}

TEST_F(ThreadsTest, ReduceOfFewColumns) {
  ForEveryCombination(Primitive::kReduce, [&](DType dtype, DType out_dtype, Op op) {
    ReduceArgs args = {.dtype = dtype, .out_dtype = out_dtype, .op = op};
    args.precision = AnyPrecision(dtype, out_dtype, op);
    args.num_arrays = FewColumns(std::max(SizeOf(dtype), SizeOf(out_dtype)));
    args.num_items = NumItems(SizeOf(dtype)) / args.num_arrays;
    CompareReduceOfColumns(args);
  });
}

// Rows that are longer than a part, of which each is a thread's.
TEST_F(ThreadsTest, ReduceOfLongRows) {
  ReduceArgs args = {
      .dtype = DType::kF32, .in = items_.data(), .num_items = kArrayBytes / sizeof(float) / 9 - Below(5)};
  args.num_arrays = 9;
  args.init = {Neutral(Op::kSum, DType::kF32), ReduceState::kNothing};
  std::vector<std::byte> results(args.num_arrays * sizeof(float)), none;
  args.values = results.data();
  Compare("reduce of long rows", &results, &none, [&] { return lane_->Reduce(args); });
}

TEST_F(ThreadsTest, Compact) {
  ForEveryType([&](DType dtype) {
    for (const Selector selector : {Selector::kPredicate, Selector::kByteMask, Selector::kBitMask}) {
      CompactArgs args;
      args.dtype = dtype;
      args.selector = selector;
      args.comparison = Comparison::kGreater;
      args.invert = Coin();
      args.in = items_.data();
      args.mask = selector == Selector::kPredicate ? nullptr : items_.data();
      args.num_items = NumItems(SizeOf(dtype));
      // Indices, and behind them values.
      std::vector<std::byte> results(args.num_items * (sizeof(uint64_t) + SizeOf(dtype))), count(sizeof(uint64_t));
      args.indices = results.data();
      args.values = results.data() + args.num_items * sizeof(uint64_t);
      args.count = reinterpret_cast<uint64_t*>(count.data());
      Compare(StrCat("compact ", Name(dtype), " ", static_cast<int>(selector)), &results, &count,
              [&] { return lane_->Compact(args); });
    }
  });
}

TEST_F(ThreadsTest, Difference) {
  ForEveryType([&](DType dtype) {
    std::vector<std::byte> carry(SizeOf(dtype));
    DifferenceArgs args;
    args.dtype = dtype;
    args.reverse = Coin();
    args.in = items_.data();
    args.num_items = NumItems(SizeOf(dtype));
    args.init = Neutral(Op::kSum, dtype);
    args.carry_out = carry.data();
    std::vector<std::byte> results(args.num_items * SizeOf(dtype));
    args.out = results.data();
    Compare(StrCat("difference ", Name(dtype)), &results, &carry, [&] { return lane_->Difference(args); });
  });
}

}  // namespace
}  // namespace prefixd
