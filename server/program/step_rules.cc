#include "server/program/step_rules.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/status.h"
#include "kernels/args/check.h"
#include "kernels/args/reduce.h"
#include "server/work/key_runs.h"
#include "server/work/segment_offsets.h"

namespace prefixd {
namespace {

constexpr Length kOne = {.max_items = 1};

// "12 items", or "0 to 12 items".
std::string Text(const Length& length) { return StrCat(length.IsKnown() ? "" : "0 to ", length.max_items, " items"); }

absl::Status CheckServed(DType dtype, std::string_view field) {
  if (IsSupported(dtype)) return absl::OkStatus();
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", field,
               StrCat("dtype ", Name(dtype), " is not implemented by this server: GetServerInfo lists what is"));
}

// Lengths follow from the inputs, so a program declares none.
template <class S>
absl::Status CheckPrimitive(const S& spec) {
  PREFIXD_RETURN_IF_ERROR(CheckServed(spec.dtype, "spec.dtype"));
  if constexpr (requires { spec.op; }) {
    PREFIXD_RETURN_IF_ERROR(ValidateOp(S::kPrimitive, spec.dtype, spec.output(), spec.op));
  }
  if (!spec.num_items) return absl::OkStatus();
  return InvalidField("FIELD_CONFLICT", "spec.num_items",
                      "lengths in a program follow from its inputs, so none is declared: leave it out");
}

using RoleSet = uint32_t;
constexpr RoleSet SetOf(std::initializer_list<Role> roles) {
  RoleSet set = 0;
  for (const Role role : roles) set |= RoleSet{1} << static_cast<int>(role);
  return set;
}
constexpr bool Has(RoleSet set, Role role) { return (set & SetOf({role})) != 0; }

// Checks that the arrays have all of the roles in `needed`, and others only of those in `optional`.
absl::Status CheckRoles(const std::vector<NamedArray>& arrays, RoleSet needed, RoleSet optional,
                        std::string_view verb) {
  RoleSet seen = 0;
  for (const NamedArray& array : arrays) {
    if (!Has(needed | optional, array.role) || Has(seen, array.role)) {
      return InvalidField("FIELD_CONFLICT", Name(array.role),
                          StrCat("this step ", verb, " no array as its ", Name(array.role), ": leave it out"));
    }
    seen |= SetOf({array.role});
  }
  for (size_t i = 0; i < kNamesOf<Role>.size(); ++i) {
    const Role role = static_cast<Role>(i);
    if (!Has(needed, role) || Has(seen, role)) continue;
    return InvalidField("FIELD_CONFLICT", Name(role),
                        StrCat("this step ", verb, " an array as its ", Name(role), ": name it"));
  }
  return absl::OkStatus();
}

}  // namespace

// One step while it is checked. A Check of an operation completes it, and says what the step writes.
class StepCheck {
 public:
  StepCheck(StepRules* rules, const ProgramStep& step, const std::vector<SlotUse>& reads,
            const std::vector<Slot>& slots)
      : rules_(*rules), step_(step), reads_(reads), slots_(slots), result_{.operation = step.operation} {
    result_.writes.resize(step.writes.size());
  }

  absl::StatusOr<StepResult> Run() {
    PREFIXD_RETURN_IF_ERROR(std::visit([this](auto& spec) { return Check(&spec); }, result_.operation));
    return std::move(result_);
  }

