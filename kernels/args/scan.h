// The arguments of Lane::Scan.
#ifndef PREFIXD_KERNELS_ARGS_SCAN_H_
#define PREFIXD_KERNELS_ARGS_SCAN_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "kernels/algorithm.h"
#include "kernels/args/batch.h"
#include "kernels/types.h"

namespace prefixd {

// out[i] = start op in[0] op ... op in[i] (inclusive), or to in[i-1] (exclusive). By a linear recurrence,
// y[i] = coefficients[i] * y[i-1] + in[i], where y[-1] is start; out[i] = y[i], or y[i-1].
struct ScanArgs {
  DType dtype = DType::kI32;       // The type of in.
  std::optional<DType> out_dtype;  // The type of out and init; elements combine in AccumulatorOf it. Absent: dtype.
  Op op = Op::kSum;
  Precision precision = Precision::kNative;  // Wide: elements combine in more. Carries: CarryBytes.
  ScanKind kind = ScanKind::kInclusive;
  bool reverse = false;  // out[i] = start op in[n-1] op ... op in[i] (inclusive), or to in[i+1] (exclusive)
  Algorithm algorithm;
  const void* in = nullptr;  // Device.
  void* out = nullptr;       // Device.
  uint64_t num_items = 0;
  uint64_t num_arrays = 1;  // See Lane. Several arrays have no carries.
  BatchOrder order = BatchOrder::kOneByOne;
  // Device: of segments, as in ReduceArgs. num_items is that of all.
  const uint64_t* offsets = nullptr;
  // Device: a linear recurrence's, of dtype, one beside each of in's items, disjoint from out. Null: all are
  // `coefficient`.
  const void* coefficients = nullptr;
  Value coefficient;
  Value init;                      // The value in front of the first element; see ScanStart. Used if carry_in is null.
  const void* carry_in = nullptr;  // Device, CarryBytes: the carry_out of the chunk before.
  void* carry_out = nullptr;       // Device, may equal carry_in: start op all elements. Null: not wanted.
  // Device: num_items of index_dtype for each array. By min and max, inclusive, to in's type: where out[i] stands, in
  // its array or, of segments, among all elements. Of equal elements the first, or the last, in memory. Null: not
  // wanted. Then in is not out, init is the neutral value, and carries are ExtremumCarry (extrema.h).
  void* indices = nullptr;
  DType index_dtype = DType::kU64;  // kU64 or kU32.
  bool last_index = false;
  uint64_t first_item = 0;  // The index of in[0] in the whole array.

  bool IsWide() const { return precision == Precision::kWide; }
  DType output() const { return out_dtype.value_or(dtype); }
};

// The checks that Lane::Scan makes before it enqueues. Errors: those of Lane::Scan, except the algorithm's.
absl::Status Validate(const ScanArgs& args);

// Bytes of a carry without indices: an item of AccumulatorOf(output); of a wide sum of f32 an f64, and of f64 a
// Compensated<double>; of log_add_exp a Scaled one.
constexpr uint64_t CarryBytes(DType output, Op op, Precision precision) {
  const bool is_pair = precision == Precision::kWide || op == Op::kLogAddExp;
  return SizeOf(AccumulatorOf(output)) * (is_pair ? 2 : 1);
}

// What an exclusive scan without a carry gives first: init, and of log_add_exp what it comes to as a Scaled one.
Value FirstResult(DType output, Op op, Value init);

// Bytes that an item takes, read and written.
uint64_t ItemBytes(const ScanArgs& args);

// The arguments for one array of a batch, by itself. Needs: they stand one by one.
ScanArgs ArrayOf(ScanArgs batch, uint64_t array);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_SCAN_H_
