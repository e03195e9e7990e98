// Programs that C++ writes, against a real server in this process: each step does what a plain loop does, whatever is
// used of what it makes and wherever that goes, and a mistake is an error that says where.
#include "client/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "tests/client/resident_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ProgramTest : public ResidentTest {
 protected:
  void SetUp() override {
    const char* const text = std::getenv("PREFIXD_TEST_SEED");
    const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
    std::printf("PREFIXD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    random_.seed(seed);
  }

  // Whole numbers, so that floats have no roundings in which a loop and a tree differ.
  template <class T>
  std::vector<T> Values(size_t count, int low = -50, int high = 50) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(std::uniform_int_distribution<int>(low, high)(random_));
    return values;
  }

  // An odd number of elements.
  size_t Count() { return 1 + 2 * std::uniform_int_distribution<size_t>(0, 700)(random_); }

  ProgramResult Run(const Program& program) {
    absl::StatusOr<ProgramResult> result = client_.Run(program);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {{}, {}, 0, {}};
    return *std::move(result);
  }

  // What is not there is an error of the test, and no crash.
  template <class T>
  static std::vector<T> ValuesOf(const ProgramResult& result, Term<T> term) {
    absl::StatusOr<std::vector<T>> values = result.Values(term);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *std::move(values) : std::vector<T>();
  }

  template <class T>
  Array Uploaded(const std::vector<T>& values) {
    absl::StatusOr<Array> array = client_.CreateArray<T>(values);
    EXPECT_TRUE(array.ok()) << array.status();
    return array.ok() ? *std::move(array) : Array();
  }

  absl::Status RunStatus(const Program& program) { return client_.Run(program).status(); }

  std::mt19937_64 random_;
};

// Each element from those of one or two arrays.
template <class Out, class T, class F>
std::vector<Out> Map(const std::vector<T>& values, F f) {
  std::vector<Out> out;
  for (const T& value : values) out.push_back(static_cast<Out>(f(value)));
  return out;
}
template <class Out, class T, class F>
std::vector<Out> Map(const std::vector<T>& left, const std::vector<T>& right, F f) {
  std::vector<Out> out;
  for (size_t i = 0; i < left.size(); ++i) out.push_back(static_cast<Out>(f(left[i], right[i])));
  return out;
}

// ---- Steps ---------------------------------------------------------------------------------------------------------
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

TEST_F(ProgramTest, ComparisonsWithoutAValue) {
  Program program;
  const auto x = program.Input<float>({1.0f, NAN, INFINITY});
  const auto is_nan = program.Compare(x, {Comparison::kIsNan});
  const auto finite = program.Compact(x, {Comparison::kIsFinite});
  program.Output(is_nan);
  program.Output(finite.values);
  const ProgramResult result = Run(program);
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

// ---- Where results go, and runs ------------------------------------------------------------------------------------
TEST_F(ProgramTest, OutputsGoWhereTheyAreToGo) {
  const auto values = Values<float>(Count());
  const Array array = Uploaded(values);
  const Array other = Uploaded(std::vector<float>(values.size() + 20, 9));
  Program program;
  const auto x = program.Input<float>(array);
  const auto twice = program.Affine(x, 2, 0);
  const auto negative = program.Affine(x, -1, 0);
  const auto positive = program.Compact(x, {Comparison::kGreater, 0});
  program.Output(twice, array);  // In place: the steps behind still read the old elements.
  program.Output(negative, other.Part(8));
  program.Output(positive.values, NewArray{.lifetime = {.ttl = absl::Minutes(3)}});
  ProgramResult result = Run(program);

  EXPECT_EQ(*array.Read<float>(), Map<float>(values, [](float v) { return 2 * v; }));
  std::vector<float> expected(values.size() + 20, 9);
  for (size_t i = 0; i < values.size(); ++i) expected[8 + i] = -values[i];
  EXPECT_EQ(*other.Read<float>(), expected);
  std::vector<float> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), [](float v) { return v > 0; });
  EXPECT_EQ(result.NumItems(positive.values).value_or(-1), kept.size());
  EXPECT_EQ(result.NumItems(negative).value_or(-1), values.size());
  EXPECT_EQ(result.Value(twice).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(result.Values(positive.values).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(result.TakeArray(twice).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.TakeArray(twice).status().message()), HasSubstr("no array was made for affine_0"));
  std::string name;
  {
    const absl::StatusOr<Array> made = result.TakeArray(positive.values);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->info().ttl, absl::Minutes(3));
    EXPECT_EQ(*made->Read<float>(), kept);
    name = made->name();
    EXPECT_EQ(result.TakeArray(positive.values).status().code(), absl::StatusCode::kFailedPrecondition);
    // It can be an input of other programs.
    Program next;
    const auto again = next.Copy(next.Input<float>(*made));
    next.Output(again);
    EXPECT_EQ(ValuesOf(Run(next), again), kept);
  }
  EXPECT_EQ(ErrorReason(client_.BorrowArray(name).status()), "ARRAY_EXPIRED");
}

