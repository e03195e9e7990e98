// What else computes the same on a CPU: plain loops, the standard library's algorithms, and oneTBB's.
//
// Each is as its users write it. The loops are also the bodies of the parallel peers' parts, so that only the way of
// joining the parts differs. Integers wrap. Elements must not be NaN.
#ifndef PREFIXD_TESTS_BENCH_CPU_PEERS_H_
#define PREFIXD_TESTS_BENCH_CPU_PEERS_H_

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_scan.h>

#include <algorithm>
#include <cstdint>
#include <execution>
#include <functional>
#include <iterator>
#include <numeric>
#include <type_traits>

#include "kernels/types.h"

namespace prefixd::bench {

constexpr uint64_t kGrainItems = uint64_t{1} << 16;
using Range = tbb::blocked_range<uint64_t>;

// Whether the loops here compute with T: what users of floats of 16 bits write is a loop of f32.
template <class T>
constexpr bool kHasPeers = !kIsNarrowFloat<T>;

// An integer type in which arithmetic wraps, and of which the low bits are right.
template <class T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

// A function object: the operator on Out, to which elements convert.
template <Op kOp, class Out>
struct Combine {
  Out operator()(Out a, Out b) const {
    if constexpr (kOp == Op::kMin) {
      return b < a ? b : a;
    } else if constexpr (kOp == Op::kMax) {
      return a < b ? b : a;
    } else if constexpr (kOp == Op::kAnd) {
      return a & b;
    } else if constexpr (kOp == Op::kOr) {
      return a | b;
    } else if constexpr (kOp == Op::kXor) {
      return a ^ b;
    } else if constexpr (kIsFloating<Out>) {
      return kOp == Op::kSum ? a + b : a * b;
    } else {
      using U = Wrapping<Out>;
      const U x = static_cast<U>(a);
      const U y = static_cast<U>(b);
      return static_cast<Out>(kOp == Op::kSum ? x + y : x * y);
    }
  }
};

// ---- Scan ----------------------------------------------------------------------------------------------------------
template <class InType, class OutType, Op kOperator, ScanKind kScanKind = ScanKind::kInclusive, bool kBackwards = false>
struct ScanOf {
  using In = InType;
  using Out = OutType;
  static constexpr Op kOp = kOperator;
  static constexpr ScanKind kKind = kScanKind;
  static constexpr bool kReverse = kBackwards;

  static Out Start() { return ScanStart(kOp, kDTypeOf<Out>, kKind).template As<Out>(); }
};

// Scans items begin to end, counted in the order of the scan, behind value. Returns the value behind them.
template <class S, class In = typename S::In, class Out = typename S::Out>
Out ScanPart(const In* in, Out* out, uint64_t num_items, uint64_t begin, uint64_t end, Out value) {
  const Combine<S::kOp, Out> combine;
  for (uint64_t i = begin; i < end; ++i) {
    const uint64_t at = S::kReverse ? num_items - 1 - i : i;
    const Out before = value;
    value = combine(value, in[at]);
    out[at] = S::kKind == ScanKind::kExclusive ? before : value;
  }
  return value;
}

template <class S>
[[gnu::noinline]] void ScanByLoop(const typename S::In* in, typename S::Out* out, uint64_t num_items) {
  ScanPart<S>(in, out, num_items, 0, num_items, S::Start());
}

template <class S>
void ScanByTbb(const typename S::In* in, typename S::Out* out, uint64_t num_items) {
  using Out = typename S::Out;
  const Combine<S::kOp, Out> combine;
  const auto body = [&](const Range& range, Out value, bool is_final) {
    if (is_final) return ScanPart<S>(in, out, num_items, range.begin(), range.end(), value);
    for (uint64_t i = range.begin(); i < range.end(); ++i) {
      value = combine(value, in[S::kReverse ? num_items - 1 - i : i]);
    }
    return value;
  };
  tbb::parallel_scan(Range(0, num_items, kGrainItems), S::Start(), body, combine);
}

// Policy: nothing, or an execution policy.
template <class S, class... Policy>
void ScanByStd(const typename S::In* in, typename S::Out* out, uint64_t num_items, const Policy&... policy) {
  const auto scan = [&](auto first, auto last, auto results) {
    const Combine<S::kOp, typename S::Out> combine;
    if constexpr (S::kKind == ScanKind::kExclusive) {
      std::exclusive_scan(policy..., first, last, results, S::Start(), combine);
    } else {
      std::inclusive_scan(policy..., first, last, results, combine, S::Start());
    }
  };
  if constexpr (S::kReverse) {
    scan(std::make_reverse_iterator(in + num_items), std::make_reverse_iterator(in),
         std::make_reverse_iterator(out + num_items));
  } else {
    scan(in, in + num_items, out);
  }
}

// ---- Reduce --------------------------------------------------------------------------------------------------------
template <Op kOp, class In, class Out>
Out ReducePart(const In* in, uint64_t begin, uint64_t end, Out value) {
  const Combine<kOp, Out> combine;
  for (uint64_t i = begin; i < end; ++i) value = combine(value, in[i]);
  return value;
}

template <Op kOp, class In, class Out>
[[gnu::noinline]] Out ReduceByLoop(const In* in, uint64_t num_items, Out start) {
  return ReducePart<kOp>(in, 0, num_items, start);
}

template <Op kOp, class In, class Out>
Out ReduceByTbb(const In* in, uint64_t num_items, Out start) {
  const auto body = [&](const Range& range, Out value) {
    return ReducePart<kOp>(in, range.begin(), range.end(), value);
  };
  return tbb::parallel_reduce(Range(0, num_items, kGrainItems), start, body, Combine<kOp, Out>{});
}

// The best item and where it first is. Kept together, as the primitive gives both.
template <class T>
struct Best {
  T value;
  uint64_t index;
};

// Needs: begin < end.
template <Op kOp, class T>
Best<T> BestOfPart(const T* in, uint64_t begin, uint64_t end) {
  Best<T> best = {in[begin], begin};
  for (uint64_t i = begin + 1; i < end; ++i) {
    if (kOp == Op::kMin ? in[i] < best.value : best.value < in[i]) best = {in[i], i};
  }
  return best;
}

template <Op kOp, class T>
[[gnu::noinline]] Best<T> BestByLoop(const T* in, uint64_t num_items) {
  return BestOfPart<kOp>(in, 0, num_items);
}

template <Op kOp, class T>
Best<T> BestByTbb(const T* in, uint64_t num_items) {
  const auto better = [](const Best<T>& a, const Best<T>& b) {
    return (kOp == Op::kMin ? b.value < a.value : a.value < b.value) ? b : a;
  };
  const auto body = [&](const Range& range, const Best<T>& best) {
    return better(best, BestOfPart<kOp>(in, range.begin(), range.end()));
  };
  return tbb::parallel_reduce(Range(0, num_items, kGrainItems), Best<T>{in[0], 0}, body, better);
}

template <Op kOp, class T, class... Policy>
Best<T> BestByStd(const T* in, uint64_t num_items, const Policy&... policy) {
  const T* const best = kOp == Op::kMin ? std::min_element(policy..., in, in + num_items)
                                        : std::max_element(policy..., in, in + num_items);
  return {*best, static_cast<uint64_t>(best - in)};
}

// ---- Compact -------------------------------------------------------------------------------------------------------
// Which items are kept. Each form is a type, for a loop that asks anew for every item is none that a user would write.
template <class T, Selector kSelector, bool kInvert>
struct Select {
  const T* in;
  const uint8_t* mask;
  T threshold;

