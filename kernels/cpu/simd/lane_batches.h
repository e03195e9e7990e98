// Arrays of a part in batches, which array_lanes.h scans and reduces: their order by length, and room for their items
// and results.
#ifndef PREFIXD_KERNELS_CPU_SIMD_LANE_BATCHES_H_
#define PREFIXD_KERNELS_CPU_SIMD_LANE_BATCHES_H_

#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/copy_streaming.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Longer arrays fill vectors by themselves.
constexpr uint32_t kMaxLaneItems = 1024;
constexpr uint32_t kMaxLaneRuns = kMaxLaneItems / kRunItems;
static_assert(kMaxLaneItems <= kTileItems);
// So many arrays are sorted by their lengths; their items and their results stay in the second-level cache.
constexpr uint32_t kMaxBatchArrays = 512;
constexpr uint32_t kBatchBytes = 64 << 10;
// The items of a batch, with a run in front of them and one behind.
template <class T>
constexpr size_t kBatchRoom = kBatchBytes / sizeof(T) + size_t{2} * kRunItems;
// Fewer arrays leave too many lanes without any.
template <class T>
constexpr uint32_t kMinBatchArrays = kLanes<T> > 8 ? kLanes<T> / 2 : 4;

// Arrays that stand one behind the other, none longer than kMaxLaneItems, and their order by length.
class LaneBatch {
 public:
  // Takes arrays from `first` on, as many as there is room for. num_lanes: of a vector.
  LaneBatch(const PartArrays& arrays, uint64_t first, uint32_t max_items, uint32_t num_lanes) {
    begins_[0] = 0;
    const uint64_t left = arrays.num_arrays - first;
    const uint32_t most = left < kMaxBatchArrays ? static_cast<uint32_t>(left) : kMaxBatchArrays;
    arrays.offsets == nullptr ? TakeAlike(arrays.length, most, max_items, num_lanes)
                              : TakeSorted(arrays.offsets + first, most, max_items);
  }

  uint32_t NumArrays() const { return num_arrays_; }
  uint32_t NumItems() const { return begins_[num_arrays_]; }
  uint32_t Begin(uint32_t array) const { return begins_[array]; }
  uint32_t End(uint32_t array) const { return begins_[array + 1]; }
  uint32_t Length(uint32_t array) const { return End(array) - Begin(array); }
  uint32_t Runs(uint32_t array) const { return (Length(array) + kRunItems - 1) / kRunItems; }

  // Calls run(arrays), kCount of them, until each that has items was there. The shortest ones come first, and where
  // they are too few, the longest of them stands in all places before them, too: num_others says in how many.
  template <int kCount, class RunArrays>
  PREFIXD_INLINE void ForLanes(RunArrays run) const {
    uint32_t array[kCount];
    int num_others = static_cast<int>((kCount - (num_arrays_ - num_empty_) % kCount) % kCount);
    for (uint32_t next = num_empty_; next < num_arrays_; num_others = 0) {
      for (int lane = num_others; lane < kCount; ++lane) array[lane] = order_[next++];
      for (int lane = 0; lane < num_others; ++lane) array[lane] = array[kCount - 1];
      run(array, num_others);
    }
  }

 private:
  void TakeAlike(uint64_t length, uint32_t most, uint32_t max_items, uint32_t num_lanes) {
    if (length > kMaxLaneItems) return;
    const auto items = static_cast<uint32_t>(length);
    num_arrays_ = most;
    if (const uint32_t with_room = max_items / items; with_room < most) {
      num_arrays_ = with_room < num_lanes ? with_room : with_room - with_room % num_lanes;
    }
    for (uint32_t i = 0; i <= num_arrays_; ++i) begins_[i] = i * items;
    for (uint32_t i = 0; i < num_arrays_; ++i) order_[i] = static_cast<uint16_t>(i);
  }

