// Squares of a matrix, transposed in registers, by way of a square in the first-level cache: so both matrices are read
// and written in whole lines, also where their rows lie so that the cache can't hold lines of many of them.
#include "kernels/cpu/simd/glue.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// The items of a block of 16 bytes: every instruction set interleaves two such blocks at once.
template <class T>
constexpr int kItems = kBlockBytes / static_cast<int>(sizeof(T));
template <class T>
using Block = typename VectorOf<T, kBlockBytes>::type;

// Half `kHalf` of the items of a and b, in turns.
template <int kHalf, class T, int... i>
PREFIXD_INLINE Block<T> Interleaved(Block<T> a, Block<T> b, std::integer_sequence<int, i...> /*items*/) {
  return __builtin_shufflevector(a, b, (kHalf * kItems<T> / 2 + i / 2 + i % 2 * kItems<T>)...);
}

// Transposes kItems x kItems. Interleaving the first and the second half of the rows, log2(kItems) times, does it.
template <class T>
PREFIXD_INLINE void TransposeBlocks(const T* in, uint64_t in_pitch, T* out, uint64_t out_pitch) {
  constexpr int kN = kItems<T>;
  constexpr auto kAll = std::make_integer_sequence<int, kN>{};
  Block<T> rows[kN];
  PREFIXD_UNROLL
  for (int i = 0; i < kN; ++i) __builtin_memcpy(&rows[i], in + i * in_pitch, kBlockBytes);
  PREFIXD_UNROLL
  for (int step = 1; step < kN; step *= 2) {
    Block<T> mixed[kN];
    PREFIXD_UNROLL
    for (int i = 0; i < kN / 2; ++i) {
      mixed[2 * i] = Interleaved<0, T>(rows[i], rows[i + kN / 2], kAll);
      mixed[2 * i + 1] = Interleaved<1, T>(rows[i], rows[i + kN / 2], kAll);
    }
    PREFIXD_UNROLL
    for (int i = 0; i < kN; ++i) rows[i] = mixed[i];
  }
  PREFIXD_UNROLL
  for (int i = 0; i < kN; ++i) __builtin_memcpy(out + i * out_pitch, &rows[i], kBlockBytes);
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

constexpr TransposeTable MakeTable() {
  TransposeTable table = {};
#define PREFIXD_SET(name, type) table.of[static_cast<int>(DType::name)] = Transpose<Unsigned<type>>;
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const TransposeTable kTransposes = MakeTable();

}  // namespace prefixd::cpu::PREFIXD_ISA
