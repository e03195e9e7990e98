// What the commands on arrays share: their flags, the file that they read, the file that they write, and what they say
// at the end.
#ifndef PREFIXD_CLIENT_PREFIXCTL_ARRAY_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_ARRAY_COMMAND_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/command.h"
#include "client/prefixctl/progress.h"
#include "client/prefixctl/report.h"
#include "kernels/spec.h"
#include "kernels/types.h"

namespace prefixd::cli {

// ---- Flags ---------------------------------------------------------------------------------------------------------
// Each Add... adds options to a subcommand; parsing fills *flags, which has to live until then.

struct ArrayFlags {
  std::string input;
  std::string output = "-";      // Where the command has one.
  std::optional<Format> format;  // The input's, and the output's where its name says nothing. Absent: by suffix.
  std::optional<DType> dtype;
  Algorithm algorithm;
};
// INPUT and how it is read and computed on.
void AddArrayFlags(CLI::App* app, ArrayFlags* flags);
// --format alone. what: of which file.
void AddFormat(CLI::App* app, const std::string& what, std::optional<Format>* format);
// OUTPUT, behind INPUT.
void AddOutput(CLI::App* app, ArrayFlags* flags);

// How elements are combined.
struct OperatorFlags {
  Op op = Op::kSum;
  std::optional<std::string> init;
  std::optional<DType> out_dtype;  // Absent: the array's type.
  Precision precision = Precision::kNative;
};
void AddOperator(CLI::App* app, Primitive primitive, OperatorFlags* flags);
// --init alone.
void AddInit(CLI::App* app, std::optional<std::string>* init);

// --axis and --row-items, which a .npy file of two dimensions says itself.
struct AxisFlags {
  std::optional<uint32_t> axis;
  std::optional<uint64_t> row_items;
};
void AddAxis(CLI::App* app, AxisFlags* flags);
// Nothing where the flags are absent. A usage error where nothing says how many elements a row has, or where flag and
// file differ.
absl::StatusOr<std::optional<Axis>> AxisOf(const AxisFlags& flags, const ArrayReader& reader);

// The type of what elements of `dtype` combine to. A usage error if they have no such results.
absl::StatusOr<DType> OutputType(const OperatorFlags& flags, DType dtype);

// The value of --init as one of `dtype`; nullopt where the flag is absent. A usage error if it is none.
absl::StatusOr<std::optional<Value>> ParseInit(const std::optional<std::string>& init, DType dtype);

// --segments, --keys and --key-type.
struct SegmentFlags {
  std::optional<std::string> segments;
  std::optional<std::string> keys;
  std::optional<DType> key_dtype;

  bool AreGiven() const { return segments || keys; }
};
void AddSegments(CLI::App* app, SegmentFlags* flags);

// A usage error where a file's bytes and the JSON object would both go to standard output.
absl::Status CheckJsonOutput(const GlobalFlags& global, const std::string& output);

// An output's format. --format is about the input first: `--format text data.log sums.npy` still makes a .npy file.
Format OutputFormat(const std::string& output, std::optional<Format> format);

// outputs: the names of files, where there are such.
ResultTo ResultToOf(std::initializer_list<std::optional<std::string>> outputs);
// A usage error where more than one of the files that are read is standard input.
absl::Status CheckInputs(std::initializer_list<std::optional<std::string>> inputs);

// ---- Runs ----------------------------------------------------------------------------------------------------------
// One run of a command: its clock, its input.
struct Job {
  absl::Time start;
  absl::Time deadline;
  std::unique_ptr<ArrayReader> reader;
  std::unique_ptr<Progress> progress;

  // The time that is left.
  client::CallOptions Call() const { return {.timeout = deadline - absl::Now()}; }
};

// Starts the clock and opens the input. axis: of a command that takes a matrix; a file of two dimensions needs one.
absl::StatusOr<Job> StartJob(const GlobalFlags& global, const ArrayFlags& flags, ResultTo result_to,
                             const AxisFlags* axis = nullptr);

// What a run reads beside its input.
struct BesideFiles {
  std::unique_ptr<ArrayReader> mask = nullptr;
  std::unique_ptr<ArrayReader> coefficients = nullptr;  // A linear recurrence's.
  std::unique_ptr<ArrayReader> segments = nullptr;      // Offsets; or
  std::unique_ptr<ArrayReader> keys = nullptr;          // keys.
};
// The file, which is of `dtype` if that is given. format: where its name says nothing.
absl::StatusOr<std::unique_ptr<ArrayReader>> OpenBeside(const std::string& path, std::optional<Format> format,
                                                        std::optional<DType> dtype, const Job& job,
                                                        Shapes shapes = Shapes::kLine);
// Opens what the flags name, and completes the spec.
absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, ScanSpec* spec,
                          BesideFiles* files);
absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, ReduceSpec* spec,
                          BesideFiles* files);
absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, CompactSpec* spec,
                          BesideFiles* files);
absl::Status OpenSegments(const SegmentFlags& flags, const ArrayFlags& array, const Job& job, DifferenceSpec* spec,
                          BesideFiles* files);

// Sends the input, writes the results to OUTPUT and reports: all that is left of a command whose result is one array.
// The file gets its name only once it is complete. Segments, and what needs its whole array and has more of it than a
// message takes, go through arrays of the server. num_results: elements of the result, where that is known, as it is
// where the input's length is, but of keys. beside_output: the file for what comes beside the results, if there is one:
// the keys of runs, or a scan's indices.
// Needs: a primitive whose results are the first array that its replies bring.
absl::Status RunToOutput(const GlobalFlags& global, const ArrayFlags& flags, const Job& job, const Spec& spec,
                         std::optional<uint64_t> num_results, const BesideFiles& files = {},
                         const std::optional<std::string>& beside_output = {});

// Ends a run: prints the JSON object with its timing, or the summary behind `lead`.
absl::Status Report(const GlobalFlags& global, const Job& job, std::string_view lead, uint64_t num_items,
                    const client::Timing& timing, Json json);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_ARRAY_COMMAND_H_
