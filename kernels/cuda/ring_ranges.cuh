// Arrays of any lengths that follow each other (array_ranges.cuh), through a ring of shared memory (ring.cuh), for
// sm_90 and later: a stage has a range, and the offsets of the arrays that begin in it.
//
// Each multiprocessor runs one block, whose warps have roles. Those that all kernels share are here:
//   load   one warp: takes tickets, of four ranges each, finds what they have, and starts the loads of their stages
//   tile   6 or 8 warps: each has a tile of a long array at a time. It publishes the tile's value, for which other
//          blocks wait, and waits for what stands before the tile
// The others are the kernel's own. The arrays of up to a tile that begin in a range are shared by its warps, which need
// not wait for one another: a warp that is done with a stage goes on to the next.
// Progress: as in look_back.cuh, for tickets, and tiles within them, are visited in their order.
#ifndef PREFIXD_KERNELS_CUDA_RING_RANGES_CUH_
#define PREFIXD_KERNELS_CUDA_RING_RANGES_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/array_ranges.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class T>
struct RingRangesShape {
  static constexpr int kStages = sizeof(T) >= 4 ? 14 : sizeof(T) == 2 ? 24 : 32;
  static constexpr int kMaxTeams = 2;
  static constexpr uint32_t kBufferBytes = 192 * 1024;
  static constexpr int kWordItems = 16 / sizeof(T);
  static constexpr uint64_t kMaxOffsets = 1024;  // Where a range has more, they are read where they are.
  static constexpr int kTicketRanges = 4;
  static constexpr uint32_t kTicketBytes = kTicketRanges * kRangeItems<T> * sizeof(T);
  static constexpr int kTileWarps = sizeof(T) == 8 ? 6 : 8;  // As registers suffice.
  static constexpr int kRangeTiles = 2;                      // Tiles of long arrays in a range, at most: see Range.
};

// What a stage has, and where it is in the buffer. Numbers of 32 bits are those of 64 bits without their upper half:
// what a range has is less apart.
struct RangeStage {
  Range range;
  uint32_t items;        // Where its elements begin, with the first of a word of 16 bytes;
  uint32_t end;          // and where the stage ends.
  uint32_t tile_number;  // The first of the stage's, among the block's tiles of long arrays.
  uint32_t first_item;   // That at items.
  uint32_t first_array;  // The first that begins here.
  uint32_t num_arrays;   // Those of up to a tile that begin here, if their offsets are here.
  uint32_t offsets;      // Where these offsets are. 0: they are read where they are.
};

template <class T>
struct RingRangesShared {
  using Shape = RingRangesShape<T>;
  static constexpr int kStages = Shape::kStages;

  alignas(128) unsigned char buffer[Shape::kBufferBytes];  // Stages follow each other, around.
  RangeStage stages[kStages];
  RingState<kStages> ring;

  // An item of the stage's range, or what its lower half says of one.
  __device__ T* ItemAt(const RangeStage& stage, uint32_t item) {
    return reinterpret_cast<T*>(buffer + stage.items) + (item - stage.first_item);
  }
};

// The lane's run of a leaf in shared memory, wherever it begins. Lanes that would meet in a bank begin with different
// items of their runs.
template <class T>
class LaneItems {
 public:
  __device__ LaneItems() : turn_(LaneOfWarp() * kRunItems * sizeof(T) / kBankBytes * kBankItems % kRunItems) {}

