// Batches whose arrays are interleaved, the columns of a matrix: every column has the bits that it would have alone,
// and nothing is written outside the matrix.
#include <algorithm>

#include "kernels/association.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

using ColumnScanTest = DeviceTest<OpParam>;
using MatrixReduceTest = DeviceTest<OpParam>;
using ColumnDifferenceTest = DeviceTest<DTypeParam>;
using ColumnErrorTest = DeviceTest<DeviceParam>;
using ColumnZerosTest = DeviceTest<DeviceParam>;

struct Matrix {
  uint64_t num_rows;
  uint64_t num_columns;
  uint64_t size() const { return num_rows * num_columns; }
};
std::ostream& operator<<(std::ostream& os, const Matrix& matrix) {
  return os << matrix.num_rows << " rows of " << matrix.num_columns;
}

// Rows around a run, a leaf, a tile and a group; columns around a vector, a warp, a block and a strip. From a thousand
// on CUDA scans arrays that stand one by one another way.
std::vector<Matrix> Matrices() {
  std::vector<Matrix> matrices = {{0, 3},    {1, 2},    {2, 300},  {3, 31},   {4, 129},   {5, 64},    {127, 33},
                                  {128, 17}, {129, 65}, {517, 7},  {1000, 3}, {33, 1030}, {4096, 2},  {4103, 5},
                                  {9000, 8}, {1, 1024}, {3, 1100}, {4, 1030}, {5, 1027},  {64, 1025}, {65, 1026}};
  if (!SmallSizesOnly()) {
    matrices.insert(matrices.end(),
                    {{131'072 + 4'096 + 131, 3}, {131'072 + 4'096 + 130, 8}, {300, 1'500}, {128, 1'024}, {517, 1'026}});
  }
  return matrices;
}

// The same items, column by column.
template <class T>
std::vector<T> ByColumn(const std::vector<T>& items, Matrix matrix) {
  std::vector<T> columns(items.size());
  for (uint64_t row = 0; row < matrix.num_rows; ++row) {
    for (uint64_t column = 0; column < matrix.num_columns; ++column) {
      columns[column * matrix.num_rows + row] = items[row * matrix.num_columns + column];
    }
  }
  return columns;
}

template <class T>
testing::AssertionResult SameItems(const std::vector<T>& got, const std::vector<T>& want, Matrix matrix) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (SameBits(got[i], want[i])) continue;
    return testing::AssertionFailure() << "row " << i % matrix.num_rows << " of column " << i / matrix.num_rows
                                       << " is " << Show(got[i]) << ", alone " << Show(want[i]);
  }
  return testing::AssertionSuccess();
}

TEST_P(ColumnScanTest, AsAlone) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using T = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    for (const Matrix matrix : Matrices()) {
      for (const auto kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
        for (const bool reverse : {false, true}) {
          if (!Takes(matrix.size()) || !random().OneIn(2)) continue;  // There are many matrices.
          const Data data = random().OneIn(2) ? Data::kSpecial : Data::kRandom;
          const bool in_place = sizeof(T) == sizeof(Out) && random().OneIn(2);
          SCOPED_TRACE(testing::Message()
                       << matrix << " " << Name(kind) << (reverse ? " reverse" : "") << (in_place ? " in place" : ""));
          auto items = MakeInput<T>(GetParam().op, data, matrix.size() + 1, random());
          ScanArgs args;
          args.dtype = GetParam().dtype;
          args.out_dtype = GetParam().out_dtype;
          args.op = GetParam().op;
          args.kind = kind;
          args.reverse = reverse;
          args.num_items = matrix.num_rows;
          args.num_arrays = matrix.num_columns;
          args.init = random().OneIn(2) ? Value::Of(static_cast<Out>(items.back()))
                                        : ScanStart(args.op, args.output(), args.kind);
          items.pop_back();
          DeviceArray<T> d_items(lane(), items, random().OneIn(2) ? 0 : 1);
          DeviceArray<T> d_columns(lane(), ByColumn(items, matrix));
          auto d_alone = DeviceArray<Out>::Poisoned(lane(), items.size());
          auto d_together = DeviceArray<Out>::Poisoned(lane(), items.size(), random().OneIn(2) ? 0 : 1);
          args.in = d_columns.data();
          args.out = d_alone.data();
          Require(lane().Scan(args));
          Require(lane().Synchronize());
          lane().TakeStageTimes();
          args.in = d_items.data();
          args.out = in_place ? static_cast<void*>(d_items.data()) : d_together.data();
          args.order = BatchOrder::kInterleaved;
          Require(lane().Scan(args));
          std::vector<Out> together(items.size()), alone;
          if (in_place) {
            std::vector<T> written;
            ASSERT_TRUE(d_items.Read(&written));
            if (!written.empty()) std::memcpy(together.data(), written.data(), written.size() * sizeof(T));
          } else {
            ASSERT_TRUE(d_together.Read(&together));
            ASSERT_TRUE(d_items.IsUntouched());
          }
          const StageTimes times = lane().TakeStageTimes();
          // A card cuts few long columns in tiles: three launches.
          const bool may_be_cut = GetParam().device != "cpu" && matrix.num_rows > 2 * kTileItems;
          EXPECT_LE(times.launches, (may_be_cut ? 3u : 1u) + CastLaunches(GetParam()));
          EXPECT_EQ(times.num_bytes, items.size() * (sizeof(T) + sizeof(Out)));
          ASSERT_TRUE(d_alone.Read(&alone));
          ASSERT_TRUE(SameItems(ByColumn(together, matrix), alone, matrix));
        }
      }
    }
  });
}
// Whatever is put beside them where a run, a leaf or a tile ends must be -0, too.
TEST_P(ColumnZerosTest, SumsOfNegativeZerosAreNegative) {
  const Matrix matrix = {.num_rows = 4'500, .num_columns = 11};
  DeviceArray<double> d_in(lane(), std::vector<double>(matrix.size(), -0.0));
  auto d_out = DeviceArray<double>::Poisoned(lane(), matrix.size());
  auto d_values = DeviceArray<double>::Poisoned(lane(), matrix.num_columns);
  Require(lane().Scan({.dtype = DType::kF64,
                       .in = d_in.data(),
                       .out = d_out.data(),
                       .num_items = matrix.num_rows,
                       .num_arrays = matrix.num_columns,
                       .order = BatchOrder::kInterleaved,
                       .init = Neutral(Op::kSum, DType::kF64)}));
  Require(lane().Reduce({.dtype = DType::kF64,
                         .in = d_in.data(),
                         .num_items = matrix.num_rows,
                         .num_arrays = matrix.num_columns,
                         .order = BatchOrder::kInterleaved,
                         .init = {Neutral(Op::kSum, DType::kF64), ReduceState::kNothing},
                         .values = d_values.data()}));
  std::vector<double> out, values;
  ASSERT_TRUE(d_out.Read(&out));
  ASSERT_TRUE(d_values.Read(&values));
  EXPECT_TRUE(AreSame(out, std::vector<double>(matrix.size(), -0.0)));
  EXPECT_TRUE(AreSame(values, std::vector<double>(matrix.num_columns, -0.0)));
}

PREFIXD_ON_EVERY_DEVICE(ColumnScanTest, EveryOp);

// Each array of a matrix, one by one and interleaved, into a value each: that of the array alone.
TEST_P(MatrixReduceTest, AsAlone) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using T = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    for (const Matrix matrix : Matrices()) {
      if (!Takes(matrix.size())) continue;
      const Data data = random().OneIn(2) ? Data::kSpecial : Data::kRandom;
      SCOPED_TRACE(testing::Message() << matrix);
      auto items = MakeInput<T>(GetParam().op, data, matrix.size() + 1, random());
      ReduceArgs args = {.dtype = GetParam().dtype, .out_dtype = GetParam().out_dtype, .op = GetParam().op};
      args.num_items = matrix.num_rows;
      args.init.value = Neutral(args.op, args.StateDType());
      if (random().OneIn(2)) args.init = {Value::Of(static_cast<Accumulator<Out>>(items.back())), 0};
      items.pop_back();
      DeviceArray<T> d_items(lane(), items, random().OneIn(2) ? 0 : 1);
      DeviceArray<T> d_columns(lane(), ByColumn(items, matrix), random().OneIn(2) ? 0 : 1);
      auto d_states = DeviceArray<ReduceState>::Poisoned(lane(), matrix.num_columns);
      auto d_one_by_one = DeviceArray<Out>::Poisoned(lane(), matrix.num_columns, random().OneIn(2) ? 0 : 1);
      auto d_interleaved = DeviceArray<Out>::Poisoned(lane(), matrix.num_columns, random().OneIn(2) ? 0 : 1);
      for (uint64_t column = 0; column < matrix.num_columns; ++column) {
        args.in = d_columns.data() + column * matrix.num_rows;
        args.state_out = d_states.data() + column;
        Require(lane().Reduce(args));
      }
      Require(lane().Synchronize());
      lane().TakeStageTimes();
      args.state_out = nullptr;
      args.num_arrays = matrix.num_columns;
      args.in = d_columns.data();
      args.values = d_one_by_one.data();
      Require(lane().Reduce(args));
      args.in = d_items.data();
      args.values = d_interleaved.data();
      args.order = BatchOrder::kInterleaved;
      Require(lane().Reduce(args));
      std::vector<ReduceState> alone;
      std::vector<Out> one_by_one, interleaved;
      ASSERT_TRUE(d_one_by_one.Read(&one_by_one));
      ASSERT_TRUE(d_interleaved.Read(&interleaved));
      const StageTimes times = lane().TakeStageTimes();
      EXPECT_EQ(times.launches, 2u);
      EXPECT_EQ(times.num_bytes, 2 * (items.size() * sizeof(T) + matrix.num_columns * sizeof(Out)));
      ASSERT_TRUE(d_states.Read(&alone));
      ASSERT_TRUE(d_items.IsUntouched());
      for (uint64_t column = 0; column < matrix.num_columns; ++column) {
        const Value value =
            matrix.num_rows == 0 ? EmptyValue(args) : ResultOf(args.output(), args.op, args.precision, alone[column]);
        const Out want = value.template As<Out>();
        ASSERT_TRUE(SameBits(one_by_one[column], want))
            << "one by one, array " << column << " is " << Show(one_by_one[column]) << ", alone " << Show(want);
        ASSERT_TRUE(SameBits(interleaved[column], want))
            << "interleaved, array " << column << " is " << Show(interleaved[column]) << ", alone " << Show(want);
      }
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(MatrixReduceTest, EveryOp);

TEST_P(ColumnDifferenceTest, AsAlone) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Matrix matrix : Matrices()) {
      for (const bool reverse : {false, true}) {
        SCOPED_TRACE(testing::Message() << matrix << (reverse ? " reverse" : ""));
        auto items = MakeInput<T>(Op::kSum, Data::kSpecial, matrix.size() + 1, random());
        DifferenceArgs args;
        args.dtype = GetParam().dtype;
        args.reverse = reverse;
        args.num_items = matrix.num_rows;
        args.init = Value::Of(items.back());
        items.pop_back();
        DeviceArray<T> d_items(lane(), items, random().OneIn(2) ? 0 : 1);
        DeviceArray<T> d_columns(lane(), ByColumn(items, matrix));
        auto d_alone = DeviceArray<T>::Poisoned(lane(), items.size());
        auto d_in_rows = DeviceArray<T>::Poisoned(lane(), items.size());
        auto d_together = DeviceArray<T>::Poisoned(lane(), items.size(), random().OneIn(2) ? 0 : 1);
        for (uint64_t column = 0; column < matrix.num_columns; ++column) {
          args.in = d_columns.data() + column * matrix.num_rows;
          args.out = d_alone.data() + column * matrix.num_rows;
          Require(lane().Difference(args));
        }
        Require(lane().Synchronize());
        lane().TakeStageTimes();
        args.num_arrays = matrix.num_columns;
        args.in = d_columns.data();
        args.out = d_in_rows.data();
        Require(lane().Difference(args));
        args.in = d_items.data();
        args.out = d_together.data();
        args.order = BatchOrder::kInterleaved;
        Require(lane().Difference(args));
        std::vector<T> together, in_rows, alone;
        ASSERT_TRUE(d_together.Read(&together));
        EXPECT_LE(lane().TakeStageTimes().launches, 2u);
        ASSERT_TRUE(d_in_rows.Read(&in_rows));
        ASSERT_TRUE(d_items.IsUntouched());
        ASSERT_TRUE(d_alone.Read(&alone));
        ASSERT_TRUE(SameItems(ByColumn(together, matrix), alone, matrix));
        ASSERT_TRUE(SameItems(in_rows, alone, matrix)) << "one by one";
      }
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(ColumnDifferenceTest, EveryDType);

TEST_P(ColumnErrorTest, YardsticksReduceNoMatrix) {
  DeviceArray<float> d_x(lane(), std::vector<float>(8));
  auto d_values = DeviceArray<float>::Poisoned(lane(), 4);
  for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kReduce)) {
    for (const uint64_t num_arrays : {1, 4}) {
      ReduceArgs args = {.dtype = DType::kF32, .algorithm = algorithm, .in = d_x.data(), .num_items = 2};
      args.num_arrays = num_arrays;
      args.values = d_values.data();
      const absl::Status status = lane().Reduce(args);
      if (device().IsDefault(Primitive::kReduce, algorithm)) {
        EXPECT_TRUE(status.ok()) << status;
      } else if (device().Resolve(Primitive::kReduce, DType::kF32, DType::kF32, Op::kSum, algorithm).ok()) {
        EXPECT_TRUE(absl::IsUnimplemented(status)) << Name(algorithm) << ": " << status;
      }
    }
  }
  EXPECT_TRUE(lane().Synchronize().ok());
}

