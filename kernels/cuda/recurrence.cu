// The recurrence kernels, and which of them runs.
#include "kernels/cuda/recurrence.cuh"

#include "kernels/cuda/recurrence_columns.cuh"
#include "kernels/cuda/recurrence_segments.cuh"

namespace prefixd::cuda {

template <class T>
cudaError_t LaunchRecurrence(const ScanArgs& args, LaunchContext* context) {
  constexpr Op kOp = Op::kLinearRecurrence;
  const bool has_many = args.num_arrays > 1;  // A single segment is an array.
  if (has_many && args.order == BatchOrder::kInterleaved) return LaunchRecurrenceColumns<T>(args, context);
  if (AreLongRows(args, *context)) {
    return ForRows(args, [&](const ScanArgs& row) { return LaunchRecurrence<T>(row, context); });
  }
  RecurrenceParams<T> params = RecurrenceParamsOf<T>(args, *context);
  if (params.offsets != nullptr) return LaunchRecurrenceSegments(params, context);
  if (has_many || args.num_items <= kBlockScanItems) return LaunchBlockScan<T, T, kOp>(args, params, context);
  using Elements = RingElements<kOp, T, T>;
  return RingScanServes<Elements>(params, *context) ? LaunchRingScan<Elements>(params, context)
                                                    : LaunchTileScan<T, T, kOp>(params, context);
}

template cudaError_t LaunchRecurrence<float>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchRecurrence<double>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