  // Those of num_items that exist; the others are zero. kWhole: all exist.
  template <bool kWhole>
  __device__ void Load(const T* s_leaf, int num_items, T (&run)[kRunItems]) const {
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) run[k] = kWhole || ItemOf(k) < num_items ? s_leaf[ItemOf(k)] : T{};
    Turn(run, kRunItems - turn_);
  }
  template <bool kWhole>
  __device__ void Store(T* s_leaf, int num_items, T (&run)[kRunItems]) const {
    Turn(run, turn_);
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) {
      if (kWhole || ItemOf(k) < num_items) s_leaf[ItemOf(k)] = run[k];
    }
  }

 private:
  static constexpr int kBankBytes = 128;
  static constexpr int kBankItems = sizeof(T) < 4 ? 4 / sizeof(T) : 1;

  __device__ int ItemOf(int k) const { return LaneOfWarp() * kRunItems + (k + turn_) % kRunItems; }
  // Moves each item to the place that is `by` before its own, around.
  static __device__ void Turn(T (&run)[kRunItems], int by) {
    static_assert(kRunItems == 4);
    if ((by & 1) != 0) {
      const T first = run[0];
      run[0] = run[1], run[1] = run[2], run[2] = run[3], run[3] = first;
    }
    if ((by & 2) != 0) {
      T other = run[0];
      run[0] = run[2], run[2] = other;
      other = run[1];
      run[1] = run[3], run[3] = other;
    }
  }

  const int turn_;
};

// The values of a tile's leaves, that of leaf l on lane l; neutral where there is none. Eight are worked on at once,
// which hide each other's waiting.
template <class Operator, bool kWhole, class T, class Item = typename Operator::Item>
__device__ Item LeafValuesOf(const T* s_items, int num_items, const LaneItems<T>& lane, Item neutral) {
  constexpr int kRows = sizeof(Item) > 4 ? 4 : 8;
  const int row_of_lane = LaneOfWarp() % kRows;
  Item values = neutral;
  for (int first = 0; first < kJoinSlots && first * kLeafItems < num_items; first += kRows) {
    Item runs[kRows];
    Item last_run = neutral;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int begin = (first + row) * kLeafItems;
      const int num_valid = num_items - begin;
      const int mine = num_valid - LaneOfWarp() * kRunItems;
      T run[kRunItems];
      lane.template Load<kWhole>(s_items + begin, num_valid, run);
      runs[row] = kWhole || mine > 0 ? Operator::Load(run[0]) : neutral;
#pragma unroll
      for (int k = 1; k < kRunItems; ++k) {
        if (kWhole || k < mine) runs[row] = Operator::Combine(runs[row], Operator::Load(run[k]));
      }
      if constexpr (!Operator::kAnyOrder) {
        const int last = kWhole ? kJoinSlots - 1 : LastSlot(num_valid, kRunItems);
        const Item value = ShuffleFrom(runs[row], last);
        if (row_of_lane == row) last_run = value;
        if (LaneOfWarp() >= last) runs[row] = neutral;
      }
    }
    Item value = WarpTreeOfRows<Operator>(runs);
    if constexpr (!Operator::kAnyOrder) value = Operator::Combine(value, last_run);
    if (LaneOfWarp() / kRows == first / kRows) values = value;
  }
  return values;
}
template <class Operator, class T, class Item = typename Operator::Item>
__device__ Item LeafValues(const T* s_items, int num_items, const LaneItems<T>& lane, Item neutral) {
  return num_items == kTileItems ? LeafValuesOf<Operator, true>(s_items, num_items, lane, neutral)
                                 : LeafValuesOf<Operator, false>(s_items, num_items, lane, neutral);
}

// What the roles need. Params has view, num_ranges, num_tiles (the number of tickets) and states.
template <class T, class Params>
class RingRanges {
 public:
  using Shape = RingRangesShape<T>;
  using Shared = RingRangesShared<T>;
  using Position = RingPosition<Shape::kStages>;

  __device__ RingRanges(const Params& p, const T* in, Shared& s) : p_(p), in_(in), s_(s) {}

