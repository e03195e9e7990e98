#include "client/prefixctl/svg_plot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace prefixd::cli {
namespace {

// In pixels; text is of 11 but for the title.
constexpr double kMargin = 16;
constexpr double kTitleHeight = 24;
constexpr double kNoteHeight = 15;
constexpr double kAboveArea = 34;
constexpr double kBelowArea = 44;
constexpr double kLeftOfArea = 52;
constexpr double kAreaWidth = 380;
constexpr double kLeastAreaHeight = 230;
constexpr double kNameHeight = 13;
constexpr double kNameGap = 16;
constexpr double kDashLength = 34;  // The length of the piece of a dashed curve in front of its name.
// What holds for a crowd.
constexpr double kCrowdWidth = 640;
constexpr double kCrowdNameGap = 60;
constexpr double kLetterWidth = 6.6;

// Told apart by colour-blind readers too (after Okabe and Ito, without the yellow that white paper swallows).
constexpr std::array<std::string_view, 10> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                                      "#56b4e9", "#7f4f24", "#332288", "#8a8a00", "#882255"};
constexpr std::array<std::string_view, kNumDashes> kDashes = {"",          "9 3",     "3 2.5", "14 3 3 3",
                                                              "6 2 1.5 2", "1.5 2.5", "18 4",  "9 2.5 1.5 2.5 1.5 2.5"};
constexpr std::string_view kYardstickColor = "#666666";

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return escaped;
}

// 1, 2, 5, 10 and so on, from the last that is not above the lowest to the first that is not below the highest.
std::vector<double> Ticks(double lowest, double highest) {
  std::vector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(lowest)));; power *= 10) {
    for (const double tick : {power, 2 * power, 5 * power}) {
      if (tick <= lowest) ticks.clear();
      ticks.push_back(tick);
      if (ticks.size() > 1 && tick >= highest) return ticks;
    }
  }
}

// From 0 to the first that is not below the highest; ten steps at most.
std::vector<double> LinearTicks(double highest) {
  const double power = std::pow(10, std::floor(std::log10(highest / 10)));
  double step = power;
  for (const double wider : {2 * power, 5 * power, 10 * power}) {
    if (step * 10 < highest) step = wider;
  }
  std::vector<double> ticks = {0};
  while (ticks.back() < highest) ticks.push_back(ticks.back() + step);
  return ticks;
}

// What all panels share.
class Axes {
 public:
  explicit Axes(const Plot& plot) : linear_(plot.y_scale == YScale::kLinear) {
    uint64_t least = plot.panels[0].curves[0].points[0].n;
    uint64_t most = least;
    double lowest = plot.panels[0].curves[0].points[0].y;
    double highest = lowest;
    size_t most_curves = 0;
    for (const PlotPanel& panel : plot.panels) {
      most_curves = std::max(most_curves, panel.curves.size());
      for (const PlotCurve& curve : panel.curves) {
        least = std::min(least, curve.points.front().n);
        most = std::max(most, curve.points.back().n);
        for (const PlotPoint& point : curve.points) {
          lowest = std::min(lowest, point.y);
          highest = std::max(highest, point.y);
        }
      }
    }
    first_exponent_ = static_cast<int>(std::bit_width(least)) - 1;
    last_exponent_ = static_cast<int>(std::bit_width(most - 1));
    if (first_exponent_ == last_exponent_) {  // One size: in the middle, if there is something on its left.
      first_exponent_ = std::max(first_exponent_ - 1, 0);
      last_exponent_ = first_exponent_ + 2;
    }
    exponent_step_ = (last_exponent_ - first_exponent_ + 8) / 9;
    y_ticks_ = linear_ ? LinearTicks(highest) : Ticks(lowest, highest);
    width_ = most_curves < kCrowd ? kAreaWidth : kCrowdWidth;
    height_ = std::max(kLeastAreaHeight, static_cast<double>(most_curves) * kNameHeight);
  }

