// The forms of scans and reduces against a real server in this process, of values on this side and of resident arrays:
// along an axis, by segments, by a linear recurrence, with the initial value, with indices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "tests/client/resident_fixture.h"

namespace prefixd::client {
namespace {

TEST_F(ResidentTest, AnAxisHasNoLimitOnTheDevice) {
  constexpr uint64_t kColumns = 1003, kRows = 700;
  const std::vector<int64_t> values = Values<int64_t>(kRows * kColumns);
  const auto array = client_.CreateArray<int64_t>(values);
  for (const auto along : {Axis::Along::kColumn, Axis::Along::kRow}) {
    const Axis axis = {.along = along, .row_items = kColumns};
    const auto scanned = client_.ScanInto<int64_t>(*array, NewArray{}, {.axis = axis});
    ASSERT_TRUE(scanned.ok()) << scanned.status();
    std::vector<int64_t> expected = values;
    const bool is_row = along == Axis::Along::kRow;
    for (uint64_t i = is_row ? 0 : kColumns; i < expected.size(); ++i) {
      if (is_row && i % kColumns == 0) continue;
      const auto sum =
          static_cast<uint64_t>(expected[i]) + static_cast<uint64_t>(expected[i - (is_row ? 1 : kColumns)]);
      expected[i] = static_cast<int64_t>(sum);
    }
    EXPECT_EQ(*scanned->values.Read<int64_t>(), expected);
    const auto back = client_.DifferenceInto<int64_t>(scanned->values, NewArray{}, {.axis = axis});
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back->values.Read<int64_t>(), values);
    const auto here = client_.Scan<int64_t>(*array, {.axis = axis});  // More than a message: rows come as a stream.
    const auto differences = client_.Difference<int64_t>(*array, {.axis = axis});
    if (is_row) {
      ASSERT_TRUE(here.ok()) << here.status();
      EXPECT_EQ(here->values, expected);
      ASSERT_TRUE(differences.ok()) << differences.status();
      EXPECT_EQ(differences->values[1],
                static_cast<int64_t>(static_cast<uint64_t>(values[1]) - static_cast<uint64_t>(values[0])));
      EXPECT_EQ(differences->values[kColumns], values[kColumns]);
    } else {
      EXPECT_EQ(ErrorReason(here.status()), "AXIS_ON_STREAM");
      EXPECT_EQ(ErrorReason(differences.status()), "AXIS_ON_STREAM");
    }
    const auto first_rows = client_.Scan<int64_t>(array->Part(0, 3 * kColumns), {.axis = axis});
    ASSERT_TRUE(first_rows.ok()) << first_rows.status();
    EXPECT_EQ(first_rows->values, std::vector<int64_t>(expected.begin(), expected.begin() + 3 * kColumns));
    EXPECT_EQ(ErrorReason(client_.Scan<int64_t>(array->Part(0, kColumns + 1), {.axis = axis}).status()), "SHAPE");

    std::vector<int64_t> last;  // A scan's last items are the sums.
    for (uint64_t i = 0; i < expected.size(); ++i) {
      if (is_row ? i % kColumns == kColumns - 1 : i / kColumns == kRows - 1) last.push_back(expected[i]);
    }
    const auto sums = client_.Reduce<int64_t>(*array, {.axis = axis});
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_EQ(sums->values, last);
    EXPECT_EQ(sums->count, values.size());
    const auto into = client_.ReduceInto<int64_t>(*array, NewArray{}, {.axis = axis});
    ASSERT_TRUE(into.ok()) << into.status();
    EXPECT_EQ(*into->values.Read<int64_t>(), last);
    const std::vector<int64_t> few(values.begin(), values.begin() + 3 * kColumns);
    const auto from_here = client_.Reduce<int64_t>(few, {.op = Op::kMin, .axis = axis});
    ASSERT_TRUE(from_here.ok()) << from_here.status();
    EXPECT_EQ(from_here->values,
              client_.Reduce<int64_t>(array->Part(0, 3 * kColumns), {.op = Op::kMin, .axis = axis})->values);
    EXPECT_EQ(from_here->values.size(), axis.NumArrays(few.size()));
    const auto streamed = client_.Reduce<int64_t>(values, {.axis = axis});
    if (is_row) {
      ASSERT_TRUE(streamed.ok()) << streamed.status();
      EXPECT_EQ(streamed->values, last);
    } else {
      EXPECT_EQ(ErrorReason(streamed.status()), "AXIS_ON_STREAM");
    }
  }
}

TEST_F(ResidentTest, Keys) {
  const std::vector<int64_t> values = Values<int64_t>(300'000);
  std::vector<uint16_t> keys(values.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint16_t>(i * i / 70'000'000 % 5);
  std::vector<uint16_t> runs;
  std::vector<int64_t> sums, scanned;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool begins = i == 0 || keys[i] != keys[i - 1];
    if (begins) runs.push_back(keys[i]);
    if (begins) sums.push_back(0);
    sums.back() = static_cast<int64_t>(static_cast<uint64_t>(sums.back()) + static_cast<uint64_t>(values[i]));
    scanned.push_back(sums.back());
  }
  const auto array = client_.CreateArray<int64_t>(values);
  const auto names = client_.CreateArray<uint16_t>(keys);
  const auto reduced = client_.Reduce<int64_t>(array->Part(0, 1'000), {.keys = names->Part(0, 1'000)});
  ASSERT_TRUE(reduced.ok()) << reduced.status();
  EXPECT_EQ(reduced->values, std::vector<int64_t>({scanned[999]}));
  EXPECT_EQ(reduced->keys, "");
  const auto into = client_.ReduceInto<int64_t>(
      *array, NewArray{}, {.keys = ArrayPart(*names), .return_keys = true, .keys_to = NewArray{}});
  ASSERT_TRUE(into.ok()) << into.status();
  EXPECT_EQ(*into->values.Read<int64_t>(), sums);
  EXPECT_EQ(*into->keys.Read<uint16_t>(), runs);
  const auto scan = client_.ScanInto<int64_t>(*array, NewArray{}, {.keys = ArrayPart(*names)});
  ASSERT_TRUE(scan.ok()) << scan.status();
  EXPECT_EQ(*scan->values.Read<int64_t>(), scanned);

  const auto some = absl::MakeConstSpan(values).first(60'000);
  const auto here =
      client_.Reduce<int64_t>(some, {.keys = absl::MakeConstSpan(keys).first(some.size()), .return_keys = true});
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->values.back(), scanned[some.size() - 1]);
  EXPECT_EQ(here->KeysAs<uint16_t>(), std::vector<uint16_t>(runs.begin(), runs.begin() + here->values.size()));
  const auto scan_here = client_.Scan<int64_t>(some, {.keys = absl::MakeConstSpan(keys).first(some.size())});
  ASSERT_TRUE(scan_here.ok()) << scan_here.status();
  EXPECT_EQ(scan_here->values, std::vector<int64_t>(scanned.begin(), scanned.begin() + some.size()));
  EXPECT_EQ(ErrorReason(client_.Scan<int64_t>(some, {.keys = absl::MakeConstSpan(keys)}).status()), "KEYS_LENGTH");
}

TEST_F(ResidentTest, CompactsOfSegmentsAndByKeys) {
  const std::vector<int64_t> values = Values<int64_t>(60'000);
  const std::vector<uint64_t> offsets = {0, 0, 7, 1'000, 1'000, 50'003, values.size()};
  std::vector<uint8_t> keys(values.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint8_t>(i / 20'000);
  std::vector<uint64_t> counts(offsets.size() - 1), runs(3);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] <= 0) continue;
    ++counts[static_cast<size_t>(std::upper_bound(offsets.begin(), offsets.end(), i) - offsets.begin()) - 1];
    ++runs[i / 20'000];
  }
  const Where<int64_t> positive = {Comparison::kGreater, 0};
  const auto alone = client_.Compact<int64_t>(values, positive);
  const auto here = client_.Compact<int64_t>(values, positive, {.segments = absl::MakeConstSpan(offsets)});
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->values, alone->values);
  EXPECT_EQ(here->counts, counts);
  const auto by_keys = client_.Compact<int64_t>(values, positive, {.keys = absl::MakeConstSpan(keys)});
  ASSERT_TRUE(by_keys.ok()) << by_keys.status();
  EXPECT_EQ(by_keys->counts, runs);
  const auto array = client_.CreateArray<int64_t>(values);
  const auto names = client_.CreateArray<uint8_t>(keys);
  const auto resident = client_.Compact<int64_t>(*array, positive, {.keys = ArrayPart(*names)});
  ASSERT_TRUE(resident.ok()) << resident.status();
  EXPECT_EQ(resident->values, alone->values);
  EXPECT_EQ(resident->counts, runs);
  const auto into = client_.CompactInto<int64_t>(*array, positive, {.values = NewArray{}, .counts = NewArray{}},
                                                 {.segments = absl::MakeConstSpan(offsets)});
  ASSERT_TRUE(into.ok()) << into.status();
  EXPECT_EQ(*into->values.Read<int64_t>(), alone->values);
  EXPECT_EQ(*into->counts.Read<uint64_t>(), counts);
  const auto half = client_.CompactInto<int64_t>(*array, positive, {.values = NewArray{}}, {.keys = ArrayPart(*names)});
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ(half->segment_counts, runs);
}

TEST_F(ResidentTest, WhatIsSegmentedSaysHow) {
  const std::vector<float> values = {1, 2, 3};
  const std::vector<uint64_t> offsets = {0, 1, 3};
  const auto array = client_.CreateArray<float>(values);
  const auto cuts = client_.CreateArray<uint64_t>(offsets);
  std::string result;
  const auto sink = [&](Pieces elements, Pieces) {
    for (const std::string_view piece : elements) result.append(piece);
    return absl::OkStatus();
  };
  for (const Spec& spec : {Spec(ScanSpec{.segmented = true}), Spec(ReduceSpec{.segmented = true}),
                           Spec(CompactSpec{.predicate = Predicate{}, .segmented = true})}) {
    EXPECT_EQ(ErrorReason(client_.RunOnArrays(spec, {.values = *array}, sink).status()), "FIELD_CONFLICT");
    Spec whole = spec;
    std::visit(
        [](auto& one) {
          if constexpr (requires { one.segmented; }) one.segmented = false;
        },
        whole);
    EXPECT_EQ(ErrorReason(client_.RunOnArrays(whole, {.values = *array, .segments = ArrayPart(*cuts)}, sink).status()),
              "FIELD_CONFLICT");
    result.clear();
    const auto reply = client_.RunOnArrays(spec, {.values = *array, .segments = ArrayPart(*cuts)}, sink);
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(result.size(), (PrimitiveOf(spec) == Primitive::kReduce ? 2 : 3) * sizeof(float));
  }
}

TEST_F(ResidentTest, Segments) {
  const std::vector<int64_t> values = Values<int64_t>(300'000);
  const std::vector<uint64_t> offsets = {0, 0, 7, 1'000, 1'000, 200'003, values.size()};
  std::vector<int64_t> sums;
  for (size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
    uint64_t sum = 0;
    for (uint64_t i = offsets[segment]; i < offsets[segment + 1]; ++i) sum += static_cast<uint64_t>(values[i]);
    sums.push_back(static_cast<int64_t>(sum));
  }
  const auto array = client_.CreateArray<int64_t>(values);
  const auto cuts = client_.CreateArray<uint64_t>(offsets);
  for (const SegmentOffsets& segments :
       {SegmentOffsets(absl::MakeConstSpan(offsets)), SegmentOffsets(ArrayPart(*cuts))}) {
    const auto reduced = client_.Reduce<int64_t>(*array, {.segments = segments});
    ASSERT_TRUE(reduced.ok()) << reduced.status();
    EXPECT_EQ(reduced->values, sums);
    EXPECT_EQ(reduced->count, values.size());
    const auto into = client_.ReduceInto<int64_t>(*array, NewArray{}, {.segments = segments});
    ASSERT_TRUE(into.ok()) << into.status();
    EXPECT_EQ(*into->values.Read<int64_t>(), sums);
    EXPECT_EQ(ErrorReason(client_.Reduce<int64_t>(values, {.segments = segments}).status()), "SEGMENTS_ON_STREAM");
    EXPECT_EQ(ErrorReason(client_.Reduce<int64_t>(array->Part(0, 9), {.segments = segments}).status()),
              "SEGMENT_OFFSETS");
  }
  std::vector<int64_t> scanned;
  for (size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
    uint64_t sum = 0;
    for (uint64_t i = offsets[segment]; i < offsets[segment + 1]; ++i) {
      scanned.push_back(static_cast<int64_t>(sum += static_cast<uint64_t>(values[i])));
    }
  }
  for (const SegmentOffsets& segments :
       {SegmentOffsets(absl::MakeConstSpan(offsets)), SegmentOffsets(ArrayPart(*cuts))}) {
    const auto into = client_.ScanInto<int64_t>(*array, NewArray{}, {.segments = segments});
    ASSERT_TRUE(into.ok()) << into.status();
    EXPECT_EQ(*into->values.Read<int64_t>(), scanned);
    const auto undone = client_.DifferenceInto<int64_t>(into->values, NewArray{}, {.segments = segments});
    ASSERT_TRUE(undone.ok()) << undone.status();
    EXPECT_EQ(*undone->values.Read<int64_t>(), values);
    EXPECT_EQ(ErrorReason(client_.Difference<int64_t>(values, {.segments = segments}).status()), "SEGMENTS_ON_STREAM");
    EXPECT_EQ(ErrorReason(client_.Scan<int64_t>(*array, {.segments = segments}).status()), "SEGMENTS_ON_STREAM");
    EXPECT_EQ(ErrorReason(client_.Scan<int64_t>(values, {.segments = segments}).status()), "SEGMENTS_ON_STREAM");
    EXPECT_EQ(ErrorReason(client_.Scan<int64_t>(array->Part(0, 9), {.segments = segments}).status()),
              "SEGMENT_OFFSETS");
  }
  const std::vector<int64_t> few(values.begin(), values.begin() + 9);
  const std::vector<uint64_t> cuts_of_few = {0, 4, 4, 9};
  const auto from_here =
      client_.Reduce<int64_t>(few, {.op = Op::kMax, .init = -5, .segments = absl::MakeConstSpan(cuts_of_few)});
  ASSERT_TRUE(from_here.ok()) << from_here.status();
  EXPECT_EQ(from_here->values,
            (std::vector<int64_t>{std::max<int64_t>(-5, *std::max_element(few.begin(), few.begin() + 4)), -5,
                                  std::max<int64_t>(-5, *std::max_element(few.begin() + 4, few.end()))}));
  const auto scan_from_here =
      client_.Scan<int64_t>(few, {.op = Op::kMin, .reverse = true, .segments = absl::MakeConstSpan(cuts_of_few)});
  ASSERT_TRUE(scan_from_here.ok()) << scan_from_here.status();
  EXPECT_EQ(scan_from_here->values.front(), *std::min_element(few.begin(), few.begin() + 4));
  EXPECT_EQ(scan_from_here->values.back(), few.back());
  const auto difference_from_here =
      client_.Difference<int64_t>(few, {.init = 1, .segments = absl::MakeConstSpan(cuts_of_few)});
  ASSERT_TRUE(difference_from_here.ok()) << difference_from_here.status();
  EXPECT_EQ(difference_from_here->values[4], few[4] - 1);
  EXPECT_EQ(difference_from_here->values[5], few[5] - few[4]);
}

TEST_F(ResidentTest, WideSums) {
  const std::vector<double> values = {1e16, 1, -1e16, 0x1p-60};
  const std::vector<double> sums = {1e16, 1e16, 1, 1};
  const ScanOptions<double> wide = {.precision = Precision::kWide};
  const auto array = client_.CreateArray<double>(values);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(client_.Scan<double>(values, wide)->values, sums);
  EXPECT_EQ(client_.Scan<double>(*array, wide)->values, sums);
  EXPECT_EQ(client_.Scan<double>(values)->values[2], 0);
  EXPECT_EQ(client_.Reduce<double>(values, {.precision = Precision::kWide})->value, 1);
  EXPECT_EQ(client_.Reduce<double>(*array, {.precision = Precision::kWide})->value, 1);
  EXPECT_EQ(ErrorReason(client_.Reduce<double>(values, {.op = Op::kMax, .precision = Precision::kWide}).status()),
            "UNSUPPORTED_COMBINATION");
}

TEST_F(ResidentTest, LinearRecurrences) {
  const std::vector<double> values = Values<double>(300'000);
  std::vector<double> coefficients(values.size());
  for (size_t i = 0; i < coefficients.size(); ++i) coefficients[i] = std::cos(static_cast<double>(i));
  const auto array = client_.CreateArray<double>(values);
  const auto factors = client_.CreateArray<double>(coefficients);
  using Given = Coefficients<double>;
  const Given here = absl::MakeConstSpan(coefficients), there = ArrayPart(*factors);

  const auto whole = client_.Scan<double>(values, {.op = Op::kLinearRecurrence, .init = 3, .coefficients = here});
  ASSERT_TRUE(whole.ok()) << whole.status();
  double y = 3;
  for (size_t i = 0; i < values.size(); ++i) {
    y = coefficients[i] * y + values[i];
    ASSERT_NEAR(whole->values[i], y, 1e-9 * (1 + std::abs(y))) << i;
  }
  const ScanOptions<double> of_array = {.op = Op::kLinearRecurrence, .init = 3, .coefficients = there};
  EXPECT_EQ(client_.Scan<double>(values, of_array)->values, whole->values);
  EXPECT_EQ(client_.Scan<double>(*array, of_array)->values, whole->values);
  EXPECT_EQ(*client_.ScanInto<double>(*array, NewArray{}, of_array)->values.Read<double>(), whole->values);

  // In two parts, and the state between them.
  constexpr size_t kCut = 200'001;
  const auto factors_here = absl::MakeConstSpan(coefficients);
  ScanOptions<double> part = {.op = Op::kLinearRecurrence, .init = 3, .return_carry = true};
  part.coefficients = factors_here.first(kCut);
  const auto front = client_.Scan<double>(absl::MakeConstSpan(values).first(kCut), part);
  ASSERT_TRUE(front.ok()) << front.status();
  part.carry_in = front->carry;
  part.coefficients = factors_here.subspan(kCut);
  const auto back = client_.Scan<double>(absl::MakeConstSpan(values).subspan(kCut), part);
  ASSERT_TRUE(back.ok()) << back.status();
  std::vector<double> both = front->values;
  both.insert(both.end(), back->values.begin(), back->values.end());
  EXPECT_EQ(both, whole->values);

  // Each segment, run of keys and column on its own: of an array, and of a message.
  constexpr size_t kFew = 30'000, kColumns = 3;
  const std::vector<uint64_t> offsets = {0, 0, 7, 1'000, 1'000, kFew};
  std::vector<int32_t> keys(kFew);
  std::vector<double> by_offsets(kFew), by_columns(kFew);
  for (size_t i = 0; i < kFew; ++i) keys[i] = i < 7 ? 1 : i < 1'000 ? 2 : 3;
  const auto few = absl::MakeConstSpan(values).first(kFew);
  const auto of_few = factors_here.first(kFew);
  for (size_t i = 0; i < kFew; ++i) {
    const bool begins = i == 0 || i == 7 || i == 1'000;
    by_offsets[i] = of_few[i] * (begins ? 3 : by_offsets[i - 1]) + few[i];
    by_columns[i] = of_few[i] * (i < kColumns ? 3 : by_columns[i - kColumns]) + few[i];
  }
  const auto expect = [&](ScanOptions<double> options, const std::vector<double>& want) {
    options.op = Op::kLinearRecurrence;
    options.init = 3;
    options.coefficients = of_few;
    const auto of_message = client_.Scan<double>(few, options);
    ASSERT_TRUE(of_message.ok()) << of_message.status();
    for (size_t i = 0; i < kFew; ++i) ASSERT_NEAR(of_message->values[i], want[i], 1e-9 * (1 + std::abs(want[i]))) << i;
    const auto names = client_.CreateArray<int32_t>(keys);
    if (options.keys) options.keys = ArrayPart(*names);
    options.coefficients = factors->Part(0, kFew);
    const auto of_array = client_.ScanInto<double>(array->Part(0, kFew), NewArray{}, options);
    ASSERT_TRUE(of_array.ok()) << of_array.status();
    EXPECT_EQ(*of_array->values.Read<double>(), of_message->values);
  };
  expect({.segments = absl::MakeConstSpan(offsets)}, by_offsets);
  expect({.keys = absl::MakeConstSpan(keys)}, by_offsets);
  expect({.axis = Axis{.along = Axis::Along::kColumn, .row_items = kColumns}}, by_columns);

  // One coefficient for all is as many equal ones.
  const std::vector<double> equal(values.size(), 0.5);
  EXPECT_EQ(
      client_.Scan<double>(values, {.op = Op::kLinearRecurrence, .coefficient = 0.5})->values,
      client_.Scan<double>(values, {.op = Op::kLinearRecurrence, .coefficients = Given(absl::MakeConstSpan(equal))})
          ->values);

  const auto reason = [&](const auto& of, const ScanOptions<double>& options) {
    return ErrorReason(client_.Scan<double>(of, options).status());
  };
  EXPECT_EQ(reason(values, {.op = Op::kLinearRecurrence}), "FIELD_CONFLICT");
  EXPECT_EQ(reason(values, {.coefficient = 1}), "FIELD_CONFLICT");
  EXPECT_EQ(reason(*array, {.op = Op::kLinearRecurrence, .coefficients = here}), "FIELD_CONFLICT");
  EXPECT_EQ(reason(values, {.op = Op::kLinearRecurrence, .coefficients = Given(factors_here.first(kCut))}),
            "COEFFICIENTS_LENGTH");
  EXPECT_EQ(reason(values, {.op = Op::kLinearRecurrence, .coefficients = Given(factors->Part(0, kCut))}),
            "COEFFICIENTS_LENGTH");
}

TEST_F(ResidentTest, ExtremaWithTheirIndices) {
  std::vector<float> values = Values<float>(300'000);
  for (size_t i = 1; i < values.size(); i += 3) values[i] = values[i - 1];
  std::vector<float> maxima = values;
  std::vector<uint64_t> first(values.size()), last(values.size());
  for (size_t i = 1; i < values.size(); ++i) {
    maxima[i] = std::max(maxima[i - 1], values[i]);
    first[i] = maxima[i] == maxima[i - 1] ? first[i - 1] : i;
    last[i] = maxima[i] == values[i] ? i : last[i - 1];
  }
  const ScanOptions<float> of_first = {.op = Op::kMax, .return_indices = true};
  const ScanOptions<float> of_last = {.op = Op::kMax, .return_indices = true, .last_index = true};
  const auto array = client_.CreateArray<float>(values);
  const auto from_here = client_.Scan<float>(values, of_first);
  ASSERT_TRUE(from_here.ok()) << from_here.status();
  EXPECT_EQ(from_here->values, maxima);
  EXPECT_EQ(from_here->indices, first);
  const auto from_there = client_.Scan<float>(*array, of_last);
  ASSERT_TRUE(from_there.ok()) << from_there.status();
  EXPECT_EQ(from_there->values, maxima);
  EXPECT_EQ(from_there->indices, last);
  const auto into = client_.ScanInto<float>(*array, {.values = NewArray{}, .indices = NewArray{}}, of_first);
  ASSERT_TRUE(into.ok()) << into.status();
  EXPECT_EQ(*into->values.Read<float>(), maxima);
  EXPECT_EQ(*into->indices.Read<uint64_t>(), first);
  EXPECT_EQ(ErrorReason(client_.Scan<float>(values, {.return_indices = true}).status()), "UNSUPPORTED_COMBINATION");

  Program program;
  const auto scan = program.ScanExtrema(program.Input<float>(*array), of_last);
  program.Output(scan.values, NewArray{});
  program.Output(scan.indices, NewArray{});
  auto result = client_.Run(program);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result->TakeArray(scan.values)->Read<float>(), maxima);
  EXPECT_EQ(*result->TakeArray(scan.indices)->Read<uint64_t>(), last);
  Program without;
  const auto alone = without.ScanExtrema(without.Input<float>(*array), of_first);
  without.Output(alone.values, NewArray{});
  EXPECT_TRUE(client_.Run(without).ok());

  // Chunk by chunk, to a sink that takes both, and refused where it takes values alone.
  const ScanSpec spec = {.dtype = DType::kF32, .op = Op::kMax, .return_indices = true, .index_dtype = DType::kU32};
  auto stream = client_.OpenScan(spec);
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE((*stream)->Write({.values = AsBytes(absl::MakeConstSpan(values).first(1'000))}).ok());
  (*stream)->WritesDone();
  std::string indices;
  for (ScanReply reply; (*stream)->Read(&reply);) indices += reply.indices;
  EXPECT_TRUE((*stream)->Finish().ok());
  const std::vector<uint32_t> expected(first.begin(), first.begin() + 1'000);
  ASSERT_EQ(indices.size(), expected.size() * sizeof(uint32_t));
  EXPECT_EQ(std::memcmp(indices.data(), expected.data(), indices.size()), 0);
}

// What stands in front went through the conversion that results go through, too.
TEST_F(ResidentTest, WithTheInitialValueOfLogAddExp) {
  std::vector<float> values = Values<float>(1'001);
  for (float& value : values) value /= 64;
  for (const bool reverse : {false, true}) {
    ScanOptions<float> options = {.op = Op::kLogAddExp, .init = 0.3F, .reverse = reverse};
    std::vector<float> want = client_.Scan<float>(values, options)->values;
    options.kind = ScanKind::kExclusive;
    const std::vector<float> exclusive = client_.Scan<float>(values, options)->values;
    want.insert(reverse ? want.end() : want.begin(), reverse ? exclusive.back() : exclusive.front());
    options.include_initial = true;
    const auto got = client_.Scan<float>(values, options);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->values, want) << "reverse " << reverse;
    options.include_initial = false;
    options.init = std::nullopt;
    EXPECT_EQ(client_.Scan<float>(absl::MakeConstSpan(values).first(1), options)->values[0],
              -std::numeric_limits<float>::infinity());
  }
}

TEST_F(ResidentTest, WithTheInitialValue) {
  const std::vector<int32_t> values = Values<int32_t>(300'000);
  const std::vector<int32_t> few(values.begin(), values.begin() + 1'000);
  const auto array = client_.CreateArray<int32_t>(values);
  std::vector<int64_t> want = {7};
  for (const int32_t value : values) want.push_back(want.back() + value);
  const ScanOptions<int64_t> options = {.init = 7, .include_initial = true};
  const auto from_here = client_.Scan<int32_t, int64_t>(few, options);
  ASSERT_TRUE(from_here.ok()) << from_here.status();
  EXPECT_EQ(from_here->values, std::vector<int64_t>(want.begin(), want.begin() + 1'001));
  EXPECT_EQ((client_.Scan<int32_t, int64_t>(array->Part(0, 1'000), options)->values), from_here->values);
  const auto into = client_.ScanInto<int32_t, int64_t>(*array, NewArray{}, options);
  ASSERT_TRUE(into.ok()) << into.status();
  EXPECT_EQ(into->count, values.size() + 1);
  EXPECT_EQ(*into->values.Read<int64_t>(), want);
  const auto streamed = client_.Scan<int32_t, int64_t>(values, options);
  ASSERT_TRUE(streamed.ok()) << streamed.status();
  EXPECT_EQ(streamed->values, want);
  const auto of_array = client_.Scan<int32_t, int64_t>(*array, options);
  ASSERT_TRUE(of_array.ok()) << of_array.status();
  EXPECT_EQ(of_array->values, want);
  // A message's worth of elements has one result too many for a message.
  const size_t most = kMaxPayloadBytes / sizeof(int64_t);
  for (const size_t n : {most - 1, most, most + 1}) {
    const std::vector<int32_t> part(values.begin(), values.begin() + static_cast<ptrdiff_t>(n));
    const auto summed = client_.Scan<int32_t, int64_t>(part, options);
    ASSERT_TRUE(summed.ok()) << summed.status();
    EXPECT_EQ(summed->values, std::vector<int64_t>(want.begin(), want.begin() + static_cast<ptrdiff_t>(n + 1)));
  }
}

}  // namespace
}  // namespace prefixd::client
