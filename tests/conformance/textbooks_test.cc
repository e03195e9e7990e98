// Every algorithm that a device lists, with every value of its knobs: on types and operators that all of them serve, at
// sizes around their tiles, and with far more tiles than a card runs at once. scan_test.cc, reduce_test.cc and
// compact_test.cc have the tests that are common to all algorithms. Here are the tests that so many algorithms need.
#include <algorithm>
#include <numeric>

#include "kernels/yardsticks/serves.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

struct ScanCall {
  Op op = Op::kSum;
  ScanKind kind = ScanKind::kInclusive;
  bool reverse = false;
  bool in_place = false;
  // carry_in and carry_out: none, two elements, one.
  enum { kNone, kOwn, kAliased } carry = kNone;
};

template <class T>
testing::AssertionResult CheckScan(Lane& lane, const Algorithm& algorithm, const ScanCall& call, Data data,
                                   size_t num_items, Random& random) {
  std::vector<T> in = MakeInput<T>(call.op, data, num_items + 1, random);
  using Carry = Accumulator<T>;
  const T init = in.back();
  in.pop_back();
  const auto start = static_cast<Carry>(init);
  const auto want =
      Scan(call.op, call.kind, call.reverse, Converted<Carry>(in), {start}, data == Data::kExact, OrderOf(algorithm));
  DeviceArray<T> d_in(lane, in);
  auto d_own_out = DeviceArray<T>::Poisoned(lane, num_items);
  DeviceArray<T>& d_out = call.in_place ? d_in : d_own_out;
  DeviceArray<Carry> d_carry_in(lane, {start});
  auto d_own_carry = DeviceArray<Carry>::Poisoned(lane, 1);
  DeviceArray<Carry>& d_carry_out = call.carry == ScanCall::kAliased ? d_carry_in : d_own_carry;
  ScanArgs args;
  args.dtype = kDTypeOf<T>;
  args.op = call.op;
  args.kind = call.kind;
  args.reverse = call.reverse;
  args.algorithm = algorithm;
  args.in = d_in.data();
  args.out = d_out.data();
  args.num_items = num_items;
  args.init = Value::Of(call.carry == ScanCall::kNone ? init : Poison<T>());
  if (call.carry != ScanCall::kNone) {
    args.carry_in = d_carry_in.data();
    args.carry_out = d_carry_out.data();
  }
  if (absl::Status status = lane.Scan(args); !status.ok()) return testing::AssertionFailure() << status;
  std::vector<T> got;
  std::vector<Carry> carry;
  if (auto guards = d_out.Read(&got); !guards) return guards;
  if (auto admitted = AllAdmitted("out", got, As<T>(want.out)); !admitted) return admitted;
  if (!call.in_place) {
    if (auto untouched = d_in.IsUntouched(); !untouched) return untouched;
  }
  if (call.carry == ScanCall::kNone) return d_own_carry.IsUntouched();
  if (auto guards = d_carry_out.Read(&carry); !guards) return guards;
  if (AdmitsCarry(call.op, want, carry)) return testing::AssertionSuccess();
  return Mismatch("carry_out", 0, carry[0], want.out.back());
}

ScanCall RandomCall(Op op, Random& random) {
  ScanCall call = {.op = op};
  call.kind = random.OneIn(2) ? ScanKind::kExclusive : ScanKind::kInclusive;
  call.reverse = random.OneIn(3);
  call.in_place = random.OneIn(2);
  call.carry = random.OneIn(3) ? ScanCall::kNone : random.OneIn(2) ? ScanCall::kOwn : ScanCall::kAliased;
  return call;
}

std::ostream& operator<<(std::ostream& os, const ScanCall& call) {
  constexpr const char* kCarries[] = {"", ", carries", ", one carry"};
  return os << Name(call.kind) << (call.reverse ? ", reverse" : "") << (call.in_place ? ", in place" : "")
            << kCarries[call.carry];
}

// What all algorithms serve: the textbooks' combinations.
std::vector<OpParam> EveryTextbookOp(const std::string& device) {
  std::vector<OpParam> params = EveryOp(device);
  std::erase_if(params, [](const OpParam& param) { return !kTextbooksServe(param.dtype, param.out_dtype, param.op); });
  return params;
}

using TextbooksTest = DeviceTest<OpParam>;

