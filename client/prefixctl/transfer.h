// Files to resident arrays and back, in large parts: while one is on the wire, the next is read, or the last written.
#ifndef PREFIXD_CLIENT_PREFIXCTL_TRANSFER_H_
#define PREFIXD_CLIENT_PREFIXCTL_TRANSFER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cancellation.h"
#include "client/client.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/progress.h"

namespace prefixd::cli {

// Writes all elements of the file to those of the array from first_item on. Returns their number.
// Needs:  both are of one type.
// Errors: the reader's, and the server's.
absl::StatusOr<uint64_t> Upload(ArrayReader& reader, const client::Array& array, uint64_t first_item,
                                Progress& progress, absl::Time deadline, client::Cancellation* cancellation = nullptr);

// Writes num_items elements of the array, from first_item on, to the file. Errors: the writer's, and the server's.
absl::Status Download(const client::Array& array, uint64_t first_item, uint64_t num_items, ArrayWriter& writer,
                      Progress& progress, absl::Time deadline, client::Cancellation* cancellation = nullptr);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_TRANSFER_H_
