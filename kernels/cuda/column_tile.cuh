// The value of a tile of a column, by a thread that walks down.
#ifndef PREFIXD_KERNELS_CUDA_COLUMN_TILE_CUH_
#define PREFIXD_KERNELS_CUDA_COLUMN_TILE_CUH_

#include <cstdint>

#include "kernels/cuda/column_scan.cuh"

namespace prefixd::cuda {

// The values of a tile of columns that stand side by side.
template <class In, class Out, Op kOp, int kWidth>
class ColumnTile {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Elements = ColumnItems<In, kWidth>;

  // pitch: in bytes. num_rows: at least 1.
  __device__ ColumnTile(const In* in, int64_t pitch, int num_rows, Elements* s_items, Item neutral) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      prefixes_[c] = ColumnPrefix<Operator>(neutral, neutral);
      values[c] = neutral;
    }
    WalkDown<Operator>(
        ColumnRing<Elements>(s_items), reinterpret_cast<const unsigned char*>(in), pitch, num_rows,
        [&](bool begins_run, const Elements& elements) {
#pragma unroll
          for (int c = 0; c < kWidth; ++c) {
            const Item item = Operator::Load(elements.items[c]);
            runs_[c] = begins_run ? item : Operator::Combine(runs_[c], item);
          }
        },
        [&](uint64_t index, uint32_t low) {
#pragma unroll
          for (int c = 0; c < kWidth; ++c) {
            if (static_cast<int>(index + 1) * kRunItems == num_rows) values[c] = prefixes_[c].With(runs_[c]);
            prefixes_[c].Add(index, low, runs_[c]);
          }
        });
    if (num_rows % kRunItems == 0) return;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) values[c] = prefixes_[c].With(runs_[c]);
  }

  Item values[kWidth];

 private:
  ColumnPrefix<Operator> prefixes_[kWidth];
  Item runs_[kWidth];
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_COLUMN_TILE_CUH_
