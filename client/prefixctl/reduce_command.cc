#include "client/prefixctl/reduce_command.h"

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/file_source.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/option.h"

namespace prefixd::cli {
namespace {

struct ReduceFlags {
  ArrayFlags array;
  OperatorFlags combine;
  AxisFlags axis;
  SegmentFlags segments;
  std::optional<std::string> keys_output;
};

// The values of rows, columns, segments or runs, to OUTPUT.
absl::Status RunToManyValues(const GlobalFlags& global, const ReduceFlags& flags, const Job& job,
                             const ReduceSpec& spec, const BesideFiles& files) {
  std::optional<uint64_t> num_values;
  if (spec.axis && spec.num_items) {
    PREFIXD_RETURN_IF_ERROR(CheckRows(*spec.axis, *spec.num_items));
    num_values = spec.axis->NumArrays(*spec.num_items);
  }
  return RunToOutput(global, flags.array, job, spec, num_values, files, flags.keys_output);
}

absl::Status RunReduce(const GlobalFlags& global, const ReduceFlags& flags) {
  const bool has_many = flags.axis.axis.has_value() || flags.segments.AreGiven();
  if (flags.keys_output && !flags.segments.keys) {
    return UsageError("--keys-output is for the keys of runs, and there are no --keys");
  }
  PREFIXD_RETURN_IF_ERROR(CheckInputs({flags.array.input, flags.segments.segments, flags.segments.keys}));
  if (flags.keys_output) {
    PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, *flags.keys_output));
    if (SameFile(*flags.keys_output, flags.array.output)) return UsageError("OUTPUT and --keys-output are the same");
  }
  if (has_many) {
    PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.array.output));
  } else if (flags.array.output != "-") {
    return UsageError(
        "OUTPUT: one value is printed, not written to a file: leave OUTPUT out, or give --axis, --segments or --keys");
  }
  // The one value is printed when the progress has ended.
  PREFIXD_ASSIGN_OR_RETURN(
      const Job job,
      StartJob(global, flags.array, has_many ? ResultToOf({flags.array.output, flags.keys_output}) : ResultTo::kFile,
               &flags.axis));
  PREFIXD_ASSIGN_OR_RETURN(const std::optional<Axis> axis, AxisOf(flags.axis, *job.reader));
  ReduceSpec spec = {.dtype = job.reader->dtype(),
                     .out_dtype = flags.combine.out_dtype,
                     .op = flags.combine.op,
                     .precision = flags.combine.precision,
                     .algorithm = flags.array.algorithm,
                     .num_items = job.reader->num_items(),
                     .axis = axis};
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, OutputType(flags.combine, spec.dtype));
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags.combine.init, out_dtype));
  spec.return_keys = flags.keys_output.has_value();
  PREFIXD_RETURN_IF_ERROR(CheckReduce(spec));  // Before a large file is sent.
  BesideFiles files;
  PREFIXD_RETURN_IF_ERROR(OpenSegments(flags.segments, flags.array, job, &spec, &files));
  if (has_many) return RunToManyValues(global, flags, job, spec, files);
  FileSource source(*job.reader, *job.progress);
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const client::ReduceReply reply, client.ReduceChunks(spec, source, job.Call()));
  Json json;
  json["value"] = ToJson(out_dtype, reply.value);
  json["count"] = reply.count;
  if (reply.index) json["index"] = *reply.index;
  std::string lead = "reduce: ";
  if (reply.index) lead += StrCat("at index ", *reply.index, " of ");
  job.progress->Wipe();
  if (!global.json) PREFIXD_RETURN_IF_ERROR(PrintText(FormatNumber(out_dtype, reply.value) + "\n"));
  return Report(global, job, lead, reply.count, reply.timing, std::move(json));
}

}  // namespace

void AddReduceCommand(CLI::App& app, Commands* commands) {
  CLI::App* reduce = app.add_subcommand("reduce", "One value of all elements, or of each row, column or segment");
  const auto flags = std::make_shared<ReduceFlags>();
  AddOperator(reduce, Primitive::kReduce, &flags->combine);
  AddAxis(reduce, &flags->axis);
  AddSegments(reduce, &flags->segments);
  reduce->add_option("--keys-output", flags->keys_output, "With --keys: file for the key of each run")
      ->check(kNotEmpty);
  AddArrayFlags(reduce, &flags->array);
  AddOutput(reduce, &flags->array);
  commands->push_back({reduce, [flags](const GlobalFlags& global) { return RunReduce(global, *flags); }});
}

}  // namespace prefixd::cli
