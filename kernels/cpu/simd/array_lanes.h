// Scans and reduces of short arrays in the order of kernels/NUMERICS.md, an array in each lane.
//
// The runs of a short array do not fill vectors by themselves. Those of as many arrays as a vector has lanes do: all of
// them begin together, so that everything is vertical, as it is down columns. Arrays of about one length share vectors,
// and a lane whose array has ended repeats what the last lane does.
//
// A run that is cut short takes in what stands behind its array, which changes nothing before it. Its results go over
// the first run of what follows; so first runs are written after all others, in the order of the arrays.
#ifndef PREFIXD_KERNELS_CPU_SIMD_ARRAY_LANES_H_
#define PREFIXD_KERNELS_CPU_SIMD_ARRAY_LANES_H_

#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lane_batches.h"
#include "kernels/cpu/simd/lane_runs.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Scans a batch. results: those of its items, with room for a run on both sides. firsts: room for a run of each array.
template <class Items, class O, bool kReverse, class T>
__attribute__((noinline)) void ScanBatch(const LaneBatch& batch, const Items& items, typename Items::Item start,
                                         bool exclusive, const T* ahead, T* firsts, T* results) {
  using V = typename Items::V;
  constexpr int kL = kLanes<T>;
  const auto begin = [&](uint32_t array) {
    return static_cast<int32_t>(kReverse ? batch.End(array) - kRunItems : batch.Begin(array));
  };
  batch.ForLanes<kL>([&](const uint32_t(&array)[kL], int num_others) __attribute__((always_inline)) {
    int32_t at[kL], first_at[kL];
    for (int lane = 0; lane < kL; ++lane) {
      at[lane] = begin(array[lane]);
      first_at[lane] = static_cast<int32_t>(kRunItems * array[lane]);
    }
    LanePrefix<O, V> prefix(Splat(start));
    Vector<T> last = Canonical(Items::ResultOf(Splat(start)));
    uint32_t run = 0;
    const uint32_t most_runs = batch.Runs(array[kL - 1]);
    for (int lane = num_others; run < most_runs; at[lane++] = at[kL - 1]) {
      for (const uint32_t num_runs = batch.Runs(array[lane]); run < num_runs; ++run) {
        Fetch<4 * kVectorBytes>(ahead);
        ahead += 4 * kL;
        const int64_t offset = (kReverse ? -int64_t{kRunItems} : int64_t{kRunItems}) * run;
        V v[4];
        items.LoadRuns(offset, at, v);
        if constexpr (kReverse) Turn(v);
        for (int j = 1; j < 4; ++j) v[j] = O::Of(v[j - 1], v[j]);
        Vector<T> r[4];
        for (int j = 0; j < 4; ++j) r[j] = Canonical(Items::ResultOf(prefix.UpTo(v[j])));
        prefix.Add(v[3]);
        if (exclusive) {
          const Vector<T> first = last;
          last = r[3];
          for (int j = 3; j > 0; --j) r[j] = r[j - 1];
          r[0] = first;
        }
        if constexpr (kReverse) Turn(r);
        run == 0 ? StoreRuns(r, first_at, firsts) : StoreRuns(r, at, results + offset);
      }
    }
  });
  for (uint32_t i = 0; i < batch.NumArrays(); ++i) {
    const uint32_t array = kReverse ? batch.NumArrays() - 1 - i : i;
    if (batch.Length(array) == 0) continue;
    __builtin_memcpy(results + begin(array), firsts + kRunItems * array, kRunItems * sizeof(T));
  }
}

