#include "client/prefixctl/scan_command.h"

#include <memory>

#include "base/status.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/option.h"

namespace prefixd::cli {
namespace {

struct ScanFlags {
  ArrayFlags array;
  OperatorFlags combine;
  AxisFlags axis;
  ScanKind kind = ScanKind::kInclusive;
  bool reverse = false;
};

absl::Status RunScan(const GlobalFlags& global, const ScanFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.array.output));
  PREFIXD_ASSIGN_OR_RETURN(const Job job, StartJob(global, flags.array, ResultToOf(flags.array.output)));
  ScanSpec spec = {.dtype = job.reader->dtype(),
                   .out_dtype = flags.combine.out_dtype,
                   .op = flags.combine.op,
                   .kind = flags.kind,
                   .reverse = flags.reverse,
                   .algorithm = flags.array.algorithm,
                   .num_items = job.reader->num_items(),
                   .axis = AxisOf(flags.axis)};
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, OutputType(flags.combine, spec.dtype));
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags.combine.init, out_dtype));
  return RunToOutput(global, flags.array, job, spec);
}

}  // namespace

void AddScanCommand(CLI::App& app, Commands* commands) {
  CLI::App* scan = app.add_subcommand("scan", "Prefix sums and their like: each element with all before it");
  const auto flags = std::make_shared<ScanFlags>();
  AddOperator(scan, &flags->combine);
  AddNamed<ScanKind>(scan, "--kind", "inclusive, exclusive",
                     "Whether an element counts in its own result (default inclusive)", &flags->kind);
  scan->add_flag("--reverse", flags->reverse, "From the last element to the first; arrays and results of up to 1 MiB");
  AddAxis(scan, &flags->axis);
  AddArrayFlags(scan, &flags->array);
  AddOutput(scan, &flags->array);
  commands->push_back({scan, [flags](const GlobalFlags& global) { return RunScan(global, *flags); }});
}

}  // namespace prefixd::cli
