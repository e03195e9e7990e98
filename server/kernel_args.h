// What a spec says to a kernel: everything but the arrays.
#ifndef PREFIXD_SERVER_KERNEL_ARGS_H_
#define PREFIXD_SERVER_KERNEL_ARGS_H_

#include <cstdint>

#include "kernels/device.h"
#include "server/request.h"

namespace prefixd {

inline constexpr uint64_t kItemsPerMaskByte = 8;

inline uint64_t MaskBytesOf(Selector selector, uint64_t num_items) {
  return selector == Selector::kBitMask ? (num_items + kItemsPerMaskByte - 1) / kItemsPerMaskByte : num_items;
}

inline ScanArgs ArgsOf(const Spec& spec, const ScanSpec& scan) {
  ScanArgs args;
  args.dtype = spec.dtype;
  args.out_dtype = spec.out_dtype;
  args.op = scan.op;
  args.kind = scan.kind;
  args.reverse = scan.reverse;
  args.algorithm = spec.algorithm;
  args.init = scan.init.value_or(ScanStart(scan.op, spec.output(), scan.kind));
  return args;
}

inline ReduceArgs ArgsOf(const Spec& spec, const ReduceSpec& reduce) {
  ReduceArgs args;
  args.dtype = spec.dtype;
  args.out_dtype = spec.out_dtype;
  args.op = reduce.op;
  args.algorithm = spec.algorithm;
  args.init = reduce.init ? ReduceState{*reduce.init, 0} : ReduceState{Neutral(reduce.op, spec.output())};
  return args;
}

inline CompactArgs ArgsOf(const Spec& spec, const CompactSpec& compact) {
  CompactArgs args;
  args.dtype = spec.dtype;
  args.selector = compact.selector;
  args.comparison = compact.comparison;
  args.value = compact.value;
  args.invert = compact.invert;
  args.algorithm = spec.algorithm;
  args.index_dtype = compact.index_dtype;
  return args;
}

}  // namespace prefixd

#endif  // PREFIXD_SERVER_KERNEL_ARGS_H_
