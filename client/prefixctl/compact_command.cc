#include "client/prefixctl/compact_command.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/array_writer.h"
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
};

absl::Status RunCompact(const GlobalFlags& global, const CompactFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.array.output));
  if (flags.indices) PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, *flags.indices));
  if (flags.indices && SameFile(*flags.indices, flags.array.output))
    return UsageError("OUTPUT and --indices are the same");
  if (flags.mask == "-" && flags.array.input == "-") return UsageError("INPUT and --mask can't both be standard input");
  const ResultTo result_to = flags.indices ? ResultToOf(*flags.indices) : ResultTo::kFile;
  PREFIXD_ASSIGN_OR_RETURN(
      const Job job, StartJob(global, flags.array, flags.array.output == "-" ? ResultTo::kStandardOutput : result_to));
  const DType dtype = job.reader->dtype();
  CompactSpec spec = {.dtype = dtype,
                      .invert = flags.invert,
                      .return_indices = flags.indices.has_value(),
                      .algorithm = flags.array.algorithm,
                      .num_items = job.reader->num_items()};
  std::unique_ptr<ArrayReader> mask;
  if (flags.mask) {
    PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(*flags.mask, job.deadline));
    PREFIXD_ASSIGN_OR_RETURN(mask, OpenMask(std::move(file), FormatOf(*flags.mask)));
  } else {
    absl::StatusOr<Predicate> predicate = ParsePredicate(dtype, flags.where.value_or(""));
    if (!predicate.ok()) return UsageError(StrCat("--where: ", std::string(predicate.status().message())));
    spec.predicate = *predicate;
  }
  PREFIXD_ASSIGN_OR_RETURN(auto values_writer,
                           ArrayWriter::Open(flags.array.output, OutputFormat(flags.array.output, flags.array.format),
                                             dtype, std::nullopt, job.deadline));
  std::unique_ptr<ArrayWriter> indices_writer;
  if (flags.indices) {
    PREFIXD_ASSIGN_OR_RETURN(indices_writer, ArrayWriter::Open(*flags.indices, FormatOf(*flags.indices), DType::kU64,
                                                               std::nullopt, job.deadline));
  }
  FileSource source = mask ? FileSource(*job.reader, FileSource::Beside::kMask, *mask, *job.progress)
                           : FileSource(*job.reader, *job.progress);
  client::Client client = MakeClient(global);
  const auto write = [&](client::Pieces values, client::Pieces indices) {
    absl::Status status = values_writer->Write(values);
    if (status.ok() && indices_writer) status = indices_writer->Write(indices);
    return status;
  };
  PREFIXD_ASSIGN_OR_RETURN(const client::Timing timing, client.RunChunks(spec, source, write, job.Call()));
  // Neither gets its name before both are complete.
  PREFIXD_RETURN_IF_ERROR(values_writer->Close());
  if (indices_writer) PREFIXD_RETURN_IF_ERROR(indices_writer->Close());
  PREFIXD_RETURN_IF_ERROR(values_writer->Commit());
  if (indices_writer) PREFIXD_RETURN_IF_ERROR(indices_writer->Commit());
  const uint64_t count = values_writer->ItemsWritten();
  Json json;
  json["count"] = count;
  return Report(global, job, StrCat("compact: kept ", count, " of "), source.items_read(), timing, std::move(json));
}

}  // namespace

void AddCompactCommand(CLI::App& app, Commands* commands) {
  CLI::App* compact = app.add_subcommand("compact", "The elements that a predicate or a mask selects");
  const auto flags = std::make_shared<CompactFlags>();
  CLI::Option_group* selector = compact->add_option_group("Selector", "Exactly one of");
  selector->add_option("--where", flags->where, "Such as '> 0', '!= 3', is-nan, is-finite");
  selector->add_option("--mask", flags->mask, "File of bool or u8 (.npy), of bytes, or of 0 and 1 (text)")
      ->check(kNotEmpty);
  selector->require_option(1);
  compact->add_flag("--invert", flags->invert, "Keep the others");
  compact->add_option("--indices", flags->indices, "File for the indices of the kept elements, as u64")
      ->check(kNotEmpty);
  AddArrayFlags(compact, &flags->array);
  AddOutput(compact, &flags->array);
  commands->push_back({compact, [flags](const GlobalFlags& global) { return RunCompact(global, *flags); }});
}

}  // namespace prefixd::cli
