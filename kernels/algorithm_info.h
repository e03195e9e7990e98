// The description of one algorithm that a device serves: for the device itself, for GetServerInfo, and for clients.
// A value: no threads, no ownership.
#ifndef PREFIXD_KERNELS_ALGORITHM_INFO_H_
#define PREFIXD_KERNELS_ALGORITHM_INFO_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/algorithm.h"
#include "kernels/types.h"

namespace prefixd {

// Says which combinations an algorithm serves, among those for which IsSupported(primitive, ...) is true.
struct Served {
  bool (*test)(DType dtype, DType out_dtype, Op op) = [](DType, DType, Op) { return true; };
  std::string_view words = "everything";  // The rule in words, for a message: "it serves ...".

  constexpr bool operator()(DType dtype, DType out_dtype, Op op) const { return test(dtype, out_dtype, op); }
};

// One row of what `prefixctl algorithms` prints. Costs are for n elements, in words.
struct AlgorithmInfo {
  Primitive primitive = Primitive::kScan;
  Algorithm algorithm;  // Strategy and tile scan; the knobs are 0 and false. The next two say which knobs it takes.
  bool has_items_per_thread = false;
  bool has_padding = false;
  std::string work;           // Operations: "n log n".
  std::string depth;          // The longest chain of dependent operations: "2 log n".
  std::string traffic;        // Words read and written: "4n".
  std::string launches;       // "3 and more".
  bool stable = true;         // A compact keeps the order. Always true for other primitives.
  bool deterministic = true;  // Every run gives the same bits, floating-point sums included.
  uint64_t max_items = 0;     // The longest array. 0: no limit but memory.
  Served serves;              // Set by the device; a client learns it from the server's capabilities.
  std::string source;         // "Hillis and Steele 1986; Hadwiger": kernels/yardsticks/SOURCES.md.
};

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ALGORITHM_INFO_H_
