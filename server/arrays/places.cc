#include "server/arrays/places.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "server/work/key_runs.h"
#include "server/work/segment_offsets.h"

namespace prefixd {
namespace {

constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

absl::Status InvalidArgument(std::string_view reason, std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, reason, field, message);
}

absl::Status CheckType(const ResidentArray& array, DType expected, std::string_view field) {
  if (array.dtype() == expected) return absl::OkStatus();
  return InvalidArgument("ARRAY_TYPE", field,
                         StrCat("the array's elements are ", Name(array.dtype()), ", and ", Name(expected),
                                " is expected here: cast them, or change the spec"));
}

DeviceItems ItemsOf(const ArrayUse& use) { return {.data = use.data(), .num_items = use.num_items()}; }

// Elements of an array of that shape. Saturates: Reserve says what is wrong with it.
uint64_t NumItems(const std::vector<uint64_t>& shape) {
  uint64_t num_items = 1;
  for (const uint64_t along : shape) {
    if (along != 0 && num_items > kAny / along) return kAny;
    num_items *= along;
  }
  return num_items;
}

}  // namespace

// ---- Destinations --------------------------------------------------------------------------------------------------
absl::StatusOr<Destination> Destination::Make(ArrayStore* store, const Caller& caller, ArraySpec spec,
                                              uint64_t num_items, bool is_counted, std::string_view field) {
  Destination to;
  to.store_ = store;
  to.caller_ = caller;
  to.spec_ = std::move(spec);
  to.capacity_ = num_items;
  to.is_counted_ = is_counted;
  to.field_ = std::string(field);
  if (is_counted) {
    if (num_items > kAny / SizeOf(to.spec_.dtype)) {
      return InvalidArgument("SHAPE", field, StrCat(num_items, " elements have more bytes than any memory"));
    }
    PREFIXD_ASSIGN_OR_RETURN(to.scratch_ticket_, store->ChargeScratch(caller, num_items * SizeOf(to.spec_.dtype)));
  } else {
    if (to.spec_.shape.empty()) to.spec_.shape = {num_items};
    PREFIXD_ASSIGN_OR_RETURN(to.made_, store->Reserve(caller, to.spec_, field));
  }
  return to;
}

absl::Status Destination::Prepare(Lane& lane) {
  if (room_.data != nullptr || store_ == nullptr || capacity_ == 0) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(Buffer memory, lane.Allocate(capacity_ * SizeOf(spec_.dtype)));
  room_ = {.data = memory.data(), .num_items = capacity_};
  if (is_counted_) {
    scratch_ = std::move(memory);
  } else {
    made_->TakeMemory(std::move(memory));
  }
  return absl::OkStatus();
}

absl::Status Destination::Conclude(Lane& lane, uint64_t num_items) {
  if (!is_counted_ || made_ != nullptr) return absl::OkStatus();
  spec_.shape = {num_items};
  PREFIXD_ASSIGN_OR_RETURN(made_, store_->Reserve(caller_, spec_, field_));
  if (num_items == 0) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(Buffer memory, lane.Allocate(made_->size_bytes()));
  PREFIXD_RETURN_IF_ERROR(lane.CopyOnDevice(memory.data(), room_.data, made_->size_bytes(), CopyTiming::kUntimed));
  made_->TakeMemory(std::move(memory));
  return lane.Synchronize();
}

absl::Status Destination::Publish(uint64_t num_items, std::optional<ArrayInfo>* made,
                                  std::optional<ArraySlice>* written) {
  if (store_ == nullptr) {
    slice_.num_items = num_items;
    *written = slice_;
    return absl::OkStatus();
  }
  if (made_ == nullptr) {  // Nothing came.
    spec_.shape = {0};
    PREFIXD_ASSIGN_OR_RETURN(made_, store_->Reserve(caller_, spec_, field_));
  }
  PREFIXD_ASSIGN_OR_RETURN(*made, store_->Publish(std::move(made_)));
  return absl::OkStatus();
}

// ---- Places --------------------------------------------------------------------------------------------------------
// Takes one name after the other into use.
class Places::Taker {
 public:
  Taker(ArrayStore* store, const Caller& caller, const Work& work, const PlaceNames& names,
        std::optional<uint64_t> num_items, uint64_t num_offsets)
      : store_(store),
        caller_(caller),
        work_(work),
        shape_(work.shape()),
        names_(names),
        num_items_(num_items),
        num_offsets_(num_offsets) {}

