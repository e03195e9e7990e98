#include "proto/wire_algorithm_info.h"

#include "proto/wire_values.h"

namespace prefixd {

std::optional<AlgorithmInfo> FromWire(const v1::AlgorithmInfo& wire) {
  const std::optional<Primitive> primitive = KnownEnum<Primitive>(wire.primitive());
  const absl::StatusOr<Algorithm> algorithm = DecodeAlgorithm(wire.algorithm(), "algorithm");
  if (!primitive || !algorithm.ok()) return std::nullopt;
  return AlgorithmInfo{.primitive = *primitive,
                       .algorithm = *algorithm,
                       .has_items_per_thread = wire.has_items_per_thread(),
                       .has_padding = wire.has_padding(),
                       .work = wire.work(),
                       .depth = wire.depth(),
                       .traffic = wire.traffic(),
                       .launches = wire.launches(),
                       .stable = wire.stable(),
                       .deterministic = wire.deterministic(),
                       .max_items = wire.max_items(),
                       .source = wire.source()};
}

v1::AlgorithmInfo ToWire(const AlgorithmInfo& row) {
  v1::AlgorithmInfo wire;
  wire.set_primitive(EncodeEnum<v1::Primitive>(row.primitive));
  EncodeAlgorithm(row.algorithm, wire.mutable_algorithm());
  wire.set_has_items_per_thread(row.has_items_per_thread);
  wire.set_has_padding(row.has_padding);
  wire.set_work(row.work);
  wire.set_depth(row.depth);
  wire.set_traffic(row.traffic);
  wire.set_launches(row.launches);
  wire.set_stable(row.stable);
  wire.set_deterministic(row.deterministic);
  wire.set_max_items(row.max_items);
  wire.set_source(row.source);
  return wire;
}

}  // namespace prefixd
