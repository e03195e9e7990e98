// Scans and reduces down the columns of a matrix, each an array of its own, in the order of kernels/NUMERICS.md.
//
// Columns that stand side by side are lanes side by side, so that everything is vertical. What stands before the next
// row, kept for each column of a strip, stays in the first-level cache. Four rows, a run, are scanned together.
#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/compensated.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/each_scan.h"
#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lane_operators.h"
#include "kernels/cpu/simd/pairs.h"
#include "kernels/cpu/simd/prefix_trees.h"
#include "kernels/cpu/simd/step.h"
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

// The state of a column has a place among those of the others: its own number, but for the last vector of columns. That
// begins where it has all its lanes, within the one before it, and its columns' places follow those of the vectors
// before. So some columns have two places, and are computed twice, to the same.
template <class T>
PREFIXD_INLINE bool HaveTwoPlaces(uint64_t num_columns) {
  return num_columns > kLanes<T> && num_columns % kLanes<T> != 0;
}
template <class T>
PREFIXD_INLINE uint64_t NumPlaces(uint64_t num_columns) {
  return HaveTwoPlaces<T>(num_columns) ? num_columns - num_columns % kLanes<T> + kLanes<T> : num_columns;
}
template <class T>
PREFIXD_INLINE uint64_t ColumnAt(uint64_t place, uint64_t num_columns) {
  const bool is_last = HaveTwoPlaces<T>(num_columns) && place >= num_columns - num_columns % kLanes<T>;
  return is_last ? num_columns - kLanes<T> + place % kLanes<T> : place;
}

