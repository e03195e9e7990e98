// How the arrays of a batch stand in memory.
#ifndef PREFIXD_KERNELS_ARGS_BATCH_H_
#define PREFIXD_KERNELS_ARGS_BATCH_H_

#include <cstdint>

namespace prefixd {

enum class BatchOrder : uint8_t {
  kOneByOne,     // Item i of array a is item a * num_items + i: the rows of a matrix.
  kInterleaved,  // It is item i * num_arrays + a: its columns.
};

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_BATCH_H_
