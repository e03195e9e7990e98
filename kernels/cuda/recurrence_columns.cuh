// Scan by a linear recurrence down the columns of a matrix, each an array of its own: as column_scan.cuh, with a
// coefficient beside each term.
//
// A thread has a column and walks down, while the terms and the coefficients of many rows are on their way into words
// of shared memory that no other thread reads. Traffic: reads n and the coefficients, writes n. One launch. In place: a
// term is loaded before its result is written, and by the same thread. Cost: with few columns most of the card has no
// work.
#ifndef PREFIXD_KERNELS_CUDA_RECURRENCE_COLUMNS_CUH_
#define PREFIXD_KERNELS_CUDA_RECURRENCE_COLUMNS_CUH_

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/cuda/column_scan.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/recurrence.cuh"

namespace prefixd::cuda {

template <class T>
struct RecurrenceColumnParams : ColumnScanParams<T, T> {
  const T* coefficients;  // The row that the scan begins with. Null: all are `coefficient`.
  T coefficient;
};

// A ColumnRing of steps. Terms and coefficients stand apart, so that a warp's words are in banks of their own.
template <class T>
class StepRing {
 public:
  using Items = Step<T>;
  static constexpr int kRows = 2 * kRunItems;
  static constexpr int kStages = sizeof(T) == 4 ? 8 : 4;
  static constexpr int kThreads = 128;
  static constexpr int kItems = kStages * kRows * kThreads;
  // 32 KiB, and as many for coefficients.
  static constexpr size_t SharedBytes(bool has_coefficients) { return sizeof(T) * kItems * (has_coefficients ? 2 : 1); }

  // s_items: SharedBytes.
  __device__ StepRing(const RecurrenceColumnParams<T>& p, uint64_t column, T* s_items)
      : terms_(reinterpret_cast<const unsigned char*>(p.in + column)),
        coefficients_(p.coefficients == nullptr ? nullptr
                                                : reinterpret_cast<const unsigned char*>(p.coefficients + column)),
        coefficient_(p.coefficient),
        s_items_(s_items + threadIdx.x) {}

  __device__ void Start(int stage, const unsigned char* in, int64_t pitch) {
    if (in != nullptr) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const unsigned char* const term = in + row * pitch;
        __pipeline_memcpy_async(At(stage, row), term, sizeof(T));
        if (coefficients_ != nullptr) __pipeline_memcpy_async(At(stage, row) + kItems, Beside(term), sizeof(T));
      }
    }
    CommitCopies();
  }
  __device__ void Take(int stage, Items (&items)[kRows]) {
    WaitForOwnCopies<kStages - 1>();
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      items[row] = {coefficients_ != nullptr ? At(stage, row)[kItems] : coefficient_, *At(stage, row)};
    }
  }
  __device__ Items Load(const unsigned char* term) const {
    return {coefficients_ != nullptr ? *Beside(term) : coefficient_, *reinterpret_cast<const T*>(term)};
  }

 private:
  __device__ T* At(int stage, int row) const { return s_items_ + (stage * kRows + row) * kThreads; }
  __device__ const T* Beside(const unsigned char* term) const {
    return reinterpret_cast<const T*>(coefficients_ + (term - terms_));
  }

  const unsigned char* const terms_;
  const unsigned char* const coefficients_;
  const T coefficient_;
  T* const s_items_;
};

template <class T, bool kExclusive>
__device__ void ScanColumnOfSteps(const RecurrenceColumnParams<T>& p, uint64_t column, T* s_items) {
  using Operator = Operator<Op::kLinearRecurrence, T>;
  const Step<T> start = Operator::Load(p.init);
  ColumnPrefix<Operator> prefix(start, Operator::Load(p.neutral));
  Step<T> run = start;
  T last = Operator::Store(start);
  T* out = p.out + column;
  WalkDown<Operator>(
      StepRing<T>(p, column, s_items), reinterpret_cast<const unsigned char*>(p.in + column),
      p.pitch * static_cast<int64_t>(sizeof(T)), p.num_rows,
      [&](bool begins_run, const Step<T>& step) {
        run = begins_run ? step : Operator::Combine(run, step);
        const T value = Operator::Store(prefix.With(run));
        *out = kExclusive ? last : value;
        last = value;
        out += p.pitch;
      },
      [&](uint64_t index, uint32_t low) { prefix.Add(index, low, run); });
}

template <class T>
__global__ void __launch_bounds__(StepRing<T>::kThreads) RecurrenceColumnsKernel(const RecurrenceColumnParams<T> p) {
  extern __shared__ __align__(16) unsigned char s_column_items[];
  auto* const s_items = reinterpret_cast<T*>(s_column_items);
  const uint64_t column = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= p.num_columns) return;
  p.exclusive ? ScanColumnOfSteps<T, true>(p, column, s_items) : ScanColumnOfSteps<T, false>(p, column, s_items);
}

template <class T>
cudaError_t LaunchRecurrenceColumns(const ScanArgs& args, LaunchContext* context) {
  if (args.num_items == 0) return cudaSuccess;
  RecurrenceColumnParams<T> params = {ColumnParamsOf<T, T, Op::kLinearRecurrence>(args), nullptr,
                                      args.coefficient.As<T>()};
  if (args.coefficients != nullptr) {
    params.coefficients = static_cast<const T*>(args.coefficients) + FirstOfColumns(args);
  }
  constexpr int kThreads = StepRing<T>::kThreads;
  const auto num_blocks = static_cast<uint32_t>((params.num_columns + kThreads - 1) / kThreads);
  return Launch(RecurrenceColumnsKernel<T>, num_blocks, kThreads, context->stream, params,
                StepRing<T>::SharedBytes(params.coefficients != nullptr));
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RECURRENCE_COLUMNS_CUH_
