#include "client/prefixctl/resident_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "base/status.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/option.h"
#include "client/prefixctl/progress.h"
#include "client/prefixctl/report.h"
#include "client/prefixctl/transfer.h"

namespace prefixd::cli {
namespace {

constexpr absl::Duration kShortTimeout = absl::Seconds(5);

struct CreateFlags {
  DType dtype = DType::kF32;
  std::string shape;
  std::string fill = "zero";
  client::Lifetime lifetime;
};

struct NameFlags {
  std::vector<std::string> names;
};

// The flags of write and read.
struct MoveFlags {
  std::string name;
  std::string file = "-";
  std::optional<Format> format;  // Absent: by suffix.
  uint64_t first_item = 0;
  std::optional<uint64_t> num_items;  // To the end if absent.
};

// The clock of one command.
struct Clock {
  absl::Time start = absl::Now();
  absl::Time deadline;

  explicit Clock(const GlobalFlags& global) : deadline(start + global.TimeLimit()) {}
  client::CallOptions Call() const { return {.timeout = deadline - absl::Now()}; }
};

absl::Status RunCreate(const GlobalFlags& global, const CreateFlags& flags) {
  const absl::StatusOr<std::vector<uint64_t>> shape = ParseShape(flags.shape);
  if (!shape.ok()) return UsageError(StrCat("--shape: ", std::string(shape.status().message())));
  const absl::StatusOr<std::optional<client::FillSpec>> fill = ParseFill(flags.dtype, flags.fill);
  if (!fill.ok()) return UsageError(StrCat("--fill: ", std::string(fill.status().message())));
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(client::Array array,
                           client.CreateArray({.dtype = flags.dtype, .shape = *shape, .lifetime = flags.lifetime},
                                              *fill, {.timeout = global.TimeLimit()}));
  const client::ArrayInfo info = array.info();
  absl::Status status = global.json ? PrintJson(ToJson(info)) : PrintText(info.name + "\n");
  if (status.ok()) array.Release();  // Whom nobody has told the name can't use the array: it goes.
  return status;
}

absl::Status RunList(const GlobalFlags& global) {
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const std::vector<client::ArrayInfo> arrays,
                           client.ListArrays({.timeout = global.TimeLimit()}));
  if (!global.json) return PrintText(ArrayTable(arrays, absl::Now()));
  Json json;
  json["arrays"] = Json::array();
  for (const client::ArrayInfo& info : arrays) json["arrays"].push_back(ToJson(info));
  return PrintJson(json);
}

absl::Status RunStat(const GlobalFlags& global, const std::string& name) {
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const client::Array array, client.BorrowArray(name, {.timeout = global.TimeLimit()}));
  return global.json ? PrintJson(ToJson(array.info())) : PrintText(Table(array.info(), absl::Now()));
}

// Deletes what it can, and tells of the first that it could not.
absl::Status RunDelete(const GlobalFlags& global, const NameFlags& flags) {
  const Clock clock(global);
  client::Client client = MakeClient(global);
  absl::Status error;
  uint64_t num_deleted = 0;
  for (const std::string& name : flags.names) {
    const absl::Status status = client.DeleteArray(name, clock.Call());
    if (status.ok()) ++num_deleted;
    if (error.ok()) error = status;
  }
  if (global.json) PREFIXD_RETURN_IF_ERROR(PrintJson(Json{{"deleted", num_deleted}}));
  return error;
}

// The last line of a transfer.
absl::Status ReportMove(const GlobalFlags& global, std::string_view command, const MoveFlags& flags, DType dtype,
                        uint64_t num_items, const Clock& clock) {
  const absl::Duration wall = absl::Now() - clock.start;
  if (!global.json) {
    std::cerr << "prefixctl: array " << command << ": " << SummaryLine(num_items, dtype, client::Timing(), wall)
              << '\n';
    return absl::OkStatus();
  }
  Json json;
  json["name"] = flags.name;
  json["first_item"] = flags.first_item;
  json["count"] = num_items;
  json["wall_ns"] = absl::ToInt64Nanoseconds(wall);
  return PrintJson(json);
}

