// Resident arrays: they live on the server's device. An array is uploaded once, and used by any number of calls.
//
//   Client client("127.0.0.1:50051");
//   std::vector<float> values = {3, -1, 2};
//   auto array = client.CreateArray<float>(values);                                     // Uploads.
//   auto positive = client.CompactInto<float>(*array, Where<float>{Comparison::kGreater, 0}, {.values = NewArray{}});
//   auto sum = client.Reduce<float>(positive->values);                                  // 5
//   auto totals = client.ScanInto<float>(positive->values, positive->values);           // In place.
//   std::vector<float> result = *positive->values.Read<float>();                        // [3, 5]
//
// An array that this client made goes with its Array; one that it was told of (Client::BorrowArray) stays.
// An array is on one server. Where the client has several addresses, the array's calls go to its own. An address that
// stands for several servers (dns:///) is none for arrays: calls for one would meet another (NOT_FOUND,
// ARRAY_ELSEWHERE).
//
// Shape:  operations see the elements in a row, whatever the shape.
// Errors: besides those of every call, NOT_FOUND (ARRAY_EXPIRED, ARRAY_UNKNOWN, ARRAY_ELSEWHERE), INVALID_ARGUMENT
//         (ARRAY_RANGE, ARRAY_TYPE, OVERLAP), ABORTED (ARRAY_IN_USE) where another call writes the same elements.
//         A call that fails may have written some of its elements.
// Retry:  what only reads, renews or deletes is tried again, as every call. What makes an array or writes one is tried
//         again only where it has not begun: no server was there, or it refused.
// Source: proto/prefixd/v1/arrays.proto has the contract.
#ifndef PREFIXD_CLIENT_ARRAY_H_
#define PREFIXD_CLIENT_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "client/carry.h"
#include "client/chunk.h"
#include "client/options.h"
#include "kernels/operation.h"
#include "kernels/types.h"
#include "proto/array_info.h"
#include "proto/timing.h"

namespace prefixd::client {

using prefixd::ArrayInfo;
using prefixd::ArraySpec;
using prefixd::FillSpec;
using prefixd::Lifetime;
using prefixd::Timing;
class Connection;  // connection.h, which is private to the library.

// ---- What arrays are filled with -----------------------------------------------------------------------------------
template <class T>
FillSpec Constant(T value) {
  FillSpec fill;
  fill.dtype = kDTypeOf<T>;
  fill.value = Value::Of(value);
  return fill;
}

// start + i * step for element i of the range. Integers wrap; floats are rounded after each operation.
template <class T>
FillSpec Iota(T start = T{0}, T step = T{1}) {
  FillSpec fill = Constant(start);
  fill.kind = FillKind::kIota;
  fill.step = Value::Of(step);
  return fill;
}

// Element i of the range depends on the seed and on first + i alone: integers of all values, floats in [0, 1).
template <class T>
FillSpec Random(uint64_t seed, uint64_t first = 0) {
  FillSpec fill = Constant(T{0});
  fill.kind = FillKind::kRandom;
  fill.seed = seed;
  fill.first = first;
  return fill;
}

// ---- Parts of arrays, as operands and as places for results --------------------------------------------------------
class Array;

// A part of an array. A value: it keeps neither the array nor its elements, and the server checks it when it is used.
class ArrayPart {
 public:
  ArrayPart(const Array& array);  // NOLINT(google-explicit-constructor): an array is its whole.
  // num_items: to the end if absent.
  ArrayPart(const Array& array, uint64_t first_item, std::optional<uint64_t> num_items = {});

  const ArraySlice& slice() const { return slice_; }
  DType dtype() const { return dtype_; }
  uint64_t num_items() const { return num_items_; }
  const std::shared_ptr<const Connection>& connection() const { return connection_; }  // For the library.

