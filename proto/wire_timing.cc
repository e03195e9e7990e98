#include "proto/wire_timing.h"

#include "proto/wire_values.h"

namespace prefixd {

Timing FromWire(const v1::Timing& wire) {
  Timing timing;
  if (wire.has_queue_ns()) timing.queue_ns = wire.queue_ns();
  if (wire.has_host_copy_ns()) timing.host_copy_ns = wire.host_copy_ns();
  if (wire.has_host_to_device_ns()) timing.host_to_device_ns = wire.host_to_device_ns();
  if (wire.has_kernel_ns()) timing.kernel_ns = wire.kernel_ns();
  if (wire.has_device_to_host_ns()) timing.device_to_host_ns = wire.device_to_host_ns();
  if (wire.has_server_total_ns()) timing.server_total_ns = wire.server_total_ns();
  timing.device = wire.device();
  timing.algorithm = DecodeAlgorithm(wire.algorithm(), "algorithm").value_or(Algorithm{});
  timing.launches = wire.launches();
  timing.num_items = wire.num_items();
  timing.num_bytes = wire.num_bytes();
  if (wire.has_kernel_gb_per_s()) timing.kernel_gb_per_s = wire.kernel_gb_per_s();
  timing.batch_size = wire.batch_size();
  timing.numerics_version = wire.numerics_version();
  return timing;
}

v1::Timing ToWire(const Timing& timing) {
  v1::Timing wire;
  if (timing.queue_ns) wire.set_queue_ns(*timing.queue_ns);
  if (timing.host_copy_ns) wire.set_host_copy_ns(*timing.host_copy_ns);
  if (timing.host_to_device_ns) wire.set_host_to_device_ns(*timing.host_to_device_ns);
  if (timing.kernel_ns) wire.set_kernel_ns(*timing.kernel_ns);
  if (timing.device_to_host_ns) wire.set_device_to_host_ns(*timing.device_to_host_ns);
  if (timing.server_total_ns) wire.set_server_total_ns(*timing.server_total_ns);
  wire.set_device(timing.device);
  EncodeAlgorithm(timing.algorithm, wire.mutable_algorithm());
  wire.set_launches(timing.launches);
  wire.set_num_items(timing.num_items);
  wire.set_num_bytes(timing.num_bytes);
  if (timing.kernel_ns && *timing.kernel_ns > 0) {
    wire.set_kernel_gb_per_s(static_cast<double>(timing.num_bytes) / static_cast<double>(*timing.kernel_ns));
  }
  wire.set_batch_size(timing.batch_size);
  if (FollowsNumerics(timing.algorithm)) wire.set_numerics_version(kNumericsVersion);
  return wire;
}

}  // namespace prefixd
