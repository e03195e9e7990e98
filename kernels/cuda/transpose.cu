// A transposition by tiles of 16 KiB, which go through shared memory: a warp reads 128 bytes of a row of the matrix and
// writes 128 bytes of a row of the result.
//
// Narrow items travel in words of 4 bytes. A thread reads the words of a square of items, as many rows as a word has
// items, and turns the square in registers. Word m of a square at the word-column C and the square-row R belongs to row
// C * kPerWord + m of the result. It stands at [m * kColumns + C][R] of the shared array, whose rows have one word more
// than they need: so the lanes of a warp, which differ in C when they write and in R when they read, use different
// banks.
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/glue.h"

namespace prefixd::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpThreads;

template <class T>
struct TransposeParams {
  const T* in;
  T* out;
  uint64_t num_rows;
  uint64_t num_columns;
  uint32_t tiles_across;
  bool aligned;  // Whether rows of both matrices begin at words.
};

template <class T>
struct TransposeShape {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static constexpr int kPerWord = sizeof(Word) / sizeof(T);
  // Squares of the tile across and down. Both are multiples of a warp.
  static constexpr int kColumns = sizeof(T) == 4 ? 64 : 32;
  static constexpr int kRows = sizeof(T) == 1 ? 32 : 64;
  static constexpr int kTileColumns = kColumns * kPerWord;
  static constexpr int kTileRows = kRows * kPerWord;
  static constexpr int kSquares = kColumns * kRows / kThreads;  // A thread's.
  using Shared = Word[kTileColumns][kRows + 1];
};

// Turns a square of items: word m of the result has item m of each word.
__device__ void TurnSquare(uint32_t (&words)[4]) {
  const uint32_t low01 = __byte_perm(words[0], words[1], 0x5140), high01 = __byte_perm(words[0], words[1], 0x7362);
  const uint32_t low23 = __byte_perm(words[2], words[3], 0x5140), high23 = __byte_perm(words[2], words[3], 0x7362);
  words[0] = __byte_perm(low01, low23, 0x5410);
  words[1] = __byte_perm(low01, low23, 0x7632);
  words[2] = __byte_perm(high01, high23, 0x5410);
  words[3] = __byte_perm(high01, high23, 0x7632);
}
__device__ void TurnSquare(uint32_t (&words)[2]) {
  const uint32_t first = __byte_perm(words[0], words[1], 0x5410);
  words[1] = __byte_perm(words[0], words[1], 0x7632);
  words[0] = first;
}
template <class Word>
__device__ void TurnSquare(Word (&)[1]) {}

// A tile that is whole. in and out: its first items.
template <class T>
__device__ void TransposeWords(const TransposeParams<T>& p, const T* in, T* out,
                               typename TransposeShape<T>::Shared& shared) {
  using Shape = TransposeShape<T>;
  using Word = typename Shape::Word;
  constexpr int kN = Shape::kPerWord;
  const int lane = threadIdx.x % kWarpThreads;
  const int warp = threadIdx.x / kWarpThreads;
  // Square s of a warp: the warps' columns of squares come first, then their rows.
  constexpr int kAcross = Shape::kColumns / kWarpThreads;
  const auto row_of = [warp](int s) { return warp + s / kAcross * kWarps; };
  const auto column_of = [lane](int s) { return lane + s % kAcross * kWarpThreads; };
  Word squares[Shape::kSquares][kN];
#pragma unroll
  for (int s = 0; s < Shape::kSquares; ++s) {
#pragma unroll
    for (int m = 0; m < kN; ++m) {
      const uint64_t row = row_of(s) * kN + m;
      squares[s][m] = *reinterpret_cast<const Word*>(in + row * p.num_columns + column_of(s) * kN);
    }
  }
#pragma unroll
  for (int s = 0; s < Shape::kSquares; ++s) {
    TurnSquare(squares[s]);
#pragma unroll
    for (int m = 0; m < kN; ++m) shared[m * Shape::kColumns + column_of(s)][row_of(s)] = squares[s][m];
  }
  __syncthreads();
  constexpr int kDown = Shape::kRows / kWarpThreads;
#pragma unroll
  for (int k = 0; k < Shape::kTileColumns * kDown / kWarps; ++k) {
    const int row = warp + k / kDown * kWarps;  // A row of the result.
    const int word = lane + k % kDown * kWarpThreads;
    const Word from = shared[row % kN * Shape::kColumns + row / kN][word];
    *reinterpret_cast<Word*>(out + row * p.num_rows + word * kN) = from;
  }
}

