// Squares of a matrix, transposed in registers, by way of a square in the first-level cache: so both matrices are read
// and written in whole lines, also where their rows lie so that the cache can't hold lines of many of them.
#include "kernels/cpu/simd/glue.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// The items of a block of 16 bytes: every instruction set interleaves two such blocks at once, and the blocks of wider
// vectors each by itself.
template <class T>
constexpr int kItems = kBlockBytes / static_cast<int>(sizeof(T));

// kWidth blocks side by side.
template <class T, int kWidth>
using BlocksOf = typename VectorOf<T, kBlockBytes * kWidth>::type;

// Half `kHalf` of the items of each block of a and b, in turns.
template <int kHalf, class T, class V, int... i>
PREFIXD_INLINE V Interleaved(V a, V b, std::integer_sequence<int, i...> /*items*/) {
  constexpr auto kFrom = [](int item) {
    const int in_block = item % kItems<T>;
    return item - in_block + kHalf * kItems<T> / 2 + in_block / 2 + in_block % 2 * static_cast<int>(sizeof...(i));
  };
  return __builtin_shufflevector(a, b, kFrom(i)...);
}

// Transposes kItems x kItems in each block. Interleaving the first and the second half of the rows, log2(kItems) times,
// does it.
template <class T, int kWidth>
PREFIXD_INLINE void TransposeVectors(BlocksOf<T, kWidth> (&rows)[kItems<T>]) {
  constexpr int kN = kItems<T>;
  constexpr auto kAll = std::make_integer_sequence<int, kN * kWidth>{};
  PREFIXD_UNROLL
  for (int step = 1; step < kN; step *= 2) {
    BlocksOf<T, kWidth> mixed[kN];
    PREFIXD_UNROLL
    for (int i = 0; i < kN / 2; ++i) {
      mixed[2 * i] = Interleaved<0, T>(rows[i], rows[i + kN / 2], kAll);
      mixed[2 * i + 1] = Interleaved<1, T>(rows[i], rows[i + kN / 2], kAll);
    }
    PREFIXD_UNROLL
    for (int i = 0; i < kN; ++i) rows[i] = mixed[i];
  }
}

// One vector behind the other; and the first or the second half of one.
template <class V, int... i>
PREFIXD_INLINE auto Joined(V a, V b, std::integer_sequence<int, i...> /*items*/) {
  return __builtin_shufflevector(a, b, i...);
}
template <int kHalf, class V, int... i>
PREFIXD_INLINE auto HalfOf(V v, std::integer_sequence<int, i...> /*items*/) {
  return __builtin_shufflevector(v, v, (kHalf * static_cast<int>(sizeof...(i)) + i)...);
}

