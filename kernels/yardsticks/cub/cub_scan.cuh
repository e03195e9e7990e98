// Scan, strategy "cub": cub::DeviceScan, which allows out to be in. Two launches, a third if a carry_out is wanted, and
// then a fourth, a copy, if the scan is exclusive and in place.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_SCAN_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_SCAN_CUH_

#include <cstddef>
#include <cstdint>
#include <cub/device/device_scan.cuh>

#include "kernels/yardsticks/cub/cub.h"
#include "kernels/yardsticks/cub/cub_parts.cuh"

namespace prefixd::cuda {

// The start, read where it is needed. So one kernel serves both an init and a carry_in, and also inclusive scans, for
// which CUB has no FutureValue.
template <class Items, class Out>
struct CubStart {
  Out init;
  const Out* carry_in;

  __device__ operator typename Items::Item() const { return Items::Load(carry_in != nullptr ? *carry_in : init); }
};

template <class Items, class In, class Out>
struct CarryOutParams {
  CubStart<Items, Out> start;
  const In* last_in;  // Null if the scan is inclusive.
  const Out* last_out;
  uint64_t num_items;
  Out* carry_out;
};

// Computes the value of the whole array from the end of its scan. CUB does not return it.
template <class Items, class In, class Out>
__global__ void CarryOutKernel(const CarryOutParams<Items, In, Out> p) {
  typename Items::Item item = p.start;
  if (p.num_items > 0) {
    item = Items::Load(*p.last_out);
    if (p.last_in != nullptr) item = Items::Combine(item, Items::Load(*p.last_in));
  }
  *p.carry_out = Items::Store(item);
}

template <Op kOp, class In, class Out, int kStep>
cudaError_t LaunchCubScanOf(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  using Items = CubItems<kOp, Out>;
  const bool exclusive = args.kind == ScanKind::kExclusive;
  const auto* in = static_cast<const In*>(args.in);
  auto* out = static_cast<Out*>(args.out);
  const CubStart<Items, Out> start = {args.init.As<Out>(), static_cast<const Out*>(args.carry_in)};
  CarryOutParams<Items, In, Out> carry = {start, nullptr, nullptr, args.num_items, static_cast<Out*>(args.carry_out)};
  *num_launches = 0;
  if (args.num_items > 0) {
    const uint64_t first = kStep > 0 ? 0 : args.num_items - 1;
    const uint64_t last = args.num_items - 1 - first;
    carry.last_out = out + last;
    const auto scan = [&](void* d_temp, size_t& temp_bytes) {
      const auto d_in = CubInput<Items, kStep>(in + first);
      const auto d_out = CubOutput<Items, kStep>(out + first);
      const auto op = CubOperator<kOp, typename Items::Item>();
      return exclusive ? cub::DeviceScan::ExclusiveScan(d_temp, temp_bytes, d_in, d_out, op, start, args.num_items,
                                                        context->stream)
                       : cub::DeviceScan::InclusiveScanInit(d_temp, temp_bytes, d_in, d_out, op, start, args.num_items,
                                                            context->stream);
    };
    // A scan in place overwrites the last element, so a copy of it is kept.
    const auto keep_last = [&](void* d_kept) {
      if (!exclusive || args.carry_out == nullptr) return cudaSuccess;
      carry.last_in = in + last;
      if (args.in != args.out) return cudaSuccess;
      carry.last_in = static_cast<const In*>(d_kept);
      ++*num_launches;
      return cudaMemcpyAsync(d_kept, in + last, sizeof(In), cudaMemcpyDeviceToDevice, context->stream);
    };
    const cudaError_t error = RunCub(context, scan, keep_last);
    if (error != cudaSuccess) return error;
    *num_launches += 2;  // Tile states, then the scan.
  }
  if (args.carry_out == nullptr) return cudaSuccess;
  ++*num_launches;
  return Launch(CarryOutKernel<Items, In, Out>, 1, 1, context->stream, carry);
}

template <class In, class Out>
cudaError_t LaunchCubScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitOp<Out>(args.op, [&](auto tag) -> cudaError_t {
    constexpr Op kOp = decltype(tag)::kValue;
    if constexpr (kCubServes(kDTypeOf<In>, kDTypeOf<Out>, kOp)) {
      using Result = WrappingType<Out, kOp>;
      using Element = std::conditional_t<std::is_same_v<In, Out>, Result, In>;
      return args.reverse ? LaunchCubScanOf<kOp, Element, Result, -1>(args, context, num_launches)
                          : LaunchCubScanOf<kOp, Element, Result, 1>(args, context, num_launches);
    } else {
      FatalValue("LaunchCubScan", kOp);
    }
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_SCAN_CUH_
