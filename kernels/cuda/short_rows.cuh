// Rows that are shorter than a leaf would leave lanes without work: a block brings whole rows to shared memory, and
// each thread has one. Here is how they get there.
#ifndef PREFIXD_KERNELS_CUDA_SHORT_ROWS_CUH_
#define PREFIXD_KERNELS_CUDA_SHORT_ROWS_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/array_prefix.cuh"

namespace prefixd::cuda {

inline constexpr int kShortRowThreads = 128;
inline constexpr size_t kMaxShortRowBytes = 256;   // Longer ones keep a warp busy.
inline constexpr size_t kShortRowsBytes = 16'384;  // What a block's rows take, about.

// The rows stand an odd number of words apart, so that threads meet no bank twice.
template <class T>
__host__ __device__ constexpr size_t ShortRowPitch(uint64_t row_items) {
  constexpr size_t kWordBytes = sizeof(T) < 4 ? 4 : sizeof(T);
  return ((row_items * sizeof(T) + kWordBytes - 1) / kWordBytes | 1) * kWordBytes;
}
// Rows of a block: as many for each thread.
template <class T>
__host__ __device__ constexpr int ShortRows(uint64_t row_items) {
  const size_t rows = kShortRowsBytes / ShortRowPitch<T>(row_items) / kShortRowThreads;
  return static_cast<int>(rows < 1 ? 1 : rows) * kShortRowThreads;
}

// The rows of a block, as its threads bring them in and take them out: item after item, whatever row it is in.
template <class T>
class ShortRowTile {
 public:
  // For rows of row_items, of which there are num_rows in all.
  __device__ ShortRowTile(uint64_t row_items, uint64_t num_rows, unsigned char* s_rows)
      : row_items_(static_cast<int>(row_items)),
        pitch_(static_cast<int>(ShortRowPitch<T>(row_items))),
        first_row_(uint64_t{blockIdx.x} * ShortRows<T>(row_items)),
        num_rows_(static_cast<int>(min(num_rows - first_row_, static_cast<uint64_t>(ShortRows<T>(row_items))))),
        s_rows_(s_rows) {}

  __device__ int row_items() const { return row_items_; }
  __device__ int num_rows() const { return num_rows_; }
  __device__ uint64_t first_row() const { return first_row_; }
  __device__ unsigned char* Row(int row) const { return s_rows_ + row * pitch_; }

  // From the whole matrix.
  __device__ void Load(const T* matrix) const {
    const T* const in = matrix + first_row_ * row_items_;
    ForBatches([&](int first, const int(&ats)[kBatch]) {
      T items[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int item = first + i * kShortRowThreads;
        if (item < num_rows_ * row_items_) items[i] = in[item];
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (first + i * kShortRowThreads < num_rows_ * row_items_) *reinterpret_cast<T*>(s_rows_ + ats[i]) = items[i];
      }
    });
  }
  // Results, which have taken the place of the elements, to the whole matrix of them.
  template <class Out>
  __device__ void Store(Out* matrix) const {
    static_assert(sizeof(Out) == sizeof(T));
    Out* const out = matrix + first_row_ * row_items_;
    ForBatches([&](int first, const int(&ats)[kBatch]) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int item = first + i * kShortRowThreads;
        if (item < num_rows_ * row_items_) out[item] = *reinterpret_cast<const Out*>(s_rows_ + ats[i]);
      }
    });
  }

 private:
  static constexpr int kBatch = 8;  // Accesses of a thread at once.

  // Calls visit(first, ats) for the thread's items, kShortRowThreads apart: where they are in shared memory.
  template <class Visit>
  __device__ void ForBatches(Visit visit) const {
    constexpr int kItemBytes = sizeof(T);
    const int place_step = kShortRowThreads % row_items_;
    const int step = kShortRowThreads / row_items_ * pitch_ + place_step * kItemBytes;
    const int turn = pitch_ - row_items_ * kItemBytes;
    int place = static_cast<int>(threadIdx.x) % row_items_;
    int at = static_cast<int>(threadIdx.x) / row_items_ * pitch_ + place * kItemBytes;
    const int num_items = num_rows_ * row_items_;
    for (int first = static_cast<int>(threadIdx.x); first < num_items; first += kBatch * kShortRowThreads) {
      int ats[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        ats[i] = at;
        at += step;
        place += place_step;
        if (place < row_items_) continue;
        place -= row_items_;
        at += turn;
      }
      visit(first, ats);
    }
  }

  const int row_items_;
  const int pitch_;
  const uint64_t first_row_;
  const int num_rows_;
  unsigned char* const s_rows_;
};

// What stands before a run of a row that is no longer than a leaf: the same bits as of a longer one.
template <class Operator, bool kAnyOrder = Operator::kAnyOrder>
class ShortRowPrefix {
 public:
  using Item = typename Operator::Item;
  __device__ ShortRowPrefix(Item start, Item neutral) : start_(start) { runs_.tree = neutral; }
  __device__ Item With(Item run) const { return Operator::Combine(start_, Operator::Combine(runs_.tree, run)); }
  __device__ void Add(int index, Item run) { runs_.Add(index, run); }

 private:
  const Item start_;
  Slots<Operator> runs_;
};
template <class Operator>
class ShortRowPrefix<Operator, true> : public ArrayPrefix<Operator> {
 public:
  using ArrayPrefix<Operator>::ArrayPrefix;
};

// Scans an array that is no longer than a leaf, by a thread. results may be elements, if they have the same size.
template <class Operator, bool kExclusive, class In, class Out, class Item = typename Operator::Item>
__device__ void ScanShortArray(const In* elements, Out* results, int num_items, Item start, Item neutral) {
  ShortRowPrefix<Operator> prefix(start, neutral);
  Out last = Operator::Store(start);
  for (int first = 0; first < num_items; first += kRunItems) {
    Item run = {};
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      if (first + i >= num_items) break;
      const Item item = Operator::Load(elements[first + i]);
      run = i == 0 ? item : Operator::Combine(run, item);
      const Out result = Operator::Store(prefix.With(run));
      results[first + i] = kExclusive ? last : result;
      last = result;
    }
    if (first + kRunItems < num_items) prefix.Add(first / kRunItems, run);
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SHORT_ROWS_CUH_
