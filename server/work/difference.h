// The work of a difference: see work.h.
#ifndef PREFIXD_SERVER_WORK_DIFFERENCE_H_
#define PREFIXD_SERVER_WORK_DIFFERENCE_H_

#include <memory>

#include "server/work/work.h"

namespace prefixd {

// Needs: the spec's algorithm is resolved.
std::unique_ptr<const Work> MakeWorkOf(const Device& device, const DifferenceSpec& spec);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_DIFFERENCE_H_