// Calls body(TypeOf<V>, column, place) for vectors of columns, or for each column where they don't fill one. kInTwo: by
// two calls, which is twice the code, and up to a sixth faster.
template <class T, bool kInTwo, class Body>
PREFIXD_INLINE void ForColumns(uint64_t num_columns, Body body) {
  constexpr uint64_t kL = kLanes<T>;
  if (num_columns < kL) {
    for (uint64_t column = 0; column < num_columns; ++column) body(TypeOf<T>(), column, column);
    return;
  }
  uint64_t place = 0;
  if constexpr (kInTwo) {
    for (; place + kL <= num_columns; place += kL) body(TypeOf<Vector<T>>(), place, place);
    if (place < num_columns) body(TypeOf<Vector<T>>(), num_columns - kL, place);
  } else {
    for (; place < num_columns; place += kL) {
      body(TypeOf<Vector<T>>(), place + kL <= num_columns ? place : num_columns - kL, place);
    }
  }
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

// An item for each place. V: T, or a vector of T.
template <class Item>
struct ItemRow {
  template <class V>
  PREFIXD_INLINE V Get(uint64_t place) const {
    return PREFIXD_ISA::Get<V>(items + place);
  }
  template <class V>
  PREFIXD_INLINE void Put(uint64_t place, V item) {
    PREFIXD_ISA::Put(items + place, item);
  }
  PREFIXD_INLINE void SetAll(uint64_t count, Item item) { PREFIXD_ISA::SetAll(items, count, item); }

  Item items[kMaxColumns<Item>];
};
template <template <class> class Pair, class T>
requires kIsPair<Pair>
struct ItemRow<Pair<T>> {
  template <class V>
  PREFIXD_INLINE Pair<V> Get(uint64_t place) const {
    return {firsts.template Get<V>(place), seconds.template Get<V>(place)};
  }
  template <class V>
  PREFIXD_INLINE void Put(uint64_t place, Pair<V> item) {
    const auto [first, second] = item;
    firsts.Put(place, first);
    seconds.Put(place, second);
  }
  PREFIXD_INLINE void SetAll(uint64_t count, Pair<T> item) {
    const auto [first, second] = item;
    firsts.SetAll(count, first);
    seconds.SetAll(count, second);
  }

  ItemRow<T> firsts;
  ItemRow<T> seconds;
};

// An item in every lane.
template <class V, class T>
PREFIXD_INLINE V InAll(T item) {
  return item - V{};  // - (+0) keeps a -0.
}
template <class V, template <class> class Pair, class T>
requires kIsPair<Pair> PREFIXD_INLINE Pair<V> InAll(Pair<T> item) {
  const auto [first, second] = item;
  return {InAll<V>(first), InAll<V>(second)};
}

// What O combines.
template <class O>
using ItemOf = std::remove_const_t<decltype(O::kNeutral)>;
template <class Item>
struct ElementOfItem {
  using Type = Item;
};
template <template <class> class Pair, class T>
requires kIsPair<Pair>
struct ElementOfItem<Pair<T>> {
  using Type = T;
};
// The type of its results, and of elements once they are converted.
template <class O>
using ElementOf = typename ElementOfItem<ItemOf<O>>::Type;

// The rows of a part, in the order of the scan.
template <class In, class Out>
struct Rows {
  explicit PREFIXD_INLINE Rows(const ColumnPart& part)
      : in(static_cast<const In*>(part.in)),
        out(static_cast<Out*>(part.out)),
        pitch(part.pitch),
        out_pitch(pitch),
        coefficients(static_cast<const In*>(part.coefficients)),
        coefficient_pitch(coefficients != nullptr ? pitch : 0) {}
  PREFIXD_INLINE void Skip(int num_rows) {
    in += num_rows * pitch;
    out += num_rows * out_pitch;
    coefficients += num_rows * coefficient_pitch;
  }
  const In* in;
  Out* out;
  int64_t pitch;
  int64_t out_pitch;
  const In* coefficients;  // A recurrence's.
  int64_t coefficient_pitch;
};

template <class Item>
PREFIXD_INLINE const Prefix<Item>& PrefixBefore(const ColumnPart& part, uint64_t column) {
  return *reinterpret_cast<const Prefix<Item>*>(static_cast<const std::byte*>(part.before) +
                                                column * part.before_bytes);
}

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

// Calls scan(rows, first_row, num_rows) for run after run of a part, whose rows these are, of which the last run may
// have fewer. T: that in which columns are computed. Results that go past the caches are made in the first-level cache,
// and move on from there line by line; so are those that would replace items which a column's second place still needs.
template <class T, class In, class Out, class ScanRows>
PREFIXD_INLINE void ForRuns(const ColumnPart& part, Rows<In, Out> rows, ScanRows scan) {
  const uint64_t row_bytes = part.num_columns * sizeof(Out);
  const bool made_apart = part.stream || (part.in == part.out && HaveTwoPlaces<T>(part.num_columns));
  alignas(64) Out block[kRunItems * kStripBytes / sizeof(Out)];
  for (uint64_t row = 0; row < part.num_rows; row += kRunItems, rows.Skip(kRunItems)) {
    const uint64_t left = part.num_rows - row;
    const int num_rows = left < kRunItems ? static_cast<int>(left) : kRunItems;
    Rows<In, Out> made = rows;
    if (made_apart) {
      made.out = block;
      made.out_pitch = static_cast<int64_t>(part.num_columns);
    }
    scan(made, row, num_rows);
    for (int i = 0; made_apart && i < num_rows; ++i) {
      const auto* const from = reinterpret_cast<const uint8_t*>(block) + static_cast<uint64_t>(i) * row_bytes;
      auto* const to = reinterpret_cast<uint8_t*>(rows.out + i * rows.pitch);
      part.stream ? StreamLines(from, to, row_bytes) : static_cast<void>(__builtin_memcpy(to, from, row_bytes));
    }
  }
  if (part.stream) FinishStreaming();
}

// ---- Where every order gives the same bits -------------------------------------------------------------------------
// Sets the key of what stands before each column.
template <class T, class Keys, class Key>
PREFIXD_INLINE void BeginUnordered(const ColumnPart& part, const Keys& keys, Key* before) {
  const uint64_t num_places = NumPlaces<Key>(part.num_columns);
  if (part.before_bytes == 0) {
    return SetAll(before, num_places, keys.KeyOf(BitsOf<Key>(&PrefixBefore<T>(part, 0).last)));
  }
  for (uint64_t place = 0; place < num_places; ++place) {
    const uint64_t column = ColumnAt<Key>(place, part.num_columns);
    before[place] = keys.KeyOf(BitsOf<Key>(&PrefixBefore<T>(part, column).last));
  }
}

template <class In, class Out, Op kOp, bool kExclusive, int kRows, class Key>
PREFIXD_INLINE void ScanUnorderedRows(const Rows<In, Out>& rows, uint64_t num_columns, Key* before) {
  using O = decltype(OperatorOf<kOp>());
  using T = Accumulator<Out>;
  const auto keys = KeysOf<kOp, T>();
  ForColumns<Key, kRows == kRunItems>(
      num_columns, [&](auto type, uint64_t column, uint64_t place) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        V key = Get<V>(before + place);
        for (int row = 0; row < kRows; ++row) {
          const In* const in = rows.in + row * rows.pitch + column;
          __builtin_prefetch(in + kRowsAhead * rows.pitch);
          const V next = O::Of(key, keys.KeyOf(GetAs<V, T>(in)));
          PutAs<T>(rows.out + row * rows.out_pitch + column, keys.ElementOf(kExclusive ? key : next));
          key = next;
        }
        Put(before + place, key);
      });
}

