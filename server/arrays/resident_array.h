// An array that lives on the device, and what a call has of it.
//
// Threads:   what does not change once the array is there may be read by any; the store's lock guards the rest.
// Ownership: shared by the store, as long as the array has a name, and by the calls that use it. The last of them gives
//            the memory back, and then what was charged for it. All of them go before the lanes do, and the store.
#ifndef PREFIXD_SERVER_ARRAYS_RESIDENT_ARRAY_H_
#define PREFIXD_SERVER_ARRAYS_RESIDENT_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "kernels/device.h"
#include "kernels/types.h"
#include "proto/array_info.h"
#include "server/arrays/ranges_in_use.h"
#include "server/call/admission.h"

namespace prefixd {

class ArrayStore;

// The name of the caller who made an array. None: he has no name of his own, and whoever knows the array's may use it.
using ArrayOwner = std::optional<std::string>;

class ResidentArray {
 public:
  DType dtype() const { return info_.dtype; }
  uint64_t num_items() const { return info_.num_items; }
  uint64_t size_bytes() const { return num_items() * SizeOf(dtype()); }
  std::byte* data() const { return memory_.data(); }  // Device.

  // The memory of an array that is being made. Once, before ArrayStore::Publish.
  void TakeMemory(Buffer memory) { memory_ = std::move(memory); }

 private:
  friend class ArrayStore;
  friend class ArrayUse;

  ArrayOwner owner_;
  ArrayInfo info_;            // Its name, times and renew_on_use change, under the store's lock.
  RangesInUse in_use_;        // Guarded by the store's lock.
  Admission::Ticket ticket_;  // Before the memory: that goes first.
  Buffer memory_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_ARRAYS_RESIDENT_ARRAY_H_
