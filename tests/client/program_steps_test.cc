// Each step of a program does what a plain loop does, whatever is used of what it makes.
#include "client/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "client/client.h"
#include "tests/client/program_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(ProgramTest, ScansAndDifferences) {
  const auto values = Values<int32_t>(Count());
  const Array array = Uploaded(values);
  Program program;
  const auto x = program.Input<int32_t>(array);
  const auto sums = program.Scan<int32_t, int64_t>(x, {.kind = ScanKind::kExclusive, .init = 7});
  const auto largest = program.Scan(x, {.op = Op::kMax, .reverse = true});
  const auto differences = program.Difference(x, {.init = 3});
  program.Output(sums);
  program.Output(largest);
  program.Output(differences);
  const ProgramResult result = Run(program);

  std::vector<int64_t> expected_sums;
  int64_t sum = 7;
  for (const int32_t value : values) {
    expected_sums.push_back(sum);
    sum += value;
  }
  EXPECT_EQ(ValuesOf(result, sums), expected_sums);
  std::vector<int32_t> expected_largest = values;
  for (size_t i = values.size() - 1; i-- > 0;) {
    expected_largest[i] = std::max(expected_largest[i], expected_largest[i + 1]);
  }
  EXPECT_EQ(ValuesOf(result, largest), expected_largest);
  std::vector<int32_t> expected_differences = {values[0] - 3};
  for (size_t i = 1; i < values.size(); ++i) expected_differences.push_back(values[i] - values[i - 1]);
  EXPECT_EQ(ValuesOf(result, differences), expected_differences);
}

TEST_F(ProgramTest, Reduces) {
  const auto values = Values<float>(Count());
  Program program;
  const auto x = program.Input<float>(values);
  const auto total = program.Reduce<float, double>(x, {.init = 0.5});
  const auto least = program.Reduce(x, {.op = Op::kMin});
  program.Output(total.value);
  program.Output(least.value);
  program.Output(least.index);
  const ProgramResult result = Run(program);

  double sum = 0.5;
  for (const float value : values) sum += value;
  EXPECT_EQ(result.Value(total.value).value_or(-1), sum);
  const auto place = std::min_element(values.begin(), values.end());
  EXPECT_EQ(result.Value(least.value).value_or(-1), *place);
  EXPECT_EQ(result.Value(least.index).value_or(0), static_cast<uint64_t>(place - values.begin()));
}

