#include <algorithm>

#include "kernels/association.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

struct ScanCase {
  ScanKind kind = ScanKind::kInclusive;
  bool reverse = false;
  bool has_init = false;
  bool in_place = false;
  size_t in_offset = 0;
  size_t out_offset = 0;
  size_t num_items = 0;
  Data data = Data::kRandom;
  Algorithm algorithm;
  // The start comes through carry_in, and init holds something else.
  bool through_carry_in = false;
  // carry_out: not wanted, an element of its own, or carry_in's.
  enum { kNone, kOwn, kAliased } carry_out = kNone;
};

std::ostream& operator<<(std::ostream& os, const ScanCase& c) {
  return os << Name(c.kind) << (c.reverse ? " reverse" : "") << (c.has_init ? " init" : "")
            << (c.in_place ? " in place" : "") << " offsets " << c.in_offset << "," << c.out_offset << " "
            << c.num_items << " items, " << Name(c.data) << " data, algorithm " << Name(c.algorithm)
            << (c.through_carry_in ? ", carry_in" : "") << (c.carry_out != ScanCase::kNone ? ", carry_out" : "")
            << (c.carry_out == ScanCase::kAliased ? " aliased" : "");
}

template <class In, class Out>
testing::AssertionResult RunCase(Lane& lane, Op op, const ScanCase& c, Random& random) {
  using Carry = Accumulator<Out>;
  std::vector<In> in = MakeInput<In>(op, c.data, c.num_items + 1, random);
  const Out init =
      c.has_init ? MakeStart<In, Out>(op, in.back(), random) : ScanStart(op, kDTypeOf<Out>, c.kind).template As<Out>();
  in.pop_back();
  const auto start = static_cast<Carry>(init);
  const Accumulated<Carry> item = ItemOf(op, start);
  const auto want =
      Scan(op, c.kind, c.reverse, Converted<Carry>(in), item, c.data == Data::kExact, OrderOf(c.algorithm));

  DeviceArray<In> d_in(lane, in, c.in_offset);
  auto d_own_out = DeviceArray<Out>::Poisoned(lane, in.size(), c.out_offset);
  DeviceArray<Out>* d_out = &d_own_out;
  if constexpr (std::is_same_v<In, Out>) {
    if (c.in_place) d_out = &d_in;
  }
  const bool in_place = d_out != &d_own_out;
  DeviceArray<Carry> d_carry_in(lane, CarryOf(op, item));
  auto d_own_carry_out = DeviceArray<Carry>::Poisoned(lane, CarryOf(op, item).size());
  DeviceArray<Carry>& d_carry_out = c.carry_out == ScanCase::kAliased ? d_carry_in : d_own_carry_out;

  ScanArgs args;
  args.dtype = kDTypeOf<In>;
  args.out_dtype = kDTypeOf<Out>;
  args.op = op;
  args.kind = c.kind;
  args.reverse = c.reverse;
  args.algorithm = c.algorithm;
  args.in = d_in.data();
  args.out = d_out->data();
  args.num_items = in.size();
  args.init = Value::Of(c.through_carry_in ? Poison<Out>() : init);
  if (c.through_carry_in) args.carry_in = d_carry_in.data();
  if (c.carry_out != ScanCase::kNone) args.carry_out = d_carry_out.data();
  if (absl::Status status = lane.Scan(args); !status.ok()) return testing::AssertionFailure() << status;

  std::vector<Out> got;
  if (auto guards = d_out->Read(&got); !guards) return guards << " (out)";
  if (auto admitted = AllAdmitted("out", got, As<Out>(want.out)); !admitted) return admitted;
  if (!in_place) {
    if (auto untouched = d_in.IsUntouched(); !untouched) return untouched;
  }
  if (c.carry_out == ScanCase::kNone) return d_own_carry_out.IsUntouched() << " (carry_out, not asked for)";
  if (c.carry_out == ScanCase::kOwn) {
    if (auto untouched = d_carry_in.IsUntouched(); !untouched) return untouched << " (carry_in)";
  }
  std::vector<Carry> carry;
  if (auto guards = d_carry_out.Read(&carry); !guards) return guards << " (carry_out)";
  if (AdmitsCarry(op, want, carry)) return testing::AssertionSuccess();
  return Mismatch("carry_out", 0, carry[0], Expected<Carry>{want.carry.value});
}

