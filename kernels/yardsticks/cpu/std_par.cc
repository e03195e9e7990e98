// Under the thread sanitizer this file is not instrumented, for the reason that parallel.cc gives. The loops are the
// library's own, so that there is no fork or join to state.
#include "kernels/yardsticks/cpu/std_par.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <execution>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/cpu/selector.h"
#include "kernels/yardsticks/cpu/textbook_ops.h"

namespace prefixd::cpu {
namespace {

// A value inside a scan. Where values are plain floats, libstdc++ 12 lets every stretch begin with 0.0, which is wrong
// for min and max and for sums of -0.0. Where they are a class, it asks for no value that it was not given.
template <class T>
struct Boxed {
  T value;
  operator T() const { return Canonical(value); }  // NOLINT(google-explicit-constructor): the scans assign it.
};

// An iterator over f(0), f(1) and so on. Only with random access do the algorithms run in parallel.
template <class F>
class Places {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using reference = std::invoke_result_t<const F&, ptrdiff_t>;
  using value_type = std::remove_cvref_t<reference>;
  using difference_type = ptrdiff_t;
  using pointer = void;

  explicit Places(const F* f, ptrdiff_t place = 0) : f_(f), place_(place) {}

  reference operator*() const { return (*f_)(place_); }
  reference operator[](ptrdiff_t n) const { return *(*this + n); }
  Places& operator++() {
    ++place_;
    return *this;
  }
  Places& operator+=(ptrdiff_t n) {
    place_ += n;
    return *this;
  }
  Places operator+(ptrdiff_t n) const { return Places(f_, place_ + n); }
  ptrdiff_t operator-(const Places& other) const { return place_ - other.place_; }
  bool operator==(const Places& other) const { return place_ == other.place_; }

 private:
  const F* f_;
  ptrdiff_t place_;
};

template <class T, class O>
void Scan(const ScanArgs& args, O op) {
  const auto num_items = static_cast<ptrdiff_t>(args.num_items);
  const ptrdiff_t first = args.reverse && num_items > 0 ? num_items - 1 : 0;
  const ptrdiff_t step = args.reverse ? -1 : 1;
  const auto* source = static_cast<const T*>(args.in);
  std::vector<T> copy;
  if (args.in == args.out && args.kind == ScanKind::kExclusive) {
    // The exclusive scan of libstdc++ 12 writes to a place before it reads it.
    copy.assign(source, source + num_items);
    source = copy.data();
  }
  const auto in_at = [in = source + first, step](ptrdiff_t i) -> const T& { return in[i * step]; };
  const auto out_at = [out = static_cast<T*>(args.out) + first, step](ptrdiff_t i) -> T& { return out[i * step]; };
  const Places in(&in_at);
  const Places out(&out_at);
  const auto box = [](T item) { return Boxed<T>{item}; };
  const auto combine = [op](Boxed<T> a, Boxed<T> b) { return Boxed<T>{op(a.value, b.value)}; };
  T carry = args.init.As<T>();
  if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(T));
  if (num_items > 0) {
    const T last = in[num_items - 1];  // Read first: in may be out.
    if (args.kind == ScanKind::kInclusive) {
      std::transform_inclusive_scan(std::execution::par, in, in + num_items, out, combine, box, box(carry));
      carry = out[num_items - 1];
    } else {
      std::transform_exclusive_scan(std::execution::par, in, in + num_items, out, box(carry), combine, box);
      carry = op(out[num_items - 1], last);
    }
  }
  carry = Canonical(carry);
  if (args.carry_out != nullptr) std::memcpy(args.carry_out, &carry, sizeof(T));
}

template <class T, class O>
void Reduce(const T* first, const T* last, uint64_t first_item, ReduceState* state, O op) {
  T value = state->value.As<T>();
  if constexpr (kIsExtremum<O>) {
    const T* best = std::min_element(std::execution::par, first, last, [](T a, T b) { return O::Beats(a, b); });
    if (best != last && !O::Beats(value, *best)) {
      const uint64_t position = first_item + static_cast<uint64_t>(best - first) + 1;
      state->position = O::Beats(*best, value) ? position : std::min(state->position, position);
      value = *best;
    }
  } else {
    value = std::reduce(std::execution::par, first, last, value, op);
  }
  state->value = Value::Of(Canonical(value));
}

// One place in the outputs of a compact. To assign an item to it writes the item's value, its index, or both.
template <class T>
struct Kept {
  const CompactArgs& args;
  ptrdiff_t place;