 private:
  absl::Status Check(ScanSpec* spec) {
    spec->segmented = Reads(Role::kSegmentOffsets) || Reads(Role::kKeys);
    spec->has_coefficients = Reads(Role::kCoefficients);
    PREFIXD_RETURN_IF_ERROR(CheckAllRoles(SetOf({Role::kValues}),
                                          SetOf({Role::kSegmentOffsets, Role::kCoefficients, Role::kKeys}),
                                          SetOf({Role::kOut}), SetOf({Role::kIndicesOut})));
    spec->return_indices = Writes(Role::kIndicesOut);
    PREFIXD_RETURN_IF_ERROR(CheckPrimitive(*spec));
    PREFIXD_RETURN_IF_ERROR(CheckScan(*spec));
    PREFIXD_RETURN_IF_ERROR(CheckType(Role::kValues, spec->dtype));
    if (spec->has_coefficients) {
      PREFIXD_RETURN_IF_ERROR(CheckType(Role::kCoefficients, spec->dtype));
      PREFIXD_RETURN_IF_ERROR(CheckSameLength(Role::kCoefficients, Role::kValues));
    }
    PREFIXD_RETURN_IF_ERROR(CheckSegments(spec));
    PREFIXD_RETURN_IF_ERROR(CheckMatrix(spec->axis));
    Length length = Read(Role::kValues).length;
    if (spec->include_initial) {
      if (!length.IsKnown()) {
        return InvalidField("PROGRAM_LENGTH", "values",
                            StrCat(Describe(Role::kValues),
                                   ", and a scan with its initial value has one more: expected an array whose length "
                                   "is known"));
      }
      ++length.max_items;
    }
    if (spec->return_indices) PREFIXD_RETURN_IF_ERROR(CheckIndicesFit(spec->index_dtype));
    Write(Role::kOut, spec->output(), length);
    Write(Role::kIndicesOut, spec->index_dtype, length);
    return absl::OkStatus();
  }

  absl::Status Check(ReduceSpec* spec) {
    const bool has_keys = Reads(Role::kKeys);
    spec->segmented = Reads(Role::kSegmentOffsets) || has_keys;
    spec->return_keys = Writes(Role::kKeysOut);
    const bool has_one_value = !spec->axis && !spec->segmented;
    const bool finds_place = has_one_value && (spec->op == Op::kMin || spec->op == Op::kMax);
    PREFIXD_RETURN_IF_ERROR(
        CheckAllRoles(SetOf({Role::kValues}), SetOf({Role::kSegmentOffsets, Role::kKeys}), SetOf({Role::kOut}),
                      (finds_place ? SetOf({Role::kIndexOut}) : 0) | (has_keys ? SetOf({Role::kKeysOut}) : 0)));
    PREFIXD_RETURN_IF_ERROR(CheckPrimitive(*spec));
    PREFIXD_RETURN_IF_ERROR(CheckReduce(*spec));
    PREFIXD_RETURN_IF_ERROR(CheckType(Role::kValues, spec->dtype));
    PREFIXD_RETURN_IF_ERROR(CheckSegments(spec));
    if (spec->segmented) {
      const Length segments = Segments(*spec);
      Write(Role::kOut, spec->output(), segments);
      if (has_keys) Write(Role::kKeysOut, *spec->key_dtype, segments);
      return absl::OkStatus();
    }
    if (spec->axis) {
      PREFIXD_RETURN_IF_ERROR(CheckMatrix(spec->axis));
      Write(Role::kOut, spec->output(), {.max_items = spec->axis->NumArrays(Read(Role::kValues).length.max_items)});
      return absl::OkStatus();
    }
    result_.scratch_bytes = sizeof(ReduceState);
    Write(Role::kOut, spec->output(), kOne);
    Write(Role::kIndexOut, DType::kU64, kOne);
    return absl::OkStatus();
  }

