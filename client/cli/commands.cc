#include "client/cli/commands.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "client/cli/array_writer.h"
#include "client/cli/file_source.h"
#include "client/cli/number.h"
#include "client/cli/predicate.h"
#include "client/cli/report.h"
#include "client/client.h"
#include "kernels/status.h"

namespace prefixd::cli {
namespace {

constexpr std::string_view kUsage = "USAGE";

// One run of scan, reduce or compact: its clock, its input.
struct Job {
  absl::Time start;
  absl::Time deadline;
  std::unique_ptr<ArrayReader> reader;
  std::unique_ptr<Progress> progress;

  client::CallOptions Call() const { return {.timeout = deadline - absl::Now()}; }
};

absl::StatusOr<Job> StartJob(const GlobalFlags& global, const ArrayFlags& flags, ResultTo result_to) {
  Job job;
  job.progress = std::make_unique<Progress>(result_to);
  job.start = absl::Now();
  job.deadline = job.start + global.timeout.value_or(absl::InfiniteDuration());
  const Format format = flags.format.value_or(FormatOf(flags.input));
  if (format == Format::kRaw && !flags.dtype) {
    return UsageError(StrCat(flags.input, " is taken as raw bytes, which need --type (or give --format npy or text)"));
  }
  PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(flags.input, job.deadline));
  PREFIXD_ASSIGN_OR_RETURN(job.reader, OpenArray(std::move(file), format, flags.dtype));
  return job;
}

// --format is about the input first: `--format text data.log sums.npy` still makes a .npy file.
Format OutputFormat(const ArrayFlags& flags) {
  if (const auto format = FormatOfSuffix(flags.output)) return *format;
  return flags.format.value_or(FormatOf(flags.output));
}

ResultTo ResultToOf(const std::string& output) { return output == "-" ? ResultTo::kStandardOutput : ResultTo::kFile; }

// The type of a scan's or reduce's result.
absl::StatusOr<DType> OutputType(const ArrayFlags& flags, DType dtype) {
  const DType out_dtype = flags.out_dtype.value_or(dtype);
  if (IsOutput(dtype, out_dtype)) return out_dtype;
  return UsageError(StrCat("--out-type: elements of ", Name(dtype), " have no results of ", Name(out_dtype),
                           ": use one of ", OutputNames(dtype)));
}

absl::StatusOr<std::optional<Value>> ParseInit(const ArrayFlags& flags, DType dtype) {
  if (!flags.init) return std::nullopt;
  const absl::StatusOr<Value> value = ParseNumber(dtype, *flags.init);
  if (!value.ok()) return UsageError(StrCat("--init: ", std::string(value.status().message())));
  return *value;
}

absl::Status CheckJsonOutput(const GlobalFlags& global, const std::string& output) {
  if (!global.json || output != "-") return absl::OkStatus();
  return UsageError("--json needs standard output for itself: name a file for the result");
}

// The end of a run: the JSON object with its timing, or the summary behind `lead`.
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

absl::StatusOr<client::ServerInfo> GetInfo(const GlobalFlags& global) {
  return MakeClient(global).GetServerInfo({.timeout = global.timeout.value_or(kStatusTimeout)});
}

}  // namespace

absl::Status UsageError(std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, kUsage, "", message);
}

bool IsUsageError(const absl::Status& status) { return ErrorReason(status) == kUsage; }

// A person waits: after a second without a server it is time to say so.
client::Client MakeClient(const GlobalFlags& global) {
  return client::Client(global.server, {.retry_window = absl::Seconds(1)});
}

absl::Status RunScan(const GlobalFlags& global, const ScanFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.output));
  PREFIXD_ASSIGN_OR_RETURN(Job job, StartJob(global, flags, ResultToOf(flags.output)));
  const DType dtype = job.reader->dtype();
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, OutputType(flags, dtype));
  client::ScanSpec spec = {.dtype = dtype,
                           .out_dtype = flags.out_dtype,
                           .op = flags.op,
                           .kind = flags.kind,
                           .reverse = flags.reverse,
                           .algorithm = flags.algorithm,
                           .num_items = job.reader->num_items()};
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags, out_dtype));
  PREFIXD_ASSIGN_OR_RETURN(
      auto writer, ArrayWriter::Open(flags.output, OutputFormat(flags), out_dtype, spec.num_items, job.deadline));
  FileSource source(*job.reader, nullptr, *job.progress);
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const client::Timing timing,
                           client.ScanChunks(
                               spec, source, [&](client::Bytes values) { return writer->Write(values); }, job.Call()));
  PREFIXD_RETURN_IF_ERROR(writer->Close());
  PREFIXD_RETURN_IF_ERROR(writer->Commit());
  Json json;
  json["count"] = source.items_read();
  return Report(global, job, "scan: ", source.items_read(), timing, std::move(json));
}