// kWidth blocks, each kItems rows behind the one before it.
template <class T, int kWidth>
PREFIXD_INLINE BlocksOf<T, kWidth> LoadBlocks(const T* from, uint64_t pitch) {
  if constexpr (kWidth == 1) {
    BlocksOf<T, 1> block;
    __builtin_memcpy(&block, from, sizeof(block));
    return block;
  } else {
    constexpr int kHalf = kWidth / 2;
    return Joined(LoadBlocks<T, kHalf>(from, pitch), LoadBlocks<T, kHalf>(from + kHalf * kItems<T> * pitch, pitch),
                  std::make_integer_sequence<int, kItems<T> * kWidth>{});
  }
}
// Stores kWidth blocks of each of kItems rows. A block may reach into rows behind its own, which are stored later.
template <class T, int kWidth>
PREFIXD_INLINE void StoreBlocks(const BlocksOf<T, kWidth> (&rows)[kItems<T>], T* to, uint64_t pitch) {
  if constexpr (kWidth == 1) {
    PREFIXD_UNROLL
    for (int i = 0; i < kItems<T>; ++i) __builtin_memcpy(to + i * pitch, &rows[i], sizeof(rows[i]));
  } else {
    constexpr int kHalf = kWidth / 2;
    constexpr auto kItemsOfHalf = std::make_integer_sequence<int, kItems<T> * kHalf>{};
    BlocksOf<T, kHalf> halves[kItems<T>];
    PREFIXD_UNROLL
    for (int i = 0; i < kItems<T>; ++i) halves[i] = HalfOf<0>(rows[i], kItemsOfHalf);
    StoreBlocks<T, kHalf>(halves, to, pitch);
    PREFIXD_UNROLL
    for (int i = 0; i < kItems<T>; ++i) halves[i] = HalfOf<1>(rows[i], kItemsOfHalf);
    StoreBlocks<T, kHalf>(halves, to + kHalf * kItems<T> * pitch, pitch);
  }
}
// The same of whole vectors.
template <class T, int kWidth>
PREFIXD_INLINE void LoadVectors(const T* from, uint64_t pitch, BlocksOf<T, kWidth> (&rows)[kItems<T>]) {
  PREFIXD_UNROLL
  for (int i = 0; i < kItems<T>; ++i)
    __builtin_memcpy(&rows[i], from + static_cast<uint64_t>(i) * pitch, sizeof(rows[i]));
}
template <class T, int kWidth>
PREFIXD_INLINE void StoreVectors(const BlocksOf<T, kWidth> (&rows)[kItems<T>], T* to, uint64_t pitch) {
  PREFIXD_UNROLL
  for (int i = 0; i < kItems<T>; ++i)
    __builtin_memcpy(to + static_cast<uint64_t>(i) * pitch, &rows[i], sizeof(rows[i]));
}

// Transposes kItems x kItems.
template <class T>
PREFIXD_INLINE void TransposeBlocks(const T* in, uint64_t in_pitch, T* out, uint64_t out_pitch) {
  BlocksOf<T, 1> rows[kItems<T>];
  LoadVectors<T, 1>(in, in_pitch, rows);
  TransposeVectors<T, 1>(rows);
  StoreVectors<T, 1>(rows, out, out_pitch);
}

template <bool kStream, class T>
PREFIXD_INLINE void CopyRow(const T* in, T* out) {
  for (uint64_t i = 0; i < TransposeSide(sizeof(T)); i += kLanes<T>) StoreOrStream<kStream>(out + i, Load(in + i));
}

// What is less than a square: blocks, and items where there is less than a block.
template <class T>
void TransposeLess(const TransposePart& part, const T* in, T* out) {
  const auto items = [&](uint64_t first_row, uint64_t rows_end, uint64_t first_column, uint64_t columns_end) {
    for (uint64_t c = first_column; c < columns_end; ++c) {
      for (uint64_t r = first_row; r < rows_end; ++r) out[c * part.out_pitch + r] = in[r * part.in_pitch + c];
    }
  };
  const uint64_t rows = part.num_rows / kItems<T> * kItems<T>, columns = part.num_columns / kItems<T> * kItems<T>;
  for (uint64_t c = 0; c < columns; c += kItems<T>) {
    for (uint64_t r = 0; r < rows; r += kItems<T>) {
      TransposeBlocks(in + r * part.in_pitch + c, part.in_pitch, out + c * part.out_pitch + r, part.out_pitch);
    }
  }
  items(0, rows, columns, part.num_columns);
  items(rows, part.num_rows, 0, part.num_columns);
}

