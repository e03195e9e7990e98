#include <algorithm>
#include <array>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

constexpr uint64_t kNothing = ReduceState::kNothing;

struct ReduceCase {
  bool has_init = false;
  size_t offset = 0;
  size_t num_items = 0;
  uint64_t first_item = 0;
  Data data = Data::kRandom;
  Algorithm algorithm;
  // Where the state comes from: args.init; a state_in; a state_in that is also state_out.
  enum { kInit, kStateIn, kAliased } state = kInit;
};

std::ostream& operator<<(std::ostream& os, const ReduceCase& c) {
  constexpr const char* kStates[] = {"init", "state_in", "state_in aliased"};
  return os << (c.has_init ? "init, " : "") << "offset " << c.offset << ", " << c.num_items << " items from "
            << c.first_item << ", " << Name(c.data) << " data, algorithm " << Name(c.algorithm) << ", through "
            << kStates[c.state];
}

template <class T>
testing::AssertionResult Admits(Op op, const ExpectedState<T>& want, const ReduceState& got) {
  if (op == Op::kLogAddExp) {
    const std::vector<T> pair = {got.value.As<T>(), static_cast<T>(got.second)};
    if (auto same = AreSame(pair, CarryOf(op, want.item)); !same) return same;
  } else if (!want.value.Admits(got.value.As<T>())) {
    return Mismatch("value", 0, got.value.As<T>(), want.value);
  }
  if (Value::Of(got.value.As<T>()) != got.value) {
    return testing::AssertionFailure() << "the value has something behind its bytes: 0x" << std::hex << got.value.bits;
  }
  if (got.position != want.position) {
    return testing::AssertionFailure() << "position is " << got.position << ", expected " << want.position;
  }
  return testing::AssertionSuccess();
}

// What stands in front where the caller gave no init.
ReduceState NoInit(Op op, DType dtype) { return {Neutral(op, AccumulatorOf(dtype)), kNothing}; }

template <class In, class Out>
testing::AssertionResult RunCase(Lane& lane, Op op, ReduceCase c, Random& random) {
  // The powers of two of an exact product stay small in every stretch of it, but not where its factors are picked from
  // here and there.
  if (op == Op::kProd && c.data == Data::kExact && OrderOf(c.algorithm) == Order::kItsOwn) c.data = Data::kRandom;
  using Result = Accumulator<Out>;
  std::vector<In> in = MakeInput<In>(op, c.data, c.num_items + 1, random);
  const ReduceState start =
      c.has_init ? ReduceState{Value::Of(MakeStart<In, Result>(op, in.back(), random)), 0} : NoInit(op, kDTypeOf<Out>);
  in.pop_back();
  const Accumulated<Result> item = ItemOf(op, start.value.As<Result>());
  const auto want = Reduce(op, Converted<Result>(in), c.first_item, item, start.position, c.data == Data::kExact,
                           OrderOf(c.algorithm));

  DeviceArray<In> d_in(lane, in, c.offset);
  DeviceArray<ReduceState> d_state_in(lane,
                                      {{Value::Of(item.value), start.position, static_cast<double>(item.exponent)}});
  auto d_own_state_out = DeviceArray<ReduceState>::Poisoned(lane, 1);
  auto& d_state_out = c.state == ReduceCase::kAliased ? d_state_in : d_own_state_out;
  ReduceArgs args;
  args.dtype = kDTypeOf<In>;
  args.out_dtype = kDTypeOf<Out>;
  args.op = op;
  args.algorithm = c.algorithm;
  args.in = d_in.data();
  args.num_items = in.size();
  args.first_item = c.first_item;
  args.init = c.state == ReduceCase::kInit ? start : Poison<ReduceState>();
  if (c.state != ReduceCase::kInit) args.state_in = d_state_in.data();
  args.state_out = d_state_out.data();
  if (absl::Status status = lane.Reduce(args); !status.ok()) return testing::AssertionFailure() << status;

  std::vector<ReduceState> got;
  if (auto guards = d_state_out.Read(&got); !guards) return guards << " (state_out)";
  if (auto admitted = Admits(op, want, got[0]); !admitted) return admitted;
  if (c.state != ReduceCase::kAliased) {
    if (auto untouched = d_state_in.IsUntouched(); !untouched) return untouched << " (state_in)";
  }
  return d_in.IsUntouched();
}

testing::AssertionResult RunCase(Lane& lane, const OpParam& param, const ReduceCase& c, Random& random) {
  return VisitOutput(param.dtype, param.out_dtype, [&](auto in, auto out) {
    return RunCase<typename decltype(in)::type, typename decltype(out)::type>(lane, param.op, c, random);
  });
}

using ReduceTest = DeviceTest<OpParam>;

