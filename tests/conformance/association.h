// kernels/NUMERICS.md as code: the value of every prefix of an array, in the order that the page fixes. Written from
// the page alone, top down; it shares no code with any implementation.
#ifndef PREFIXD_TESTS_CONFORMANCE_ASSOCIATION_H_
#define PREFIXD_TESTS_CONFORMANCE_ASSOCIATION_H_

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace prefixd::conformance {

// `combine(a, b)` is the operator; a is the earlier element.
template <class T, class Combine>
class Association {
 public:
  Association(std::vector<T> items, T start, Combine combine) : combine_(std::move(combine)) {
    // parts_[0]: the items. parts_[k]: the values of the whole parts of level k: runs, leaves, tiles, groups.
    parts_[0] = std::move(items);
    AddWholeParts<1>();
    AddWholeParts<2>();
    AddWholeParts<3>();
    AddWholeParts<4>();
    prefixes_ = {start};  // prefixes_[k]: the value of start and the first k groups.
    for (const T& group : parts_[kGroups]) prefixes_.push_back(combine_(prefixes_.back(), group));
  }

  // The value of the first num_items items.
  T Value(size_t num_items) const {
    const size_t whole_groups = num_items / kPartItems[kGroups];
    const size_t begin = whole_groups * kPartItems[kGroups];
    const T& prefix = prefixes_[whole_groups];
    return begin == num_items ? prefix : combine_(prefix, Part<kGroups>(begin, num_items));
  }

 private:
  static constexpr size_t kRuns = 1, kGroups = 4;
  static constexpr size_t kPartItems[] = {1, 4, 128, 4096, 131072};

  template <size_t kLevel>
  void AddWholeParts() {
    constexpr size_t kItems = kPartItems[kLevel];
    for (size_t i = 0; i < parts_[0].size() / kItems; ++i) {
      parts_[kLevel].push_back(Part<kLevel>(i * kItems, (i + 1) * kItems));
    }
  }

  // The value of the part of this level that begins at item `begin` and is cut short at `end`.
  template <size_t kLevel>
  T Part(size_t begin, size_t end) const {
    constexpr size_t kChildItems = kPartItems[kLevel - 1];
    std::array<T, 32> children = {};
    size_t num_children = 0;
    for (size_t i = begin; i < end; i += kChildItems) {
      if (i + kChildItems <= end) {
        children[num_children++] = parts_[kLevel - 1][i / kChildItems];
      } else if constexpr (kLevel > 1) {
        children[num_children++] = Part<kLevel - 1>(i, end);
      }
    }
    const auto v = std::span<const T>(children).first(num_children);
    return kLevel == kRuns ? Fold(v) : Join(v);
  }

  T Fold(std::span<const T> v) const {
    T value = v[0];
    for (const T& x : v.subspan(1)) value = combine_(value, x);
    return value;
  }

  T Tree(std::span<const T> v) const {
    if (v.size() == 1) return v[0];
    size_t k = 1;
    while (2 * k < v.size()) k *= 2;
    return combine_(Tree(v.first(k)), Tree(v.subspan(k)));
  }

  T Join(std::span<const T> v) const { return v.size() == 1 ? v[0] : combine_(Tree(v.first(v.size() - 1)), v.back()); }

  Combine combine_;
  std::vector<T> parts_[kGroups + 1];
  std::vector<T> prefixes_;
};

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_ASSOCIATION_H_
