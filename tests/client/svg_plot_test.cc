#include "client/prefixctl/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>

namespace prefixd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

Plot PlotOf(std::vector<PlotCurve> curves) {
  return {.title = "a title", .n_label = "n", .y_label = "y", .panels = {{"a panel", std::move(curves)}}};
}

// The text of the first group in each match of the pattern.
std::vector<std::string> All(const std::string& svg, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), regex); it != std::sregex_iterator(); ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}
std::vector<double> Numbers(const std::vector<std::string>& words) {
  std::vector<double> numbers;
  for (const std::string& word : words) numbers.push_back(std::atof(word.c_str()));
  return numbers;
}

TEST(SvgPlot, BothAxesAreLogarithmic) {
  const std::string svg = ToSvg(PlotOf({{"a", {{1, 0.1}, {4, 1}, {16, 10}}}}));
  EXPECT_THAT(Numbers(All(svg, "cx=\"([^\"]*)\"")), ElementsAre(0, 190, 380));
  EXPECT_THAT(Numbers(All(svg, "cy=\"([^\"]*)\"")), ElementsAre(230, 115, 0));
  EXPECT_THAT(All(svg, "dy=\"-4\">([^<]*)<"), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(All(svg, "class=\"y\"[^>]*>([^<]*)<"), ElementsAre("0.1", "0.2", "0.5", "1", "2", "5", "10", "y"));
  EXPECT_THAT(svg, HasSubstr("d=\"M0.0 230.0L190.0 115.0L380.0 0.0\""));
}

TEST(SvgPlot, AxesBeginAndEndAtRoundNumbers) {
  const std::string svg = ToSvg(PlotOf({{"a", {{1000, 3}, {1025, 1500}}}}));
  EXPECT_THAT(All(svg, "dy=\"-4\">([^<]*)<"), ElementsAre("9", "10", "11"));
  EXPECT_THAT(All(svg, "class=\"y\"[^>]*>([^<]*)<"),
              ElementsAre("2", "5", "10", "20", "50", "100", "200", "500", "1000", "2000", "y"));
  // Even where there is one number only.
  EXPECT_THAT(All(ToSvg(PlotOf({{"a", {{1, 5}}}})), "class=\"y\"[^>]*>([^<]*)<"), ElementsAre("5", "10", "y"));
}

TEST(SvgPlot, ALinearAxisBeginsAtZero) {
  Plot plot = PlotOf({{"a", {{1, 0}, {4, 25}, {16, 98}}}});
  plot.y_scale = YScale::kLinear;
  const std::string svg = ToSvg(plot);
  EXPECT_THAT(All(svg, "class=\"y\"[^>]*>([^<]*)<"),
              ElementsAre("0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100", "y"));
  EXPECT_THAT(Numbers(All(svg, "cy=\"([^\"]*)\"")), ElementsAre(230, 172.5, 4.6));
  plot.panels[0].curves[0].points[2].y = 101;
  EXPECT_THAT(All(ToSvg(plot), "class=\"y\"[^>]*>([^<]*)<"),
              ElementsAre("0", "20", "40", "60", "80", "100", "120", "y"));
}

TEST(SvgPlot, PanelsShareTheirAxesAndColors) {
  Plot plot = PlotOf({{"a", {{2, 10}}}});
  plot.columns = 2;
  plot.panels.push_back({"b panel", {{"b", {{4, 1}}}, {"a", {{8, 100}}}}});
  plot.panels.push_back({"c panel", {{"c", {{8, 100}}}}});
  const std::string svg = ToSvg(plot);
  EXPECT_THAT(Numbers(All(svg, "cy=\"([^\"]*)\"")), ElementsAre(115, 0, 230, 0));  // The first is drawn last.
  const auto colors = All(svg, "<circle.*fill=\"([^\"]*)\"");
  ASSERT_THAT(colors, SizeIs(4));
  EXPECT_EQ(colors[0], colors[1]);
  EXPECT_NE(colors[0], colors[2]);
  EXPECT_NE(colors[3], colors[0]);
  EXPECT_NE(colors[3], colors[2]);
  const auto places = All(svg, "translate\\(([^)]*)\\)");
  ASSERT_THAT(places, SizeIs(3));
  EXPECT_EQ(std::atof(places[0].c_str()), std::atof(places[2].c_str()));  // Two columns.
  EXPECT_LT(std::atof(places[0].c_str()), std::atof(places[1].c_str()));
}

TEST(SvgPlot, TheYardstickIsDashedAndOfOnePointGoesAcross) {
  const std::string svg =
      ToSvg(PlotOf({{"a", {{1024, 5}}}, {.name = "copy", .points = {{1024, 10}}, .yardstick = true}}));
  EXPECT_THAT(svg, HasSubstr("<path class=\"yardstick\" stroke=\"#666666\" d=\"M0 0.0H380\"/>"));
  EXPECT_THAT(All(svg, "<circle cx=\"([^\"]*)\""), ElementsAre("190.0"));  // No dot on the yardstick.
}

TEST(SvgPlot, NamesStandBesideTheirEndsAndNeverOverEachOther) {
  std::vector<PlotCurve> curves;
  for (int i = 0; i < 30; ++i) curves.push_back({"curve" + std::to_string(i), {{2, (i < 15 ? 99 : 2) + 0.01 * i}}});
  curves.push_back({"low", {{2, 1}}});
  const std::string svg = ToSvg(PlotOf(std::move(curves)));
  std::vector<double> heights = Numbers(All(svg, "<text x=\"700\" y=\"([^\"]*)\""));  // A crowd has a wider panel.
  ASSERT_THAT(heights, SizeIs(31));
  const auto names = All(svg, "<text x=\"700\"[^>]*>([^<]*)<");
  EXPECT_EQ(names[std::min_element(heights.begin(), heights.end()) - heights.begin()], "curve14");
  EXPECT_EQ(names[std::max_element(heights.begin(), heights.end()) - heights.begin()], "low");
  std::sort(heights.begin(), heights.end());
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i], heights[i - 1] + 12.9);
  EXPECT_GE(heights.front(), 0);
  EXPECT_LE(heights.back(), 31 * 13 + 4);
}

