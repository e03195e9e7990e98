#include "kernels/args/extrema.h"

#include <cstddef>

#include "kernels/args/check.h"

namespace prefixd {

ScanArgs ExtremaOf(const ScanArgs& args) {
  ScanArgs extrema = args;
  extrema.indices = nullptr;
  extrema.carry_out = nullptr;  // It may be carry_in, which the marks need.
  return extrema;
}

MarkArgs MarksOf(const ScanArgs& args) {
  return {.dtype = args.dtype,
          .in = args.in,
          .extrema = args.out,
          .num_items = args.num_items,
          .num_arrays = args.num_arrays,
          .order = args.order,
          .offsets = args.offsets,
          .reverse = args.reverse,
          // A later one of equals takes the earlier one's place, if it is what is asked for.
          .marks_equals = args.last_index != args.reverse,
          .first_item = args.first_item,
          .before = static_cast<const ExtremumCarry*>(args.carry_in),
          .marks = args.indices,
          .index_dtype = args.index_dtype};
}

ScanArgs ScanOfMarks(const ScanArgs& args) {
  ScanArgs scan;
  scan.dtype = args.index_dtype;
  scan.op = args.reverse ? Op::kMin : Op::kMax;
  scan.reverse = args.reverse;
  scan.in = scan.out = args.indices;
  scan.num_items = args.num_items;
  scan.num_arrays = args.num_arrays;
  scan.order = args.order;
  scan.offsets = args.offsets;
  scan.init = Neutral(scan.op, scan.dtype);
  scan.carry_in = Advance(args.carry_in, offsetof(ExtremumCarry, index));
  return scan;
}

uint64_t NumBytes(const MarkArgs& args) {
  return args.NumItems() * (SizeOf(args.dtype) * (args.marks_equals ? 2 : 1) + SizeOf(args.index_dtype));
}

}  // namespace prefixd
