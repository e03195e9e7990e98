// RunRequests, as JSON and as messages, to programs: what a right one becomes, and how a wrong one is refused.
#include "server/rpc/wire_program.h"

#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "base/status.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/array_message.h"
#include "server/program/plan.h"

namespace prefixd {
namespace {

v1::RunRequest FromJson(const std::string& json) {
  v1::RunRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &request);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request;
}

// The example in the comments of programs.proto.
std::string ExampleOfTheContract() {
  std::ifstream file(PREFIXD_PROTO_DIR "/prefixd/v1/programs.proto");
  std::string json;
  bool is_example = false;
  for (std::string line; std::getline(file, line);) {
    is_example = is_example || line == "//   {";
    if (is_example) json += line.substr(2) + "\n";
    if (line == "//   }") break;
  }
  return json;
}

TEST(WireProgram, TheExampleOfTheContractIsAProgram) {
  const absl::StatusOr<Program> program = FromWire(FromJson(ExampleOfTheContract()));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->steps.size(), 3u);
  EXPECT_EQ(OperationName(program->steps[0].operation), "compact");
  EXPECT_EQ(program->outputs[2].sink.to_make.lifetime.ttl, absl::Minutes(10));
  const absl::StatusOr<Plan> plan = MakePlan(*program, {.inputs = {{DType::kF32, 1 << 20}}, .sinks = {{}, {}, {}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->slots.size(), 5u);
  EXPECT_EQ(plan->peak_bytes, 2 * (uint64_t{4} << 20) + 4 * 256);
}

// Every step there is, and what else a request can have.
constexpr char kEverything[] = R"({
  "inputs": [
    {"name": "x", "dtype": "DTYPE_F32", "values": {"array": {"name": "arrays/1", "first_item": 5, "num_items": 8}}},
    {"name": "y", "dtype": "DTYPE_U8", "values": {"inline": {"data": "AQIDBAUGBwg="}}}
  ],
  "steps": [
    {"scan": {"spec": {"dtype": "DTYPE_F32", "op": "OP_SUM"}, "values": "x", "out": "a"}},
    {"reduce": {"spec": {"dtype": "DTYPE_F32", "op": "OP_MIN"}, "values": "a", "out": "b", "index_out": "b_at"}},
    {"compact": {"spec": {"dtype": "DTYPE_F32", "mask": "MASK_KIND_BYTES"}, "values": "a", "mask": "y", "out": "c",
                 "indices_out": "c_at", "count_out": "c_count"}},
    {"difference": {"spec": {"dtype": "DTYPE_F32"}, "values": "a", "out": "d"}},
    {"fill": {"dtype": "DTYPE_U32", "num_items": 8, "content": {"iota": {"start": {"int64_value": 2}}}, "out": "e"}},
    {"fill": {"dtype": "DTYPE_F32", "like": "c", "content": {"random": {"seed": 7, "first": 9}}, "out": "e_2"}},
    {"fill": {"dtype": "DTYPE_F32", "num_items": "8", "content": {"value": {"double_value": "NaN"}}, "out": "e_3"}},
    {"copy": {"values": "x", "out": "f"}},
    {"cast": {"values": "x", "dtype": "DTYPE_F64", "out": "g"}},
    {"affine": {"values": "x", "a": {"double_value": 0.5}, "b": {"int64_value": -1}, "out": "h"}},
    {"abs": {"values": "x", "out": "i"}},
    {"compare": {"values": "x", "predicate": {"comparison": "COMPARISON_LESS", "value": {"int64_value": 3}},
                 "out": "j"}},
    {"compare_arrays": {"left": "x", "comparison": "COMPARISON_EQUAL", "right": "a", "out": "k"}},
    {"add": {"left": "x", "right": "a", "out": "l1"}},
    {"subtract": {"left": "x", "right": "a", "out": "l2"}},
    {"multiply": {"left": "x", "right": "a", "out": "l3"}},
    {"divide": {"left": "x", "right": "a", "out": "l4"}},
    {"minimum": {"left": "x", "right": "a", "out": "l5"}},
    {"maximum": {"left": "x", "right": "a", "out": "l6"}},
    {"gather": {"values": "x", "indices": "e", "out": "m"}},
    {"scatter": {"values": "x", "indices": "e", "into": "a", "out": "n"}},
    {"transpose": {"values": "x", "num_rows": 2, "num_columns": 4, "out": "o"}}
  ],
  "outputs": [
    {"name": "b"}, {"name": "b_at", "sink": {"inline": {}}}, {"name": "c", "sink": {}},
    {"name": "c_at", "sink": {"new_array": {"lifetime": {"ttl": "1.5s", "renew_on_use": true}}}}, {"name": "c_count"},
    {"name": "d", "sink": {"array": {"name": "arrays/2", "first_item": 3}}}, {"name": "e_2"}, {"name": "e_3"},
    {"name": "f"}, {"name": "g"}, {"name": "h"}, {"name": "i"}, {"name": "j"}, {"name": "k"}, {"name": "l1"},
    {"name": "l2"}, {"name": "l3"}, {"name": "l4"}, {"name": "l5"}, {"name": "l6"}, {"name": "m"}, {"name": "n"},
    {"name": "o"}
  ]
})";

