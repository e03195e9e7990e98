// What the typed calls of all primitives share: they put C++ types into specs, and a result's bytes into vectors.
#ifndef PREFIXD_CLIENT_TYPED_H_
#define PREFIXD_CLIENT_TYPED_H_

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/chunk.h"
#include "kernels/types.h"

namespace prefixd::client {

class Connection;  // connection.h, which is private to the library.

namespace internal {

// Makes room for the next elements of a result, and returns where they go.
using Room = absl::FunctionRef<std::byte*(size_t size_bytes)>;

// Adds elements of so many bytes, and returns where they go.
template <class T>
std::byte* Grow(size_t size_bytes, std::vector<T>* elements) {
  const size_t old_size = elements->size();
  elements->resize(old_size + size_bytes / sizeof(T));
  return reinterpret_cast<std::byte*>(elements->data() + old_size);
}

// Adds elements that came in pieces. Needs: whole ones.
template <class T>
absl::Status Append(Pieces pieces, std::vector<T>* elements) {
  std::byte* to = Grow(NumBytes(pieces), elements);
  for (const std::string_view piece : pieces) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  return absl::OkStatus();
}

// Takes nothing: for results that stay on the device.
inline absl::Status NoSink(Pieces /*values*/, Pieces /*indices*/) { return absl::OkStatus(); }

// A spec's out_dtype for these types: absent where both are one.
template <class T, class Out>
requires(IsOutput(kDTypeOf<T>,
                  kDTypeOf<Out>)) inline constexpr std::optional<DType> kOutDType = std::is_same_v<T, Out>
                                                                                        ? std::nullopt
                                                                                        : std::optional(kDTypeOf<Out>);

template <class T>
std::optional<Value> ToValue(const std::optional<T>& value) {
  return value ? std::optional(Value::Of(*value)) : std::nullopt;
}

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_TYPED_H_
