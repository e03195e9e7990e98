// Moves elements between a resident array and this side's memory, over as many connections as pay. Private to the
// library.
//
// A part of 16 MiB or more is cut into up to eight shares, each of which goes over a connection of its own. An error of
// one ends the others. A connection that the server has no room for leaves its share to the first.
//
// Memory: beside the caller's, what gRPC has under way: a few messages a connection.
// Threads: any; starts one for each connection but the first, which are gone when it returns.
#ifndef PREFIXD_CLIENT_ARRAY_TRANSFER_H_
#define PREFIXD_CLIENT_ARRAY_TRANSFER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/chunk.h"
#include "client/connection.h"
#include "client/options.h"
#include "kernels/types.h"
#include "proto/array_info.h"

namespace prefixd::client {

// How many connections share so many bytes.
size_t NumLines(uint64_t size_bytes);

// Writes the values to the array's elements from first_item on. Needs: whole elements.
// Errors: the server's. Not tried again once the first connection has sent something.
absl::Status WriteElements(const Connection& connection, const ArrayInfo& array, uint64_t first_item, Bytes values,
                           const CallOptions& call);

// Fills `values` with the array's elements from first_item on. Needs: whole elements.
absl::Status ReadElements(const Connection& connection, const ArrayInfo& array, uint64_t first_item,
                          absl::Span<std::byte> values, const CallOptions& call);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_ARRAY_TRANSFER_H_