TEST_F(ProgramTest, AnArrayThatIsNotTakenGoesWithTheResult) {
  Program program;
  const auto x = program.Fill<int32_t>(5, Iota<int32_t>());
  program.Output(x, NewArray{});
  std::string name;
  {
    ProgramResult result = Run(program);
    Array array = *result.TakeArray(x);  // It knows its server, though the program had no arrays.
    EXPECT_THAT(*array.Read<int32_t>(), ElementsAre(0, 1, 2, 3, 4));
    name = array.Release();
  }
  EXPECT_TRUE(client_.BorrowArray(name).ok());
  EXPECT_TRUE(client_.DeleteArray(name).ok());
}

TEST_F(ProgramTest, RunsAnyNumberOfTimes) {
  const Array array = Uploaded<int64_t>({1, 2, 3});
  Program made;
  const auto x = made.Input<int64_t>(array.Part(0, 3));
  const auto sums = made.Scan(x);
  const auto total = made.Reduce(x);
  made.Output(sums, array);
  made.Output(total.value);
  const Program program = std::move(made);  // Its terms go along.
  const ProgramResult first = Run(program);
  const ProgramResult second = Run(program);
  EXPECT_EQ(first.Value(total.value).value_or(-1), 6);
  EXPECT_EQ(second.Value(total.value).value_or(-1), 10);
  EXPECT_THAT(*array.Read<int64_t>(), ElementsAre(1, 4, 10));
  EXPECT_EQ(ErrorReason(RunStatus(made)), "PROGRAM_SIZE");  // NOLINT(bugprone-use-after-move): it has no steps.
  // A program goes on after it ran.
  Program more;
  const auto one = more.Fill<uint16_t>(3, Constant<uint16_t>(1));
  more.Output(one);
  EXPECT_THAT(ValuesOf(Run(more), one), ElementsAre(1, 1, 1));
  const auto two = more.Add(one, one);
  more.Output(two);
  EXPECT_THAT(ValuesOf(Run(more), two), ElementsAre(2, 2, 2));
}

TEST_F(ProgramTest, ThreadsShareAProgram) {
  const Array array = Uploaded(Values<int32_t>(777));
  Program program;
  const auto sums = program.Scan(program.Input<int32_t>(array));
  program.Output(sums);
  program.Output(program.Copy(sums), NewArray{});
  const std::vector<int32_t> expected = ValuesOf(Run(program), sums);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 10; ++turn) EXPECT_EQ(ValuesOf(Run(program), sums), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ProgramTest, TellsWhatItTook) {
  const auto values = Values<int32_t>(999);
  const Array array = Uploaded(values);
  Program program;
  const auto x = program.Input<int32_t>(array);
  program.Output(program.Scan(program.Abs(x)));
  const ProgramResult result = Run(program);
  ASSERT_THAT(result.steps(), SizeIs(2));
  EXPECT_EQ(result.steps()[0].num_items, 999u);
  EXPECT_EQ(result.steps()[0].num_bytes, 2u * 4 * 999);
  EXPECT_GT(result.steps()[1].launches, 0u);
  EXPECT_NE(result.steps()[1].algorithm, Algorithm{});
  EXPECT_EQ(result.timing().num_items, 2u * 999);
  EXPECT_FALSE(result.timing().device.empty());
  EXPECT_GE(result.peak_bytes(), 2u * 4 * 999);
}

TEST_F(ProgramTest, GoesToTheServerOfItsArrays) {
  const Array array = Uploaded<int32_t>({5, 6});
  Program program;
  const auto x = program.Copy(program.Input<int32_t>(array));
  program.Output(x);
  Client other("127.0.0.1:1", {.retry_window = absl::ZeroDuration()});
  const auto result = other.Run(program);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ValuesOf(*result, x), ElementsAre(5, 6));
  Program without;
  without.Output(without.Fill<int32_t>(1, Constant<int32_t>(1)));
  EXPECT_EQ(other.Run(without).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ProgramTest, CanBeCancelled) {
  Program program;
  program.Output(program.Fill<int32_t>(1, Constant<int32_t>(1)));
  Cancellation cancellation;
  cancellation.Cancel();
  EXPECT_EQ(client_.Run(program, {.cancellation = &cancellation}).status().code(), absl::StatusCode::kCancelled);
}