  bool Reads(Role role) const {
    return std::any_of(step_.reads.begin(), step_.reads.end(),
                       [&](const NamedArray& array) { return array.role == role; });
  }
  bool Writes(Role role) const {
    return std::any_of(step_.writes.begin(), step_.writes.end(),
                       [&](const NamedArray& array) { return array.role == role; });
  }
  // Segments, if there are some, and keys. What the offsets are shows when the step runs.
  template <class S>
  absl::Status CheckSegments(S* spec) {
    if (!spec->segmented) {
      if (!spec->key_dtype) return absl::OkStatus();
      return InvalidField("FIELD_CONFLICT", "spec.key_dtype", "the step reads no keys: name them, or leave it out");
    }
    const bool has_keys = Reads(Role::kKeys);
    bool has_axis = false;
    if constexpr (requires { spec->axis; }) has_axis = spec->axis.has_value();
    if (has_axis || (has_keys && Reads(Role::kSegmentOffsets))) {
      return InvalidField("FIELD_CONFLICT", has_keys ? "keys" : "segment_offsets",
                          "an array is cut by an axis, by offsets of segments, or by keys: leave the others out");
    }
    return has_keys ? CheckKeys(&spec->key_dtype) : CheckOffsets();
  }
  // How many there are. Needs: CheckSegments was OK.
  template <class S>
  Length Segments(const S& spec) {
    if (!spec.key_dtype) return {.max_items = Read(Role::kSegmentOffsets).length.max_items - 1};
    const Length& length = Read(Role::kKeys).length;
    if (length.max_items == 0) return {};
    result_.runs = rules_.NumberOf({.slot = SlotOf(Role::kKeys), .by_keys = true, .of = length});
    return {length.max_items, result_.runs};
  }
  absl::Status CheckKeys(std::optional<DType>* key_dtype) {
    const Slot& keys = Read(Role::kKeys);
    PREFIXD_RETURN_IF_ERROR(CheckType(Role::kKeys, key_dtype->value_or(keys.dtype)));
    PREFIXD_RETURN_IF_ERROR(CheckSameLength(Role::kKeys, Role::kValues));
    *key_dtype = keys.dtype;
    PREFIXD_RETURN_IF_ERROR(CheckFewItems(Role::kKeys));
    result_.working_bytes = MemoryBytes(KeyRunsBytes(keys.length.max_items)) + kMemoryUnitBytes;
    return absl::OkStatus();
  }
  // So that what it takes beside them is no more than 2^64 bytes.
  absl::Status CheckFewItems(Role role) {
    constexpr uint64_t kMaxItems = std::numeric_limits<uint64_t>::max() / 64;
    if (Read(role).length.max_items <= kMaxItems) return absl::OkStatus();
    return InvalidField("PROGRAM_SIZE", Name(role), StrCat(Describe(role), ": expected at most ", kMaxItems));
  }
  absl::Status CheckOffsets() {
    PREFIXD_RETURN_IF_ERROR(CheckType(Role::kSegmentOffsets, DType::kU64));
    const Length& offsets = Read(Role::kSegmentOffsets).length;
    if (!offsets.IsKnown()) {
      return InvalidField("PROGRAM_LENGTH", "segment_offsets",
                          StrCat(Describe(Role::kSegmentOffsets),
                                 ", and how many segments there are says what the step costs: expected an array whose "
                                 "length is known"));
    }
    return CheckNumOffsets(offsets.max_items, "segment_offsets");
  }

  absl::Status Check(CompactSpec* spec) {
    const RoleSet mask = spec->predicate ? 0 : SetOf({Role::kMask});
    spec->segmented = Reads(Role::kSegmentOffsets) || Reads(Role::kKeys);
    PREFIXD_RETURN_IF_ERROR(CheckAllRoles(SetOf({Role::kValues}) | mask, SetOf({Role::kSegmentOffsets, Role::kKeys}),
                                          spec->segmented ? SetOf({Role::kCountsOut}) : 0,
                                          SetOf({Role::kOut, Role::kIndicesOut, Role::kCountOut})));
    PREFIXD_RETURN_IF_ERROR(CheckPrimitive(*spec));
    PREFIXD_RETURN_IF_ERROR(CheckType(Role::kValues, spec->dtype));
    PREFIXD_RETURN_IF_ERROR(CheckSegments(spec));
    if (!spec->predicate) PREFIXD_RETURN_IF_ERROR(CheckMask(spec->mask_kind));
    const Length& length = Read(Role::kValues).length;
    spec->return_values = Writes(Role::kOut);
    spec->return_indices = Writes(Role::kIndicesOut);
    if (spec->return_indices) PREFIXD_RETURN_IF_ERROR(CheckIndicesFit(spec->index_dtype));
    result_.scratch_bytes = sizeof(uint64_t);
    result_.selection = rules_.NumberOf({.slot = SlotOf(spec->predicate ? Role::kValues : Role::kMask),
                                         .predicate = spec->predicate,
                                         .mask_kind = spec->mask_kind,
                                         .invert = spec->invert,
                                         .of = length});
    // Nothing is kept of nothing.
    const Length kept = {length.max_items, length.max_items == 0 ? std::nullopt : result_.selection};
    Write(Role::kOut, spec->dtype, kept);
    Write(Role::kIndicesOut, spec->index_dtype, kept);
    Write(Role::kCountOut, DType::kU64, kOne);
    if (!spec->segmented) return absl::OkStatus();
    PREFIXD_RETURN_IF_ERROR(CheckFewItems(Role::kValues));
    if (!spec->return_indices) result_.working_bytes += MemoryBytes(length.max_items * sizeof(uint64_t));
    Write(Role::kCountsOut, DType::kU64, Segments(*spec));
    return absl::OkStatus();
  }

