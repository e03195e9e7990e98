// Steps whose arrays are cut, by offsets of segments or by keys, do to each segment what a plain loop does.
#include "client/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "client/client.h"
#include "tests/client/program_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(ProgramTest, ScansAndReducesOfSegments) {
  const auto values = Values<int32_t>(1'000, -9, 9);
  const std::vector<uint64_t> offsets = {0, 0, 400, 400, 999, 1'000};
  Program program;
  const auto x = program.Input<int32_t>(values);
  const Cut cut = Cut::AtOffsets(program.Input<uint64_t>(offsets));
  const auto scanned = program.Scan<int32_t, int64_t>(x, {.init = 5}, cut);
  const auto sums = program.Reduce<int32_t, int64_t>(x, {.init = 5}, cut).value;
  program.Output(scanned);
  program.Output(sums);
  const ProgramResult result = Run(program);
  std::vector<int64_t> expected_scanned, expected_sums;
  for (size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
    expected_sums.push_back(5);
    for (uint64_t i = offsets[segment]; i < offsets[segment + 1]; ++i) {
      expected_scanned.push_back(expected_sums.back() += values[i]);
    }
  }
  EXPECT_EQ(ValuesOf(result, scanned), expected_scanned);
  EXPECT_EQ(ValuesOf(result, sums), expected_sums);

  Program wrong_scan;
  wrong_scan.Output(wrong_scan.Scan(wrong_scan.Input<int32_t>(values), {.segments = absl::MakeConstSpan(offsets)}));
  EXPECT_EQ(ErrorReason(RunStatus(wrong_scan)), "FIELD_CONFLICT");
  Program wrong_reduce;
  wrong_reduce.Output(
      wrong_reduce.Reduce(wrong_reduce.Input<int32_t>(values), {.segments = absl::MakeConstSpan(offsets)}).value);
  EXPECT_EQ(ErrorReason(RunStatus(wrong_reduce)), "FIELD_CONFLICT");
}

TEST_F(ProgramTest, ByKeys) {
  const auto values = Values<int32_t>(1'000, -9, 9);
  std::vector<int16_t> keys(values.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int16_t>(i / 300 % 2);
  Program program;
  const auto x = program.Input<int32_t>(values);
  const auto k = program.Input<int16_t>(keys);
  const auto scanned = program.Scan(x, {.kind = ScanKind::kExclusive, .init = 5}, Cut::ByKeys(k));
  const auto runs = program.ReduceByKeys<int32_t, int16_t, int64_t>(x, k);
  const auto undone = program.Difference(program.Scan(x, {}, Cut::ByKeys(k)), {}, Cut::ByKeys(k));
  program.Output(scanned);
  program.Output(undone);
  program.Output(runs.values);
  program.Output(runs.keys);
  const ProgramResult result = Run(program);
  std::vector<int32_t> expected;
  std::vector<int64_t> sums;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 300 == 0) sums.push_back(0);
    expected.push_back(static_cast<int32_t>(5 + sums.back()));
    sums.back() += values[i];
  }
  EXPECT_EQ(ValuesOf(result, scanned), expected);
  EXPECT_EQ(ValuesOf(result, undone), std::vector<int32_t>(values.begin(), values.end()));
  EXPECT_EQ(ValuesOf(result, runs.values), sums);
  EXPECT_THAT(ValuesOf(result, runs.keys), ElementsAre(0, 1, 0, 1));
}

TEST_F(ProgramTest, CompactsOfSegmentsAndByKeys) {
  const auto values = Values<int32_t>(1'000, -9, 9);
  const std::vector<uint64_t> offsets = {0, 0, 400, 1'000};
  const std::vector<int16_t> keys(values.size(), 3);
  std::vector<uint8_t> mask(values.size());
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = values[i] > 0;
  Program program;
  const auto x = program.Input<int32_t>(values);
  const auto cuts = program.Input<uint64_t>(offsets);
  const auto k = program.Input<int16_t>(keys);
  const auto m = program.Input<uint8_t>(mask);
  const Where<int32_t> positive = {Comparison::kGreater, 0};
  const auto a = program.Compact(x, positive, {}, Cut::AtOffsets(cuts));
  const auto b = program.Compact(x, m, {}, Cut::AtOffsets(cuts));
  const auto c = program.Compact(x, positive, {}, Cut::ByKeys(k));
  const auto d = program.Compact(x, m, {}, Cut::ByKeys(k));
  program.Output(a.values);
  for (const auto& selection : {a, b, c, d}) program.Output(selection.counts);
  const ProgramResult result = Run(program);
  const auto first =
      static_cast<uint64_t>(std::count_if(values.begin(), values.begin() + 400, [](int v) { return v > 0; }));
  const auto all = static_cast<uint64_t>(std::count_if(values.begin(), values.end(), [](int v) { return v > 0; }));
  EXPECT_THAT(ValuesOf(result, a.values), SizeIs(all));
  EXPECT_THAT(ValuesOf(result, a.counts), ElementsAre(0, first, all - first));
  EXPECT_EQ(ValuesOf(result, b.counts), ValuesOf(result, a.counts));
  EXPECT_THAT(ValuesOf(result, c.counts), ElementsAre(all));
  EXPECT_THAT(ValuesOf(result, d.counts), ElementsAre(all));

  Program wrong;
  const auto y = wrong.Input<int32_t>(values);
  wrong.Output(wrong.Compact(y, positive, {.segments = absl::MakeConstSpan(offsets)}).values);
  EXPECT_EQ(ErrorReason(RunStatus(wrong)), "FIELD_CONFLICT");
}

TEST_F(ProgramTest, ExtremaAndRecurrencesOfSegmentsAndByKeys) {
  const std::vector<float> values = {1, 3, 2, 3, 5, 4, 5}, coefficients = {9, 2, 3, 9, 9, 2, 9};
  const std::vector<uint64_t> offsets = {0, 3, 3, 6, 7};
  const std::vector<uint8_t> keys = {8, 8, 8, 1, 1, 1, 8};  // The same segments, but for the empty one.
  Program program;
  const auto x = program.Input<float>(values);
  const auto a = program.Input<float>(coefficients);
  const auto by_offsets = Cut::AtOffsets(program.Input<uint64_t>(offsets));
  const auto by_keys = Cut::ByKeys(program.Input<uint8_t>(keys));
  std::vector<Extrema<float>> extrema;
  std::vector<Term<float>> recurrences;
  for (const Cut& cut : {by_offsets, by_keys}) {
    extrema.push_back(program.ScanExtrema(x, {.op = Op::kMax, .last_index = true}, cut));
    recurrences.push_back(program.ScanRecurrence(x, a, {.init = 1}, cut));
    program.Output(extrema.back().values);
    program.Output(extrema.back().indices);
    program.Output(recurrences.back());
  }
  const ProgramResult result = Run(program);
  for (size_t i = 0; i < extrema.size(); ++i) {
    EXPECT_THAT(ValuesOf(result, extrema[i].values), ElementsAre(1, 3, 3, 3, 5, 5, 5));
    EXPECT_THAT(ValuesOf(result, extrema[i].indices), ElementsAre(0, 1, 1, 3, 4, 4, 6));
    EXPECT_THAT(ValuesOf(result, recurrences[i]), ElementsAre(10, 23, 71, 12, 113, 230, 14));
  }
}

TEST_F(ProgramTest, OnlyTheReduceOfOneArrayHasAnIndex) {
  const std::vector<float> values = {1, 2};
  Program program;
  const auto x = program.Input<float>(values);
  const auto least = program.Reduce(x, {.op = Op::kMin}, Cut::ByKeys(x));
  program.Output(least.value);
  program.Output(least.index);
  EXPECT_EQ(ErrorReason(RunStatus(program)), "FIELD_CONFLICT");
}

// What a step reads as a term is not in its options, whichever of them have a use for it.
TEST_F(ProgramTest, OptionsThatNameArraysAreRefused) {
  const std::vector<float> values = {1, 2, 3}, coefficients = values;
  const std::vector<uint64_t> offsets = {0, 3};
  const auto status = [&](auto&& add) {
    Program program;
    const auto x = program.Input<float>(values);
    program.Output(add(program, x));
    return RunStatus(program);
  };
  const auto cuts = [&](Program& program) { return Cut::AtOffsets(program.Input<uint64_t>(offsets)); };
  const auto span = absl::MakeConstSpan(coefficients);
  for (const absl::Status& wrong :
       {status(
            [&](Program&p, auto x) { return p.Scan(x, {.op = Op::kLinearRecurrence, .coefficients = span}, cuts(p)); }),
        status([&](Program&p, auto x) { return p.ScanRecurrence(x, x, {.segments = absl::MakeConstSpan(offsets)}); }),
        status([&](Program&p, auto x) { return p.Scan(x, {.return_carry = true}, cuts(p)); }),
        status([&](Program&p, auto x) { return p.Difference(x, {.keys = span}); }),
        status([&](Program&p, auto x) { return p.ScanRecurrence(x, x, {.return_carry = true}); }),
        status([&](Program&p, auto x) { return p.Scan(x, {.keys = span}, Cut::ByKeys(x)); }),
        status([&](Program&p, auto x) { return p.ReduceByKeys(x, x, {.keys = span}).values; }),
        status([&](Program&p, auto x) { return p.ReduceByKeys(x, x, {.return_keys = true}).values; })}) {
    EXPECT_EQ(ErrorReason(wrong), "FIELD_CONFLICT") << wrong;
  }
}

}  // namespace
}  // namespace prefixd::client
