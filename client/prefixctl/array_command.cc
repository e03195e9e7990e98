#include "client/prefixctl/array_command.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/arrays_run.h"
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

void AddOperator(CLI::App* app, Primitive primitive, OperatorFlags* flags) {
  AddNamed<Op>(app, "--op", OpNames(primitive), "Operator (default sum)", &flags->op);
  AddInit(app, &flags->init);
  AddNamed<DType>(app, "--out-type", DTypeNames(),
                  "Type of the result, in which elements are combined: theirs (default) or a wider one",
                  &flags->out_dtype);
  AddNamed<Precision>(
      app, "--precision", "native, wide",
      "In what sums of f32 and f64 are made: their type (default), or wide, f64 and twice its precision",
      &flags->precision);
}

void AddInit(CLI::App* app, std::optional<std::string>* init) {
  app->add_option("--init", *init, "Value in front of the first element");
}

void AddAxis(CLI::App* app, AxisFlags* flags) {
  CLI::Option* const axis = AddNumber<uint32_t>(
      app, "--axis", 0, 1, "The array is a matrix, and each of its columns (0) or rows (1) is worked on by itself",
      &flags->axis);
  CLI::Option* const row_items =
      AddNumber<uint64_t>(app, "--row-items", 1, std::numeric_limits<uint64_t>::max(),
                          "Elements in a row of the matrix, whose rows stand one behind the other; a .npy file of two "
                          "dimensions says it",
                          &flags->row_items);
  row_items->needs(axis);
}

void AddSegments(CLI::App* app, SegmentFlags* flags) {
  CLI::Option* const segments =
      app->add_option("--segments", flags->segments,
                      "File of u64: where each segment begins, and where the last ends; each is worked on by itself")
          ->check(kNotEmpty);
  app->add_option("--keys", flags->keys,
                  "File with a key for each element: those next to each other with equal keys are a segment")
      ->check(kNotEmpty)
      ->excludes(segments);
  AddNamed<DType>(app, "--key-type", DTypeNames(), "Type of the keys, as --type", &flags->key_dtype);
}

absl::StatusOr<std::optional<Axis>> AxisOf(const AxisFlags& flags, const ArrayReader& reader) {
  if (!flags.axis) return std::nullopt;
  const std::optional<uint64_t> of_file = reader.row_items();
  if (of_file && flags.row_items.value_or(*of_file) != *of_file) {
    return UsageError(StrCat("--row-items: ", reader.file().name(), " has rows of ", *of_file, ": leave it out"));
  }
  const std::optional<uint64_t> row_items = of_file ? of_file : flags.row_items;
  if (!row_items) {
    return UsageError(StrCat("--axis needs --row-items: ", reader.file().name(), " does not say how long a row is"));
  }
  return Axis{.along = static_cast<Axis::Along>(*flags.axis), .row_items = *row_items};
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

Format OutputFormat(const std::string& output, std::optional<Format> format) {
  return FormatOfSuffix(output).value_or(format.value_or(FormatOf(output)));
}

ResultTo ResultToOf(std::initializer_list<std::optional<std::string>> outputs) {
  return std::count(outputs.begin(), outputs.end(), "-") > 0 ? ResultTo::kStandardOutput : ResultTo::kFile;
}

absl::Status CheckInputs(std::initializer_list<std::optional<std::string>> inputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") <= 1) return absl::OkStatus();
  return UsageError("two of the files that are read can't both be standard input");
}

// ---- Runs ----------------------------------------------------------------------------------------------------------
absl::StatusOr<Job> StartJob(const GlobalFlags& global, const ArrayFlags& flags, ResultTo result_to,
                             const AxisFlags* axis) {
  Job job;
  job.progress = std::make_unique<Progress>(result_to);
  job.start = absl::Now();
  job.deadline = job.start + global.TimeLimit();
  const Format format = flags.format.value_or(FormatOf(flags.input));
  if (format == Format::kRaw && !flags.dtype) {
    return UsageError(StrCat(flags.input, " is taken as raw bytes, which need --type (or give --format npy or text)"));
  }
  PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(flags.input, job.deadline));
  const Shapes shapes = axis != nullptr ? Shapes::kMatrixToo : Shapes::kLine;
  PREFIXD_ASSIGN_OR_RETURN(job.reader, OpenArray(std::move(file), format, flags.dtype, shapes));
  if (job.reader->row_items() && !axis->axis) {
    return absl::InvalidArgumentError(
        StrCat(flags.input, ": it has 2 dimensions, expected one: say along which --axis, or save x.ravel() instead"));
  }
  return job;
}

