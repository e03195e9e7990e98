// What stands before an item of a scan or reduce, of whatever type.
#ifndef PREFIXD_KERNELS_CPU_ANY_PREFIX_H_
#define PREFIXD_KERNELS_CPU_ANY_PREFIX_H_

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/args/reduce.h"
#include "kernels/args/scan.h"
#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/log_add_exp.h"
#include "kernels/wide_sum.h"

namespace prefixd::cpu {

// A Prefix of what items combine to.
class AnyPrefix {
 public:
  // The bytes of what items combine to, as ScanFunctions has values.
  template <class Args>
  static size_t ItemBytes(const Args& args) {
    size_t bytes = 0;
    Visit(args, [&](auto form) { bytes = sizeof(typename decltype(form)::Item); });
    return bytes;
  }

  // What stands before the first item: carry_in, or init.
  static AnyPrefix Before(const ScanArgs& args) {
    return Of(args, [&](auto form) {
      auto carry = form.CarryOf(args.init);
      if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(carry));
      return form.ItemOf(carry);
    });
  }
  // That of a reduce: init.
  static AnyPrefix Before(const ReduceArgs& args) {
    const ReduceState start = StartOf(args);
    return Of(args, [&](auto form) { return form.ItemOf(start); });
  }
  // What changes nothing.
  template <class Args>
  static AnyPrefix Neutral(const Args& args) {
    return Of(args, [&](auto form) { return form.Neutral(args); });
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

  // For ScanFunctions and ColumnPart.
  void* data() { return bytes_; }
  const void* data() const { return bytes_; }

 private:
  // Items and carries, by the kind of scan. ItemOf: also that of a reduce's state.
  template <class Out>
  struct Native {
    using Item = Accumulator<Out>;
    using Carry = Item;
    static Item CarryOf(Value init) { return static_cast<Item>(init.As<Out>()); }
    static Item ItemOf(Item carry) { return carry; }
    static Item ItemOf(const ReduceState& state) { return state.value.As<Item>(); }
    static Item ToCarry(Item item) { return Canonical(item); }
    template <class Args>
    static Item Neutral(const Args& args) {
      return prefixd::Neutral(args.op, kDTypeOf<Item>).template As<Item>();
    }
  };
  template <class T>
  struct Recurrence {
    using Item = Step<T>;
    using Carry = T;
    static T CarryOf(Value init) { return init.As<T>(); }
    static Item ItemOf(T carry) { return {T(1), carry}; }
    static Item ItemOf(const ReduceState& state) { return {T(1), state.value.As<T>()}; }
    static T ToCarry(Item item) { return Canonical(item.term); }
    template <class Args>
    static Item Neutral(const Args& args) {
      return {T(1), prefixd::Neutral(args.op, args.output()).template As<T>()};
    }
  };
  template <class Out>
  struct LogSum {
    using Function = LogAddExpOf<Accumulator<Out>>;
    using Item = typename Function::Item;
    using Carry = Item;
    static Item CarryOf(Value init) { return Function::Load(init.As<Out>()); }
    static Item ItemOf(Item carry) { return carry; }
    static Item ItemOf(const ReduceState& state) { return ScaledOf<Accumulator<Out>>(state); }
    static Item ToCarry(Item item) { return Settled(item); }
    template <class Args>
    static Item Neutral(const Args& args) {
      return CarryOf(prefixd::Neutral(args.op, args.output()));
    }
  };
  struct WideSingle {
    using Item = double;
    using Carry = double;
    static double CarryOf(Value init) { return init.As<float>(); }
    static double ItemOf(double carry) { return carry; }
    static double ItemOf(const ReduceState& state) { return state.value.As<double>(); }
    static double ToCarry(double item) { return Canonical(item); }
    template <class Args>
    static double Neutral(const Args&) {
      return -0.0;
    }
  };
  struct WideDouble {
    using Item = Compensated<double>;
    using Carry = Item;
    static Item CarryOf(Value init) { return CompensatedOf(init.As<double>()); }
    static Item ItemOf(Item carry) { return carry; }
    static Item ItemOf(const ReduceState& state) { return {state.value.As<double>(), state.second}; }
    static Item ToCarry(Item item) { return Settled(item); }
    template <class Args>
    static Item Neutral(const Args&) {
      return CompensatedOf(-0.0);
    }
  };

  // That behind start(form), an item.
  template <class Args, class Start>
  static AnyPrefix Of(const Args& args, const Start& start) {
    AnyPrefix any;
    Visit(args, [&](auto form) {
      using Item = typename decltype(form)::Item;
      const Prefix<Item> prefix = PrefixOf<Item>(start(form), form.Neutral(args));
      static_assert(sizeof(prefix) <= sizeof(any.bytes_));
      std::memcpy(any.bytes_, &prefix, sizeof(prefix));
    });
    return any;
  }

  template <class Args, class F>
  static void Visit(const Args& args, F&& f) {
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

// The most columns of a strip.
template <class Args>
uint64_t MostStripColumns(const Args& args) {
  return StripColumns(SizeOf(args.dtype), AnyPrefix::ItemBytes(args));
}
// Half a strip of single elements, whose state leaves room for them in the first-level cache; of pairs, which are twice
// as long, up to a whole one, for a row of it has no more bytes to read.
template <class Args>
uint64_t HalfStripColumns(const Args& args) {
  return std::min(MostStripColumns(args), StripColumns(SizeOf(args.dtype), SizeOf(AccumulatorOf(args.output()))) / 2);
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ANY_PREFIX_H_