  double width() const { return width_; }
  double height() const { return height_; }
  double X(uint64_t n) const { return XOfExponent(std::log2(static_cast<double>(n))); }
  double Y(double y) const {
    if (linear_) return height_ * (1 - y / y_ticks_.back());
    return height_ * (1 - std::log(y / y_ticks_.front()) / std::log(y_ticks_.back() / y_ticks_.front()));
  }

  // The grid and its numbers.
  void Draw(const Plot& plot, std::string* svg) const {
    for (const double tick : y_ticks_) {
      absl::StrAppendFormat(svg,
                            "<path class=\"grid\" d=\"M0 %.1fH%g\"/><text class=\"y\" x=\"-6\" y=\"%.1f\">%g</text>\n",
                            Y(tick), width_, Y(tick) + 4, tick);
    }
    for (int exponent = first_exponent_; exponent <= last_exponent_; exponent += exponent_step_) {
      absl::StrAppendFormat(svg,
                            "<path class=\"grid\" d=\"M%.1f 0V%g\"/><text class=\"x\" x=\"%.1f\" y=\"%g\">2"
                            "<tspan class=\"exponent\" dy=\"-4\">%d</tspan></text>\n",
                            XOfExponent(exponent), height_, XOfExponent(exponent), height_ + 17, exponent);
    }
    absl::StrAppendFormat(svg, "<text class=\"x\" x=\"%g\" y=\"%g\">%s</text>\n", width_ / 2, height_ + 35,
                          Escaped(plot.n_label));
    absl::StrAppendFormat(svg, "<text class=\"y\" x=\"-6\" y=\"-10\">%s</text>\n", Escaped(plot.y_label));
  }

 private:
  double XOfExponent(double exponent) const {
    return width_ * (exponent - first_exponent_) / (last_exponent_ - first_exponent_);
  }
  bool linear_;
  int first_exponent_;
  int last_exponent_;
  int exponent_step_;
  std::vector<double> y_ticks_;
  double width_;
  double height_;
};

// Where names go that want to be at `wanted`, ascending: in that order, and none over another. Needs: room for all.
std::vector<double> SpreadOut(std::vector<double> wanted, double end) {
  for (size_t i = 1; i < wanted.size(); ++i) wanted[i] = std::max(wanted[i], wanted[i - 1] + kNameHeight);
  for (size_t i = wanted.size(); i-- > 0; end = wanted[i] - kNameHeight) wanted[i] = std::min(wanted[i], end);
  return wanted;
}