testing::AssertionResult RunCase(Lane& lane, const OpParam& param, const ScanCase& c, Random& random) {
  return VisitOutput(param.dtype, param.out_dtype, [&](auto in, auto out) {
    return RunCase<typename decltype(in)::type, typename decltype(out)::type>(lane, param.op, c, random);
  });
}

using ScanTest = DeviceTest<OpParam>;

TEST_P(ScanTest, EverySizeAndForm) {
  int num_cases = 0;
  for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kScan, GetParam())) {
    for (const size_t size : Sizes()) {
      for (unsigned form = 0; form < 32; ++form, ++num_cases) {
        if (!Takes(Primitive::kScan, algorithm, size)) continue;
        ScanCase c;
        c.kind = form & 1 ? ScanKind::kExclusive : ScanKind::kInclusive;
        c.reverse = form & 2;
        c.has_init = form & 4;
        c.in_place = form & 8;
        c.in_offset = form & 16 ? 1 + random().Below(16) : 0;
        // The remaining choices take turns, in steps that have no factor in common with the forms.
        c.out_offset = num_cases / 3 % 2 * random().Below(17);
        c.data = static_cast<Data>(num_cases % kNumData);
        c.through_carry_in = num_cases % 5 < 2;
        c.carry_out = num_cases % 7 < 3 ? ScanCase::kNone : ScanCase::kOwn;
        if (c.through_carry_in && num_cases % 7 > 4) c.carry_out = ScanCase::kAliased;
        c.num_items = size;
        c.algorithm = algorithm;
        ASSERT_TRUE(RunCase(lane(), GetParam(), c, random())) << c;
      }
    }
  }
}

TEST_P(ScanTest, ManyTiles) {
  const auto only = static_cast<int>(random().Below(kNumData));
  for (const Algorithm& algorithm : AlgorithmsOf(device(), Primitive::kScan, GetParam())) {
    for (int data = 0; data < kNumData; ++data) {
      if (TakesAShare(GetParam()) && data != only) continue;
      ScanCase c;
      c.kind = data == 1 ? ScanKind::kExclusive : ScanKind::kInclusive;
      c.reverse = random().OneIn(2);
      c.in_place = random().OneIn(2);
      c.carry_out = ScanCase::kOwn;
      c.has_init = true;
      c.num_items = ManyTilesSize();
      if (!device().CheckLength(Primitive::kScan, algorithm, c.num_items).ok()) continue;
      c.data = static_cast<Data>(data);
      c.algorithm = algorithm;
      ASSERT_TRUE(RunCase(lane(), GetParam(), c, random())) << c;
    }
  }
}

// Between half a million items and a million, where there is a kernel of its own for arrays that are not in place.
TEST_P(ScanTest, Middling) {
  if (SmallSizesOnly()) GTEST_SKIP() << "these are larger than the small sizes that were asked for";
  ScanCase c;
  c.kind = random().OneIn(2) ? ScanKind::kExclusive : ScanKind::kInclusive;
  c.has_init = random().OneIn(2);
  c.carry_out = random().OneIn(2) ? ScanCase::kOwn : ScanCase::kNone;
  c.num_items = (size_t{1} << 19) + 1 + random().Below(size_t{1} << 19);
  c.data = static_cast<Data>(random().Below(kNumData));
  EXPECT_TRUE(RunCase(lane(), GetParam(), c, random())) << c;
}

