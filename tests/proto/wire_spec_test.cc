// Specs to the wire and back: the other side gets the same spec.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "kernels/spec.h"
#include "proto/wire_compact.h"
#include "proto/wire_difference.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "proto/wire_values.h"

namespace prefixd {
namespace {

constexpr int kRounds = 5000;

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  uint64_t Bits() { return bits_(); }
  bool Coin() { return Bits() % 2 == 0; }
  template <class T>
  T OneOf(const std::vector<T>& values) {
    return values[Bits() % values.size()];
  }
  template <class Enum>
  Enum EnumOf() {
    return static_cast<Enum>(Bits() % kNumValues<Enum>);
  }

  DType ServedDType() {
    for (;;) {
      if (const auto dtype = EnumOf<DType>(); IsSupported(dtype)) return dtype;
    }
  }
  // Any bits of an integer; of floats also the infinities, both zeros and NaN, which is canonical on every way.
  Value ValueOf(DType dtype) {
    return VisitDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) {
        return Value::Of(static_cast<T>(Bits()));
      } else {
        using Limits = std::numeric_limits<T>;
        if (Coin()) return Value::Of(static_cast<T>(static_cast<double>(Bits()) / 3e9 - 3e9));
        return Value::Of(OneOf<T>({T{0}, -T{0}, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                   Limits::denorm_min(), Limits::max(), Limits::lowest()}));
      }
    });
  }
  Algorithm AnyAlgorithm() {
    if (Coin()) return {};
    return {static_cast<Strategy>(Bits() % kNumStrategies), static_cast<TileScan>(Bits() % kNumTileScans),
            OneOf<uint8_t>({0, 1, 2, 4, 8, 16}), Coin()};
  }
  std::optional<uint64_t> AnyLength() { return Coin() ? std::nullopt : std::optional(Bits()); }

  std::optional<Axis> AnyAxis() {
    if (Coin()) return std::nullopt;
    if (Coin()) return Axis{.along = Axis::Along::kRow, .row_items = Bits() | 1};
    return Axis{.along = Axis::Along::kColumn, .row_items = 1 + Bits() % 1'000'000};
  }

  // dtype, out_dtype, op and init, which go together.
  template <class Spec>
  void SetOperator(Spec* spec) {
    do {
      spec->dtype = ServedDType();
      spec->out_dtype = Coin() ? std::nullopt : std::optional(EnumOf<DType>());
      spec->op = EnumOf<Op>();
    } while (!IsSupported(Spec::kPrimitive, spec->dtype, spec->output(), spec->op) &&
             !IsRecurrence(Spec::kPrimitive, spec->dtype, spec->output(), spec->op));
    spec->precision = EnumOf<Precision>();
    if (Coin()) spec->init = ValueOf(spec->output());
  }

 private:
  std::mt19937_64 bits_;
};

ScanSpec AnyScan(Random& random) {
  ScanSpec spec = {.kind = random.EnumOf<ScanKind>(),
                   .reverse = random.Coin(),
                   .algorithm = random.AnyAlgorithm(),
                   .num_items = random.AnyLength(),
                   .axis = random.AnyAxis(),
                   .key_dtype = random.Coin() ? std::nullopt : std::optional(random.ServedDType()),
                   .include_initial = random.Coin(),
                   .return_indices = random.Coin(),
                   .index_dtype = random.Coin() ? DType::kU64 : DType::kU32,
                   .last_index = random.Coin()};
  random.SetOperator(&spec);
  if (spec.op == Op::kLinearRecurrence && random.Coin()) spec.coefficient = random.ValueOf(spec.dtype);
  return spec;
}

ReduceSpec AnyReduce(Random& random) {
  ReduceSpec spec = {.algorithm = random.AnyAlgorithm(),
                     .num_items = random.AnyLength(),
                     .axis = random.AnyAxis(),
                     .key_dtype = random.Coin() ? std::nullopt : std::optional(random.ServedDType()),
                     .return_keys = random.Coin()};
  random.SetOperator(&spec);
  return spec;
}

CompactSpec AnyCompact(Random& random) {
  CompactSpec spec = {.dtype = random.ServedDType(),
                      .invert = random.Coin(),
                      .return_values = random.Coin(),
                      .return_indices = random.Coin(),
                      .index_dtype = random.Coin() ? DType::kU64 : DType::kU32,
                      .algorithm = random.AnyAlgorithm(),
                      .num_items = random.AnyLength(),
                      .key_dtype = random.Coin() ? std::nullopt : std::optional(random.ServedDType())};
  if (random.Coin()) {
    spec.mask_kind = random.Coin() ? MaskKind::kBytes : MaskKind::kBits;
    return spec;
  }
  spec.predicate = Predicate{.comparison = random.EnumOf<Comparison>()};
  if (HasValue(spec.predicate->comparison)) spec.predicate->value = random.ValueOf(spec.dtype);
  if (HasEnd(spec.predicate->comparison)) spec.predicate->end = random.ValueOf(spec.dtype);
  return spec;
}