  absl::Status Check(DifferenceSpec* spec) {
    spec->segmented = Reads(Role::kSegmentOffsets) || Reads(Role::kKeys);
    PREFIXD_RETURN_IF_ERROR(
        CheckAllRoles(SetOf({Role::kValues}), SetOf({Role::kSegmentOffsets, Role::kKeys}), SetOf({Role::kOut}), 0));
    PREFIXD_RETURN_IF_ERROR(CheckPrimitive(*spec));
    PREFIXD_RETURN_IF_ERROR(CheckType(Role::kValues, spec->dtype));
    PREFIXD_RETURN_IF_ERROR(CheckSegments(spec));
    PREFIXD_RETURN_IF_ERROR(CheckMatrix(spec->axis));
    Write(Role::kOut, spec->dtype, Read(Role::kValues).length);
    return absl::OkStatus();
  }

  // The values are a matrix with this axis, if there is one.
  absl::Status CheckMatrix(const std::optional<Axis>& axis) {
    if (!axis) return absl::OkStatus();
    const Length& length = Read(Role::kValues).length;
    if (length.IsKnown()) return CheckAxis(*axis, length.max_items);
    return InvalidField("PROGRAM_LENGTH", "values",
                        StrCat(Describe(Role::kValues),
                               ", and an operation along an axis needs whole rows: expected an "
                               "array whose length is known"));
  }

  absl::Status Check(FillSpec* spec) {
    PREFIXD_RETURN_IF_ERROR(CheckAllRoles(0, SetOf({Role::kLike}), SetOf({Role::kOut}), 0));
    PREFIXD_RETURN_IF_ERROR(CheckServed(spec->dtype, "dtype"));
    const Length length = reads_.empty() ? Length{.max_items = step_.num_items} : Read(Role::kLike).length;
    if (spec->kind == FillKind::kRandom && length.max_items > std::numeric_limits<uint64_t>::max() - spec->first) {
      return InvalidField("PROGRAM_SIZE", "content.random.first",
                          StrCat(Text(length), " from number ", spec->first,
                                 " of the stream are beyond its end, 2^64: use a "
                                 "smaller first"));
    }
    Write(Role::kOut, spec->dtype, length);
    return absl::OkStatus();
  }

  absl::Status Check(CopySpec* spec) { return CheckOneArray(spec); }

  absl::Status Check(TransposeSpec* spec) {
    PREFIXD_RETURN_IF_ERROR(CheckOneArray(spec));
    if (spec->num_columns > 0 && spec->num_rows > std::numeric_limits<uint64_t>::max() / spec->num_columns) {
      return InvalidField("PROGRAM_SIZE", "num_rows",
                          StrCat(spec->num_rows, " rows of ", spec->num_columns, " are 2^64 items or more: use fewer"));
    }
    const uint64_t num_items = spec->num_rows * spec->num_columns;
    if (Read(Role::kValues).length == Length{.max_items = num_items}) return absl::OkStatus();
    return InvalidField("PROGRAM_LENGTH", "values",
                        StrCat(Describe(Role::kValues), ", but ", spec->num_rows, " rows of ", spec->num_columns,
                               " are ", num_items, ": expected an array that is known to be as long"));
  }

  absl::Status Check(MapSpec* spec) {
    if (NumInputs(spec->op) == 2) return CheckTwoArrays(spec);
    PREFIXD_RETURN_IF_ERROR(CheckOneArray(spec));
    switch (spec->op) {
      case MapOp::kCast:
        return CheckServed(spec->cast_dtype, "dtype");
      case MapOp::kAffine: {
        PREFIXD_ASSIGN_OR_RETURN(spec->a, ToValue(step_.a.value_or(int64_t{1}), spec->dtype, "a"));
        PREFIXD_ASSIGN_OR_RETURN(spec->b, ToValue(step_.b.value_or(int64_t{0}), spec->dtype, "b"));
        return absl::OkStatus();
      }
      case MapOp::kCompare: {
        PREFIXD_RETURN_IF_ERROR(
            CheckComparison(spec->comparison, step_.a.has_value(), step_.b.has_value(), "predicate"));
        if (step_.a) {
          PREFIXD_ASSIGN_OR_RETURN(spec->a, ToValue(*step_.a, spec->dtype, "predicate.value"));
        }
        if (step_.b) {
          PREFIXD_ASSIGN_OR_RETURN(spec->b, ToValue(*step_.b, spec->dtype, "predicate.end"));
        }
        return absl::OkStatus();
      }
      default:
        return absl::OkStatus();
    }
  }