// Sets the values of the arrays of a batch that have items.
template <class Items, class O, class T, class Out>
__attribute__((noinline)) void ReduceBatch(const LaneBatch& batch, const Items& items, typename Items::Item start,
                                           const T* ahead, Out* values) {
  using V = typename Items::V;
  constexpr int kL = kLanes<T>;
  batch.ForLanes<kL>([&](const uint32_t(&array)[kL], int num_others) __attribute__((always_inline)) {
    int32_t at[kL];
    for (int lane = 0; lane < kL; ++lane) at[lane] = static_cast<int32_t>(batch.Begin(array[lane]));
    LanePrefix<O, V> prefix(Splat(start));
    uint32_t run = 0;
    for (int lane = num_others; lane < kL; ++run) {
      Fetch<4 * kVectorBytes>(ahead);
      ahead += 4 * kL;
      V v[4];
      items.LoadRuns(int64_t{kRunItems} * run, at, v);
      for (int j = 1; j < 4; ++j) v[j] = O::Of(v[j - 1], v[j]);
      if (batch.Runs(array[lane]) == run + 1) {
        alignas(kVectorBytes) T results[4][kL];
        for (int j = 0; j < 4; ++j) Store(results[j], Canonical(Items::ResultOf(prefix.UpTo(v[j]))));
        for (; lane < kL && batch.Runs(array[lane]) == run + 1; at[lane++] = at[kL - 1]) {
          values[array[lane]] = static_cast<Out>(results[(batch.Length(array[lane]) - 1) % kRunItems][lane]);
        }
      }
      prefix.Add(v[3]);
    }
  });
}

// ScanFunctions::scan_arrays. scan: ScanFunctions::scan.
template <class Items, class O, class In, class Out>
void ScanArraysInLanes(const ScanPart& part, const PartArrays& arrays, const void* before,
                       void (*scan)(const ScanPart& part, void* prefix)) {
  using T = typename Items::Element;
  const auto prefix = BitsOf<Prefix<typename Items::Item>>(before);
  const auto* const in = static_cast<const In*>(part.in);
  const auto* const coefficients = static_cast<const In*>(part.coefficients);
  auto* const out = static_cast<Out*>(part.out);
  BatchItems<In, T> items_of, coefficients_of;
  BatchResults<T, Out> results;
  alignas(64) T firsts[kMaxBatchArrays * kRunItems];
  ForBatches<T>(
      arrays,
      [&](const LaneBatch& batch, uint64_t /*array*/, uint64_t first) {
        const uint32_t num_items = batch.NumItems();
        if (num_items == 0) return;
        const Items items(
            items_of.Of(in, first, num_items, part.num_items),
            coefficients == nullptr ? nullptr : coefficients_of.Of(coefficients, first, num_items, part.num_items),
            part.coefficient == nullptr ? T() : BitsOf<T>(part.coefficient));
        const auto* const ahead = reinterpret_cast<const T*>(in + first + num_items);
        part.reverse
            ? ScanBatch<Items, O, true>(batch, items, prefix.last, part.exclusive, ahead, firsts, results.Begin())
            : ScanBatch<Items, O, false>(batch, items, prefix.last, part.exclusive, ahead, firsts, results.Begin());
        results.MoveTo(out + first, num_items, part.stream);
      },
      [&](uint64_t /*array*/, uint64_t first, uint64_t num_items) {
        auto of_one = prefix;
        ScanPart one = part;
        one.in = one.next = in + first;
        one.out = out + first;
        one.num_items = num_items;
        if (coefficients != nullptr) one.coefficients = coefficients + first;
        one.stream = part.stream && num_items > kMaxLaneItems;
        scan(one, &of_one);
      });
}

// ScanFunctions::reduce_arrays. reduce(part): the value of an array by itself.
template <class Items, class O, class In, class Out, class Reduce>
void ReduceArraysInLanes(const ScanPart& part, const PartArrays& arrays, typename Items::Item start, const void* empty,
                         Reduce reduce) {
  using T = typename Items::Element;
  const auto* const in = static_cast<const In*>(part.in);
  auto* const values = static_cast<Out*>(part.out);
  BatchItems<In, T> items_of;
  for (uint64_t array = 0; array < arrays.num_arrays; ++array) __builtin_memcpy(values + array, empty, sizeof(Out));
  ForBatches<T>(
      arrays,
      [&](const LaneBatch& batch, uint64_t array, uint64_t first) {
        const uint32_t num_items = batch.NumItems();
        if (num_items == 0) return;
        const Items items(items_of.Of(in, first, num_items, part.num_items), nullptr, T());
        ReduceBatch<Items, O>(batch, items, start, reinterpret_cast<const T*>(in + first + num_items), values + array);
      },
      [&](uint64_t array, uint64_t first, uint64_t num_items) {
        ScanPart one = part;
        one.in = one.next = in + first;
        one.num_items = num_items;
        values[array] = static_cast<Out>(reduce(one));
      });
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_ARRAY_LANES_H_