// A tile at the edge, or of rows that do not begin at words, an item at a time.
template <class T>
__device__ void TransposeItems(const TransposeParams<T>& p, const T* in, T* out, int num_rows, int num_columns,
                               typename TransposeShape<T>::Shared& shared) {
  using Shape = TransposeShape<T>;
  // A row of the result takes whole words of the shared array's row, so that there is room.
  auto* const items = reinterpret_cast<T*>(&shared[0][0]);
  constexpr int kPitch = (Shape::kRows + 1) * Shape::kPerWord;
  const int lane = threadIdx.x % kWarpThreads;
  const int warp = threadIdx.x / kWarpThreads;
  for (int r = warp; r < num_rows; r += kWarps) {
    for (int c = lane; c < num_columns; c += kWarpThreads) items[c * kPitch + r] = in[r * p.num_columns + c];
  }
  __syncthreads();
  for (int c = warp; c < num_columns; c += kWarps) {
    for (int r = lane; r < num_rows; r += kWarpThreads) out[c * p.num_rows + r] = items[c * kPitch + r];
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) TransposeKernel(const TransposeParams<T> p) {
  using Shape = TransposeShape<T>;
  __shared__ typename Shape::Shared shared;
  const uint64_t row = blockIdx.x / p.tiles_across * uint64_t{Shape::kTileRows};
  const uint64_t column = blockIdx.x % p.tiles_across * uint64_t{Shape::kTileColumns};
  const T* const in = p.in + row * p.num_columns + column;
  T* const out = p.out + column * p.num_rows + row;
  const uint64_t rows_left = p.num_rows - row, columns_left = p.num_columns - column;
  if (p.aligned && rows_left >= Shape::kTileRows && columns_left >= Shape::kTileColumns) {
    TransposeWords(p, in, out, shared);
  } else {
    TransposeItems(p, in, out, rows_left < Shape::kTileRows ? static_cast<int>(rows_left) : Shape::kTileRows,
                   columns_left < Shape::kTileColumns ? static_cast<int>(columns_left) : Shape::kTileColumns, shared);
  }
}

template <class T>
cudaError_t LaunchOf(const TransposeArgs& args, LaunchContext* context) {
  using Shape = TransposeShape<T>;
  TransposeParams<T> params = {.in = static_cast<const T*>(args.in),
                               .out = static_cast<T*>(args.out),
                               .num_rows = args.num_rows,
                               .num_columns = args.num_columns,
                               .tiles_across = 0,
                               .aligned = false};
  constexpr int kN = Shape::kPerWord;
  params.aligned = args.num_rows % kN == 0 && args.num_columns % kN == 0 && HasVectors<T, kN>(params.in) &&
                   HasVectors<T, kN>(params.out);
  uint32_t tiles_down = 0;
  cudaError_t error = CountTiles(args.num_columns, Shape::kTileColumns, &params.tiles_across);
  if (error != cudaSuccess) return error;
  error = CountTiles(args.num_rows, Shape::kTileRows, &tiles_down);
  if (error != cudaSuccess) return error;
  uint32_t num_blocks = 0;
  error = CountTiles(uint64_t{params.tiles_across} * tiles_down, 1, &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(TransposeKernel<T>, num_blocks, kThreads, context->stream, params);
}

}  // namespace

cudaError_t LaunchTranspose(const TransposeArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype,
                    [&](auto tag) { return LaunchOf<BitsOf<typename decltype(tag)::type>>(args, context); });
}

}  // namespace prefixd::cuda
