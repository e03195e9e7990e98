#include "client/prefixctl/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prefixd::cli {
namespace {

using client::BenchmarkResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const client::ServerInfo kInfo = {
    .version = "1.2.3",
    .numerics_version = 7,
    .device = "a card",
    .capabilities = {{Primitive::kScan, DType::kF32, DType::kF32, Op::kSum, {Strategy::kReduceThenScan}}},
    .algorithms = {{.algorithm = {Strategy::kReduceThenScan}}}};

// A result that moves 8 bytes an element in 1000 ns. The copy takes half the time.
BenchmarkResult Measured(uint64_t num_items, Algorithm algorithm = {Strategy::kChained}) {
  return {.primitive = Primitive::kScan,
          .dtype = DType::kF32,
          .op = Op::kSum,
          .algorithm = algorithm,
          .num_items = num_items,
          .times = client::BenchmarkTimes{.p10_ns = 900, .median_ns = 1000, .p90_ns = 1100, .copy_ns = 500},
          .num_bytes = 8 * num_items,
          .launches = 3,
          .repetitions = 20,
          .device = "a card",
          .numerics_version = 7};
}
BenchmarkResult Skipped(uint64_t num_items, Algorithm algorithm, const std::string& why) {
  return {.op = Op::kSum, .algorithm = algorithm, .num_items = num_items, .skipped = why, .device = "a card"};
}
BenchmarkResult CompactOf(BenchmarkResult result) {
  result.primitive = Primitive::kCompact;
  result.op.reset();
  return result;
}

client::BenchmarkSpec SpecOf(std::vector<Algorithm> algorithms, std::vector<uint64_t> sizes) {
  return {.algorithms = std::move(algorithms), .num_items = std::move(sizes), .repetitions = 5};
}

TEST(BenchTable, HeadAndRowsAreAligned) {
  BenchTable table(SpecOf({{}, {Strategy::kChained}}, {1000, 1 << 20}), kInfo);
  const std::string head = table.Head();
  EXPECT_THAT(head, HasSubstr("a card, prefixd 1.2.3: median of 5 samples"));
  EXPECT_EQ(head.substr(head.find("\n\n") + 2),
            "primitive  type  op   algorithm         elements  time, us   GB/s   copy  share\n");
  EXPECT_EQ(table.Row(Measured(1000)),
            "scan       f32   sum  chained               1000      1.00   8.00   16.0    50%\n");
  EXPECT_EQ(table.Row(Measured(1 << 20)),
            "scan       f32   sum  chained               2^20      1.00   8389  16777    50%\n");
}

TEST(BenchTable, SeriesOfSeveralSizesStandApart) {
  BenchTable several(SpecOf({Algorithm{Strategy::kChained}}, {1, 2}), kInfo);
  EXPECT_THAT(several.Row(Measured(1)), testing::StartsWith("scan"));
  EXPECT_THAT(several.Row(Measured(2)), testing::StartsWith("scan"));
  EXPECT_THAT(several.Row(CompactOf(Measured(1))), testing::StartsWith("\ncompact    f32   -    chained"));
  BenchTable one(SpecOf({Algorithm{Strategy::kChained}}, {1}), kInfo);
  one.Row(Measured(1));
  EXPECT_THAT(one.Row(CompactOf(Measured(1))), testing::StartsWith("compact"));
}

TEST(BenchTable, TheSameReasonIsSaidOnceASeries) {
  BenchTable table(SpecOf({Algorithm{Strategy::kCub}}, {1, 2}), kInfo);
  EXPECT_EQ(table.Row(Skipped(1, {Strategy::kCub}, "not served")),
            "scan       f32   sum  cub               1  skipped: not served\n");
  EXPECT_EQ(table.Row(Skipped(2, {Strategy::kCub}, "not served")), "");
  EXPECT_THAT(table.Row(Skipped(4, {Strategy::kCub}, "too large")), HasSubstr("too large"));
  EXPECT_THAT(table.Row(Skipped(4, {Strategy::kThrust}, "too large")), HasSubstr("too large"));
  EXPECT_THAT(table.Row(Measured(1, {Strategy::kThrust})), HasSubstr("1.00"));
  EXPECT_THAT(table.Row(Skipped(4, {Strategy::kThrust}, "too large")), HasSubstr("too large"));
}

TEST(BenchTable, WhatTheClockCannotTellIsNoNumber) {
  BenchmarkResult result = Measured(1);
  result.times->median_ns = 0;
  BenchTable table(SpecOf({Algorithm{Strategy::kChained}}, {1}), kInfo);
  EXPECT_THAT(table.Row(result), HasSubstr("      0.00      -   0.02      -\n"));
}

TEST(BenchJson, HasWhatWasMeasuredAndWhatWasSkipped) {
  const Json json = ToJson({Measured(1000), CompactOf(Skipped(8, {Strategy::kCub}, "why"))}, kInfo,
                           absl::FromUnixSeconds(1764288000));
  EXPECT_EQ(json.dump(),
            R"({"device":"a card","version":"1.2.3","numerics_version":7,"time":"2025-11-28T00:00:00+00:00",)"
            R"("measurements":[{"primitive":"scan","type":"f32","op":"sum","algorithm":"chained","num_items":1000,)"
            R"("num_bytes":8000,"p10_ns":900,"median_ns":1000,"p90_ns":1100,"copy_ns":500,"gb_per_s":8.0,)"
            R"("copy_gb_per_s":16.0,"share_of_copy":0.5,"launches":3,"repetitions":20},)"
            R"({"primitive":"compact","type":"f32","algorithm":"cub","num_items":8,"skipped":"why"}]})");
}

TEST(BenchCsv, QuotesWhatNeedsIt) {
  EXPECT_EQ(CsvHead(),
            "primitive,type,op,algorithm,num_items,num_bytes,p10_ns,median_ns,p90_ns,copy_ns,gb_per_s,copy_gb_per_s,"
            "share_of_copy,launches,repetitions,device,numerics_version,skipped\n");
  EXPECT_EQ(CsvRow(Measured(1000)), "scan,f32,sum,chained,1000,8000,900,1000,1100,500,8.0,16.0,0.5,3,20,a card,7,\n");
  BenchmarkResult skipped = CompactOf(Skipped(8, {Strategy::kCub}, "no, \"never\""));
  skipped.numerics_version = 7;
  EXPECT_EQ(CsvRow(skipped), "compact,f32,,cub,8,,,,,,,,,,,a card,7,\"no, \"\"never\"\"\"\n");
}

std::vector<std::string> Names(const PlotPanel& panel) {
  std::vector<std::string> names;
  for (const PlotCurve& curve : panel.curves) names.push_back(curve.name);
  return names;
}

TEST(BenchPlot, APanelForEachPrimitiveAndTypeWithTheCopyDashed) {
  BenchmarkResult f64 = Measured(8);
  f64.dtype = DType::kF64;
  const Plot plot = ToPlot({Measured(8, {Strategy::kCub}), Measured(4), Measured(2),
                            Skipped(16, {Strategy::kChained}, "why"), f64, CompactOf(Measured(2))},
                           kInfo, absl::FromUnixSeconds(1764288000));
  EXPECT_EQ(plot.title, "prefixd on a card");
  EXPECT_THAT(plot.notes[0], HasSubstr("2025-11-28, prefixd 1.2.3, numerics version 7. Median of 20"));
  ASSERT_THAT(plot.panels, SizeIs(3));
  EXPECT_EQ(plot.panels[0].title, "scan f32 sum");
  EXPECT_EQ(plot.panels[1].title, "scan f64 sum");
  EXPECT_EQ(plot.panels[2].title, "compact f32");
  EXPECT_THAT(Names(plot.panels[0]), ElementsAre("cub", "chained", "copy"));
  const PlotCurve& chained = plot.panels[0].curves[1];
  ASSERT_THAT(chained.points, SizeIs(2));
  EXPECT_EQ(chained.points[0].n, 2);  // Sorted, and without the one that was skipped.
  EXPECT_EQ(chained.points[1].n, 4);
  EXPECT_EQ(chained.points[1].y, 32.0 / 1000);
  EXPECT_EQ(chained.points[1].note, "chained, 4: 1.00 us, 0.03 GB/s, 50% of the copy");
  const PlotCurve& copy = plot.panels[0].curves[2];
  EXPECT_TRUE(copy.yardstick);
  EXPECT_FALSE(chained.yardstick);
  ASSERT_THAT(copy.points, SizeIs(3));
  EXPECT_EQ(copy.points[0].n, 2);
  EXPECT_EQ(copy.points[0].y, 16.0 / 500);
}

TEST(BenchPlot, WhatTheClockCannotTellIsLeftOut) {
  BenchmarkResult no_time = Measured(2);
  no_time.times->median_ns = 0;
  BenchmarkResult no_copy = Measured(4);
  no_copy.times->copy_ns = 0;
  const Plot plot = ToPlot({no_time, no_copy}, kInfo, absl::UnixEpoch());
  EXPECT_THAT(Names(plot.panels[0]), ElementsAre("chained"));
  EXPECT_THAT(plot.panels[0].curves[0].points, SizeIs(1));
}

TEST(BenchPlot, CurvesAreNamedByWhatTellsThemApart) {
  BenchmarkResult max = Measured(2);
  max.op = Op::kMax;
  const absl::Time time = absl::UnixEpoch();
  const Plot by_op = ToPlot({Measured(2), max}, kInfo, time);
  EXPECT_EQ(by_op.panels[0].title, "scan f32");
  EXPECT_THAT(Names(by_op.panels[0]), ElementsAre("sum", "max", "copy"));
  const Plot by_both = ToPlot({Measured(2), max, Measured(2, {Strategy::kCub})}, kInfo, time);
  EXPECT_THAT(Names(by_both.panels[0]), ElementsAre("sum chained", "max chained", "sum cub", "copy"));
}

TEST(BenchTable, IsAsWideAsWhatMayRun) {
  client::ServerInfo info = kInfo;
  info.algorithms.push_back(
      {.algorithm = {Strategy::kThreePhase, TileScan::kBrentKung}, .has_items_per_thread = true, .has_padding = true});
  BenchTable table(SpecOf({{Strategy::kThreePhase}, {Strategy::kChained}}, {1000}), info);
  EXPECT_EQ(table.Row(Measured(1000, {Strategy::kThreePhase, TileScan::kBrentKung, 1})),
            "scan       f32   sum  three_phase/brent_kung/1      1000      1.00   8.00   16.0    50%\n");
  EXPECT_EQ(table.Row(Measured(1000)),
            "scan       f32   sum  chained                       1000      1.00   8.00   16.0    50%\n");
}

TEST(BenchPlot, AStrategyIsAFamilyAndATileScanADash) {
  const Plot plot = ToPlot({Measured(2, {Strategy::kThreePhase, TileScan::kBrentKung, 1}),
                            Measured(2, {Strategy::kThreePhase, TileScan::kBrentKung, 4}),
                            Measured(2, {Strategy::kThreePhase, TileScan::kBlelloch, 0, true}), Measured(2)},
                           kInfo, absl::UnixEpoch());
  const auto& curves = plot.panels[0].curves;
  EXPECT_THAT(Names(plot.panels[0]), ElementsAre("three_phase/brent_kung/1", "three_phase/brent_kung/4",
                                                 "three_phase/blelloch/padded", "chained", "copy"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(curves[i].family, "three_phase");
  EXPECT_EQ(curves[3].family, "chained");
  EXPECT_EQ(curves[0].dash, curves[1].dash);
  EXPECT_NE(curves[0].dash, curves[2].dash);
  EXPECT_EQ(curves[3].dash, 0u);
  EXPECT_FALSE(curves[0].hollow);
  EXPECT_TRUE(curves[1].hollow);
  EXPECT_TRUE(curves[2].hollow);
  static_assert(kNumDashes == kNumTileScans);
}

TEST(BenchPlot, ManyCurvesAreSharesOfTheCopy) {
  std::vector<BenchmarkResult> results;
  for (int i = 1; i < static_cast<int>(kCrowd); ++i) {
    results.push_back(Measured(8, {static_cast<Strategy>(i)}));
    results.back().times->median_ns = 1000 * i;
  }
  const Plot few = ToPlot({results.begin(), results.end() - 1}, kInfo, absl::UnixEpoch());
  EXPECT_EQ(few.y_label, "GB/s");
  EXPECT_EQ(few.y_scale, YScale::kLogarithmic);
  const Plot many = ToPlot(results, kInfo, absl::UnixEpoch());
  EXPECT_EQ(many.y_label, "%");
  EXPECT_EQ(many.y_scale, YScale::kLinear);
  EXPECT_THAT(many.notes.back(), HasSubstr("copies as many bytes"));
  EXPECT_DOUBLE_EQ(many.panels[0].curves[0].points[0].y, 50);
  EXPECT_DOUBLE_EQ(many.panels[0].curves[1].points[0].y, 25);
  EXPECT_DOUBLE_EQ(many.panels[0].curves.back().points[0].y, 100);
  for (BenchmarkResult& result : results) result.times->copy_ns = 0;  // There is nothing to share.
  EXPECT_EQ(ToPlot(results, kInfo, absl::UnixEpoch()).y_label, "GB/s");
}

TEST(BenchPlot, TheCopyIsTheMedianOfItsRates) {
  std::vector<BenchmarkResult> results;
  for (const int copy_ns : {1, 500, 800000}) {
    results.push_back(Measured(2));
    results.back().times->copy_ns = copy_ns;
  }
  EXPECT_EQ(ToPlot(results, kInfo, absl::UnixEpoch()).panels[0].curves.back().points[0].y, 16.0 / 500);
}

}  // namespace
}  // namespace prefixd::cli
