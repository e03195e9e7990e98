#include "kernels/types.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/fatal.h"
#include "base/status.h"

namespace prefixd {
namespace {

constexpr std::string_view kPadded = "padded";

template <Op kOp, class T>
T TypedIdentity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (kOp == Op::kSum || kOp == Op::kOr || kOp == Op::kXor) {
    return T{0};
  } else if constexpr (kOp == Op::kProd) {
    return T{1};
  } else if constexpr (kOp == Op::kMin) {
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  } else if constexpr (kOp == Op::kMax) {
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  } else {
    static_assert(kOp == Op::kAnd);
    return static_cast<T>(~T{0});
  }
}

}  // namespace

void FatalValue(std::string_view function, std::string_view name, int value) {
  Fatal(StrCat(function, " has no case for ", name.empty() ? "the unknown value" : name, " (", value, ")"));
}

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

std::string OutputNames(DType dtype) {
  std::string names;
#define PREFIXD_ADD(name, type, out_name, out_type) \
  if (dtype == DType::name) names += (names.empty() ? "" : ", ") + std::string(Name(DType::out_name));
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
  return names;
}

Value Identity(Op op, DType dtype) {
  return VisitDType(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return VisitOp<T>(op, [](auto tag) { return Value::Of(TypedIdentity<decltype(tag)::kValue, T>()); });
  });
}

Value Neutral(Op op, DType dtype) {
  if (op != Op::kSum) return Identity(op, dtype);
  return VisitDType(dtype, [](auto type) {
    using T = typename decltype(type)::type;
    return Value::Of(static_cast<T>(-0.0));
  });
}

}  // namespace prefixd