// ---- Mistakes ------------------------------------------------------------------------------------------------------
TEST_F(ProgramTest, TermsAreOfTheirProgram) {
  Program other;
  const auto foreign = other.Input<int32_t>({1, 2});
  for (const Term<int32_t> wrong : {foreign, Term<int32_t>()}) {
    Program program;
    const auto x = program.Input<int32_t>({1, 2});
    program.Output(program.Abs(x));
    program.Output(program.Add(x, wrong));
    program.Output(program.Abs(Term<int32_t>()));  // Is not what Run tells of.
    const absl::Status status = RunStatus(program);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorReason(status), "FIELD_CONFLICT");
    EXPECT_EQ(ErrorField(status), "steps[1].add.right");
  }
  Program both_wrong;
  both_wrong.Output(both_wrong.Add(foreign, foreign));
  EXPECT_EQ(ErrorField(RunStatus(both_wrong)), "steps[0].add.left");  // The first.
  Program program;
  const auto x = program.Abs(program.Input<int32_t>({1, 2}));
  program.Output(x);
  const ProgramResult result = Run(program);
  EXPECT_EQ(ErrorReason(result.Values(other.Abs(foreign)).status()), "FIELD_CONFLICT");  // It has the same number as x.
  EXPECT_EQ(ErrorReason(result.NumItems(Term<int32_t>()).status()), "FIELD_CONFLICT");
  program.Output(foreign);
  EXPECT_EQ(ErrorField(RunStatus(program)), "outputs[1].name");
  EXPECT_EQ(result.Value(x).status().code(), absl::StatusCode::kFailedPrecondition);  // It has two elements.
}

TEST_F(ProgramTest, AStepScansAllOfItsArray) {
  for (const bool comes_in : {false, true}) {
    ScanOptions<int32_t> options = {.return_carry = !comes_in};
    if (comes_in) options.carry_in = Carry::FromBytes("1");
    Program program;
    const auto x = program.Input<int32_t>({1, 2});
    program.Output(program.Scan(program.Abs(x), options));
    EXPECT_EQ(ErrorReason(RunStatus(program)), "FIELD_CONFLICT");
    EXPECT_EQ(ErrorField(RunStatus(program)), comes_in ? "steps[1].scan.carry_in" : "steps[1].scan.return_carry");
  }
}

TEST_F(ProgramTest, ArraysAreOfOneClientAndThere) {
  const Array array = Uploaded<int32_t>({1, 2});
  Client other(Address());
  const auto foreign = other.CreateArray<int32_t>(std::vector<int32_t>{3, 4});
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  {
    Program program;
    const auto x = program.Input<int32_t>(array);
    program.Output(program.Add(x, program.Input<int32_t>(*foreign)));
    EXPECT_EQ(ErrorReason(RunStatus(program)), "FIELD_CONFLICT");
    EXPECT_EQ(ErrorField(RunStatus(program)), "inputs[1].values.array");
  }
  {
    Program program;
    program.Output(program.Abs(program.Input<int32_t>(array)), *foreign);
    EXPECT_EQ(ErrorField(RunStatus(program)), "outputs[0].sink.array");
  }
  for (const bool as_input : {false, true}) {
    Program program;
    const auto x = program.Input<int32_t>(as_input ? Array() : array.Part(0));
    program.Output(program.Abs(x), Array());
    EXPECT_EQ(RunStatus(program).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(RunStatus(program).message()),
                HasSubstr(as_input ? "inputs[0].values.array" : "outputs[0].sink.array"));
  }
}