TEST(WireProgram, EveryStepAndOperandAndSinkIsDecoded) {
  const absl::StatusOr<Program> program = FromWire(FromJson(kEverything));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->inputs.size(), 2u);
  EXPECT_TRUE(std::get<ArraySlice>(program->inputs[0].values) ==
              (ArraySlice{.name = "arrays/1", .first_item = 5, .num_items = 8}));
  EXPECT_EQ(std::get<Payload>(program->inputs[1].values).ToString(), "\1\2\3\4\5\6\7\10");

  // Each step's name is that of its field: errors of the plan say it.
  const v1::RunRequest request = FromJson(kEverything);
  std::set<int> seen;
  ASSERT_EQ(program->steps.size(), static_cast<size_t>(request.steps_size()));
  for (int i = 0; i < request.steps_size(); ++i) {
    const int field = request.steps(i).operation_case();
    seen.insert(field);
    EXPECT_EQ(OperationName(program->steps[i].operation), v1::Step::descriptor()->FindFieldByNumber(field)->name());
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(v1::Step::descriptor()->field_count()));

  const std::vector<ProgramStep>& steps = program->steps;
  EXPECT_TRUE(steps[1].writes == (std::vector<NamedArray>{{Role::kOut, "b"}, {Role::kIndexOut, "b_at"}}));
  EXPECT_TRUE(steps[2].reads == (std::vector<NamedArray>{{Role::kValues, "a"}, {Role::kMask, "y"}}));
  EXPECT_TRUE(steps[2].writes ==
              (std::vector<NamedArray>{{Role::kOut, "c"}, {Role::kIndicesOut, "c_at"}, {Role::kCountOut, "c_count"}}));
  const auto& iota = std::get<FillSpec>(steps[4].operation);
  EXPECT_EQ(iota.value.As<uint32_t>(), 2u);
  EXPECT_EQ(iota.step.As<uint32_t>(), 1u);
  EXPECT_EQ(steps[4].num_items, 8u);
  EXPECT_TRUE(steps[5].reads == (std::vector<NamedArray>{{Role::kLike, "c"}}));
  EXPECT_EQ(std::get<FillSpec>(steps[5].operation).first, 9u);
  EXPECT_TRUE(steps[9].a == Number(0.5));
  EXPECT_TRUE(steps[9].b == Number(int64_t{-1}));
  EXPECT_TRUE(steps[11].a == Number(int64_t{3}));
  EXPECT_EQ(std::get<TransposeSpec>(steps[21].operation).num_columns, 4u);

  const auto& lifetime = program->outputs[3].sink.to_make.lifetime;
  EXPECT_EQ(lifetime.ttl, absl::Milliseconds(1500));
  EXPECT_TRUE(lifetime.renew_on_use);
  EXPECT_EQ(program->outputs[5].sink.kind, Sink::Kind::kArray);
  EXPECT_EQ(program->outputs[5].sink.array.name, "arrays/2");
  EXPECT_EQ(program->outputs[5].sink.array.first_item, 3u);
  EXPECT_EQ(program->outputs[0].sink.kind, Sink::Kind::kInline);
  EXPECT_EQ(program->outputs[2].sink.kind, Sink::Kind::kInline);

  ProgramArrays arrays = {.inputs = {{DType::kF32, 8}, {}}, .sinks = std::vector<SliceInfo>(23)};
  arrays.sinks[5] = {DType::kF32, 100};
  const absl::StatusOr<Plan> plan = MakePlan(*program, arrays);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[5].delivery, Delivery::kInPlace);
}

