// Scan, strategy "hillis_steele_global": in step k every item of the array combines with the item 2^k before it, from
// one buffer to another. Each step is a launch, since only the end of a launch makes all blocks wait.
//
// Cost: work n log n, depth log n, log n launches; a step reads 2n, half of it from the cache, and writes n: traffic
// 2n log n, which is all that it costs. No barrier, no shared memory.
// The last step writes the output, so the first step writes the output or the scratch buffer. If it would overwrite an
// input that others still read, a step over the distance 0, which only copies, comes first.
// Source: Hillis and Steele 1986; Iriscores (Steel_Default); Hadwiger. Iriscores calls the work log(n), which is
// its depth, and leaves the loop, the two buffers and which of them holds the result to the reader.
#include <cstdint>
#include <utility>

#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {
namespace {

template <class T>
struct StepParams : TileParams<T> {
  const T* from;
  T* to;
  uint64_t distance;
  bool is_first;  // `from` is the input: reversed, moved by one if exclusive, and without its start.
  bool is_last;   // `to` is the output, reversed.
  T* last_item;   // The input's last item. The first step keeps it: the carry of an exclusive scan needs it.

  template <class Operator>
  __device__ typename Operator::Item Read(uint64_t i) const {
    if (!is_first) return Operator::Load(from[i]);
    const auto start = Operator::Load(this->Start());
    if (i == 0 && this->exclusive) return start;
    const auto item = Operator::Load(from[this->At(this->exclusive ? i - 1 : i)]);
    return i == 0 ? Operator::Combine(start, item) : item;
  }
};

template <class Operator, class T>
__global__ void __launch_bounds__(kTileThreads<T>) HillisSteeleStepKernel(const __grid_constant__ StepParams<T> p) {
  const uint64_t i = uint64_t{blockIdx.x} * kTileThreads<T> + threadIdx.x;
  if (i >= p.num_items) return;
  auto value = p.template Read<Operator>(i);
  if (p.distance > 0 && i >= p.distance) value = Operator::Combine(p.template Read<Operator>(i - p.distance), value);
  p.to[p.is_last ? p.At(i) : i] = Operator::Store(value);
  if (i + 1 < p.num_items) return;
  if (p.is_first) *p.last_item = p.in[p.At(i)];
  if (!p.is_last || p.carry_out == nullptr) return;
  if (p.exclusive) value = Operator::Combine(value, Operator::Load(*p.last_item));
  *p.carry_out = Operator::Store(value);
}

// For an array of no items.
template <class Operator, class T>
__global__ void CarryStartKernel(const __grid_constant__ TileParams<T> p) {
  if (p.carry_out != nullptr) *p.carry_out = Operator::Store(Operator::Load(p.Start()));
}

}  // namespace

template <class T>
cudaError_t LaunchHillisSteeleGlobalScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTextbookOp(args.op, [&](auto op) {
    using Operator = Operator<decltype(op)::kValue, T>;
    StepParams<T> step = {MakeTileParams<T>(args), nullptr, nullptr, 0, false, false, nullptr};
    const uint64_t n = args.num_items;
    *num_launches = 1;
    if (n == 0) return Launch(CarryStartKernel<Operator, T>, 1, 1, context->stream, static_cast<TileParams<T>>(step));
    void* d_scratch = nullptr;
    cudaError_t error = context->scratch.Get(context->stream, (n + 1) * sizeof(T), &d_scratch);
    if (error != cudaSuccess) return error;
    error = CountTiles(n, kTileThreads<T>, &step.num_tiles);
    if (error != cudaSuccess) return error;
    int num_steps = 1;
    while ((n - 1) >> num_steps != 0) ++num_steps;
    // An even number of steps begins with the scratch buffer.
    const bool copies_first = args.in == args.out && num_steps % 2 == 1;
    // carry_in may be carry_out: a step alone, which has at most two items, must not write what it reads.
    const bool splits_only_step = num_steps == 1 && args.carry_out != nullptr && args.carry_in == args.carry_out;
    if (copies_first || splits_only_step) ++num_steps;
    *num_launches = num_steps;
    T* const d_buffer = static_cast<T*>(d_scratch);
    step.last_item = d_buffer + n;
    step.from = step.in;
    step.to = num_steps % 2 == 0 ? d_buffer : step.out;
    step.distance = copies_first || splits_only_step ? 0 : 1;
    for (int i = 0; i < num_steps; ++i) {
      step.is_first = i == 0;
      step.is_last = i == num_steps - 1;
      error = Launch(HillisSteeleStepKernel<Operator, T>, step.num_tiles, kTileThreads<T>, context->stream, step);
      if (error != cudaSuccess) return error;
      step.from = step.to;
      step.to = step.to == d_buffer ? step.out : d_buffer;
      step.distance = step.distance == 0 ? 1 : 2 * step.distance;
    }
    return cudaSuccess;
  });
}

#define PREFIXD_INSTANTIATE(T) \
  template cudaError_t LaunchHillisSteeleGlobalScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
