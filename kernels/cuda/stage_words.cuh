// Stages of the ring (ring.cuh) whose elements begin anywhere: bulk copies bring whole words of 16 bytes, so a stage
// has the words that its elements stand in, as memory has them. All stages of an array begin at the same place in a
// word.
//
// Lanes read vectors, their own part of a row and a piece of what is behind it, and shift the words into place. Results
// are shifted the other way. How far is the same in all lanes, so each distance has its own code.
#ifndef PREFIXD_KERNELS_CUDA_STAGE_WORDS_CUH_
#define PREFIXD_KERNELS_CUDA_STAGE_WORDS_CUH_

#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// How far into a word of `word_bytes`, a power of two, an address is.
inline __device__ uint32_t BytesIntoWord(const void* address, uint32_t word_bytes = kBulkAlignment) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address)) % word_bytes;
}

// A whole stage's elements in memory, from `first` on, and where they go: num_bytes and another word.
template <class T>
class WordsOfStage {
 public:
  // items_behind: how many elements the array has behind them. Their last word is loaded whole where it can't be the
  // last of the array: else what they have of it is copied here. So the stage must be free.
  __device__ WordsOfStage(unsigned char* s_stage, const unsigned char* first, uint32_t num_bytes, uint64_t items_behind)
      : s_stage_(s_stage), first_(first - BytesIntoWord(first)), num_bytes_(num_bytes) {
    const uint32_t skipped = BytesIntoWord(first);
    if (skipped == 0) return;
    if (items_behind * sizeof(T) >= kBulkAlignment) {
      num_bytes_ += kBulkAlignment;
      return;
    }
    for (uint32_t i = num_bytes - skipped; i < num_bytes; i += sizeof(T)) {
      *reinterpret_cast<T*>(s_stage + skipped + i) = *reinterpret_cast<const T*>(first + i);
    }
  }
  // What the barrier expects of Load.
  __device__ uint32_t num_bytes() const { return num_bytes_; }
  __device__ void Load(Barrier* barrier) const { BulkLoad(s_stage_, first_, num_bytes_, barrier); }

 private:
  unsigned char* const s_stage_;
  const unsigned char* const first_;
  uint32_t num_bytes_;
};

// Starts to bring a stage into the cache.
inline __device__ void PrefetchWords(const unsigned char* first, uint32_t num_bytes) {
  BulkPrefetch(first - BytesIntoWord(first), num_bytes);
}

// A lane's part of a row is kWords words of 4 bytes. It is read and written in units.
template <int kWords>
inline constexpr uint32_t kUnitWords = kWords < 4 ? kWords : 4;
template <int kWords>
inline constexpr uint32_t kUnitBytes = 4 * kUnitWords<kWords>;

// Which part of a row, in memory order, a lane has: the last one first where the row is reversed.
inline __device__ int PlaceOfLane(bool reverse) { return reverse ? kWarpThreads - 1 - LaneOfWarp() : LaneOfWarp(); }

// The words that begin `num_bytes` further on, in several rows. num_bytes: less than a unit, a multiple of kItemBytes,
// and the same in all lanes.
template <int kItemBytes, int kRows, int kWords>
__device__ void SkipBytes(const uint32_t (&all)[kRows][kWords + kUnitWords<kWords>], uint32_t num_bytes,
                          uint32_t (&words)[kRows][kWords]) {
#pragma unroll
  for (uint32_t skipped = 0; skipped < kUnitWords<kWords>; ++skipped) {
    if (num_bytes / 4 != skipped) continue;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        words[row][w] = kItemBytes >= 4
                            ? all[row][skipped + w]
                            : __funnelshift_r(all[row][skipped + w], all[row][skipped + w + 1], 8 * (num_bytes % 4));
      }
    }
  }
}

