#include "kernels/cpu/short_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/args/check.h"
#include "kernels/cpu/any_prefix.h"
#include "kernels/cpu/arrays.h"
#include "kernels/cpu/caches.h"

namespace prefixd::cpu {
namespace {

// A strip of rows takes so much, with what blocks add to it at most that.
constexpr uint64_t kStripBufferBytes = uint64_t{8} << 10;
constexpr uint64_t kMaxStripBytes = uint64_t{25} << 10;
// The fewest rows of a strip are kMaxBlockItems; the shortest are of one item, and become a block of 16 bytes.
static_assert(kMaxBlockItems * (kMaxShortRowItems + 1) * sizeof(double) <= kMaxStripBytes);
static_assert(kStripBufferBytes + kStripBytes / 2 * 16 <= kMaxStripBytes);

// Short rows as columns: strips of them that stay in the first-level cache.
class Strips {
 public:
  // item_bytes: of the longer of an element and a result.
  Strips(const Kernels& kernels, uint64_t length, size_t item_bytes, uint64_t strip_columns)
      : kernels_(kernels), length_(length) {
    const uint64_t rows = std::min(strip_columns, kStripBufferBytes / (length * item_bytes));
    strip_rows_ = std::max(rows / kMaxBlockItems * kMaxBlockItems, kMaxBlockItems);
  }

  // The rows of as many strips as have about num_bytes of results, and of one at least.
  uint64_t RowsOf(uint64_t num_bytes, size_t out_bytes) const {
    return std::max<uint64_t>(num_bytes / (length_ * out_bytes * strip_rows_), 1) * strip_rows_;
  }
  uint64_t StripRows() const { return strip_rows_; }
  static uint64_t Padded(uint64_t num_rows) { return NumParts(num_rows, kMaxBlockItems) * kMaxBlockItems; }

  // Rows as Padded(num_rows) columns, by way of scratch where nothing may be read behind the rows and num_readable
  // more.
  void ToColumns(DType dtype, const void* rows, uint64_t num_rows, uint64_t num_readable, void* columns,
                 void* scratch) const {
    const size_t size = SizeOf(dtype);
    if ((num_rows + num_readable) * length_ < Padded(num_rows) * length_ + BlockItems(size)) {
      std::memset(scratch, 0, (Padded(num_rows) * length_ + BlockItems(size)) * size);
      std::memcpy(scratch, rows, num_rows * length_ * size);
      rows = scratch;
    }
    kernels_.transposes->to_columns[static_cast<int>(dtype)](
        {.in = rows, .out = columns, .num_rows = Padded(num_rows), .length = length_, .pitch = Padded(num_rows)});
  }

 private:
  const Kernels& kernels_;
  const uint64_t length_;
  uint64_t strip_rows_;
};

// Scans num_rows short rows.
void ScanRows(const Kernels& kernels, const ScanArgs& args, const Strips& strips, uint64_t first_row,
              uint64_t num_rows) {
  const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
  const uint64_t length = args.num_items;
  alignas(64) std::byte elements[kMaxStripBytes];
  alignas(64) std::byte results[kMaxStripBytes];
  alignas(64) std::byte out[kPassingBytes + kMaxStripBytes];
  const AnyPrefix before = AnyPrefix::Before(args);
  // Rows that may be read: those that another thread scans in their place may not.
  const uint64_t end_row = args.in == args.out ? first_row + num_rows : args.num_arrays;
  for (uint64_t done = 0; done < num_rows; done += strips.StripRows()) {
    const uint64_t count = std::min(strips.StripRows(), num_rows - done), padded = Strips::Padded(count);
    strips.ToColumns(args.dtype, Advance(args.in, (first_row + done) * length * in_bytes), count,
                     end_row - first_row - done - count, elements, results);
    const uint64_t begin = args.reverse ? (length - 1) * padded : 0;
    const auto pitch = static_cast<int64_t>(padded);
    kernels.Columns(args.dtype, args.output(), args.op)
        .scan({.in = elements + begin * in_bytes,
               .out = results + begin * out_bytes,
               .num_rows = length,
               .num_columns = padded,
               .pitch = args.reverse ? -pitch : pitch,
               .exclusive = args.kind == ScanKind::kExclusive,
               .before = before.data()});
    kernels.transposes->to_rows[static_cast<int>(args.output())](
        {.in = results, .out = out + done * length * out_bytes, .num_rows = padded, .length = length, .pitch = padded});
  }
  const uint64_t num_bytes = num_rows * length * out_bytes;
  void* const to = Advance(args.out, first_row * length * out_bytes);
  IsLargerThanCaches(NumItems(args) * ItemBytes(args)) && args.in != args.out
      ? kernels.copy_streaming(to, out, num_bytes)
      : static_cast<void>(std::memcpy(to, out, num_bytes));
}

// Reduces num_rows short rows, at most a strip.
void ReduceRows(const Kernels& kernels, const ReduceArgs& args, const Strips& strips, uint64_t first_row,
                uint64_t num_rows) {
  alignas(64) std::byte elements[kMaxStripBytes];
  alignas(64) std::byte scratch[kMaxStripBytes];
  strips.ToColumns(args.dtype, ArrayOf(args, first_row).in, num_rows, args.num_arrays - first_row - num_rows, elements,
                   scratch);
  const AnyPrefix before = AnyPrefix::Before(args);
  kernels.Columns(args.dtype, args.output(), args.op)
      .reduce({.in = elements,
               .out = ArrayOf(args, first_row).values,
               .num_rows = args.num_items,
               .num_columns = num_rows,
               .pitch = static_cast<int64_t>(Strips::Padded(num_rows)),
               .before = before.data()});
}

}  // namespace

void ScanShortRows(const Kernels& kernels, const ScanArgs& args) {
  const size_t out_bytes = SizeOf(args.output());
  const Strips strips(kernels, args.num_items, std::max(SizeOf(args.dtype), out_bytes), HalfStripColumns(args));
  ForArrays(args.num_arrays, strips.RowsOf(kPassingBytes, out_bytes),
            [&](uint64_t first_row, uint64_t num_rows) { ScanRows(kernels, args, strips, first_row, num_rows); });
}

void ReduceShortRows(const Kernels& kernels, const ReduceArgs& args) {
  const Strips strips(kernels, args.num_items, std::max(SizeOf(args.dtype), SizeOf(args.output())),
                      HalfStripColumns(args));
  ForArrays(args.num_arrays, strips.StripRows(),
            [&](uint64_t first_row, uint64_t num_rows) { ReduceRows(kernels, args, strips, first_row, num_rows); });
}

}  // namespace prefixd::cpu
