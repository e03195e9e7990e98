#include "client/prefixctl/scan_command.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/option.h"

namespace prefixd::cli {
namespace {

struct ScanFlags {
  ArrayFlags array;
  OperatorFlags combine;
  AxisFlags axis;
  SegmentFlags segments;
  ScanKind kind = ScanKind::kInclusive;
  bool reverse = false;
  std::optional<std::string> coefficients;  // A linear recurrence has one of these.
  std::optional<std::string> coefficient;
  bool include_initial = false;
  std::optional<std::string> indices;
  bool last_index = false;
};

// One coefficient for all elements. A usage error if it is no number of the type.
absl::StatusOr<std::optional<Value>> ParseCoefficient(const std::optional<std::string>& text, DType dtype) {
  if (!text) return std::nullopt;
  const absl::StatusOr<Value> value = ParseNumber(dtype, *text);
  if (!value.ok()) return UsageError(StrCat("--coefficient: ", std::string(value.status().message())));
  return *value;
}

// The operator and its coefficients belong together.
absl::Status CheckCoefficientFlags(const ScanFlags& flags) {
  const bool is_recurrence = flags.combine.op == Op::kLinearRecurrence;
  if (is_recurrence && !flags.coefficients && !flags.coefficient) {
    return UsageError("--op linear_recurrence: say --coefficient for all elements, or name a file of --coefficients");
  }
  if (!is_recurrence && (flags.coefficients || flags.coefficient)) {
    return UsageError(StrCat("a scan by ", Name(flags.combine.op),
                             " has no coefficients: leave them out, or say --op linear_recurrence"));
  }
  return absl::OkStatus();
}

// The indices go to another file than the results, and what is said of them is of some.
absl::Status CheckIndicesFlags(const GlobalFlags& global, const ScanFlags& flags) {
  if (!flags.indices) {
    return flags.last_index ? UsageError("--last-index is for the indices of equal elements: name a file of --indices")
                            : absl::OkStatus();
  }
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, *flags.indices));
  if (SameFile(*flags.indices, flags.array.output)) return UsageError("OUTPUT and --indices are the same");
  return absl::OkStatus();
}

absl::Status RunScan(const GlobalFlags& global, const ScanFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckCoefficientFlags(flags));
  PREFIXD_RETURN_IF_ERROR(CheckIndicesFlags(global, flags));
  PREFIXD_RETURN_IF_ERROR(
      CheckInputs({flags.array.input, flags.coefficients, flags.segments.segments, flags.segments.keys}));
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.array.output));
  PREFIXD_ASSIGN_OR_RETURN(const Job job,
                           StartJob(global, flags.array, ResultToOf({flags.array.output, flags.indices}), &flags.axis));
  PREFIXD_ASSIGN_OR_RETURN(const std::optional<Axis> axis, AxisOf(flags.axis, *job.reader));
  ScanSpec spec = {.dtype = job.reader->dtype(),
                   .out_dtype = flags.combine.out_dtype,
                   .op = flags.combine.op,
                   .precision = flags.combine.precision,
                   .kind = flags.kind,
                   .reverse = flags.reverse,
                   .algorithm = flags.array.algorithm,
                   .num_items = job.reader->num_items(),
                   .axis = axis,
                   .include_initial = flags.include_initial,
                   .return_indices = flags.indices.has_value(),
                   .last_index = flags.last_index};
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, OutputType(flags.combine, spec.dtype));
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags.combine.init, out_dtype));
  PREFIXD_ASSIGN_OR_RETURN(spec.coefficient, ParseCoefficient(flags.coefficient, spec.dtype));
  spec.has_coefficients = flags.coefficients.has_value();
  BesideFiles files;
  PREFIXD_RETURN_IF_ERROR(OpenSegments(flags.segments, flags.array, job, &spec, &files));
  // Before a large file is sent.
  PREFIXD_RETURN_IF_ERROR(CheckScan(spec));
  if (flags.coefficients) {
    PREFIXD_ASSIGN_OR_RETURN(files.coefficients, OpenBeside(*flags.coefficients, flags.array.format, spec.dtype, job,
                                                            spec.axis ? Shapes::kMatrixToo : Shapes::kLine));
    const std::optional<uint64_t> num_coefficients = files.coefficients->num_items();
    if (num_coefficients && spec.num_items && *num_coefficients != *spec.num_items) {
      return absl::InvalidArgumentError(StrCat(*flags.coefficients, ": ", *num_coefficients, " coefficients for ",
                                               *spec.num_items, " elements, expected one for each"));
    }
  }
  std::optional<uint64_t> num_results = spec.num_items;
  if (num_results && flags.include_initial) ++*num_results;
  return RunToOutput(global, flags.array, job, spec, num_results, files, flags.indices);
}

}  // namespace

void AddScanCommand(CLI::App& app, Commands* commands) {
  CLI::App* scan = app.add_subcommand("scan", "Prefix sums and their like: each element with all before it");
  const auto flags = std::make_shared<ScanFlags>();
  AddOperator(scan, Primitive::kScan, &flags->combine);
  AddNamed<ScanKind>(scan, "--kind", "inclusive, exclusive",
                     "Whether an element counts in its own result (default inclusive)", &flags->kind);
  scan->add_flag("--reverse", flags->reverse, "From the last element to the first");
  scan->add_flag("--include-initial", flags->include_initial,
                 "One result more: the initial value first, then what an inclusive scan from it gives");
  CLI::Option* const coefficients =
      scan->add_option("--coefficients", flags->coefficients,
                       "Of linear_recurrence, y[i] = coefficients[i] * y[i-1] + values[i]: file with one for each "
                       "element, of the same type")
          ->check(kNotEmpty);
  scan->add_option("--coefficient", flags->coefficient, "The same, one for all elements")->excludes(coefficients);
  scan->add_option("--indices", flags->indices,
                   "With --op min or max: file for where each result stands in the array, along --axis in its row or "
                   "column, as u64; of equal elements where the first is")
      ->check(kNotEmpty);
  scan->add_flag("--last-index", flags->last_index, "With --indices: of equal elements where the last is");
  AddAxis(scan, &flags->axis);
  AddSegments(scan, &flags->segments);
  AddArrayFlags(scan, &flags->array);
  AddOutput(scan, &flags->array);
  commands->push_back({scan, [flags](const GlobalFlags& global) { return RunScan(global, *flags); }});
}

}  // namespace prefixd::cli
