// Random programs, right and broken: the plan has the memory that a naive count finds, what an executor frees is just
// what nobody needs, and lengths are equal where a model has them so.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "server/program/plan.h"
#include "tests/server/naive_memory.h"
#include "tests/server/programs.h"

namespace prefixd {
namespace {

uint64_t BaseSeed() {
  static const uint64_t seed = [] {
    if (const char* text = std::getenv("PREFIXD_TEST_SEED")) return uint64_t{std::strtoull(text, nullptr, 0)};
    return uint64_t{std::random_device()()};
  }();
  return seed;
}

// Makes programs that are right, with a model of lengths of its own: equal words are equal lengths.
class Maker {
 public:
  explicit Maker(uint64_t seed) : bits_(seed) {}

  Case Make() {
    case_ = {};
    arrays_.clear();
    sinks_.clear();
    const size_t num_inputs = 1 + Below(4);
    for (size_t i = 0; i < num_inputs; ++i) AddInput(i);
    const size_t num_steps = 1 + Below(kMaxProgramSteps);
    while (case_.program.steps.size() < num_steps) AddStep();
    Finish();
    return std::move(case_);
  }

  uint64_t Below(uint64_t bound) { return bits_() % bound; }

  struct Array {
    std::string name;
    DType dtype;
    std::string length;
    uint64_t max_items;
    bool is_read = false;
  };
  // The model of the program that was made last.
  const std::vector<Array>& Model() const { return arrays_; }

 private:
  DType AnyType() {
    for (;;) {
      if (const auto dtype = static_cast<DType>(Below(kNumDTypes)); IsSupported(dtype)) return dtype;
    }
  }
  static std::string Known(uint64_t num_items) { return std::to_string(num_items); }

  void AddInput(size_t i) {
    Array array = {.name = "in" + std::to_string(i), .dtype = Below(3) == 0 ? DType::kU8 : AnyType()};
    array.max_items = Below(2) == 0 ? 5000 : Below(3) * 2500;
    array.length = Known(array.max_items);
    if (Below(3) == 0) {
      case_.program.inputs.push_back({.name = array.name,
                                      .dtype = array.dtype,
                                      .values = Payload(std::string(array.max_items * SizeOf(array.dtype), 'a'))});
      case_.arrays.inputs.push_back({});
    } else {
      case_.program.inputs.push_back(Slice(array.name));
      case_.arrays.inputs.push_back({array.dtype, array.max_items});
    }
    arrays_.push_back(array);
  }

  // Any array, rather one of the last; or one that the test admits, null if there is none.
  Array* Any(const std::function<bool(const Array&)>& admits = [](const Array&) { return true; }) {
    for (int tries = 0; tries < 50; ++tries) {
      const size_t from_end = Below(2) == 0 ? Below(std::min<size_t>(3, arrays_.size())) : Below(arrays_.size());
      Array& array = arrays_[arrays_.size() - 1 - from_end];
      if (admits(array)) return &array;
    }
    return nullptr;
  }

  std::string NewName() { return "t" + std::to_string(arrays_.size()); }

  void Write(ProgramStep* step, Role role, DType dtype, const std::string& length, uint64_t max_items) {
    arrays_.push_back({.name = NewName(), .dtype = dtype, .length = length, .max_items = max_items});
    step->writes.push_back({role, arrays_.back().name});
  }

  // Copies of what it reads, as arrays_ grows.
  Array Read(ProgramStep* step, Role role, Array* array) {
    array->is_read = true;
    step->reads.push_back({role, array->name});
    return *array;
  }