DifferenceSpec AnyDifference(Random& random) {
  DifferenceSpec spec = {.dtype = random.ServedDType(),
                         .reverse = random.Coin(),
                         .algorithm = random.AnyAlgorithm(),
                         .num_items = random.AnyLength(),
                         .axis = random.AnyAxis(),
                         .key_dtype = random.Coin() ? std::nullopt : std::optional(random.ServedDType())};
  if (random.Coin()) spec.init = random.ValueOf(spec.dtype);
  return spec;
}

// Over the bytes of the message, too.
template <class Spec>
void ExpectComesBack(Spec (*any)(Random&)) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int round = 0; round < kRounds; ++round) {
    const Spec spec = any(random);
    auto wire = ToWire(spec);
    ASSERT_TRUE(wire.ok()) << wire.status();
    ASSERT_TRUE(wire->ParseFromString(wire->SerializeAsString()));
    const absl::StatusOr<Spec> back = FromWire(*wire);
    ASSERT_TRUE(back.ok()) << back.status() << " for " << wire->ShortDebugString();
    ASSERT_TRUE(*back == spec) << wire->ShortDebugString();
  }
}

TEST(WireSpec, ScansComeBack) { ExpectComesBack(AnyScan); }
TEST(WireSpec, ReducesComeBack) { ExpectComesBack(AnyReduce); }
TEST(WireSpec, CompactsComeBack) { ExpectComesBack(AnyCompact); }
TEST(WireSpec, DifferencesComeBack) { ExpectComesBack(AnyDifference); }

// What proto3 leaves out is what the contract calls the default.
TEST(WireSpec, DefaultsAreTheContracts) {
  v1::ScanSpec scan;
  scan.set_dtype(v1::DTYPE_F32);
  scan.set_op(v1::OP_SUM);
  EXPECT_TRUE(FromWire(scan).value() == ScanSpec{});
  v1::ReduceSpec reduce;
  reduce.set_dtype(v1::DTYPE_F32);
  reduce.set_op(v1::OP_SUM);
  EXPECT_TRUE(FromWire(reduce).value() == ReduceSpec{});
  v1::CompactSpec compact;
  compact.set_dtype(v1::DTYPE_F32);
  compact.set_mask(v1::MASK_KIND_BYTES);
  EXPECT_TRUE(FromWire(compact).value() == CompactSpec{});
}

