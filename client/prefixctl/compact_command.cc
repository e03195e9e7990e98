#include "client/prefixctl/compact_command.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/arrays_run.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/file_source.h"
#include "client/prefixctl/option.h"
#include "client/prefixctl/predicate.h"

namespace prefixd::cli {
namespace {

struct CompactFlags {
  ArrayFlags array;
  std::optional<std::string> where;  // This or the mask.
  std::optional<std::string> mask;
  bool invert = false;
  std::optional<std::string> indices;
  SegmentFlags segments;
  std::optional<std::string> counts;
};

// The files of the results. None gets its name before all are complete.
class Outputs {
 public:
  // values: of the type. counts: of segments.
  static absl::StatusOr<Outputs> Open(const CompactFlags& flags, DType dtype, absl::Time deadline,
                                      std::optional<uint64_t> num_kept = {},
                                      std::optional<uint64_t> num_segments = {}) {
    Outputs outputs;
    PREFIXD_ASSIGN_OR_RETURN(outputs.values,
                             ArrayWriter::Open(flags.array.output, OutputFormat(flags.array.output, flags.array.format),
                                               dtype, num_kept, deadline));
    if (flags.indices) {
      PREFIXD_ASSIGN_OR_RETURN(outputs.indices, ArrayWriter::Open(*flags.indices, FormatOf(*flags.indices), DType::kU64,
                                                                  num_kept, deadline));
    }
    if (flags.counts) {
      PREFIXD_ASSIGN_OR_RETURN(outputs.counts, ArrayWriter::Open(*flags.counts, FormatOf(*flags.counts), DType::kU64,
                                                                 num_segments, deadline));
    }
    return outputs;
  }

  absl::Status Commit() {
    for (ArrayWriter* const writer : {values.get(), indices.get(), counts.get()}) {
      if (writer != nullptr) PREFIXD_RETURN_IF_ERROR(writer->Commit());
    }
    return absl::OkStatus();
  }

  std::unique_ptr<ArrayWriter> values;
  std::unique_ptr<ArrayWriter> indices;  // Null: they are not wanted.
  std::unique_ptr<ArrayWriter> counts;
};

// Which kept elements are of which segment is counted by arrays of the server.
absl::Status RunOnSegments(const GlobalFlags& global, const CompactFlags& flags, const Job& job,
                           const CompactSpec& spec, const BesideFiles& files) {
  PREFIXD_ASSIGN_OR_RETURN(const auto run, ArraysRun::Start(global, job, files));
  client::ArrayPlaces places = run->places();
  places.values_to = places.counts_to = client::NewArray();
  if (flags.indices) places.indices_to = client::NewArray();
  PREFIXD_ASSIGN_OR_RETURN(const client::ResidentReply reply, run->Run(spec, places));
  PREFIXD_ASSIGN_OR_RETURN(Outputs outputs,
                           Outputs::Open(flags, spec.dtype, job.deadline, reply.count, reply.counts.info().num_items));
  PREFIXD_RETURN_IF_ERROR(run->Save(reply.values, *outputs.values));
  if (outputs.indices) PREFIXD_RETURN_IF_ERROR(run->Save(reply.indices, *outputs.indices));
  if (outputs.counts) PREFIXD_RETURN_IF_ERROR(run->Save(reply.counts, *outputs.counts));
  PREFIXD_RETURN_IF_ERROR(outputs.Commit());
  Json json;
  json["count"] = reply.count;
  return Report(global, job, StrCat("compact: kept ", reply.count, " of "), places.values.num_items(), reply.timing,
                std::move(json));
}

absl::Status CheckOutputs(const GlobalFlags& global, const CompactFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.array.output));
  const std::pair<std::string_view, std::optional<std::string>> outputs[] = {
      {"OUTPUT", flags.array.output}, {"--indices", flags.indices}, {"--counts", flags.counts}};
  for (size_t i = 0; i < std::size(outputs); ++i) {
    if (!outputs[i].second) continue;
    PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, *outputs[i].second));
    for (size_t j = 0; j < i; ++j) {
      if (outputs[j].second && SameFile(*outputs[j].second, *outputs[i].second)) {
        return UsageError(StrCat(outputs[j].first, " and ", outputs[i].first, " are the same"));
      }
    }
  }
  if (flags.segments.AreGiven() == flags.counts.has_value()) return absl::OkStatus();
  return UsageError("--counts counts the kept elements of segments: give it with --segments or --keys, and only then");
}