  void AddStep() {
    ProgramStep step;
    switch (Below(9)) {
      case 0: {
        const Array in = Read(&step, Role::kValues, Any());
        step.operation = ScanSpec{.dtype = in.dtype, .op = Op::kMax};
        Write(&step, Role::kOut, in.dtype, in.length, in.max_items);
        break;
      }
      case 1: {
        const Array in = Read(&step, Role::kValues, Any());
        step.operation = ReduceSpec{.dtype = in.dtype, .op = Op::kMin};
        Write(&step, Role::kOut, in.dtype, Known(1), 1);
        if (Below(2) == 0) Write(&step, Role::kIndexOut, DType::kU64, Known(1), 1);
        break;
      }
      case 2:
      case 3: {
        const Array in = Read(&step, Role::kValues, Any());
        CompactSpec spec = {.dtype = in.dtype, .invert = Below(4) == 0};
        std::string length = "kept " + in.length + (spec.invert ? " not " : " ");
        Array* const mask = Any([&](const Array& a) { return a.dtype == DType::kU8 && a.length == in.length; });
        if (mask == nullptr || Below(3) == 0) {
          spec.predicate = Predicate{.comparison = Comparison::kNotEqual, .value = {Below(2)}};
          length += in.name + (spec.predicate->value.bits == 0 ? " != 0" : " != 1");
        } else {
          length += "by " + Read(&step, Role::kMask, mask).name;
        }
        if (in.max_items == 0) length = Known(0);
        step.operation = spec;
        const uint64_t wanted = 1 + Below(7);
        if ((wanted & 1) != 0) Write(&step, Role::kOut, in.dtype, length, in.max_items);
        if ((wanted & 2) != 0) Write(&step, Role::kIndicesOut, DType::kU64, length, in.max_items);
        if ((wanted & 4) != 0) Write(&step, Role::kCountOut, DType::kU64, Known(1), 1);
        break;
      }
      case 4: {
        FillSpec spec;
        spec.dtype = Below(2) == 0 ? DType::kU32 : AnyType();
        step.operation = spec;
        if (Below(2) == 0) {
          const Array like = Read(&step, Role::kLike, Any());
          Write(&step, Role::kOut, spec.dtype, like.length, like.max_items);
        } else {
          step.num_items = Below(2) == 0 ? 5000 : Below(10000);
          Write(&step, Role::kOut, spec.dtype, Known(step.num_items), step.num_items);
        }
        break;
      }
      case 5: {
        const Array in = Read(&step, Role::kValues, Any());
        MapSpec spec = CastTo(Below(3) == 0 ? DType::kU8 : AnyType());
        step.operation = spec;
        Write(&step, Role::kOut, spec.cast_dtype, in.length, in.max_items);
        break;
      }
      case 6: {
        const Array left = Read(&step, Role::kLeft, Any());
        Array* const other = Any([&](const Array& a) { return a.dtype == left.dtype && a.length == left.length; });
        Read(&step, Role::kRight, other != nullptr ? other : Find(left.name));
        step.operation = MapOf(MapOp::kMaximum);
        Write(&step, Role::kOut, left.dtype, left.length, left.max_items);
        break;
      }
      case 7: {
        Array* const indices = Any([](const Array& a) { return a.dtype == DType::kU32 || a.dtype == DType::kU64; });
        if (indices == nullptr) return;
        const Array in = Read(&step, Role::kValues, Any());
        const Array at = Read(&step, Role::kIndices, indices);
        step.operation = GatherSpec();
        Write(&step, Role::kOut, in.dtype, at.length, at.max_items);
        break;
      }
      default: {
        Array* const values = Any();
        Array* const indices = Any([&](const Array& a) {
          return (a.dtype == DType::kU32 || a.dtype == DType::kU64) && a.length == values->length;
        });
        Array* const into = Any([&](const Array& a) { return a.dtype == values->dtype; });
        if (indices == nullptr || into == nullptr) return;
        Read(&step, Role::kValues, values);
        Read(&step, Role::kIndices, indices);
        const Array base = Read(&step, Role::kInto, into);
        step.operation = ScatterSpec();
        Write(&step, Role::kOut, base.dtype, base.length, base.max_items);
        break;
      }
    }
    case_.program.steps.push_back(std::move(step));
  }

  Array* Find(const std::string& name) {
    for (Array& array : arrays_) {
      if (array.name == name) return &array;
    }
    return nullptr;
  }

