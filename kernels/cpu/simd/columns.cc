// Scans and reduces down the columns of a matrix, each an array of its own, in the order of kernels/NUMERICS.md.
//
// Columns that stand side by side are lanes side by side, so that everything is vertical. What stands before the next
// row, kept for each column of a strip, stays in the first-level cache. Four rows, a run, are scanned together.
#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/each_scan.h"
#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lane_operators.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

template <class T>
constexpr int kMaxColumns = static_cast<int>(kStripBytes / sizeof(T));
// So many rows ahead are fetched: the machine does not guess where the next one is.
constexpr int kRowsAhead = 2 * kRunItems;

template <class V>
struct TypeOf {
  using Type = V;
};

// Calls body(TypeOf<V>, column) for vectors of columns, and for each column that is left.
template <class T, class Body>
PREFIXD_INLINE void ForColumns(uint64_t num_columns, Body body) {
  uint64_t column = 0;
  for (; column + kLanes<T> <= num_columns; column += kLanes<T>) body(TypeOf<Vector<T>>(), column);
  for (; column < num_columns; ++column) body(TypeOf<T>(), column);
}

template <class V, class T>
PREFIXD_INLINE V Get(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class V, class T>
PREFIXD_INLINE void Put(T* to, V v) {
  static_assert(sizeof(V) % sizeof(T) == 0);
  __builtin_memcpy(static_cast<void*>(to), &v, sizeof(v));
}

// As many items as V has lanes, converted to T, as V.
template <class V, class T, class In>
PREFIXD_INLINE V GetAs(const In* from) {
  if constexpr (std::is_arithmetic_v<V>) {
    const T item = static_cast<T>(*from);
    return BitsOf<V>(&item);
  } else {
    return reinterpret_cast<V>(LoadAs<T>(from));
  }
}

// Puts results of T, which V are the bits of, as elements of To. Needs: NaNs are canonical.
template <class T, class V, class To>
PREFIXD_INLINE void PutAs(To* to, V v) {
  if constexpr (std::is_same_v<T, To>) {
    Put(to, v);
  } else if constexpr (std::is_arithmetic_v<V>) {
    *to = static_cast<To>(BitsOf<T>(&v));
  } else {
    Put(to, Halved<To>(reinterpret_cast<Vector<T>>(v)));
  }
}

template <class T>
PREFIXD_INLINE void SetAll(T* to, uint64_t count, T value) {
  for (uint64_t i = 0; i < count; ++i) to[i] = value;
}

// An item for each column. V: T, or a vector of T.
template <class Item>
struct ItemRow {
  template <class V>
  PREFIXD_INLINE V Get(uint64_t column) const {
    return PREFIXD_ISA::Get<V>(items + column);
  }
  template <class V>
  PREFIXD_INLINE void Put(uint64_t column, V item) {
    PREFIXD_ISA::Put(items + column, item);
  }
  PREFIXD_INLINE void SetAll(uint64_t count, Item item) { PREFIXD_ISA::SetAll(items, count, item); }

  Item items[kMaxColumns<Item>];
};
template <class T>
struct ItemRow<Scaled<T>> {
  template <class V>
  PREFIXD_INLINE Scaled<V> Get(uint64_t column) const {
    return {sums.template Get<V>(column), exponents.template Get<V>(column)};
  }
  template <class V>
  PREFIXD_INLINE void Put(uint64_t column, Scaled<V> item) {
    sums.Put(column, item.sum);
    exponents.Put(column, item.exponent);
  }
  PREFIXD_INLINE void SetAll(uint64_t count, Scaled<T> item) {
    sums.SetAll(count, item.sum);
    exponents.SetAll(count, item.exponent);
  }

  ItemRow<T> sums;
  ItemRow<T> exponents;
};

// An item in every lane.
template <class V, class T>
PREFIXD_INLINE V InAll(T item) {
  return item - V{};  // - (+0) keeps a -0.
}
template <class V, class T>
PREFIXD_INLINE Scaled<V> InAll(Scaled<T> item) {
  return {InAll<V>(item.sum), InAll<V>(item.exponent)};
}

// The rows of a part, in the order of the scan.
template <class In, class Out>
struct Rows {
  explicit PREFIXD_INLINE Rows(const ColumnPart& part)
      : in(static_cast<const In*>(part.in)), out(static_cast<Out*>(part.out)), pitch(part.pitch), out_pitch(pitch) {}
  PREFIXD_INLINE void Skip(int num_rows) {
    in += num_rows * pitch;
    out += num_rows * out_pitch;
  }
  const In* in;
  Out* out;
  int64_t pitch;
  int64_t out_pitch;
};

// Copies bytes, of which whole lines of the cache go past it.
PREFIXD_INLINE void StreamLines(const uint8_t* from, uint8_t* to, uint64_t num_bytes) {
  constexpr uint64_t kLineBytes = 64;
  uint64_t i = -reinterpret_cast<uintptr_t>(to) % kLineBytes;
  if (i > num_bytes) i = num_bytes;
  __builtin_memcpy(to, from, i);
  for (; i + kLineBytes <= num_bytes; i += kLineBytes) {
    for (uint64_t k = i; k < i + kLineBytes; k += kVectorBytes) Stream(to + k, Load(from + k));
  }
  __builtin_memcpy(to + i, from + i, num_bytes - i);
}

// Calls scan(rows, first_row, num_rows) for run after run of a part, of which the last may have fewer rows. Results
// that go past the caches are made in the first-level cache, and move on from there line by line.
template <class In, class Out, class ScanRows>
PREFIXD_INLINE void ForRuns(const ColumnPart& part, ScanRows scan) {
  Rows<In, Out> rows(part);
  const uint64_t row_bytes = part.num_columns * sizeof(Out);
  alignas(64) Out block[kRunItems * kStripBytes / sizeof(Out)];
  for (uint64_t row = 0; row < part.num_rows; row += kRunItems, rows.Skip(kRunItems)) {
    const uint64_t left = part.num_rows - row;
    const int num_rows = left < kRunItems ? static_cast<int>(left) : kRunItems;
    Rows<In, Out> made = rows;
    if (part.stream) {
      made.out = block;
      made.out_pitch = static_cast<int64_t>(part.num_columns);
    }
    scan(made, row, num_rows);
    for (int i = 0; part.stream && i < num_rows; ++i) {
      const auto* const from = reinterpret_cast<const uint8_t*>(block) + static_cast<uint64_t>(i) * row_bytes;
      auto* const to = reinterpret_cast<uint8_t*>(rows.out + i * rows.pitch);
      StreamLines(from, to, row_bytes);
    }
  }
  if (part.stream) FinishStreaming();
}

// ---- Where every order gives the same bits -------------------------------------------------------------------------
template <class In, class Out, Op kOp, bool kExclusive, int kRows, class Key>
PREFIXD_INLINE void ScanUnorderedRows(const Rows<In, Out>& rows, uint64_t num_columns, Key* before) {
  using O = decltype(OperatorOf<kOp>());
  using T = Accumulator<Out>;
  const auto keys = KeysOf<kOp, T>();
  ForColumns<Key>(
      num_columns, [&](auto type, uint64_t column) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        V key = Get<V>(before + column);
        for (int row = 0; row < kRows; ++row) {
          const In* const in = rows.in + row * rows.pitch + column;
          __builtin_prefetch(in + kRowsAhead * rows.pitch);
          const V next = O::Of(key, keys.KeyOf(GetAs<V, T>(in)));
          PutAs<T>(rows.out + row * rows.out_pitch + column, keys.ElementOf(kExclusive ? key : next));
          key = next;
        }
        Put(before + column, key);
      });
}

