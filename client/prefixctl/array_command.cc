#include "client/prefixctl/array_command.h"

#include <iostream>
#include <limits>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/file_source.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/option.h"

namespace prefixd::cli {

// ---- Flags ---------------------------------------------------------------------------------------------------------
void AddArrayFlags(CLI::App* app, ArrayFlags* flags) {
  AddNamed<DType>(app, "--type", DTypeNames(),
                  "Element type; .npy brings its own, text is f64 without it, raw bytes need it", &flags->dtype);
  const auto set_algorithm = [flags](const std::string& name) {
    flags->algorithm = ParseAlgorithm("--algorithm", name);
  };
  app->add_option_function<std::string>("--algorithm", set_algorithm,
                                        "Such as three_phase/brent_kung/4/padded; prefixctl algorithms lists them all")
      ->type_name("NAME");
  AddFormat(app, "Format of INPUT, and of OUTPUT unless its name says it", &flags->format);
  app->add_option("INPUT", flags->input, "File, or - for standard input")->required()->check(kNotEmpty);
}

void AddFormat(CLI::App* app, const std::string& what, std::optional<Format>* format) {
  const auto set = [format](const std::string& name) {
    *format = name == "npy" ? Format::kNpy : name == "text" ? Format::kText : Format::kRaw;
  };
  app->add_option_function<std::string>("--format", set, what)->check(CLI::IsMember({"npy", "text", "raw"}));
}

void AddOutput(CLI::App* app, ArrayFlags* flags) {
  app->add_option("OUTPUT", flags->output, "File, or - for standard output (default)")->check(kNotEmpty);
}

void AddOperator(CLI::App* app, OperatorFlags* flags) {
  AddNamed<Op>(app, "--op", OpNames(), "Operator (default sum)", &flags->op);
  AddInit(app, &flags->init);
  AddNamed<DType>(app, "--out-type", DTypeNames(),
                  "Type of the result, in which elements are combined: theirs (default) or a wider one",
                  &flags->out_dtype);
}

void AddInit(CLI::App* app, std::optional<std::string>* init) {
  app->add_option("--init", *init, "Value in front of the first element");
}

void AddAxis(CLI::App* app, AxisFlags* flags) {
  CLI::Option* const axis = AddNumber<uint32_t>(
      app, "--axis", 0, 1,
      "The array is a matrix, and each of its columns (0) or rows (1) is worked on by itself; arrays of up to 1 MiB",
      &flags->axis);
  CLI::Option* const row_items =
      AddNumber<uint64_t>(app, "--row-items", 1, std::numeric_limits<uint64_t>::max(),
                          "Elements in a row of the matrix; its rows stand one behind the other", &flags->row_items);
  axis->needs(row_items);
  row_items->needs(axis);
}

std::optional<Axis> AxisOf(const AxisFlags& flags) {
  if (!flags.axis || !flags.row_items) return std::nullopt;
  return Axis{.along = static_cast<Axis::Along>(*flags.axis), .row_items = *flags.row_items};
}

absl::StatusOr<DType> OutputType(const OperatorFlags& flags, DType dtype) {
  const DType out_dtype = flags.out_dtype.value_or(dtype);
  if (IsOutput(dtype, out_dtype)) return out_dtype;
  return UsageError(StrCat("--out-type: elements of ", Name(dtype), " have no results of ", Name(out_dtype),
                           ": use one of ", OutputNames(dtype)));
}

absl::StatusOr<std::optional<Value>> ParseInit(const std::optional<std::string>& init, DType dtype) {
  if (!init) return std::nullopt;
  const absl::StatusOr<Value> value = ParseNumber(dtype, *init);
  if (!value.ok()) return UsageError(StrCat("--init: ", std::string(value.status().message())));
  return *value;
}

absl::Status CheckJsonOutput(const GlobalFlags& global, const std::string& output) {
  if (!global.json || output != "-") return absl::OkStatus();
  return UsageError("--json needs standard output for itself: name a file for the result");
}

Format OutputFormat(const ArrayFlags& flags) {
  if (const auto format = FormatOfSuffix(flags.output)) return *format;
  return flags.format.value_or(FormatOf(flags.output));
}

ResultTo ResultToOf(const std::string& output) { return output == "-" ? ResultTo::kStandardOutput : ResultTo::kFile; }

// ---- Runs ----------------------------------------------------------------------------------------------------------
absl::StatusOr<Job> StartJob(const GlobalFlags& global, const ArrayFlags& flags, ResultTo result_to) {
  Job job;
  job.progress = std::make_unique<Progress>(result_to);
  job.start = absl::Now();
  job.deadline = job.start + global.TimeLimit();
  const Format format = flags.format.value_or(FormatOf(flags.input));
  if (format == Format::kRaw && !flags.dtype) {
    return UsageError(StrCat(flags.input, " is taken as raw bytes, which need --type (or give --format npy or text)"));
  }
  PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(flags.input, job.deadline));
  PREFIXD_ASSIGN_OR_RETURN(job.reader, OpenArray(std::move(file), format, flags.dtype));
  return job;
}

absl::Status RunToOutput(const GlobalFlags& global, const ArrayFlags& flags, const Job& job, const Spec& spec) {
  PREFIXD_ASSIGN_OR_RETURN(auto writer, ArrayWriter::Open(flags.output, OutputFormat(flags), OutputOf(spec),
                                                          NumItemsOf(spec), job.deadline));
  FileSource source(*job.reader, nullptr, *job.progress);
  client::Client client = MakeClient(global);
  const auto write = [&](client::Pieces values, client::Pieces) { return writer->Write(values); };
  PREFIXD_ASSIGN_OR_RETURN(const client::Timing timing, client.RunChunks(spec, source, write, job.Call()));
  PREFIXD_RETURN_IF_ERROR(writer->Close());
  PREFIXD_RETURN_IF_ERROR(writer->Commit());
  Json json;
  json["count"] = source.items_read();
  return Report(global, job, StrCat(Name(PrimitiveOf(spec)), ": "), source.items_read(), timing, std::move(json));
}

absl::Status Report(const GlobalFlags& global, const Job& job, std::string_view lead, uint64_t num_items,
                    const client::Timing& timing, Json json) {
  const absl::Duration wall = absl::Now() - job.start;
  job.progress->Wipe();
  if (global.json) {
    json["timing"] = ToJson(timing, wall);
    return PrintJson(json);
  }
  std::cerr << "prefixctl: " << lead << SummaryLine(num_items, job.reader->dtype(), timing, wall) << '\n';
  return absl::OkStatus();
}

}  // namespace prefixd::cli
