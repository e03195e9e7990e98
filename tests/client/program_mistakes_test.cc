// A mistake in a program is an error that says where.
#include "client/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/client.h"
#include "tests/client/program_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