  bool operator()(uint64_t i) const {
    if constexpr (kSelector == Selector::kPredicate) return (in[i] > threshold) != kInvert;
    if constexpr (kSelector == Selector::kByteMask) return (mask[i] != 0) != kInvert;
    return ((mask[i / 8] >> i % 8 & 1) != 0) != kInvert;
  }
};

// Writes what is kept of items begin to end from `count` on; indices unless null. Returns the count behind them.
template <bool kIndices, class T, class S>
uint64_t CompactPart(const T* in, S select, uint64_t begin, uint64_t end, uint64_t count, T* out, uint64_t* indices) {
  for (uint64_t i = begin; i < end; ++i) {
    if (!select(i)) continue;
    out[count] = in[i];
    if constexpr (kIndices) indices[count] = i;
    ++count;
  }
  return count;
}

template <bool kIndices, class T, class S>
[[gnu::noinline]] uint64_t CompactByLoop(const T* in, S select, uint64_t num_items, T* out, uint64_t* indices) {
  return CompactPart<kIndices>(in, select, 0, num_items, 0, out, indices);
}

template <bool kIndices, class T, class S>
uint64_t CompactByTbb(const T* in, S select, uint64_t num_items, T* out, uint64_t* indices) {
  const auto body = [&](const Range& range, uint64_t count, bool is_final) {
    if (is_final) return CompactPart<kIndices>(in, select, range.begin(), range.end(), count, out, indices);
    for (uint64_t i = range.begin(); i < range.end(); ++i) count += select(i) ? 1 : 0;
    return count;
  };
  return tbb::parallel_scan(Range(0, num_items, kGrainItems), uint64_t{0}, body, std::plus<>());
}

// ---- Difference ----------------------------------------------------------------------------------------------------
// A function object: an element less the one before.
template <class T>
struct Less {
  T operator()(T next, T before) const {
    if constexpr (kIsFloating<T>) {
      return next - before;
    } else {
      return static_cast<T>(static_cast<Wrapping<T>>(next) - static_cast<Wrapping<T>>(before));
    }
  }
};

template <class T>
void DifferencePart(const T* in, T* out, uint64_t begin, uint64_t end) {
  if (begin == 0) out[begin++] = in[0];
  for (uint64_t i = begin; i < end; ++i) out[i] = Less<T>{}(in[i], in[i - 1]);
}

template <class T>
[[gnu::noinline]] void DifferenceByLoop(const T* in, T* out, uint64_t num_items) {
  DifferencePart(in, out, 0, num_items);
}

template <class T>
void DifferenceByTbb(const T* in, T* out, uint64_t num_items) {
  tbb::parallel_for(Range(0, num_items, kGrainItems),
                    [&](const Range& range) { DifferencePart(in, out, range.begin(), range.end()); });
}

}  // namespace prefixd::bench

#endif  // PREFIXD_TESTS_BENCH_CPU_PEERS_H_
