// What an operation does on a lane. There is one class for each (scan.cc, reduce.cc, compact.cc, glue.cc), and it is
// the same for a piece of a stream (piece_runner.h), for requests that share a launch (batch.h) and for a benchmark
// (measurement.h): they put the arrays somewhere, have the work enqueue its kernel, and fetch what the shape says that
// comes out. None of them knows a primitive by name.
//
//   std::unique_ptr<const Work> work = *MakeWork(device, operation);
//   work->Enqueue(lane, {.in = d_in, .values = d_out, .num_items = n});
//
// Threads: any; a Work does not change once it is made.
#ifndef PREFIXD_SERVER_WORK_WORK_H_
#define PREFIXD_SERVER_WORK_WORK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/operation.h"
#include "server/request.h"

namespace prefixd {

// What goes in and what comes out, for each item or each array.
struct WorkShape {
  uint64_t value_bytes = 0;   // An output item's; 0: there are no output items.
  uint64_t index_bytes = 0;   // An index's, or a reduce's key's, one for each output item; 0: there are none.
  uint64_t scalar_bytes = 0;  // The result beside the items; 0: there is none.
  // What joins a piece of an array, or of a row, to the one before it, kept on the device; 0: pieces need nothing of
  // each other.
  uint64_t carry_bytes = 0;
  bool is_counted = false;            // The scalar is how many output items there are. Else: Work::NumOutputs.
  bool depends_on_cuts = false;       // The bits change where pieces are cut inside a group: see open_group.h.
  std::optional<MaskKind> mask = {};  // A mask comes with the items.
  bool has_input = true;              // Else its items are made of nothing.
  bool in_place = false;              // The output items may go where the input items are, if both have one size.
  bool is_whole = false;              // The array is one piece, and alone in its launch.
  // The array is rows of so many items, each an array of its own. A piece is whole rows, or a part of one.
  std::optional<uint64_t> row_items = {};
  bool is_reduced = false;         // An output item is of many input items: Work::NumOutputs.
  bool has_offsets = false;        // Offsets of segments come with the items; or are found:
  std::optional<DType> keys = {};  // by keys of this type, which come with them.
  bool has_coefficients = false;   // An item of the same type comes with each.
  bool has_initial = false;        // There is one output item more than input items.
  bool counts_segments = false;    // How many output items are from each segment is counted.

  // Whether how many output items there are shows when they are made.
  bool HasUnknownLength() const { return is_counted || (is_reduced && keys); }
  // Whether no other request may share the launch.
  bool IsAlone() const { return is_whole || row_items || has_initial || has_coefficients; }
  // Else there is one value, at the end.
  bool HasItems() const { return value_bytes > 0 || is_counted; }
};

// Where the arrays are: all in device memory, or all in pinned host memory. Batches as in device.h.
struct WorkArrays {
  const std::byte* in = nullptr;            // num_items of the spec's dtype.
  const std::byte* mask = nullptr;          // If the shape has one.
  const std::byte* coefficients = nullptr;  // Likewise: num_items of the dtype.
  // A map's second array, num_items of the dtype; the indices of gather and scatter.
  const std::byte* other = nullptr;
  uint64_t table_items = 0;           // Gather: elements of in. Scatter: of values.
  const uint64_t* offsets = nullptr;  // If the shape has them: one more than there are segments.
  uint64_t num_offsets = 0;
  std::byte* values = nullptr;  // Room for num_items of value_bytes. A reduce has no use for it with a part of a row.
  // Room for num_items of index_bytes; for indices also where a shape that counts segments has none among its results.
  std::byte* indices = nullptr;
  std::byte* scalar = nullptr;  // Room for scalar_bytes; for a ReduceState with the last part of a row.
  uint64_t num_items = 0;
  uint64_t num_arrays = 1;
  // Items of one row, of a shape that has rows; or of a longer array, of a shape that has an initial value, which is
  // not among the results then. Else the whole array, or whole rows.
  bool is_part = false;
  uint64_t first_item = 0;              // The index of in[0] in the whole array, or in its row.
  const std::byte* carry_in = nullptr;  // The carry_out of the piece before. Null: the array begins here.
  std::byte* carry_out = nullptr;       // Room for carry_bytes, may be carry_in. Null: the array ends here.
};

// What the kernels of one whole array left, for Work::Describe.
struct WorkTotals {
  uint64_t num_items = 0;             // Read.
  uint64_t num_kept = 0;              // The sum of the counts, of a counted shape.
  std::optional<ReduceState> scalar;  // The last scalar of another shape; nullopt: none, or it failed.
};

// Whether the bits change where an array is cut: integers, and extrema, combine to the same bits in any order.
inline bool DependsOnCuts(const Algorithm& algorithm, Op op, DType output) {
  return FollowsNumerics(algorithm) && IsOrdered(output, op);
}

class Work {
 public:
  virtual ~Work() = default;

