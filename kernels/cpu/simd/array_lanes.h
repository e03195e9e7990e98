// Scans and reduces of short arrays in the order of kernels/NUMERICS.md, an array in each lane.
//
// The runs of a short array do not fill vectors by themselves. Those of as many arrays as a vector has lanes do: all of
// them begin together, so that everything is vertical, as it is down columns. Arrays of about one length share vectors,
// and a lane whose array has ended repeats what the last lane does.
//
// A run that is cut short takes in what stands behind its array, which changes nothing before it. Its results go over
// the first run of what follows; so first runs are written after all others, in the order of the arrays.
//
// Items: what is scanned, in memory and as the operator O combines it.
//   using Element = float;    // What a result is.
//   using Item = float;       // What O combines, as in ordered_scans.h,
//   using V = Vector<float>;  // and as many of them as a vector has lanes of Element.
//   Items(const Element* items, const Element* coefficients, Element coefficient);
//   void LoadRuns(int64_t offset, const int32_t* at, V (&v)[4]) const;  // v[j]: item offset + at[lane] + j.
//   static Vector<Element> ResultOf(V item);
#ifndef PREFIXD_KERNELS_CPU_SIMD_ARRAY_LANES_H_
#define PREFIXD_KERNELS_CPU_SIMD_ARRAY_LANES_H_

#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/copy_streaming.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/pairs.h"
#include "kernels/cpu/simd/quads.h"
#include "kernels/cpu/simd/step.h"
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

// ---- Runs in memory ------------------------------------------------------------------------------------------------
template <class T>
using Run = typename VectorOf<T, kRunItems * sizeof(T)>::type;

template <class V>
PREFIXD_INLINE auto Joined(V low, V high) {
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(low, high, i...);
  }
  (std::make_integer_sequence<int, 2 * static_cast<int>(sizeof(V) / sizeof(Lane<V>))>{});
}

// v[j]: item at[lane] + j of each lane.
template <class T>
PREFIXD_INLINE void LoadRuns(const T* items, const int32_t* at, Vector<T> (&v)[4]) {
  constexpr int kL = kLanes<T>;
  for (int j = 0; j < 4; ++j) {
    if constexpr (kL == 2) {
      v[j] = Load(items + at[j / 2] + j % 2 * kL);
    } else {
      const auto run = [&](int block) __attribute__((always_inline)) {
        return BitsOf<Run<T>>(items + at[4 * block + j]);
      };
      if constexpr (kL == 4) v[j] = run(0);
      if constexpr (kL == 8) v[j] = Joined(run(0), run(1));
      if constexpr (kL == 16) v[j] = Joined(Joined(run(0), run(1)), Joined(run(2), run(3)));
    }
  }
  Transpose(v[0], v[1], v[2], v[3]);
}

template <int kBlock, class V, class T>
PREFIXD_INLINE void StoreBlock(const V (&v)[4], const int32_t* at, T* results) {
  constexpr int kFirst = 4 * kBlock;
  for (int j = 0; j < 4; ++j) {
    const Run<T> run = __builtin_shufflevector(v[j], v[j], kFirst, kFirst + 1, kFirst + 2, kFirst + 3);
    __builtin_memcpy(results + at[kFirst + j], &run, sizeof(run));
  }
}

// The other way round. Where lanes have one place, the last one's stay there.
template <class T>
PREFIXD_INLINE void StoreRuns(Vector<T> (&v)[4], const int32_t* at, T* results) {
  constexpr int kL = kLanes<T>;
  TransposeBack(v[0], v[1], v[2], v[3]);
  if constexpr (kL == 2) {
    for (int j = 0; j < 4; ++j) Store(results + at[j / 2] + j % 2 * kL, v[j]);
  } else {
    StoreBlock<0>(v, at, results);
    if constexpr (kL >= 8) StoreBlock<1>(v, at, results);
    if constexpr (kL == 16) StoreBlock<2>(v, at, results);
    if constexpr (kL == 16) StoreBlock<3>(v, at, results);
  }
}

