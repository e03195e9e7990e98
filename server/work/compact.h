// The work of a compact: see work.h.
#ifndef PREFIXD_SERVER_WORK_COMPACT_H_
#define PREFIXD_SERVER_WORK_COMPACT_H_

#include <memory>

#include "server/work/work.h"

namespace prefixd {

// Needs: the spec's algorithm is resolved.
std::unique_ptr<const Work> MakeWorkOf(const Device& device, const CompactSpec& spec);

// Keeps about half of elements that are random over all integers of the type, or from -1 to 1; of another type nothing.
Predicate MiddlePredicate(DType dtype);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_COMPACT_H_
