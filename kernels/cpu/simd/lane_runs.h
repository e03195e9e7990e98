// Runs of arrays in lanes, an array in each: how they come from memory and go there, and what stands before them.
//
// Items: what is scanned, in memory and as the operator O combines it.
//   using Element = float;    // What a result is.
//   using Item = float;       // What O combines, as in ordered_scans.h,
//   using V = Vector<float>;  // and as many of them as a vector has lanes of Element.
//   Items(const Element* items, const Element* coefficients, Element coefficient);
//   void LoadRuns(int64_t offset, const int32_t* at, V (&v)[4]) const;  // v[j]: item offset + at[lane] + j.
//   static Vector<Element> ResultOf(V item);
#ifndef PREFIXD_KERNELS_CPU_SIMD_LANE_RUNS_H_
#define PREFIXD_KERNELS_CPU_SIMD_LANE_RUNS_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/pairs.h"
#include "kernels/cpu/simd/quads.h"
#include "kernels/cpu/simd/step.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

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

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_LANE_RUNS_H_
