// The arguments of Lane::Map.
#ifndef PREFIXD_KERNELS_ARGS_MAP_H_
#define PREFIXD_KERNELS_ARGS_MAP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/glue.h"

namespace prefixd {

// out[i] = op(in[i]), or op(in[i], other[i]). kernels/NUMERICS.md says what the operators do.
struct MapArgs {
  MapOp op = MapOp::kCast;
  DType dtype = DType::kI32;                  // The type of in and other.
  DType cast_dtype = DType::kI32;             // kCast: the type of out.
  Comparison comparison = Comparison::kLess;  // kCompare: in[i] comparison a; kCompareArrays: with other[i].
  Value a;                                    // kAffine: a * in[i] + b. kCompare, if HasValue.
  Value b;                                    // kAffine. kCompare, if HasEnd: the end.
  const void* in = nullptr;                   // Device.
  const void* other = nullptr;                // Device. Operators of two arrays.
  void* out = nullptr;                        // Device. May be in or other if the elements have one size.
  uint64_t num_items = 0;

  DType output() const { return MapOutput(op, dtype, cast_dtype); }
};

// The checks that Lane::Map makes before it enqueues. Errors: those of Lane::Map.
absl::Status Validate(const MapArgs& args);

// Bytes read and written.
uint64_t NumBytes(const MapArgs& args);

// The same map without a comparison by > or >= of two arrays, which are < and <= of the arrays exchanged.
MapArgs WithoutGreater(MapArgs args);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_MAP_H_