template <class T>
void Transpose(const TransposePart& part) {
  constexpr uint64_t kSide = TransposeSide(sizeof(T));
  const auto* const in = static_cast<const T*>(part.in);
  auto* const out = static_cast<T*>(part.out);
  if (part.num_rows < kSide || part.num_columns < kSide) return TransposeLess(part, in, out);
  alignas(64) T square[kSide * kSide];
  for (uint64_t r = 0; r < kSide; r += kItems<T>) {
    // The next square, whose rows are too short for the machine to foresee them.
    for (uint64_t i = r; i < r + kItems<T>; ++i) Fetch<kSide * sizeof(T)>(in + i * part.in_pitch + kSide);
    for (uint64_t c = 0; c < kSide; c += kItems<T>) {
      TransposeBlocks(in + r * part.in_pitch + c, part.in_pitch, square + c * kSide + r, kSide);
    }
  }
  const bool stream = part.stream && IsAligned(out) && part.out_pitch % kLanes<T> == 0;
  for (uint64_t c = 0; c < kSide; ++c) {
    const T* const row = square + c * kSide;
    T* const to = out + c * part.out_pitch;
    stream ? CopyRow<true>(row, to) : CopyRow<false>(row, to);
  }
  if (stream) FinishStreaming();
}

// Calls move(WidthOf<n>(), row) for n blocks of rows at once, as many as a vector has where there are.
template <int kWidth>
using WidthOf = std::integral_constant<int, kWidth>;
template <class T, class Move>
PREFIXD_INLINE void ForBlocksOfRows(uint64_t num_rows, Move move) {
  constexpr uint64_t kAll = kItems<T> * kBlocks;
  uint64_t row = 0;
  for (; row + kAll <= num_rows; row += kAll) move(WidthOf<kBlocks>(), row);
  for (; row < num_rows; row += kItems<T>) move(WidthOf<1>(), row);
}

template <class T>
void ToColumns(const ShortRowsPart& part) {
  const auto* const in = static_cast<const T*>(part.in);
  auto* const out = static_cast<T*>(part.out);
  // The rows of the next strip, which are fetched meanwhile.
  const auto* ahead = reinterpret_cast<const std::byte*>(in + part.num_rows * part.length);
  ForBlocksOfRows<T>(
      part.num_rows, [&](auto width, uint64_t row) __attribute__((always_inline)) {
        constexpr int kWidth = decltype(width)::value;
        constexpr int kBytes = kItems<T> * kWidth * kBlockBytes;
        for (uint64_t column = 0; column < part.length; column += kItems<T>, ahead += kBytes) {
          for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(ahead + i);
          BlocksOf<T, kWidth> blocks[kItems<T>];
          PREFIXD_UNROLL
          for (int i = 0; i < kItems<T>; ++i) {
            blocks[i] = LoadBlocks<T, kWidth>(in + (row + i) * part.length + column, part.length);
          }
          TransposeVectors<T, kWidth>(blocks);
          StoreVectors<T, kWidth>(blocks, out + column * part.pitch + row, part.pitch);
        }
      });
}

// A row's last block reaches into the rows behind it, which are written later.
template <class T>
void ToRows(const ShortRowsPart& part) {
  const auto* const in = static_cast<const T*>(part.in);
  auto* const out = static_cast<T*>(part.out);
  const uint64_t end = (part.length + kItems<T> - 1) / kItems<T> * kItems<T>;
  ForBlocksOfRows<T>(
      part.num_rows, [&](auto width, uint64_t row) __attribute__((always_inline)) {
        constexpr int kWidth = decltype(width)::value;
        for (uint64_t column = end; column > 0;) {
          column -= kItems<T>;
          BlocksOf<T, kWidth> blocks[kItems<T>];
          LoadVectors<T, kWidth>(in + column * part.pitch + row, part.pitch, blocks);
          TransposeVectors<T, kWidth>(blocks);
          StoreBlocks<T, kWidth>(blocks, out + row * part.length + column, part.length);
        }
      });
}

constexpr TransposeTable MakeTable() {
  TransposeTable table = {};
#define PREFIXD_SET(name, type)                                                \
  table.of[static_cast<int>(DType::name)] = Transpose<Unsigned<type>>;         \
  table.to_columns[static_cast<int>(DType::name)] = ToColumns<Unsigned<type>>; \
  table.to_rows[static_cast<int>(DType::name)] = ToRows<Unsigned<type>>;
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const TransposeTable kTransposes = MakeTable();

}  // namespace prefixd::cpu::PREFIXD_ISA
