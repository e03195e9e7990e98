// What a Program (program.h) is made of. Private to the library.
#ifndef PREFIXD_CLIENT_PROGRAM_REP_H_
#define PREFIXD_CLIENT_PROGRAM_REP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/array.h"
#include "client/program_result.h"
#include "kernels/types.h"
#include "prefixd/v1/programs.pb.h"

namespace prefixd::client {
namespace internal {

// An output, as the program asks for it.
struct DueOutput {
  TermId term;
  DType dtype = DType::kI32;
  std::optional<Target> to;  // Absent: inline.
};

struct ProgramRep {
  ProgramRep();

  // A new term. Where a step can do without what it stands for, `field` of the step's message gets the name when
  // something uses the term: a name that nothing reads is an error in the contract.
  // Needs: field to live as long as the message, or to be null.
  TermId Define(std::string name, DType dtype, std::string* field = nullptr);

  // The name of a term that something reads. field: where the name goes, for the error where the term is none of this
  // program's; the name is empty then.
  std::string Use(TermId term, std::string_view field);

  // A new input without its values; null where there are too many, which is kept as the error.
  v1::ProgramInput* AddInput(DType dtype, TermId* term);

  // Notes whose arrays the program uses.
  void UseArray(const ArrayPart& part, std::string_view field);

  // Keeps the first error: what comes later may follow from it.
  void Fail(absl::Status error) { status.Update(std::move(error)); }

  struct Definition {
    std::string name;
    DType dtype = DType::kI32;
    std::string* field = nullptr;
  };

  const uint64_t number;  // TermId::program
  absl::Status status;
  v1::RunRequest request;                        // Without its id.
  std::vector<Definition> terms;                 // By TermId::number.
  std::vector<DueOutput> outputs;                // As in the request.
  std::shared_ptr<const Connection> connection;  // To the server of its arrays. Null: it uses none.
};

// PROGRAM_SIZE. what: of the request's lists.
absl::Status TooMany(std::string_view what, size_t max_count);

}  // namespace internal

// What the server's answer says, once it has been checked against what was asked for.
// connection: to the server that answered.
// Errors: INTERNAL.
absl::StatusOr<ProgramResult> ResultOf(const internal::ProgramRep& program, v1::RunResponse response,
                                       const std::shared_ptr<const Connection>& connection);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_PROGRAM_REP_H_