template <class In, class Out, Op kOp, bool kExclusive>
PREFIXD_INLINE void ScanUnordered(const ColumnPart& part) {
  using T = Accumulator<Out>;
  using Key = typename decltype(KeysOf<kOp, T>())::Key;
  const auto keys = KeysOf<kOp, T>();
  Key before[kMaxColumns<T>];
  SetAll(before, part.num_columns, keys.KeyOf(BitsOf<Key>(part.start)));
  if (part.starts != nullptr) {
    ForColumns<Key>(
        part.num_columns, [&](auto type, uint64_t column) __attribute__((always_inline)) {
          using V = typename decltype(type)::Type;
          Put(before + column, keys.KeyOf(GetAs<V, T>(static_cast<const T*>(part.starts->last) + column)));
        });
  }
  ForRuns<In, Out>(
      part, [&](Rows<In, Out> rows, uint64_t /*row*/, int num_rows) __attribute__((always_inline)) {
        if (num_rows == kRunItems) {
          ScanUnorderedRows<In, Out, kOp, kExclusive, kRunItems>(rows, part.num_columns, before);
          return;
        }
        for (int row = 0; row < num_rows; ++row, rows.Skip(1)) {
          ScanUnorderedRows<In, Out, kOp, kExclusive, 1>(rows, part.num_columns, before);
        }
      });
}

