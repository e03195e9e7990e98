#include "client/resident_call.h"

#include "base/status.h"

namespace prefixd::client {

v1::Sink ToWire(const Target& target) {
  v1::Sink wire;
  if (const auto* const made = std::get_if<NewArray>(&target)) {
    *wire.mutable_new_array()->mutable_lifetime() = prefixd::ToWire(made->lifetime);
  } else {
    *wire.mutable_array() = prefixd::ToWire(std::get<ArrayPart>(target).slice());
  }
  return wire;
}

absl::Status UnusedPlace(std::string_view field) {
  return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", field,
               StrCat("this primitive has no use for a place in ", field, ": leave it out"));
}

absl::StatusOr<Placed> PlacedOf(const std::shared_ptr<const Connection>& connection, const std::optional<Target>& to,
                                const v1::ResultArray& result) {
  Placed placed;
  if (!to) return placed;
  if (std::holds_alternative<NewArray>(*to) && result.has_new_array()) {
    PREFIXD_ASSIGN_OR_RETURN(ArrayInfo info, FromWire(result.new_array()));
    placed.num_items = info.num_items;
    placed.made = Array(connection, std::move(info), Ownership::kOwned);
    return placed;
  }
  if (std::holds_alternative<ArrayPart>(*to) && result.has_array()) {
    placed.num_items = result.array().num_items();
    return placed;
  }
  return absl::InternalError("the server did not say that the result is where it was to go");
}

}  // namespace prefixd::client