template <class In, class Out, Op kOp, bool kExclusive>
PREFIXD_INLINE void ScanUnordered(const ColumnPart& part) {
  using T = Accumulator<Out>;
  using Key = typename decltype(KeysOf<kOp, T>())::Key;
  const auto keys = KeysOf<kOp, T>();
  Key before[kMaxColumns<T>];
  BeginUnordered<T>(part, keys, before);
  ForRuns<Key>(
      part,
      Rows<In, Out>(part), [&](Rows<In, Out> rows, uint64_t /*row*/, int num_rows) __attribute__((always_inline)) {
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
  ForColumns<Key, kRows == kRunItems>(
      num_columns, [&](auto type, uint64_t column, uint64_t place) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        V key = Get<V>(before + place);
        for (int row = 0; row < kRows; ++row) {
          const In* const in = rows.in + row * rows.pitch + column;
          __builtin_prefetch(in + kRowsAhead * rows.pitch);
          key = O::Of(key, keys.KeyOf(GetAs<V, T>(in)));
        }
        Put(before + place, key);
      });
}

template <class In, class Out, Op kOp>
PREFIXD_INLINE void ReduceUnordered(const ColumnPart& part) {
  using T = Accumulator<Out>;
  using Key = typename decltype(KeysOf<kOp, T>())::Key;
  const auto keys = KeysOf<kOp, T>();
  Key before[kMaxColumns<T>];
  BeginUnordered<T>(part, keys, before);
  Rows<In, Out> rows(part);
  uint64_t left = part.num_rows;
  for (; left >= kRunItems; left -= kRunItems, rows.in += kRunItems * rows.pitch) {
    ReduceUnorderedRows<In, Out, kOp, kRunItems>(rows, part.num_columns, before);
  }
  for (; left > 0; --left, rows.in += rows.pitch) {
    ReduceUnorderedRows<In, Out, kOp, 1>(rows, part.num_columns, before);
  }
  ForColumns<Key, false>(
      part.num_columns, [&](auto type, uint64_t column, uint64_t place) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        PutAs<T>(rows.out + column, keys.ElementOf(Get<V>(before + place)));
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
PREFIXD_INLINE void AddSlot(Slots<Item>* slots, uint32_t num_slots, uint64_t place, Slot slot) {
  int level = 0;
  for (uint32_t n = num_slots; n & 1; n >>= 1) slot = O::Of(slots->blocks[level++].template Get<V>(place), slot);
  slots->blocks[level].Put(place, slot);
  Slot tree = slot;
  for (uint32_t n = (num_slots + 1) >> ++level; n != 0; n >>= 1, ++level) {
    if (n & 1) tree = O::Of(slots->blocks[level].template Get<V>(place), tree);
  }
  slots->tree.Put(place, tree);
}

// What stands before the next row, for each column.
template <class O>
struct Before {
  using T = ElementOf<O>;
  using Item = ItemOf<O>;

  ItemRow<T> last;       // The value of all rows so far.
  ItemRow<Item> groups;  // That up to the group that is under way,
  Slots<Item> tiles;     // and the tiles of that group,
  Slots<Item> leaves;    // the leaves of its last tile,
  Slots<Item> runs;      // and the runs of its last leaf.
};

// The item at this column of a row, so far behind the first of rows.
template <class O, class V, class In, class Out>
PREFIXD_INLINE auto LoadItem(const Rows<In, Out>& rows, int row, uint64_t column) {
  using T = ElementOf<O>;
  const In* const in = rows.in + row * rows.pitch + column;
  __builtin_prefetch(in + kRowsAhead * rows.pitch);
  if constexpr (std::is_same_v<O, Follow<T>>) {
    const In* const coefficient = rows.coefficients + row * rows.coefficient_pitch + column;
    __builtin_prefetch(coefficient + kRowsAhead * rows.coefficient_pitch);
    return Step<V>{Get<V>(coefficient), Get<V>(in)};
  } else {
    return O::Load(GetAs<V, T>(in));
  }
}

// Adds the run that begins at this row of the column.
template <class O, class V, class Slot>
PREFIXD_INLINE void AddRun(Before<O>* before, uint64_t row, uint64_t place, Slot slot) {
  constexpr uint32_t kLast = kJoinSlots - 1;
  const auto close = [&](auto& slots) __attribute__((always_inline)) {
    slot = O::Of(slots.tree.template Get<V>(place), slot);
    slots.tree.Put(place, InAll<V>(O::kNeutral));
  };
  const auto run = static_cast<uint32_t>(row / kRunItems % kJoinSlots);
  if (run < kLast) return AddSlot<O, V>(&before->runs, run, place, slot);
  close(before->runs);
  const auto leaf = static_cast<uint32_t>(row / kLeafItems % kJoinSlots);
  if (leaf < kLast) return AddSlot<O, V>(&before->leaves, leaf, place, slot);
  close(before->leaves);
  const auto tile = static_cast<uint32_t>(row / kTileItems % kJoinSlots);
  if (tile < kLast) return AddSlot<O, V>(&before->tiles, tile, place, slot);
  close(before->tiles);
  before->groups.Put(place, O::Of(before->groups.template Get<V>(place), slot));
}

// Scans a run, or what there is of it.
template <class O, bool kExclusive, bool kIsWhole, class In, class Out>
PREFIXD_INLINE void ScanRun(const Rows<In, Out>& rows, uint64_t first_row, int num_rows, uint64_t num_columns,
                            Before<O>* before) {
  using T = ElementOf<O>;
  ForColumns<T, kIsWhole>(
      num_columns, [&](auto type, uint64_t column, uint64_t place) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        const auto groups = before->groups.template Get<V>(place);
        const auto tiles = before->tiles.tree.template Get<V>(place);
        const auto leaves = before->leaves.tree.template Get<V>(place);
        const auto runs = before->runs.tree.template Get<V>(place);
        V last = before->last.template Get<V>(place);
        auto run = runs;
        for (int row = 0; row < (kIsWhole ? kRunItems : num_rows); ++row) {
          const auto item = LoadItem<O, V>(rows, row, column);
          run = row == 0 ? item : O::Of(run, item);
          const V value = Canonical(O::ResultOf(O::Of(groups, O::Of(tiles, O::Of(leaves, O::Of(runs, run))))));
          PutAs<T>(rows.out + row * rows.out_pitch + column, kExclusive ? last : value);
          last = value;
        }
        if constexpr (kExclusive) before->last.Put(place, last);
        if constexpr (kIsWhole) AddRun<O, V>(before, first_row, place, run);
      });
}

template <class O>
PREFIXD_INLINE void Begin(const ColumnPart& part, Before<O>* before) {
  const auto last_of = [](const Prefix<ItemOf<O>>& prefix) { return Canonical(O::ResultOf(prefix.last)); };
  const uint64_t num_places = NumPlaces<ElementOf<O>>(part.num_columns);
  if (part.before_bytes == 0) {
    const auto& prefix = PrefixBefore<ItemOf<O>>(part, 0);
    before->last.SetAll(num_places, last_of(prefix));
    before->groups.SetAll(num_places, prefix.groups);
    before->tiles.tree.SetAll(num_places, TreeOf<O>(prefix.tiles));
  } else {
    for (uint64_t place = 0; place < num_places; ++place) {
      const auto& prefix = PrefixBefore<ItemOf<O>>(part, ColumnAt<ElementOf<O>>(place, part.num_columns));
      before->last.Put(place, last_of(prefix));
      before->groups.Put(place, prefix.groups);
      before->tiles.tree.Put(place, TreeOf<O>(prefix.tiles));
    }
  }
  before->leaves.tree.SetAll(num_places, O::kNeutral);
  before->runs.tree.SetAll(num_places, O::kNeutral);
}

// Where all items have one coefficient, a row of it stands beside each row.
template <class T, class Out>
PREFIXD_INLINE void ShareCoefficient(const ColumnPart& part, ItemRow<T>* row, Rows<T, Out>* rows) {
  if (part.coefficients != nullptr) return;
  row->SetAll(part.num_columns, BitsOf<T>(part.coefficient));
  rows->coefficients = row->items;
  rows->coefficient_pitch = 0;
}

template <class In, class Out, class O, bool kExclusive>
PREFIXD_INLINE void ScanOrdered(const ColumnPart& part) {
  Before<O> before;
  Begin(part, &before);
  Rows<In, Out> rows(part);
  ItemRow<ElementOf<O>> coefficients;
  if constexpr (std::is_same_v<O, Follow<In>>) ShareCoefficient(part, &coefficients, &rows);
  ForRuns<ElementOf<O>>(
      part, rows, [&](const Rows<In, Out>& run, uint64_t row, int num_rows) __attribute__((always_inline)) {
        if (num_rows == kRunItems) {
          ScanRun<O, kExclusive, true>(run, row, kRunItems, part.num_columns, &before);
        } else {
          ScanRun<O, kExclusive, false>(run, row, num_rows, part.num_columns, &before);
        }
      });
}

// Puts an item of each column, or the result of it.
template <class O, class V, class Out, class Item>
PREFIXD_INLINE void PutValue(Out* to, Item item) {
  using T = ElementOf<O>;
  if constexpr (!std::is_same_v<Out, ItemOf<O>> || std::is_same_v<Out, T>) {
    PutAs<T>(to, Canonical(O::ResultOf(item)));
  } else if constexpr (std::is_same_v<V, T>) {
    *to = item;
  } else {
    for (int lane = 0; lane < kLanes<T>; ++lane) to[lane] = LaneAt(item, lane);
  }
}

// Reduces the run that begins at first_row, or what there is of it. The last one of the column gives the values.
template <class O, bool kIsLast, class In, class Out>
PREFIXD_INLINE void ReduceRun(const Rows<In, Out>& rows, uint64_t first_row, int num_rows, uint64_t num_columns,
                              Before<O>* before) {
  ForColumns<ElementOf<O>, !kIsLast>(
      num_columns, [&](auto type, uint64_t column, uint64_t place) __attribute__((always_inline)) {
        using V = typename decltype(type)::Type;
        auto run = LoadItem<O, V>(rows, 0, column);
        for (int row = 1; row < (kIsLast ? num_rows : kRunItems); ++row) {
          run = O::Of(run, LoadItem<O, V>(rows, row, column));
        }
        if constexpr (kIsLast) {
          const auto leaf =
              O::Of(before->leaves.tree.template Get<V>(place), O::Of(before->runs.tree.template Get<V>(place), run));
          const auto group = O::Of(before->tiles.tree.template Get<V>(place), leaf);
          PutValue<O, V>(rows.out + column, O::Of(before->groups.template Get<V>(place), group));
        } else {
          AddRun<O, V>(before, first_row, place, run);
        }
      });
}

// Out: the item that O combines, or what its result is stored as.
template <class In, class Out, class O>
PREFIXD_INLINE void ReduceOrdered(const ColumnPart& part) {
  Before<O> before;
  Begin(part, &before);
  Rows<In, Out> rows(part);
  ItemRow<ElementOf<O>> coefficients;
  if constexpr (std::is_same_v<O, Follow<In>>) ShareCoefficient(part, &coefficients, &rows);
  uint64_t row = 0;
  for (; row + kRunItems < part.num_rows; row += kRunItems) {
    ReduceRun<O, false>(rows, row, kRunItems, part.num_columns, &before);
    rows.in += kRunItems * rows.pitch;
    rows.coefficients += kRunItems * rows.coefficient_pitch;
  }
  ReduceRun<O, true>(rows, row, static_cast<int>(part.num_rows - row), part.num_columns, &before);
}

// ---- The table -----------------------------------------------------------------------------------------------------
template <class In, class Out, class O>
void ScanBy(const ColumnPart& part) {
  part.exclusive ? ScanOrdered<In, Out, O, true>(part) : ScanOrdered<In, Out, O, false>(part);
}
template <class In, class Out, class O>
void ReduceBy(const ColumnPart& part) {
  ReduceOrdered<In, Out, O>(part);
}

template <class In, class Out, Op kOp>
void Scan(const ColumnPart& part) {
  part.exclusive ? ScanUnordered<In, Out, kOp, true>(part) : ScanUnordered<In, Out, kOp, false>(part);
}
template <class In, class Out, Op kOp>
void Reduce(const ColumnPart& part) {
  ReduceUnordered<In, Out, kOp>(part);
}

template <class In, class Out, class O>
constexpr ColumnFunctions FunctionsBy() {
  return {.scan = ScanBy<In, Out, O>, .reduce = ReduceBy<In, Out, O>, .reduce_items = ReduceBy<In, ItemOf<O>, O>};
}

constexpr ColumnTable MakeColumns() {
  ColumnTable table = {};
  ForEachScan([&]<class In, class Out, Op kOp>() {
    constexpr int kIn = static_cast<int>(kDTypeOf<In>), kResult = static_cast<int>(kDTypeOf<Out>);
    using Item = Accumulator<Out>;
    if constexpr (IsOrdered(kDTypeOf<Out>, kOp)) {
      table.of[kIn][kResult][static_cast<int>(kOp)] = FunctionsBy<In, Out, decltype(FloatOperatorOf<kOp, Item>())>();
    } else {
      table.of[kIn][kResult][static_cast<int>(kOp)] = {
          .scan = Scan<In, Out, kOp>, .reduce = Reduce<In, Out, kOp>, .reduce_items = Reduce<In, Item, kOp>};
    }
  });
  constexpr int kF32 = static_cast<int>(DType::kF32), kF64 = static_cast<int>(DType::kF64);
  table.recurrences[kF32] = FunctionsBy<float, float, Follow<float>>();
  table.recurrences[kF64] = FunctionsBy<double, double, Follow<double>>();
  table.recurrences[kF32].reduce = table.recurrences[kF64].reduce = nullptr;
  table.wide_sums[kF32] = FunctionsBy<float, float, Plus<double>>();
  table.wide_sums[kF64] = FunctionsBy<double, double, AddPairs>();
  return table;
}

}  // namespace

constinit const ColumnTable kColumns = MakeColumns();

}  // namespace prefixd::cpu::PREFIXD_ISA
