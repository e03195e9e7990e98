// The resident arrays of one call: its operands, and where its results go. What a call has inline is not here.
//
// Threads:   one at a time, as the runner that has them. Take on the thread that got the message; Prepare and Conclude
//            on a lane's, on which they enqueue; Publish when all has run.
// Ownership: a call's Places keep the parts that it uses in use, and what is made for it, until they are destroyed.
#ifndef PREFIXD_SERVER_ARRAYS_PLACES_H_
#define PREFIXD_SERVER_ARRAYS_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/array_info.h"
#include "server/arrays/array_store.h"
#include "server/call/caller.h"
#include "server/work/work.h"

namespace prefixd {

// Elements in device memory.
struct DeviceItems {
  std::byte* data = nullptr;
  uint64_t num_items = 0;
};

// Where one result goes: a part of an array that is there, or an array that is made for it. That of a result whose
// length is not known before goes into memory of its own first, and is made when all of it is there.
class Destination {
 public:
  // A part of an array.
  Destination(const DeviceItems& room, ArraySlice slice)
      : room_(room), capacity_(room.num_items), slice_(std::move(slice)) {}
  // An array for exactly num_items, or for as many as there will be of them.
  static absl::StatusOr<Destination> Make(ArrayStore* store, const Caller& caller, ArraySpec spec, uint64_t num_items,
                                          bool is_counted, std::string_view field);

  // Gets the memory that is missing. Before each piece. Errors: the lane's.
  absl::Status Prepare(Lane& lane);
  // Room for the whole result, or what of it is known.
  const DeviceItems& room() const { return room_; }
  // Elements that it has room for; also before it is prepared.
  uint64_t capacity() const { return capacity_; }

  // All of the result is there: num_items. Synchronizes where it copies. Errors: the lane's, and Reserve's.
  absl::Status Conclude(Lane& lane, uint64_t num_items);

  // The array that was made for it, or the part that was written. After Conclude, or where there is nothing to run.
  // Errors: ArrayStore's.
  absl::Status Publish(uint64_t num_items, std::optional<ArrayInfo>* made, std::optional<ArraySlice>* written);

 private:
  Destination() = default;

  ArrayStore* store_ = nullptr;  // Null: a part of an array that is there.
  Caller caller_;
  DeviceItems room_;
  uint64_t capacity_ = 0;
  ArraySlice slice_;
  ArraySpec spec_;
  std::string field_;  // For errors.
  bool is_counted_ = false;
  std::shared_ptr<ResidentArray> made_;
  Admission::Ticket scratch_ticket_;
  Buffer scratch_;
};

class Places {
 public:
  // Nothing that is resident.
  Places() = default;

  // Takes what the names say into use. num_items: the call's elements, where it is known how many come inline.
  // num_offsets: those of segments that come inline.
  // Errors: the store's; INVALID_ARGUMENT (ARRAY_TYPE, OVERLAP, FIELD_CONFLICT, MASK_LENGTH, COUNT_MISMATCH,
  //         SEGMENT_OFFSETS, KEYS_LENGTH, COEFFICIENTS_LENGTH);
  //         OUT_OF_RANGE (SINK_TOO_SMALL).
  static absl::StatusOr<Places> Take(ArrayStore* store, const Caller& caller, const Work& work, const PlaceNames& names,
                                     std::optional<uint64_t> num_items, uint64_t num_offsets);

  // Nothing: they come in messages, or there are none.
  const std::optional<DeviceItems>& values() const { return values_; }
  // A byte for each element, or for eight.
  const std::optional<DeviceItems>& mask() const { return mask_; }
  // Elements of the values' type.
  const std::optional<DeviceItems>& coefficients() const { return coefficients_; }
  // u64, at least one.
  const std::optional<DeviceItems>& offsets() const { return offsets_; }
  const std::optional<DeviceItems>& keys() const { return keys_; }
  // Also that of a reduce's one value.
  std::optional<Destination>& values_sink() { return values_sink_; }
  const std::optional<Destination>& values_sink() const { return values_sink_; }
  std::optional<Destination>& indices_sink() { return indices_sink_; }
  const std::optional<Destination>& indices_sink() const { return indices_sink_; }
  // u64: of each segment a count.
  std::optional<Destination>& counts_sink() { return counts_sink_; }
  const std::optional<Destination>& counts_sink() const { return counts_sink_; }

  bool AreInline() const {
    return !values_ && !mask_ && !coefficients_ && !offsets_ && !keys_ && !values_sink_ && !indices_sink_ &&
           !counts_sink_;
  }
  // The elements of a call whose values don't come in messages: how many there are.
  std::optional<uint64_t> num_items() const { return num_items_; }

 private:
  class Taker;

  std::vector<ArrayUse> uses_;
  std::optional<DeviceItems> values_;
  std::optional<DeviceItems> mask_;
  std::optional<DeviceItems> coefficients_;
  std::optional<DeviceItems> offsets_;
  std::optional<DeviceItems> keys_;
  Admission::Ticket scratch_ticket_;  // For the memory in which runs of keys are found, and segments counted.
  std::optional<Destination> values_sink_;
  std::optional<Destination> indices_sink_;
  std::optional<Destination> counts_sink_;
  std::optional<uint64_t> num_items_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_ARRAYS_PLACES_H_
