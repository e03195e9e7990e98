#include "client/program_result.h"

#include <algorithm>

#include "client/program_rep.h"
#include "client/resident_call.h"
#include "proto/wire_timing.h"
#include "proto/wire_values.h"

namespace prefixd::client {
namespace {

using internal::ProgramOutput;

StepTiming StepTimingOf(const v1::StepTiming& wire) {
  StepTiming step;
  if (wire.has_kernel_ns()) step.kernel_ns = wire.kernel_ns();
  step.launches = wire.launches();
  step.num_bytes = wire.num_bytes();
  step.num_items = wire.num_items();
  step.algorithm = DecodeAlgorithm(wire.algorithm(), "algorithm").value_or(Algorithm{});
  step.num_bad_indices = wire.num_bad_indices();
  return step;
}

// Errors: any code, for the message of an INTERNAL.
absl::StatusOr<ProgramOutput> DecodeOutput(const std::string& name, const internal::DueOutput& due,
                                           v1::ProgramResult wire,
                                           const std::shared_ptr<const Connection>& connection) {
  Placed placed;
  if (due.to) {  // First: what was made has an owner then, whatever else the output is.
    PREFIXD_ASSIGN_OR_RETURN(placed, PlacedOf(connection, due.to, wire.values()));
  }
  if (wire.name() != name) return absl::InternalError("it has another name");
  if (wire.dtype() != EncodeEnum<v1::DType>(due.dtype)) {
    return absl::InternalError(StrCat("it is not of type ", Name(due.dtype)));
  }
  ProgramOutput output = {.term = due.term, .name = name, .num_items = wire.num_items()};
  if (!due.to) {
    if (!wire.values().has_inline_()) return absl::InternalError("it has no elements");
    output.elements = std::move(*wire.mutable_values()->mutable_inline_()->mutable_data());
    const size_t item_bytes = SizeOf(due.dtype);
    if (output.elements.size() % item_bytes == 0 && output.elements.size() / item_bytes == output.num_items) {
      return output;
    }
    return absl::InternalError(StrCat("it has ", output.elements.size(), " bytes for ", output.num_items,
                                      " elements of ", item_bytes, " bytes"));
  }
  output.place = placed.made.exists() ? ProgramOutput::Place::kNewArray : ProgramOutput::Place::kPart;
  output.made = std::move(placed.made);
  if (placed.num_items != output.num_items) {
    return absl::InternalError(StrCat("it has ", output.num_items, " elements, and its array another number of them"));
  }
  if (output.made.exists() && output.made.dtype() != due.dtype) {
    return absl::InternalError(
        StrCat("it is in an array of ", Name(output.made.dtype()), ", not of ", Name(due.dtype)));
  }
  return output;
}

}  // namespace

absl::StatusOr<ProgramResult> ResultOf(const internal::ProgramRep& program, v1::RunResponse response,
                                       const std::shared_ptr<const Connection>& connection) {
  const v1::RunRequest& request = program.request;
  if (response.outputs_size() != request.outputs_size() || response.steps_size() != request.steps_size()) {
    return absl::InternalError(StrCat("the server's reply has ", response.outputs_size(), " outputs and ",
                                      response.steps_size(), " steps, the program ", request.outputs_size(), " and ",
                                      request.steps_size()));
  }
  std::vector<StepTiming> steps;
  for (const v1::StepTiming& step : response.steps()) steps.push_back(StepTimingOf(step));
  std::vector<ProgramOutput> outputs;
  absl::Status status;  // The first error. The outputs behind it are looked at too: arrays that were made have to go.
  for (int i = 0; i < request.outputs_size(); ++i) {
    const std::string& name = request.outputs(i).name();
    absl::StatusOr<ProgramOutput> output =
        DecodeOutput(name, program.outputs[i], std::move(*response.mutable_outputs(i)), connection);
    if (output.ok()) {
      outputs.push_back(*std::move(output));
    } else {
      status.Update(absl::InternalError(
          StrCat("outputs[", i, "] of the server's reply, ", name, ": ", std::string(output.status().message()))));
    }
  }
  PREFIXD_RETURN_IF_ERROR(status);
  return ProgramResult(prefixd::FromWire(response.timing()), std::move(steps), response.peak_bytes(),
                       std::move(outputs));
}

absl::StatusOr<const ProgramOutput*> ProgramResult::Find(internal::TermId term) const {
  const auto is_of_term = [&](const ProgramOutput& output) { return output.term == term; };
  const auto found = std::find_if(outputs_.begin(), outputs_.end(), is_of_term);
  if (found != outputs_.end()) return &*found;
  return InvalidField(
      "FIELD_CONFLICT", "",
      "the term is no output of the program that ran: expected one that went to Program::Output before");
}

absl::StatusOr<const std::string*> ProgramResult::Inline(internal::TermId term,
                                                         std::optional<uint64_t> num_items) const {
  PREFIXD_ASSIGN_OR_RETURN(const ProgramOutput* const output, Find(term));
  if (output->place != ProgramOutput::Place::kInline) {
    return absl::FailedPreconditionError(
        StrCat(output->name, " went into an array, so its elements are not here: read that"));
  }
  if (output->num_items != num_items.value_or(output->num_items)) {
    return absl::FailedPreconditionError(
        StrCat(output->name, " has ", output->num_items, " elements, expected ", *num_items, ": ask for its Values"));
  }
  return &output->elements;
}

absl::StatusOr<Array> ProgramResult::Take(internal::TermId term) {
  PREFIXD_ASSIGN_OR_RETURN(const ProgramOutput* const found, Find(term));
  ProgramOutput& output = outputs_[found - outputs_.data()];
  if (output.place != ProgramOutput::Place::kNewArray) {
    return absl::FailedPreconditionError(
        StrCat("no array was made for ", output.name, ": give Program::Output a NewArray for it"));
  }
  if (!output.made.exists()) {
    return absl::FailedPreconditionError(StrCat("the array of ", output.name, " was taken before"));
  }
  return std::move(output.made);
}

}  // namespace prefixd::client