  // With the algorithm that runs.
  const Operation& operation() const { return operation_; }
  const WorkShape& shape() const { return shape_; }
  uint64_t item_bytes() const { return SizeOf(InputOf(operation_)); }
  // At most.
  uint64_t reply_bytes_per_item() const { return shape_.value_bytes + shape_.index_bytes; }
  // The widest of what an item takes in one block or one reply.
  uint64_t widest_bytes_per_item() const { return std::max(item_bytes(), reply_bytes_per_item()); }

  // Whether the algorithm is there to be compared with.
  bool is_yardstick() const { return spec_ && !device_.IsDefault(PrimitiveOf(*spec_), AlgorithmOf(*spec_)); }
  // Whether the scalar may go straight to pinned memory, however long the arrays are: the kernel writes it once, at its
  // end. That saves a copy, which takes longer than the write.
  bool WritesScalarOnce() const { return spec_ && shape_.scalar_bytes > 0 && !is_yardstick(); }
  // How long a lane is likely to have a piece of so many items: a rough guess, made of the work alone, so that the same
  // work counts the same whatever else runs.
  // resident: what goes in and what comes out stays on the device.
  int64_t EstimateNs(uint64_t num_items, bool resident = false) const;

  // Output items of so many input items, of a shape that has output items; of a counted one, at most. num_offsets: at
  // least 1 if the shape has them.
  // Needs: CheckLength(num_items) is OK, or CheckBeginning: of rows that are not whole there are no values yet.
  uint64_t NumOutputs(uint64_t num_items, uint64_t num_offsets) const;

  // Whether one launch works on so many items. Errors: those of Device::CheckLength, and of CheckAxis; INVALID_ARGUMENT
  // (SHAPE) for values of columns without rows.
  absl::Status CheckLength(uint64_t num_items) const;
  // The same for the first items of an array that comes in pieces: there may be any number of rows, of which the last
  // is not whole.
  absl::Status CheckBeginning(uint64_t num_items) const;
  // Whether the operation can be streamed. Errors: FAILED_PRECONDITION if the array has to be whole.
  virtual absl::Status CheckStream() const { return absl::OkStatus(); }

  // Enqueues one kernel on the lane and returns. Errors: those of the lane.
  virtual absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const = 0;

  // Sets what of the result is the operation's own: value, index, count. For the scalar of a row: its value.
  virtual void Describe(const WorkTotals& totals, Result* result) const = 0;

 protected:
  Work(const Device& device, const Operation& operation, const WorkShape& shape)
      : device_(device), operation_(operation), spec_(SpecOf(operation)), shape_(shape) {}

 private:
  const Device& device_;
  const Operation operation_;
  const std::optional<Spec> spec_;  // A primitive's.
  const WorkShape shape_;
};

// The batch that a lane runs: the arrays as they are, the rows or columns of a matrix, or segments.
struct LaneBatch {
  uint64_t num_items;
  uint64_t num_arrays;
  BatchOrder order = BatchOrder::kOneByOne;
};
LaneBatch BatchOf(const std::optional<Axis>& axis, const WorkArrays& arrays);

// Elements of a row, where each is an array of its own.
inline std::optional<uint64_t> RowItems(const std::optional<Axis>& axis) {
  return axis && axis->along == Axis::Along::kRow ? std::optional(axis->row_items) : std::nullopt;
}
inline bool HasColumns(const std::optional<Axis>& axis) { return axis && axis->along == Axis::Along::kColumn; }

// FAILED_PRECONDITION (AXIS_ON_STREAM).
absl::Status ColumnsOnStream(DType input, DType output);
// FAILED_PRECONDITION (SEGMENTS_ON_STREAM).
absl::Status SegmentsOnStream(DType input, DType output);

// The work of an operation. The device outlives it.
// Errors: those of Device::Resolve, and of CheckLength for a declared length.
absl::StatusOr<std::unique_ptr<const Work>> MakeWork(const Device& device, Operation operation);

// A spec of the primitive for benchmarks: an inclusive scan, a reduce, a compact that keeps about half of random
// elements. op: for a primitive that has one.
Spec SampleSpec(Primitive primitive, DType dtype, Op op, const Algorithm& algorithm);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_WORK_H_