// Calls visit(row, elements) for each of kRows rows in shared memory, with the lane's part of the row as four elements.
// The first row begins at `s_row`, each other one behind it, or before it if the rows are reversed; in them, lane 31
// has what stands first. Up to a unit behind a row is read too. Called by all lanes.
template <class Element, int kItemBytes, int kRows, class Visit>
__device__ void VisitRowsAnywhere(const unsigned char* s_row, bool reverse, Visit&& visit) {
  constexpr int kWords = sizeof(Element);
  constexpr int kAllWords = kWords + kUnitWords<kWords>;
  constexpr int kRowBytes = 4 * kWords * kWarpThreads;
  constexpr int kGroup = kRows < 16 / kWords ? kRows : 16 / kWords;  // Rows whose words are read at once.
  static_assert(kRows % kGroup == 0);
  const uint32_t skipped = BytesIntoWord(s_row, kUnitBytes<kWords>);
  const unsigned char* s_part = s_row - skipped + PlaceOfLane(reverse) * 4 * kWords;
#pragma unroll
  for (int first = 0; first < kRows; first += kGroup) {
    uint32_t all[kGroup][kAllWords];
#pragma unroll
    for (int row = 0; row < kGroup; ++row, s_part += reverse ? -kRowBytes : kRowBytes) {
#pragma unroll
      for (int w = 0; w < kAllWords; w += kUnitWords<kWords>) {
        const auto unit = *reinterpret_cast<const Vector<uint32_t, kUnitWords<kWords>>*>(s_part + 4 * w);
#pragma unroll
        for (uint32_t i = 0; i < kUnitWords<kWords>; ++i) all[row][w + i] = unit.items[i];
      }
    }
    uint32_t words[kGroup][kWords];
    SkipBytes<kItemBytes, kGroup, kWords>(all, skipped, words);
#pragma unroll
    for (int row = 0; row < kGroup; ++row) {
      Element elements[4];
      memcpy(elements, words[row], sizeof(elements));
      visit(first + row, elements);
    }
  }
}

// Stores rows of T, whose parts each lane has in `words`, wherever they begin. They lie as those of VisitRowsAnywhere.
// Called by all lanes.
template <class T, int kRows, int kWords>
class RowStore {
 public:
  // row: where the first one goes.
  __device__ RowStore(unsigned char* row, bool reverse)
      : row_(row),
        reverse_(reverse),
        place_(PlaceOfLane(reverse)),
        before_(reverse ? LaneOfWarp() + 1 : LaneOfWarp() - 1) {}

  // Needs: the first row begins with a unit.
  __device__ void StoreAligned(const uint32_t (&words)[kRows][kWords]) const {
#pragma unroll
    for (int row = 0; row < kRows; ++row) StoreUnits(Row(row), words[row], /*has_first=*/true);
  }

  __device__ void Store(const uint32_t (&words)[kRows][kWords]) const {
    const uint32_t into_unit = BytesIntoWord(row_, kUnitBytes<kWords>);
    if (into_unit == 0) return StoreAligned(words);
    const auto store = [&]<int... kSkipped>(std::integer_sequence<int, kSkipped...>) {
      ((into_unit / 4 == kSkipped ? StoreShifted<kSkipped>(words, into_unit) : void()), ...);
    };
    store(std::make_integer_sequence<int, kUnitWords<kWords>>());
    if constexpr (sizeof(T) == 8) {
      StoreEndItems(words);
    } else {
      StoreEnds(words, kUnitBytes<kWords> - into_unit);
    }
  }

 private:
  static constexpr int kRowBytes = 4 * kWords * kWarpThreads;
  using Unit = Vector<uint32_t, kUnitWords<kWords>>;

  __device__ unsigned char* Row(int row) const { return row_ + row * (reverse_ ? -kRowBytes : kRowBytes); }