  absl::Status Check(GatherSpec* spec) {
    PREFIXD_RETURN_IF_ERROR(CheckAllRoles(SetOf({Role::kValues, Role::kIndices}), 0, SetOf({Role::kOut}), 0));
    const Slot& indices = Read(Role::kIndices);
    spec->dtype = Read(Role::kValues).dtype;
    spec->index_dtype = indices.dtype;
    PREFIXD_RETURN_IF_ERROR(CheckIndexType(indices.dtype, "indices"));
    result_.scratch_bytes = sizeof(uint64_t);
    Write(Role::kOut, spec->dtype, indices.length);
    return absl::OkStatus();
  }

  absl::Status Check(ScatterSpec* spec) {
    PREFIXD_RETURN_IF_ERROR(
        CheckAllRoles(SetOf({Role::kValues, Role::kIndices, Role::kInto}), 0, SetOf({Role::kOut}), 0));
    const Slot& into = Read(Role::kInto);
    spec->dtype = into.dtype;
    spec->index_dtype = Read(Role::kIndices).dtype;
    PREFIXD_RETURN_IF_ERROR(CheckIndexType(spec->index_dtype, "indices"));
    PREFIXD_RETURN_IF_ERROR(CheckSameType(Role::kValues, Role::kInto));
    PREFIXD_RETURN_IF_ERROR(CheckSameLength(Role::kValues, Role::kIndices));
    result_.scratch_bytes = sizeof(uint64_t);
    Write(Role::kOut, spec->dtype, into.length);
    return absl::OkStatus();
  }

  // Glue that reads one array, takes its type, and writes one that is as long.
  template <class S>
  absl::Status CheckOneArray(S* spec) {
    PREFIXD_RETURN_IF_ERROR(CheckAllRoles(SetOf({Role::kValues}), 0, SetOf({Role::kOut}), 0));
    spec->dtype = Read(Role::kValues).dtype;
    Write(Role::kOut, spec->output(), Read(Role::kValues).length);
    return absl::OkStatus();
  }

  absl::Status CheckTwoArrays(MapSpec* spec) {
    PREFIXD_RETURN_IF_ERROR(CheckAllRoles(SetOf({Role::kLeft, Role::kRight}), 0, SetOf({Role::kOut}), 0));
    if (spec->op == MapOp::kCompareArrays && !IsOfTwo(spec->comparison)) {
      return InvalidField("FIELD_CONFLICT", "comparison",
                          StrCat("the comparison ", Name(spec->comparison), " looks at one array: use a compare step"));
    }
    PREFIXD_RETURN_IF_ERROR(CheckSameType(Role::kLeft, Role::kRight));
    PREFIXD_RETURN_IF_ERROR(CheckSameLength(Role::kLeft, Role::kRight));
    spec->dtype = Read(Role::kLeft).dtype;
    Write(Role::kOut, spec->output(), Read(Role::kLeft).length);
    return absl::OkStatus();
  }

  absl::Status CheckMask(MaskKind kind) {
    PREFIXD_RETURN_IF_ERROR(CheckType(Role::kMask, DType::kU8));
    if (kind == MaskKind::kBytes) return CheckSameLength(Role::kMask, Role::kValues);
    const Length& values = Read(Role::kValues).length;
    const uint64_t num_bytes = MaskBytes(kind, values.max_items);
    if (values.IsKnown() && Read(Role::kMask).length == Length{.max_items = num_bytes}) return absl::OkStatus();
    return InvalidField("PROGRAM_LENGTH", "mask",
                        StrCat(Describe(Role::kMask), " and ", Describe(Role::kValues),
                               ": expected known lengths, and one byte for each eight items; or use a mask of bytes"));
  }

