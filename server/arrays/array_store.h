// The resident arrays: their names, whose they are, how long they live, what of them is in use, and what may be had of
// them at once.
//
//   std::shared_ptr<ResidentArray> array = *store.Reserve(caller, {.dtype = DType::kF32, .shape = {n}});
//   ... on a lane: array->TakeMemory(*lane.Allocate(array->size_bytes())), and its content ...
//   ArrayInfo info = *store.Publish(std::move(array));
//   ArrayUse use = *store.Use(caller, {.name = info.name, .first_item = 8}, Access::kRead, "values.array");
//   ... lane.Reduce({.in = use.data(), .num_items = use.num_items()}) ...
//
// An array belongs to the caller who made it; to others it does not exist. Whoever has no name of his own (Caller's
// is_address) shares his arrays with all who know their names. Nothing takes an array away before its time: where there
// is no room for a new one, the new one is refused. When its time is over, or when it is deleted, it loses its name;
// its memory, and what it is charged for, go with the last call that uses it.
//
// Threads: any; one thread of its own takes away what has expired. No memory is given back under the store's lock.
// Bounds:  the limits; of arrays that are gone the last kMaxRemembered names are kept, to tell those that have expired.
// Ownership: outlives the arrays and their uses. The lanes outlive the arrays.
#ifndef PREFIXD_SERVER_ARRAYS_ARRAY_STORE_H_
#define PREFIXD_SERVER_ARRAYS_ARRAY_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "kernels/types.h"
#include "proto/array_info.h"
#include "server/arrays/array_names.h"
#include "server/arrays/gone_names.h"
#include "server/arrays/ranges_in_use.h"
#include "server/arrays/resident_array.h"
#include "server/call/admission.h"
#include "server/call/caller.h"

namespace prefixd {

// A part of an array that a call uses. Move-only; its end is the use's.
// Threads: one at a time.
class ArrayUse {
 public:
  ArrayUse() = default;  // A use of nothing, which has no array.
  ArrayUse(ArrayUse&& other) noexcept;
  ArrayUse& operator=(ArrayUse&& other) noexcept;  // Ends the use that was here.
  ~ArrayUse();

  const ResidentArray& array() const { return *array_; }
  bool IsOf(std::string_view name) const;  // A use of nothing is of none.
  uint64_t first_item() const { return first_item_; }
  uint64_t num_items() const { return num_items_; }
  // Device: the part's first element.
  std::byte* data() const { return array_->data() + first_item_ * SizeOf(array_->dtype()); }

 private:
  friend class ArrayStore;
  ArrayStore* store_ = nullptr;  // Null: a use of nothing.
  std::shared_ptr<ResidentArray> array_;
  uint64_t first_item_ = 0;
  uint64_t num_items_ = 0;
  RangesInUse::Place place_;
};

class ArrayStore {
 public:
  struct Limits {
    uint64_t arrays = 0;
    uint64_t bytes = 0;           // With kBytesPerArray for each.
    uint64_t share_percent = 50;  // What a caller may have of what the others leave, as Admission counts it.
    absl::Duration default_ttl = absl::Minutes(10);  // At most max_ttl.
    absl::Duration max_ttl = absl::Hours(24);
  };
  // The time of day, since callers are told when their arrays expire. It is asked under the store's lock.
  using Clock = std::function<absl::Time()>;
  static constexpr size_t kMaxRemembered = 4096;
  static constexpr uint64_t kBytesPerArray = 1024;  // What the host keeps of an array, and of its name afterwards.

  explicit ArrayStore(const Limits& limits, Clock clock = absl::Now);
  ~ArrayStore();  // Needs: no array outside, no use, no ticket.

  // An array of the caller's, charged, without memory and unknown to anybody before it is published. Dropped before, it
  // is as if it had never been.
  // field: where the spec stands in the message, for errors; empty: it is the message.
  // Needs:  a dtype of the enum.
  // Errors: INVALID_ARGUMENT (SHAPE, LIFETIME); RESOURCE_EXHAUSTED (ARRAY_BUDGET); the status given to Close.
  absl::StatusOr<std::shared_ptr<ResidentArray>> Reserve(const Caller& caller, const ArraySpec& spec,
                                                         std::string_view field = "");

  // Gives the array its name and its time. Needs: it has memory, if it has elements, and its content. Errors: the
  // status given to Close.
  absl::StatusOr<ArrayInfo> Publish(std::shared_ptr<ResidentArray> array);

