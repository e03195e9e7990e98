#include "server/work/compact.h"

#include <limits>
#include <type_traits>

namespace prefixd {
namespace {

Selector SelectorOf(const CompactSpec& spec) {
  if (spec.predicate) return Selector::kPredicate;
  return spec.mask_kind == MaskKind::kBits ? Selector::kBitMask : Selector::kByteMask;
}

class CompactWork final : public Work {
 public:
  CompactWork(const Device& device, const CompactSpec& spec)
      : Work(device, spec,
             {.value_bytes = spec.return_values ? SizeOf(spec.dtype) : 0,
              .index_bytes = spec.return_indices ? SizeOf(spec.index_dtype) : 0,
              .scalar_bytes = sizeof(uint64_t),
              .is_counted = true,
              .mask = spec.predicate ? std::nullopt : std::optional(spec.mask_kind),
              .is_whole = spec.segmented,
              .has_offsets = spec.segmented,
              .keys = spec.key_dtype,
              .counts_segments = spec.segmented}),
        compact_(spec),
        predicate_(spec.predicate.value_or(Predicate{})) {}

  absl::Status CheckStream() const override {
    return compact_.segmented ? SegmentsOnStream(compact_.dtype, compact_.dtype) : absl::OkStatus();
  }

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    return lane.Compact({.dtype = compact_.dtype,
                         .selector = SelectorOf(compact_),
                         .comparison = predicate_.comparison,
                         .value = predicate_.value,
                         .end = predicate_.end,
                         .mask = arrays.mask,
                         .invert = compact_.invert,
                         .algorithm = compact_.algorithm,
                         .in = arrays.in,
                         .num_items = arrays.num_items,
                         .num_arrays = arrays.num_arrays,
                         .first_item = arrays.first_item,
                         .values = compact_.return_values ? arrays.values : nullptr,
                         .indices = compact_.return_indices || compact_.segmented ? arrays.indices : nullptr,
                         .index_dtype = compact_.KeptIndexDType(),
                         .count = reinterpret_cast<uint64_t*>(arrays.scalar)});
  }

  void Describe(const WorkTotals& totals, Result* result) const override { result->num_kept = totals.num_kept; }

 private:
  const CompactSpec compact_;
  const Predicate predicate_;
};

}  // namespace

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const CompactSpec& spec) {
  return std::make_unique<CompactWork>(device, spec);
}

Predicate MiddlePredicate(DType dtype) {
  if (!IsSupported(dtype)) return {};
  const Value middle = VisitDType(dtype, [](auto tag) {
    using T = typename decltype(tag)::type;
    return Value::Of(!kIsFloating<T> && !kIsSignedInteger<T> ? static_cast<T>(std::numeric_limits<T>::max() / 2)
                                                             : T{0});
  });
  return {Comparison::kLess, middle};
}

}  // namespace prefixd
