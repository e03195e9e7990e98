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
  std::optional<std::string> init;
  bool reverse = false;
};

absl::Status RunDifference(const GlobalFlags& global, const DifferenceFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.array.output));
  PREFIXD_ASSIGN_OR_RETURN(const Job job, StartJob(global, flags.array, ResultToOf(flags.array.output)));
  DifferenceSpec spec = {.dtype = job.reader->dtype(),
                         .reverse = flags.reverse,
                         .algorithm = flags.array.algorithm,
                         .num_items = job.reader->num_items(),
                         .axis = AxisOf(flags.axis)};
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags.init, spec.dtype));
  return RunToOutput(global, flags.array, job, spec);
}

}  // namespace

void AddDifferenceCommand(CLI::App& app, Commands* commands) {
  CLI::App* difference = app.add_subcommand("difference", "Each element less the one before it: undoes a scan by sum");
  const auto flags = std::make_shared<DifferenceFlags>();
  AddInit(difference, &flags->init);
  difference->add_flag("--reverse", flags->reverse,
                       "Less the one behind it: undoes a reverse scan; arrays of up to 1 MiB");
  AddAxis(difference, &flags->axis);
  AddArrayFlags(difference, &flags->array);
  AddOutput(difference, &flags->array);
  commands->push_back({difference, [flags](const GlobalFlags& global) { return RunDifference(global, *flags); }});
}

}  // namespace prefixd::cli