TEST_F(ProgramTest, LinearRecurrences) {
  const auto values = Values<float>(1'000, -9, 9);
  const std::vector<float> coefficients(values.size(), 0.5F);
  Program program;
  const auto x = program.Input<float>(values);
  const auto y = program.ScanRecurrence(x, program.Input<float>(coefficients), {.init = 1});
  const auto z = program.Scan(x, {.op = Op::kLinearRecurrence, .init = 1, .coefficient = 0.5F});
  program.Output(y);
  program.Output(z);
  const ProgramResult result = Run(program);
  EXPECT_EQ(ValuesOf(result, y), ValuesOf(result, z));
  EXPECT_EQ(ValuesOf(result, y)[0], 0.5F + values[0]);
  EXPECT_EQ(ValuesOf(result, y)[1], 0.5F * (0.5F + values[0]) + values[1]);

  Program wrong;
  const auto w = wrong.Input<float>(values);
  wrong.Output(wrong.Scan(w, {.op = Op::kLinearRecurrence, .coefficients = absl::MakeConstSpan(coefficients)}));
  EXPECT_EQ(ErrorReason(RunStatus(wrong)), "FIELD_CONFLICT");
}

// Each output alone and together with the others, as an output or as what a step reads.
TEST_F(ProgramTest, CompactsMakeWhatIsUsed) {
  const auto values = Values<float>(Count());
  const auto mask = Values<uint8_t>(values.size(), 0, 1);
  std::vector<uint8_t> bits((values.size() + 7) / 8);
  for (size_t i = 0; i < mask.size(); ++i) bits[i / 8] |= mask[i] << i % 8;
  enum class By : uint8_t { kPredicate, kBytes, kBits };
  for (const By by : {By::kPredicate, By::kBytes, By::kBits}) {
    for (const bool invert : {false, true}) {
      std::vector<float> kept;
      std::vector<uint64_t> indices;
      for (size_t i = 0; i < values.size(); ++i) {
        if ((by == By::kPredicate ? values[i] > 2 : mask[i] != 0) == invert) continue;
        kept.push_back(values[i]);
        indices.push_back(i);
      }
      for (unsigned used = 1; used < 8; ++used) {
        SCOPED_TRACE(testing::Message() << "by " << static_cast<int>(by) << ", invert " << invert << ", used " << used);
        Program program;
        const auto x = program.Input<float>(values);
        const CompactOptions options = {
            .mask_kind = by == By::kBits ? MaskKind::kBits : MaskKind::kBytes,
            .invert = invert,
            .return_indices = true,  // Has no use here.
        };
        const auto selection = by == By::kPredicate
                                   ? program.Compact(x, {Comparison::kGreater, 2}, options)
                                   : program.Compact(x, program.Input<uint8_t>(by == By::kBits ? bits : mask), options);
        if (used & 1) program.Output(selection.values);
        const auto indices_copy = used & 2 ? program.Copy(selection.indices) : Term<uint64_t>();
        if (used & 2) program.Output(indices_copy);
        if (used & 4) program.Output(selection.count);
        const ProgramResult result = Run(program);
        if (used & 1) {
          EXPECT_EQ(ValuesOf(result, selection.values), kept);
        }
        if (used & 2) {
          EXPECT_EQ(ValuesOf(result, indices_copy), indices);
        }
        if (used & 4) {
          EXPECT_EQ(result.Value(selection.count).value_or(-1), kept.size());
        }
        // What was not used is no output.
        if (!(used & 4)) {
          EXPECT_EQ(ErrorReason(result.Value(selection.count).status()), "FIELD_CONFLICT");
        }
      }
    }
  }
}

TEST_F(ProgramTest, FillsCopiesAndCasts) {
  const auto values = Values<double>(Count());
  Program program;
  const auto x = program.Input<double>(values);
  const auto halves = program.Affine(x, 0.5, 0.25);
  const auto whole = program.Cast<int16_t>(halves);
  const auto copy = program.Copy(whole);
  const auto count_up = program.FillLike<uint32_t>(x, Iota<uint32_t>(5, 3));
  const auto constant = program.Fill<uint8_t>(11, Constant<uint8_t>(200));
  const auto noise = program.Fill<float>(33, Random<float>(4, 100));
  for (const auto term : {whole, copy}) program.Output(term);
  program.Output(halves);
  program.Output(count_up);
  program.Output(constant);
  program.Output(noise);
  const ProgramResult result = Run(program);

  const auto expected = Map<double>(values, [](double value) { return 0.5 * value + 0.25; });
  EXPECT_EQ(ValuesOf(result, halves), expected);
  EXPECT_EQ(ValuesOf(result, whole), Map<int16_t>(expected, [](double value) { return value; }));
  EXPECT_EQ(ValuesOf(result, copy), ValuesOf(result, whole));
  std::vector<uint32_t> expected_count;
  for (size_t i = 0; i < values.size(); ++i) expected_count.push_back(5 + 3 * i);
  EXPECT_EQ(ValuesOf(result, count_up), expected_count);
  EXPECT_EQ(ValuesOf(result, constant), std::vector<uint8_t>(11, 200));
  const auto same_noise = client_.CreateArray({.dtype = DType::kF32, .shape = {133}}, Random<float>(4));
  ASSERT_TRUE(same_noise.ok()) << same_noise.status();
  EXPECT_EQ(ValuesOf(result, noise), *same_noise->Read<float>(100));
}

TEST_F(ProgramTest, Arithmetic) {
  const size_t count = Count();
  const auto left = Values<int32_t>(count);
  const auto right = Values<int32_t>(count, -3, 3);
  Program program;
  const auto x = program.Input<int32_t>(left);
  const auto y = program.Input<int32_t>(right);
  const std::vector<std::pair<Term<int32_t>, std::vector<int32_t>>> due = {
      {program.Abs(x), Map<int32_t>(left, [](int32_t v) { return std::abs(v); })},
      {program.Add(x, y), Map<int32_t>(left, right, [](int32_t l, int32_t r) { return l + r; })},
      {program.Subtract(x, y), Map<int32_t>(left, right, [](int32_t l, int32_t r) { return l - r; })},
      {program.Multiply(x, y), Map<int32_t>(left, right, [](int32_t l, int32_t r) { return l * r; })},
      {program.Divide(x, y), Map<int32_t>(left, right, [](int32_t l, int32_t r) { return r == 0 ? 0 : l / r; })},
      {program.Minimum(x, y), Map<int32_t>(left, right, [](int32_t l, int32_t r) { return std::min(l, r); })},
      {program.Maximum(x, y), Map<int32_t>(left, right, [](int32_t l, int32_t r) { return std::max(l, r); })},
  };
  for (const auto& [term, expected] : due) program.Output(term);
  const auto is_large = program.Compare(x, {Comparison::kGreaterEqual, 10});
  const auto is_less = program.Compare(x, Comparison::kLess, y);
  program.Output(is_large);
  program.Output(is_less);
  const ProgramResult result = Run(program);
  for (size_t i = 0; i < due.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(ValuesOf(result, due[i].first), due[i].second);
  }
  EXPECT_EQ(ValuesOf(result, is_large), Map<uint8_t>(left, [](int32_t v) { return v >= 10; }));
  EXPECT_EQ(ValuesOf(result, is_less), Map<uint8_t>(left, right, [](int32_t l, int32_t r) { return l < r; }));
}

TEST_F(ProgramTest, ComparisonsWithoutAValueAndWithTwo) {
  Program program;
  const auto x = program.Input<float>({1.0f, NAN, INFINITY});
  const auto y = program.Input<float>({0.5f, 1, 3.5f, 4, NAN});
  const auto is_nan = program.Compare(x, {Comparison::kIsNan});
  const auto in_range = program.Compare(y, {Comparison::kInRange, 1, 4});
  const auto kept_range = program.Compact(y, {Comparison::kInRange, 1, 4});
  const auto finite = program.Compact(x, {Comparison::kIsFinite});
  program.Output(is_nan);
  program.Output(finite.values);
  program.Output(in_range);
  program.Output(kept_range.values);
  const ProgramResult result = Run(program);
  EXPECT_THAT(ValuesOf(result, in_range), ElementsAre(0, 1, 1, 0, 0));
  EXPECT_THAT(ValuesOf(result, kept_range.values), ElementsAre(1, 3.5f));
  EXPECT_THAT(ValuesOf(result, is_nan), ElementsAre(0, 1, 0));
  EXPECT_THAT(ValuesOf(result, finite.values), ElementsAre(1.0f));
}

TEST_F(ProgramTest, GathersScattersAndTransposes) {
  const size_t num_rows = 3;
  const size_t num_columns = Count();
  const auto values = Values<int64_t>(num_rows * num_columns);
  const auto indices = Values<uint32_t>(101, 0, static_cast<int>(values.size()) + 20);
  std::vector<uint64_t> places(values.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::shuffle(places.begin(), places.end(), random_);
  places.resize(places.size() / 2);
  Program program;
  const auto x = program.Input<int64_t>(values);
  const auto gathered = program.Gather(x, program.Input<uint32_t>(indices));
  const auto scattered =
      program.Scatter(program.Fill<int64_t>(places.size(), Iota<int64_t>(1000)), program.Input<uint64_t>(places), x);
  const auto transposed = program.Transpose(x, num_rows, num_columns);
  program.Output(gathered);
  program.Output(scattered);
  program.Output(transposed);
  const ProgramResult result = Run(program);

  std::vector<int64_t> expected;
  for (const uint32_t index : indices) expected.push_back(index < values.size() ? values[index] : 0);
  EXPECT_EQ(ValuesOf(result, gathered), expected);
  ASSERT_THAT(result.steps(), SizeIs(4));
  EXPECT_EQ(result.steps()[0].num_bad_indices,
            static_cast<uint64_t>(
                std::count_if(indices.begin(), indices.end(), [&](uint32_t index) { return index >= values.size(); })));
  expected = values;
  for (size_t i = 0; i < places.size(); ++i) expected[places[i]] = 1000 + static_cast<int64_t>(i);
  EXPECT_EQ(ValuesOf(result, scattered), expected);
  for (size_t row = 0; row < num_rows; ++row) {
    for (size_t column = 0; column < num_columns; ++column) {
      expected[column * num_rows + row] = values[row * num_columns + column];
    }
  }
  EXPECT_EQ(ValuesOf(result, transposed), expected);
}

}  // namespace
}  // namespace prefixd::client
