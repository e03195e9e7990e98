#include "client/prefixctl/predicate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace prefixd::cli {
namespace {

TEST(ParsePredicate, EveryComparison) {
  static constexpr struct {
    const char* text;
    Comparison comparison;
  } kCases[] = {{"< 2", Comparison::kLess},         {"<=2", Comparison::kLessEqual}, {" >  2 ", Comparison::kGreater},
                {">=2", Comparison::kGreaterEqual}, {"== 2", Comparison::kEqual},    {"!=2", Comparison::kNotEqual}};
  for (const auto& [text, comparison] : kCases) {
    const auto predicate = ParsePredicate(DType::kI32, text);
    ASSERT_TRUE(predicate.ok()) << text;
    EXPECT_EQ(predicate->comparison, comparison) << text;
    EXPECT_EQ(predicate->value.As<int32_t>(), 2) << text;
  }
  EXPECT_EQ(ParsePredicate(DType::kF64, ">-1.5")->value.As<double>(), -1.5);
  EXPECT_TRUE(std::isnan(ParsePredicate(DType::kF32, "!= nan")->value.As<float>()));
}

TEST(ParsePredicate, WithoutAValue) {
  EXPECT_EQ(ParsePredicate(DType::kF32, "is-nan")->comparison, Comparison::kIsNan);
  EXPECT_EQ(ParsePredicate(DType::kF32, " is-finite ")->comparison, Comparison::kIsFinite);
  EXPECT_EQ(ParsePredicate(DType::kF32, "finite")->comparison, Comparison::kIsFinite);
}

TEST(ParsePredicate, Ranges) {
  for (const char* text : {"[-2,7)", " [ -2 , 7 ) "}) {
    const auto predicate = ParsePredicate(DType::kI16, text);
    ASSERT_TRUE(predicate.ok()) << predicate.status();
    EXPECT_EQ(predicate->comparison, Comparison::kInRange);
    EXPECT_EQ(predicate->value.As<int16_t>(), -2);
    EXPECT_EQ(predicate->end.As<int16_t>(), 7);
  }
  for (const char* text :
       {"[1, 2]", "[1)", "[1, 2", "[, 2)", "[1, )", "(1, 2)", "[1, 2, 3)", "[x, 2)", "[1, 99999)", "["}) {
    EXPECT_FALSE(ParsePredicate(DType::kI16, text).ok()) << text;
  }
}

TEST(ParsePredicate, Refused) {
  for (const char* text : {"", " ", "2", ">", "> ", "=> 2", "= 2", "<> 2", ">>2", "> 2 3", "> x", "> 2.5",
                           "> 3000000000", "is-nan 2", "isnan", "! 2"}) {
    EXPECT_FALSE(ParsePredicate(DType::kI32, text).ok()) << text;
  }
  EXPECT_EQ(ParsePredicate(DType::kI32, "> ").status().message(), "'> ' compares with nothing");
}

}  // namespace
}  // namespace prefixd::cli
