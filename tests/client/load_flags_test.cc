#include "client/prefixctl/load_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/status.h"

namespace prefixd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ParseCounts, NumbersByCommas) {
  EXPECT_THAT(ParseCounts("1,4,16", 16).value(), ElementsAre(1, 4, 16));
  EXPECT_THAT(ParseCounts("7", 7).value(), ElementsAre(7));
  for (const std::string_view text :
       {"", "0", "17", "-1", "+1", "1.5", " 1", "1,", ",1", "1,,2", "x", "99999999999999999999"}) {
    EXPECT_EQ(ParseCounts(text, 16).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(ParseCounts("1,x\033", 16).status().message()),
              HasSubstr("'x\\x1b' is no number from 1 to 16"));
}

TEST(ParseCounts, SixtyFourAtMost) {
  std::string text = "1";
  for (int i = 1; i < 64; ++i) text += ",1";
  EXPECT_THAT(ParseCounts(text, 1).value(), SizeIs(64));
  EXPECT_FALSE(ParseCounts(text + ",1", 1).ok());
}

TEST(ParseMix, OperationsWithWeights) {
  const auto mix = ParseMix("scan:f32:1024=8,reduce:f64:2^16,compact:i8:1=1000000").value();
  ASSERT_THAT(mix, SizeIs(3));
  EXPECT_EQ(mix[0].primitive, Primitive::kScan);
  EXPECT_EQ(mix[0].dtype, DType::kF32);
  EXPECT_EQ(mix[0].num_items, 1024);
  EXPECT_EQ(mix[0].weight, 8);
  EXPECT_EQ(mix[1].primitive, Primitive::kReduce);
  EXPECT_EQ(mix[1].num_items, 65536);
  EXPECT_EQ(mix[1].weight, 1);
  EXPECT_EQ(mix[2].primitive, Primitive::kCompact);
  EXPECT_EQ(mix[2].weight, 1000000);
}

TEST(ParseMix, WhatIsNoneIsNamed) {
  for (const std::string_view text :
       {"", "scan", "scan:f32", "scan:f32:", "scan:f32:0", "scan:f32:1..4", "scan:f32:4=", "scan:f32:4=0",
        "scan:f32:4=1000001", "scan:f32:4=1=2", "scan:f32:4:5", "sort:f32:4", "scan:f99:4", "scan:F16:4", "SCAN:f32:4",
        "scan:f32:2^41", "scan:f32:4,"}) {
    EXPECT_EQ(ParseMix(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(ParseMix("scan:f32:4,plus:f32:4").status().message()),
              HasSubstr("'plus:f32:4' is no operation"));
  std::string text = "scan:f32:1";
  for (int i = 1; i < 32; ++i) text += ",scan:f32:1";
  EXPECT_THAT(ParseMix(text).value(), SizeIs(32));
  EXPECT_FALSE(ParseMix(text + ",scan:f32:1").ok());
}

TEST(LoadsOf, AClosedLoopForEachNumberOfCallers) {
  const auto loads = LoadsOf({.callers = {2, 8}}).value();
  ASSERT_THAT(loads, SizeIs(2));
  EXPECT_EQ(loads[1].num_callers, 8);
  EXPECT_EQ(loads[1].rate_per_second, std::nullopt);
  EXPECT_THAT(LoadsOf({}).value(), SizeIs(3));
}

TEST(LoadsOf, AnOpenLoopForEachRate) {
  const auto loads = LoadsOf({.rates_per_second = {100, 200}}).value();
  ASSERT_THAT(loads, SizeIs(2));
  EXPECT_EQ(loads[1].rate_per_second, 200);
  EXPECT_EQ(loads[1].num_callers, 64);
  EXPECT_EQ(LoadsOf({.callers = {5}, .rates_per_second = {100}}).value()[0].num_callers, 5);
  EXPECT_TRUE(IsUsageError(LoadsOf({.callers = {5, 6}, .rates_per_second = {100}}).status()));
}

}  // namespace
}  // namespace prefixd::cli
