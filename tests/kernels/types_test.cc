#include "kernels/types.h"
#include "kernels/algorithm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace prefixd {
namespace {

// Every value has a name, no two values share one, and the name leads back to the value.
template <class Enum>
void ExpectNamesRoundTrip(int num_values) {
  std::set<std::string_view> names;
  for (int i = 0; i < num_values; ++i) {
    const auto value = static_cast<Enum>(i);
    const std::string_view name = Name(value);
    EXPECT_FALSE(name.empty()) << i;
    EXPECT_TRUE(names.insert(name).second) << name;
    Enum found{};
    EXPECT_TRUE(FromName(name, &found)) << name;
    EXPECT_EQ(found, value) << name;
  }
  EXPECT_EQ(Name(static_cast<Enum>(num_values)), "");
  Enum untouched = static_cast<Enum>(1);
  for (const std::string_view wrong : {"", "f", "F32", "sum ", "no such name"}) {
    EXPECT_FALSE(FromName(wrong, &untouched)) << wrong;
  }
  EXPECT_EQ(untouched, static_cast<Enum>(1));
}

TEST(TypesTest, NamesRoundTrip) {
  ExpectNamesRoundTrip<DType>(kNumDTypes);
  ExpectNamesRoundTrip<Op>(kNumOps);
  ExpectNamesRoundTrip<ScanKind>(2);
  ExpectNamesRoundTrip<Comparison>(kNumComparisons);
  ExpectNamesRoundTrip<Strategy>(kNumStrategies);
  ExpectNamesRoundTrip<TileScan>(kNumTileScans);
}

TEST(TypesTest, NamesMeanWhatTheySay) {
  EXPECT_EQ(Name(DType::kBF16), "bf16");
  EXPECT_EQ(Name(Op::kLinearRecurrence), "linear_recurrence");
  EXPECT_EQ(Name(ScanKind::kExclusive), "exclusive");
  EXPECT_EQ(Name(Primitive::kCompact), "compact");
  EXPECT_EQ(Name(Comparison::kGreaterEqual), ">=");
  EXPECT_EQ(Name(Comparison::kIsFinite), "is-finite");
  EXPECT_EQ(Name(Strategy::kReduceThenScan), "reduce_then_scan");
  EXPECT_EQ(Name(Strategy::kAtomicCounter), "atomic_counter");
}

TEST(TypesTest, AlgorithmsHaveOneNameEach) {
  EXPECT_EQ(Name(Algorithm{}), "default");
  EXPECT_EQ(Name(Algorithm{Strategy::kThreePhase, TileScan::kWarpSharedRegister}), "three_phase/warp_shared_register");
  EXPECT_EQ(Name(Algorithm{Strategy::kChained, TileScan::kBlelloch, 0, true}), "chained/blelloch/padded");
  EXPECT_EQ(Name(Algorithm{Strategy::kThreePhase, TileScan::kBrentKung, 4, true}), "three_phase/brent_kung/4/padded");
  std::set<std::string> names;
  for (int strategy = 0; strategy < kNumStrategies; ++strategy) {
    for (int tile_scan = 0; tile_scan < kNumTileScans; ++tile_scan) {
      for (const int items : {0, 1, 16, 255}) {
        for (const bool padding : {false, true}) {
          const Algorithm algorithm = {static_cast<Strategy>(strategy), static_cast<TileScan>(tile_scan),
                                       static_cast<uint8_t>(items), padding};
          EXPECT_TRUE(names.insert(Name(algorithm)).second) << Name(algorithm);
          Algorithm found;
          EXPECT_TRUE(FromName(Name(algorithm), &found)) << Name(algorithm);
          EXPECT_EQ(found, algorithm) << Name(algorithm);
        }
      }
    }
  }
}

TEST(TypesTest, WhatIsNoNameOfAnAlgorithm) {
  const Algorithm before = {Strategy::kCub};
  Algorithm untouched = before;
  for (const std::string_view wrong : {"",
                                       "/",
                                       "three_phase/",
                                       "/brent_kung",
                                       "three_phase//4",
                                       "three_phase/default",
                                       "three_phase/brent_kung/0",
                                       "three_phase/brent_kung/04",
                                       "three_phase/brent_kung/+4",
                                       "three_phase/brent_kung/4x",
                                       "three_phase/brent_kung/256",
                                       "three_phase/brent_kung/4294967300",
                                       "three_phase/brent_kung/-4",
                                       "three_phase/4/brent_kung",
                                       "three_phase/brent_kung/padded/4",
                                       "three_phase/brent_kung/padded/padded",
                                       "three_phase/brent_kung/blelloch",
                                       "three_phase/brent_kung/4/8",
                                       "brent_kung",
                                       "Three_phase",
                                       "three_phase /brent_kung",
                                       "three_phase/brent_kung ",
                                       "three_phase/unpadded"}) {
    EXPECT_FALSE(FromName(wrong, &untouched)) << wrong;
  }
  EXPECT_EQ(untouched, before);
}

TEST(TypesTest, DTypesKnowTheirSizeAndKind) {
  EXPECT_EQ(SizeOf(DType::kI8), 1u);
  EXPECT_EQ(SizeOf(DType::kU16), 2u);
  EXPECT_EQ(SizeOf(DType::kF16), 2u);
  EXPECT_EQ(SizeOf(DType::kBF16), 2u);
  int num_supported = 0;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!IsSupported(dtype)) continue;
    ++num_supported;
    VisitDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      EXPECT_EQ(kDTypeOf<T>, dtype);
      EXPECT_EQ(SizeOf(dtype), sizeof(T));
      EXPECT_EQ(IsFloating(dtype), !std::is_integral_v<T>);
      EXPECT_EQ(AccumulatorOf(dtype), kDTypeOf<Accumulator<T>>);
      EXPECT_EQ(IsSigned(dtype), std::is_integral_v<T> && std::is_signed_v<T>);
    });
  }
  EXPECT_EQ(num_supported, 12);
  EXPECT_FALSE(IsSupported(static_cast<DType>(kNumDTypes)));
}