namespace {

// Whether it sees its whole array at once.
bool NeedsWhole(const Spec& spec) {
  return std::visit(
      [](const auto& one) {
        bool needs_whole = false;
        if constexpr (requires { one.reverse; }) needs_whole |= one.reverse;
        if constexpr (requires { one.axis; }) {
          needs_whole |= one.axis.has_value() && one.axis->along == Axis::Along::kColumn;
        }
        return needs_whole;
      },
      spec);
}

bool IsSegmented(const Spec& spec) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.segmented; }) return one.segmented;
        return false;
      },
      spec);
}

bool HasIndices(const Spec& spec) {
  const auto* const scan = std::get_if<ScanSpec>(&spec);
  return scan != nullptr && scan->return_indices;
}

// Whether elements and results do.
bool FitMessage(const Spec& spec, uint64_t num_items, std::optional<uint64_t> num_results) {
  const size_t result_bytes = SizeOf(OutputOf(spec)) + (HasIndices(spec) ? sizeof(uint64_t) : 0);
  const uint64_t most = client::kMaxPayloadBytes / std::max(SizeOf(InputOf(spec)), result_bytes);
  return std::max(num_items, num_results.value_or(0)) <= most;
}

// As RunToOutput, through arrays of the server.
absl::Status RunThroughArrays(const GlobalFlags& global, const ArrayFlags& flags, const Job& job,
                              const BesideFiles& files, const Spec& spec, std::optional<uint64_t> num_results,
                              const std::optional<std::string>& beside_output) {
  std::optional<uint64_t> row_items;
  if (PrimitiveOf(spec) != Primitive::kReduce) row_items = job.reader->row_items();
  PREFIXD_ASSIGN_OR_RETURN(const auto run, ArraysRun::Start(global, job, files));
  client::ArrayPlaces places = run->places();
  places.values_to = client::NewArray();
  if (beside_output) places.indices_to = client::NewArray();
  PREFIXD_ASSIGN_OR_RETURN(const client::ResidentReply reply, run->Run(spec, places));
  PREFIXD_ASSIGN_OR_RETURN(
      const auto writer,
      ArrayWriter::Open(flags.output, OutputFormat(flags.output, flags.format), OutputOf(spec),
                        num_results.value_or(reply.values.info().num_items), job.deadline, row_items));
  PREFIXD_RETURN_IF_ERROR(run->Save(reply.values, *writer));
  std::unique_ptr<ArrayWriter> beside_writer;
  if (beside_output) {
    PREFIXD_ASSIGN_OR_RETURN(
        beside_writer,
        ArrayWriter::Open(*beside_output, OutputFormat(*beside_output, flags.format), reply.indices.dtype(),
                          reply.indices.info().num_items, job.deadline, row_items));
    PREFIXD_RETURN_IF_ERROR(run->Save(reply.indices, *beside_writer));
  }
  // None gets its name before all are complete.
  PREFIXD_RETURN_IF_ERROR(writer->Commit());
  if (beside_writer) PREFIXD_RETURN_IF_ERROR(beside_writer->Commit());
  Json json;
  const uint64_t num_items = places.values.num_items();
  json["count"] = num_items;
  return Report(global, job, StrCat(Name(PrimitiveOf(spec)), ": "), num_items, reply.timing, std::move(json));
}