TEST(SvgPlot, MoreCurvesThanColorsAreStillTold) {
  std::vector<PlotCurve> curves;
  for (int i = 0; i < 20; ++i) curves.push_back({"curve" + std::to_string(i), {{2, 1.0 + i}}});
  std::set<std::string> looks;
  for (const std::string& look : All(ToSvg(PlotOf(std::move(curves))), "r=\"1.9\" (.*)><title>")) looks.insert(look);
  EXPECT_THAT(looks, SizeIs(20));
}

TEST(SvgPlot, AFamilyHasOneColorAndItsOwnDashes) {
  std::vector<PlotCurve> curves;
  for (size_t dash = 0; dash < kNumDashes; ++dash) {
    for (const std::string family : {"a", "b"}) {
      curves.push_back(
          {.name = family + std::to_string(dash), .points = {{2, 1}, {4, 1}}, .family = family, .dash = dash});
    }
  }
  const std::string svg = ToSvg(PlotOf(std::move(curves)));
  // Each curve, and the piece of it in front of its name.
  const auto looks = All(svg, "class=\"curve\" (stroke=\"[^\"]*\"( stroke-dasharray=\"[^\"]*\")?) d=");
  EXPECT_THAT(looks, SizeIs(4 * kNumDashes));
  EXPECT_THAT(std::set<std::string>(looks.begin(), looks.end()), SizeIs(2 * kNumDashes));
  const auto colors = All(svg, "class=\"curve\" (stroke=\"[^\"]*\")");
  EXPECT_THAT(std::set<std::string>(colors.begin(), colors.end()), SizeIs(2));
}

TEST(SvgPlot, NoTwoFamiliesOfAPanelShareAColorThatOneHasAlready) {
  // Ten families use up the colours; in the second panel two of them meet one that comes from none.
  Plot plot = PlotOf({});
  for (int i = 0; i < 10; ++i) plot.panels[0].curves.push_back({"f" + std::to_string(i), {{2, 1}}});
  plot.panels.push_back({"b panel", {{"new", {{2, 1}}}, {"f0", {{2, 1}}}, {"f9", {{2, 1}}}}});
  const auto colors = All(ToSvg(plot), "<circle.*stroke=\"([^\"]*)\"");
  ASSERT_THAT(colors, SizeIs(13));
  EXPECT_THAT(std::set<std::string>(colors.begin(), colors.begin() + 10), SizeIs(10));
  EXPECT_THAT(std::set<std::string>(colors.begin() + 10, colors.end()), SizeIs(3));
  EXPECT_EQ(colors[10], colors[0]);  // f9: what comes last is drawn first.
  EXPECT_EQ(colors[11], colors[9]);  // f0.
  // Alone it takes one that another has elsewhere; where both are, they part.
  plot.panels[1].curves = {{"new", {{2, 1}}}};
  plot.panels.push_back({"c panel", {{"f0", {{2, 1}}}, {"new", {{2, 1}}}}});
  const auto parted = All(ToSvg(plot), "<circle.*stroke=\"([^\"]*)\"");
  ASSERT_THAT(parted, SizeIs(13));
  EXPECT_EQ(parted[10], parted[9]);
  EXPECT_NE(parted[11], parted[12]);
}

TEST(SvgPlot, TextIsEscaped) {
  Plot plot = PlotOf({{"a<b", {{1, 1, "\"1\" & 2"}}}});
  plot.title = "line\nend\x1b";
  const std::string svg = ToSvg(plot);
  EXPECT_THAT(svg, HasSubstr("a&lt;b</text>"));
  EXPECT_THAT(svg, HasSubstr("&quot;1&quot; &amp; 2"));
  EXPECT_THAT(svg, HasSubstr("line end "));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace prefixd::cli
