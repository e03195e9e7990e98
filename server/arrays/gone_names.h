// The names of arrays that are gone, and whose they were, so that who used one can be told that it was there. The
// oldest is forgotten where there are too many.
//
// Threads: one at a time; the store's lock guards it.
#ifndef PREFIXD_SERVER_ARRAYS_GONE_NAMES_H_
#define PREFIXD_SERVER_ARRAYS_GONE_NAMES_H_

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "server/arrays/resident_array.h"

namespace prefixd {

class GoneNames {
 public:
  explicit GoneNames(size_t max_names) : max_names_(max_names) {}

  // Needs: the name was not added before.
  void Add(const std::string& name, const ArrayOwner& owner) {
    owners_.emplace(name, owner);
    names_.push_back(name);
    if (names_.size() <= max_names_) return;
    owners_.erase(names_.front());
    names_.pop_front();
  }

  // Null: there was no such array, or it was forgotten.
  const ArrayOwner* OwnerOf(std::string_view name) const {
    const auto found = owners_.find(AbslView(name));
    return found == owners_.end() ? nullptr : &found->second;
  }

 private:
  const size_t max_names_;
  std::deque<std::string> names_;  // The oldest first.
  absl::flat_hash_map<std::string, ArrayOwner> owners_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_ARRAYS_GONE_NAMES_H_
