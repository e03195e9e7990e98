// A run of a command through arrays of the server: what needs its whole array, or arrays beside it.
#ifndef PREFIXD_CLIENT_PREFIXCTL_ARRAYS_RUN_H_
#define PREFIXD_CLIENT_PREFIXCTL_ARRAYS_RUN_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/interrupt.h"

namespace prefixd::cli {

// The arrays go when it ends, interrupted or not. All are on the one server that the first of them is on.
// Needs:   as CancelOnInterrupt; the job outlives it.
// Threads: one.
class ArraysRun {
 public:
  ArraysRun(const GlobalFlags& global, const Job& job);

  // The elements of a file. One whose length is not known is read to its end first. Errors: the reader's, the server's.
  absl::StatusOr<client::ArrayPart> Add(ArrayReader& reader);
  // The values and what comes beside them, as places.
  absl::StatusOr<client::ArrayPlaces> AddAll(ArrayReader& values, const BesideFiles& files);

  // Needs: every result has a target. Errors: the server's.
  absl::StatusOr<client::ResidentReply> Run(const Spec& spec, const client::ArrayPlaces& places);

  // Writes a whole array to a file, which gets its name when Commit is called. Errors: the writer's, the server's.
  absl::Status Save(const client::Array& array, ArrayWriter& writer);

 private:
  client::CallOptions Call();

  CancelOnInterrupt interrupt_;  // First: the client has threads.
  client::Client client_;
  const Job& job_;
  std::vector<client::Array> arrays_;
};

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_ARRAYS_RUN_H_