  // ---- Load: one warp ----
  __device__ void Load() {
    Position at;
    // From then on that a ticket is taken, other blocks may wait for its tiles. So there has to be room for them.
    uint32_t ticket = Take();
    Part part = PartOf(ticket);
    while (ticket < p_.num_tiles) {
      // Where there is room for it too, the next one is taken, and looked up, while this one's stages are loaded.
      const bool is_ahead = HasRoom(2 * Shape::kTicketBytes);
      const uint64_t first = uint64_t{ticket} * Shape::kTicketRanges;
      uint32_t next = 0;
      RangeBegin begin;
#pragma unroll
      for (int sub = 0; sub < Shape::kTicketRanges; ++sub) {
        if (is_ahead && sub == 0 && LaneOfWarp() == 0) next = p_.states.TakeTile();
        if (is_ahead && sub == 1) next = ShuffleFrom(next, 0), begin = BeginOf(next);
        if (first + sub >= p_.num_ranges) continue;
        LoadStage(at.stage, ticket, sub, part);
        at.Next();
      }
      if (!is_ahead) {
        WaitForRoom(Shape::kTicketBytes);
        next = Take();
        begin = BeginOf(next);
      }
      ticket = next;
      part = PartOf(ticket, begin);
    }
    for (int team = 0; team < Shape::kMaxTeams; ++team, at.Next()) {  // Each team finds an end.
      WaitForRoom(0);
      ++num_stages_;
      if (LaneOfWarp() != 0) continue;
      s_.ring.tickets[at.stage] = s_.ring.kEnd;
      s_.ring.loaded[at.stage].Arrive();
    }
  }

  // Calls visit(position, stage) for every stage, in order, when it is loaded; with kTeams only for each kTeams-th,
  // from number `team` on. Any warp may call it that keeps these stages from being freed.
  template <int kTeams = 1, class Visit>
  __device__ void ForEachStage(Visit&& visit, int team = 0) {
    static_assert(Shape::kStages % kTeams == 0 && kTeams <= Shape::kMaxTeams);
    Position at = {.stage = static_cast<uint32_t>(team)};
    const auto next = [&at] {
      for (int i = 0; i < kTeams; ++i) at.Next();
    };
    for (;; next()) {
      s_.ring.loaded[at.stage].Wait(at.parity);
      if (s_.ring.tickets[at.stage] == s_.ring.kEnd) return;
      visit(at, s_.stages[at.stage]);
    }
  }

  // ---- Tile: calls visit(position, slot, tile) for those of the warp, which then arrives at done[stage] ----
  template <class Visit>
  __device__ void ForTiles(int warp, Barrier* done, Visit&& visit) {
    ForEachStage([&](Position at, const RangeStage& stage) {
      uint32_t number = stage.tile_number;
      const Range& range = stage.range;
      if (range.has_earlier && number++ % Shape::kTileWarps == warp) visit(at, 0, range.earlier);
      if (range.has_last && number % Shape::kTileWarps == warp) visit(at, 1, range.last);
      ArriveAsWarp(done[at.stage]);
    });
  }

