#include "server/arrays/array_store.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/fatal.h"
#include "base/status.h"

namespace prefixd {
namespace {

constexpr uint64_t kMaxArrayBytes = std::numeric_limits<uint64_t>::max() / 2;  // Sums of a few don't overflow.
// A clock that was set forward is noticed within so much.
constexpr absl::Duration kMaxExpirySleep = absl::Minutes(1);

// What device memory of so many bytes is charged for. Saturates.
uint64_t ChargedBytes(uint64_t num_bytes) { return MemoryBytes(std::min(num_bytes, kMaxArrayBytes)); }

std::string FieldPath(std::string_view message, std::string_view field) {
  return message.empty() ? std::string(field) : StrCat(message, ".", field);
}

// The number of items, if the store can count their bytes.
absl::StatusOr<uint64_t> CountItems(const ArraySpec& spec, std::string_view field) {
  const auto error = [&](std::string_view message) {
    return Error(absl::StatusCode::kInvalidArgument, "SHAPE", field, message);
  };
  const std::vector<uint64_t>& shape = spec.shape;
  if (shape.empty() || shape.size() > 2) {
    return error(StrCat("the shape has ", shape.size(), " dimensions; expected one or two: the number of elements, or ",
                        "of rows and of elements in each"));
  }
  const uint64_t rows = shape.size() == 2 ? shape.front() : 1;
  const uint64_t columns = shape.back();
  const uint64_t max_items = kMaxArrayBytes / SizeOf(spec.dtype);
  if (rows > 0 && columns > max_items / rows) {
    return error(StrCat("an array of ", rows, " by ", columns, " elements of ", SizeOf(spec.dtype),
                        " bytes has more bytes than any memory: make it smaller"));
  }
  return rows * columns;
}

// How many items the slice has of an array of so many.
absl::StatusOr<uint64_t> CountItems(const ArraySlice& slice, uint64_t array_items, std::string_view field) {
  const auto error = [&](std::string_view which, std::string_view message) {
    return Error(absl::StatusCode::kInvalidArgument, "ARRAY_RANGE", FieldPath(field, which), message);
  };
  if (slice.first_item > array_items) {
    return error("first_item", StrCat("the slice begins at element ", slice.first_item, ", and the array has ",
                                      array_items, ": begin there or before"));
  }
  const uint64_t rest = array_items - slice.first_item;
  if (slice.num_items.value_or(rest) > rest) {
    return error("num_items", StrCat("the slice has ", *slice.num_items, " elements from element ", slice.first_item,
                                     " on, where the array has ", rest, ": ask for those, or leave num_items out"));
  }
  return slice.num_items.value_or(rest);
}

absl::Status InUse(const ArraySlice& slice, uint64_t num_items, Access access, std::string_view field) {
  const bool is_read = access == Access::kRead;
  return Error(absl::StatusCode::kAborted, "ARRAY_IN_USE", field,
               StrCat("another call ", is_read ? "writes" : "uses", " some of the ", num_items,
                      " elements from element ", slice.first_item, " on that this one would ",
                      is_read ? "read" : "write", ": retry when that call has ended"));
}

// Whose an array is that the caller makes.
ArrayOwner OwnerOf(const Caller& caller) {
  if (caller.is_address) return std::nullopt;
  return caller.name;
}

// Whether the caller may know that the owner's array is, or was, there. An address never passes for a name.
bool MayUse(const Caller& caller, const ArrayOwner& owner) {
  return !owner || (!caller.is_address && caller.name == *owner);
}

}  // namespace

// ---- Uses ----------------------------------------------------------------------------------------------------------
ArrayUse::ArrayUse(ArrayUse&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      array_(std::move(other.array_)),
      first_item_(other.first_item_),
      num_items_(other.num_items_),
      place_(other.place_) {}

ArrayUse& ArrayUse::operator=(ArrayUse&& other) noexcept {
  ArrayUse taken = std::move(other);
  std::swap(store_, taken.store_);
  std::swap(array_, taken.array_);
  std::swap(first_item_, taken.first_item_);
  std::swap(num_items_, taken.num_items_);
  std::swap(place_, taken.place_);
  return *this;
}

bool ArrayUse::IsOf(std::string_view name) const { return array_ != nullptr && array_->info_.name == name; }

ArrayUse::~ArrayUse() {
  if (store_ != nullptr) store_->EndUse(*array_, place_);
}

absl::StatusOr<ArrayUse> ArrayStore::Use(const Caller& caller, const ArraySlice& slice, Access access,
                                         std::string_view field) {
  Nameless removed;
  MutexLock lock(mutex_);
  PREFIXD_RETURN_IF_ERROR(closed_);
  const absl::Time now = clock_();
  RemoveExpired(now, &removed);
  PREFIXD_ASSIGN_OR_RETURN(std::shared_ptr<ResidentArray> array, Find(caller, slice.name, FieldPath(field, "name")));
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t num_items, CountItems(slice, array->num_items(), field));
  const uint64_t end = slice.first_item + num_items;
  if (!array->in_use_.Admits(slice.first_item, end, access)) return InUse(slice, num_items, access, field);
  if (array->info_.renew_on_use) BeginTtl(*array, now);
  ArrayUse use;
  use.store_ = this;
  use.place_ = array->in_use_.Add(slice.first_item, end, access);
  use.array_ = std::move(array);
  use.first_item_ = slice.first_item;
  use.num_items_ = num_items;
  return use;
}

void ArrayStore::EndUse(ResidentArray& array, RangesInUse::Place place) {
  MutexLock lock(mutex_);
  array.in_use_.Remove(place);
  if (array.info_.renew_on_use && arrays_.contains(array.info_.name)) BeginTtl(array, clock_());
}

// ---- The store -----------------------------------------------------------------------------------------------------
ArrayStore::ArrayStore(const Limits& limits, Clock clock)
    : limits_(limits),
      clock_(std::move(clock)),
      admission_({.requests = limits.arrays,
                  .bytes = limits.bytes,
                  .bytes_per_request = kBytesPerArray,
                  .share_percent = limits.share_percent,
                  .has_hard_shares = true}) {
  expiry_thread_ = std::thread([this] { RunExpiry(); });
}

ArrayStore::~ArrayStore() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  news_.NotifyOne();
  expiry_thread_.join();
}

