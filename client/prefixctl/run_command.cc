#include "client/prefixctl/run_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/option.h"
#include "client/prefixctl/report.h"
#include "kernels/types.h"

namespace prefixd::cli {
namespace {

constexpr size_t kMaxProgramBytes = size_t{1} << 20;
constexpr uint64_t kMaxShown = 8;  // Elements of an output.

struct RunFlags {
  std::string program;
  std::vector<std::string> inputs;
};

absl::StatusOr<std::string> ReadAll(const std::string& path, absl::Time deadline) {
  PREFIXD_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(path, deadline));
  std::string text(kMaxProgramBytes + 1, '\0');
  PREFIXD_ASSIGN_OR_RETURN(const size_t size, file->Read(reinterpret_cast<std::byte*>(text.data()), text.size()));
  if (size > kMaxProgramBytes) {
    return absl::InvalidArgumentError(
        StrCat(file->name(), " has more than ", kMaxProgramBytes, " bytes: a program has 64 KiB at most"));
  }
  text.resize(size);
  return text;
}

// Has the inputs of these names read those arrays: "x=arrays/...".
absl::Status NameArrays(const std::vector<std::string>& inputs, Json* program) {
  for (const std::string& input : inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos) {
      return UsageError(StrCat("--input: '", input, "' is no NAME=ARRAY"));
    }
    const std::string name = input.substr(0, equals);
    Json& list = (*program)["inputs"];
    if (list.is_null()) list = Json::array();
    if (!list.is_array()) return absl::InvalidArgumentError("\"inputs\" is no list");
    const auto found = std::find_if(list.begin(), list.end(), [&](const Json& one) {
      return one.is_object() && one.contains("name") && one["name"] == name;
    });
    Json array = {{"array", {{"name", input.substr(equals + 1)}}}};
    if (found != list.end()) {
      (*found)["values"] = std::move(array);
    } else {
      list.push_back({{"name", name}, {"values", std::move(array)}});
    }
  }
  return absl::OkStatus();
}

// "DTYPE_F32" -> kF32.
DType TypeOf(const Json& output) {
  const std::string name = output.value("dtype", "");
  DType dtype = DType::kU8;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto one = static_cast<DType>(i);
    std::string wire = StrCat("DTYPE_", Name(one));
    std::transform(wire.begin(), wire.end(), wire.begin(), [](unsigned char c) { return std::toupper(c); });
    if (wire == name) dtype = one;
  }
  return dtype;
}

uint64_t NumberOf(const Json& object, const char* key) {
  const Json value = object.value(key, Json("0"));
  return value.is_string() ? std::stoull(value.get<std::string>()) : value.get<uint64_t>();
}

// The first elements that came inline.
Json ElementsOf(const Json& output) {
  std::string bytes;
  absl::Base64Unescape(output["values"]["inline"].value("data", ""), &bytes);
  const DType dtype = TypeOf(output);
  Json elements = Json::array();
  const uint64_t count = std::min<uint64_t>(bytes.size() / SizeOf(dtype), kMaxShown);
  for (uint64_t i = 0; i < count; ++i) {
    Value value;
    std::memcpy(&value.bits, bytes.data() + i * SizeOf(dtype), SizeOf(dtype));
    elements.push_back(ToJson(dtype, value));
  }
  return elements;
}

// Where the output is, in one cell.
std::string PlaceOf(const Json& output) {
  const Json& values = output["values"];
  if (values.contains("new_array")) return values["new_array"].value("name", "");
  if (values.contains("array")) {
    return StrCat(values["array"].value("name", ""), " from ", NumberOf(values["array"], "first_item"), " on");
  }
  std::string text;
  for (const Json& element : ElementsOf(output)) {
    text += StrCat(text.empty() ? "" : " ", element.is_string() ? element.get<std::string>() : element.dump());
  }
  return NumberOf(output, "num_items") > kMaxShown ? text + " ..." : text;
}

std::string OperationOf(const Json& step) { return step.is_object() && !step.empty() ? step.begin().key() : ""; }

std::string Describe(const Json& program, const Json& response) {
  std::string text =
      absl::StrFormat("%-4s  %-14s  %14s  %12s  %9s\n", "step", "operation", "elements", "kernel", "GB/s");
  const Json steps = response.value("steps", Json::array());
  for (size_t i = 0; i < steps.size(); ++i) {
    const double ns = static_cast<double>(NumberOf(steps[i], "kernel_ns"));
    const double num_bytes = static_cast<double>(NumberOf(steps[i], "num_bytes"));
    text += absl::StrFormat("%4d  %-14s  %14d  %12s  %9s\n", i, OperationOf(program["steps"][i]),
                            NumberOf(steps[i], "num_items"), absl::FormatDuration(absl::Nanoseconds(ns)),
                            ns > 0 ? NumberText(num_bytes / ns) : "");
  }
  text += absl::StrFormat("\n%-16s  %-4s  %14s  %s\n", "output", "type", "elements", "where, or what");
  for (const Json& output : response.value("outputs", Json::array())) {
    text += absl::StrFormat("%-16s  %-4s  %14d  %s\n", output.value("name", ""), std::string(Name(TypeOf(output))),
                            NumberOf(output, "num_items"), PlaceOf(output));
  }
  const Json timing = response.value("timing", Json::object());
  text += absl::StrFormat("\n%s on %s, kernels %s, at most %.1f MiB of its memory\n",
                          absl::FormatDuration(absl::Nanoseconds(NumberOf(timing, "server_total_ns"))),
                          timing.value("device", ""),
                          absl::FormatDuration(absl::Nanoseconds(NumberOf(timing, "kernel_ns"))),
                          static_cast<double>(NumberOf(response, "peak_bytes")) / (1 << 20));
  return text;
}

absl::Status Run(const RunFlags& flags, const GlobalFlags& global) {
  const absl::Time deadline = absl::Now() + global.TimeLimit();
  PREFIXD_ASSIGN_OR_RETURN(const std::string text, ReadAll(flags.program, deadline));
  Json program = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!program.is_object()) {
    return absl::InvalidArgumentError(StrCat(flags.program, " is no JSON object: docs/guide.md has a program"));
  }
  PREFIXD_RETURN_IF_ERROR(NameArrays(flags.inputs, &program));
  PREFIXD_ASSIGN_OR_RETURN(const std::string answer,
                           MakeClient(global).RunProgram(program.dump(), {.timeout = global.TimeLimit()}));
  const Json response = Json::parse(answer, nullptr, false);
  return global.json ? PrintJson(response) : PrintText(Describe(program, response));
}

}  // namespace

void AddRunCommand(CLI::App& app, Commands* commands) {
  CLI::App* const command = app.add_subcommand("run", "Run a program: several operations in one call");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("PROGRAM", flags->program, "File with the program as JSON, or - for standard input")
      ->required()
      ->check(kNotEmpty);
  command->add_option("--input", flags->inputs, "Array that the program's input of that name reads; repeatable")
      ->type_name("NAME=ARRAY");
  command->footer("The program is a prefixd.v1.RunRequest: proto/prefixd/v1/programs.proto has an example.\n");
  commands->push_back({command, [flags](const GlobalFlags& global) { return Run(*flags, global); }});
}

}  // namespace prefixd::cli