TEST(WireSpec, AFaultIsNamedWithItsReasonAndField) {
  const auto expect = [](const absl::Status& status, absl::StatusCode code, std::string_view reason,
                         std::string_view field) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(ErrorReason(status), reason) << status;
    EXPECT_EQ(ErrorField(status), field) << status;
  };
  const auto scan = [](auto change) {
    v1::ScanSpec wire = ToWire(ScanSpec{.dtype = DType::kF32}).value();
    change(&wire);
    return FromWire(wire).status();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  using Scan = v1::ScanSpec;
  expect(scan([](Scan* s) { s->clear_dtype(); }), kInvalid, "UNKNOWN_ENUM", "spec.dtype");
  expect(scan([](Scan* s) { s->set_dtype(static_cast<v1::DType>(std::numeric_limits<int>::min())); }), kInvalid,
         "UNKNOWN_ENUM", "spec.dtype");
  expect(scan([](Scan* s) { s->set_out_dtype(v1::DTYPE_U8); }), kInvalid, "UNSUPPORTED_COMBINATION", "spec.out_dtype");
  expect(scan([](Scan* s) { s->set_op(v1::OP_AND); }), kInvalid, "UNSUPPORTED_COMBINATION", "spec.op");
  for (const v1::DType dtype : {v1::DTYPE_I32, v1::DTYPE_U8}) {
    expect(scan([&](Scan* s) {
             s->set_dtype(dtype);
             s->set_op(v1::OP_LINEAR_RECURRENCE);
           }),
           kInvalid, "UNSUPPORTED_COMBINATION", "spec.op");
  }
  expect(scan([](Scan* s) {
           s->set_op(v1::OP_LINEAR_RECURRENCE);
           s->set_out_dtype(v1::DTYPE_F64);
         }),
         kInvalid, "UNSUPPORTED_COMBINATION", "spec.op");
  expect(scan([](Scan* s) {
           s->set_op(v1::OP_LINEAR_RECURRENCE);
           s->mutable_coefficient();
         }),
         kInvalid, "FIELD_CONFLICT", "spec.coefficient");
  expect(scan([](Scan* s) { s->set_kind(static_cast<v1::ScanKind>(9)); }), kInvalid, "UNKNOWN_ENUM", "spec.kind");
  expect(scan([](Scan* s) { s->mutable_init(); }), kInvalid, "FIELD_CONFLICT", "spec.init");
  expect(scan([](Scan* s) { s->set_precision(static_cast<v1::Precision>(9)); }), kInvalid, "UNKNOWN_ENUM",
         "spec.precision");
  expect(scan([](Scan* s) {
           s->set_op(v1::OP_LOG_ADD_EXP);
           s->set_dtype(v1::DTYPE_I64);
         }),
         kInvalid, "UNSUPPORTED_COMBINATION", "spec.op");
  expect(scan([](Scan* s) { s->set_axis(0); }), kInvalid, "SHAPE", "spec.row_items");
  expect(scan([](Scan* s) { s->set_row_items(3); }), kInvalid, "SHAPE", "spec.axis");
  expect(scan([](Scan* s) {
           s->set_axis(2);
           s->set_row_items(3);
         }),
         kInvalid, "SHAPE", "spec.axis");
  expect(scan([](Scan* s) {
           s->set_axis(1);
           s->set_row_items(0);
         }),
         kInvalid, "SHAPE", "spec.row_items");
  expect(scan([](Scan* s) { s->set_index_dtype(v1::DTYPE_U16); }), kInvalid, "UNSUPPORTED_COMBINATION",
         "spec.index_dtype");
  expect(scan([](Scan* s) { s->mutable_algorithm()->set_items_per_thread(3); }), kInvalid, "ALGORITHM_CHOICE",
         "spec.algorithm.items_per_thread");
  EXPECT_EQ(scan([](Scan* s) {
              s->set_op(v1::OP_LOG_ADD_EXP);
              s->set_dtype(v1::DTYPE_I64);
            }).message(),
            "log_add_exp is not defined on i64: use a floating-point dtype");
  EXPECT_EQ(
      scan([](Scan* s) {
        s->set_op(v1::OP_LINEAR_RECURRENCE);
        s->set_dtype(v1::DTYPE_F16);
      }).message(),
      "linear_recurrence is an operator of scans of f32 and f64 into the same type, not of a scan of f16 into f16: "
      "use another, or a cast");

  const auto compact = [](auto change) {
    v1::CompactSpec wire = ToWire(CompactSpec{.predicate = Predicate{Comparison::kLess, Value::Of(1.0f)}}).value();
    change(&wire);
    return FromWire(wire).status();
  };
  using Compact = v1::CompactSpec;
  expect(compact([](Compact* s) { s->clear_selector(); }), kInvalid, "FIELD_CONFLICT", "spec.selector");
  expect(compact([](Compact* s) { s->set_mask(v1::MASK_KIND_UNSPECIFIED); }), kInvalid, "UNKNOWN_ENUM", "spec.mask");
  expect(compact([](Compact* s) { s->mutable_predicate()->clear_value(); }), kInvalid, "FIELD_CONFLICT",
         "spec.predicate.value");
  expect(compact([](Compact* s) { s->set_index_dtype(v1::DTYPE_I64); }), kInvalid, "UNSUPPORTED_COMBINATION",
         "spec.index_dtype");
}

TEST(WireSpec, AClientWithoutValuesOfATypeSaysSo) {
  constexpr auto kUnknown = static_cast<DType>(kNumDTypes);
  const absl::Status status = ToWire(CompactSpec{.dtype = kUnknown, .predicate = Predicate{}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "this client has no values of the type 12");
  // Without one the server is the judge.
  EXPECT_TRUE(ToWire(CompactSpec{.dtype = kUnknown}).ok());
}

// On the wire a value of 16 bits is a double; what comes as one is rounded once.
TEST(WireSpec, InitsOfNarrowFloats) {
  const ScanSpec spec = {.dtype = DType::kF16, .init = Value::Of(Float16(0.1f))};
  v1::ScanSpec wire = ToWire(spec).value();
  EXPECT_EQ(wire.init().double_value(), 0x1.998p-4);
  EXPECT_EQ(FromWire(wire)->init, spec.init);
  // Just above the middle of 1 and its neighbour: as an f32 it would be the middle, which is rounded to 1.
  wire.mutable_init()->set_double_value(1 + 0x1p-11 + 0x1p-40);
  EXPECT_EQ(FromWire(wire)->init, Value::Of(Float16(1 + 0x1p-10f)));
  wire.set_dtype(v1::DTYPE_BF16);
  wire.mutable_init()->set_int64_value((int64_t{1} << 40) + (int64_t{1} << 32) + 1);
  EXPECT_EQ(FromWire(wire)->init, Value::Of(BFloat16(0x1.02p40f)));
  wire.mutable_init()->set_double_value(-std::nan(""));
  EXPECT_EQ(FromWire(wire)->init, Value::Of(BFloat16::FromBits(0x7fc0)));
}

}  // namespace
}  // namespace prefixd