// Arrays that begin anywhere, and are large enough for the kernels of large arrays.
TEST_P(ScanTest, Anywhere) {
  for (int round = 0; round < 4; ++round) {
    ScanCase c;
    c.kind = random().OneIn(3) ? ScanKind::kExclusive : ScanKind::kInclusive;
    c.reverse = random().OneIn(2);
    c.in_place = random().OneIn(4);
    c.has_init = random().OneIn(2);
    c.in_offset = random().Below(17);
    c.out_offset = random().Below(17);
    c.through_carry_in = random().OneIn(3);
    c.carry_out = random().OneIn(2) ? ScanCase::kOwn : ScanCase::kNone;
    c.num_items = AnywhereSize(GetParam().dtype, random());
    c.data = static_cast<Data>(random().Below(kNumData));
    ASSERT_TRUE(RunCase(lane(), GetParam(), c, random())) << c;
  }
}

// Scans an array chunk by chunk, carrying on the device. `next_chunk` says how long the chunk at `begin` is.
template <class In, class Out, class NextChunk>
void ScanInChunks(Lane& lane, Op op, ScanKind kind, bool reverse, const std::vector<In>& in, Out start,
                  NextChunk next_chunk, std::vector<Out>* out, std::vector<Accumulator<Out>>* carry) {
  DeviceArray<In> d_in(lane, in);
  auto d_out = DeviceArray<Out>::Poisoned(lane, in.size());
  const size_t carry_bytes = CarryBytes(kDTypeOf<Out>, op, Precision::kNative);
  auto d_carry = DeviceArray<Accumulator<Out>>::Poisoned(lane, carry_bytes / sizeof(Accumulator<Out>));
  for (size_t begin = 0; begin < in.size();) {
    const size_t num_items = next_chunk(begin);
    const size_t first = reverse ? in.size() - begin - num_items : begin;
    ScanArgs args;
    args.dtype = kDTypeOf<In>;
    args.out_dtype = kDTypeOf<Out>;
    args.op = op;
    args.kind = kind;
    args.reverse = reverse;
    args.in = d_in.data() + first;
    args.out = d_out.data() + first;
    args.num_items = num_items;
    args.init = Value::Of(start);
    args.carry_in = begin > 0 ? d_carry.data() : nullptr;
    args.carry_out = d_carry.data();
    Require(lane.Scan(args));
    begin += num_items;
  }
  ASSERT_TRUE(d_out.Read(out));
  ASSERT_TRUE(d_carry.Read(carry));
}

// However the caller cuts the array, each chunk is the scan of its own elements behind the carry of those before it.
TEST_P(ScanTest, ChunksCarryOn) {
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using In = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    for (int round = 0; round < 12; ++round) {
      if (!Takes(0)) continue;
      const Op op = GetParam().op;
      const auto data = static_cast<Data>(round % kNumData);
      const auto kind = round % 2 == 0 ? ScanKind::kInclusive : ScanKind::kExclusive;
      const bool reverse = round % 4 >= 2;
      const size_t size = 1 + random().Below(SmallSizesOnly() ? 5000 : 60000);
      SCOPED_TRACE(testing::Message() << "round " << round << ", " << size << " items");
      std::vector<In> in = MakeInput<In>(op, data, size + 1, random());
      const auto start = MakeStart<In, Out>(op, in.back(), random());
      in.pop_back();

      using Carry = Accumulator<Out>;
      std::vector<Expected<Carry>> want(size);
      Accumulated<Carry> want_carry = ItemOf(op, static_cast<Carry>(start));
      const auto next_chunk = [&](size_t begin) {  // One empty chunk in eight or so.
        const size_t num_items = std::min(size - begin, random().OneIn(8) ? 0 : 1 + random().Below(size));
        const size_t first = reverse ? size - begin - num_items : begin;
        const std::vector<Carry> chunk(in.begin() + first, in.begin() + first + num_items);
        const auto scanned = Scan(op, kind, reverse, chunk, want_carry, data == Data::kExact);
        std::copy_n(scanned.out.begin(), num_items, want.begin() + first);
        want_carry = scanned.carry;
        return num_items;
      };
      std::vector<Out> got;
      std::vector<Carry> carry;
      ScanInChunks(lane(), op, kind, reverse, in, start, next_chunk, &got, &carry);
      ASSERT_TRUE(AllAdmitted("out", got, As<Out>(want)));
      ASSERT_TRUE(AreSame(carry, CarryOf(op, want_carry)));
    }
  });
}

