// The work of the glue: what stands between the primitives of a program, and what resident arrays need. See work.h.
// A gather and a scatter leave a u64 as their scalar: how many indices were too large.
#ifndef PREFIXD_SERVER_WORK_GLUE_H_
#define PREFIXD_SERVER_WORK_GLUE_H_

#include <memory>

#include "kernels/operation.h"
#include "server/work/work.h"

namespace prefixd {

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const FillSpec& spec);
std::unique_ptr<const Work> MakeWorkOf(const Device& device, const CopySpec& spec);
std::unique_ptr<const Work> MakeWorkOf(const Device& device, const MapSpec& spec);
std::unique_ptr<const Work> MakeWorkOf(const Device& device, const GatherSpec& spec);
std::unique_ptr<const Work> MakeWorkOf(const Device& device, const ScatterSpec& spec);
std::unique_ptr<const Work> MakeWorkOf(const Device& device, const TransposeSpec& spec);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_GLUE_H_