  absl::StatusOr<Places> Take() {
    PREFIXD_RETURN_IF_ERROR(CheckSinks());
    if (names_.values) PREFIXD_RETURN_IF_ERROR(TakeValues(*names_.values));
    if (names_.mask) PREFIXD_RETURN_IF_ERROR(TakeMask(*names_.mask));
    if (names_.coefficients) PREFIXD_RETURN_IF_ERROR(TakeCoefficients(*names_.coefficients));
    if (names_.segment_offsets) PREFIXD_RETURN_IF_ERROR(TakeOffsets(*names_.segment_offsets));
    if (shape_.keys) PREFIXD_RETURN_IF_ERROR(TakeKeys());
    if (num_items_ && num_offsets_ > 0) {
      PREFIXD_ASSIGN_OR_RETURN(places_.scratch_ticket_,
                               store_->ChargeScratch(caller_, ScratchBytes(shape_, *num_items_, num_offsets_)));
    }
    const OutputLength length = {MaxOutputs(), shape_.HasUnknownLength()};
    PREFIXD_RETURN_IF_ERROR(TakeSink(names_.values_sink, OutputOf(work_.operation()), length, &places_.values_sink_));
    PREFIXD_RETURN_IF_ERROR(TakeSink(names_.indices_sink, IndexType(), length, &places_.indices_sink_));
    const OutputLength segments = {num_offsets_ > 0 ? std::optional(num_offsets_ - 1) : std::nullopt,
                                   shape_.keys.has_value()};
    PREFIXD_RETURN_IF_ERROR(TakeSink(names_.counts_sink, DType::kU64, segments, &places_.counts_sink_));
    if (places_.values_ || !shape_.has_input) places_.num_items_ = num_items_;
    places_.uses_.push_back(std::move(values_use_));
    return std::move(places_);
  }

 private:
  // There is a result for each sink.
  absl::Status CheckSinks() const {
    const bool has_values_sink = names_.values_sink.kind != Sink::Kind::kInline;
    const bool has_indices_sink = names_.indices_sink.kind != Sink::Kind::kInline;
    if (has_values_sink && shape_.HasItems() && shape_.value_bytes == 0) {
      return InvalidArgument("FIELD_CONFLICT", "values_sink",
                             "no values are returned: leave the sink or omit_values out");
    }
    if (has_indices_sink && shape_.index_bytes == 0) {
      return InvalidArgument("FIELD_CONFLICT", names_.indices_sink.field,
                             StrCat("nothing is returned for it: leave the sink out, or set ",
                                    shape_.is_reduced ? "return_keys" : "return_indices"));
    }
    if (names_.counts_sink.kind != Sink::Kind::kInline && !shape_.counts_segments) {
      return InvalidArgument("FIELD_CONFLICT", "counts_sink",
                             "nothing is counted: leave the sink out, or send offsets of segments or keys");
    }
    return absl::OkStatus();
  }
  DType IndexType() const {
    if (shape_.is_reduced && shape_.keys) return *shape_.keys;
    return shape_.index_bytes == sizeof(uint32_t) ? DType::kU32 : DType::kU64;
  }

  absl::Status TakeValues(const ArraySlice& slice) {
    PREFIXD_ASSIGN_OR_RETURN(values_use_, store_->Use(caller_, slice, Access::kRead, names_.values_field));
    PREFIXD_RETURN_IF_ERROR(CheckType(values_use_.array(), InputOf(work_.operation()), names_.values_field));
    places_.values_ = ItemsOf(values_use_);
    num_items_ = values_use_.num_items();
    return absl::OkStatus();
  }

