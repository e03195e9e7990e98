// What the typed calls of all primitives share: they put C++ types into specs, and a result's bytes into vectors.
#ifndef PREFIXD_CLIENT_TYPED_H_
#define PREFIXD_CLIENT_TYPED_H_

#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
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