  void Finish() {
    Program& program = case_.program;
    for (size_t i = program.inputs.size(); i-- > 0;) {
      if (Find(program.inputs[i].name)->is_read) continue;
      program.inputs.erase(program.inputs.begin() + static_cast<std::ptrdiff_t>(i));
      case_.arrays.inputs.erase(case_.arrays.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const Array& array : arrays_) {
      const bool is_input = array.name.starts_with("in");
      if (is_input || (array.is_read && Below(8) != 0)) continue;
      AddOutput(array);
    }
    std::shuffle(program.outputs.begin(), program.outputs.end(), bits_);
    case_.arrays.sinks.clear();
    for (const ProgramOutput& output : program.outputs) {
      const Array& array = *Find(output.name);
      case_.arrays.sinks.push_back({array.dtype, SinkItems(output, array)});
    }
  }

  uint64_t SinkItems(const ProgramOutput& output, const Array& array) {
    const ArraySlice* const slice = output.sink.kind == Sink::Kind::kArray ? &output.sink.array : nullptr;
    if (slice == nullptr) return 0;
    if (!slice->name.starts_with("arrays/in") && array.length.starts_with("kept") && Below(2) == 0) {
      return Below(array.max_items + 1);
    }
    return array.max_items;
  }

  void AddOutput(const Array& array) {
    ProgramOutput output = {.name = array.name};
    if (Below(4) == 0) {
      output.sink = Into(ArraySlice{.name = "arrays/" + array.name});
    } else if (array.max_items > 1 || Below(2) == 0) {
      output.sink = {.kind = Sink::Kind::kNewArray};
    }
    for (size_t i = 0; i < case_.program.inputs.size(); ++i) {
      const SliceInfo& facts = case_.arrays.inputs[i];
      const std::string name = "arrays/" + case_.program.inputs[i].name;
      if (Below(2) != 0 || !std::holds_alternative<ArraySlice>(case_.program.inputs[i].values)) continue;
      if (facts.dtype != array.dtype || facts.num_items != array.max_items || !sinks_.insert(name).second) continue;
      output.sink = Into(ArraySlice{.name = name});  // Back into the input.
    }
    case_.program.outputs.push_back(std::move(output));
  }

  std::mt19937_64 bits_;
  Case case_;
  std::vector<Array> arrays_;
  std::set<std::string> sinks_;
};

// Does what an executor does with memory: fails if a step reads what is not there, or if something is left over.
void Replay(const Plan& plan) {
  std::map<int, uint64_t> live;
  uint64_t now = plan.scratch_bytes;
  const auto add = [&](int slot) {
    ASSERT_TRUE(live.emplace(slot, plan.slots[slot].memory_bytes).second);
    now += plan.slots[slot].memory_bytes;
    ASSERT_LE(now, plan.peak_bytes);
  };
  const auto free = [&](int slot) {
    ASSERT_EQ(live.count(slot), 1u) << plan.slots[slot].name;
    now -= live[slot];
    live.erase(slot);
  };
  const auto has_memory = [&](int slot) {
    return plan.slots[slot].home == Home::kInline || plan.slots[slot].home == Home::kOwn;
  };
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].home == Home::kInline) add(static_cast<int>(i));
  }
  for (const PlanStep& step : plan.steps) {
    for (const SlotUse& read : step.reads) {
      ASSERT_TRUE(!has_memory(read.slot) || live.count(read.slot) == 1) << plan.slots[read.slot].name << " is gone";
    }
    if (step.takes_over) free(step.reads.back().slot);
    for (const SlotUse& write : step.writes) {
      if (has_memory(write.slot)) add(write.slot);
    }
    for (const int slot : step.dead) free(slot);
  }
  for (const PlanOutput& output : plan.outputs) {
    ASSERT_EQ(has_memory(output.slot), output.delivery != Delivery::kInPlace);
    if (output.delivery == Delivery::kInPlace) continue;
    if (output.delivery == Delivery::kShrink) {
      ASSERT_LE(now + live[output.slot], plan.peak_bytes);
    }
    if (output.delivery == Delivery::kInline || output.delivery == Delivery::kCopy) {
      free(output.slot);
    } else {
      live.erase(output.slot);  // A new array has as much instead.
    }
  }
  ASSERT_TRUE(live.empty());
}