  absl::Status TakeMask(const ArraySlice& slice) {
    if (!shape_.mask) {
      return InvalidArgument("FIELD_CONFLICT", "mask",
                             "a predicate selects, so no mask is expected: send one or the other");
    }
    PREFIXD_ASSIGN_OR_RETURN(ArrayUse use, store_->Use(caller_, slice, Access::kRead, "mask.array"));
    PREFIXD_RETURN_IF_ERROR(CheckType(use.array(), DType::kU8, "mask.array"));
    if (num_items_ && MaskBytes(*shape_.mask, *num_items_) != use.num_items()) {
      return InvalidArgument("MASK_LENGTH", "mask.array",
                             StrCat("the mask has ", use.num_items(), " bytes for ", *num_items_,
                                    " elements: expected ", MaskBytes(*shape_.mask, *num_items_)));
    }
    places_.mask_ = ItemsOf(use);
    places_.uses_.push_back(std::move(use));
    return absl::OkStatus();
  }

  // MakeWork has seen to it that there is a recurrence.
  absl::Status TakeCoefficients(const ArraySlice& slice) {
    PREFIXD_ASSIGN_OR_RETURN(ArrayUse use, store_->Use(caller_, slice, Access::kRead, "coefficients.array"));
    PREFIXD_RETURN_IF_ERROR(CheckType(use.array(), InputOf(work_.operation()), "coefficients.array"));
    if (num_items_ && *num_items_ != use.num_items()) {
      return InvalidArgument("COEFFICIENTS_LENGTH", "coefficients.array",
                             StrCat("there are ", use.num_items(), " coefficients for ", *num_items_,
                                    " elements: name as many as there are elements"));
    }
    places_.coefficients_ = ItemsOf(use);
    places_.uses_.push_back(std::move(use));
    return absl::OkStatus();
  }

  absl::Status TakeOffsets(const ArraySlice& slice) {
    PREFIXD_ASSIGN_OR_RETURN(ArrayUse use, store_->Use(caller_, slice, Access::kRead, "segment_offsets.array"));
    PREFIXD_RETURN_IF_ERROR(CheckType(use.array(), DType::kU64, "segment_offsets.array"));
    num_offsets_ = use.num_items();
    PREFIXD_RETURN_IF_ERROR(CheckNumOffsets(num_offsets_, "segment_offsets.array"));
    places_.offsets_ = ItemsOf(use);
    places_.uses_.push_back(std::move(use));
    return absl::OkStatus();
  }

  absl::Status TakeKeys() {
    if (names_.keys && !num_items_) return work_.CheckStream();  // Values that come in a stream.
    if (names_.keys) {
      PREFIXD_ASSIGN_OR_RETURN(ArrayUse use, store_->Use(caller_, *names_.keys, Access::kRead, "keys.array"));
      PREFIXD_RETURN_IF_ERROR(CheckType(use.array(), *shape_.keys, "keys.array"));
      if (num_items_ != use.num_items()) {
        return InvalidArgument("KEYS_LENGTH", "keys.array",
                               StrCat("there are ", use.num_items(), " keys for ", *num_items_,
                                      " elements: name as many as there are elements, and where these are resident"));
      }
      places_.keys_ = ItemsOf(use);
      places_.uses_.push_back(std::move(use));
    }
    if (!num_items_) return absl::OkStatus();  // A stream, which is refused.
    num_offsets_ = *num_items_ + 1;
    return absl::OkStatus();
  }

  // How many elements a result has.
  struct OutputLength {
    std::optional<uint64_t> max;
    bool is_unknown;  // It may be fewer than max.
  };

  absl::Status TakeSink(const Sink& sink, DType dtype, const OutputLength& length, std::optional<Destination>* to) {
    switch (sink.kind) {
      case Sink::Kind::kInline:
        return absl::OkStatus();
      case Sink::Kind::kArray:
        return TakeSlice(sink.array, dtype, length, sink.field, to);
      case Sink::Kind::kNewArray:
        return MakeArray(sink.to_make, dtype, length, sink.field, to);
    }
    return absl::OkStatus();
  }

  // Elements of a result, at most; where that is known. A length that is no matrix, and missing offsets, are
  // refused later, with the values.
  std::optional<uint64_t> MaxOutputs() const {
    if (!shape_.HasItems()) return 1;
    if (shape_.has_offsets && shape_.is_reduced && num_offsets_ == 0) return 0;
    if (!num_items_ || !work_.CheckBeginning(*num_items_).ok()) return num_items_;
    return work_.NumOutputs(*num_items_, num_offsets_);
  }