TEST_F(ProgramTest, HasLimits) {
  EXPECT_EQ(ErrorReason(RunStatus(Program())), "PROGRAM_SIZE");
  Program program;
  const auto x = program.Input<int32_t>({1});
  auto last = x;
  std::vector<Term<int32_t>> terms;
  for (int i = 0; i < 64; ++i) terms.push_back(last = program.Add(last, x));
  for (const auto term : terms) program.Output(term);
  EXPECT_EQ(Run(program).Value(last).value_or(-1), 65);
  program.Output(last);
  EXPECT_EQ(ErrorField(RunStatus(program)), "outputs");

  Program steps;
  const auto y = steps.Input<int32_t>({1});
  for (int i = 0; i < 65; ++i) steps.Output(steps.Abs(y));
  EXPECT_EQ(ErrorReason(RunStatus(steps)), "PROGRAM_SIZE");
  EXPECT_EQ(ErrorField(RunStatus(steps)), "steps");

  Program inputs;
  for (int i = 0; i < 65; ++i) inputs.Input<int32_t>({1});
  inputs.Output(inputs.Fill<int32_t>(1, Constant<int32_t>(1)));
  EXPECT_EQ(ErrorField(RunStatus(inputs)), "inputs");

  Program bytes;
  bytes.Output(bytes.Abs(bytes.Input<int32_t>(std::vector<int32_t>(16384))));
  EXPECT_EQ(ErrorReason(RunStatus(bytes)), "PROGRAM_SIZE");
  EXPECT_THAT(std::string(RunStatus(bytes).message()), HasSubstr("65536"));
  Program fewer_bytes;
  fewer_bytes.Output(fewer_bytes.Reduce(fewer_bytes.Input<int32_t>(std::vector<int32_t>(16300))).value);
  EXPECT_TRUE(RunStatus(fewer_bytes).ok()) << RunStatus(fewer_bytes);
}

TEST_F(ProgramTest, AFillIsOfItsType) {
  Program program;
  program.Output(program.Abs(program.Input<int32_t>({1, 2})));
  program.Output(program.Fill<int32_t>(3, Constant(1.0f)));
  EXPECT_EQ(ErrorReason(RunStatus(program)), "PROGRAM_TYPE");
  EXPECT_EQ(ErrorField(RunStatus(program)), "steps[1].fill.content");
}

// The server's errors have the names and numbers of what was written.
TEST_F(ProgramTest, TheServersErrorsSayWhere) {
  const Array array = Uploaded<int32_t>({1, 2, 3});
  {
    Program program;  // Nothing reads the sums.
    const auto x = program.Input<int32_t>(array);
    program.Output(program.Abs(x));
    program.Scan(x);
    EXPECT_EQ(ErrorReason(RunStatus(program)), "PROGRAM_NOT_READ");
    EXPECT_EQ(ErrorField(RunStatus(program)), "steps[1].scan.out");
    EXPECT_THAT(std::string(RunStatus(program).message()), HasSubstr("scan_1"));
  }
  {
    Program program;  // An array that is gone.
    program.Output(program.Abs(program.Input<int32_t>(Uploaded<int32_t>({1}))));
    EXPECT_EQ(ErrorReason(RunStatus(program)), "ARRAY_EXPIRED");
    EXPECT_EQ(ErrorField(RunStatus(program)), "inputs[0].values.array.name");
  }
  {
    Program program;  // Not the array's type.
    program.Output(program.Abs(program.Input<float>(array)));
    EXPECT_EQ(ErrorReason(RunStatus(program)), "ARRAY_TYPE");
    EXPECT_EQ(ErrorField(RunStatus(program)), "inputs[0].dtype");
  }
  {
    Program program;  // Lengths that nobody knows to be equal.
    const auto x = program.Input<int32_t>(array);
    const auto large = program.Compact(x, {Comparison::kGreater, 1});
    const auto small = program.Compact(x, {Comparison::kLess, 2});
    program.Output(program.Add(large.values, small.values));
    EXPECT_EQ(ErrorReason(RunStatus(program)), "PROGRAM_LENGTH");
    EXPECT_EQ(ErrorField(RunStatus(program)), "steps[2].add.left");
    EXPECT_THAT(std::string(RunStatus(program).message()), AllOf(HasSubstr("compact_0"), HasSubstr("compact_1")));
  }
  {
    Program program;  // Inputs are no outputs, and outputs are so once.
    const auto x = program.Input<int32_t>(array);
    program.Output(x);
    program.Output(program.Abs(x));
    EXPECT_EQ(ErrorReason(RunStatus(program)), "PROGRAM_NOT_WRITTEN");
  }
  {
    Program program;
    const auto x = program.Abs(program.Input<int32_t>(array));
    program.Output(x);
    program.Output(x, NewArray{});
    EXPECT_EQ(ErrorReason(RunStatus(program)), "PROGRAM_WRITTEN_TWICE");
  }
  {
    Program program;  // A sum has no place.
    const auto sum = program.Reduce(program.Input<int32_t>(array));
    program.Output(sum.value);
    program.Output(sum.index);
    EXPECT_EQ(ErrorField(RunStatus(program)), "steps[0].reduce.index_out");
  }
  {
    Program program;  // Nothing uses the selection.
    program.Compact(program.Input<int32_t>(array), {Comparison::kGreater, 1});
    EXPECT_EQ(ErrorField(RunStatus(program)), "steps[0].compact.out");
  }
}

}  // namespace
}  // namespace prefixd::client