// Cut between groups, it is the scan of the whole, bit for bit.
TEST_P(ScanTest, CutsBetweenGroupsChangeNothing) {
  if (SmallSizesOnly()) GTEST_SKIP() << "a group is larger than the small sizes that were asked for";
  VisitOutput(GetParam().dtype, GetParam().out_dtype, [&](auto in_tag, auto out_tag) {
    using In = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    const Op op = GetParam().op;
    const bool share = TakesAShare(GetParam());
    const auto only = random().OneIn(2) ? ScanKind::kInclusive : ScanKind::kExclusive;
    for (const auto kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
      if (share && kind != only) continue;
      const size_t size = (share ? 1 : 3) * kGroupItems + 1 + random().Below((share ? 1 : 2) * kGroupItems);
      SCOPED_TRACE(testing::Message() << Name(kind) << ", " << size << " items");
      std::vector<In> in = MakeInput<In>(op, Data::kRandom, size + 1, random());
      const auto start = MakeStart<In, Out>(op, in.back(), random());
      in.pop_back();
      using Carry = Accumulator<Out>;
      const auto want = Scan(op, kind, false, Converted<Carry>(in), ItemOf(op, static_cast<Carry>(start)), false);
      const auto next_chunk = [&](size_t begin) {
        return std::min(size - begin, (1 + (share ? 0 : random().Below(2))) * static_cast<size_t>(kGroupItems));
      };
      std::vector<Out> got;
      std::vector<Carry> carry;
      ScanInChunks(lane(), op, kind, false, in, start, next_chunk, &got, &carry);
      ASSERT_TRUE(AllAdmitted("out", got, As<Out>(want.out)));
      ASSERT_TRUE(AdmitsCarry(op, want, carry));
    }
  });
}

PREFIXD_ON_EVERY_DEVICE(ScanTest, EveryOp);

// The example of Lane::Scan, and what a reader would check by hand.
using ScanExampleTest = DeviceTest<DeviceParam>;

template <class T>
std::vector<T> ScanOf(Lane& lane, Op op, ScanKind kind, bool reverse, const std::vector<T>& in, T start) {
  DeviceArray<T> d_x(lane, in);
  ScanArgs args;
  args.dtype = kDTypeOf<T>;
  args.op = op;
  args.kind = kind;
  args.reverse = reverse;
  args.in = args.out = d_x.data();
  args.num_items = in.size();
  args.init = Value::Of(start);
  Require(lane.Scan(args));
  std::vector<T> got;
  EXPECT_TRUE(d_x.Read(&got));
  return got;
}

TEST_P(ScanExampleTest, SmallArrays) {
  using I = std::vector<int32_t>;
  EXPECT_EQ(ScanOf<int32_t>(lane(), Op::kSum, ScanKind::kInclusive, false, {3, 1, 2, 4}, 10), I({13, 14, 16, 20}));
  EXPECT_EQ(ScanOf<int32_t>(lane(), Op::kSum, ScanKind::kExclusive, false, {3, 1, 2, 4}, 10), I({10, 13, 14, 16}));
  EXPECT_EQ(ScanOf<int32_t>(lane(), Op::kSum, ScanKind::kInclusive, true, {3, 1, 2, 4}, 10), I({20, 17, 16, 14}));
  EXPECT_EQ(ScanOf<int32_t>(lane(), Op::kSum, ScanKind::kExclusive, true, {3, 1, 2, 4}, 10), I({17, 16, 14, 10}));
  EXPECT_EQ(ScanOf<int32_t>(lane(), Op::kMax, ScanKind::kInclusive, false, {3, 1, 7, 4}, 0), I({3, 3, 7, 7}));
  EXPECT_EQ(ScanOf<int32_t>(lane(), Op::kSum, ScanKind::kInclusive, false, {INT32_MAX, 1, -1}, 0),
            I({INT32_MAX, INT32_MIN, INT32_MAX}));
}