// Where the file's length is known, what does not fit is found before anything is written.
absl::Status CheckFits(const client::Array& array, const MoveFlags& flags, std::optional<uint64_t> num_items) {
  const uint64_t rest = array.num_items() - std::min(array.num_items(), flags.first_item);
  if (flags.first_item <= array.num_items() && num_items.value_or(0) <= rest) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("the array has ", array.num_items(),
                                           " elements: ", num_items ? StrCat(*num_items, " from ") : "those from ",
                                           flags.first_item, " on would go past its end"));
}

absl::Status RunWrite(const GlobalFlags& global, const MoveFlags& flags) {
  const Clock clock(global);
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const client::Array array, client.BorrowArray(flags.name, clock.Call()));
  PREFIXD_ASSIGN_OR_RETURN(auto file, InputFile::Open(flags.file, clock.deadline));
  const Format format = flags.format.value_or(FormatOf(flags.file));
  PREFIXD_ASSIGN_OR_RETURN(const auto reader, OpenArray(std::move(file), format, array.dtype()));
  PREFIXD_RETURN_IF_ERROR(CheckFits(array, flags, reader->num_items()));
  Progress progress(ResultTo::kFile);
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t num_items,
                           Upload(*reader, array, flags.first_item, progress, clock.deadline));
  progress.Wipe();
  return ReportMove(global, "write", flags, array.dtype(), num_items, clock);
}

absl::Status RunRead(const GlobalFlags& global, const MoveFlags& flags) {
  PREFIXD_RETURN_IF_ERROR(CheckJsonOutput(global, flags.file));
  const Clock clock(global);
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const client::Array array, client.BorrowArray(flags.name, clock.Call()));
  PREFIXD_RETURN_IF_ERROR(CheckFits(array, flags, flags.num_items));
  const uint64_t num_items = flags.num_items.value_or(array.num_items() - flags.first_item);
  const Format format = FormatOfSuffix(flags.file).value_or(flags.format.value_or(FormatOf(flags.file)));
  PREFIXD_ASSIGN_OR_RETURN(const auto writer,
                           ArrayWriter::Open(flags.file, format, array.dtype(), num_items, clock.deadline));
  Progress progress(ResultToOf({flags.file}));
  PREFIXD_RETURN_IF_ERROR(Download(array, flags.first_item, num_items, *writer, progress, clock.deadline));
  PREFIXD_RETURN_IF_ERROR(writer->Close());
  PREFIXD_RETURN_IF_ERROR(writer->Commit());
  progress.Wipe();
  return ReportMove(global, "read", flags, array.dtype(), num_items, clock);
}

absl::StatusOr<absl::Duration> ParseTtl(const std::string& text) {
  absl::Duration ttl;
  if (absl::ParseDuration(text, &ttl) && ttl > absl::ZeroDuration()) return ttl;
  return absl::InvalidArgumentError(StrCat("'", Shown(text), "' is no duration such as 90s, 10m or 24h"));
}

// name: a string, or several.
template <class Name>
void AddName(CLI::App* app, Name* name, const std::string& what) {
  app->add_option("NAME", *name, what)->required()->check(kNotEmpty);
}

