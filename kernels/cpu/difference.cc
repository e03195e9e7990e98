#include "kernels/cpu/difference.h"

#include <cstring>

#include "kernels/cpu/operators.h"

namespace prefixd::cpu {
namespace {

// Long enough that starting a task is lost in it.
constexpr uint64_t kBlockItems = uint64_t{1} << 15;

// a - b as the contract has it.
template <class T>
T Subtract(T a, T b) {
  if constexpr (kIsFloating<T>) {
    return Canonical(static_cast<T>(a - b));
  } else {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
}

// `edge` stands before in[0], or behind in[n-1].
template <class T>
void DifferenceAll(const DifferenceArgs& args, T edge) {
  const uint64_t n = args.num_items;
  ParallelFor(NumParts(n, kBlockItems), [=, &args](uint64_t block) {
    const T* const __restrict in = static_cast<const T*>(args.in);
    T* const __restrict out = static_cast<T*>(args.out);
    const uint64_t begin = block * kBlockItems;
    const uint64_t end = begin + PartItems(n, kBlockItems, block);
    if (args.reverse) {
      for (uint64_t i = begin; i + 1 < end; ++i) out[i] = Subtract(in[i], in[i + 1]);
      out[end - 1] = Subtract(in[end - 1], end == n ? edge : in[end]);
    } else {
      out[begin] = Subtract(in[begin], begin == 0 ? edge : in[begin - 1]);
      for (uint64_t i = begin + 1; i < end; ++i) out[i] = Subtract(in[i], in[i - 1]);
    }
  });
}

}  // namespace

Work RunDifference(const DifferenceArgs& args) {
  if (args.num_items == 0) {
    const size_t item_bytes = SizeOf(args.dtype);
    if (args.carry_out != nullptr) {
      std::memmove(args.carry_out, args.carry_in != nullptr ? args.carry_in : &args.init.bits, item_bytes);
    }
    return {};
  }
  VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T edge = args.carry_in != nullptr ? *static_cast<const T*>(args.carry_in) : args.init.As<T>();
    DifferenceAll(args, edge);
    if (args.carry_out == nullptr) return;
    *static_cast<T*>(args.carry_out) = static_cast<const T*>(args.in)[args.reverse ? 0 : args.num_items - 1];
  });
  return {.launches = 1, .num_bytes = 2 * args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
