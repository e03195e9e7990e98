#include "kernels/cpu/difference.h"

#include <cstddef>
#include <cstring>

#include "kernels/cpu/caches.h"

namespace prefixd::cpu {
namespace {

// `edge` stands before the first element, or behind the last.
void DifferenceAll(const Kernels& kernels, const DifferenceArgs& args, const void* edge) {
  const uint64_t size = SizeOf(args.dtype);
  const uint64_t part_items = kPartBytes / size;
  const bool stream = IsLargerThanCaches(2 * args.num_items * size);
  const auto* const in = static_cast<const std::byte*>(args.in);
  auto* const out = static_cast<std::byte*>(args.out);
  const auto run = [&](uint64_t part) {
    const uint64_t begin = part * part_items;
    const uint64_t end = begin + PartItems(args.num_items, part_items, part);
    const void* neighbour = edge;
    if (args.reverse && end < args.num_items) neighbour = in + end * size;
    if (!args.reverse && begin > 0) neighbour = in + (begin - 1) * size;
    kernels.differences->of[static_cast<int>(args.dtype)](in + begin * size, out + begin * size, end - begin, neighbour,
                                                          args.reverse, stream);
  };
  ForParts(NumParts(args.num_items, part_items), run);
}

}  // namespace

Work RunDifference(const Kernels& kernels, const DifferenceArgs& args) {
  const size_t size = SizeOf(args.dtype);
  const void* const edge = args.carry_in != nullptr ? args.carry_in : &args.init.bits;
  if (args.num_items == 0) {
    if (args.carry_out != nullptr) std::memmove(args.carry_out, edge, size);
    return {};
  }
  DifferenceAll(kernels, args, edge);
  if (args.carry_out != nullptr) {
    const size_t last = args.reverse ? 0 : args.num_items - 1;
    std::memcpy(args.carry_out, static_cast<const std::byte*>(args.in) + last * size, size);
  }
  return {.launches = 1, .num_bytes = 2 * args.num_items * size};
}

}  // namespace prefixd::cpu
