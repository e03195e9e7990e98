#include "kernels/types.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace prefixd {
namespace {

constexpr std::array<std::string_view, kNumDTypes> kDTypeNames = {"i8",  "u8",  "i16", "u16",  "i32", "u32",
                                                                  "i64", "u64", "f16", "bf16", "f32", "f64"};
constexpr std::array<std::string_view, kNumOps> kOpNames = {"sum", "prod", "min", "max",
                                                            "and", "or",   "xor", "linear_recurrence"};
constexpr std::array<std::string_view, 2> kScanKindNames = {"inclusive", "exclusive"};
constexpr std::array<std::string_view, kNumPrimitives> kPrimitiveNames = {"scan", "reduce", "compact"};
constexpr std::array<std::string_view, 8> kComparisonNames = {"<", "<=", ">", ">=", "==", "!=", "is-nan", "is-finite"};
constexpr std::array<std::string_view, kNumStrategies> kStrategyNames = {"default",
                                                                         "chained",
                                                                         "single_launch",
                                                                         "reduce_then_scan",
                                                                         "sequential",
                                                                         "naive",
                                                                         "hillis_steele_global",
                                                                         "three_phase",
                                                                         "grid_sync",
                                                                         "chained_serial",
                                                                         "cub",
                                                                         "thrust",
                                                                         "tree_interleaved",
                                                                         "tree_sequential",
                                                                         "warp_shuffle",
                                                                         "two_pass",
                                                                         "atomic",
                                                                         "kahan",
                                                                         "three_kernel",
                                                                         "atomic_counter"};
constexpr std::array<std::string_view, kNumTileScans> kTileScanNames = {
    "default",  "hillis_steele", "kogge_stone",  "brent_kung",
    "blelloch", "warp_shared",   "warp_shuffle", "warp_shared_register"};
constexpr std::string_view kPadded = "padded";

template <class Names, class Enum>
std::string_view NameIn(const Names& names, Enum value) {
  const auto i = static_cast<size_t>(value);
  return i < names.size() ? names[i] : std::string_view();
}

template <class Names, class Enum>
bool FindIn(const Names& names, std::string_view name, Enum* out) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) {
      *out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

template <class T>
T TypedIdentity(Op op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case Op::kProd:
      return T{1};
    case Op::kMin:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Op::kMax:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Op::kAnd:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(~T{0});
      return T{0};
    default:
      return T{0};
  }
}

}  // namespace

std::string_view Name(DType dtype) { return NameIn(kDTypeNames, dtype); }
std::string_view Name(Op op) { return NameIn(kOpNames, op); }
std::string_view Name(ScanKind kind) { return NameIn(kScanKindNames, kind); }
std::string_view Name(Primitive primitive) { return NameIn(kPrimitiveNames, primitive); }
std::string_view Name(Comparison comparison) { return NameIn(kComparisonNames, comparison); }
std::string_view Name(Strategy strategy) { return NameIn(kStrategyNames, strategy); }
std::string_view Name(TileScan tile_scan) { return NameIn(kTileScanNames, tile_scan); }

std::string Name(const Algorithm& algorithm) {
  std::string name(Name(algorithm.strategy));
  const auto add = [&](std::string_view part) { name.append("/").append(part); };
  if (algorithm.tile_scan != TileScan::kDefault) add(Name(algorithm.tile_scan));
  if (algorithm.items_per_thread != 0) add(std::to_string(algorithm.items_per_thread));
  if (algorithm.padding) add(kPadded);
  return name;
}

bool FromName(std::string_view name, DType* out) { return FindIn(kDTypeNames, name, out); }
bool FromName(std::string_view name, Op* out) { return FindIn(kOpNames, name, out); }
bool FromName(std::string_view name, ScanKind* out) { return FindIn(kScanKindNames, name, out); }
bool FromName(std::string_view name, Primitive* out) { return FindIn(kPrimitiveNames, name, out); }
bool FromName(std::string_view name, Comparison* out) { return FindIn(kComparisonNames, name, out); }
bool FromName(std::string_view name, Strategy* out) { return FindIn(kStrategyNames, name, out); }
bool FromName(std::string_view name, TileScan* out) { return FindIn(kTileScanNames, name, out); }

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
  return VisitDType(dtype, [&](auto tag) { return Value::Of(TypedIdentity<typename decltype(tag)::type>(op)); });
}

Value Neutral(Op op, DType dtype) {
  return VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (std::is_floating_point_v<T> && op == Op::kSum) return Value::Of(static_cast<T>(-0.0));
    return Value::Of(TypedIdentity<T>(op));
  });
}

}  // namespace prefixd