TEST_P(TextbooksTest, ScansOfOddSizes) {
  // Around a warp, and around tiles of one to sixteen items for each of 256 or 512 threads.
  std::vector<size_t> sizes = {0, 1, 2, 31, 32, 33, 257, 509, 1021, 1531, 3583, 8191, 10007, 24593};
  if (SmallSizesOnly()) std::erase_if(sizes, [](size_t size) { return size > 5000; });
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Algorithm& form : FormsOf(device(), Primitive::kScan)) {
      for (const size_t size : sizes) {
        for (int data = 0; data < kNumData; ++data) {
          if (!Takes(Primitive::kScan, form, size)) continue;
          const ScanCall call = RandomCall(GetParam().op, random());
          ASSERT_TRUE(CheckScan<T>(lane(), form, call, static_cast<Data>(data), size, random()))
              << Name(form) << " of " << size << ", " << call << ", " << Name(static_cast<Data>(data)) << " data";
        }
      }
    }
  });
}

// A block that waits for one that has not started, or for more than are resident, waits for ever; sums of sums take
// several levels.
TEST_P(TextbooksTest, ScansOfManyMoreTilesThanFit) {
  const size_t size = SmallSizesOnly() ? 4999 : (size_t{3} << 20) + 17;
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Algorithm& form : FormsOf(device(), Primitive::kScan)) {
      // This is one of eighteen types and operators: every algorithm meets two or so.
      if (!random().OneIn(8) || !device().CheckLength(Primitive::kScan, form, size).ok()) continue;
      const ScanCall call = RandomCall(GetParam().op, random());
      const Data data = random().OneIn(2) ? Data::kSpecial : Data::kRandom;
      ASSERT_TRUE(CheckScan<T>(lane(), form, call, data, size, random()))
          << Name(form) << ", " << call << ", " << Name(data) << " data";
    }
  });
}

PREFIXD_ON_EVERY_DEVICE(TextbooksTest, EveryTextbookOp);

// ---- One type -----------------------------------------------------------------------------------------------------
using TextbooksOrderTest = DeviceTest<DeviceParam>;

// A lane's launches share its memory: states with marks, counters, sums. Nothing is waited for in between.
TEST_P(TextbooksOrderTest, AlgorithmsFollowEachOther) {
  constexpr size_t kItems = 5003;
  const std::vector<Algorithm> forms = FormsOf(device(), Primitive::kScan);
  DeviceArray<int32_t> d_in(lane(), std::vector<int32_t>(kItems, 1));
  std::vector<DeviceArray<int32_t>> d_outs;
  std::vector<Algorithm> order;
  for (int i = 0; i < 200; ++i) order.push_back(forms[random().Below(forms.size())]);
  for (const Algorithm& form : order) {
    d_outs.push_back(DeviceArray<int32_t>::Poisoned(lane(), kItems));
    ScanArgs args;
    args.algorithm = form;
    args.in = d_in.data();
    args.out = d_outs.back().data();
    args.num_items = 1 + random().Below(kItems);
    Require(lane().Scan(args));
  }
  for (size_t i = 0; i < order.size(); ++i) {
    std::vector<int32_t> got;
    ASSERT_TRUE(d_outs[i].Read(&got));
    for (size_t k = 0; k < kItems && got[k] != Poison<int32_t>(); ++k) {
      ASSERT_EQ(got[k], static_cast<int32_t>(k + 1)) << Name(order[i]) << ", " << i << "th";
    }
  }
}

// A row that calls itself deterministic gives the same bits in every run, of floats too.
TEST_P(TextbooksOrderTest, DeterministicOnesRepeatThemselves) {
  const size_t size = SmallSizesOnly() ? 4999 : 200003;
  const std::vector<float> in = MakeInput<float>(Op::kSum, Data::kRandom, size, random());
  DeviceArray<float> d_in(lane(), in);
  for (const AlgorithmInfo& row : device().Algorithms()) {
    if (!row.deterministic || !HasOp(row.primitive)) continue;
    if (!device().CheckLength(row.primitive, row.algorithm, size).ok()) continue;
    std::vector<float> first, first_value;
    for (int run = 0; run < 5; ++run) {
      auto d_out = DeviceArray<float>::Poisoned(lane(), size);
      auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
      std::vector<float> got;
      if (row.primitive == Primitive::kScan) {
        ScanArgs args;
        args.dtype = DType::kF32;
        args.algorithm = row.algorithm;
        args.in = d_in.data();
        args.out = d_out.data();
        args.num_items = size;
        Require(lane().Scan(args));
        ASSERT_TRUE(d_out.Read(&got));
      } else {
        ReduceArgs args;
        args.dtype = DType::kF32;
        args.algorithm = row.algorithm;
        args.in = d_in.data();
        args.num_items = size;
        args.init = {Neutral(Op::kSum, DType::kF32), ReduceState::kNothing};
        args.state_out = d_state.data();
        Require(lane().Reduce(args));
        std::vector<ReduceState> state;
        ASSERT_TRUE(d_state.Read(&state));
        got = {state[0].value.As<float>()};
      }
      if (run == 0) first = got;
      ASSERT_EQ(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)), 0)
          << Name(row.primitive) << " " << Name(row.algorithm) << ", run " << run;
    }
  }
}

