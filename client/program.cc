#include "client/program.h"

#include <atomic>
#include <utility>
#include <variant>

#include "base/status.h"
#include "client/attempts.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/polling_call.h"
#include "client/program_rep.h"
#include "client/resident_call.h"
#include "client/rpc.h"
#include "prefixd/v1/programs.pb.h"
#include "proto/program_limits.h"
#include "proto/wire_array.h"
#include "proto/wire_values.h"

namespace prefixd::client {
namespace internal {
namespace {

uint64_t NextProgram() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

ProgramRep::ProgramRep() : number(NextProgram()) {}

TermId ProgramRep::Define(std::string name, DType dtype, std::string* field) {
  terms.push_back({std::move(name), dtype, field});
  return {number, terms.size() - 1};
}

std::string ProgramRep::Use(TermId term, std::string_view field) {
  if (term.program != number || term.number >= terms.size()) {
    Fail(InvalidField("FIELD_CONFLICT", field,
                      StrCat(field, term.program == 0 ? " is a term of no program" : " is a term of another program",
                             ": expected one that this program returned")));
    return {};
  }
  const Definition& definition = terms[term.number];
  if (definition.field != nullptr) *definition.field = definition.name;
  return definition.name;
}

v1::ProgramInput* ProgramRep::AddInput(DType dtype, TermId* term) {
  if (!status.ok()) return nullptr;
  const int inputs = request.inputs_size();
  if (inputs == kMaxProgramInputs) {
    Fail(TooMany("inputs", kMaxProgramInputs));
    return nullptr;
  }
  v1::ProgramInput* const input = request.add_inputs();
  input->set_name(StrCat("input_", inputs));
  input->set_dtype(EncodeEnum<v1::DType>(dtype));
  *term = Define(input->name(), dtype);
  return input;
}

void ProgramRep::UseArray(const ArrayPart& part, std::string_view field) {
  if (part.connection() == nullptr) {
    Fail(absl::FailedPreconditionError(
        StrCat(field, " is of a handle that has no array: expected one that was not moved, released or deleted")));
    return;
  }
  if (connection == nullptr) connection = part.connection();
  if (connection == part.connection()) return;
  Fail(InvalidField("FIELD_CONFLICT", field,
                    StrCat(field,
                           " is of another server, or of another client, than the program's first array: "
                           "expected arrays of one server that one client has made or borrowed")));
}

absl::Status TooMany(std::string_view what, size_t max_count) {
  return InvalidField(
      "PROGRAM_SIZE", what,
      StrCat("the program has more than ", max_count, " ", what, ": expected at most that, make two programs of it"));
}

}  // namespace internal

Program::Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

internal::ProgramRep& Program::rep() {
  if (rep_ == nullptr) rep_ = std::make_unique<internal::ProgramRep>();
  return *rep_;
}

internal::TermId Program::AddInput(DType dtype, const ArrayPart& array) {
  Id term;
  v1::ProgramInput* const input = rep().AddInput(dtype, &term);
  if (input == nullptr) return {};
  rep().UseArray(array, StrCat("inputs[", rep().request.inputs_size() - 1, "].values.array"));
  *input->mutable_values()->mutable_array() = prefixd::ToWire(array.slice());
  return term;
}

internal::TermId Program::AddInput(DType dtype, Bytes elements) {
  Id term;
  v1::ProgramInput* const input = rep().AddInput(dtype, &term);
  if (input == nullptr) return {};
  input->mutable_values()->mutable_inline_()->set_data(elements.data(), elements.size());
  return term;
}

void Program::AddOutput(Id term, const std::optional<Target>& to) {
  internal::ProgramRep& program = rep();
  if (!program.status.ok()) return;
  const int number = program.request.outputs_size();
  if (number == kMaxProgramOutputs) {
    program.Fail(internal::TooMany("outputs", kMaxProgramOutputs));
    return;
  }
  v1::ProgramOutput* const output = program.request.add_outputs();
  output->set_name(program.Use(term, StrCat("outputs[", number, "].name")));
  if (!program.status.ok()) return;
  if (to) {
    const auto* const part = std::get_if<ArrayPart>(&*to);
    if (part != nullptr) program.UseArray(*part, StrCat("outputs[", number, "].sink.array"));
    *output->mutable_sink() = ToWire(*to);
  }
  program.outputs.push_back({term, program.terms[term.number].dtype, to});
}

absl::StatusOr<ProgramResult> Program::Run(const Connection& connection, const CallOptions& call) const {
  if (rep_ != nullptr) PREFIXD_RETURN_IF_ERROR(rep_->status);
  if (rep_ == nullptr || rep_->request.steps_size() == 0) {
    return InvalidField("PROGRAM_SIZE", "steps", "the program has no steps: expected 1 to 64");
  }
  const Connection& to = rep_->connection != nullptr ? *rep_->connection : connection;
  PREFIXD_RETURN_IF_ERROR(to.status());
  const absl::Time deadline = Deadline(call);
  v1::RunRequest request = rep_->request;
  request.set_request_id(call.request_id);
  if (request.ByteSizeLong() > kMaxProgramBytes) {
    return InvalidField(
        "PROGRAM_SIZE", "inputs",
        StrCat("the program has ", request.ByteSizeLong(), " bytes with its inline inputs: expected at most ",
               kMaxProgramBytes, ", let inputs be arrays"));
  }
  const grpc::ByteBuffer bytes = SerializeArrayMessage(request, {});
  grpc::ByteBuffer answer;
  // Never tried again where it has begun: it may have written into arrays.
  std::shared_ptr<const Connection> home = rep_->connection;
  PREFIXD_RETURN_IF_ERROR(RunOnce(to, call, deadline, [&](const Server& server) {
    if (rep_->connection == nullptr) home = to.To(server);
    AttemptContext context(server, call, deadline);
    return UnaryStatus(
        FromGrpc(CallPolling(server.channel(), "/prefixd.v1.ProgramService/Run", context.get(), bytes, &answer)));
  }));
  v1::RunResponse response;
  if (const absl::Status status = ParseMessage(answer, answer.Length(), &response); !status.ok()) {
    return absl::InternalError(StrCat("the server's reply: ", status.message()));
  }
  return ResultOf(*rep_, std::move(response), home);
}

}  // namespace prefixd::client
