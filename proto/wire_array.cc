#include "proto/wire_array.h"

#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/wire_spec.h"
#include "proto/wire_values.h"

namespace prefixd {
namespace {

google::protobuf::Duration ToWire(absl::Duration duration) {
  google::protobuf::Duration wire;
  absl::Duration rest;
  wire.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  wire.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return wire;
}

google::protobuf::Timestamp ToWire(absl::Time time) {
  const google::protobuf::Duration since = ToWire(time - absl::UnixEpoch());
  google::protobuf::Timestamp wire;
  wire.set_seconds(since.seconds());
  wire.set_nanos(since.nanos());
  return wire;
}

template <class Wire>
absl::Duration DurationOf(const Wire& wire) {
  return absl::Seconds(wire.seconds()) + absl::Nanoseconds(wire.nanos());
}

absl::Status CheckDevice(uint32_t device_index, std::string_view field) {
  if (device_index == 0) return absl::OkStatus();
  return NotImplemented(field, "a device beside 0");
}

// For an operand and a sink.
template <class Place>
absl::Status RefuseMemory(const Place& place, std::string_view field) {
  if (place.has_shared_memory()) return NotImplemented(StrCat(field, ".shared_memory"), "shared memory");
  if (place.has_device_memory()) return NotImplemented(StrCat(field, ".device_memory"), "a caller's device memory");
  return absl::OkStatus();
}

}  // namespace

ArraySlice FromWire(const v1::ArraySlice& wire) {
  ArraySlice slice = {.name = wire.name(), .first_item = wire.first_item()};
  if (wire.has_num_items()) slice.num_items = wire.num_items();
  return slice;
}

v1::ArraySlice ToWire(const ArraySlice& slice) {
  v1::ArraySlice wire;
  wire.set_name(slice.name);
  wire.set_first_item(slice.first_item);
  if (slice.num_items) wire.set_num_items(*slice.num_items);
  return wire;
}

absl::StatusOr<Lifetime> FromWire(const v1::Lifetime& wire, std::string_view field) {
  Lifetime lifetime = {.renew_on_use = wire.renew_on_use()};
  if (!wire.has_ttl()) return lifetime;
  // A Duration's own bounds: 10,000 years, and less than a second in nanos.
  constexpr int64_t kMaxSeconds = 315'576'000'000;
  constexpr int32_t kNanosPerSecond = 1'000'000'000;
  const auto& ttl = wire.ttl();
  const bool is_positive = ttl.seconds() >= 0 && ttl.nanos() >= 0 && (ttl.seconds() > 0 || ttl.nanos() > 0);
  if (!is_positive || ttl.seconds() > kMaxSeconds || ttl.nanos() >= kNanosPerSecond) {
    return InvalidField("LIFETIME", StrCat(field, ".ttl"),
                        "the ttl is no positive duration: set one, or leave it out for the server's default");
  }
  lifetime.ttl = DurationOf(ttl);
  return lifetime;
}

v1::Lifetime ToWire(const Lifetime& lifetime) {
  v1::Lifetime wire;
  if (lifetime.ttl) *wire.mutable_ttl() = ToWire(*lifetime.ttl);
  wire.set_renew_on_use(lifetime.renew_on_use);
  return wire;
}

absl::StatusOr<ArraySpec> FromWire(const v1::CreateArrayRequest& wire) {
  PREFIXD_RETURN_IF_ERROR(CheckDevice(wire.device_index(), "device_index"));
  ArraySpec spec;
  PREFIXD_ASSIGN_OR_RETURN(spec.dtype, DecodeDType(wire.dtype()));
  spec.shape.assign(wire.shape().begin(), wire.shape().end());
  PREFIXD_ASSIGN_OR_RETURN(spec.lifetime, FromWire(wire.lifetime(), "lifetime"));
  return spec;
}

absl::StatusOr<ArrayInfo> FromWire(const v1::Array& wire) {
  ArrayInfo info = {.name = wire.name(),
                    .shape = {wire.shape().begin(), wire.shape().end()},
                    .num_items = wire.num_items(),
                    .num_bytes = wire.num_bytes(),
                    .create_time = absl::UnixEpoch() + DurationOf(wire.create_time()),
                    .expire_time = absl::UnixEpoch() + DurationOf(wire.expire_time()),
                    .ttl = DurationOf(wire.ttl()),
                    .renew_on_use = wire.renew_on_use()};
  PREFIXD_ASSIGN_OR_RETURN(info.dtype, DecodeDType(wire.dtype()));
  return info;
}

v1::Array ToWire(const ArrayInfo& info) {
  v1::Array wire;
  wire.set_name(info.name);
  wire.set_dtype(EncodeEnum<v1::DType>(info.dtype));
  for (const uint64_t along : info.shape) wire.add_shape(along);
  wire.set_num_items(info.num_items);
  wire.set_num_bytes(info.num_bytes);
  *wire.mutable_create_time() = ToWire(info.create_time);
  *wire.mutable_expire_time() = ToWire(info.expire_time);
  *wire.mutable_ttl() = ToWire(info.ttl);
  wire.set_renew_on_use(info.renew_on_use);
  return wire;
}

absl::StatusOr<std::optional<ArraySlice>> FromWire(const v1::Operand& wire, std::string_view field) {
  PREFIXD_RETURN_IF_ERROR(RefuseMemory(wire, field));
  if (!wire.has_array()) return std::nullopt;
  return FromWire(wire.array());
}

absl::StatusOr<Sink> FromWire(const v1::Sink& wire, std::string_view field) {
  PREFIXD_RETURN_IF_ERROR(RefuseMemory(wire, field));
  if (wire.has_array()) {
    return Sink{.kind = Sink::Kind::kArray, .field = StrCat(field, ".array"), .array = FromWire(wire.array())};
  }
  if (!wire.has_new_array()) return Sink{};
  PREFIXD_RETURN_IF_ERROR(CheckDevice(wire.new_array().device_index(), StrCat(field, ".new_array.device_index")));
  Sink sink = {.kind = Sink::Kind::kNewArray, .field = StrCat(field, ".new_array")};
  PREFIXD_ASSIGN_OR_RETURN(sink.to_make.lifetime,
                           FromWire(wire.new_array().lifetime(), StrCat(field, ".new_array.lifetime")));
  return sink;
}

}  // namespace prefixd