template <class In, class Out>
std::vector<Out> WideScanOf(Lane& lane, Op op, const std::vector<In>& in, Out start) {
  std::vector<Out> got;
  std::vector<Accumulator<Out>> carry;
  ScanInChunks(
      lane, op, ScanKind::kInclusive, false, in, start, [&](size_t begin) { return in.size() - begin; }, &got, &carry);
  return got;
}

// Elements are converted first, with their sign; results wrap in the output type, and not before.
TEST_P(ScanExampleTest, WiderOutputs) {
  using U32 = std::vector<uint32_t>;
  using I64 = std::vector<int64_t>;
  EXPECT_EQ((WideScanOf<uint8_t, uint32_t>(lane(), Op::kSum, {200, 100, 255}, 0)), U32({200, 300, 555}));
  EXPECT_EQ((WideScanOf<uint8_t, uint32_t>(lane(), Op::kSum, {1, 2}, UINT32_MAX)), U32({0, 2}));
  EXPECT_EQ((WideScanOf<uint16_t, uint32_t>(lane(), Op::kProd, {65535, 65535, 2}, 1)),
            U32({65535, 4294836225, 4294705154}));
  EXPECT_EQ((WideScanOf<int8_t, int64_t>(lane(), Op::kSum, {-128, -128, 127}, 0)), I64({-128, -256, -129}));
  EXPECT_EQ((WideScanOf<int8_t, int64_t>(lane(), Op::kAnd, {-2, 3}, int64_t{1} << 40)), I64({int64_t{1} << 40, 0}));
  EXPECT_EQ((WideScanOf<int16_t, int64_t>(lane(), Op::kMin, {7, -3}, -40000)), I64({-40000, -40000}));
  EXPECT_EQ((WideScanOf<int32_t, int64_t>(lane(), Op::kSum, {INT32_MAX, 1}, 0)), I64({INT32_MAX, 2147483648}));
  EXPECT_EQ((WideScanOf<int32_t, int64_t>(lane(), Op::kSum, {1}, INT64_MAX)), I64({INT64_MIN}));
  EXPECT_EQ((WideScanOf<uint32_t, uint64_t>(lane(), Op::kOr, {1, 2}, uint64_t{1} << 63)),
            std::vector<uint64_t>({(uint64_t{1} << 63) + 1, (uint64_t{1} << 63) + 3}));
  // 1 + 2^-30 is no f32; nor is the square of the largest.
  EXPECT_EQ((WideScanOf<float, double>(lane(), Op::kSum, {1, 0x1p-30F}, 0)), std::vector<double>({1, 1 + 0x1p-30}));
  EXPECT_EQ((WideScanOf<float, double>(lane(), Op::kProd, {0x1p127F, 0x1p127F}, 1)),
            std::vector<double>({0x1p127, 0x1p254}));
}

