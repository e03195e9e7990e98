#include "client/prefixctl/difference_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "client/prefixctl/array_command.h"

namespace prefixd::cli {
namespace {

struct DifferenceFlags {
  ArrayFlags array;
  AxisFlags axis;
  SegmentFlags segments;
  std::optional<std::string> init;
  bool reverse = false;
};

absl::Status RunDifference(const GlobalFlags& global, const DifferenceFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckInputs({flags.array.input, flags.segments.segments, flags.segments.keys}));
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.array.output));
  PREFIXD_ASSIGN_OR_RETURN(const Job job, StartJob(global, flags.array, ResultToOf({flags.array.output}), &flags.axis));
  PREFIXD_ASSIGN_OR_RETURN(const std::optional<Axis> axis, AxisOf(flags.axis, *job.reader));
  DifferenceSpec spec = {.dtype = job.reader->dtype(),
                         .reverse = flags.reverse,
                         .algorithm = flags.array.algorithm,
                         .num_items = job.reader->num_items(),
                         .axis = axis};
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags.init, spec.dtype));
  BesideFiles files;
  PREFIXD_RETURN_IF_ERROR(OpenSegments(flags.segments, flags.array, job, &spec, &files));
  return RunToOutput(global, flags.array, job, spec, spec.num_items, files);
}

}  // namespace

void AddDifferenceCommand(CLI::App& app, Commands* commands) {
  CLI::App* difference = app.add_subcommand("difference", "Each element less the one before it: undoes a scan by sum");
  const auto flags = std::make_shared<DifferenceFlags>();
  AddInit(difference, &flags->init);
  difference->add_flag("--reverse", flags->reverse, "Less the one behind it: undoes a reverse scan");
  AddAxis(difference, &flags->axis);
  AddSegments(difference, &flags->segments);
  AddArrayFlags(difference, &flags->array);
  AddOutput(difference, &flags->array);
  commands->push_back({difference, [flags](const GlobalFlags& global) { return RunDifference(global, *flags); }});
}

}  // namespace prefixd::cli
