#include "proto/wire_values.h"

#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "prefixd/v1/primitives.pb.h"

namespace prefixd {
namespace {

TEST(WireValuesTest, EveryEnumValueOfTheWireMeansTheSameInTheDomain) {
  // Compares names, so that the test notices a value that moved in either list.
  for (int i = 1; i < v1::DType_ARRAYSIZE; ++i) {
    std::string name = v1::DType_Name(i).substr(std::string("DTYPE_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<DType>(i - 1)));
  }
  for (int i = 1; i < v1::Op_ARRAYSIZE; ++i) {
    std::string name = v1::Op_Name(i).substr(std::string("OP_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<Op>(i - 1)));
  }
  for (int i = 1; i < v1::Strategy_ARRAYSIZE; ++i) {
    std::string name = v1::Strategy_Name(i).substr(std::string("STRATEGY_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<Strategy>(i)));
  }
  for (int i = 1; i < v1::TileScan_ARRAYSIZE; ++i) {
    std::string name = v1::TileScan_Name(i).substr(std::string("TILE_SCAN_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<TileScan>(i)));
  }
  EXPECT_EQ(v1::TileScan_ARRAYSIZE, kNumTileScans);
  EXPECT_EQ(v1::DType_ARRAYSIZE, kNumDTypes + 1);
  EXPECT_EQ(v1::Op_ARRAYSIZE, kNumOps + 1);
  EXPECT_EQ(v1::Strategy_ARRAYSIZE, kNumStrategies);
}

TEST(WireValuesTest, AlgorithmsComeAndGoWhole) {
  const auto decode = [](int strategy, int tile_scan, uint32_t items_per_thread, bool padding) {
    v1::AlgorithmChoice choice;
    choice.set_strategy(static_cast<v1::Strategy>(strategy));
    choice.set_tile_scan(static_cast<v1::TileScan>(tile_scan));
    choice.set_items_per_thread(items_per_thread);
    choice.set_padding(padding);
    const auto decoded = DecodeAlgorithm(choice, "the.field");
    if (decoded.ok()) {
      v1::AlgorithmChoice encoded;
      EncodeAlgorithm(*decoded, &encoded);
      EXPECT_EQ(encoded.SerializeAsString(), choice.SerializeAsString());
    }
    return decoded;
  };
  EXPECT_EQ(decode(0, 0, 0, false).value(), Algorithm{});
  EXPECT_EQ(decode(7, 3, 16, true).value(), (Algorithm{Strategy::kThreePhase, TileScan::kBrentKung, 16, true}));
  EXPECT_EQ(decode(1, 7, 0, false).value(), (Algorithm{Strategy::kChained, TileScan::kWarpSharedRegister}));
  EXPECT_EQ(decode(21, 0, 0, false).value(), Algorithm{Strategy::kOneTbb});
  for (const uint32_t items : {3u, 17u, 32u, 256u, 260u, ~0u}) {
    const absl::Status status = decode(7, 3, items, false).status();
    EXPECT_EQ(ErrorReason(status), "ALGORITHM_CHOICE") << items;
    EXPECT_EQ(ErrorField(status), "the.field.items_per_thread");
    EXPECT_NE(std::string(status.message()).find(StrCat("items_per_thread is ", items)), std::string::npos) << status;
  }
  EXPECT_EQ(ErrorField(decode(22, 0, 0, false).status()), "the.field.strategy");
  EXPECT_EQ(ErrorField(decode(0, -1, 0, false).status()), "the.field.tile_scan");
  EXPECT_EQ(ErrorReason(decode(0, 8, 0, false).status()), "UNKNOWN_ENUM");
}

struct ScalarCase {
  DType dtype;
  v1::Scalar scalar;
  bool fits;
};

v1::Scalar Int(int64_t v) {
  v1::Scalar s;
  s.set_int64_value(v);
  return s;
}
v1::Scalar Uint(uint64_t v) {
  v1::Scalar s;
  s.set_uint64_value(v);
  return s;
}
v1::Scalar Double(double v) {
  v1::Scalar s;
  s.set_double_value(v);
  return s;
}

TEST(WireValuesTest, ScalarsAreTakenWhereTheyAreExactOrFloating) {
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  constexpr uint64_t kMax64 = std::numeric_limits<uint64_t>::max();
  const std::vector<ScalarCase> cases = {
      {DType::kI8, Int(-128), true},
      {DType::kI8, Int(128), false},
      {DType::kU8, Double(255), true},
      {DType::kU8, Uint(256), false},
      {DType::kI16, Double(-32769), false},
      {DType::kU16, Int(65535), true},
      {DType::kU16, Int(-1), false},
      {DType::kI32, Int(-5), true},
      {DType::kI32, Int(int64_t{1} << 31), false},
      {DType::kI32, Int(-(int64_t{1} << 31)), true},
      {DType::kI32, Double(2.0), true},
      {DType::kI32, Double(0.5), false},
      {DType::kI32, Double(std::nan("")), false},
      {DType::kI32, Double(HUGE_VAL), false},
      {DType::kU32, Int(-1), false},
      {DType::kU32, Uint(0xFFFFFFFF), true},
      {DType::kU32, Uint(0x100000000), false},
      {DType::kI64, Int(kMin64), true},
      {DType::kI64, Uint(kMax64), false},
      {DType::kI64, Double(9223372036854775808.0), false},
      {DType::kI64, Double(-9223372036854775808.0), true},
      {DType::kU64, Uint(kMax64), true},
      {DType::kU64, Double(18446744073709551616.0), false},
      {DType::kU64, Double(-1.0), false},
      {DType::kF32, Double(0.1), true},
      {DType::kF32, Int(3), true},
      {DType::kF64, Uint(kMax64), true},
      {DType::kF64, v1::Scalar(), false},
  };
  for (const ScalarCase& c : cases) {
    SCOPED_TRACE(StrCat(Name(c.dtype), " ", c.scalar.ShortDebugString()));
    const absl::StatusOr<Value> value = DecodeScalar(c.scalar, c.dtype, "the.field");
    ASSERT_EQ(value.ok(), c.fits) << value.status();
    if (!c.fits) {
      EXPECT_EQ(ErrorField(value.status()), "the.field");
      continue;
    }
    v1::Scalar encoded;
    EncodeScalar(*value, c.dtype, &encoded);
    const absl::StatusOr<Value> again = DecodeScalar(encoded, c.dtype, "");
    ASSERT_TRUE(again.ok()) << again.status();
    VisitDType(c.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      EXPECT_EQ(again->As<T>(), value->As<T>());
    });
  }
}

}  // namespace
}  // namespace prefixd