template <class In, class Out, Op kOp, int kRows, class Key>
PREFIXD_INLINE void ReduceUnorderedRows(const Rows<In, Out>& rows, uint64_t num_columns, Key* before) {
  using O = decltype(OperatorOf<kOp>());
  using T = Accumulator<Out>;
  const auto keys = KeysOf<kOp, T>();
  ForColumns<Key>(
      num_columns, [&](auto type, uint64_t column) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        V key = Get<V>(before + column);
        for (int row = 0; row < kRows; ++row) {
          const In* const in = rows.in + row * rows.pitch + column;
          __builtin_prefetch(in + kRowsAhead * rows.pitch);
          key = O::Of(key, keys.KeyOf(GetAs<V, T>(in)));
        }
        Put(before + column, key);
      });
}

template <class In, class Out, Op kOp>
PREFIXD_INLINE void ReduceUnordered(const ColumnPart& part) {
  using T = Accumulator<Out>;
  using Key = typename decltype(KeysOf<kOp, T>())::Key;
  const auto keys = KeysOf<kOp, T>();
  Key before[kMaxColumns<T>];
  SetAll(before, part.num_columns, keys.KeyOf(BitsOf<Key>(part.start)));
  Rows<In, Out> rows(part);
  uint64_t left = part.num_rows;
  for (; left >= kRunItems; left -= kRunItems, rows.in += kRunItems * rows.pitch) {
    ReduceUnorderedRows<In, Out, kOp, kRunItems>(rows, part.num_columns, before);
  }
  for (; left > 0; --left, rows.in += rows.pitch) {
    ReduceUnorderedRows<In, Out, kOp, 1>(rows, part.num_columns, before);
  }
  ForColumns<Key>(
      part.num_columns, [&](auto type, uint64_t column) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        PutAs<T>(rows.out + column, keys.ElementOf(Get<V>(before + column)));
      });
}

// ---- Floats, by operators that round -------------------------------------------------------------------------------
// The slots of a part that were added so far, for each column: PrefixTree says which block is what.
template <class Item>
struct Slots {
  ItemRow<Item> tree;  // Neutral if there are none.
  ItemRow<Item> blocks[5];
};

template <class O, class V, class Item, class Slot>
PREFIXD_INLINE void AddSlot(Slots<Item>* slots, uint32_t num_slots, uint64_t column, Slot slot) {
  int level = 0;
  for (uint32_t n = num_slots; n & 1; n >>= 1) slot = O::Of(slots->blocks[level++].template Get<V>(column), slot);
  slots->blocks[level].Put(column, slot);
  Slot tree = slot;
  for (uint32_t n = (num_slots + 1) >> ++level; n != 0; n >>= 1, ++level) {
    if (n & 1) tree = O::Of(slots->blocks[level].template Get<V>(column), tree);
  }
  slots->tree.Put(column, tree);
}

// What stands before the next row, for each column. T: a result, and an element as it is converted.
template <class T, class Item>
struct Before {
  ItemRow<T> last;       // The value of all rows so far.
  ItemRow<Item> groups;  // That up to the group that is under way,
  Slots<Item> tiles;     // and the tiles of that group,
  Slots<Item> leaves;    // the leaves of its last tile,
  Slots<Item> runs;      // and the runs of its last leaf.
};
template <class T, class O>
using BeforeOf = Before<T, std::remove_const_t<decltype(O::kNeutral)>>;

