// The header of NumPy's .npy format, versions 1.0, 2.0 and 3.0.
#ifndef PREFIXD_CLIENT_PREFIXCTL_NPY_H_
#define PREFIXD_CLIENT_PREFIXCTL_NPY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/types.h"

namespace prefixd::cli {

struct NpyHeader {
  std::string descr;  // Such as "<f4".
  bool fortran_order = false;
  std::vector<uint64_t> shape;
};

// Magic, version and the length of the dictionary, in versions 2.0 and 3.0; 1.0 has two bytes fewer.
inline constexpr size_t kNpyMaxPreambleBytes = 12;
inline constexpr size_t kNpyMinPreambleBytes = 10;

// Length of the preamble and of the dictionary behind it.
struct NpyPreamble {
  size_t preamble_bytes = 0;
  size_t dictionary_bytes = 0;
};

// Needs:  kNpyMaxPreambleBytes of the file, or all of a shorter one.
// Errors: INVALID_ARGUMENT for a wrong magic, an unknown version, a length out of reason.
absl::StatusOr<NpyPreamble> ParseNpyPreamble(std::string_view bytes);

// Parses the dictionary, a Python literal.
// Errors: INVALID_ARGUMENT.
absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text);

// Errors: INVALID_ARGUMENT for what prefixd has no type for: big-endian, complex, structured...
absl::StatusOr<DType> NpyDType(std::string_view descr);

// Everything in front of an array, version 1.0. Always the same length, so that it can be written again once num_items
// is known. row_items: of a matrix, of which num_items are whole rows; else the array has one dimension.
std::string FormatNpyHeader(DType dtype, uint64_t num_items, std::optional<uint64_t> row_items = {});

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_NPY_H_
