#include "client/prefixctl/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace prefixd::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Json, NumbersOfEveryKind) {
  EXPECT_EQ(ToJson(DType::kI64, Value::Of(std::numeric_limits<int64_t>::min())).dump(), "-9223372036854775808");
  EXPECT_EQ(ToJson(DType::kU64, Value::Of(~uint64_t{0})).dump(), "18446744073709551615");
  EXPECT_EQ(ToJson(DType::kI8, Value::Of(int8_t{-5})).dump(), "-5");
  EXPECT_EQ(ToJson(DType::kU8, Value::Of(uint8_t{200})).dump(), "200");
  EXPECT_EQ(ToJson(DType::kU32, Value::Of(~uint32_t{0})).dump(), "4294967295");
  EXPECT_EQ(ToJson(DType::kF32, Value::Of(0.1f)).dump(), "0.1");
  EXPECT_EQ(ToJson(DType::kF64, Value::Of(0.1)).dump(), "0.1");
  EXPECT_EQ(ToJson(DType::kF64, Value::Of(std::nan(""))).dump(), "\"NaN\"");
  EXPECT_EQ(ToJson(DType::kF32, Value::Of(INFINITY)).dump(), "\"Infinity\"");
  EXPECT_EQ(ToJson(DType::kF64, Value::Of(-std::numeric_limits<double>::infinity())).dump(), "\"-Infinity\"");
}

TEST(Json, LeavesOutStagesThatWereNotMeasured) {
  client::Timing timing;
  timing.kernel_ns = 0;
  const Json json = ToJson(timing, absl::Milliseconds(2));
  EXPECT_EQ(json["wall_ns"], 2000000);
  EXPECT_EQ(json["kernel_ns"], 0);
  EXPECT_FALSE(json.contains("host_to_device_ns"));
}

TEST(SummaryLine, SaysWhatIsKnown) {
  client::Timing timing;
  EXPECT_EQ(SummaryLine(3, DType::kF32, timing, absl::Milliseconds(12)), "3 f32 in 12ms");
  timing.kernel_ns = 410000;
  timing.kernel_gb_per_s = 19.51;
  timing.device = "cpu (2 threads)";
  timing.algorithm = {Strategy::kReduceThenScan};
  EXPECT_EQ(SummaryLine(1000000, DType::kF32, timing, absl::Microseconds(12300)),
            "1000000 f32 in 12.3ms, kernel 410us (19.5 GB/s), cpu (2 threads), reduce_then_scan");
}

TEST(SummaryLine, HasNoExponents) {
  const auto line = [](absl::Duration wall, double rate) {
    client::Timing timing;
    timing.kernel_ns = 0;
    timing.kernel_gb_per_s = rate;
    return SummaryLine(1, DType::kF32, timing, wall);
  };
  EXPECT_EQ(line(absl::Seconds(1230), 2410.4), "1 f32 in 1230s, kernel 0us (2410 GB/s)");
  EXPECT_EQ(line(absl::Nanoseconds(999600), 0.0123), "1 f32 in 1ms, kernel 0us (0.01 GB/s)");
  EXPECT_EQ(line(absl::Microseconds(999600), 9.996), "1 f32 in 1s, kernel 0us (10 GB/s)");
  EXPECT_EQ(line(absl::Nanoseconds(410), 99.96), "1 f32 in 0.41us, kernel 0us (100 GB/s)");
}

TEST(Table, ListsEachNameOnce) {
  client::ServerInfo info;
  info.device = "cpu";
  for (const Op op : {Op::kSum, Op::kMax}) {
    for (const DType dtype : {DType::kI32, DType::kF32}) {
      info.capabilities.push_back({Primitive::kScan, dtype, dtype, op, {Strategy::kSequential}});
    }
  }
  const std::string table = Table(info);
  EXPECT_THAT(table, HasSubstr("scan types        i32 f32\n"));
  EXPECT_THAT(table, HasSubstr("scan operators    sum max\n"));
  EXPECT_THAT(table, HasSubstr("scan algorithms   sequential\n"));
  EXPECT_THAT(table, Not(HasSubstr("reduce")));
  EXPECT_THAT(table, Not(HasSubstr("output")));
}

TEST(Table, TellsOutputTypes) {
  client::ServerInfo info;
  for (const DType out_dtype : {DType::kU8, DType::kU32, DType::kU64}) {
    info.capabilities.push_back({Primitive::kScan, DType::kU8, out_dtype, Op::kSum, {Strategy::kSequential}});
  }
  const std::string table = Table(info);
  EXPECT_THAT(table, HasSubstr("scan types         u8\n"));
  EXPECT_THAT(table, HasSubstr("scan output types  the same, or u8>u32 u8>u64\n"));
}

client::ServerInfo WithAlgorithms() {
  return {.device = "a card",
          .algorithms = {{.primitive = Primitive::kScan,
                          .algorithm = {Strategy::kThreePhase, TileScan::kBrentKung},
                          .has_items_per_thread = true,
                          .has_padding = true,
                          .work = "2n",
                          .depth = "2 log n",
                          .traffic = "4n",
                          .launches = "3 and more",
                          .stable = true,
                          .deterministic = true,
                          .source = "Brent and Kung 1982; text 000"},
                         {.primitive = Primitive::kScan,
                          .algorithm = {Strategy::kNaive},
                          .work = "n^2 / 2",
                          .depth = "n",
                          .traffic = "n^2 / 2",
                          .launches = "1",
                          .stable = true,
                          .deterministic = false,
                          .max_items = 16384,
                          .source = "text 000"},
                         {.primitive = Primitive::kCompact,
                          .algorithm = {Strategy::kAtomicCounter},
                          .work = "n",
                          .depth = "n",
                          .traffic = "2n",
                          .launches = "1",
                          .stable = false,
                          .deterministic = false,
                          .source = "text 004"}}};
}

TEST(AlgorithmTable, ARowEachAndPrimitivesApart) {
  EXPECT_EQ(
      AlgorithmTable(WithAlgorithms()),
      "n: elements. b: those of a tile. /N, /padded: what may follow the name.\n\n"
      "primitive  algorithm                            work     depth    traffic  launches    stable  deterministic  "
      "limit  source\n"
      "scan       three_phase/brent_kung[/N][/padded]  2n       2 log n  4n       3 and more  yes     yes            "
      "-      Brent and Kung 1982; text 000\n"
      "scan       naive                                n^2 / 2  n        n^2 / 2  1           yes     no             "
      "16384  text 000\n"
      "\n"
      "compact    atomic_counter                       n        n        2n       1           no      no             "
      "-      text 004\n");
  EXPECT_THAT(AlgorithmTable({}), HasSubstr("primitive  algorithm"));
}

TEST(AlgorithmTable, AsJson) {
  const Json json = AlgorithmsToJson(WithAlgorithms());
  EXPECT_EQ(json["device"], "a card");
  ASSERT_EQ(json["algorithms"].size(), 3u);
  EXPECT_EQ(json["algorithms"][0].dump(),
            R"({"primitive":"scan","algorithm":"three_phase/brent_kung","has_items_per_thread":true,)"
            R"("has_padding":true,"work":"2n","depth":"2 log n","traffic":"4n","launches":"3 and more",)"
            R"("stable":true,"deterministic":true,"source":"Brent and Kung 1982; text 000"})");
  EXPECT_EQ(json["algorithms"][1]["max_items"], 16384);
  EXPECT_EQ(json["algorithms"][2]["stable"], false);
}

}  // namespace
}  // namespace prefixd::cli