// What a curve looks like in its panel.
struct Look {
  std::string_view color;
  bool hollow = false;
};

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), axes_(plot) {
    size_t longest_name = 0;
    size_t most_curves = 0;
    bool dashed = false;
    for (const PlotPanel& panel : plot.panels) {
      most_curves = std::max(most_curves, panel.curves.size());
      for (const PlotCurve& curve : panel.curves) {
        longest_name = std::max(longest_name, curve.name.size());
        dashed |= curve.dash != 0;
      }
    }
    crowded_ = most_curves >= kCrowd;
    name_gap_ = crowded_ ? kCrowdNameGap : kNameGap;
    dash_length_ = dashed ? kDashLength : 0;
    panel_width_ = kLeftOfArea + axes_.width() + name_gap_ + dash_length_ +
                   kLetterWidth * static_cast<double>(longest_name) + kMargin;
    panel_height_ = kAboveArea + axes_.height() + kBelowArea;
  }

  std::string Svg() {
    const size_t columns = std::min(plot_.columns, plot_.panels.size());
    const size_t rows = (plot_.panels.size() + columns - 1) / columns;
    const double head = kMargin + kTitleHeight + kNoteHeight * static_cast<double>(plot_.notes.size());
    const double width = kMargin + panel_width_ * static_cast<double>(columns);
    const double height = head + panel_height_ * static_cast<double>(rows) + kMargin;
    svg_ = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\">\n",
        width, height, width, height);
    svg_ += StrCat("<title>", Escaped(plot_.title), "</title>\n");
    svg_ +=
        "<style>\n"
        "text {font: 11px system-ui, 'Helvetica Neue', Arial, sans-serif; fill: #333333}\n"
        ".head {font-size: 16px; font-weight: 600; fill: #111111} .title {font-size: 13px; font-weight: 600}\n"
        ".x {text-anchor: middle} .y {text-anchor: end} .exponent {font-size: 8px}\n"
        "path {fill: none} .grid {stroke: #e4e4e4} .leader {stroke-opacity: 0.35}\n"
        ".curve {stroke-width: 1.8; stroke-linejoin: round} .yardstick {stroke-width: 1.4; stroke-dasharray: 5 4}\n"
        ".crowd .curve {stroke-width: 1.2} .crowd circle {stroke-width: 0.8}\n"
        ".panel:hover .one:not(:hover) {opacity: 0.15} .one:hover .curve {stroke-width: 3}\n"
        "</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    double y = kMargin + 16;
    absl::StrAppendFormat(&svg_, "<text class=\"head\" x=\"%g\" y=\"%g\">%s</text>\n", kMargin, y,
                          Escaped(plot_.title));
    for (const std::string& note : plot_.notes) {
      y += kNoteHeight + 2;
      absl::StrAppendFormat(&svg_, "<text x=\"%g\" y=\"%g\">%s</text>\n", kMargin, y, Escaped(note));
    }
    for (size_t i = 0; i < plot_.panels.size(); ++i) {
      const size_t row = i / columns;
      absl::StrAppendFormat(&svg_, "<g class=\"panel%s\" transform=\"translate(%.1f %.1f)\">\n",
                            crowded_ ? " crowd" : "",
                            kMargin + panel_width_ * static_cast<double>(i % columns) + kLeftOfArea,
                            head + panel_height_ * static_cast<double>(row) + kAboveArea);
      DrawPanel(plot_.panels[i]);
      svg_ += "</g>\n";
    }
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  void DrawPanel(const PlotPanel& panel) {
    absl::StrAppendFormat(&svg_, "<text class=\"title\" x=\"0\" y=\"-10\">%s</text>\n", Escaped(panel.title));
    axes_.Draw(plot_, &svg_);
    const std::map<std::string, Look> looks = LooksOf(panel);
    std::vector<const PlotCurve*> curves;
    curves.reserve(panel.curves.size());
    for (const PlotCurve& curve : panel.curves) curves.push_back(&curve);
    const auto end_of = [&](const PlotCurve* curve) { return axes_.Y(curve->points.back().y); };
    std::stable_sort(curves.begin(), curves.end(), [&](auto* a, auto* b) { return end_of(a) < end_of(b); });
    std::vector<double> ends;
    ends.reserve(curves.size());
    for (const PlotCurve* curve : curves) ends.push_back(end_of(curve));
    const std::vector<double> names = SpreadOut(ends, axes_.height());
    // What came first is on top: the default.
    for (auto curve = panel.curves.rbegin(); curve != panel.curves.rend(); ++curve) {
      const size_t place = std::find(curves.begin(), curves.end(), &*curve) - curves.begin();
      const Look look = curve->yardstick ? Look{kYardstickColor} : looks.at(FamilyOf(*curve));
      svg_ += "<g class=\"one\">\n";
      DrawCurve(*curve, look);
      DrawName(*curve, look, ends[place], names[place]);
      svg_ += "</g>\n";
    }
  }

  void DrawCurve(const PlotCurve& curve, const Look& look) {
    std::string path;
    for (const PlotPoint& point : curve.points) {
      absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L", axes_.X(point.n), axes_.Y(point.y));
    }
    // A yardstick of one point is laid across the panel.
    if (curve.yardstick && curve.points.size() == 1) {
      path = absl::StrFormat("M0 %.1fH%g", axes_.Y(curve.points[0].y), axes_.width());
    }
    absl::StrAppendFormat(&svg_, "<path class=\"%s\" stroke=\"%s\"%s d=\"%s\"/>\n",
                          curve.yardstick ? "yardstick" : "curve", AbslView(look.color), DashOf(curve), path);
    if (curve.yardstick) return;
    for (const PlotPoint& point : curve.points) {
      absl::StrAppendFormat(
          &svg_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" stroke=\"%s\" fill=\"%s\"><title>%s</title></circle>\n",
          axes_.X(point.n), axes_.Y(point.y), crowded_ ? 1.9 : 2.8, AbslView(look.color),
          curve.hollow || look.hollow ? "white" : AbslView(look.color), Escaped(point.note));
    }
  }

  // From the curve's end to its name, and in between, where curves are dashed, a piece of it.
  void DrawName(const PlotCurve& curve, const Look& look, double end, double y) {
    const double x = axes_.width() + name_gap_;
    absl::StrAppendFormat(&svg_, "<path class=\"leader\" stroke=\"%s\" d=\"M%.1f %.1fL%g %.1f\"/>",
                          AbslView(look.color), axes_.X(curve.points.back().n), end, x - 4, y);
    if (dash_length_ > 0) {
      absl::StrAppendFormat(&svg_, "<path class=\"%s\" stroke=\"%s\"%s d=\"M%g %.1fh%g\"/>",
                            curve.yardstick ? "yardstick" : "curve", AbslView(look.color), DashOf(curve), x, y,
                            dash_length_ - 5);
    }
    absl::StrAppendFormat(&svg_, "<text x=\"%g\" y=\"%.1f\" style=\"fill: %s\">%s</text>\n", x + dash_length_, y + 4,
                          AbslView(look.color), Escaped(curve.name));
  }

  static std::string FamilyOf(const PlotCurve& curve) { return curve.family.empty() ? curve.name : curve.family; }

  static std::string DashOf(const PlotCurve& curve) {
    if (curve.yardstick || curve.dash == 0) return "";
    return StrCat(" stroke-dasharray=\"", kDashes[1 + (curve.dash - 1) % (kNumDashes - 1)], "\"");
  }

  // The colors of the panel's families, in the order in which they come.
  std::map<std::string, Look> LooksOf(const PlotPanel& panel) {
    std::vector<std::string> families;
    for (const PlotCurve& curve : panel.curves) {
      const std::string family = FamilyOf(curve);
      if (!curve.yardstick && std::find(families.begin(), families.end(), family) == families.end()) {
        families.push_back(family);
      }
    }
    // Those with a colour from an earlier panel keep it.
    std::map<std::string, Look> looks;
    std::array<size_t, kColors.size()> uses = {};
    for (const std::string& family : families) {
      const auto known = colors_.find(family);
      if (known == colors_.end() || uses[known->second] > 0) continue;
      looks[family] = {.color = kColors[known->second], .hollow = false};
      ++uses[known->second];
    }
    // The others get one that is free here, and if there is one, that was free until now.
    for (const std::string& family : families) {
      if (looks.contains(family)) continue;
      const auto load = [&](size_t color) { return uses[color] * kColors.size() + families_of_[color]; };
      size_t color = 0;
      for (size_t i = 1; i < kColors.size(); ++i) {
        if (load(i) < load(color)) color = i;
      }
      if (colors_.emplace(family, color).second) ++families_of_[color];
      looks[family] = {.color = kColors[color], .hollow = uses[color]++ % 2 == 1};  // Where colours come again.
    }
    return looks;
  }

  const Plot& plot_;
  const Axes axes_;
  std::map<std::string, size_t> colors_;                 // Each family keeps the one of its first panel.
  std::array<size_t, kColors.size()> families_of_ = {};  // Each colour's.
  bool crowded_;
  double name_gap_;
  double dash_length_;
  double panel_width_;
  double panel_height_;
  std::string svg_;
};

}  // namespace

std::string ToSvg(const Plot& plot) { return Drawing(plot).Svg(); }

}  // namespace prefixd::cli