 private:
  std::shared_ptr<const Connection> connection_;
  ArraySlice slice_;
  DType dtype_;
  uint64_t num_items_;
};

// An array to be made for a result, of its type, with as many elements.
struct NewArray {
  Lifetime lifetime = {};
};

// Where a result goes. A part has room for the result; what is behind it there stays as it is. The part that has the
// values may be the result's, exactly: the call then works in place, which only a scan does.
using Target = std::variant<NewArray, ArrayPart>;

// ---- Handles -------------------------------------------------------------------------------------------------------
// Whether the end of a handle is the array's.
enum class Ownership : uint8_t { kOwned, kBorrowed };

// A resident array. Client makes them.
// Owns:    the array on the server, unless it is borrowed; keeps the client's connections, so the client may go first.
// Threads: const methods from any thread, any number at once; the others, and the end, alone.
class Array {
 public:
  Array() = default;  // No array: nothing may be done with it. What was moved from, released or deleted is the same.
  Array(Array&& other) noexcept;
  Array& operator=(Array&& other) noexcept;  // Deletes the array that was here.
  // Deletes an array that is not borrowed. Where the server does not answer within a second, the array stays until it
  // expires.
  ~Array();

  bool exists() const { return connection_ != nullptr; }
  // As it was when the handle was made; Stat asks.
  const ArrayInfo& info() const { return info_; }
  const std::string& name() const { return info_.name; }
  DType dtype() const { return info_.dtype; }
  uint64_t num_items() const { return info_.num_items; }

  ArrayPart Part(uint64_t first_item, std::optional<uint64_t> num_items = {}) const {
    return {*this, first_item, num_items};
  }

  // Writes the values to the elements from first_item on.
  // Errors: INVALID_ARGUMENT (ARRAY_TYPE) for another type than the array's, before anything is sent.
  // Cost:   from 16 MiB on several connections share the values, up to eight from 64 MiB on. The values are sent from
  //         where they are; the call returns when gRPC has let go of them. Other calls may see some of them before.
  template <class T>
  absl::Status Write(absl::Span<const T> values, uint64_t first_item = 0, const CallOptions& call = {}) const {
    PREFIXD_RETURN_IF_ERROR(CheckType(kDTypeOf<T>));
    return WriteBytes(AsBytes(values), first_item, call);
  }
  // The same of elements whose type is known at run time.
  // Errors: INVALID_ARGUMENT (LENGTH_NOT_MULTIPLE) unless the bytes are whole elements.
  absl::Status WriteBytes(Bytes values, uint64_t first_item = 0, const CallOptions& call = {}) const;

  // Reads num_items elements from first_item on, all if absent.
  // Errors: as Write.
  // Cost:   as Write. Elements that others write meanwhile are old or new, each connection's share for itself.
  template <class T>
  absl::StatusOr<std::vector<T>> Read(uint64_t first_item = 0, std::optional<uint64_t> num_items = {},
                                      const CallOptions& call = {}) const {
    PREFIXD_RETURN_IF_ERROR(CheckType(kDTypeOf<T>));
    PREFIXD_RETURN_IF_ERROR(CheckRange(first_item, num_items));
    std::vector<T> values(num_items.value_or(this->num_items() - first_item));
    PREFIXD_RETURN_IF_ERROR(
        ReadBytes({reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)}, first_item, call));
    return values;
  }
  // Fills `values` with the elements from first_item on.
  absl::Status ReadBytes(absl::Span<std::byte> values, uint64_t first_item = 0, const CallOptions& call = {}) const;

  // Sets a part to what the fill says; its type is the array's. num_items: to the end if absent.
  // Example: array.Fill(Iota<int32_t>(), 8) -> the elements from 8 on are 0, 1, 2...
  absl::StatusOr<Timing> Fill(const FillSpec& fill, uint64_t first_item = 0, std::optional<uint64_t> num_items = {},
                              const CallOptions& call = {}) const;

  // Copies a part of this array or of another of the server's, of the same type, to the elements from first_item on.
  // Errors: INVALID_ARGUMENT (OVERLAP) where the parts do.
  // Cost:   on the device; nothing crosses the wire.
  absl::StatusOr<Timing> CopyFrom(const ArrayPart& from, uint64_t first_item = 0, const CallOptions& call = {}) const;

  // What the array is now.
  absl::StatusOr<ArrayInfo> Stat(const CallOptions& call = {}) const;
  // Begins a lifetime, in place of the array's.
  absl::StatusOr<ArrayInfo> Renew(const Lifetime& lifetime, const CallOptions& call = {}) const;