absl::Status RunReduce(const GlobalFlags& global, const ArrayFlags& flags) {
  // The one value is printed when the progress has ended.
  PREFIXD_ASSIGN_OR_RETURN(Job job, StartJob(global, flags, ResultTo::kFile));
  const DType dtype = job.reader->dtype();
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, OutputType(flags, dtype));
  client::ReduceSpec spec = {.dtype = dtype,
                             .out_dtype = flags.out_dtype,
                             .op = flags.op,
                             .algorithm = flags.algorithm,
                             .num_items = job.reader->num_items()};
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags, out_dtype));
  FileSource source(*job.reader, nullptr, *job.progress);
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

absl::Status RunCompact(const GlobalFlags& global, const CompactFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.output));
  if (flags.indices) PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, *flags.indices));
  if (flags.indices && SameFile(*flags.indices, flags.output)) return UsageError("OUTPUT and --indices are the same");
  if (flags.mask == "-" && flags.input == "-") return UsageError("INPUT and --mask can't both be standard input");
  const ResultTo result_to = flags.indices ? ResultToOf(*flags.indices) : ResultTo::kFile;
  PREFIXD_ASSIGN_OR_RETURN(Job job,
                           StartJob(global, flags, flags.output == "-" ? ResultTo::kStandardOutput : result_to));
  const DType dtype = job.reader->dtype();
  client::CompactSpec spec = {.dtype = dtype,
                              .invert = flags.invert,
                              .return_indices = flags.indices.has_value(),
                              .algorithm = flags.algorithm,
                              .num_items = job.reader->num_items()};
  std::unique_ptr<ArrayReader> mask;
  if (flags.mask) {
    PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(*flags.mask, job.deadline));
    PREFIXD_ASSIGN_OR_RETURN(mask, OpenMask(std::move(file), FormatOf(*flags.mask)));
  } else {
    absl::StatusOr<client::Predicate> predicate = ParsePredicate(dtype, flags.where.value_or(""));
    if (!predicate.ok()) return UsageError(StrCat("--where: ", std::string(predicate.status().message())));
    spec.predicate = *predicate;
  }
  PREFIXD_ASSIGN_OR_RETURN(auto values_writer,
                           ArrayWriter::Open(flags.output, OutputFormat(flags), dtype, std::nullopt, job.deadline));
  std::unique_ptr<ArrayWriter> indices_writer;
  if (flags.indices) {
    PREFIXD_ASSIGN_OR_RETURN(indices_writer, ArrayWriter::Open(*flags.indices, FormatOf(*flags.indices), DType::kU64,
                                                               std::nullopt, job.deadline));
  }
  FileSource source(*job.reader, mask.get(), *job.progress);
  client::Client client = MakeClient(global);
  uint64_t count = 0;
  const auto write = [&](client::Bytes values, client::Bytes indices) {
    count += values.size() / SizeOf(dtype);
    absl::Status status = values_writer->Write(values);
    if (status.ok() && indices_writer) status = indices_writer->Write(indices);
    return status;
  };
  PREFIXD_ASSIGN_OR_RETURN(const client::Timing timing, client.CompactChunks(spec, source, write, job.Call()));
  // Neither gets its name before both are complete.
  PREFIXD_RETURN_IF_ERROR(values_writer->Close());
  if (indices_writer) PREFIXD_RETURN_IF_ERROR(indices_writer->Close());
  PREFIXD_RETURN_IF_ERROR(values_writer->Commit());
  if (indices_writer) PREFIXD_RETURN_IF_ERROR(indices_writer->Commit());
  Json json;
  json["count"] = count;
  return Report(global, job, StrCat("compact: kept ", count, " of "), source.items_read(), timing, std::move(json));
}

absl::Status RunInfo(const GlobalFlags& global) {
  PREFIXD_ASSIGN_OR_RETURN(const client::ServerInfo info, GetInfo(global));
  return global.json ? PrintJson(ToJson(info)) : PrintText(Table(info));
}

absl::Status RunAlgorithms(const GlobalFlags& global) {
  PREFIXD_ASSIGN_OR_RETURN(const client::ServerInfo info, GetInfo(global));
  return global.json ? PrintJson(AlgorithmsToJson(info)) : PrintText(AlgorithmTable(info));
}

absl::Status RunHealth(const GlobalFlags& global) {
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const bool serving,
                           client.CheckHealth({.timeout = global.timeout.value_or(kStatusTimeout)}));
  const std::string status = serving ? "SERVING" : "NOT_SERVING";
  PREFIXD_RETURN_IF_ERROR(global.json ? PrintJson(Json{{"status", status}}) : PrintText(status + "\n"));
  return serving ? absl::OkStatus() : absl::FailedPreconditionError("the server takes no work at the moment");
}

}  // namespace prefixd::cli
