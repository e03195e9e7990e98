// Programs that C++ writes, against a fake server: what is sent, and what becomes of answers that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/client/array_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// A program with three outputs: two elements here, one array that is made, and a part of one.
class ProgramReplyTest : public ArrayTest {
 protected:
  ProgramReplyTest() {
    const auto x = program_.Input<int32_t>(array_.Part(1, 2));
    here_ = program_.Abs(x);
    made_ = program_.Cast<double>(x);
    placed_ = program_.Copy(x);
    program_.Output(here_);
    program_.Output(made_, NewArray{.lifetime = {.ttl = absl::Seconds(7)}});
    program_.Output(placed_, array_.Part(4, 2));
    server_.programs.run = [this](auto*, const v1::RunRequest& request, v1::RunResponse* response) {
      requests_.push_back(request);
      *response = Answer();
      spoil_(response);
      return grpc::Status::OK;
    };
  }

  v1::RunResponse Answer() const {
    v1::RunResponse answer;
    for (int i = 0; i < 3; ++i) answer.add_steps()->set_step(i);
    answer.mutable_steps(0)->set_kernel_ns(12);
    answer.mutable_steps(2)->set_num_bad_indices(34);
    answer.mutable_timing()->set_num_items(56);
    answer.set_peak_bytes(78);
    v1::ProgramResult* output = answer.add_outputs();
    output->set_name("abs_0");
    output->set_dtype(v1::DTYPE_I32);
    output->set_num_items(2);
    output->mutable_values()->mutable_inline_()->set_data(Data<int32_t>({5, 6}));
    output = answer.add_outputs();
    output->set_name("cast_1");
    output->set_dtype(v1::DTYPE_F64);
    output->set_num_items(2);
    output->mutable_values()->mutable_new_array()->set_name("arrays/made");
    output->mutable_values()->mutable_new_array()->set_dtype(v1::DTYPE_F64);
    output->mutable_values()->mutable_new_array()->set_num_items(2);
    output = answer.add_outputs();
    output->set_name("copy_2");
    output->set_dtype(v1::DTYPE_I32);
    output->set_num_items(2);
    output->mutable_values()->mutable_array()->set_name(array_.name());
    output->mutable_values()->mutable_array()->set_num_items(2);
    return answer;
  }

  Array array_ = Made(10);
  Program program_;
  Term<int32_t> here_;
  Term<double> made_;
  Term<int32_t> placed_;
  std::vector<v1::RunRequest> requests_;
  std::function<void(v1::RunResponse*)> spoil_ = [](v1::RunResponse*) {};
};