void ArrayStore::Close(absl::Status status) {
  MutexLock lock(mutex_);
  closed_ = std::move(status);
}

// ---- Making --------------------------------------------------------------------------------------------------------
absl::StatusOr<std::shared_ptr<ResidentArray>> ArrayStore::Reserve(const Caller& caller, const ArraySpec& spec,
                                                                   std::string_view field) {
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t num_items, CountItems(spec, FieldPath(field, "shape")));
  PREFIXD_ASSIGN_OR_RETURN(const absl::Duration ttl, TtlOf(spec.lifetime, FieldPath(field, "lifetime.ttl")));
  {
    Nameless removed;  // Their room may be what is needed.
    MutexLock lock(mutex_);
    PREFIXD_RETURN_IF_ERROR(closed_);
    RemoveExpired(clock_(), &removed);
  }
  const uint64_t num_bytes = ChargedBytes(num_items * SizeOf(spec.dtype));
  PREFIXD_ASSIGN_OR_RETURN(Admission::Ticket ticket, Charge(caller, Admission::Kind::kRequest, num_bytes));
  auto array = std::make_shared<ResidentArray>();
  array->owner_ = OwnerOf(caller);
  array->info_ = {.name = "",
                  .dtype = spec.dtype,
                  .shape = spec.shape,
                  .num_items = num_items,
                  .num_bytes = num_bytes,
                  .ttl = ttl,
                  .renew_on_use = spec.lifetime.renew_on_use};
  array->ticket_ = std::move(ticket);
  return array;
}

absl::StatusOr<ArrayInfo> ArrayStore::Publish(std::shared_ptr<ResidentArray> array) {
  if (array->data() == nullptr && array->num_items() > 0) Fatal("ArrayStore::Publish: an array without memory");
  std::string name = names_.New();
  MutexLock lock(mutex_);
  PREFIXD_RETURN_IF_ERROR(closed_);
  ArrayInfo& info = array->info_;
  info.name = std::move(name);
  info.create_time = clock_();
  BeginTtl(*array, info.create_time);
  if (array->owner_) by_owner_.emplace(*array->owner_, info.name);
  arrays_.emplace(info.name, array);
  return info;
}

