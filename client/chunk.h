// Pieces of an array, as calls take and give them: elements as bytes, packed and little-endian.
#ifndef PREFIXD_CLIENT_CHUNK_H_
#define PREFIXD_CLIENT_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace prefixd::client {

using Bytes = absl::Span<const std::byte>;

template <class T>
Bytes AsBytes(absl::Span<const T> elements) {
  return {reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)};
}
inline Bytes AsBytes(const std::string& packed) {
  return {reinterpret_cast<const std::byte*>(packed.data()), packed.size()};
}

// The most bytes of elements in one message, either way.
inline constexpr size_t kMaxPayloadBytes = size_t{1} << 20;

// The next elements of an array, and their mask where a mask selects: packed as the spec's mask_kind says; of a linear
// recurrence that has them their coefficients.
struct Chunk {
  Bytes values;
  Bytes mask = {};
  Bytes coefficients = {};
  bool last = false;  // Nothing follows. May be left false where that is not known.
  // Keeps all of them as they are, and may be let go of on any thread. They are sent from where they are. Null: the
  // chunk owns nothing, and what is sent is a copy.
  std::shared_ptr<const void> owner = nullptr;
};

// Where a call's elements come from, a chunk at a time.
// Threads: Next and Rewind from one thread at a time, which need not be the caller's; Interrupt from another.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // The next elements: max_items of them, fewer only at the end, none after it. Without an owner they stay valid until
  // the next call of Next or Rewind. An error ends the call with that error.
  virtual absl::StatusOr<Chunk> Next(size_t max_items) = 0;
  // Goes back to the first element, for another attempt. False: it can't, so there is no other attempt.
  virtual bool Rewind() = 0;
  // Whether Next may block, on a file or a pipe. Where it may, a call with a timeout has a thread that calls Interrupt
  // in time; where it may not, Interrupt comes only when a stream has ended.
  virtual bool MayBlock() const { return true; }
  // Tells a Next that blocks to return soon, with whatever error: the call has ended, was cancelled, or is too late.
  // May come more than once, and while no Next runs. Must not call the Cancellation back. Rewind undoes it.
  virtual void Interrupt() {}
};

// Bytes that follow one another, in the pieces in which they came. A piece may end within an element.
using Pieces = absl::Span<const std::string_view>;

inline uint64_t NumBytes(Pieces pieces) {
  uint64_t num_bytes = 0;
  for (const std::string_view piece : pieces) num_bytes += piece.size();
  return num_bytes;
}

// Where the arrays of a result go, a message at a time, whichever primitive they are of. Each is whole elements, or
// empty.
using ResultSink = absl::FunctionRef<absl::Status(Pieces values, Pieces indices)>;

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CHUNK_H_