  // Stores the whole units of rows that begin into_unit bytes behind one; these are kSkipped whole words, and less than
  // one more.
  template <int kSkipped>
  __device__ void StoreShifted(const uint32_t (&words)[kRows][kWords], uint32_t into_unit) const {
    // A lane's part begins with so many words, or parts of them, that the lane in front has; that of the first lane has
    // them from the last lane of the row in front.
    constexpr int kBefore = sizeof(T) >= 4 ? kSkipped : kSkipped + 1;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      uint32_t all[kBefore + kWords];
#pragma unroll
      for (int w = 0; w < kBefore; ++w) {
        const int from = kWords - kBefore + w;
        const uint32_t of_row_before =
            reverse_ ? words[row + 1 < kRows ? row + 1 : row][from] : words[row > 0 ? row - 1 : row][from];
        all[w] = ShuffleFrom(place_ == kWarpThreads - 1 ? of_row_before : words[row][from], before_);
      }
#pragma unroll
      for (int w = 0; w < kWords; ++w) all[kBefore + w] = words[row][w];
      uint32_t shifted[kWords];
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        if constexpr (sizeof(T) >= 4) {
          shifted[w] = all[w];
        } else {
          shifted[w] = __funnelshift_l(all[w], all[w + 1], 8 * (into_unit % 4));
        }
      }
      StoreUnits(Row(row) - into_unit, shifted, place_ != 0 || row != (reverse_ ? kRows - 1 : 0));
    }
  }

  // has_first: whether the lane's first unit is whole.
  __device__ void StoreUnits(unsigned char* first, const uint32_t (&words)[kWords], bool has_first) const {
    auto* const units = reinterpret_cast<Unit*>(first);
    if constexpr (kWords == kUnitWords<kWords>) {
      if (has_first) units[place_] = UnitOf(words, 0);
    } else {
      // By whole sectors: neighbouring lanes swap halves, and store the even lane's, then the odd lane's.
      static_assert(kWords == 2 * kUnitWords<kWords>);
      const bool is_odd = place_ % 2 != 0;
      const Unit low = UnitOf(words, 0), high = UnitOf(words, kUnitWords<kWords>);
      Unit swapped;
#pragma unroll
      for (uint32_t w = 0; w < kUnitWords<kWords>; ++w) {
        swapped.items[w] = ShuffleFrom(is_odd ? low.items[w] : high.items[w], LaneOfWarp() ^ 1);
      }
      Unit* const halves = units + place_ / 2 * 4 + place_ % 2;
      if (has_first) halves[0] = is_odd ? swapped : low;
      halves[2] = is_odd ? high : swapped;
    }
    __syncwarp();  // The rows are stored one by one: bursts of stores would get in the way of loads.
  }
  static __device__ Unit UnitOf(const uint32_t (&words)[kWords], int first) {
    Unit unit;
#pragma unroll
    for (uint32_t w = 0; w < kUnitWords<kWords>; ++w) unit.items[w] = words[first + w];
    return unit;
  }

  // Stores what lies outside of whole units: the first `head` bytes, and as many at the end as a unit has more. Each
  // lane has an item, the lower half of them one of the first unit, and the upper half one of the last.
  __device__ void StoreEnds(const uint32_t (&words)[kRows][kWords], uint32_t head) const {
    constexpr int kLastUnit = kWords - kUnitWords<kWords>;
    const bool is_first = LaneOfWarp() < kWarpThreads / 2;
    const int source = is_first == reverse_ ? kWarpThreads - 1 : 0;        // The lane that has the unit.
    const uint32_t place = LaneOfWarp() % (kWarpThreads / 2) * sizeof(T);  // In the unit.
    uint32_t of_item = 0;
#pragma unroll
    for (uint32_t w = 0; w < kUnitWords<kWords>; ++w) {
      const uint32_t of_first = reverse_ ? words[kRows - 1][w] : words[0][w];
      const uint32_t of_last = reverse_ ? words[0][kLastUnit + w] : words[kRows - 1][kLastUnit + w];
      const uint32_t word = ShuffleFrom(place_ == 0 ? of_first : of_last, source);
      if (place / 4 == w) of_item = word;
    }
    of_item >>= 8 * (place % 4);
    if (is_first ? place >= head : place < head || place >= kUnitBytes<kWords>) return;
    T item;
    memcpy(&item, &of_item, sizeof(item));
    unsigned char* const unit =
        is_first ? Row(reverse_ ? kRows - 1 : 0) : Row(reverse_ ? 0 : kRows - 1) + kRowBytes - kUnitBytes<kWords>;
    *reinterpret_cast<T*>(unit + place) = item;
  }

  // The same of 8-byte items, which are the first and the last one: the lanes that have them store them.
  __device__ void StoreEndItems(const uint32_t (&words)[kRows][kWords]) const {
    const bool is_first = place_ == 0;
    uint32_t item[2];
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const uint32_t of_first = reverse_ ? words[kRows - 1][w] : words[0][w];
      const uint32_t of_last = reverse_ ? words[0][kWords - 2 + w] : words[kRows - 1][kWords - 2 + w];
      item[w] = is_first ? of_first : of_last;
    }
    unsigned char* const first = Row(reverse_ ? kRows - 1 : 0);
    unsigned char* const last = Row(reverse_ ? 0 : kRows - 1) + kRowBytes - sizeof(T);
    if (is_first || place_ == kWarpThreads - 1) *reinterpret_cast<uint2*>(is_first ? first : last) = {item[0], item[1]};
  }

  unsigned char* const row_;
  const bool reverse_;
  const int place_;
  const int before_;  // The lane that has what stands in front.
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_STAGE_WORDS_CUH_