  void operator=(uint64_t item) const {
    if (args.values != nullptr) static_cast<T*>(args.values)[place] = static_cast<const T*>(args.in)[item];
    if (args.indices == nullptr) return;
    const uint64_t index = args.first_item + item;
    if (args.index_dtype == DType::kU32) {
      static_cast<uint32_t*>(args.indices)[place] = static_cast<uint32_t>(index);
    } else {
      static_cast<uint64_t*>(args.indices)[place] = index;
    }
  }
};

// Whether the selector holds for an item. The choice is made for each item anew, so that copy_if is compiled once a
// type.
template <class T>
bool Selects(const CompactArgs& args, uint64_t i) {
  const auto* mask = static_cast<const uint8_t*>(args.mask);
  if (args.selector == Selector::kByteMask) return mask[i] != 0;
  if (args.selector == Selector::kBitMask) return ((mask[i / 8] >> (i % 8)) & 1) != 0;
  const T item = static_cast<const T*>(args.in)[i];
  const T value = args.value.As<T>();
  switch (args.comparison) {
    case Comparison::kLess:
      return item < value;
    case Comparison::kLessEqual:
      return item <= value;
    case Comparison::kGreater:
      return item > value;
    case Comparison::kGreaterEqual:
      return item >= value;
    case Comparison::kEqual:
      return item == value;
    case Comparison::kNotEqual:
      return item != value;
    case Comparison::kIsNan:
      return IsNan(item);
    case Comparison::kIsFinite:
      if constexpr (kIsFloating<T>) return std::isfinite(item);
      return true;
    case Comparison::kInRange:
      return value <= item && item < args.end.As<T>();
  }
  FatalValue("Selects", args.comparison);
}

template <class T>
uint64_t Compact(const CompactArgs& args) {
  const auto item_at = [](ptrdiff_t i) { return static_cast<uint64_t>(i); };
  const auto kept_at = [&](ptrdiff_t place) { return Kept<T>{args, place}; };
  const Places items(&item_at);
  const Places kept(&kept_at);
  const auto end = std::copy_if(std::execution::par, items, items + static_cast<ptrdiff_t>(args.num_items), kept,
                                [&](uint64_t item) { return Selects<T>(args, item) != args.invert; });
  return static_cast<uint64_t>(end - kept);
}

}  // namespace

std::vector<AlgorithmInfo> StdAlgorithms() {
  constexpr char kSource[] = "libstdc++";
  return {{.primitive = Primitive::kScan,
           .algorithm = {Strategy::kStd},
           .work = "2n",
           .depth = "n / cores",
           .traffic = "3n",
           .launches = "1",
           .deterministic = false,
           .serves = kTextbooksServe,
           .source = kSource},
          {.primitive = Primitive::kReduce,
           .algorithm = {Strategy::kStd},
           .work = "n",
           .depth = "n / cores",
           .traffic = "n",
           .launches = "1",
           .deterministic = false,
           .serves = kTextbooksServe,
           .source = kSource},
          {.primitive = Primitive::kCompact,
           .algorithm = {Strategy::kStd},
           .work = "2n",
           .depth = "n / cores",
           .traffic = "2n + flags + kept",
           .launches = "1",
           .serves = kTextbookCompactsServe,
           .source = kSource}};
}

Work ScanStd(const ScanArgs& args) {
  VisitTextbookOp(args.dtype, args.op, [&](auto tag, auto op) { Scan<typename decltype(tag)::type>(args, op); });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = 2 * args.num_items * SizeOf(args.dtype)};
}

Work ReduceStd(const ReduceArgs& args) {
  ReduceState state = args.state_in != nullptr ? *args.state_in : args.init;
  VisitTextbookOp(args.dtype, args.op, [&](auto tag, auto op) {
    const auto* in = static_cast<const typename decltype(tag)::type*>(args.in);
    Reduce(in, in + args.num_items, args.first_item, &state, op);
  });
  *args.state_out = state;
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * SizeOf(args.dtype)};
}

Work CompactStd(const CompactArgs& args) {
  uint64_t kept = 0;
  VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kTextbookCompactsServe(kDTypeOf<T>, kDTypeOf<T>, Op::kSum)) {
      kept = Compact<T>(args);
    } else {
      FatalValue("CompactStd", args.dtype);
    }
  });
  *args.count = kept;
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = NumBytes(args, kept)};
}

}  // namespace prefixd::cpu
