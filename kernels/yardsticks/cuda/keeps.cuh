// Which elements the textbooks' compacts keep, and how they write one: select.cuh with the selector known at run time,
// so that there is one kernel for each element type.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_KEEPS_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_KEEPS_CUH_

#include <cstdint>

#include "kernels/cuda/select.cuh"

namespace prefixd::cuda {

inline constexpr int kCompactThreads = 512;

template <class T>
struct KeepParams : CompactParams<T> {
  Selector selector;

  __device__ bool Keeps(uint64_t item) const {
    bool is_selected = false;
    if (selector == Selector::kPredicate)
      is_selected = IsSelected<T, Selector::kPredicate>(*this, this->in[item], item);
    if (selector == Selector::kByteMask) is_selected = IsSelected<T, Selector::kByteMask>(*this, T{}, item);
    if (selector == Selector::kBitMask) is_selected = IsSelected<T, Selector::kBitMask>(*this, T{}, item);
    return is_selected != this->invert;
  }

  __device__ void Write(uint64_t position, uint64_t item) const {
    if (this->values != nullptr) this->values[position] = this->in[item];
    if (this->indices_u32 != nullptr) this->indices_u32[position] = static_cast<uint32_t>(this->first_item + item);
    if (this->indices_u64 != nullptr) this->indices_u64[position] = this->first_item + item;
  }
};

template <class T>
KeepParams<T> MakeKeepParams(const CompactArgs& args, uint64_t* h_num_kept) {
  return {MakeCompactParams<T>(args, h_num_kept), args.selector};
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_KEEPS_CUH_