TEST(RandomPlan, HasTheMemoryOfANaiveCount) {
  const uint64_t seed = BaseSeed();
  std::printf("PREFIXD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Maker maker(seed);
  int num_shared = 0;
  int num_taken_over = 0;
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << " of PREFIXD_TEST_SEED=" << seed);
    const Case c = maker.Make();
    const absl::StatusOr<Plan> plan = c.Planned();
    if (c.program.outputs.size() > kMaxProgramOutputs) {
      ASSERT_EQ(ErrorReason(plan.status()), "PROGRAM_SIZE");
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->peak_bytes, MaxOf(NaiveMemory(c.program, *plan)));
    Replay(*plan);
    if (HasFatalFailure()) return;

    // As it may turn out: compacts keep any number.
    std::vector<uint64_t> kept(plan->num_selections, 0);
    for (uint64_t& count : kept) count = maker.Below(10000);
    const auto items_of = [&](const Slot& slot) {
      const uint64_t max = slot.length.max_items;
      return slot.length.IsKnown() ? max : std::min(kept[*slot.length.selection], max);
    };
    ASSERT_LE(MaxOf(NaiveMemory(c.program, *plan, items_of)), plan->peak_bytes);

    // Lengths are equal where the model has them so.
    std::map<std::string, Length> lengths;
    for (const auto& array : maker.Model()) {
      for (const Slot& slot : plan->slots) {
        if (slot.name != array.name) continue;
        const auto [place, is_new] = lengths.emplace(array.length, slot.length);
        ASSERT_TRUE(place->second == slot.length) << array.name;
        ASSERT_EQ(slot.length.IsKnown(), !array.length.starts_with("kept")) << array.name;
        num_shared += !is_new && !slot.length.IsKnown();
      }
    }
    std::set<std::pair<uint64_t, int>> distinct;
    for (const auto& [word, length] : lengths) distinct.emplace(length.max_items, length.selection.value_or(-1));
    ASSERT_EQ(distinct.size(), lengths.size());
    for (const PlanStep& step : plan->steps) num_taken_over += step.takes_over;
  }
  // The programs had what they were to have.
  EXPECT_GT(num_shared, 100);
  EXPECT_GT(num_taken_over, 10);
}

// Programs with something wrong: an error with a reason and a field, or a plan whose memory is right.
TEST(RandomPlan, OfABrokenProgramIsRefusedOrRight) {
  const uint64_t seed = BaseSeed();
  std::printf("PREFIXD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Maker maker(seed);
  int num_refused = 0;
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << " of PREFIXD_TEST_SEED=" << seed);
    Case c = maker.Make();
    std::vector<std::string*> names;
    for (ProgramStep& step : c.program.steps) {
      for (NamedArray& array : step.reads) names.push_back(&array.name);
      for (NamedArray& array : step.writes) names.push_back(&array.name);
    }
    for (ProgramOutput& output : c.program.outputs) names.push_back(&output.name);
    for (uint64_t i = 1 + maker.Below(3); i > 0; --i) {
      *names[maker.Below(names.size())] = *names[maker.Below(names.size())];
    }
    if (maker.Below(2) == 0) std::swap(c.program.steps.front(), c.program.steps.back());
    for (SliceInfo& facts : c.arrays.inputs) {
      if (maker.Below(10) == 0) facts.num_items = ~uint64_t{0} >> maker.Below(10);
    }
    const absl::StatusOr<Plan> plan = c.Planned();
    if (plan.ok()) {
      ASSERT_EQ(plan->peak_bytes, MaxOf(NaiveMemory(c.program, *plan)));
      Replay(*plan);
      if (HasFatalFailure()) return;
      continue;
    }
    ++num_refused;
    ASSERT_FALSE(ErrorReason(plan.status()).empty()) << plan.status();
    ASSERT_FALSE(ErrorField(plan.status()).empty()) << plan.status();
  }
  EXPECT_GT(num_refused, 1000);
}

}  // namespace
}  // namespace prefixd
