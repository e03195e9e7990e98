#include "client/prefixctl/reduce_command.h"

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/file_source.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/option.h"

namespace prefixd::cli {
namespace {

struct ReduceFlags {
  ArrayFlags array;
  OperatorFlags combine;
};

absl::Status RunReduce(const GlobalFlags& global, const ReduceFlags& flags) {
  // The one value is printed when the progress has ended.
  PREFIXD_ASSIGN_OR_RETURN(const Job job, StartJob(global, flags.array, ResultTo::kFile));
  ReduceSpec spec = {.dtype = job.reader->dtype(),
                     .out_dtype = flags.combine.out_dtype,
                     .op = flags.combine.op,
                     .algorithm = flags.array.algorithm,
                     .num_items = job.reader->num_items()};
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, OutputType(flags.combine, spec.dtype));
  PREFIXD_ASSIGN_OR_RETURN(spec.init, ParseInit(flags.combine.init, out_dtype));
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

}  // namespace

void AddReduceCommand(CLI::App& app, Commands* commands) {
  CLI::App* reduce = app.add_subcommand("reduce", "One value of all elements");
  const auto flags = std::make_shared<ReduceFlags>();
  AddOperator(reduce, &flags->combine);
  AddArrayFlags(reduce, &flags->array);
  commands->push_back({reduce, [flags](const GlobalFlags& global) { return RunReduce(global, *flags); }});
}

}  // namespace prefixd::cli
