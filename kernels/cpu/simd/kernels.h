// The loops of the CPU device, compiled once for each instruction set: what a set's files give to the rest.
//
//   const Kernels& kernels = *FindIsa("avx2")->kernels;
//   Prefix<float> prefix = PrefixOf(start, neutral);
//   kernels.Scan(DType::kF32, DType::kF32, Op::kSum).scan(part, &prefix);
//
// Every function here runs on the calling thread, allocates nothing and can't fail. Pointers have no type because the
// tables have one; they are aligned to their elements, not to vectors. The order in which floating-point sums and
// products are combined is that of kernels/NUMERICS.md.
#ifndef PREFIXD_KERNELS_CPU_SIMD_KERNELS_H_
#define PREFIXD_KERNELS_CPU_SIMD_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/association.h"
#include "kernels/glue.h"
#include "kernels/types.h"

namespace prefixd::cpu {

// The items of a part stay in a core's second-level cache between their reduction and their scan. A part holds whole
// tiles, so that its value is a list of tiles' values.
inline constexpr uint64_t kPartBytes = uint64_t{256} << 10;

// The tree of the slots that were added so far, at most 31: blocks[k] is that of 2^k of them, if bit k of num_slots is
// set, and neutral if it is not.
template <class T>
struct PrefixTree {
  T blocks[5];
  uint32_t num_slots;
};

// What stands before an item of a scan, which begins a tile where the scan is ordered.
template <class T>
struct Prefix {
  T last;               // The value of all items so far.
  T groups;             // Ordered: the value up to the group that is under way,
  PrefixTree<T> tiles;  // and the tiles of that group so far.
};

// A step of a linear recurrence: y becomes coefficient * y + term.
template <class T>
struct Step {
  T coefficient;
  T term;
};

// What stands before the first item.
template <class T>
constexpr Prefix<T> PrefixOf(T start, T neutral) {
  return {.last = start, .groups = start, .tiles = {{neutral, neutral, neutral, neutral, neutral}, 0}};
}

// A part of an array: items that follow each other in memory. A reverse scan begins with the last of them.
struct ScanPart {
  const void* in;
  void* out;
  uint64_t num_items;
  const void* next;  // As many bytes to bring to the second-level cache meanwhile. May be the part itself.
  bool reverse = false;
  bool exclusive = false;
  bool stream = false;  // Whether results go past the caches. in must not be out.
  // A recurrence's: as many as there are items, or null, and one for all.
  const void* coefficients = nullptr;
  const void* coefficient = nullptr;
};

// Arrays that stand one behind the other and make up a part.
struct PartArrays {
  uint64_t num_arrays;
  uint64_t length = 0;                // Items of each array, at least 1;
  const uint64_t* offsets = nullptr;  // or if not null, where each begins and ends, counted from anywhere.
};

struct ScanFunctions {
  // Sets values to the value of the items, of AccumulatorOf the output type; if ordered, to the values of their tiles
  // in the order of the scan.
  void (*reduce)(const ScanPart& part, void* values);
  // Adds the values of a part to *prefix, a Prefix of their type; of a recurrence of its Step, of log_add_exp of Scaled
  // ones, and of a wide sum of what that is made in.
  void (*add)(const void* values, uint64_t num_values, void* prefix);
  // Scans behind *prefix and makes it that of what follows. in may be out, if their elements have the same size.
  void (*scan)(const ScanPart& part, void* prefix);
  // Scans the arrays of a part, each behind *prefix, in vectors that short ones share. part.next is ignored.
  void (*scan_arrays)(const ScanPart& part, const PartArrays& arrays, const void* prefix);
  // Reduces them likewise, behind *start, of AccumulatorOf the output type. part.out has a result for each; of those
  // without items *empty, of the output type. Null for what is in no table of scans.
  void (*reduce_arrays)(const ScanPart& part, const PartArrays& arrays, const void* start, const void* empty) = nullptr;
};

// Null where IsSupported(kScan, ...) is false.
struct ScanTable {
  ScanFunctions of[kNumDTypes][kNumDTypes][kNumOps];
};

// Null where there is no recurrence.
struct RecurrenceTable {
  ScanFunctions of[kNumDTypes];
};

// Null where there is no wide sum. Values and prefixes are of double, and where the elements are, of Compensated ones.
struct WideSumTable {
  ScanFunctions of[kNumDTypes];
};

// Columns of a matrix whose state while they are scanned takes a part of the first-level cache.
inline constexpr uint64_t kStripBytes = 2048;
// element_bytes: of an element. item_bytes: of what items combine to.
constexpr uint64_t StripColumns(size_t element_bytes, size_t item_bytes) {
  return kStripBytes / (element_bytes > item_bytes ? element_bytes : item_bytes);
}

// Columns, StripColumns of them at most, that are scanned, or reduced, by themselves. In a scan in may be out,
// if their elements have the same size.
struct ColumnPart {
  const void* in;  // The first column's first item in the order of the scan,
  void* out;       // and its result. A reduce has one row of results.
  uint64_t num_rows;
  uint64_t num_columns;
  int64_t pitch;  // Items from a row to the next in the order of the scan.
  bool exclusive = false;
  bool stream = false;      // A scan's results go past the caches, line by line.
  const void* before;       // What stands before the first column, a Prefix as ScanFunctions has it;
  size_t before_bytes = 0;  // that before the next one stands so far behind it. 0: the same before all.
                            // Needs: no tile is under way there, or the part is at most one.
  // A recurrence's: one for each item, with their pitch, or null, and one for all.
  const void* coefficients = nullptr;
  const void* coefficient = nullptr;
};
struct ColumnFunctions {
  void (*scan)(const ColumnPart& part);
  void (*reduce)(const ColumnPart& part);  // Null for a recurrence.
  // The same, but out is a row of what items combine to, as ScanFunctions::reduce has values. Needs: part is a tile.
  void (*reduce_items)(const ColumnPart& part);
};
struct ColumnTable {
  ColumnFunctions of[kNumDTypes][kNumDTypes][kNumOps];
  ColumnFunctions recurrences[kNumDTypes];
  ColumnFunctions wide_sums[kNumDTypes];
};

// The index of the first of the smallest or largest items (a NaN is either), of which there is at least one.
struct ExtremumTable {
  uint64_t (*min[kNumDTypes])(const void* in, uint64_t num_items);
  uint64_t (*max[kNumDTypes])(const void* in, uint64_t num_items);
};

// A part of the items of a compact, and which of them it keeps.
struct KeptPart {
  const uint64_t* bits;  // A bit an item; bits behind the last item are 0.
  uint64_t num_items;
  uint64_t num_kept;  // The bits that are set.
  bool stream;        // Whether what is kept is written past the caches.
};

// Items from low to high, or all but these. Both are of AccumulatorOf the items' type.
struct ItemInterval {
  Value low;
  Value high;
  bool outside;
};

struct CompactTable {
  // Sets the bits of the items in the interval, and returns their number.
  uint64_t (*select[kNumDTypes])(const void* in, uint64_t num_items, const ItemInterval& interval, uint64_t* bits);
  // The same from a byte mask: those that are not 0, or if inverted those that are.
  uint64_t (*pack_bytes)(const void* mask, uint64_t num_items, bool invert, uint64_t* bits);
  // The same from a bit mask, lowest bit first.
  uint64_t (*copy_bits)(const void* mask, uint64_t num_items, bool invert, uint64_t* bits);
  // Writes the items whose bits are set to `out`. `next`: as many items that are fetched meanwhile; `in` for none.
  void (*keep[kNumDTypes])(const KeptPart& part, const void* in, const void* next, void* out);
  // Writes of_first + i for each bit i that is set.
  void (*keep_indices_32)(const KeptPart& part, uint64_t of_first, void* out);
  void (*keep_indices_64)(const KeptPart& part, uint64_t of_first, void* out);
};

// out[i] = in[i] - in[i-1], where *edge stands before the first item; reversed: in[i] - in[i+1], *edge behind the last.
struct DifferenceTable {
  void (*of[kNumDTypes])(const void* in, void* out, uint64_t num_items, const void* edge, bool reverse, bool stream);
  // out[i] = in[i] - *edge of num_items items that are pitch items apart.
  void (*of_edges[kNumDTypes])(const void* in, void* out, uint64_t num_items, uint64_t pitch, const void* edge);
};

// ---- The glue ------------------------------------------------------------------------------------------------------
// stream: whether results go past the caches. No input may be out then.

// A part of a fill, at most kPartBytes long, as FillArgs describes it.
struct FillPart {
  void* out;
  uint64_t num_items;
  uint64_t first_item;
  Value value;
  Value step;
  uint64_t seed;
  bool stream;
};
struct FillTable {
  void (*of[kNumFillKinds][kNumDTypes])(const FillPart& part);
};

// A part of a map. in and other may be out if the elements have one size.
struct MapPart {
  const void* in;
  const void* other;
  void* out;
  uint64_t num_items;
  Value a;       // kAffine: as MapArgs, in AccumulatorOf the dtype. kCompare: Interval::low, in it too,
  Value b;       // Interval::high,
  bool outside;  // and Interval::outside.
};
using MapLoop = void (*)(const MapPart& part);
struct MapTable {
  MapLoop cast[kNumDTypes][kNumDTypes];                 // From, to.
  MapLoop compare_arrays[kNumComparisons][kNumDTypes];  // Null for those that WithoutGreater leaves out.
  MapLoop of[kNumMapOps][kNumDTypes];                   // The other operators. Null for those above.
  // Runs one of these loops with results that go past the caches. in_bytes, out_bytes: of an element.
  void (*stream)(MapLoop loop, const MapPart& part, size_t in_bytes, size_t out_bytes);
};

// A part of a gather or scatter. bound: the items of the array that indices are for.
struct GatherPart {
  const void* in;
  const void* indices;
  void* out;
  uint64_t num_items;
  uint64_t bound;
  bool stream;  // Not for a scatter.
};
// By elements, and whether indices have 64 bits. Both return the number of indices that are not below the bound.
// Threads: parts of a scatter with equal indices may run at once.
struct GatherTable {
  uint64_t (*gather[kNumDTypes][2])(const GatherPart& part);
  uint64_t (*scatter[kNumDTypes][2])(const GatherPart& part);
};

// The sides of the squares that a matrix is transposed in: a few lines of the cache, and few enough for the first
// level.
constexpr uint64_t TransposeSide(size_t item_bytes) { return item_bytes == 1 ? 128 : item_bytes == 8 ? 32 : 64; }

// A square of a matrix, or what there is of it at the edge.
struct TransposePart {
  const void* in;
  void* out;
  uint64_t num_rows;
  uint64_t num_columns;
  uint64_t in_pitch;   // Items from a row of the matrix to the next,
  uint64_t out_pitch;  // and of the result.
  bool stream;
};
// Short rows that stand one behind the other, made columns that stand side by side, or the other way round. Blocks of
// BlockItems are moved: with a row's last block also what is behind the row in memory, up to a block behind all rows.
struct ShortRowsPart {
  const void* in;
  void* out;
  uint64_t num_rows;  // A multiple of kMaxBlockItems.
  uint64_t length;
  uint64_t pitch;  // Items from a column to the next, num_rows or more.
};
inline constexpr uint64_t kMaxBlockItems = 16;
constexpr uint64_t BlockItems(size_t item_bytes) { return 16 / item_bytes; }

struct TransposeTable {
  void (*of[kNumDTypes])(const TransposePart& part);
  // in: num_rows * length items, and BlockItems more. out: (length, up to a whole block) columns.
  void (*to_columns[kNumDTypes])(const ShortRowsPart& part);
  // in and out the other way round. Overwrites up to BlockItems behind the last row.
  void (*to_rows[kNumDTypes])(const ShortRowsPart& part);
};

struct Kernels {
  const ScanTable* unordered_scans;
  const ScanTable* ordered_scans;
  const RecurrenceTable* recurrences;
  const WideSumTable* wide_sums;
  const ColumnTable* columns;
  const ExtremumTable* extrema;
  const CompactTable* compacts;
  const DifferenceTable* differences;
  const FillTable* fills;
  const MapTable* maps;
  const GatherTable* gathers;
  const TransposeTable* transposes;
  // memcpy with stores that go past the caches: in is not to be read soon, nor out.
  void (*copy_streaming)(void* out, const void* in, size_t size_bytes);

  const ScanFunctions& Scan(DType dtype, DType out_dtype, Op op, Precision precision = Precision::kNative) const {
    if (precision == Precision::kWide) return wide_sums->of[static_cast<int>(dtype)];
    if (op == Op::kLinearRecurrence) return recurrences->of[static_cast<int>(dtype)];
    const ScanTable& table = IsOrdered(out_dtype, op) ? *ordered_scans : *unordered_scans;
    return table.of[static_cast<int>(dtype)][static_cast<int>(out_dtype)][static_cast<int>(op)];
  }
  const ColumnFunctions& Columns(DType dtype, DType out_dtype, Op op, Precision precision = Precision::kNative) const {
    if (precision == Precision::kWide) return columns->wide_sums[static_cast<int>(dtype)];
    if (op == Op::kLinearRecurrence) return columns->recurrences[static_cast<int>(dtype)];
    return columns->of[static_cast<int>(dtype)][static_cast<int>(out_dtype)][static_cast<int>(op)];
  }
};

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SIMD_KERNELS_H_
