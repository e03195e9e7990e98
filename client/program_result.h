// What a program gives back, and the terms that ask for it. Client::Run (client.h) makes a ProgramResult.
#ifndef PREFIXD_CLIENT_PROGRAM_RESULT_H_
#define PREFIXD_CLIENT_PROGRAM_RESULT_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "client/array.h"
#include "client/chunk.h"
#include "kernels/algorithm.h"
#include "kernels/types.h"
#include "proto/timing.h"

namespace prefixd::client {

class Cut;
class Program;
class ProgramResult;

namespace internal {

// An array of a program, whatever its type.
struct TermId {
  uint64_t program = 0;  // Each program of the process has a number, from 1 on.
  uint64_t number = 0;   // Among the program's arrays.

  friend bool operator==(const TermId&, const TermId&) = default;
};

// An output, as it came.
struct ProgramOutput {
  enum class Place : uint8_t { kInline, kNewArray, kPart };

  TermId term;
  std::string name;  // In the message.
  Place place = Place::kInline;
  uint64_t num_items = 0;
  std::string elements;  // kInline: packed, whole ones.
  Array made;            // kNewArray, until it is taken.
};

}  // namespace internal

// An array of a program: an input, or what a step makes. A value, of that program alone, in which it stands for
// elements of type T that are not there yet. One that was made by default stands for nothing.
template <class T>
class Term {
 public:
  Term() = default;

 private:
  friend Cut;
  friend Program;
  friend ProgramResult;
  explicit Term(internal::TermId id) : id_(id) {}

  internal::TermId id_;
};

// What one step took.
struct StepTiming {
  std::optional<int64_t> kernel_ns;  // Nanoseconds. Absent where it was not measured.
  uint64_t launches = 0;             // As in Timing.
  uint64_t num_bytes = 0;            // That the kernels had to move: read plus written.
  uint64_t num_items = 0;            // Elements read; of a fill, written.
  Algorithm algorithm = {};          // A primitive's: what really ran. {}: one that the client does not know.
  uint64_t num_bad_indices = 0;      // A gather's or a scatter's: those that are too large, which is no error.
};

// The outputs of a program that ran, which its terms find.
// Owns:    the arrays that were made and not taken: its end deletes them.
// Threads: const methods from any thread, any number at once; the others, and the end, alone.
// Errors:  of every method, INVALID_ARGUMENT (FIELD_CONFLICT) for a term that is no output of the program that ran;
//          FAILED_PRECONDITION for an output that is not where the method looks: inline, or in an array that was made.
class ProgramResult {
 public:
  // The element of an inline output that has one.
  // Errors: FAILED_PRECONDITION where it has another number of them.
  template <class T>
  absl::StatusOr<T> Value(Term<T> term) const {
    PREFIXD_ASSIGN_OR_RETURN(const std::string* const elements, Inline(term.id_, 1));
    T value;
    std::memcpy(&value, elements->data(), sizeof(T));
    return value;
  }

  // The elements of an inline output. Cost: copies them.
  template <class T>
  absl::StatusOr<std::vector<T>> Values(Term<T> term) const {
    PREFIXD_ASSIGN_OR_RETURN(const std::string* const elements, Inline(term.id_, std::nullopt));
    std::vector<T> values(elements->size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), elements->data(), elements->size());
    return values;
  }

  // The array that was made for an output, which is the caller's then.
  // Errors: FAILED_PRECONDITION where it was taken before.
  template <class T>
  absl::StatusOr<Array> TakeArray(Term<T> term) {
    return Take(term.id_);
  }

  // How many elements an output has, wherever it went.
  template <class T>
  absl::StatusOr<uint64_t> NumItems(Term<T> term) const {
    PREFIXD_ASSIGN_OR_RETURN(const internal::ProgramOutput* const output, Find(term.id_));
    return output->num_items;
  }

  const Timing& timing() const { return timing_; }                 // All steps together; without an algorithm.
  const std::vector<StepTiming>& steps() const { return steps_; }  // One for each, in the order of their calls.
  // Device memory that was charged, beside the arrays that were there.
  uint64_t peak_bytes() const { return peak_bytes_; }

  // For the library.
  ProgramResult(Timing timing, std::vector<StepTiming> steps, uint64_t peak_bytes,
                std::vector<internal::ProgramOutput> outputs)
      : timing_(std::move(timing)), steps_(std::move(steps)), peak_bytes_(peak_bytes), outputs_(std::move(outputs)) {}

 private:
  absl::StatusOr<const internal::ProgramOutput*> Find(internal::TermId term) const;
  // num_items: how many there have to be, if that matters.
  absl::StatusOr<const std::string*> Inline(internal::TermId term, std::optional<uint64_t> num_items) const;
  absl::StatusOr<Array> Take(internal::TermId term);

  Timing timing_;
  std::vector<StepTiming> steps_;
  uint64_t peak_bytes_ = 0;
  std::vector<internal::ProgramOutput> outputs_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_PROGRAM_RESULT_H_