void AddMove(CLI::App* app, MoveFlags* flags, const std::string& format_of) {
  AddNumber<uint64_t>(app, "--first", 0, std::numeric_limits<uint64_t>::max(), "Index of the first element (default 0)",
                      &flags->first_item)
      ->type_name("N");
  AddFormat(app, format_of, &flags->format);
  AddName(app, &flags->name, "The array's name");
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseShape(std::string_view text) {
  std::vector<uint64_t> shape;
  for (std::string_view rest = text;;) {
    const size_t end = std::min(rest.find('x'), rest.size());
    const std::optional<uint64_t> along = ParseCount(rest.substr(0, end));
    if (!along) {
      return absl::InvalidArgumentError(
          StrCat("'", Shown(text), "' is no shape such as 1000, or 30x20 for two dimensions"));
    }
    shape.push_back(*along);
    if (end == rest.size()) return shape;
    rest.remove_prefix(end + 1);
  }
}

absl::StatusOr<std::optional<client::FillSpec>> ParseFill(DType dtype, std::string_view text) {
  constexpr std::string_view kRandom = "random:";
  client::FillSpec fill;
  fill.dtype = dtype;
  if (text == "zero") return std::nullopt;
  if (text == "iota") {
    fill.kind = FillKind::kIota;
    PREFIXD_ASSIGN_OR_RETURN(fill.value, ParseNumber(dtype, "0"));
    PREFIXD_ASSIGN_OR_RETURN(fill.step, ParseNumber(dtype, "1"));
    return fill;
  }
  if (text.starts_with(kRandom)) {
    const std::optional<uint64_t> seed = ParseCount(text.substr(kRandom.size()));
    if (!seed) {
      return absl::InvalidArgumentError(StrCat("'", Shown(text), "' has no seed: expected random: and a number"));
    }
    fill.kind = FillKind::kRandom;
    fill.seed = *seed;
    return fill;
  }
  const absl::StatusOr<Value> value = ParseNumber(dtype, text);
  if (!value.ok()) {
    return absl::InvalidArgumentError(StrCat(std::string(value.status().message()), ", nor zero, iota or random:SEED"));
  }
  fill.value = *value;
  return fill;
}

void AddArrayCommands(CLI::App& app, Commands* commands) {
  CLI::App* array = app.add_subcommand("array", "Arrays that stay on the server's device, used by name");
  array->require_subcommand(1);
  array->footer(
      "An array belongs to the caller who made it, and expires after its --ttl. Keep the name of one as a secret "
      "where\n"
      "the server does not know you by name. Large arrays take several connections.\n");

  CLI::App* create = array->add_subcommand("create", "Make an array, and print its name");
  const auto create_flags = std::make_shared<CreateFlags>();
  AddNamed<DType>(create, "--type,--dtype", DTypeNames(), "Element type", &create_flags->dtype)->required();
  create->add_option("--shape", create_flags->shape, "Number of elements; such as 30x20 for two dimensions")
      ->required()
      ->type_name("N[xM]");
  create->add_option("--fill", create_flags->fill,
                     "zero (default), iota for 0 1 2..., random:SEED, or a value for all elements");
  AddParsed(create, "--ttl", ParseTtl, "How long it lives, such as 10m (default: the server's)",
            &create_flags->lifetime.ttl)
      ->type_name("DURATION");
  create->add_flag("--renew-on-use", create_flags->lifetime.renew_on_use, "Each use begins the time anew");
  commands->push_back({create, [create_flags](const GlobalFlags& global) { return RunCreate(global, *create_flags); }});

  CLI::App* list = array->add_subcommand("list", "Your arrays; only for callers whom the server knows by name");
  commands->push_back({list, RunList, kShortTimeout});

  CLI::App* stat = array->add_subcommand("stat", "What an array is, and when it expires");
  const auto stat_name = std::make_shared<std::string>();
  AddName(stat, stat_name.get(), "The array's name");
  commands->push_back(
      {stat, [stat_name](const GlobalFlags& global) { return RunStat(global, *stat_name); }, kShortTimeout});

  CLI::App* write = array->add_subcommand("write", "Write a file's elements into an array");
  const auto write_flags = std::make_shared<MoveFlags>();
  AddMove(write, write_flags.get(), "Format of INPUT");
  write->add_option("INPUT", write_flags->file, "File, or - for standard input; its type is the array's")
      ->required()
      ->check(kNotEmpty);
  commands->push_back({write, [write_flags](const GlobalFlags& global) { return RunWrite(global, *write_flags); }});

  CLI::App* read = array->add_subcommand("read", "Write an array's elements into a file");
  const auto read_flags = std::make_shared<MoveFlags>();
  AddMove(read, read_flags.get(), "Format of OUTPUT unless its name says it");
  AddNumber<uint64_t>(read, "--count", 0, std::numeric_limits<uint64_t>::max(),
                      "Number of elements (default: to the end)", &read_flags->num_items)
      ->type_name("N");
  read->add_option("OUTPUT", read_flags->file, "File, or - for standard output (default)")->check(kNotEmpty);
  commands->push_back({read, [read_flags](const GlobalFlags& global) { return RunRead(global, *read_flags); }});

  CLI::App* remove = array->add_subcommand("delete", "Delete arrays");
  const auto remove_flags = std::make_shared<NameFlags>();
  AddName(remove, &remove_flags->names, "The arrays' names");
  commands->push_back(
      {remove, [remove_flags](const GlobalFlags& global) { return RunDelete(global, *remove_flags); }, kShortTimeout});
}

}  // namespace prefixd::cli