  // Deletes the array, borrowed or not. The handle is empty then, unless it failed.
  absl::Status Delete(const CallOptions& call = {});
  // Gives the name up: the array stays on the server until it expires. The handle is empty then.
  std::string Release();

  // For the library, which alone has connections.
  Array(std::shared_ptr<const Connection> connection, ArrayInfo info, Ownership ownership);
  const std::shared_ptr<const Connection>& connection() const { return connection_; }

 private:
  absl::Status CheckExists() const;
  absl::Status CheckType(DType dtype) const;
  absl::Status CheckRange(uint64_t first_item, std::optional<uint64_t> num_items) const;
  void End();

  std::shared_ptr<const Connection> connection_;  // To the array's server alone. Null: no array.
  ArrayInfo info_;
  Ownership ownership_ = Ownership::kBorrowed;
};

// ---- Calls on arrays -----------------------------------------------------------------------------------------------
// Where a call's operands are, and where its results go.
struct ArrayPlaces {
  ArrayPart values;
  std::optional<ArrayPart> mask = {};          // A compact's, where no predicate selects: u8.
  std::optional<ArrayPart> coefficients = {};  // A scan's, by a linear recurrence that has them.
  std::optional<ArrayPart> segments = {};      // Offsets of segments, of a spec that is segmented; or
  std::optional<ArrayPart> keys = {};          // keys.
  std::optional<Target> values_to = {};        // Absent: the result comes to this side.
  std::optional<Target> indices_to = {};       // As values_to. Of a reduce: for the keys of its runs.
  std::optional<Target> counts_to = {};        // A compact's of segments or by keys, as values_to.
};

// What such a call leaves. Of a result that came to this side, the sink has had the elements.
struct ResidentReply {
  uint64_t count = 0;             // Elements of the result; of a reduce, elements reduced.
  Value value = {};               // A reduce's.
  std::optional<uint64_t> index;  // A reduce's, as in ReduceResult.
  Array values;                   // What was made for the result, if that was asked for.
  Array indices;                  // Or the keys of a reduce.
  Array counts;                   // A compact's of segments or by keys; or, on this side:
  std::vector<uint64_t> segment_counts;
  Timing timing;
  std::optional<Carry> carry = {};  // A scan's, if return_carry. Client::RunOnArrays asks for none.
};

// What a typed call leaves whose result stays on the device.
struct ResidentResult {
  uint64_t count = 0;  // Elements of the result.
  Array values;        // What was made for it. No array where the result went into a part of one.
  Timing timing;
  std::optional<Carry> carry = {};  // A scan's, if return_carry.
  Array indices = {};               // As values: a scan's, if they have a target.
};

// Where the results of a scan go. Indices without a target are not made: ScanOptions::return_indices has no use here.
struct ScanTargets {
  Target values;
  std::optional<Target> indices = {};  // u64.
};

// Where the results of a compact go. Values or indices without a target are not made; counts, which a compact of
// segments or by keys has, come to this side then.
struct CompactTargets {
  std::optional<Target> values = {};
  std::optional<Target> indices = {};  // u64.
  std::optional<Target> counts = {};   // u64.
};

struct ResidentCompactResult {
  uint64_t count = 0;  // Elements kept.
  Array values;        // What was made, as in ResidentResult.
  Array indices;
  Timing timing;
  Array counts;
  std::vector<uint64_t> segment_counts;  // Where counts have no target.
};

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

absl::StatusOr<Array> CreateArray(const Connection& connection, const ArraySpec& spec,
                                  const std::optional<FillSpec>& fill, const CallOptions& call);
absl::StatusOr<Array> UploadArray(const Connection& connection, DType dtype, Bytes values, const Lifetime& lifetime,
                                  const CallOptions& call);
absl::StatusOr<Array> BorrowArray(const Connection& connection, std::string_view name, const CallOptions& call);
absl::Status DeleteArray(const Connection& connection, std::string_view name, const CallOptions& call);
absl::StatusOr<std::vector<ArrayInfo>> ListArrays(const Connection& connection, const CallOptions& call);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_ARRAY_H_