  // For the arrays of a stage that have no more than a tile, one of kWarps warps: calls by_thread(items, num_items)
  // in some lanes at once, or by_warp(items, num_items) in all. None is called for empty arrays.
  template <int kWarps, class ByThread, class ByWarp>
  __device__ void ForArrays(const RangeStage& stage, int warp, ByThread by_thread, ByWarp by_warp) {
    constexpr uint32_t kChunkArrays = kWarps * kWarpThreads;
    constexpr int kMinThreads = 4;  // From here on a lane each is faster.
    static_assert((kWarps & (kWarps - 1)) == 0);
    // The lane's array: where it begins, and how many items it has, or 0.
    const auto visit = [&](uint32_t begin, int num_items) {
      uint32_t lanes = __ballot_sync(kAllLanes, num_items > 0);
      const bool is_short = num_items > 0 && num_items <= kMaxThreadItems;
      const uint32_t short_lanes = __ballot_sync(kAllLanes, is_short);
      if (__popc(short_lanes) >= kMinThreads) {
        if (is_short) by_thread(s_.ItemAt(stage, begin), num_items);
        lanes &= ~short_lanes;
        __syncwarp();
      }
      for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __ffs(static_cast<int>(lanes)) - 1;
        by_warp(s_.ItemAt(stage, ShuffleFrom(begin, lane)), ShuffleFrom(num_items, lane));
      }
    };
    // Numbers of arrays decide which are the warp's, so that those of all stages are shared evenly.
    const uint32_t first = (warp - stage.first_array) % kWarps;
    if (stage.offsets != 0) {
      const auto* const s_offsets = reinterpret_cast<const Offset*>(s_.buffer + stage.offsets);
      for (uint32_t chunk = first; chunk < stage.num_arrays; chunk += kChunkArrays) {
        const uint32_t number = chunk + LaneOfWarp() * kWarps;
        uint32_t begin = 0, end = 0;
        if (number < stage.num_arrays) begin = s_offsets[number].low, end = s_offsets[number + 1].low;
        visit(begin, static_cast<int>(end - begin));
      }
      return;
    }
    const Range& range = stage.range;
    for (uint64_t chunk = range.first_array; chunk < range.end_array;
         chunk = NextChunk(p_.view, range, chunk, kChunkArrays)) {
      const uint64_t array = chunk + first + LaneOfWarp() * kWarps;
      ArrayBounds bounds = {};
      if (array < range.end_array) bounds = {p_.view.Begin(array), p_.view.Begin(array + 1)};
      const uint64_t length = bounds.end - bounds.begin;
      visit(static_cast<uint32_t>(bounds.begin), length > kTileItems ? 0 : static_cast<int>(length));
    }
  }

 private:
  struct Offset {
    uint32_t low;
    uint32_t high;
  };

  // A stage without items takes room too: else one that is alone would look as if it filled the buffer.
  static constexpr uint32_t kMinRoom = kBulkAlignment;

  // What lane l has of a ticket: its range l, what is loaded for it, and how much of the buffer that takes.
  struct Part {
    Range range;
    uint64_t first_item;  // The first of a word of 16 bytes, as are the others.
    uint64_t first_offset;
    uint32_t item_bytes;
    uint32_t offset_bytes;
    uint32_t room;  // For the items.
  };

  // Called by all lanes.
  __device__ uint32_t Take() const { return ShuffleFrom(LaneOfWarp() == 0 ? p_.states.TakeTile() : 0, 0); }
  // Where the lane's range begins; in the lane behind the last, where that ends.
  __device__ RangeBegin BeginOf(uint32_t ticket) const {
    const uint64_t number = uint64_t{ticket} * Shape::kTicketRanges + LaneOfWarp();
    if (LaneOfWarp() > Shape::kTicketRanges || number > p_.num_ranges) return {};
    return p_.view.BeginOfRange(number, kRangeItems<T>);
  }
  __device__ Part PartOf(uint32_t ticket) const { return PartOf(ticket, BeginOf(ticket)); }
  __device__ Part PartOf(uint32_t ticket, const RangeBegin& begin) const {
    constexpr uint64_t kWordItems = Shape::kWordItems;
    const int next = LaneOfWarp() + 1;
    const RangeBegin end = {ShuffleFrom(begin.array, next), ShuffleFrom(begin.begin, next),
                            ShuffleFrom(begin.before, next)};
    const uint64_t number = uint64_t{ticket} * Shape::kTicketRanges + LaneOfWarp();
    const Range range(p_.view, number, p_.num_ranges, kRangeItems<T>, begin, end);
    const uint64_t first_item = range.begin / kWordItems * kWordItems;
    const uint64_t end_word = (range.end + kWordItems - 1) / kWordItems;
    const uint64_t whole = min(end_word, p_.view.num_items / kWordItems) * kWordItems;
    const bool has_items = range.end > range.begin && whole > first_item;
    const uint64_t first_offset = range.first_array / 2 * 2;
    const uint64_t num_offsets = (range.end_array + 2) / 2 * 2 - first_offset;
    const bool has_offsets = p_.view.offsets != nullptr && num_offsets <= Shape::kMaxOffsets &&
                             first_offset + num_offsets <= p_.view.num_arrays + 1;
    return {range,
            first_item,
            first_offset,
            has_items ? static_cast<uint32_t>((whole - first_item) * sizeof(T)) : 0,
            has_offsets ? static_cast<uint32_t>(num_offsets * sizeof(uint64_t)) : 0,
            max(static_cast<uint32_t>((end_word * kWordItems - first_item) * sizeof(T)), kMinRoom)};
  }

  // Whether there is a stage, and the buffer has so many bytes that follow each other.
  __device__ bool HasRoomNow(uint32_t num_bytes) const {
    if (num_stages_ == 0) return true;
    if (num_stages_ == Shape::kStages) return false;
    // Stages lie from tail_ to head_, or from tail_ to the buffer's end and from its beginning to head_.
    return head_ > tail_ ? head_ + num_bytes <= Shape::kBufferBytes || num_bytes <= tail_ : head_ + num_bytes <= tail_;
  }
  __device__ void DropOldest() {
    tail_ = s_.stages[oldest_.stage].end;
    oldest_.Next();
    if (--num_stages_ == 0) head_ = tail_ = 0;
  }
  __device__ bool HasRoom(uint32_t num_bytes) {
    while (!HasRoomNow(num_bytes)) {
      if (!__all_sync(kAllLanes, s_.ring.freed[oldest_.stage].HasEnded(oldest_.parity))) return false;
      DropOldest();
    }
    return true;
  }
  __device__ void WaitForRoom(uint32_t num_bytes) {
    while (!HasRoomNow(num_bytes)) {
      s_.ring.freed[oldest_.stage].Wait(oldest_.parity);
      DropOldest();
    }
  }

  // Called by all lanes, of which one has the part.
  __device__ void LoadStage(uint32_t stage, uint32_t ticket, int lane, const Part& part) {
    const uint32_t num_bytes = ShuffleFrom(part.room + part.offset_bytes, lane);
    WaitForRoom(num_bytes);
    if (head_ > tail_ && head_ + num_bytes > Shape::kBufferBytes) head_ = 0;
    const uint32_t begin = head_;
    head_ += num_bytes;
    ++num_stages_;
    const Range& range = part.range;
    const int has_tiles = (range.has_earlier ? 1 : 0) + (range.has_last ? 1 : 0);
    if (LaneOfWarp() == lane) {
      const uint32_t offsets = begin + part.room;
      const auto skipped = static_cast<uint32_t>(range.first_array - part.first_offset);
      s_.stages[stage] = {
          .range = range,
          .items = begin,
          .end = head_,
          .tile_number = num_tiles_,
          .first_item = static_cast<uint32_t>(part.first_item),
          .first_array = static_cast<uint32_t>(range.first_array),
          .num_arrays = static_cast<uint32_t>(range.end_array - range.first_array) - (range.has_last ? 1 : 0),
          .offsets = part.offset_bytes != 0 ? offsets + skipped * static_cast<uint32_t>(sizeof(uint64_t)) : 0};
      s_.ring.tickets[stage] = ticket;
      auto* const s_items = reinterpret_cast<T*>(s_.buffer + begin);
      // What is left of the last word of all.
      for (uint64_t i = max(part.first_item + part.item_bytes / sizeof(T), range.begin); i < range.end; ++i) {
        s_items[i - part.first_item] = in_[i];
      }
      Barrier* const loaded = &s_.ring.loaded[stage];
      loaded->ArriveExpecting(part.item_bytes + part.offset_bytes);
      if (part.item_bytes > 0) BulkLoad(s_items, in_ + part.first_item, part.item_bytes, loaded);
      if (part.offset_bytes > 0) {
        BulkLoad(s_.buffer + offsets, p_.view.offsets + part.first_offset, part.offset_bytes, loaded);
      }
    }
    num_tiles_ += ShuffleFrom(has_tiles, lane);
    __syncwarp();
  }

  const Params& p_;
  const T* const in_;
  Shared& s_;
  // The load warp's: where the oldest stage in the buffer begins, and the newest ends.
  uint32_t tail_ = 0;
  uint32_t head_ = 0;
  int num_stages_ = 0;
  Position oldest_;
  uint32_t num_tiles_ = 0;  // Tiles of long arrays, so far.
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_RANGES_CUH_
