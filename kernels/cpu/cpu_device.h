// The CPU device: oneTBB on all cores. Device memory is host memory, and work runs before the call returns.
#ifndef PREFIXD_KERNELS_CPU_CPU_DEVICE_H_
#define PREFIXD_KERNELS_CPU_CPU_DEVICE_H_

#include <memory>

#include "kernels/cpu/isa.h"
#include "kernels/device.h"

namespace prefixd {

std::unique_ptr<Device> OpenCpuDevice(const cpu::Isa& isa = cpu::IsasHere().back());

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_CPU_CPU_DEVICE_H_
