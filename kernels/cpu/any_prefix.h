// What stands before an item of a scan, of whatever type.
#ifndef PREFIXD_KERNELS_CPU_ANY_PREFIX_H_
#define PREFIXD_KERNELS_CPU_ANY_PREFIX_H_

#include <cstddef>
#include <cstring>

#include "kernels/args/scan.h"
#include "kernels/cpu/simd/kernels.h"

namespace prefixd::cpu {

// A Prefix of the scan's output type, or of its Steps.
class AnyPrefix {
 public:
  // What stands before the first item. T: the scan's output type.
  template <class T>
  static AnyPrefix Before(const ScanArgs& args, T start) {
    const T neutral = Neutral(args.op, args.output()).As<T>();
    AnyPrefix any;
    if (args.op == Op::kLinearRecurrence) {
      any.Put(PrefixOf(Step<T>{T(1), start}, Step<T>{T(1), neutral}));
    } else {
      any.Put(PrefixOf(start, neutral));
    }
    return any;
  }
  // The value of all items so far.
  template <class T>
  T Last(const ScanArgs& args) const {
    return args.op == Op::kLinearRecurrence ? Get<Step<T>>().last.term : Get<T>().last;
  }

  // For ScanFunctions.
  void* data() { return bytes_; }

 private:
  template <class T>
  void Put(const Prefix<T>& prefix) {
    static_assert(sizeof(prefix) <= sizeof(bytes_));
    std::memcpy(bytes_, &prefix, sizeof(prefix));
  }
  template <class T>
  Prefix<T> Get() const {
    Prefix<T> prefix;
    std::memcpy(&prefix, bytes_, sizeof(prefix));
    return prefix;
  }

  alignas(Prefix<Step<double>>) std::byte bytes_[sizeof(Prefix<Step<double>>)];
};

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ANY_PREFIX_H_