  PREFIXD_INLINE void TakeSorted(const uint64_t* offsets, uint32_t most, uint32_t max_items) {
    if (offsets[1] - offsets[0] > kMaxLaneItems) return;
    uint16_t place_of[kMaxLaneRuns + 2] = {};  // Where the next of those with so many runs goes.
    uint32_t longest = 0;
    for (; num_arrays_ < most; ++num_arrays_) {
      const uint64_t end = offsets[num_arrays_ + 1] - offsets[0];
      if (end - begins_[num_arrays_] > kMaxLaneItems || end > max_items) break;
      begins_[num_arrays_ + 1] = static_cast<uint32_t>(end);
      const uint32_t runs = Runs(num_arrays_);
      longest = longest < runs ? runs : longest;
      ++place_of[runs + 1];
    }
    for (uint32_t runs = 1; runs <= longest; ++runs) {
      place_of[runs] = static_cast<uint16_t>(place_of[runs] + place_of[runs - 1]);
    }
    num_empty_ = place_of[1];
    for (uint32_t array = 0; array < num_arrays_; ++array) {
      order_[place_of[Runs(array)]++] = static_cast<uint16_t>(array);
    }
  }

  uint32_t num_arrays_ = 0;
  uint32_t num_empty_ = 0;
  uint32_t begins_[kMaxBatchArrays + 1];
  uint16_t order_[kMaxBatchArrays];  // By their runs; those without come first.
};

// The items of a batch as T, with a run before them and a run behind that may be read.
template <class In, class T>
class BatchItems {
 public:
  // in: all items of the part, num_all. What stands beside them may be another thread's.
  const T* Of(const In* in, uint64_t first, uint32_t num_items, uint64_t num_all) {
    T* const copy = copy_ + kRunItems;
    if constexpr (std::is_same_v<In, T>) {
      if (first >= kRunItems && num_all - first - num_items >= kRunItems) return in + first;
      __builtin_memcpy(copy, in + first, num_items * sizeof(T));
    } else {
      Convert(in + first, static_cast<int>(num_items), copy);
    }
    for (int i = 0; i < kRunItems; ++i) copy_[i] = copy[num_items + static_cast<uint32_t>(i)] = T();
    return copy;
  }

 private:
  alignas(64) T copy_[kBatchRoom<T>];
};

// The results of a batch, until they are moved to where they belong.
template <class T, class Out>
class BatchResults {
 public:
  T* Begin() { return results_ + kRunItems; }
  void MoveTo(Out* out, uint32_t num_items, bool stream) {
    const void* from = Begin();
    if constexpr (!std::is_same_v<T, Out>) {
      Convert(Begin(), static_cast<int>(num_items), narrow_);
      from = narrow_;
    }
    stream ? CopyStreaming(out, from, num_items * sizeof(Out))
           : static_cast<void>(__builtin_memcpy(out, from, num_items * sizeof(Out)));
  }

 private:
  alignas(64) T results_[kBatchRoom<T>];
  alignas(64) Out narrow_[std::is_same_v<T, Out> ? 1 : kBatchBytes / sizeof(T)];
};

// Calls run_batch(batch, first_item) for arrays that share lanes, and run_one(array, first_item, num_items) for each of
// the others that has items.
template <class T, class RunBatch, class RunOne>
PREFIXD_INLINE void ForBatches(const PartArrays& arrays, RunBatch run_batch, RunOne run_one) {
  uint64_t first = 0;
  for (uint64_t array = 0; array < arrays.num_arrays;) {
    const LaneBatch batch(arrays, array, kBatchBytes / sizeof(T), kLanes<T>);
    if (batch.NumArrays() >= kMinBatchArrays<T>) {
      run_batch(batch, array, first);
      array += batch.NumArrays();
      first += batch.NumItems();
      continue;
    }
    const uint64_t end = array + (batch.NumArrays() == 0 ? 1 : batch.NumArrays());
    for (; array < end; ++array) {
      const uint64_t num_items =
          arrays.offsets == nullptr ? arrays.length : arrays.offsets[array + 1] - arrays.offsets[array];
      if (num_items > 0) run_one(array, first, num_items);
      first += num_items;
    }
  }
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_LANE_BATCHES_H_
