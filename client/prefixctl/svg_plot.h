// Curves over n as an SVG picture: panels side by side on common axes, each curve named at its end, in the
// order of their heights. Readable by itself: in a browser, where pointing at a curve or its name brings it out, in a
// document or an issue.
#ifndef PREFIXD_CLIENT_PREFIXCTL_SVG_PLOT_H_
#define PREFIXD_CLIENT_PREFIXCTL_SVG_PLOT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace prefixd::cli {

struct PlotPoint {
  uint64_t n = 1;  // At least 1.
  double y = 1;
  std::string note;  // Shown where somebody points at it.
};

// A family has one colour in all panels, unless another has it there: no two of a panel share one while colours last.
// Within it curves differ by their dashes and dots.
struct PlotCurve {
  std::string name;
  std::vector<PlotPoint> points;  // By n, ascending; at least one.
  std::string family = {};        // Empty: the name.
  size_t dash = 0;                // 0: none; kNumDashes in all, and then again from 1.
  bool hollow = false;            // Dots.
  bool yardstick = false;         // Dashed, grey, without dots: what the others are to be compared with.
};

inline constexpr size_t kNumDashes = 8;

struct PlotPanel {
  std::string title;
  std::vector<PlotCurve> curves;  // At least one.
};

// Logarithmic: every y above 0. Linear: from 0 on.
enum class YScale { kLogarithmic, kLinear };

// From so many curves in a panel on, all are wider and their lines are thinner.
inline constexpr size_t kCrowd = 12;

struct Plot {
  std::string title;
  std::vector<std::string> notes;  // A line each, under the title.
  std::string n_label;
  std::string y_label;
  YScale y_scale = YScale::kLogarithmic;
  size_t columns = 1;             // Panels side by side; they come row by row.
  std::vector<PlotPanel> panels;  // At least one.
};

// Text may be any UTF-8: what XML has no way to say becomes a blank.
std::string ToSvg(const Plot& plot);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_SVG_PLOT_H_