TEST_P(ScanExampleTest, SpecialValuesKeepTheirMeaningInF64) {
  const float nan = -std::numeric_limits<float>::signaling_NaN();
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const Op op : {Op::kSum, Op::kProd, Op::kMin, Op::kMax}) {
    const auto got = WideScanOf<float, double>(lane(), op, {1, nan, 1}, 1);
    EXPECT_TRUE(SameBits(got[1], CanonicalNan<double>()) && SameBits(got[2], got[1])) << Name(op);
  }
  EXPECT_TRUE(SameBits(WideScanOf<float, double>(lane(), Op::kSum, {-0.0F}, -0.0)[0], -0.0));
  EXPECT_TRUE(SameBits(WideScanOf<float, double>(lane(), Op::kMin, {0.0F, -0.0F}, 1)[1], -0.0));
  EXPECT_TRUE(SameBits(WideScanOf<float, double>(lane(), Op::kMax, {-0.0F, 0.0F}, -1)[1], 0.0));
  EXPECT_EQ((WideScanOf<float, double>(lane(), Op::kSum, {tiny, tiny}, 0)[1]), 0x1p-148);
  EXPECT_EQ((WideScanOf<float, double>(lane(), Op::kMin, {tiny}, 1)[0]), 0x1p-149);
}

TEST_P(ScanExampleTest, NarrowTypesWrapInThemselves) {
  using U8 = std::vector<uint8_t>;
  using I16 = std::vector<int16_t>;
  EXPECT_EQ(ScanOf<uint8_t>(lane(), Op::kSum, ScanKind::kInclusive, false, {200, 100, 1}, 0), U8({200, 44, 45}));
  EXPECT_EQ(ScanOf<uint8_t>(lane(), Op::kMax, ScanKind::kExclusive, false, {200, 255, 1}, 7), U8({7, 200, 255}));
  EXPECT_EQ(ScanOf<int16_t>(lane(), Op::kSum, ScanKind::kInclusive, true, {1, 32767}, 0), I16({-32768, 32767}));
  EXPECT_EQ(ScanOf<int16_t>(lane(), Op::kProd, ScanKind::kInclusive, false, {-32768, -1, 2}, 1),
            I16({-32768, -32768, 0}));
}

// What no result of theirs could hold counts in the next one.
TEST_P(ScanExampleTest, NarrowFloatsAreRoundedAtTheEnd) {
  // 2048 + 1 is no f16, and neither is 65504 + 32 a finite one.
  EXPECT_TRUE(AreSame(ScanOf<Float16>(lane(), Op::kSum, ScanKind::kInclusive, false,
                                      Converted<Float16>(std::vector<float>{2048, 1, 1, 65504, -65504}), Float16(0)),
                      Converted<Float16>(std::vector<float>{2048, 2048, 2050, INFINITY, 2050})));
  EXPECT_TRUE(AreSame(
      WideScanOf<Float16, float>(lane(), Op::kSum, Converted<Float16>(std::vector<float>{2048, 1, 1, 65504}), 0),
      {2048, 2049, 2050, 67554}));
  // 256 + 1 is no bf16; nor is the product of 1.0078125 and itself.
  EXPECT_TRUE(AreSame(ScanOf<BFloat16>(lane(), Op::kSum, ScanKind::kInclusive, false,
                                       Converted<BFloat16>(std::vector<float>{256, 1, 1, 0x1p100F}), BFloat16(0)),
                      Converted<BFloat16>(std::vector<float>{256, 256, 258, 0x1p100F})));
  EXPECT_TRUE(AreSame(
      WideScanOf<BFloat16, float>(lane(), Op::kProd, Converted<BFloat16>(std::vector<float>{0x1.02p0F, 0x1.02p0F}), 1),
      {0x1.02p0F, 0x1.0404p0F}));
}

// Without an init an inclusive sum of -0 is -0, and an exclusive one starts with +0.
TEST_P(ScanExampleTest, SignsOfZero) {
  for (const auto kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
    const auto start = ScanStart(Op::kSum, DType::kF64, kind).As<double>();
    const auto got = ScanOf<double>(lane(), Op::kSum, kind, false, std::vector<double>(5000, -0.0), start);
    for (const double x : got) ASSERT_TRUE(SameBits(x, kind == ScanKind::kInclusive ? -0.0 : 0.0));
  }
}

PREFIXD_ON_EVERY_DEVICE(ScanExampleTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
