#include "server/work/glue.h"

namespace prefixd {
namespace {

class FillWork final : public Work {
 public:
  FillWork(const Device& device, const FillSpec& spec)
      : Work(device, spec, {.value_bytes = SizeOf(spec.dtype), .has_input = false}), fill_(spec) {}

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    return lane.Fill({.dtype = fill_.dtype,
                      .kind = fill_.kind,
                      .value = fill_.value,
                      .step = fill_.step,
                      .seed = fill_.seed,
                      .first_item = fill_.first + arrays.first_item,
                      .out = arrays.values,
                      .num_items = arrays.num_items});
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const FillSpec fill_;
};

class CopyWork final : public Work {
 public:
  CopyWork(const Device& device, const CopySpec& spec)
      : Work(device, spec, {.value_bytes = SizeOf(spec.dtype)}), item_bytes_(SizeOf(spec.dtype)) {}

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    return lane.CopyOnDevice(arrays.values, arrays.in, arrays.num_items * item_bytes_, CopyTiming::kTimed);
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const uint64_t item_bytes_;
};

class MapWork final : public Work {
 public:
  MapWork(const Device& device, const MapSpec& spec)
      : Work(device, spec, {.value_bytes = SizeOf(spec.output())}), map_(spec) {}

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    return lane.Map({.op = map_.op,
                     .dtype = map_.dtype,
                     .cast_dtype = map_.cast_dtype,
                     .comparison = map_.comparison,
                     .a = map_.a,
                     .b = map_.b,
                     .in = arrays.in,
                     .other = arrays.other,
                     .out = arrays.values,
                     .num_items = arrays.num_items});
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const MapSpec map_;
};

class GatherWork final : public Work {
 public:
  GatherWork(const Device& device, const GatherSpec& spec)
      : Work(device, spec, {.value_bytes = SizeOf(spec.dtype), .scalar_bytes = sizeof(uint64_t)}), gather_(spec) {}

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    return lane.Gather({.dtype = gather_.dtype,
                        .index_dtype = gather_.index_dtype,
                        .in = arrays.in,
                        .in_items = arrays.table_items,
                        .indices = arrays.other,
                        .out = arrays.values,
                        .num_items = arrays.num_items,
                        .num_bad = reinterpret_cast<uint64_t*>(arrays.scalar)});
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const GatherSpec gather_;
};

class ScatterWork final : public Work {
 public:
  ScatterWork(const Device& device, const ScatterSpec& spec)
      : Work(device, spec, {.value_bytes = SizeOf(spec.dtype), .scalar_bytes = sizeof(uint64_t)}), scatter_(spec) {}

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    return lane.Scatter({.dtype = scatter_.dtype,
                         .index_dtype = scatter_.index_dtype,
                         .in = arrays.in,
                         .indices = arrays.other,
                         .num_items = arrays.num_items,
                         .out = arrays.values,
                         .out_items = arrays.table_items,
                         .num_bad = reinterpret_cast<uint64_t*>(arrays.scalar)});
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const ScatterSpec scatter_;
};

class TransposeWork final : public Work {
 public:
  TransposeWork(const Device& device, const TransposeSpec& spec)
      : Work(device, spec, {.value_bytes = SizeOf(spec.dtype)}), transpose_(spec) {}

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    return lane.Transpose({.dtype = transpose_.dtype,
                           .in = arrays.in,
                           .out = arrays.values,
                           .num_rows = transpose_.num_rows,
                           .num_columns = transpose_.num_columns});
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const TransposeSpec transpose_;
};

}  // namespace

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const MapSpec& spec) {
  return std::make_unique<MapWork>(device, spec);
}

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const GatherSpec& spec) {
  return std::make_unique<GatherWork>(device, spec);
}

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const ScatterSpec& spec) {
  return std::make_unique<ScatterWork>(device, spec);
}

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const TransposeSpec& spec) {
  return std::make_unique<TransposeWork>(device, spec);
}

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const FillSpec& spec) {
  return std::make_unique<FillWork>(device, spec);
}

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const CopySpec& spec) {
  return std::make_unique<CopyWork>(device, spec);
}

}  // namespace prefixd
