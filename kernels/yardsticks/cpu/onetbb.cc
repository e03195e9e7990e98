// Under the thread sanitizer this file is not instrumented, for the reason that parallel.cc gives: its loops and the
// library's headers are one code, so that there is no fork or join to state.
#include "kernels/yardsticks/cpu/onetbb.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_scan.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/yardsticks/cpu/textbook_ops.h"

namespace prefixd::cpu {
namespace {

using Range = tbb::blocked_range<ptrdiff_t>;

// The arrays, and the direction in which they are scanned: item i is in[i * step].
template <class T>
struct Items {
  const T* in;
  T* out;
  ptrdiff_t step;
  ScanKind kind;
};

// What tbb::parallel_scan asks for. The first body starts from the caller's value; those split off start from the
// neutral one, and learn by reverse_join what is before them.
template <class T, class O>
class ScanBody {
 public:
  ScanBody(const Items<T>& items, T neutral, T start, O op)
      : items_(items), neutral_(neutral), value_(start), op_(op) {}
  ScanBody(ScanBody& other, tbb::split) : ScanBody(other.items_, other.neutral_, other.neutral_, other.op_) {}

  void operator()(const Range& range, tbb::pre_scan_tag) {
    T value = value_;
    for (ptrdiff_t i = range.begin(); i < range.end(); ++i) value = op_(value, items_.in[i * items_.step]);
    value_ = value;
  }
  void operator()(const Range& range, tbb::final_scan_tag) {
    const Items<T> items = items_;
    T before = value_;
    for (ptrdiff_t i = range.begin(); i < range.end(); ++i) {
      const T through = op_(before, items.in[i * items.step]);  // Read first: in may be out.
      items.out[i * items.step] = Canonical(items.kind == ScanKind::kInclusive ? through : before);
      before = through;
    }
    value_ = before;
  }
  // NOLINTNEXTLINE(readability-identifier-naming): the library's name.
  void reverse_join(ScanBody& before) { value_ = op_(before.value_, value_); }
  // NOLINTNEXTLINE(readability-identifier-naming): the library's name.
  void assign(ScanBody& other) { value_ = other.value_; }

  T value() const { return value_; }

 private:
  const Items<T> items_;
  const T neutral_;
  T value_;
  O op_;
};

template <class T, class O>
void Scan(const ScanArgs& args, O op) {
  T carry = args.init.As<T>();
  if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(T));
  if (args.num_items > 0) {
    const ptrdiff_t first = args.reverse ? static_cast<ptrdiff_t>(args.num_items) - 1 : 0;
    const Items<T> items = {static_cast<const T*>(args.in) + first, static_cast<T*>(args.out) + first,
                            args.reverse ? -1 : 1, args.kind};
    ScanBody body(items, Neutral(args.op, args.dtype).As<T>(), carry, op);
    tbb::parallel_scan(Range(0, static_cast<ptrdiff_t>(args.num_items)), body);
    carry = body.value();
  }
  carry = Canonical(carry);
  if (args.carry_out != nullptr) std::memcpy(args.carry_out, &carry, sizeof(T));
}

// A value and, for min and max, its position: see ReduceState.
template <class T>
struct Found {
  T value;
  uint64_t position;
};

template <class T, class O>
Found<T> Join(const Found<T>& a, const Found<T>& b, O op) {
  if constexpr (kIsExtremum<O>) {
    if (O::Beats(b.value, a.value)) return b;
    return {a.value, O::Beats(a.value, b.value) ? a.position : std::min(a.position, b.position)};
  } else {
    return {op(a.value, b.value), a.position};
  }
}

template <class T, class O>
void Reduce(const ReduceArgs& args, ReduceState* state, O op) {
  const auto* in = static_cast<const T*>(args.in);
  const auto reduce = [&](const Range& range, Found<T> found) {
    for (ptrdiff_t i = range.begin(); i < range.end(); ++i) {
      found = Join(found, Found<T>{in[i], args.first_item + static_cast<uint64_t>(i) + 1}, op);
    }
    return found;
  };
  const Found<T> nothing = {Neutral(args.op, args.dtype).As<T>(), ReduceState::kNothing};
  const Found<T> all = tbb::parallel_reduce(Range(0, static_cast<ptrdiff_t>(args.num_items)), nothing, reduce,
                                            [&](const Found<T>& a, const Found<T>& b) { return Join(a, b, op); });
  const Found<T> found = Join(Found<T>{state->value.As<T>(), state->position}, all, op);
  *state = {Value::Of(Canonical(found.value)), found.position};
}

}  // namespace

std::vector<AlgorithmInfo> OneTbbAlgorithms() {
  constexpr char kSource[] = "oneTBB";
  return {{.primitive = Primitive::kScan,
           .algorithm = {Strategy::kOneTbb},
           .work = "2n",
           .depth = "n / cores",
           .traffic = "3n",
           .launches = "1",
           .deterministic = false,
           .serves = kTextbooksServe,
           .source = kSource},
          {.primitive = Primitive::kReduce,
           .algorithm = {Strategy::kOneTbb},
           .work = "n",
           .depth = "n / cores",
           .traffic = "n",
           .launches = "1",
           .deterministic = false,
           .serves = kTextbooksServe,
           .source = kSource}};
}

Work ScanOneTbb(const ScanArgs& args) {
  VisitTextbookOp(args.dtype, args.op, [&](auto tag, auto op) { Scan<typename decltype(tag)::type>(args, op); });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = 2 * args.num_items * SizeOf(args.dtype)};
}

Work ReduceOneTbb(const ReduceArgs& args) {
  ReduceState state = args.state_in != nullptr ? *args.state_in : args.init;
  VisitTextbookOp(args.dtype, args.op,
                  [&](auto tag, auto op) { Reduce<typename decltype(tag)::type>(args, &state, op); });
  *args.state_out = state;
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
