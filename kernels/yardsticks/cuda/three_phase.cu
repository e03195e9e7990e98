// Scans by three_phase.
#include "kernels/yardsticks/cuda/three_phase.cuh"

#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/tile_scans.cuh"

namespace prefixd::cuda {

template <class T>
cudaError_t LaunchThreePhaseScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTileScan<T>(args.algorithm.tile_scan, args.op, [&](auto tag) {
    using Scan = typename decltype(tag)::type;
    auto params = MakeTileParams<T>(args);
    size_t shared_bytes = 0;
    cudaError_t error = CutIntoTiles<Scan>(args.algorithm.items_per_thread, &params, &shared_bytes);
    if (error != cudaSuccess) return error;
    void* d_sums = nullptr;
    const uint64_t num_sums = NumTileSums(params.num_tiles, params.tile_items);
    if (num_sums > 0) error = context->scratch.Get(context->stream, num_sums * sizeof(T), &d_sums);
    if (error != cudaSuccess) return error;
    *num_launches = 0;
    return LaunchThreePhases<Scan>(params, shared_bytes, static_cast<T*>(d_sums), context->stream, num_launches);
  });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchThreePhaseScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