TEST_F(ProgramReplyTest, SaysWhatWasWrittenAndReadsWhatCame) {
  auto result = client_.Run(program_, {.request_id = "me"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(*result->Values(here_), ::testing::ElementsAre(5, 6));
  EXPECT_EQ(result->TakeArray(made_)->Release(), "arrays/made");
  EXPECT_EQ(result->NumItems(placed_).value_or(0), 2u);
  EXPECT_EQ(result->timing().num_items, 56u);
  EXPECT_EQ(result->peak_bytes(), 78u);
  ASSERT_THAT(result->steps(), SizeIs(3));
  EXPECT_EQ(result->steps()[0].kernel_ns, 12);
  EXPECT_EQ(result->steps()[1].kernel_ns, std::nullopt);
  EXPECT_EQ(result->steps()[2].num_bad_indices, 34u);

  ASSERT_THAT(requests_, SizeIs(1));
  const v1::RunRequest& request = requests_[0];
  EXPECT_EQ(request.request_id(), "me");
  ASSERT_THAT(request.inputs(), SizeIs(1));
  EXPECT_EQ(request.inputs(0).name(), "input_0");
  EXPECT_EQ(request.inputs(0).dtype(), v1::DTYPE_I32);
  EXPECT_EQ(request.inputs(0).values().array().name(), array_.name());
  EXPECT_EQ(request.inputs(0).values().array().first_item(), 1u);
  EXPECT_EQ(request.inputs(0).values().array().num_items(), 2u);
  ASSERT_THAT(request.outputs(), SizeIs(3));
  EXPECT_FALSE(request.outputs(0).has_sink());
  EXPECT_EQ(request.outputs(1).sink().new_array().lifetime().ttl().seconds(), 7);
  EXPECT_EQ(request.outputs(2).sink().array().first_item(), 4u);
}

TEST_F(ProgramReplyTest, AnAnswerThatIsNoneIsAnError) {
  using Spoil = std::function<void(v1::RunResponse*)>;
  const auto output = [](int i, std::function<void(v1::ProgramResult*)> spoil) -> Spoil {
    return [=](v1::RunResponse* response) { spoil(response->mutable_outputs(i)); };
  };
  const std::vector<std::pair<std::string, Spoil>> spoils = {
      {"no outputs", [](auto* response) { response->clear_outputs(); }},
      {"one output too few", [](auto* response) { response->mutable_outputs()->RemoveLast(); }},
      {"one output too many", [](auto* response) { response->add_outputs(); }},
      {"no steps", [](auto* response) { response->clear_steps(); }},
      {"nothing", [](auto* response) { response->Clear(); }},
      {"another order", [](auto* response) { response->mutable_outputs()->SwapElements(0, 2); }},
      {"no name", output(0, [](auto* result) { result->clear_name(); })},
      {"no type", output(0, [](auto* result) { result->clear_dtype(); })},
      {"another type", output(0, [](auto* result) { result->set_dtype(v1::DTYPE_U32); })},
      {"a type that nobody knows", output(0, [](auto* result) { result->set_dtype(static_cast<v1::DType>(99)); })},
      {"no values", output(0, [](auto* result) { result->clear_values(); })},
      {"no values, which are to be none", output(0,
                                                 [](auto* result) {
                                                   result->clear_values();
                                                   result->set_num_items(0);
                                                 })},
      {"no inline values", output(0, [](auto* result) { result->mutable_values()->mutable_new_array(); })},
      {"too few bytes",
       output(0, [](auto* result) { result->mutable_values()->mutable_inline_()->set_data(Data<int32_t>({5})); })},
      {"part of an element",
       output(0, [](auto* result) { result->mutable_values()->mutable_inline_()->set_data("123456789"); })},
      {"a number of elements whose bytes wrap",
       output(0, [](auto* result) { result->set_num_items((uint64_t{1} << 62) + 2); })},
      {"elements in place of an array",
       output(1, [](auto* result) { result->mutable_values()->mutable_inline_()->set_data("12345678"); })},
      {"an array of another type",
       output(1, [](auto* result) { result->mutable_values()->mutable_new_array()->set_dtype(v1::DTYPE_I64); })},
      {"an array of no type",
       output(1, [](auto* result) { result->mutable_values()->mutable_new_array()->clear_dtype(); })},
      {"an array of another length",
       output(1, [](auto* result) { result->mutable_values()->mutable_new_array()->set_num_items(3); })},
      {"a new array in place of the part",
       output(2, [](auto* result) { result->mutable_values()->mutable_new_array()->set_name("x"); })},
      {"another length of the part",
       output(2, [](auto* result) { result->mutable_values()->mutable_array()->clear_num_items(); })},
  };
  for (const auto& [what, spoil] : spoils) {
    SCOPED_TRACE(what);
    spoil_ = spoil;
    EXPECT_EQ(client_.Run(program_).status().code(), absl::StatusCode::kInternal) << client_.Run(program_).status();
  }
  spoil_ = [](v1::RunResponse*) {};
  EXPECT_TRUE(client_.Run(program_).ok());
}

// The error names the output, and the arrays of the others do not stay behind.
TEST_F(ProgramReplyTest, ArraysOfAnAnswerThatIsNoneAreDeleted) {
  std::vector<std::string> deletions;
  server_.arrays.before = [&](const std::string& method, const std::string&) {
    deletions.push_back(method);
    return grpc::Status::OK;
  };
  spoil_ = [](v1::RunResponse* response) { response->mutable_outputs(0)->set_dtype(v1::DTYPE_F32); };
  const absl::Status status = client_.Run(program_).status();
  server_.arrays.before = nullptr;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("outputs[0] of the server's reply, abs_0: it is not of type i32"));
  EXPECT_THAT(deletions, ::testing::ElementsAre("DeleteArray"));
}

// An output with another number of elements than a Value has.
TEST_F(ProgramReplyTest, AValueIsOneElement) {
  EXPECT_EQ(client_.Run(program_)->Value(here_).status().code(), absl::StatusCode::kFailedPrecondition);
  spoil_ = [](v1::RunResponse* response) {
    response->mutable_outputs(0)->set_num_items(0);
    response->mutable_outputs(0)->mutable_values()->mutable_inline_()->clear_data();
  };
  const auto empty = client_.Run(program_);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->Value(here_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(*empty->Values(here_), SizeIs(0));
}

TEST_F(ProgramReplyTest, IsNeverTriedAgainWhereItHasBegun) {
  int runs = 0;
  server_.programs.run = [&](auto...) {
    ++runs;
    return Unavailable();
  };
  EXPECT_EQ(client_.Run(program_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(runs, 1);
  server_.programs.run = [&](auto*, const v1::RunRequest&, v1::RunResponse* response) {
    if (++runs == 2) return DetailedError(grpc::StatusCode::UNAVAILABLE, "DRAINING", "stopping");
    *response = Answer();
    return grpc::Status::OK;
  };
  EXPECT_TRUE(client_.Run(program_).ok());
  EXPECT_EQ(runs, 3);
}

TEST_F(ProgramReplyTest, EndsInTime) {
  server_.programs.run = [](grpc::ServerContext* context, auto&&...) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  const absl::Status status = client_.Run(program_, {.timeout = absl::Milliseconds(50)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  Cancellation cancellation;
  server_.programs.run = [&](grpc::ServerContext* context, auto&&...) {
    cancellation.Cancel();
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  EXPECT_EQ(client_.Run(program_, {.cancellation = &cancellation}).status().code(), absl::StatusCode::kCancelled);
}

// What is not to be sent is not.
TEST_F(ProgramReplyTest, AMistakeIsToldBeforeAnythingIsSent) {
  program_.Output(Term<float>());
  EXPECT_EQ(ErrorField(client_.Run(program_).status()), "outputs[3].name");
  Program inputs;
  Program steps;
  Program outputs;
  for (int i = 0; i < 65; ++i) {
    inputs.Input<int32_t>({1});
    steps.Fill<int32_t>(1, Constant<int32_t>(1));
  }
  const auto x = outputs.Fill<int32_t>(1, Constant<int32_t>(1));
  for (int i = 0; i < 65; ++i) outputs.Output(x);
  EXPECT_EQ(ErrorField(client_.Run(inputs).status()), "inputs");
  EXPECT_EQ(ErrorField(client_.Run(steps).status()), "steps");
  EXPECT_EQ(ErrorField(client_.Run(outputs).status()), "outputs");
  Program bytes;
  bytes.Output(bytes.Abs(bytes.Input<int32_t>(Numbers(20'000))));
  EXPECT_EQ(ErrorReason(client_.Run(bytes).status()), "PROGRAM_SIZE");
  EXPECT_THAT(requests_, SizeIs(0));
}

}  // namespace
}  // namespace prefixd::client
