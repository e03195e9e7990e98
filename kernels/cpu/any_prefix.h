// What stands before an item of a scan, of whatever type.
#ifndef PREFIXD_KERNELS_CPU_ANY_PREFIX_H_
#define PREFIXD_KERNELS_CPU_ANY_PREFIX_H_

#include <cstddef>
#include <cstring>

#include "kernels/args/scan.h"
#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/log_add_exp.h"
#include "kernels/wide_sum.h"

namespace prefixd::cpu {

// A Prefix of what a scan's items combine to.
class AnyPrefix {
 public:
  // What stands before the first item: carry_in, or init.
  static AnyPrefix Before(const ScanArgs& args) {
    AnyPrefix any;
    any.Visit(args, [&](auto form) {
      using T = typename decltype(form)::Carry;
      T carry = form.CarryOf(args.init);
      if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(T));
      const auto prefix = PrefixOf(form.ItemOf(carry), form.Neutral(args));
      static_assert(sizeof(prefix) <= sizeof(any.bytes_));
      std::memcpy(any.bytes_, &prefix, sizeof(prefix));
    });
    return any;
  }

  // Writes the value of all items so far, as a carry: CarryBytes.
  void PutCarry(const ScanArgs& args, void* carry_out) const {
    Visit(args, [&](auto form) {
      Prefix<typename decltype(form)::Item> prefix;
      std::memcpy(&prefix, bytes_, sizeof(prefix));
      const auto carry = form.ToCarry(prefix.last);
      std::memcpy(carry_out, &carry, sizeof(carry));
    });
  }

  // For ScanFunctions.
  void* data() { return bytes_; }

 private:
  // Items and carries, by the kind of scan.
  template <class Out>
  struct Native {
    using Item = Accumulator<Out>;
    using Carry = Item;
    static Item CarryOf(Value init) { return static_cast<Item>(init.As<Out>()); }
    static Item ItemOf(Item carry) { return carry; }
    static Item ToCarry(Item item) { return Canonical(item); }
    static Item Neutral(const ScanArgs& args) { return prefixd::Neutral(args.op, kDTypeOf<Item>).template As<Item>(); }
  };
  template <class T>
  struct Recurrence {
    using Item = Step<T>;
    using Carry = T;
    static T CarryOf(Value init) { return init.As<T>(); }
    static Item ItemOf(T carry) { return {T(1), carry}; }
    static T ToCarry(Item item) { return Canonical(item.term); }
    static Item Neutral(const ScanArgs& args) { return {T(1), prefixd::Neutral(args.op, args.output()).As<T>()}; }
  };
  template <class Out>
  struct LogSum {
    using Function = LogAddExpOf<Accumulator<Out>>;
    using Item = typename Function::Item;
    using Carry = Item;
    static Item CarryOf(Value init) { return Function::Load(init.As<Out>()); }
    static Item ItemOf(Item carry) { return carry; }
    static Item ToCarry(Item item) { return Settled(item); }
    static Item Neutral(const ScanArgs& args) { return CarryOf(prefixd::Neutral(args.op, args.output())); }
  };
  struct WideSingle {
    using Item = double;
    using Carry = double;
    static double CarryOf(Value init) { return init.As<float>(); }
    static double ItemOf(double carry) { return carry; }
    static double ToCarry(double item) { return Canonical(item); }
    static double Neutral(const ScanArgs&) { return -0.0; }
  };
  struct WideDouble {
    using Item = Compensated<double>;
    using Carry = Item;
    static Item CarryOf(Value init) { return CompensatedOf(init.As<double>()); }
    static Item ItemOf(Item carry) { return carry; }
    static Item ToCarry(Item item) { return Settled(item); }
    static Item Neutral(const ScanArgs&) { return CompensatedOf(-0.0); }
  };

  template <class F>
  static void Visit(const ScanArgs& args, F&& f) {
    if (args.IsWide()) return args.dtype == DType::kF32 ? f(WideSingle()) : f(WideDouble());
    VisitDType(args.output(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (IsRecurrence(Primitive::kScan, kDTypeOf<T>, kDTypeOf<T>, Op::kLinearRecurrence)) {
        if (args.op == Op::kLinearRecurrence) return f(Recurrence<T>());
      }
      if constexpr (kIsFloating<T>) {
        if (args.op == Op::kLogAddExp) return f(LogSum<T>());
      }
      f(Native<T>());
    });
  }

  alignas(Prefix<Step<double>>) std::byte bytes_[sizeof(Prefix<Step<double>>)];
};

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ANY_PREFIX_H_
