// Curves over n as an SVG picture: panels side by side on common logarithmic axes, each curve named at its end.
// Readable by itself: in a browser, a document or an issue.
#ifndef PREFIXD_CLIENT_CLI_SVG_PLOT_H_
#define PREFIXD_CLIENT_CLI_SVG_PLOT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace prefixd::cli {

struct PlotPoint {
  uint64_t n = 1;    // At least 1.
  double y = 1;      // Above 0.
  std::string note;  // Shown where somebody points at it.
};

// Curves of one name have one colour in all panels.
struct PlotCurve {
  std::string name;
  std::vector<PlotPoint> points;  // By n, ascending; at least one.
  bool yardstick = false;         // Dashed, grey, without dots: what the others are to be compared with.
};

struct PlotPanel {
  std::string title;
  std::vector<PlotCurve> curves;  // At least one.
};

struct Plot {
  std::string title;
  std::vector<std::string> notes;  // A line each, under the title.
  std::string n_label;
  std::string y_label;
  size_t columns = 1;             // Of panels, which come row by row.
  std::vector<PlotPanel> panels;  // At least one.
};

// Text may be any UTF-8: what XML has no way to say becomes a blank.
std::string ToSvg(const Plot& plot);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_CLI_SVG_PLOT_H_
