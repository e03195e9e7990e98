// Which parts of one array calls are at work on. Calls that read share a part; a call that writes one has it for
// itself. Nobody waits: a call whose part is in use fails at once, so that calls can't wait for each other.
//
// Threads: one at a time; the store's lock guards it.
#ifndef PREFIXD_SERVER_ARRAYS_RANGES_IN_USE_H_
#define PREFIXD_SERVER_ARRAYS_RANGES_IN_USE_H_

#include <algorithm>
#include <cstdint>
#include <list>

namespace prefixd {

enum class Access : uint8_t { kRead, kWrite };

class RangesInUse {
 private:
  struct Range {
    uint64_t first;
    uint64_t end;
    Access access;
  };

 public:
  using Place = std::list<Range>::iterator;

  // Whether the items from `first` up to `end` may be used like that, beside those that are. Who uses none disturbs
  // nobody.
  // Cost: a look at each range in use.
  bool Admits(uint64_t first, uint64_t end, Access access) const {
    for (const Range& range : ranges_) {
      const bool overlaps = std::max(first, range.first) < std::min(end, range.end);
      if (overlaps && (access == Access::kWrite || range.access == Access::kWrite)) return false;
    }
    return true;
  }

  Place Add(uint64_t first, uint64_t end, Access access) {
    return ranges_.insert(ranges_.end(), {.first = first, .end = end, .access = access});
  }
  void Remove(Place place) { ranges_.erase(place); }

  bool IsEmpty() const { return ranges_.empty(); }  // Nobody uses the array, not even none of its items.

 private:
  std::list<Range> ranges_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_ARRAYS_RANGES_IN_USE_H_