TEST(TypesTest, FloatsOf16BitsAreCombinedAsF32) {
  EXPECT_EQ(AccumulatorOf(DType::kF16), DType::kF32);
  EXPECT_EQ(AccumulatorOf(DType::kBF16), DType::kF32);
  EXPECT_TRUE(IsFloating(DType::kF16) && IsNarrowFloat(DType::kF16));
  EXPECT_TRUE(IsFloating(DType::kBF16) && IsNarrowFloat(DType::kBF16));
  EXPECT_FALSE(IsNarrowFloat(DType::kF32));
  EXPECT_FALSE(IsNarrowFloat(DType::kI16));
  EXPECT_EQ(Identity(Op::kProd, DType::kF16).bits, 0x3c00u);
  EXPECT_EQ(Identity(Op::kMax, DType::kBF16).bits, 0xff80u);
  EXPECT_EQ(Neutral(Op::kSum, DType::kF16).bits, 0x8000u);
}

TEST(TypesTest, WhatIsSupported) {
  for (const auto op : {Op::kAnd, Op::kOr, Op::kXor}) {
    EXPECT_FALSE(IsSupported(Primitive::kScan, DType::kF32, DType::kF32, op));
    EXPECT_TRUE(IsSupported(Primitive::kReduce, DType::kU64, DType::kU64, op));
    EXPECT_FALSE(IsDefined(op, DType::kBF16));
  }
  EXPECT_TRUE(IsSupported(Primitive::kScan, DType::kF64, DType::kF64, Op::kProd));
  EXPECT_TRUE(IsSupported(Primitive::kReduce, DType::kF32, DType::kF64, Op::kLogAddExp));
  EXPECT_FALSE(IsSupported(Primitive::kScan, DType::kI64, DType::kI64, Op::kLogAddExp));
  EXPECT_TRUE(IsWideSum(DType::kF64, DType::kF64, Op::kSum));
  EXPECT_FALSE(IsWideSum(DType::kF32, DType::kF64, Op::kSum));
  EXPECT_FALSE(IsWideSum(DType::kF16, DType::kF16, Op::kSum));
  EXPECT_FALSE(IsWideSum(DType::kF32, DType::kF32, Op::kProd));
  EXPECT_FALSE(IsSupported(Primitive::kScan, DType::kF64, DType::kF64, Op::kLinearRecurrence));
  EXPECT_TRUE(IsSupported(Primitive::kScan, DType::kF32, DType::kF64, Op::kSum));
  EXPECT_FALSE(IsSupported(Primitive::kScan, DType::kF32, DType::kF64, Op::kXor));
  EXPECT_FALSE(IsSupported(Primitive::kReduce, DType::kU8, DType::kU64, Op::kLinearRecurrence));
  EXPECT_FALSE(IsRecurrence(Primitive::kScan, DType::kBF16, DType::kBF16, Op::kLinearRecurrence));
  EXPECT_TRUE(IsSupported(Primitive::kScan, DType::kF16, DType::kF16, Op::kSum));
  EXPECT_TRUE(IsSupported(Primitive::kReduce, DType::kBF16, DType::kF32, Op::kLogAddExp));
  EXPECT_FALSE(IsSupported(Primitive::kReduce, DType::kBF16, DType::kF16, Op::kSum));
  EXPECT_TRUE(IsSupported(Primitive::kCompact, DType::kI8, DType::kI8, Op::kSum));
  EXPECT_FALSE(IsSupported(Primitive::kCompact, DType::kI8, DType::kI32, Op::kSum));
  EXPECT_TRUE(IsSupported(Primitive::kCompact, DType::kF32, DType::kF32, Op::kXor));  // Has no operator.
}