// Large terms that cancel, and small ones that a plain sum loses: what is left is right to an ulp.
TEST_P(TextbooksOrderTest, KahanKeepsWhatASumLoses) {
  if (!device().Resolve(Primitive::kReduce, {Strategy::kKahan}).ok()) GTEST_SKIP() << "kahan is not served here";
  const size_t size = SmallSizesOnly() ? 4999 : 100003;
  std::vector<float> in(size);
  for (size_t i = 0; i < size; ++i) in[i] = i % 2 == 0 ? 1e-3F : i % 4 == 1 ? 3e6F : -3e6F;
  const double exact = std::accumulate(in.begin(), in.end(), 0.0);
  DeviceArray<float> d_in(lane(), in);
  auto d_state = DeviceArray<ReduceState>::Poisoned(lane(), 1);
  ReduceArgs args;
  args.dtype = DType::kF32;
  args.algorithm = {Strategy::kKahan};
  args.in = d_in.data();
  args.num_items = size;
  args.init = {Neutral(Op::kSum, DType::kF32), ReduceState::kNothing};
  args.state_out = d_state.data();
  Require(lane().Reduce(args));
  std::vector<ReduceState> state;
  ASSERT_TRUE(d_state.Read(&state));
  EXPECT_NEAR(state[0].value.As<float>(), exact, 1e-7 * std::fabs(exact));
}

// atomic_counter loses the order, and nothing else: each index with its value, once.
TEST_P(TextbooksOrderTest, UnstableCompactsKeepTheSet) {
  for (const AlgorithmInfo& row : device().Algorithms()) {
    if (row.stable) continue;
    for (const size_t size : {0, 1, 33, 513, 4999, SmallSizesOnly() ? 4097 : 300007}) {
      std::vector<int64_t> in(size);
      for (size_t i = 0; i < size; ++i) in[i] = static_cast<int64_t>(random().Below(3) << 40 | i);
      DeviceArray<int64_t> d_in(lane(), in);
      auto d_values = DeviceArray<int64_t>::Poisoned(lane(), size);
      auto d_indices = DeviceArray<uint64_t>::Poisoned(lane(), size);
      auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
      CompactArgs args;
      args.dtype = DType::kI64;
      args.comparison = Comparison::kLess;
      args.value = Value::Of(int64_t{1} << 41);
      args.algorithm = row.algorithm;
      args.in = d_in.data();
      args.num_items = size;
      args.first_item = 7;
      args.values = d_values.data();
      args.indices = d_indices.data();
      args.count = d_count.data();
      Require(lane().Compact(args));
      std::vector<int64_t> values;
      std::vector<uint64_t> indices, count;
      ASSERT_TRUE(d_values.Read(&values));
      ASSERT_TRUE(d_indices.Read(&indices));
      ASSERT_TRUE(d_count.Read(&count));
      const auto kept = std::count_if(in.begin(), in.end(), [](int64_t x) { return x < int64_t{1} << 41; });
      ASSERT_EQ(count[0], static_cast<uint64_t>(kept));
      std::vector<bool> seen(size);
      for (int64_t k = 0; k < kept; ++k) {
        const uint64_t item = indices[k] - 7;
        ASSERT_LT(item, size);
        ASSERT_FALSE(seen[item]) << "item " << item << " came twice";
        seen[item] = true;
        ASSERT_EQ(values[k], in[item]);
        ASSERT_LT(values[k], int64_t{1} << 41);
      }
      for (size_t k = kept; k < size; ++k) ASSERT_EQ(values[k], Poison<int64_t>()) << "written past count";
    }
  }
}

PREFIXD_ON_EVERY_DEVICE(TextbooksOrderTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
