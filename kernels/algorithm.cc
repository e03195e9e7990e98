#include "kernels/algorithm.h"

#include <algorithm>
#include <charconv>

namespace prefixd {
namespace {

constexpr std::string_view kPadded = "padded";

}  // namespace

std::string Name(const Algorithm& algorithm) {
  std::string name(Name(algorithm.strategy));
  const auto add = [&](std::string_view part) { name.append("/").append(part); };
  if (algorithm.tile_scan != TileScan::kDefault) add(Name(algorithm.tile_scan));
  if (algorithm.items_per_thread != 0) add(std::to_string(algorithm.items_per_thread));
  if (algorithm.padding) add(kPadded);
  return name;
}

bool FromName(std::string_view name, Algorithm* out) {
  Algorithm found;
  const size_t first = std::min(name.find('/'), name.size());
  if (!FromName(name.substr(0, first), &found.strategy)) return false;
  for (size_t slash = first; slash < name.size();) {
    const size_t next = std::min(name.find('/', slash + 1), name.size());
    const std::string_view part = name.substr(slash + 1, next - slash - 1);
    if (part == kPadded) {
      found.padding = true;
    } else if (!FromName(part, &found.tile_scan)) {
      std::from_chars(part.data(), part.data() + part.size(), found.items_per_thread);
    }
    slash = next;
  }
  // Parts out of order, twice, unknown, or numbers like 04: their name is another.
  if (Name(found) != name) return false;
  *out = found;
  return true;
}

}  // namespace prefixd