absl::Status RunCompact(const GlobalFlags& global, const CompactFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckOutputs(global, flags));
  PREFIXD_RETURN_IF_ERROR(CheckInputs({flags.array.input, flags.mask, flags.segments.segments, flags.segments.keys}));
  PREFIXD_ASSIGN_OR_RETURN(
      const Job job, StartJob(global, flags.array, ResultToOf({flags.array.output, flags.indices, flags.counts})));
  const DType dtype = job.reader->dtype();
  CompactSpec spec = {.dtype = dtype,
                      .invert = flags.invert,
                      .return_indices = flags.indices.has_value(),
                      .algorithm = flags.array.algorithm,
                      .num_items = job.reader->num_items()};
  BesideFiles files;
  if (flags.mask) {
    PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(*flags.mask, job.deadline));
    PREFIXD_ASSIGN_OR_RETURN(files.mask, OpenMask(std::move(file), FormatOf(*flags.mask)));
  } else {
    absl::StatusOr<Predicate> predicate = ParsePredicate(dtype, flags.where.value_or(""));
    if (!predicate.ok()) return UsageError(StrCat("--where: ", std::string(predicate.status().message())));
    spec.predicate = *predicate;
  }
  PREFIXD_RETURN_IF_ERROR(OpenSegments(flags.segments, flags.array, job, &spec, &files));
  if (spec.segmented) return RunOnSegments(global, flags, job, spec, files);
  PREFIXD_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(flags, dtype, job.deadline));
  FileSource source = files.mask ? FileSource(*job.reader, FileSource::Beside::kMask, *files.mask, *job.progress)
                                 : FileSource(*job.reader, *job.progress);
  client::Client client = MakeClient(global);
  const auto write = [&](client::Pieces values, client::Pieces indices) {
    absl::Status status = outputs.values->Write(values);
    if (status.ok() && outputs.indices) status = outputs.indices->Write(indices);
    return status;
  };
  PREFIXD_ASSIGN_OR_RETURN(const client::Timing timing, client.RunChunks(spec, source, write, job.Call()));
  PREFIXD_RETURN_IF_ERROR(outputs.values->Close());
  if (outputs.indices) PREFIXD_RETURN_IF_ERROR(outputs.indices->Close());
  PREFIXD_RETURN_IF_ERROR(outputs.Commit());
  const uint64_t count = outputs.values->ItemsWritten();
  Json json;
  json["count"] = count;
  return Report(global, job, StrCat("compact: kept ", count, " of "), source.items_read(), timing, std::move(json));
}

}  // namespace

void AddCompactCommand(CLI::App& app, Commands* commands) {
  CLI::App* compact = app.add_subcommand("compact", "The elements that a predicate or a mask selects");
  const auto flags = std::make_shared<CompactFlags>();
  CLI::Option_group* selector = compact->add_option_group("Selector", "Exactly one of");
  selector->add_option(
      "--where", flags->where,
      "Such as '> 0', '!= 3', '[0, 10)' with its first number and without its last, is-nan, is-finite");
  selector->add_option("--mask", flags->mask, "File of bool or u8 (.npy), of bytes, or of 0 and 1 (text)")
      ->check(kNotEmpty);
  selector->require_option(1);
  compact->add_flag("--invert", flags->invert, "Keep the others");
  compact->add_option("--indices", flags->indices, "File for the indices of the kept elements, as u64")
      ->check(kNotEmpty);
  AddSegments(compact, &flags->segments);
  compact
      ->add_option("--counts", flags->counts, "With --segments or --keys: file for how many were kept of each, as u64")
      ->check(kNotEmpty);
  AddArrayFlags(compact, &flags->array);
  AddOutput(compact, &flags->array);
  commands->push_back({compact, [flags](const GlobalFlags& global) { return RunCompact(global, *flags); }});
}

}  // namespace prefixd::cli