absl::StatusOr<absl::Duration> ArrayStore::TtlOf(const Lifetime& lifetime, std::string_view field) const {
  const absl::Duration ttl = lifetime.ttl.value_or(limits_.default_ttl);
  if (ttl > absl::ZeroDuration() && ttl <= limits_.max_ttl) return ttl;
  return Error(
      absl::StatusCode::kInvalidArgument, "LIFETIME", field,
      StrCat("the ttl is ", absl::FormatDuration(ttl), "; expected more than 0 and at most ",
             absl::FormatDuration(limits_.max_ttl), ", or none for ", absl::FormatDuration(limits_.default_ttl)));
}

absl::StatusOr<Admission::Ticket> ArrayStore::ChargeScratch(const Caller& caller, uint64_t num_bytes) {
  return Charge(caller, Admission::Kind::kQuestion, ChargedBytes(num_bytes));  // A question does not count as an array.
}

absl::StatusOr<Admission::Ticket> ArrayStore::Charge(const Caller& caller, Admission::Kind kind, uint64_t num_bytes) {
  // An array outlives the connection that it came by, so that all of a caller's have one share.
  auto ticket = admission_.Admit({.name = caller.name, .connection = "", .is_address = false}, kind);
  if (!ticket.ok()) return OverBudget(ticket.status(), num_bytes);
  if (const absl::Status status = ticket->Charge(num_bytes); !status.ok()) return OverBudget(status, num_bytes);
  return ticket;
}

absl::Status ArrayStore::OverBudget(const absl::Status& refusal, uint64_t num_bytes) const {
  const Admission::Use use = admission_.in_use();
  const std::string subject = QuotaSubject(refusal);
  const bool is_count = ErrorReason(refusal) == "REQUEST_BUDGET";
  std::string message = is_count
                            ? StrCat("the server has ", use.requests, " of ", limits_.arrays, " arrays (--max-arrays)")
                            : StrCat(num_bytes, " bytes are needed, and the server's arrays use ", use.bytes, " of ",
                                     limits_.bytes, " (--max-array-bytes)");
  if (subject != "server") {
    message += StrCat(", and caller ", subject, " may have ", limits_.share_percent,
                      " % of what the others leave (--caller-share-percent)");
  }
  const bool may_fit = is_count || num_bytes + kBytesPerArray <= limits_.bytes / 100 * limits_.share_percent;
  message += may_fit ? ": delete arrays that are not needed, or retry later" : ": ask for less, for that never fits";
  return WithQuotaSubject(Error(absl::StatusCode::kResourceExhausted, "ARRAY_BUDGET", "", message), subject);
}

absl::StatusOr<SliceInfo> ArrayStore::Look(const Caller& caller, const ArraySlice& slice, std::string_view field) {
  Nameless removed;
  MutexLock lock(mutex_);
  RemoveExpired(clock_(), &removed);
  PREFIXD_ASSIGN_OR_RETURN(const std::shared_ptr<ResidentArray> array,
                           Find(caller, slice.name, FieldPath(field, "name")));
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t num_items, CountItems(slice, array->num_items(), field));
  return SliceInfo{.dtype = array->dtype(), .num_items = num_items};
}

// ---- By name -------------------------------------------------------------------------------------------------------
absl::StatusOr<std::shared_ptr<ResidentArray>> ArrayStore::Find(const Caller& caller, std::string_view name,
                                                                std::string_view field) {
  PREFIXD_RETURN_IF_ERROR(names_.Check(name, field));
  const auto found = arrays_.find(AbslView(name));
  if (found != arrays_.end() && MayUse(caller, found->second->owner_)) return found->second;
  const ArrayOwner* const former_owner = gone_.OwnerOf(name);
  if (former_owner != nullptr && MayUse(caller, *former_owner)) {
    return Error(absl::StatusCode::kNotFound, "ARRAY_EXPIRED", field,
                 "the array is gone: its time was over, or it was deleted. Make it again, with a longer ttl or renewed "
                 "in time");
  }
  // Another caller's array, one that is long gone, and none at all look the same.
  return Error(absl::StatusCode::kNotFound, "ARRAY_UNKNOWN", field,
               "the caller has no array of this name here: expected one that he made, and that is not gone. Make it "
               "again");
}