  // Charges device memory that a call uses beside its arrays, as long as the ticket is there. Errors: ARRAY_BUDGET.
  absl::StatusOr<Admission::Ticket> ChargeScratch(const Caller& caller, uint64_t num_bytes);

  // Takes a part of an array into use. Calls that read share a part; who writes has it for himself, also against
  // another use of the same call. A use of no items disturbs nobody.
  // An array with renew_on_use does not expire while it is used; another one may, and its use ends as if it were there.
  // field: where the slice stands in the message, for errors.
  // Errors: those of Get; INVALID_ARGUMENT (ARRAY_RANGE); ABORTED (ARRAY_IN_USE); the status given to Close.
  absl::StatusOr<ArrayUse> Use(const Caller& caller, const ArraySlice& slice, Access access, std::string_view field);

  // What Use would take, without taking it. Errors: as Use, but for ARRAY_IN_USE.
  absl::StatusOr<SliceInfo> Look(const Caller& caller, const ArraySlice& slice, std::string_view field);

  // Errors: INVALID_ARGUMENT (ARRAY_NAME); NOT_FOUND (ARRAY_EXPIRED, ARRAY_UNKNOWN, ARRAY_ELSEWHERE).
  absl::StatusOr<ArrayInfo> Get(const Caller& caller, std::string_view name);
  // The lifetime takes the place of the array's; the ttl begins anew. Errors: those of Get; LIFETIME.
  absl::StatusOr<ArrayInfo> Renew(const Caller& caller, std::string_view name, const Lifetime& lifetime);
  // What uses the array ends as if it were there. Errors: those of Get.
  absl::Status Delete(const Caller& caller, std::string_view name);

  struct Page {
    std::vector<ArrayInfo> arrays;
    std::string next_name;  // Empty: there are no more.
  };
  // The caller's arrays in the order of their names, from `from` on, which may be any text. A page has one at least, if
  // there is one. Errors: PERMISSION_DENIED (LIST_NEEDS_NAME).
  absl::StatusOr<Page> List(const Caller& caller, std::string_view from, size_t max_arrays);

  // Refuses new arrays and uses with `status`, which is not OK, from now on. Uses that are there go on.
  void Close(absl::Status status);

  const Limits& limits() const { return limits_; }
  Admission::Use in_use() const { return admission_.in_use(); }  // Arrays, as requests, and bytes, with scratch.

 private:
  friend class ArrayUse;
  // Arrays that have lost their names. It is declared before the MutexLock, so that they go after the lock does.
  using Nameless = std::vector<std::shared_ptr<ResidentArray>>;

  absl::StatusOr<absl::Duration> TtlOf(const Lifetime& lifetime, std::string_view field) const;
  // Errors: RESOURCE_EXHAUSTED (ARRAY_BUDGET).
  absl::StatusOr<Admission::Ticket> Charge(const Caller& caller, Admission::Kind kind, uint64_t num_bytes);
  // What the caller is told where the admission refuses so many bytes, or one more array.
  absl::Status OverBudget(const absl::Status& refusal, uint64_t num_bytes) const;

  // Needs: what has expired is removed. Errors: those of Get.
  absl::StatusOr<std::shared_ptr<ResidentArray>> Find(const Caller& caller, std::string_view name,
                                                      std::string_view field) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginTtl(ResidentArray& array, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(ResidentArray& array, Nameless* removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveExpired(absl::Time now, Nameless* removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndUse(ResidentArray& array, RangesInUse::Place place);
  void RunExpiry();

  const Limits limits_;
  const Clock clock_;
  const ArrayNames names_;
  Admission admission_;  // Before the arrays, which have its tickets.
  Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<ResidentArray>> arrays_ ABSL_GUARDED_BY(mutex_);  // By name.
  // The owner and the name of each array whose caller has a name.
  std::set<std::pair<std::string, std::string>> by_owner_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, ResidentArray*>> by_expiry_ ABSL_GUARDED_BY(mutex_);
  GoneNames gone_ ABSL_GUARDED_BY(mutex_){kMaxRemembered};
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // As the thread saw it when it last looked.
  absl::Time next_expiry_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  CondVar news_;  // There is an earlier one, or the end.
  std::thread expiry_thread_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_ARRAYS_ARRAY_STORE_H_