  absl::Status MakeArray(ArraySpec spec, DType dtype, const OutputLength& length, std::string_view field,
                         std::optional<Destination>* to) {
    spec.dtype = dtype;
    if (!spec.shape.empty()) num_items_ = NumItems(spec.shape);
    const std::optional<uint64_t> max_outputs = spec.shape.empty() ? length.max : MaxOutputs();
    if (!max_outputs) {
      return InvalidArgument("FIELD_CONFLICT", "spec.num_items",
                             "the length of a new array has to be known when the stream begins: declare num_items");
    }
    PREFIXD_ASSIGN_OR_RETURN(
        *to, Destination::Make(store_, caller_, std::move(spec), *max_outputs, length.is_unknown, field));
    return absl::OkStatus();
  }

  absl::Status TakeSlice(ArraySlice slice, DType dtype, const OutputLength& length, std::string_view field,
                         std::optional<Destination>* to) {
    PREFIXD_ASSIGN_OR_RETURN(const ArrayInfo info, store_->Get(caller_, slice.name));
    const uint64_t rest = slice.first_item <= info.num_items ? info.num_items - slice.first_item : 0;
    // A result of known length uses no more than it needs. What does not fit is found below.
    const std::optional<uint64_t> outputs = length.is_unknown ? std::nullopt : length.max;
    if (outputs && *outputs <= rest && *outputs <= slice.num_items.value_or(kAny)) slice.num_items = outputs;
    const bool in_place = IsInPlace(slice, to);
    if (in_place) values_use_ = ArrayUse();
    absl::StatusOr<ArrayUse> use = store_->Use(caller_, slice, Access::kWrite, field);
    if (!use.ok()) {
      const uint64_t end = slice.first_item + std::min(slice.num_items.value_or(rest), rest);
      return Overlaps(slice, end) ? OverlapError(slice, end, field) : std::move(use).status();
    }
    PREFIXD_RETURN_IF_ERROR(CheckType(use->array(), dtype, field));
    if (outputs && use->num_items() < *outputs) {
      return Error(absl::StatusCode::kOutOfRange, "SINK_TOO_SMALL", field,
                   StrCat("the slice has ", use->num_items(), " elements and the result ", *outputs,
                          ": name one that is long enough, or ask for a new array"));
    }
    if (!shape_.has_input && !num_items_) num_items_ = use->num_items();
    if (in_place) places_.values_ = ItemsOf(*use);
    to->emplace(ItemsOf(*use), std::move(slice));
    places_.uses_.push_back(*std::move(use));
    return absl::OkStatus();
  }

  // The values' own part, and the operation can do with it.
  bool IsInPlace(const ArraySlice& slice, const std::optional<Destination>* to) const {
    return shape_.in_place && to == &places_.values_sink_ && shape_.value_bytes == work_.item_bytes() &&
           values_use_.IsOf(slice.name) && values_use_.first_item() == slice.first_item &&
           slice.num_items == values_use_.num_items();
  }

  // Whether the call itself uses some of it.
  bool Overlaps(const ArraySlice& slice, uint64_t end) const {
    const auto overlaps = [&](const ArrayUse& use) {
      return use.IsOf(slice.name) && slice.first_item < use.first_item() + use.num_items() && use.first_item() < end;
    };
    return overlaps(values_use_) || std::any_of(places_.uses_.begin(), places_.uses_.end(), overlaps);
  }

  absl::Status OverlapError(const ArraySlice& slice, uint64_t end, std::string_view field) const {
    return InvalidArgument("OVERLAP", field,
                           StrCat("elements ", slice.first_item, " to ", end,
                                  " of the array are also an operand or another sink of the call: choose a part that "
                                  "it does not use",
                                  shape_.in_place ? ", or exactly its values" : ""));
  }

  ArrayStore* const store_;
  const Caller& caller_;
  const Work& work_;
  const WorkShape& shape_;
  const PlaceNames& names_;
  std::optional<uint64_t> num_items_;
  uint64_t num_offsets_;
  ArrayUse values_use_;  // None where the result takes their place.
  Places places_;
};

absl::StatusOr<Places> Places::Take(ArrayStore* store, const Caller& caller, const Work& work, const PlaceNames& names,
                                    std::optional<uint64_t> num_items, uint64_t num_offsets) {
  return Taker(store, caller, work, names, num_items, num_offsets).Take();
}

}  // namespace prefixd
