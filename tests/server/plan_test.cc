// What MakePlan makes of programs, what it refuses, and how it says so. random_plan_test.cc has programs of all kinds.
#include "server/program/plan.h"

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/naive_memory.h"
#include "tests/server/programs.h"

namespace prefixd {
namespace {

constexpr uint64_t kPlanItems = 1000;

// x, y of f32 and mask of u8, each of kPlanItems; outputs as new arrays.
Case CaseOf(std::vector<ProgramStep> steps, const std::vector<std::string>& outputs) {
  Case c;
  c.program.steps = std::move(steps);
  std::set<std::string> reads;
  for (const ProgramStep& step : c.program.steps) {
    for (const NamedArray& read : step.reads) reads.insert(read.name);
  }
  for (const auto& [name, dtype] : {std::pair{"x", DType::kF32}, {"y", DType::kF32}, {"mask", DType::kU8}}) {
    if (reads.count(name) == 0) continue;
    c.program.inputs.push_back(Slice(name));
    c.arrays.inputs.push_back({dtype, kPlanItems});
  }
  for (const std::string& name : outputs) c.program.outputs.push_back(New(name));
  c.arrays.sinks.resize(outputs.size());
  return c;
}

const Slot& SlotNamed(const Plan& plan, std::string_view name) {
  for (const Slot& slot : plan.slots) {
    if (slot.name == name) return slot;
  }
  ADD_FAILURE() << "no slot " << name;
  return plan.slots[0];
}

TEST(Plan, TypesLengthsAndDeathsOfAWholeProgram) {
  const Case c = CaseOf({CompactPositive("x", "positive"), One("positive", ScanSpec{}, "running"),
                         One("positive", ReduceSpec{.out_dtype = DType::kF64}, "total")},
                        {"running", "total"});
  const Plan plan = c.Planned().value();
  const Slot& positive = SlotNamed(plan, "positive");
  EXPECT_EQ(positive.length.max_items, kPlanItems);
  EXPECT_FALSE(positive.length.IsKnown());
  EXPECT_TRUE(SlotNamed(plan, "running").length == positive.length);
  EXPECT_EQ(SlotNamed(plan, "total").dtype, DType::kF64);
  EXPECT_TRUE(SlotNamed(plan, "total").length == Length{.max_items = 1});
  EXPECT_EQ(plan.steps[0].dead, std::vector<int>());
  EXPECT_EQ(plan.steps[2].dead, std::vector<int>{1});
  EXPECT_EQ(plan.outputs[0].delivery, Delivery::kShrink);
  EXPECT_EQ(plan.outputs[1].delivery, Delivery::kHandOver);
  EXPECT_EQ(plan.scratch_bytes, 2 * kMemoryUnitBytes);
  // Both arrays of 4,000 bytes and the total; the running total's copy comes only when `positive` is gone.
  EXPECT_EQ(plan.peak_bytes, 2 * 4096 + 256 + 2 * 256);
}

TEST(Plan, GlueTakesItsTypesFromWhatItReads) {
  ProgramStep affine = One("x", MapOf(MapOp::kAffine), "scaled");
  affine.b = int64_t{3};
  ProgramStep compare = One("scaled", MapOf(MapOp::kCompare), "small");
  compare.a = 2.5;
  const Plan plan = CaseOf({affine, compare, CompactByMask("scaled", "small", "kept")}, {"kept"}).Planned().value();
  const auto& map = std::get<MapSpec>(plan.steps[0].operation);
  EXPECT_EQ(map.dtype, DType::kF32);
  EXPECT_EQ(map.a.As<float>(), 1.0f);
  EXPECT_EQ(map.b.As<float>(), 3.0f);
  EXPECT_EQ(std::get<MapSpec>(plan.steps[1].operation).a.As<float>(), 2.5f);
  EXPECT_EQ(SlotNamed(plan, "small").dtype, DType::kU8);
}

TEST(Plan, ArraysOfOneSelectionAreEquallyLong) {
  EXPECT_TRUE(
      CaseOf({CompactByMask("x", "mask", "a"), CompactByMask("y", "mask", "b"), Two("a", "b", MapOp::kAdd, "c")}, {"c"})
          .Planned()
          .ok());
  // Indices and values of one compact, by a predicate.
  ProgramStep compact = CompactPositive("x", "a");
  compact.writes.push_back({Role::kIndicesOut, "at"});
  EXPECT_TRUE(CaseOf({compact, One("a", MapOf(MapOp::kAbs), "b"), FillOf(DType::kF32, 7, "zeros"),
                      ScatterInto("b", "at", "zeros", "c")},
                     {"c"})
                  .Planned()
                  .ok());
  ProgramStep inverted = CompactByMask("y", "mask", "b");
  std::get<CompactSpec>(inverted.operation).invert = true;
  for (const ProgramStep& other : {inverted, CompactPositive("y", "b"), One("y", CopySpec(), "b")}) {
    const absl::Status status =
        CaseOf({CompactByMask("x", "mask", "a"), other, Two("a", "b", MapOp::kAdd, "c")}, {"c"}).Planned().status();
    EXPECT_EQ(ErrorReason(status), "PROGRAM_LENGTH") << status;
  }
}

TEST(Plan, AMaskOfBitsSelectsNoMoreThanThereAreElements) {
  const auto plan = [](uint64_t num_x, uint64_t num_y) {
    Case c =
        CaseOf({CompactByMask("x", "mask", "a", MaskKind::kBits), CompactByMask("y", "mask", "b", MaskKind::kBits)},
               {"a", "b"});
    c.arrays.inputs = {{DType::kF32, num_x}, {DType::kF32, num_y}, {DType::kU8, 2}};
    return c.Planned();
  };
  EXPECT_EQ(plan(12, 12)->num_selections, 1);
  EXPECT_EQ(plan(12, 13)->num_selections, 2);  // The 13th element may be selected.
  EXPECT_EQ(ErrorReason(plan(17, 17).status()), "PROGRAM_LENGTH");
}

TEST(Plan, AScatterTakesOverWhatIsReadNoMore) {
  const auto takes_over = [](std::vector<ProgramStep> steps, const std::vector<std::string>& outputs) {
    const Case c = CaseOf(std::move(steps), outputs);
    const Plan plan = c.Planned().value();
    EXPECT_EQ(plan.peak_bytes, MaxOf(NaiveMemory(c.program, plan)));
    return plan.steps.back().takes_over;
  };
  const ProgramStep at = FillOf(DType::kU32, kPlanItems, "at");
  const ProgramStep zeros = FillOf(DType::kF32, 5, "zeros");
  EXPECT_TRUE(takes_over({at, zeros, ScatterInto("x", "at", "zeros", "z")}, {"z"}));
  EXPECT_FALSE(takes_over({at, zeros, ScatterInto("x", "at", "zeros", "z")}, {"z", "zeros"}));
  EXPECT_FALSE(takes_over({at, ScatterInto("x", "at", "y", "z")}, {"z"}));  // Another's array.
  EXPECT_FALSE(takes_over({at, ScatterInto("at", "at", "at", "z")}, {"z"}));
}

TEST(Plan, OutputsGoWhereTheyAreToGo) {
  Case c = CaseOf({One("x", CopySpec(), "a"), One("x", CopySpec(), "b"), CompactPositive("x", "c"),
                   CompactPositive("x", "d"), One("x", CopySpec(), "e")},
                  {});
  c.program.outputs = {{.name = "a", .sink = Into(ArraySlice{.name = "arrays/1"})},
                       {.name = "b", .sink = Into(ArraySlice{.name = "arrays/x"})},
                       {.name = "c", .sink = Into(ArraySlice{.name = "arrays/1", .first_item = kPlanItems})},
                       {.name = "d", .sink = Into(ArraySlice{.name = "arrays/2"})},
                       {.name = "e"}};
  c.arrays.sinks = {
      {DType::kF32, kPlanItems}, {DType::kF32, kPlanItems}, {DType::kF32, kPlanItems}, {DType::kF32, 3}, {}};
  const Plan plan = c.Planned().value();
  const Delivery wanted[] = {Delivery::kInPlace, Delivery::kCopy, Delivery::kInPlace, Delivery::kCopy,
                             Delivery::kInline};
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    EXPECT_EQ(plan.outputs[i].delivery, wanted[i]) << i;
    EXPECT_EQ(plan.slots[plan.outputs[i].slot].home == Home::kSink, wanted[i] == Delivery::kInPlace) << i;
  }
  EXPECT_EQ(plan.peak_bytes, 3 * 4096 + 2 * 256);
}

TEST(Plan, WhatIsNotKnownBeforeIsLeftToTheRun) {
  Case c = CaseOf({CompactPositive("x", "a")}, {"a"});
  c.arrays.inputs[0].num_items = uint64_t{1} << 33;
  c.program.steps[0].writes.push_back({Role::kIndicesOut, "at"});
  c.program.outputs = {{.name = "a"}, New("at")};
  c.arrays.sinks.resize(2);
  EXPECT_TRUE(c.Planned().ok());
}

// ---- Errors
// ----------------------------------------------------------------------------------------------------------

struct Refusal {
  const char* what;
  std::function<void(Case*)> change;  // Makes a program that is right wrong.
  const char* reason;
  const char* field;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

void PrintTo(const Refusal& refusal, std::ostream* os) { *os << refusal.what; }

class PlanRefuses : public testing::TestWithParam<Refusal> {};

Case RightProgram() {
  return CaseOf({One("x", ScanSpec{}, "a"), Two("a", "y", MapOp::kAdd, "b"), CompactByMask("b", "mask", "c")}, {"c"});
}

TEST_P(PlanRefuses, AndSaysWhereAndWhy) {
  Case c = RightProgram();
  ASSERT_TRUE(c.Planned().ok()) << c.Planned().status();
  GetParam().change(&c);
  const absl::Status status = c.Planned().status();
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_EQ(ErrorReason(status), GetParam().reason) << status;
  EXPECT_EQ(ErrorField(status), GetParam().field) << status;
  EXPECT_FALSE(status.message().empty());
}

ProgramStep ComparedBy(Comparison comparison) {
  ProgramStep step = Two("x", "y", MapOp::kCompareArrays, "z");
  std::get<MapSpec>(step.operation).comparison = comparison;
  return step;
}

// Another last step, of the same output.
std::function<void(Case*)> Last(ProgramStep step) {
  return [step = std::move(step)](Case* c) { c->program.steps.push_back(step); };
}
template <class S>
S& SpecOf(Case* c, size_t step) {
  return std::get<S>(c->program.steps[step].operation);
}

const Refusal kRefusals[] = {
    {"a name in capitals", [](Case* c) { c->program.inputs[0].name = "X"; }, "PROGRAM_NAME", "inputs[0].name"},
    {"no name", [](Case* c) { c->program.steps[0].writes[0].name = ""; }, "PROGRAM_NAME", "steps[0].scan.out"},
    {"a long name", [](Case* c) { c->program.steps[1].reads[1].name = std::string(33, 'a'); }, "PROGRAM_NAME",
     "steps[1].add.right"},
    {"a name that is written twice", [](Case* c) { c->program.steps[1].writes[0].name = "a"; }, "PROGRAM_WRITTEN_TWICE",
     "steps[1].add.out"},
    {"a step that writes an input", [](Case* c) { c->program.steps[1].writes[0].name = "x"; }, "PROGRAM_WRITTEN_TWICE",
     "steps[1].add.out"},
    {"two inputs of one name", [](Case* c) { c->program.inputs[1].name = "x"; }, "PROGRAM_WRITTEN_TWICE",
     "inputs[1].name"},
    {"an output twice",
     [](Case* c) {
       c->program.outputs.push_back(New("c"));
       c->arrays.sinks.resize(2);
     },
     "PROGRAM_WRITTEN_TWICE", "outputs[1].name"},
    {"a name that nothing writes", [](Case* c) { c->program.steps[0].reads[0].name = "z"; }, "PROGRAM_NOT_WRITTEN",
     "steps[0].scan.values"},
    {"a cycle", [](Case* c) { c->program.steps[0].reads[0].name = "b"; }, "PROGRAM_NOT_WRITTEN",
     "steps[0].scan.values"},
    {"a step that reads what it writes", [](Case* c) { c->program.steps[1].reads[1].name = "b"; },
     "PROGRAM_NOT_WRITTEN", "steps[1].add.right"},
    {"an output that nothing writes", [](Case* c) { c->program.outputs[0].name = "z"; }, "PROGRAM_NOT_WRITTEN",
     "outputs[0].name"},
    {"an output that is an input", [](Case* c) { c->program.outputs[0].name = "x"; }, "PROGRAM_NOT_WRITTEN",
     "outputs[0].name"},
    {"a result that nobody reads", Last(One("x", CopySpec(), "z")), "PROGRAM_NOT_READ", "steps[3].copy.out"},
    {"an input that nobody reads",
     [](Case* c) {
       c->program.inputs.push_back(Slice("z"));
       c->arrays.inputs.push_back({DType::kF32, 1});
     },
     "PROGRAM_NOT_READ", "inputs[3].name"},
    {"values of another type", [](Case* c) { SpecOf<ScanSpec>(c, 0).dtype = DType::kI32; }, "PROGRAM_TYPE",
     "steps[0].scan.values"},
    {"two arrays of two types", [](Case* c) { c->arrays.inputs[1].dtype = DType::kF64; }, "PROGRAM_TYPE",
     "steps[1].add.left"},
    {"a mask that is none", [](Case* c) { c->arrays.inputs[2].dtype = DType::kI8; }, "PROGRAM_TYPE",
     "steps[2].compact.mask"},
    {"indices that are none", Last(GatherFrom("x", "y", "z")), "PROGRAM_TYPE", "steps[3].gather.indices"},
    {"arrays of two lengths", [](Case* c) { --c->arrays.inputs[1].num_items; }, "PROGRAM_LENGTH", "steps[1].add.left"},
    {"a mask that is too short", [](Case* c) { --c->arrays.inputs[2].num_items; }, "PROGRAM_LENGTH",
     "steps[2].compact.mask"},
    {"a mask of bits that is too long", [](Case* c) { SpecOf<CompactSpec>(c, 2).mask_kind = MaskKind::kBits; },
     "PROGRAM_LENGTH", "steps[2].compact.mask"},
    {"lengths that may differ", Last(Two("c", "x", MapOp::kMinimum, "z")), "PROGRAM_LENGTH", "steps[3].minimum.left"},
    {"rows and columns of another number", Last(TransposeOf("x", 10, 10, "z")), "PROGRAM_LENGTH",
     "steps[3].transpose.values"},
    {"rows and columns beyond 2^64", Last(TransposeOf("x", uint64_t{1} << 33, uint64_t{1} << 33, "z")), "PROGRAM_SIZE",
     "steps[3].transpose.num_rows"},
    {"an array beyond 2^64 bytes", Last(FillOf(DType::kF32, uint64_t{1} << 62, "z")), "PROGRAM_SIZE",
     "steps[3].fill.out"},
    {"arrays beyond 2^64 bytes together",
     [](Case* c) {
       for (const char* name : {"z1", "z2"}) {
         c->program.steps.push_back(FillOf(DType::kU8, uint64_t{1} << 63, name));
         c->program.outputs.push_back(New(name));
       }
       c->arrays.sinks.resize(3);
     },
     "PROGRAM_SIZE", "steps"},
    {"no steps", [](Case* c) { c->program.steps.clear(); }, "PROGRAM_SIZE", "steps"},
    {"too many steps", [](Case* c) { c->program.steps.resize(65); }, "PROGRAM_SIZE", "steps"},
    {"too many inputs", [](Case* c) { c->program.inputs.resize(65); }, "PROGRAM_SIZE", "inputs"},
    {"too many outputs", [](Case* c) { c->program.outputs.resize(65); }, "PROGRAM_SIZE", "outputs"},
    {"random items beyond the stream's end",
     [](Case* c) {
       ProgramStep fill = FillOf(DType::kF32, 2, "z");
       std::get<FillSpec>(fill.operation).kind = FillKind::kRandom;
       std::get<FillSpec>(fill.operation).first = ~uint64_t{0};
       c->program.steps.push_back(fill);
     },
     "PROGRAM_SIZE", "steps[3].fill.content.random.first"},
    {"an operator that floats don't have", [](Case* c) { SpecOf<ScanSpec>(c, 0).op = Op::kXor; },
     "UNSUPPORTED_COMBINATION", "steps[0].scan.spec.op"},
    {"a declared length", [](Case* c) { SpecOf<ScanSpec>(c, 0).num_items = kPlanItems; }, "FIELD_CONFLICT",
     "steps[0].scan.spec.num_items"},
    {"no mask", [](Case* c) { c->program.steps[2].reads.pop_back(); }, "FIELD_CONFLICT", "steps[2].compact.mask"},
    {"a mask beside a predicate", [](Case* c) { SpecOf<CompactSpec>(c, 2).predicate = Predicate(); }, "FIELD_CONFLICT",
     "steps[2].compact.mask"},
    {"a compact of nothing", [](Case* c) { c->program.steps[2].writes.clear(); }, "FIELD_CONFLICT",
     "steps[2].compact.out"},
    {"the index of a sum",
     [](Case* c) {
       c->program.steps.push_back(One("x", ReduceSpec{}, "z"));
       c->program.steps.back().writes.push_back({Role::kIndexOut, "at"});
     },
     "FIELD_CONFLICT", "steps[3].reduce.index_out"},
    {"a comparison without a value", Last(One("x", MapOf(MapOp::kCompare), "z")), "FIELD_CONFLICT",
     "steps[3].compare.predicate.value"},
    {"a range without an end",
     [](Case* c) {
       MapSpec range = MapOf(MapOp::kCompare);
       range.comparison = Comparison::kInRange;
       c->program.steps.push_back(One("x", range, "z"));
       c->program.steps.back().a = int64_t{1};
     },
     "FIELD_CONFLICT", "steps[3].compare.predicate.end"},
    {"a comparison of two arrays with a range", Last(ComparedBy(Comparison::kInRange)), "FIELD_CONFLICT",
     "steps[3].compare_arrays.comparison"},
    {"a comparison of two arrays that looks at one", Last(ComparedBy(Comparison::kIsNan)), "FIELD_CONFLICT",
     "steps[3].compare_arrays.comparison"},
    {"inline elements without a type", [](Case* c) { c->program.inputs[0].values = Payload(std::string(4000, 'a')); },
     "FIELD_CONFLICT", "inputs[0].dtype"},
    {"half an inline element",
     [](Case* c) {
       c->program.inputs[0].values = Payload(std::string(3999, 'a'));
       c->program.inputs[0].dtype = DType::kF32;
     },
     "LENGTH_NOT_MULTIPLE", "inputs[0].values.inline.data"},
    {"a factor that is no integer",
     [](Case* c) {
       ProgramStep step = One("mask", MapOf(MapOp::kAffine), "z");
       step.a = 0.5;
       c->program.steps.push_back(step);
     },
     "SCALAR_OUT_OF_RANGE", "steps[3].affine.a"},
    {"an array of another type than was said", [](Case* c) { c->program.inputs[0].dtype = DType::kU32; }, "ARRAY_TYPE",
     "inputs[0].dtype"},
    {"a sink of another type",
     [](Case* c) {
       c->program.outputs[0].sink = Into(ArraySlice{.name = "arrays/1"});
       c->arrays.sinks[0] = {DType::kI32, kPlanItems};
     },
     "ARRAY_TYPE", "outputs[0].sink.array"},
    {"a sink that overlaps an input in part",
     [](Case* c) {
       c->program.outputs[0].sink = Into(ArraySlice{.name = "arrays/x", .first_item = 1});
       c->arrays.sinks[0] = {DType::kF32, kPlanItems};
     },
     "OVERLAP", "outputs[0].sink.array"},
    {"a sink whose last element is an input's first",
     [](Case* c) {
       std::get<ArraySlice>(c->program.inputs[0].values).first_item = kPlanItems - 1;
       c->program.outputs[0].sink = Into(ArraySlice{.name = "arrays/x"});
       c->arrays.sinks[0] = {DType::kF32, kPlanItems};
     },
     "OVERLAP", "outputs[0].sink.array"},
    {"two sinks that overlap",
     [](Case* c) {
       c->program.steps.push_back(One("x", CopySpec(), "z"));
       c->program.outputs = {{.name = "c", .sink = Into(ArraySlice{.name = "arrays/1"})},
                             {.name = "z", .sink = Into(ArraySlice{.name = "arrays/1", .first_item = kPlanItems - 1})}};
       c->arrays.sinks.assign(2, {DType::kF32, kPlanItems});
     },
     "OVERLAP", "outputs[1].sink.array"},
    {"a sink that is too small",
     [](Case* c) {
       c->program.steps.push_back(One("x", CopySpec(), "z"));
       c->program.outputs.push_back({.name = "z", .sink = Into(ArraySlice{.name = "arrays/1"})});
       c->arrays.sinks.push_back({DType::kF32, kPlanItems - 1});
     },
     "SINK_TOO_SMALL", "outputs[1].sink.array", absl::StatusCode::kOutOfRange},
    {"too much inline",
     [](Case* c) {
       for (const char* name : {"z1", "z2"}) {
         c->program.steps.push_back(FillOf(DType::kU8, uint64_t{600} << 10, name));
         c->program.outputs.push_back({.name = name});
       }
       c->arrays.sinks.resize(3);
     },
     "REPLY_TOO_LARGE", "outputs[2].sink", absl::StatusCode::kOutOfRange},
    {"indices that 32 bits can't count",
     [](Case* c) {
       c->arrays.inputs.assign(3, {DType::kU8, (uint64_t{1} << 32) + 1});
       c->program.steps = {CompactByMask("x", "mask", "c"), Two("x", "y", MapOp::kAdd, "unused")};
       c->program.steps[0].writes = {{Role::kIndicesOut, "c"}};
       SpecOf<CompactSpec>(c, 0).dtype = DType::kU8;
       SpecOf<CompactSpec>(c, 0).index_dtype = DType::kU32;
     },
     "INDEX_OVERFLOW", "steps[0].compact.spec.index_dtype", absl::StatusCode::kOutOfRange},
};

INSTANTIATE_TEST_SUITE_P(Programs, PlanRefuses, testing::ValuesIn(kRefusals));

TEST(Plan, ACycleIsCalledOne) {
  Case c = RightProgram();
  c.program.steps[0].reads[0].name = "b";
  EXPECT_EQ(
      c.Planned().status().message(),
      "b is written by steps[1], behind this one: a step reads inputs and what steps before it write, so there are "
      "no cycles; change the order");
}

}  // namespace
}  // namespace prefixd