template <class S>
absl::Status OpenSegmentsOf(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, S* spec,
                            BesideFiles* files) {
  if (flags.key_dtype && !flags.keys) return UsageError("--key-type is that of --keys, and there are none");
  if (!flags.AreGiven()) return absl::OkStatus();
  if constexpr (requires { spec->axis; }) {
    if (spec->axis) return UsageError("segments and --axis cut an array each in its way: leave one out");
  }
  spec->segmented = true;
  if (flags.segments) {
    PREFIXD_ASSIGN_OR_RETURN(files->segments, OpenBeside(*flags.segments, array.format, DType::kU64, job));
    return absl::OkStatus();
  }
  PREFIXD_ASSIGN_OR_RETURN(files->keys, OpenBeside(*flags.keys, array.format, flags.key_dtype, job));
  spec->key_dtype = files->keys->dtype();
  const std::optional<uint64_t> num_keys = files->keys->num_items(), num_items = job.reader->num_items();
  if (!num_keys || !num_items || *num_keys == *num_items) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(*flags.keys, ": ", *num_keys, " keys for ", *num_items, " elements, expected one for each"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArrayReader>> OpenBeside(const std::string& path, std::optional<Format> format,
                                                        std::optional<DType> dtype, const Job& job, Shapes shapes) {
  PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(path, job.deadline));
  return OpenArray(std::move(file), FormatOfSuffix(path).value_or(format.value_or(FormatOf(path))), dtype, shapes);
}

absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, ScanSpec* spec,
                          BesideFiles* files) {
  return OpenSegmentsOf(flags, array, job, spec, files);
}

absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, ReduceSpec* spec,
                          BesideFiles* files) {
  return OpenSegmentsOf(flags, array, job, spec, files);
}

absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, CompactSpec* spec,
                          BesideFiles* files) {
  return OpenSegmentsOf(flags, array, job, spec, files);
}

absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, DifferenceSpec* spec,
                          BesideFiles* files) {
  return OpenSegmentsOf(flags, array, job, spec, files);
}

absl::Status RunToOutput(const GlobalFlags& global, const ArrayFlags& flags, const Job& job, const Spec& spec,
                         std::optional<uint64_t> num_results, const BesideFiles& files,
                         const std::optional<std::string>& beside_output) {
  const std::optional<uint64_t> num_items = job.reader->num_items();
  if (const std::optional<Axis> axis = AxisOf(spec); axis && num_items) {
    PREFIXD_RETURN_IF_ERROR(CheckRows(*axis, *num_items));
  }
  if (IsSegmented(spec) || (NeedsWhole(spec) && num_items && !FitMessage(spec, *num_items, num_results))) {
    return RunThroughArrays(global, flags, job, files, spec, num_results, beside_output);
  }
  std::optional<uint64_t> row_items;
  if (PrimitiveOf(spec) != Primitive::kReduce) row_items = job.reader->row_items();
  PREFIXD_ASSIGN_OR_RETURN(auto writer, ArrayWriter::Open(flags.output, OutputFormat(flags.output, flags.format),
                                                          OutputOf(spec), num_results, job.deadline, row_items));
  std::unique_ptr<ArrayWriter> beside_writer;
  if (beside_output) {
    PREFIXD_ASSIGN_OR_RETURN(beside_writer,
                             ArrayWriter::Open(*beside_output, OutputFormat(*beside_output, flags.format), DType::kU64,
                                               num_results, job.deadline, row_items));
  }
  FileSource source = files.coefficients == nullptr ? FileSource(*job.reader, *job.progress)
                                                    : FileSource(*job.reader, FileSource::Beside::kCoefficients,
                                                                 *files.coefficients, *job.progress);
  client::Client client = MakeClient(global);
  const auto write = [&](client::Pieces values, client::Pieces indices) {
    const absl::Status status = writer->Write(values);
    return status.ok() && beside_writer ? beside_writer->Write(indices) : status;
  };
  PREFIXD_ASSIGN_OR_RETURN(const client::Timing timing, client.RunChunks(spec, source, write, job.Call()));
  for (ArrayWriter* const one : {writer.get(), beside_writer.get()}) {
    if (one != nullptr) PREFIXD_RETURN_IF_ERROR(one->Close());
  }
  // None gets its name before all are complete.
  PREFIXD_RETURN_IF_ERROR(writer->Commit());
  if (beside_writer) PREFIXD_RETURN_IF_ERROR(beside_writer->Commit());
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