TEST_P(ReduceTest, EverySizeAndForm) {
  int num_cases = 0;
  for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kReduce, GetParam())) {
    for (const size_t size : Sizes()) {
      for (int form = 0; form < 12; ++form, ++num_cases) {
        if (!Takes(Primitive::kReduce, algorithm, size)) continue;
        ReduceCase c;
        c.has_init = form & 1;
        c.offset = form & 2 ? 1 + random().Below(16) : 0;
        c.data = static_cast<Data>(form / 4);
        c.state = std::array{ReduceCase::kInit, ReduceCase::kStateIn, ReduceCase::kAliased}[num_cases % 7 % 3];
        c.first_item = num_cases % 5 < 3 ? 0 : random().Next() >> 20;
        c.num_items = size;
        c.algorithm = algorithm;
        ASSERT_TRUE(RunCase(lane(), GetParam(), c, random())) << c;
      }
    }
  }
}

// Arrays that begin anywhere, and are large enough for the kernels of large arrays.
TEST_P(ReduceTest, Anywhere) {
  for (int round = 0; round < 4; ++round) {
    ReduceCase c;
    c.has_init = random().OneIn(2);
    c.offset = random().Below(17);
    c.num_items = AnywhereSize(GetParam().dtype, random());
    c.data = static_cast<Data>(random().Below(kNumData));
    ASSERT_TRUE(RunCase(lane(), GetParam(), c, random())) << c;
  }
}

TEST_P(ReduceTest, ManyTiles) {
  const auto only = static_cast<int>(random().Below(kNumData));
  for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kReduce, GetParam())) {
    for (int data = 0; data < kNumData; ++data) {
      if (TakesAShare(GetParam()) && data != only) continue;
      ReduceCase c;
      c.num_items = ManyTilesSize();
      if (!device().CheckLength(Primitive::kReduce, algorithm, c.num_items).ok()) continue;
      c.data = static_cast<Data>(data);
      c.algorithm = algorithm;
      ASSERT_TRUE(RunCase(lane(), GetParam(), c, random())) << c;
    }
  }
}

TEST_P(ReduceTest, ChunksCarryOn) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using In = typename decltype(in_tag)::type;
    using Out = Accumulator<typename decltype(out_tag)::type>;
    for (int round = 0; round < 12; ++round) {
      if (!Takes(0)) continue;
      const Op op = GetParam().op;
      const auto data = static_cast<Data>(round % kNumData);
      const size_t size = 1 + random().Below(SmallSizesOnly() ? 5000 : 60000);
      SCOPED_TRACE(testing::Message() << "round " << round << ", " << size << " items");
      std::vector<In> in = MakeInput<In>(op, data, size + 1, random());
      const ReduceState start = round % 2 == 0 ? ReduceState{Value::Of(MakeStart<In, Out>(op, in.back(), random())), 0}
                                               : NoInit(op, kDTypeOf<Out>);
      in.pop_back();

      ExpectedState<Out> want = {{}, start.position, ItemOf(op, start.value.As<Out>())};
      DeviceArray<In> d_in(lane(), in);
      auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
      size_t begin = 0;
      while (begin < size) {
        ReduceArgs args;
        args.dtype = GetParam().dtype;
        args.out_dtype = GetParam().out_dtype;
        args.op = op;
        args.in = d_in.data() + begin;
        args.num_items = std::min(size - begin, random().OneIn(8) ? 0 : 1 + random().Below(size));
        args.first_item = begin;
        args.init = start;
        args.state_in = begin > 0 ? d_state.data() : nullptr;
        args.state_out = d_state.data();
        ASSERT_TRUE(lane().Reduce(args).ok());
        const std::vector<Out> chunk(in.begin() + begin, in.begin() + begin + args.num_items);
        want = Reduce(op, chunk, begin, want.item, want.position, data == Data::kExact);
        begin += args.num_items;
      }
      std::vector<ReduceState> got;
      ASSERT_TRUE(d_state.Read(&got));
      ASSERT_TRUE(Admits(op, want, got[0]));
    }
  });
}

PREFIXD_ON_EVERY_DEVICE(ReduceTest, EveryOp);

// Positions of MIN and MAX, in arrays that a reader can check.
class ExtremumTest : public DeviceTest<DTypeParam> {
 protected:
  template <class T>
  ReduceState ReduceOf(Op op, const std::vector<T>& in, ReduceState start, uint64_t first_item = 0) {
    DeviceArray<T> d_in(lane(), in);
    auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
    ReduceArgs args;
    args.dtype = kDTypeOf<T>;
    args.op = op;
    args.in = d_in.data();
    args.num_items = in.size();
    args.first_item = first_item;
    args.init = start;
    args.state_out = d_state.data();
    std::vector<ReduceState> got;
    std::optional<ReduceState> first;
    for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kReduce, {"", args.dtype, args.dtype, op})) {
      args.algorithm = algorithm;
      Require(lane().Reduce(args));
      EXPECT_TRUE(d_state.Read(&got));
      if (!first) first = got[0];
      EXPECT_EQ(got[0].value, first->value) << Name(algorithm);
      EXPECT_EQ(got[0].position, first->position) << Name(algorithm);
    }
    return *first;
  }

  template <class T>
  ReduceState ReduceOf(Op op, const std::vector<T>& in) {
    return ReduceOf(op, in, NoInit(op, kDTypeOf<T>));
  }
};