TEST(TypesTest, TheListOfOutputsIsClosed) {
  const std::set<std::string> outputs = {"i8 i8",    "i8 i32",  "i8 i64",  "u8 u8",   "u8 u32",  "u8 u64",  "i16 i16",
                                         "i16 i32",  "i16 i64", "u16 u16", "u16 u32", "u16 u64", "i32 i32", "i32 i64",
                                         "u32 u32",  "u32 u64", "i64 i64", "u64 u64", "f16 f16", "f16 f32", "bf16 bf16",
                                         "bf16 f32", "f32 f32", "f32 f64", "f64 f64"};
  std::set<std::string> found;
  for (int d = 0; d < kNumDTypes; ++d) {
    for (int o = 0; o < kNumDTypes; ++o) {
      const auto dtype = static_cast<DType>(d);
      const auto out_dtype = static_cast<DType>(o);
      if (!IsOutput(dtype, out_dtype)) continue;
      found.insert(std::string(Name(dtype)) + " " + std::string(Name(out_dtype)));
      VisitOutput(dtype, out_dtype, [&](auto in, auto out) {
        EXPECT_EQ(kDTypeOf<typename decltype(in)::type>, dtype);
        EXPECT_EQ(kDTypeOf<typename decltype(out)::type>, out_dtype);
      });
    }
  }
  EXPECT_EQ(found, outputs);
  EXPECT_EQ(OutputNames(DType::kU8), "u8, u32, u64");
  EXPECT_EQ(OutputNames(DType::kF64), "f64");
  EXPECT_EQ(OutputNames(DType::kF16), "f16, f32");
  EXPECT_EQ(OutputNames(static_cast<DType>(kNumDTypes)), "");
}

TEST(TypesTest, PrimitivesThatHaveAnOperator) {
  EXPECT_TRUE(HasOp(Primitive::kScan));
  EXPECT_TRUE(HasOp(Primitive::kReduce));
  EXPECT_FALSE(HasOp(Primitive::kCompact));
}

// A dispatch without a case for a value must not go on with another's: in every build it ends the process, naming
// itself and the value.
constexpr auto kNoDType = static_cast<DType>(200);
constexpr auto kNoOp = static_cast<Op>(201);

TEST(DispatchDeathTest, VisitDType) {
  EXPECT_DEATH(VisitDType(kNoDType, [](auto) {}), "fatal: VisitDType .* unknown value \\(200\\)");
}

TEST(DispatchDeathTest, VisitOutput) {
  EXPECT_DEATH(VisitOutput(kNoDType, DType::kI32, [](auto, auto) {}), "VisitOutput .* unknown value \\(200\\)");
  EXPECT_DEATH(VisitOutput(DType::kI32, kNoDType, [](auto, auto) {}), "VisitOutput from i32 .* value \\(200\\)");
  EXPECT_DEATH(VisitOutput(DType::kI8, DType::kU8, [](auto, auto) {}), "VisitOutput from i8 .* u8 \\(1\\)");
}

TEST(DispatchDeathTest, VisitOp) {
  EXPECT_DEATH(VisitOp<int32_t>(kNoOp, [](auto) {}), "VisitOp .* unknown value \\(201\\)");
  EXPECT_DEATH(VisitOp<int32_t>(Op::kLinearRecurrence, [](auto) {}), "VisitOp .* linear_recurrence \\(7\\)");
  EXPECT_DEATH(VisitOp<float>(Op::kAnd, [](auto) {}), "VisitOp .* and \\(4\\)");
  EXPECT_DEATH(VisitOp<float>(Op::kWideSum, [](auto) {}), "VisitOp .* unknown value \\(9\\)");
}

