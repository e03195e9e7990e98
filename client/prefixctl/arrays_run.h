// A run of a command through arrays of the server: what needs its whole array, or arrays beside it.
#ifndef PREFIXD_CLIENT_PREFIXCTL_ARRAYS_RUN_H_
#define PREFIXD_CLIENT_PREFIXCTL_ARRAYS_RUN_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/interrupt.h"

namespace prefixd::cli {

// The arrays go when it ends, interrupted or not.
// Needs:   as CancelOnInterrupt.
// Threads: one.
class ArraysRun {
 public:
  // Makes arrays of the job's input and of the files beside it, all on one server. Files whose length is not known are
  // read to their ends first, when an interrupt still ends the process. The job outlives it.
  // Errors: the readers', the server's.
  static absl::StatusOr<std::unique_ptr<ArraysRun>> Start(const GlobalFlags& global, const Job& job,
                                                          const BesideFiles& files);

  const client::ArrayPlaces& places() const { return *places_; }

  // Needs: every result has a target. Errors: the server's.
  absl::StatusOr<client::ResidentReply> Run(const Spec& spec, const client::ArrayPlaces& places);

  // Writes a whole array to a file, which gets its name when Commit is called. Errors: the writer's, the server's.
  absl::Status Save(const client::Array& array, ArrayWriter& writer);

 private:
  // All of a file whose length it does not say.
  using Read = std::optional<std::vector<std::byte>>;

  ArraysRun(const GlobalFlags& global, const Job& job);
  absl::StatusOr<client::ArrayPart> Add(ArrayReader& reader, const Read& read);
  client::CallOptions Call();

  CancelOnInterrupt interrupt_;  // First: the client has threads.
  client::Client client_;
  const Job& job_;
  std::vector<client::Array> arrays_;
  std::optional<client::ArrayPlaces> places_;
};

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_ARRAYS_RUN_H_