// States hold an element as what it is combined in.
template <class T>
ReduceState StateOf(T value, uint64_t position) {
  return {Value::Of(static_cast<Accumulator<T>>(value)), position};
}

template <class T>
void ExpectState(const ReduceState& got, T value, uint64_t position) {
  const auto want = static_cast<Accumulator<T>>(value), result = got.value.As<Accumulator<T>>();
  EXPECT_TRUE(SameBits(result, want)) << Show(result) << ", expected " << Show(want);
  EXPECT_EQ(got.position, position);
}

TEST_P(ExtremumTest, FirstOfTies) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ExpectState(ReduceOf(Op::kMin, Converted<T>(std::vector<int>{3, 1, 2, 1}), NoInit(Op::kMin, GetParam().dtype), 8),
                T{1}, 10);
    ExpectState(ReduceOf(Op::kMax, Converted<T>(std::vector<int>{3, 1, 3, 1})), T{3}, 1);
    for (const size_t size : Sizes()) {
      if (size < 2) continue;
      const size_t first = random().Below(size - 1);
      const size_t second = first + 1 + random().Below(size - first - 1);
      SCOPED_TRACE(testing::Message() << size << " items, ties at " << first << " and " << second);
      std::vector<T> in(size, T{5});
      in[first] = in[second] = T{2};
      ExpectState(ReduceOf(Op::kMin, in), T{2}, first + 1);
      in[first] = in[second] = T{7};
      ExpectState(ReduceOf(Op::kMax, in), T{7}, first + 1);
      std::ranges::fill(in, T{5});
      ExpectState(ReduceOf(Op::kMin, in), T{5}, 1);
      ExpectState(ReduceOf(Op::kMax, in), T{5}, 1);
    }
  });
}

TEST_P(ExtremumTest, InitWinsTiesAndLosesToBetter) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ReduceState init = StateOf(T{4}, 0);
    ExpectState(ReduceOf(Op::kMin, Converted<T>(std::vector<int>{6, 4, 5}), init), T{4}, 0);
    ExpectState(ReduceOf(Op::kMin, Converted<T>(std::vector<int>{6, 3, 3}), init), T{3}, 2);
    ExpectState(ReduceOf(Op::kMax, Converted<T>(std::vector<int>{2, 4, 3}), init), T{4}, 0);
    ExpectState(ReduceOf(Op::kMax, Converted<T>(std::vector<int>{2, 9, 9}), init), T{9}, 2);
  });
}

// Elements that equal the operator's identity still come from somewhere.
TEST_P(ExtremumTest, TheIdentityItselfHasAPosition) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Op op : {Op::kMin, Op::kMax}) {
      const T identity = Identity(op, GetParam().dtype).template As<T>();
      for (const size_t size : Sizes()) {
        if (size > 0) ExpectState(ReduceOf(op, std::vector<T>(size, identity)), identity, 1);
      }
    }
  });
}

TEST_P(ExtremumTest, NothingComesFromNowhere) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Op op : {Op::kMin, Op::kMax}) {
      ExpectState(ReduceOf<T>(op, {}), Identity(op, GetParam().dtype).template As<T>(), kNothing);
      ExpectState(ReduceOf<T>(op, {}, StateOf(T{4}, 0)), T{4}, 0);
      ExpectState(ReduceOf<T>(op, {}, StateOf(T{4}, 17)), T{4}, 17);
    }
  });
}

PREFIXD_ON_EVERY_DEVICE(ExtremumTest, EveryDType);

class FloatingExtremumTest : public ExtremumTest {};
TEST_P(FloatingExtremumTest, NanAndZeros) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsFloating<T>) {
      const T nan = CanonicalNan<T>();
      const T inf = std::numeric_limits<T>::infinity();
      for (const Op op : {Op::kMin, Op::kMax}) {
        ExpectState(ReduceOf<T>(op, {T{1}, inf, -inf, -nan, T{2}, nan}), nan, 4);
        ExpectState(ReduceOf<T>(op, {T{1}, nan, T{2}}, StateOf(-nan, 0)), nan, 0);
        std::vector<T> in(3000, T{1});
        in[2999] = nan;
        ExpectState(ReduceOf(op, in), nan, 3000);
      }
      ExpectState(ReduceOf<T>(Op::kMin, {T{0}, T{0}, -T{0}, -T{0}}), -T{0}, 3);
      ExpectState(ReduceOf<T>(Op::kMax, {-T{0}, T{0}, -T{0}, T{0}}), T{0}, 2);
      ExpectState(ReduceOf<T>(Op::kMin, {-T{0}}, StateOf(T{0}, 0)), -T{0}, 1);
      ExpectState(ReduceOf<T>(Op::kMax, {-T{0}}, StateOf(T{0}, 0)), T{0}, 0);
    }
  });
}

PREFIXD_ON_EVERY_DEVICE(FloatingExtremumTest, EveryFloatingDType);

}  // namespace
}  // namespace prefixd::conformance