  // Checks the roles of what is read, then of what is written.
  absl::Status CheckAllRoles(RoleSet reads, RoleSet optional_reads, RoleSet writes, RoleSet optional_writes) {
    PREFIXD_RETURN_IF_ERROR(CheckRoles(step_.reads, reads, optional_reads, "reads"));
    PREFIXD_RETURN_IF_ERROR(CheckRoles(step_.writes, writes, optional_writes, "writes"));
    if (!step_.writes.empty()) return absl::OkStatus();
    return InvalidField("FIELD_CONFLICT", "out", "this step writes nothing: name what it is to make");
  }

  absl::Status CheckType(Role role, DType dtype) {
    const Slot& slot = Read(role);
    if (slot.dtype == dtype) return absl::OkStatus();
    return InvalidField("PROGRAM_TYPE", Name(role),
                        StrCat(slot.name, " is of ", Name(slot.dtype), ", and this step's ", Name(role), " are ",
                               Name(dtype), ": cast it, or change the step's type"));
  }

  absl::Status CheckSameType(Role role, Role other) {
    if (Read(role).dtype == Read(other).dtype) return absl::OkStatus();
    return InvalidField("PROGRAM_TYPE", Name(role),
                        StrCat(Read(role).name, " is of ", Name(Read(role).dtype), " and ", Read(other).name, " of ",
                               Name(Read(other).dtype), ": expected one type, cast one of them"));
  }

  // field: what says the type.
  absl::Status CheckIndexType(DType dtype, std::string_view field) {
    if (dtype == DType::kU32 || dtype == DType::kU64) return absl::OkStatus();
    return InvalidField("PROGRAM_TYPE", field, StrCat("indices are u32 or u64, not ", Name(dtype), ": cast them"));
  }

  // Whether those of the step's values fit the type that its spec says.
  absl::Status CheckIndicesFit(DType index_dtype) {
    PREFIXD_RETURN_IF_ERROR(CheckIndexType(index_dtype, "spec.index_dtype"));
    const Length& length = Read(Role::kValues).length;
    return length.IsKnown() ? ValidateIndexType(index_dtype, 0, length.max_items) : absl::OkStatus();
  }

  absl::Status CheckSameLength(Role role, Role other) {
    const Length& a = Read(role).length;
    const Length& b = Read(other).length;
    if (a == b) return absl::OkStatus();
    const bool may_be_equal = !a.IsKnown() || !b.IsKnown();
    return InvalidField(
        "PROGRAM_LENGTH", Name(role),
        StrCat(Describe(role), " and ", Describe(other), ": expected ",
               may_be_equal ? "lengths that are known to be equal, as of two arrays compacted by one mask"
                            : "arrays of one length"));
  }

  std::string Describe(Role role) const {
    const Slot& slot = Read(role);
    return StrCat(slot.name, " has ", Text(slot.length));
  }

  int SlotOf(Role role) const {
    return std::find_if(reads_.begin(), reads_.end(), [&](const SlotUse& use) { return use.role == role; })->slot;
  }
  // Needs: CheckAllRoles, which says that it is there.
  const Slot& Read(Role role) const { return slots_[SlotOf(role)]; }

  // Nothing if the step does not ask for it.
  void Write(Role role, DType dtype, const Length& length) {
    for (size_t i = 0; i < step_.writes.size(); ++i) {
      if (step_.writes[i].role == role) result_.writes[i] = {dtype, length};
    }
  }

  StepRules& rules_;
  const ProgramStep& step_;
  const std::vector<SlotUse>& reads_;
  const std::vector<Slot>& slots_;
  StepResult result_;
};

absl::StatusOr<StepResult> StepRules::Apply(const ProgramStep& step, const std::vector<SlotUse>& reads,
                                            const std::vector<Slot>& slots) {
  return StepCheck(this, step, reads, slots).Run();
}

int StepRules::NumberOf(const Selection& selection) {
  const auto place = std::find(selections_.begin(), selections_.end(), selection);
  const auto number = static_cast<int>(place - selections_.begin());
  if (place == selections_.end()) selections_.push_back(selection);
  return number;
}

}  // namespace prefixd