absl::StatusOr<ArrayInfo> ArrayStore::Get(const Caller& caller, std::string_view name) {
  Nameless removed;
  MutexLock lock(mutex_);
  RemoveExpired(clock_(), &removed);
  PREFIXD_ASSIGN_OR_RETURN(const std::shared_ptr<ResidentArray> array, Find(caller, name, "name"));
  return array->info_;
}

absl::StatusOr<ArrayInfo> ArrayStore::Renew(const Caller& caller, std::string_view name, const Lifetime& lifetime) {
  PREFIXD_ASSIGN_OR_RETURN(const absl::Duration ttl, TtlOf(lifetime, "lifetime.ttl"));
  Nameless removed;
  MutexLock lock(mutex_);
  const absl::Time now = clock_();
  RemoveExpired(now, &removed);
  PREFIXD_ASSIGN_OR_RETURN(const std::shared_ptr<ResidentArray> array, Find(caller, name, "name"));
  array->info_.ttl = ttl;
  array->info_.renew_on_use = lifetime.renew_on_use;
  BeginTtl(*array, now);
  return array->info_;
}

absl::Status ArrayStore::Delete(const Caller& caller, std::string_view name) {
  Nameless removed;
  MutexLock lock(mutex_);
  RemoveExpired(clock_(), &removed);
  PREFIXD_ASSIGN_OR_RETURN(const std::shared_ptr<ResidentArray> array, Find(caller, name, "name"));
  Remove(*array, &removed);
  return absl::OkStatus();
}

absl::StatusOr<ArrayStore::Page> ArrayStore::List(const Caller& caller, std::string_view from, size_t max_arrays) {
  if (caller.is_address) {
    return Error(absl::StatusCode::kPermissionDenied, "LIST_NEEDS_NAME", "",
                 StrCat("the server knows ", caller.name,
                        " by address only, and there the names of arrays are secrets; "
                        "expected a caller with a name of his own: call with a token or a certificate, or keep the "
                        "names that CreateArray returns"));
  }
  Page page;
  Nameless removed;
  MutexLock lock(mutex_);
  RemoveExpired(clock_(), &removed);
  const auto begin = by_owner_.lower_bound({caller.name, std::string(from)});
  for (auto it = begin; it != by_owner_.end() && it->first == caller.name; ++it) {
    if (page.arrays.size() == std::max<size_t>(max_arrays, 1)) {
      page.next_name = it->second;
      break;
    }
    page.arrays.push_back(arrays_.find(it->second)->second->info_);
  }
  return page;
}

// ---- Time ----------------------------------------------------------------------------------------------------------
void ArrayStore::BeginTtl(ResidentArray& array, absl::Time now) {
  by_expiry_.erase({array.info_.expire_time, &array});
  array.info_.expire_time = now + array.info_.ttl;
  by_expiry_.emplace(array.info_.expire_time, &array);
  if (array.info_.expire_time < next_expiry_) news_.NotifyOne();
}

void ArrayStore::Remove(ResidentArray& array, Nameless* removed) {
  by_expiry_.erase({array.info_.expire_time, &array});
  if (array.owner_) by_owner_.erase({*array.owner_, array.info_.name});
  gone_.Add(array.info_.name, array.owner_);
  const auto place = arrays_.find(array.info_.name);
  removed->push_back(std::move(place->second));
  arrays_.erase(place);
}

void ArrayStore::RemoveExpired(absl::Time now, Nameless* removed) {
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    ResidentArray& array = *by_expiry_.begin()->second;
    if (array.info_.renew_on_use && !array.in_use_.IsEmpty()) {
      BeginTtl(array, now);  // Its last use is now.
    } else {
      Remove(array, removed);
    }
  }
}

void ArrayStore::RunExpiry() {
  while (true) {
    Nameless removed;
    MutexLock lock(mutex_);
    if (stopping_) return;
    const absl::Time now = clock_();
    RemoveExpired(now, &removed);
    next_expiry_ = by_expiry_.empty() ? absl::InfiniteFuture() : by_expiry_.begin()->first;
    if (!removed.empty()) continue;  // Their memory is not kept while it sleeps.
    const absl::Duration sleep = std::clamp(next_expiry_ - now, absl::Milliseconds(1), kMaxExpirySleep);
    news_.WaitFor(mutex_, absl::ToChronoMilliseconds(absl::Ceil(sleep, absl::Milliseconds(1))));
  }
}

}  // namespace prefixd
