#include "client/prefixctl/load_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace prefixd::cli {
namespace {

using load::LoadResult;
using load::Stage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const absl::Time kTime = absl::FromUnixSeconds(1764288000);

LoadSetup SetupOf(std::vector<load::Operation> operations) {
  return {.mix = load::Mix(std::move(operations), 42), .server = {.version = "1.2.3", .device = "a card"}};
}
LoadSetup OneOperation() { return SetupOf({{Primitive::kScan, DType::kF32, 100, 1}}); }
LoadSetup TwoOperations() {
  return SetupOf({{Primitive::kScan, DType::kF32, 100, 3}, {Primitive::kReduce, DType::kF64, 1024, 1}});
}

// Two seconds of load. The first operation has requests that took 1 to 200 ns, and a late one that took 1 ms.
LoadResult Measured(const LoadSetup& setup, size_t num_callers) {
  LoadResult result({.num_callers = num_callers}, setup.mix.operations().size());
  load::Tally& tally = result.measured.tallies[0];
  for (int64_t ns = 1; ns <= 200; ++ns) tally.latency.Add(ns);
  tally.latency.Add(1000000);
  tally.num_ok = 200;
  tally.num_late = 1;
  tally.num_bytes = 160000;
  tally.stages[static_cast<size_t>(Stage::kServer)] = {.sum_ns = 8000, .count = 200};
  tally.stages[static_cast<size_t>(Stage::kKernel)] = {.sum_ns = 2000, .count = 200};
  result.measured.duration = std::chrono::seconds(2);
  result.num_windows = 3;
  result.stable = true;
  return result;
}

void AddErrors(LoadResult* result) {
  result->measured.tallies[0].num_failed = 5;
  result->measured.errors["RESOURCE_EXHAUSTED (REQUEST_BUDGET)"] = {
      5, Error(absl::StatusCode::kResourceExhausted, "REQUEST_BUDGET", "", "too many, \"really\"")};
}

TEST(LoadTable, HeadAndRowsAreAligned) {
  const LoadSetup setup = OneOperation();
  const LoadTable table(setup);
  const std::string head = table.Head();
  EXPECT_THAT(head, HasSubstr("a card, prefixd 1.2.3: closed loop, 1 channel, 3 s measured after 1 s, seed 42."));
  EXPECT_EQ(
      head.substr(head.find("\n\n") + 2),
      "callers  operation     requests/s     MB/s      p50      p90      p99    p99.9      max   failed   stable\n");
  EXPECT_EQ(
      table.Rows(Measured(setup, 4)),
      "      4  scan:f32:100         100     0.08     0.10     0.18     0.20     1000     1000        0      yes\n");
}

TEST(LoadTable, OfSeveralOperationsEachHasARow) {
  const LoadSetup setup = TwoOperations();
  LoadResult result = Measured(setup, 4);
  result.stable = false;
  AddErrors(&result);
  EXPECT_EQ(
      LoadTable(setup).Rows(result),
      "      4  all                     100     0.08     0.10     0.18     0.20     1000     1000        5       no\n"
      "         scan:f32:100            100     0.08     0.10     0.18     0.20     1000     1000        5\n"
      "         reduce:f64:2^10        0.00     0.00        -        -        -        -        -        0\n"
      "  5 failed: RESOURCE_EXHAUSTED (REQUEST_BUDGET): too many, \"really\"\n");
}

TEST(LoadTable, AnOpenLoopTellsWhatWasNotSent) {
  LoadSetup setup = OneOperation();
  setup.open_loop = true;
  setup.plan.until_stable = true;
  setup.num_channels = 2;
  const LoadTable table(setup);
  EXPECT_THAT(table.Head(), HasSubstr("open loop, 2 channels, 3 s measured after 1 s and until stable"));
  EXPECT_THAT(table.Head(), HasSubstr("arrivals/s  operation "));
  EXPECT_THAT(table.Head(), HasSubstr("  failed   unsent   stable\n"));
  LoadResult result = Measured(setup, 4);
  result.load.rate_per_second = 12345;
  result.measured.tallies[0].num_unsent = 77;
  EXPECT_THAT(table.Rows(result), testing::StartsWith("     12345  scan:f32:100 "));
  EXPECT_THAT(table.Rows(result), testing::EndsWith("      0       77      yes\n"));
}

TEST(LoadTable, AnEchoSaysSo) {
  LoadSetup setup = OneOperation();
  setup.target = load::Target::kEcho;
  EXPECT_THAT(LoadTable(setup).Head(), testing::StartsWith("echo of prefixd 1.2.3 beside a card: "));
}

TEST(LoadTable, StagesStandBesideTheClient) {
  const LoadSetup setup = TwoOperations();
  const std::string stages = LoadTable(setup).Stages({Measured(setup, 4), Measured(setup, 8)});
  EXPECT_EQ(stages.substr(stages.find("callers")),
            "callers  operation         client   server    queue  host copy  to device   kernel  from device\n"
            "      4  all                 5.08     0.04        -          -          -     0.01            -\n"
            "         scan:f32:100        5.08     0.04        -          -          -     0.01            -\n"
            "      8  all                 5.08     0.04        -          -          -     0.01            -\n"
            "         scan:f32:100        5.08     0.04        -          -          -     0.01            -\n");
  LoadResult without = Measured(setup, 4);
  without.measured.tallies[0].stages = {};
  EXPECT_EQ(LoadTable(setup).Stages({without}), "");
}

TEST(LoadJson, HasAllThatWasMeasured) {
  const LoadSetup setup = TwoOperations();
  LoadResult result = Measured(setup, 4);
  AddErrors(&result);
  const Json json = ToJson(setup, {result}, kTime);
  EXPECT_EQ(json["target"], "device");
  EXPECT_EQ(json["device"], "a card");
  EXPECT_EQ(json["seed"], 42);
  EXPECT_EQ(json["time"], "2025-11-28T00:00:00+00:00");
  EXPECT_EQ(json["mix"].dump(),
            R"([{"operation":"scan:f32:100","weight":3},{"operation":"reduce:f64:2^10","weight":1}])");
  ASSERT_THAT(json["loads"], SizeIs(1));
  const Json& load = json["loads"][0];
  EXPECT_EQ(load["callers"], 4);
  EXPECT_FALSE(load.contains("arrivals_per_second"));
  EXPECT_EQ(load["seconds"], 2.0);
  EXPECT_EQ(load["windows"], 3);
  EXPECT_EQ(load["stable"], true);
  EXPECT_EQ(load["operations"][0].dump(),
            R"({"operation":"scan:f32:100","requests":200,"late":1,"failed":5,"unsent":0,"interrupted":0,)"
            R"("requests_per_second":100.0,)"
            R"("bytes_per_second":80000.0,"mean_ns":5075.124378109453,"p50_ns":101,"p90_ns":181,"p99_ns":199,)"
            R"("p999_ns":1000000,"max_ns":1000000,"server_total_ns":40.0,"server_kernel_ns":10.0})");
  EXPECT_EQ(load["operations"][1].dump(),
            R"({"operation":"reduce:f64:2^10","requests":0,"late":0,"failed":0,"unsent":0,"interrupted":0,)"
            R"("requests_per_second":0.0,)"
            R"("bytes_per_second":0.0})");
  EXPECT_EQ(load["total"]["requests"], 200);
  ASSERT_THAT(load["errors"], SizeIs(1));
  EXPECT_EQ(load["errors"][0]["code"], "RESOURCE_EXHAUSTED (REQUEST_BUDGET)");
  EXPECT_EQ(load["errors"][0]["count"], 5);
  EXPECT_EQ(load["errors"][0]["first"], "too many, \"really\"");
}

TEST(LoadCsv, HasARowForEachOperation) {
  const LoadSetup setup = TwoOperations();
  EXPECT_EQ(
      LoadCsvHead(),
      "target,arrivals_per_second,callers,seconds,windows,stable,operation,requests,late,failed,unsent,interrupted,"
      "requests_per_second,bytes_per_second,mean_ns,p50_ns,p90_ns,p99_ns,p999_ns,max_ns,server_total_ns,"
      "server_queue_ns,server_host_copy_ns,server_host_to_device_ns,server_kernel_ns,server_device_to_host_ns,"
      "channels,seed,device\n");
  const std::string rest = "100.0,80000.0,5075.124378109453,101,181,199,1000000,1000000,40.0,,,,10.0,,1,42,a card\n";
  EXPECT_EQ(LoadCsvRows(setup, Measured(setup, 4)),
            "device,,4,2.0,3,true,all,200,1,0,0,0," + rest + "device,,4,2.0,3,true,scan:f32:100,200,1,0,0,0," + rest +
                "device,,4,2.0,3,true,reduce:f64:2^10,0,0,0,0,0,0.0,0.0,,,,,,,,,,,,,1,42,a card\n");
}

TEST(LoadPlot, ACurveForEachPercentileOverTheLoad) {
  const LoadSetup setup = TwoOperations();
  LoadResult nothing({.num_callers = 32}, 2);
  nothing.measured.duration = std::chrono::seconds(1);
  EXPECT_FALSE(HasLatencies(nothing));
  EXPECT_TRUE(HasLatencies(Measured(setup, 8)));
  const Plot plot = ToPlot(setup, {Measured(setup, 8), Measured(setup, 2), nothing}, kTime);
  EXPECT_EQ(plot.title, "Latency over load: a card, prefixd 1.2.3");
  EXPECT_THAT(plot.notes[0], HasSubstr("2025-11-28, closed loop"));
  EXPECT_EQ(plot.n_label, "callers");
  ASSERT_THAT(plot.panels, SizeIs(2));  // The second operation was never there.
  EXPECT_EQ(plot.panels[0].title, "all");
  EXPECT_EQ(plot.panels[1].title, "scan:f32:100");
  std::vector<std::string> names;
  for (const PlotCurve& curve : plot.panels[0].curves) names.push_back(curve.name);
  EXPECT_THAT(names, ElementsAre("p50", "p90", "p99", "p99.9"));
  const std::vector<PlotPoint>& p90 = plot.panels[0].curves[1].points;
  ASSERT_THAT(p90, SizeIs(2));
  EXPECT_EQ(p90[0].n, 2);
  EXPECT_EQ(p90[1].n, 8);
  EXPECT_EQ(p90[1].y, 0.181);
  EXPECT_EQ(p90[1].note, "p90, 8 callers: 0.18 us, 100 requests/s");
  EXPECT_THAT(ToSvg(plot), HasSubstr("p90, 8 callers"));
}

}  // namespace
}  // namespace prefixd::cli
