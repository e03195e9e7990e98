#include "tests/conformance/offsets.h"

#include <algorithm>
#include <utility>

namespace prefixd::conformance {
namespace {

constexpr uint64_t kTile = 4096;
constexpr uint64_t kGroup = 131'072;
constexpr uint64_t kManyArrays = 16'384;              // From here on kernels care for how many segments there are.
constexpr uint64_t kManyBytes = uint64_t{256} << 10;  // And for how many bytes.

// x, or one off.
uint64_t Around(uint64_t x, Random& random) { return x + random.Below(3) - (x == 0 ? 0 : 1); }

template <size_t kCount>
uint64_t OneOf(const uint64_t (&values)[kCount], Random& random) {
  return values[random.Below(kCount)];
}

uint64_t EdgeLength(Random& random) {
  constexpr uint64_t kEdges[] = {0, 1, 4, 32, 64, 128, 256, 1024, kTile, 2 * kTile, 3 * kTile, 16'384};
  return Around(OneOf(kEdges, random), random);
}

uint64_t MixedLength(Random& random) {
  switch (random.Below(8)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return 1;
    case 3:
      return EdgeLength(random);
    case 4:
      return random.Below(3 * kTile);
    default:
      return random.Below(300);
  }
}

class Offsets {
 public:
  explicit Offsets(Random& random) : random_(random) {}

  void Add(uint64_t length) { all_.push_back(all_.back() + length); }
  template <class Length>
  void Add(uint64_t count, const Length& length) {
    for (; count > 0; --count) Add(length(random_));
  }

  // Segments that end anywhere up to the end, which is that of the last.
  void AddCuts(uint64_t count, uint64_t end) {
    std::vector<uint64_t> cuts = {end};
    while (cuts.size() < count) cuts.push_back(random_.Below(end + 1));
    std::ranges::sort(cuts);
    all_.insert(all_.end(), cuts.begin(), cuts.end());
  }

  void InsertEmpty(uint64_t count) {
    const uint64_t at = random_.Below(all_.size());
    all_.insert(all_.begin() + static_cast<int64_t>(at), count, all_[at]);
  }
  void InsertLong(uint64_t length) {
    const uint64_t at = random_.Below(all_.size());
    all_.insert(all_.begin() + static_cast<int64_t>(at), all_[at]);
    for (uint64_t i = at + 1; i < all_.size(); ++i) all_[i] += length;
  }

  // What is behind max_items is cut off: segments have fewer elements, or none.
  void CutOff(uint64_t max_items) {
    for (uint64_t& offset : all_) offset = std::min(offset, max_items);
  }
  std::vector<uint64_t> Take() && { return std::move(all_); }

 private:
  Random& random_;
  std::vector<uint64_t> all_ = {0};
};

void AddMeans(size_t item_bytes, Random& random, Offsets* offsets) {
  constexpr uint64_t kMeans[] = {63, 64, 1023, 1024, 16'383, 16'384};
  const uint64_t mean = OneOf(kMeans, random);
  const uint64_t count = Around(kManyBytes / item_bytes / mean, random);  // At least one.
  offsets->AddCuts(count, count * mean + (random.OneIn(2) ? 0 : random.Below(count)));
}

void AddRangeEnds(size_t item_bytes, Random& random, Offsets* offsets) {
  const uint64_t range = std::min<uint64_t>(16'384 / item_bytes, kTile);
  uint64_t begin = 0, goal = 0;
  for (uint64_t count = 1 + random.Below(20); count > 0; --count) {
    goal += (random.OneIn(2) ? range : kTile) * random.Below(4);
    const uint64_t end = std::max(begin, count == 1 ? goal : Around(goal, random));
    // As a whole, or with a few before it that begin anywhere.
    const uint64_t inner = end > begin && random.OneIn(2) ? random.Below(end - begin) : 0;
    if (inner > 0) offsets->Add(inner);
    if (inner > 0 && random.OneIn(2)) offsets->Add(0);
    offsets->Add(end - begin - inner);
    begin = end;
  }
}

}  // namespace

std::string_view Name(Lengths lengths) {
  constexpr std::string_view kNames[kNumLengths] = {"mixed",  "edges", "means",      "range ends",
                                                    "dwarfs", "giant", "empty runs", "nothing"};
  return kNames[static_cast<int>(lengths)];
}

std::vector<uint64_t> MakeOffsets(Lengths lengths, size_t item_bytes, Random& random) {
  const auto dwarf = [](Random& r) { return r.Below(r.OneIn(100) ? 70 : 4); };
  Offsets offsets(random);
  switch (lengths) {
    case Lengths::kMixed:
      offsets.Add(1 + random.Below(random.OneIn(2) ? 10 : 200), MixedLength);
      break;
    case Lengths::kEdges:
      offsets.Add(1 + random.Below(100), EdgeLength);
      break;
    case Lengths::kMeans:
      AddMeans(item_bytes, random, &offsets);
      break;
    case Lengths::kRangeEnds:
      AddRangeEnds(item_bytes, random, &offsets);
      break;
    case Lengths::kDwarfs:
      offsets.Add(Around(kManyArrays, random), dwarf);
      break;
    case Lengths::kGiant:
      // So few that the mean is that of long ones, or so many that it is not.
      offsets.Add(random.Below(random.OneIn(2) ? 100 : 3000), dwarf);
      // So long that threads of a CPU share it.
      offsets.InsertLong(item_bytes == 8 && random.OneIn(8) ? 8 * kGroup + random.Below(kTile)
                                                            : Around((1 + random.Below(2)) * kGroup, random));
      break;
    case Lengths::kEmptyRuns: {
      constexpr uint64_t kCounts[] = {1, 256, kManyArrays, 40'000};
      offsets.Add(1 + random.Below(100), MixedLength);
      for (uint64_t count = 1 + random.Below(3); count > 0; --count) {
        offsets.InsertEmpty(Around(OneOf(kCounts, random), random));
      }
      break;
    }
    case Lengths::kNothing:
      offsets.Add(1 + random.Below(random.OneIn(4) ? 40'000 : 300), [](Random&) { return uint64_t{0}; });
      break;
  }
  if (SmallSizesOnly()) offsets.CutOff(4000);
  return std::move(offsets).Take();
}

}  // namespace prefixd::conformance