// Adds the run that begins at this row of the column.
template <class O, class V, class T, class Item, class Slot>
PREFIXD_INLINE void AddRun(Before<T, Item>* before, uint64_t row, uint64_t column, Slot slot) {
  constexpr uint32_t kLast = kJoinSlots - 1;
  const auto close = [&](Slots<Item> & slots) __attribute__((always_inline)) {
    slot = O::Of(slots.tree.template Get<V>(column), slot);
    slots.tree.Put(column, InAll<V>(O::kNeutral));
  };
  const auto run = static_cast<uint32_t>(row / kRunItems % kJoinSlots);
  if (run < kLast) return AddSlot<O, V>(&before->runs, run, column, slot);
  close(before->runs);
  const auto leaf = static_cast<uint32_t>(row / kLeafItems % kJoinSlots);
  if (leaf < kLast) return AddSlot<O, V>(&before->leaves, leaf, column, slot);
  close(before->leaves);
  const auto tile = static_cast<uint32_t>(row / kTileItems % kJoinSlots);
  if (tile < kLast) return AddSlot<O, V>(&before->tiles, tile, column, slot);
  close(before->tiles);
  before->groups.Put(column, O::Of(before->groups.template Get<V>(column), slot));
}

// Scans a run, or what there is of it.
template <class In, class Out, class O, bool kExclusive, bool kIsWhole, class T, class Item>
PREFIXD_INLINE void ScanRun(const Rows<In, Out>& rows, uint64_t first_row, int num_rows, uint64_t num_columns,
                            Before<T, Item>* before) {
  ForColumns<T>(
      num_columns, [&](auto type, uint64_t column) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        const auto groups = before->groups.template Get<V>(column);
        const auto tiles = before->tiles.tree.template Get<V>(column);
        const auto leaves = before->leaves.tree.template Get<V>(column);
        const auto runs = before->runs.tree.template Get<V>(column);
        V last = before->last.template Get<V>(column);
        auto run = runs;
        for (int row = 0; row < (kIsWhole ? kRunItems : num_rows); ++row) {
          const In* const in = rows.in + row * rows.pitch + column;
          __builtin_prefetch(in + kRowsAhead * rows.pitch);
          const auto item = O::Load(GetAs<V, T>(in));
          run = row == 0 ? item : O::Of(run, item);
          const V value = Canonical(O::ResultOf(O::Of(groups, O::Of(tiles, O::Of(leaves, O::Of(runs, run))))));
          PutAs<T>(rows.out + row * rows.out_pitch + column, kExclusive ? last : value);
          last = value;
        }
        if constexpr (kExclusive) before->last.Put(column, last);
        if constexpr (kIsWhole) AddRun<O, V>(before, first_row, column, run);
      });
}

template <class O, class T, class Item>
PREFIXD_INLINE void Begin(const ColumnPart& part, Before<T, Item>* before) {
  const Item start = O::Load(BitsOf<T>(part.start));
  before->last.SetAll(part.num_columns, Canonical(O::ResultOf(start)));
  before->groups.SetAll(part.num_columns, start);
  for (Slots<Item>* const slots : {&before->tiles, &before->leaves, &before->runs}) {
    slots->tree.SetAll(part.num_columns, O::kNeutral);
  }
  if constexpr (std::is_same_v<Item, T>) {
    if (part.starts == nullptr) return;
    const auto copy = [&](const void* from, ItemRow<T>* to) __attribute__((always_inline)) {
      __builtin_memcpy(to->items, from, part.num_columns * sizeof(T));
    };
    copy(part.starts->last, &before->last);
    copy(part.starts->groups, &before->groups);
    copy(part.starts->tiles, &before->tiles.tree);
  }
}