// Elements as O's items.
template <class T, class O>
class LaneElements {
 public:
  using Element = T;
  using Item = decltype(O::Load(T()));
  using V = decltype(O::Load(Vector<T>()));

  LaneElements(const T* items, const T* /*coefficients*/, T /*coefficient*/) : items_(items) {}

  PREFIXD_INLINE void LoadRuns(int64_t offset, const int32_t* at, V (&v)[4]) const {
    Vector<T> elements[4];
    PREFIXD_ISA::LoadRuns(items_ + offset, at, elements);
    for (int j = 0; j < 4; ++j) v[j] = O::Load(elements[j]);
  }
  static PREFIXD_INLINE Vector<T> ResultOf(V item) { return O::ResultOf(item); }

 private:
  const T* const items_;
};

// Steps of a recurrence. kHasCoefficients: each has its own.
template <class T, bool kHasCoefficients>
class LaneSteps {
 public:
  using Element = T;
  using Item = Step<T>;
  using V = Step<Vector<T>>;

  LaneSteps(const T* items, const T* coefficients, T coefficient)
      : terms_(items), coefficients_(coefficients), coefficient_(coefficient) {}

  PREFIXD_INLINE void LoadRuns(int64_t offset, const int32_t* at, V (&v)[4]) const {
    Vector<T> terms[4], coefficients[4];
    PREFIXD_ISA::LoadRuns(terms_ + offset, at, terms);
    if constexpr (kHasCoefficients) PREFIXD_ISA::LoadRuns(coefficients_ + offset, at, coefficients);
    for (int j = 0; j < 4; ++j) v[j] = {kHasCoefficients ? coefficients[j] : Splat(coefficient_), terms[j]};
  }
  static PREFIXD_INLINE Vector<T> ResultOf(V step) { return step.term; }

 private:
  const T* const terms_;
  const T* const coefficients_;
  const T coefficient_;
};

template <class V>
PREFIXD_INLINE void Turn(V (&v)[4]) {
  const V first = v[0], second = v[1];
  v[0] = v[3];
  v[1] = v[2];
  v[2] = second;
  v[3] = first;
}

// ---- What stands before a run --------------------------------------------------------------------------------------
// The tree of the slots that were added, in each lane; neutral if there are none.
template <class O, class V>
class LaneTree {
 public:
  LaneTree() { Clear(); }
  PREFIXD_INLINE V Tree() const { return tree_; }
  PREFIXD_INLINE void Add(V slot) {
    int level = 0;
    for (uint32_t n = num_slots_; n & 1; n >>= 1) slot = O::Of(blocks_[level++], slot);
    blocks_[level] = slot;
    tree_ = slot;
    for (uint32_t n = ++num_slots_ >> ++level; n != 0; n >>= 1, ++level) {
      if (n & 1) tree_ = O::Of(blocks_[level], tree_);
    }
  }
  PREFIXD_INLINE void Clear() {
    tree_ = Splat(O::kNeutral);
    num_slots_ = 0;
  }

 private:
  V tree_;
  V blocks_[5];  // Those whose bit is set in the number of slots.
  uint32_t num_slots_;
};

template <class O, class V>
class LanePrefix {
 public:
  explicit LanePrefix(V start) : start_(start) {}
  // The value of all items up to those whose fold, from the begin of their run on, that is.
  PREFIXD_INLINE V UpTo(V fold) const { return O::Of(start_, O::Of(leaves_.Tree(), O::Of(runs_.Tree(), fold))); }
  PREFIXD_INLINE void Add(V run) {
    if (++num_runs_ % kJoinSlots != 0) return runs_.Add(run);
    leaves_.Add(O::Of(runs_.Tree(), run));
    runs_.Clear();
  }

 private:
  V start_;
  LaneTree<O, V> leaves_;
  LaneTree<O, V> runs_;
  int num_runs_ = 0;
};

// ---- Batches -------------------------------------------------------------------------------------------------------
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

// ---- Parts ---------------------------------------------------------------------------------------------------------
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