TEST(DispatchDeathTest, Identities) {
  EXPECT_DEATH(Identity(kNoOp, DType::kI32), "VisitOp .* unknown value \\(201\\)");
  EXPECT_DEATH(Identity(Op::kAnd, DType::kF32), "VisitOp .* and \\(4\\)");
  EXPECT_DEATH(Identity(Op::kSum, kNoDType), "VisitDType .* unknown value \\(200\\)");
  EXPECT_DEATH(Neutral(Op::kLinearRecurrence, DType::kI32), "VisitOp .* linear_recurrence \\(7\\)");
  EXPECT_DEATH(Neutral(Op::kSum, kNoDType), "VisitDType .* unknown value \\(200\\)");
}

TEST(DispatchDeathTest, Properties) {
  EXPECT_DEATH(SizeOf(kNoDType), "TraitsOf .* unknown value \\(200\\)");
  EXPECT_DEATH(IsFloating(kNoDType), "TraitsOf .* unknown value \\(200\\)");
  EXPECT_DEATH(HasOp(static_cast<Primitive>(202)), "HasOp .* unknown value \\(202\\)");
}

TEST(ValueTest, KeepsBitsWithZerosBehind) {
  EXPECT_EQ(Value::Of(int32_t{-1}).bits, 0xffffffffu);
  EXPECT_EQ(Value::Of(uint8_t{200}).bits, 200u);
  EXPECT_EQ(Value::Of(1.0).bits, 0x3ff0000000000000u);
  EXPECT_EQ(Value::Of(-0.0f).bits, 0x80000000u);
  EXPECT_EQ(Value::Of(int64_t{-5}).As<int64_t>(), -5);
  EXPECT_EQ(Value::Of(2.5f).As<float>(), 2.5f);
  EXPECT_NE(Value::Of(0.0), Value::Of(-0.0));
  EXPECT_EQ(Value::Of(uint32_t{7}), Value::Of(uint64_t{7}));
}

TEST(IdentityTest, OfEveryOperator) {
  const auto i32 = [](Op op) { return Identity(op, DType::kI32).As<int32_t>(); };
  EXPECT_EQ(i32(Op::kSum), 0);
  EXPECT_EQ(i32(Op::kProd), 1);
  EXPECT_EQ(i32(Op::kMin), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(i32(Op::kMax), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(i32(Op::kAnd), -1);
  EXPECT_EQ(i32(Op::kOr), 0);
  EXPECT_EQ(i32(Op::kXor), 0);
  EXPECT_EQ(Identity(Op::kMin, DType::kU8), Value::Of(uint8_t{255}));
  EXPECT_EQ(Identity(Op::kMax, DType::kI16), Value::Of(int16_t{-32768}));
  EXPECT_EQ(Identity(Op::kAnd, DType::kU16), Value::Of(uint16_t{0xffff}));
  EXPECT_EQ(Identity(Op::kMin, DType::kU64).As<uint64_t>(), ~uint64_t{0});
  EXPECT_EQ(Identity(Op::kMin, DType::kF32).As<float>(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Identity(Op::kMax, DType::kF64).As<double>(), -std::numeric_limits<double>::infinity());
}

TEST(IdentityTest, OnlyFloatingSumsHaveAnotherNeutral) {
  for (int d = 0; d < kNumDTypes; ++d) {
    for (int o = 0; o < kNumOps; ++o) {
      const auto dtype = static_cast<DType>(d);
      const auto op = static_cast<Op>(o);
      if (!IsSupported(Primitive::kScan, dtype, dtype, op)) continue;
      EXPECT_EQ(Neutral(op, dtype) == Identity(op, dtype), !(IsFloating(dtype) && op == Op::kSum));
      EXPECT_EQ(ScanStart(op, dtype, ScanKind::kExclusive), Identity(op, dtype));
      EXPECT_EQ(ScanStart(op, dtype, ScanKind::kInclusive), Neutral(op, dtype));
    }
  }
  EXPECT_FALSE(std::signbit(Identity(Op::kSum, DType::kF32).As<float>()));
  EXPECT_TRUE(std::signbit(Neutral(Op::kSum, DType::kF32).As<float>()));
  EXPECT_TRUE(std::signbit(Neutral(Op::kSum, DType::kF64).As<double>()));
}

}  // namespace
}  // namespace prefixd