template <class In, class Out, class O, bool kExclusive>
PREFIXD_INLINE void ScanOrdered(const ColumnPart& part) {
  BeforeOf<Accumulator<Out>, O> before;
  Begin<O>(part, &before);
  ForRuns<In, Out>(
      part, [&](const Rows<In, Out>& rows, uint64_t row, int num_rows) __attribute__((always_inline)) {
        if (num_rows == kRunItems) {
          ScanRun<In, Out, O, kExclusive, true>(rows, row, kRunItems, part.num_columns, &before);
        } else {
          ScanRun<In, Out, O, kExclusive, false>(rows, row, num_rows, part.num_columns, &before);
        }
      });
}

// Reduces the run that begins at first_row, or what there is of it. The last one of the column gives the results.
template <class In, class Out, class O, bool kIsLast, class T, class Item>
PREFIXD_INLINE void ReduceRun(const Rows<In, Out>& rows, uint64_t first_row, int num_rows, uint64_t num_columns,
                              Before<T, Item>* before) {
  ForColumns<T>(
      num_columns, [&](auto type, uint64_t column) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        auto run = O::Load(GetAs<V, T>(rows.in + column));
        __builtin_prefetch(rows.in + column + kRowsAhead * rows.pitch);
        for (int row = 1; row < (kIsLast ? num_rows : kRunItems); ++row) {
          const In* const in = rows.in + row * rows.pitch + column;
          __builtin_prefetch(in + kRowsAhead * rows.pitch);
          run = O::Of(run, O::Load(GetAs<V, T>(in)));
        }
        if constexpr (kIsLast) {
          const auto leaf =
              O::Of(before->leaves.tree.template Get<V>(column), O::Of(before->runs.tree.template Get<V>(column), run));
          const auto group = O::Of(before->tiles.tree.template Get<V>(column), leaf);
          PutAs<T>(rows.out + column, Canonical(O::ResultOf(O::Of(before->groups.template Get<V>(column), group))));
        } else {
          AddRun<O, V>(before, first_row, column, run);
        }
      });
}

template <class In, class Out, class O>
PREFIXD_INLINE void ReduceOrdered(const ColumnPart& part) {
  BeforeOf<Accumulator<Out>, O> before;
  Begin<O>(part, &before);
  Rows<In, Out> rows(part);
  uint64_t row = 0;
  for (; row + kRunItems < part.num_rows; row += kRunItems, rows.in += kRunItems * rows.pitch) {
    ReduceRun<In, Out, O, false>(rows, row, kRunItems, part.num_columns, &before);
  }
  ReduceRun<In, Out, O, true>(rows, row, static_cast<int>(part.num_rows - row), part.num_columns, &before);
}

// ---- The table -----------------------------------------------------------------------------------------------------
template <class In, class Out, Op kOp>
void Scan(const ColumnPart& part) {
  if constexpr (IsOrdered(kDTypeOf<Out>, kOp)) {
    using O = decltype(FloatOperatorOf<kOp, Accumulator<Out>>());
    part.exclusive ? ScanOrdered<In, Out, O, true>(part) : ScanOrdered<In, Out, O, false>(part);
  } else {
    part.exclusive ? ScanUnordered<In, Out, kOp, true>(part) : ScanUnordered<In, Out, kOp, false>(part);
  }
}

template <class In, class Out, Op kOp>
void Reduce(const ColumnPart& part) {
  if constexpr (IsOrdered(kDTypeOf<Out>, kOp)) {
    ReduceOrdered<In, Out, decltype(FloatOperatorOf<kOp, Accumulator<Out>>())>(part);
  } else {
    ReduceUnordered<In, Out, kOp>(part);
  }
}

constexpr ColumnTable MakeColumns() {
  ColumnTable table = {};
  ForEachScan([&]<class In, class Out, Op kOp>() {
    constexpr int kIn = static_cast<int>(kDTypeOf<In>), kResult = static_cast<int>(kDTypeOf<Out>);
    table.scan[kIn][kResult][static_cast<int>(kOp)] = Scan<In, Out, kOp>;
    table.reduce[kIn][kResult][static_cast<int>(kOp)] = Reduce<In, Out, kOp>;
  });
  return table;
}

}  // namespace

constinit const ColumnTable kColumns = MakeColumns();

}  // namespace prefixd::cpu::PREFIXD_ISA