TEST_P(ColumnErrorTest, AReduceHasOnePlaceForItsResults) {
  DeviceArray<float> d_x(lane(), std::vector<float>(8));
  auto d_states = DeviceArray<ReduceState>::Poisoned(lane(), 4);
  ReduceArgs args = {.dtype = DType::kF32, .in = d_x.data(), .num_items = 2, .num_arrays = 4};
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(args)));  // None.
  args.state_out = d_states.data();
  args.order = BatchOrder::kInterleaved;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(args)));  // States of columns.
  args.values = d_states.data();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(args)));  // Both.
  args.state_out = nullptr;
  args.values = reinterpret_cast<std::byte*>(d_states.data()) + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(args)));  // Not aligned.
  args.values = d_states.data();
  args.num_arrays = 1;
  args.state_in = d_states.data();
  EXPECT_TRUE(absl::IsInvalidArgument(lane().Reduce(args)));  // Behind a state.
}

TEST_P(ColumnErrorTest, YardsticksTakeNoColumns) {
  DeviceArray<float> d_x(lane(), std::vector<float>(8));
  for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kScan)) {
    ScanArgs args;
    args.dtype = DType::kF32;
    args.algorithm = algorithm;
    args.in = args.out = d_x.data();
    args.num_items = 2;
    args.num_arrays = 4;
    args.order = BatchOrder::kInterleaved;
    const absl::Status status = lane().Scan(args);
    if (device().IsDefault(Primitive::kScan, algorithm)) {
      EXPECT_TRUE(status.ok()) << status;
    } else if (device().Resolve(Primitive::kScan, DType::kF32, DType::kF32, Op::kSum, algorithm).ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(status)) << Name(algorithm) << ": " << status;
    }
  }
  EXPECT_TRUE(lane().Synchronize().ok());
}
PREFIXD_ON_EVERY_DEVICE(ColumnErrorTest, EveryDevice);
PREFIXD_ON_EVERY_DEVICE(ColumnZerosTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