// ---- Errors
// ----------------------------------------------------------------------------------------------------------

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

v1::Step* StepOf(v1::RunRequest* request, int i) { return request->mutable_steps(i); }

TEST(WireProgram, AFaultIsNamedWithItsReasonAndPath) {
  using Request = v1::RunRequest;
  const auto expect = [](const std::function<void(Request*)>& change, absl::StatusCode code, std::string_view reason,
                         std::string_view field) {
    Request request = FromJson(kEverything);
    change(&request);
    const absl::Status status = FromWire(std::move(request)).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(ErrorReason(status), reason) << status;
    EXPECT_EQ(ErrorField(status), field) << status;
  };
  expect([](Request* r) { r->mutable_inputs(0)->clear_values(); }, kInvalid, "FIELD_CONFLICT", "inputs[0].values");
  expect([](Request* r) { r->mutable_inputs(0)->set_dtype(static_cast<v1::DType>(99)); }, kInvalid, "UNKNOWN_ENUM",
         "inputs[0].dtype");
  expect([](Request* r) { r->mutable_inputs(0)->mutable_values()->mutable_shared_memory(); }, kUnimplemented,
         "NOT_IMPLEMENTED", "inputs[0].values.shared_memory");
  expect([](Request* r) { r->mutable_inputs(0)->mutable_values()->mutable_device_memory(); }, kUnimplemented,
         "NOT_IMPLEMENTED", "inputs[0].values.device_memory");
  expect([](Request* r) { r->mutable_inputs(1)->mutable_values()->mutable_inline_()->set_first_item(1); }, kInvalid,
         "CHUNK_OUT_OF_ORDER", "inputs[1].values.inline.first_item");
  expect([](Request* r) { StepOf(r, 0)->Clear(); }, kInvalid, "FIELD_CONFLICT", "steps[0]");
  expect([](Request* r) { StepOf(r, 0)->mutable_scan()->clear_spec(); }, kInvalid, "SPEC_MISSING",
         "steps[0].scan.spec");
  expect([](Request* r) { StepOf(r, 0)->mutable_scan()->mutable_spec()->clear_dtype(); }, kInvalid, "UNKNOWN_ENUM",
         "steps[0].scan.spec.dtype");
  expect([](Request* r) { StepOf(r, 1)->mutable_reduce()->mutable_spec()->set_op(v1::OP_AND); }, kInvalid,
         "UNSUPPORTED_COMBINATION", "steps[1].reduce.spec.op");
  expect([](Request* r) { StepOf(r, 2)->mutable_compact()->mutable_spec()->set_omit_values(true); }, kInvalid,
         "FIELD_CONFLICT", "steps[2].compact.spec.omit_values");
  expect(
      [](Request* r) {
        StepOf(r, 2)->mutable_compact()->mutable_spec()->set_return_indices(true);
        StepOf(r, 2)->mutable_compact()->clear_indices_out();
      },
      kInvalid, "FIELD_CONFLICT", "steps[2].compact.spec.return_indices");
  expect([](Request* r) { StepOf(r, 4)->mutable_fill()->clear_content(); }, kInvalid, "FIELD_CONFLICT",
         "steps[4].fill.content");
  expect([](Request* r) { StepOf(r, 4)->mutable_fill()->clear_length(); }, kInvalid, "FIELD_CONFLICT",
         "steps[4].fill.num_items");
  expect([](Request* r) { StepOf(r, 4)->mutable_fill()->mutable_content()->mutable_iota()->mutable_step(); }, kInvalid,
         "FIELD_CONFLICT", "steps[4].fill.content.iota.step");
  expect([](Request* r) { StepOf(r, 4)->mutable_fill()->mutable_content()->mutable_value()->set_int64_value(-1); },
         kInvalid, "SCALAR_OUT_OF_RANGE", "steps[4].fill.content.value");
  expect([](Request* r) { StepOf(r, 8)->mutable_cast()->clear_dtype(); }, kInvalid, "UNKNOWN_ENUM",
         "steps[8].cast.dtype");
  expect([](Request* r) { StepOf(r, 9)->mutable_affine()->mutable_a()->Clear(); }, kInvalid, "FIELD_CONFLICT",
         "steps[9].affine.a");
  expect([](Request* r) { StepOf(r, 11)->mutable_compare()->clear_predicate(); }, kInvalid, "UNKNOWN_ENUM",
         "steps[11].compare.predicate.comparison");
  expect([](Request* r) { StepOf(r, 12)->mutable_compare_arrays()->clear_comparison(); }, kInvalid, "UNKNOWN_ENUM",
         "steps[12].compare_arrays.comparison");
  expect([](Request* r) { r->mutable_outputs(0)->mutable_sink()->mutable_shared_memory(); }, kUnimplemented,
         "NOT_IMPLEMENTED", "outputs[0].sink.shared_memory");
  expect([](Request* r) { r->mutable_outputs(0)->mutable_sink()->mutable_device_memory(); }, kUnimplemented,
         "NOT_IMPLEMENTED", "outputs[0].sink.device_memory");
  expect([](Request* r) { r->mutable_outputs(0)->mutable_sink()->mutable_new_array()->set_device_index(1); },
         kUnimplemented, "NOT_IMPLEMENTED", "outputs[0].sink.new_array.device_index");
  expect(
      [](Request* r) {
        r->mutable_outputs(0)->mutable_sink()->mutable_new_array()->mutable_lifetime()->mutable_ttl()->set_seconds(-1);
      },
      kInvalid, "LIFETIME", "outputs[0].sink.new_array.lifetime.ttl");
}

TEST(WireProgram, ARequestHasAtMostSoManyBytes) {
  const auto parse = [](size_t data_bytes) {
    v1::RunRequest request;
    request.add_inputs()->mutable_values()->mutable_inline_()->set_data(std::string(data_bytes, 'a'));
    const std::string bytes = request.SerializeAsString();
    const grpc::Slice slice(bytes);
    v1::RunRequest parsed;
    const absl::Status status = ParseMessage(grpc::ByteBuffer(&slice, 1), kMaxProgramBytes, &parsed);
    EXPECT_TRUE(!status.ok() || parsed.SerializeAsString() == bytes);
    return status;
  };
  EXPECT_TRUE(parse(kMaxProgramBytes - 100).ok());
  EXPECT_EQ(ErrorReason(parse(kMaxProgramBytes)), "MALFORMED");
  const grpc::Slice slice("\xff");
  v1::RunRequest parsed;
  EXPECT_EQ(ErrorReason(ParseMessage(grpc::ByteBuffer(&slice, 1), kMaxProgramBytes, &parsed)), "MALFORMED");
}

}  // namespace
}  // namespace prefixd
