#include <algorithm>
#include <array>
#include <optional>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

enum class Outputs { kValues, kIndices, kBoth, kIndicesU32, kBothU32, kCount };
constexpr int kNumOutputs = 6;
constexpr bool WantsValues(Outputs outputs) {
  return outputs == Outputs::kValues || outputs == Outputs::kBoth || outputs == Outputs::kBothU32;
}
constexpr bool WantsIndices(Outputs outputs) { return outputs != Outputs::kValues && outputs != Outputs::kCount; }
constexpr bool IsU32(Outputs outputs) { return outputs == Outputs::kIndicesU32 || outputs == Outputs::kBothU32; }

// Which elements a mask keeps.
enum class Pattern { kAll, kNone, kAlternating, kHalf, kFew, kMost, kRuns, kLastOnly };
constexpr int kNumPatterns = 8;

struct CompactCase {
  Selector selector = Selector::kPredicate;
  Comparison comparison = Comparison::kLess;
  Pattern pattern = Pattern::kHalf;  // The mask's.
  bool invert = false;
  Outputs outputs = Outputs::kBoth;
  size_t in_offset = 0;
  size_t mask_offset = 0;
  size_t out_offset = 0;
  size_t num_items = 0;
  uint64_t first_item = 0;
  bool has_input = true;  // A mask may select without any values.
  Algorithm algorithm;
};

std::ostream& operator<<(std::ostream& os, const CompactCase& c) {
  constexpr const char* kSelectors[] = {"predicate", "byte mask", "bit mask"};
  constexpr const char* kOutputs[] = {"values", "indices", "both", "u32 indices", "both u32", "count"};
  return os << kSelectors[static_cast<int>(c.selector)] << " " << Name(c.comparison) << " pattern "
            << static_cast<int>(c.pattern) << (c.invert ? " inverted, " : ", ") << kOutputs[static_cast<int>(c.outputs)]
            << ", offsets " << c.in_offset << "," << c.mask_offset << "," << c.out_offset << ", " << c.num_items
            << " items from " << c.first_item << ", algorithm " << Name(c.algorithm);
}

std::vector<bool> MakeKept(Pattern pattern, size_t num_items, Random& random) {
  std::vector<bool> kept(num_items);
  bool run = false;
  for (size_t i = 0; i < num_items; ++i) {
    if (random.OneIn(700)) run = !run;
    kept[i] = std::array<bool, kNumPatterns>{true,
                                             false,
                                             i % 2 == 1,
                                             random.OneIn(2),
                                             random.OneIn(100),
                                             !random.OneIn(100),
                                             run,
                                             i + 1 == num_items}[static_cast<int>(pattern)];
  }
  return kept;
}

// A kept byte is any but 0; the spare bits of a bit mask are garbage.
std::vector<uint8_t> MakeMask(Selector selector, const std::vector<bool>& kept, Random& random) {
  if (selector == Selector::kByteMask) {
    std::vector<uint8_t> mask(kept.size());
    for (size_t i = 0; i < kept.size(); ++i) mask[i] = kept[i] ? static_cast<uint8_t>(1 + random.Below(255)) : 0;
    return mask;
  }
  std::vector<uint8_t> mask((kept.size() + 7) / 8);
  for (size_t i = 0; i < mask.size() * 8; ++i) {
    const bool bit = i < kept.size() ? kept[i] : random.OneIn(2);
    mask[i / 8] = static_cast<uint8_t>(mask[i / 8] | (bit ? 1 << i % 8 : 0));
  }
  return mask;
}

// The first elements must be `want`, the rest as they were before.
template <class Element>
testing::AssertionResult Check(const char* what, DeviceArray<Element>& d_out, const std::vector<Element>& want) {
  std::vector<Element> got;
  if (auto guards = d_out.Read(&got); !guards) return guards << " (" << what << ")";
  for (size_t i = 0; i < got.size(); ++i) {
    const Element expected = i < want.size() ? want[i] : Poison<Element>();
    if (!SameBits(got[i], expected)) {
      return testing::AssertionFailure() << what << "[" << i << "] is " << Show(got[i]) << ", expected "
                                         << Show(expected) << (i < want.size() ? "" : ", as before: it is past count");
    }
  }
  return testing::AssertionSuccess();
}

template <class T>
testing::AssertionResult RunCase(Lane& lane, const CompactCase& c, Random& random) {
  const auto data = random.OneIn(2) ? Data::kSpecial : Data::kExact;
  std::vector<T> in = MakeInput<T>(data == Data::kSpecial ? Op::kMin : Op::kSum, data, c.num_items + 2, random);
  const T value = in.back(), end = in[in.size() - 2];  // Likely to be equal to some: both kinds of data have ties.
  in.resize(c.num_items);
  const std::vector<bool> kept = MakeKept(c.pattern, in.size(), random);

  std::vector<T> values;
  std::vector<uint64_t> indices;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool holds = c.selector == Selector::kPredicate ? Holds(c.comparison, in[i], value, end) : kept[i];
    if (holds == c.invert) continue;
    values.push_back(in[i]);
    indices.push_back(c.first_item + i);
  }

  DeviceArray<T> d_in(lane, in, c.in_offset);
  DeviceArray<uint8_t> d_mask(lane, MakeMask(c.selector, kept, random), c.mask_offset);
  auto d_values = DeviceArray<T>::Poisoned(lane, in.size(), c.out_offset);
  auto d_indices = DeviceArray<uint64_t>::Poisoned(lane, in.size(), c.out_offset);
  auto d_indices_u32 = DeviceArray<uint32_t>::Poisoned(lane, in.size(), c.out_offset);
  auto d_count = DeviceArray<uint64_t>::Poisoned(lane, 1);
  CompactArgs args;
  args.dtype = kDTypeOf<T>;
  args.selector = c.selector;
  args.comparison = c.comparison;
  args.value = Value::Of(value);
  args.end = Value::Of(end);
  if (c.selector != Selector::kPredicate) args.mask = d_mask.data();
  args.invert = c.invert;
  args.algorithm = c.algorithm;
  args.in = c.has_input ? d_in.data() : nullptr;
  args.num_items = in.size();
  args.first_item = c.first_item;
  if (WantsValues(c.outputs)) args.values = d_values.data();
  if (WantsIndices(c.outputs)) {
    args.indices = IsU32(c.outputs) ? static_cast<void*>(d_indices_u32.data()) : d_indices.data();
  }
  args.index_dtype = IsU32(c.outputs) ? DType::kU32 : DType::kU64;
  args.count = d_count.data();
  if (absl::Status status = lane.Compact(args); !status.ok()) return testing::AssertionFailure() << status;

  if (auto count = Check<uint64_t>("count", d_count, {values.size()}); !count) return count;
  if (!WantsValues(c.outputs)) values.clear();
  if (auto checked = Check("values", d_values, values); !checked) return checked;
  const bool u64 = WantsIndices(c.outputs) && !IsU32(c.outputs);
  if (auto checked = Check("indices", d_indices, u64 ? indices : std::vector<uint64_t>()); !checked) return checked;
  const std::vector<uint32_t> indices_u32(indices.begin(), IsU32(c.outputs) ? indices.end() : indices.begin());
  if (auto checked = Check("u32 indices", d_indices_u32, indices_u32); !checked) return checked;
  if (auto untouched = d_mask.IsUntouched(); !untouched) return untouched << " (mask)";
  return d_in.IsUntouched();
}

class CompactTest : public DeviceTest<DTypeParam> {
 protected:
  // The choices that the caller left open take turns. false: it failed, and said so.
  bool Passes(CompactCase c, std::optional<Outputs> outputs = {}) {
    c.outputs = outputs.value_or(static_cast<Outputs>(num_cases_ % kNumOutputs));
    c.in_offset = num_cases_ / 5 % 2 * random().Below(17);
    c.mask_offset = num_cases_ / 3 % 2 * random().Below(17);
    c.out_offset = num_cases_ / 7 % 2 * random().Below(17);
    c.first_item = num_cases_ % 4 < 2 ? 0 : random().Below(IsU32(c.outputs) ? 1000000 : uint64_t{1} << 40);
    c.has_input = c.selector == Selector::kPredicate || WantsValues(c.outputs) || num_cases_ % 11 < 5;
    ++num_cases_;
    const auto result = VisitDType(
        GetParam().dtype, [&](auto tag) { return RunCase<typename decltype(tag)::type>(lane(), c, random()); });
    EXPECT_TRUE(result) << c;
    return result;
  }

  std::vector<Algorithm> Algorithms() {
    return AlgorithmsOf(device(), Primitive::kCompact, {"", GetParam().dtype, GetParam().dtype});
  }

 private:
  int num_cases_ = 0;
};

TEST_P(CompactTest, Predicates) {
  for (const Algorithm& algorithm : Algorithms()) {
    for (const size_t size : Sizes()) {
      for (int form = 0; form < 6 * kNumComparisons; ++form) {
        if (!Takes(Primitive::kCompact, algorithm, size)) continue;
        CompactCase c;
        c.comparison = static_cast<Comparison>(form % kNumComparisons);
        c.invert = form / kNumComparisons % 2 == 1;
        c.num_items = size;
        c.algorithm = algorithm;
        ASSERT_TRUE(Passes(c));
      }
    }
  }
}

TEST_P(CompactTest, Masks) {
  for (const Algorithm& algorithm : Algorithms()) {
    for (const size_t size : Sizes()) {
      for (int form = 0; form < 2 * 2 * kNumPatterns; ++form) {
        if (!Takes(Primitive::kCompact, algorithm, size)) continue;
        CompactCase c;
        c.selector = form % 2 == 0 ? Selector::kByteMask : Selector::kBitMask;
        c.invert = form / 2 % 2 == 1;
        c.pattern = static_cast<Pattern>(form / 4);
        c.num_items = size;
        c.algorithm = algorithm;
        ASSERT_TRUE(Passes(c));
      }
    }
  }
}

TEST_P(CompactTest, ManyTiles) {
  for (const Algorithm& algorithm : Algorithms()) {
    for (const auto selector : {Selector::kPredicate, Selector::kByteMask, Selector::kBitMask}) {
      CompactCase c;
      c.selector = selector;
      c.comparison = Comparison::kLessEqual;
      c.num_items = ManyTilesSize();
      c.algorithm = algorithm;
      for (int round = 0; round < 2; ++round) ASSERT_TRUE(Passes(c));
    }
  }
}

// Arrays that begin anywhere, and are large enough for the kernels of large arrays.
TEST_P(CompactTest, Anywhere) {
  for (const auto selector : {Selector::kPredicate, Selector::kByteMask, Selector::kBitMask}) {
    for (int round = 0; round < 12; ++round) {
      CompactCase c;
      c.selector = selector;
      c.pattern = static_cast<Pattern>(random().Below(kNumPatterns));
      c.invert = random().OneIn(2);
      c.num_items = AnywhereSize(GetParam().dtype, random());
      ASSERT_TRUE(Passes(c));
    }
  }
}

// Values alone, for which narrow types have code of their own, by every comparison.
TEST_P(CompactTest, ValuesAnywhere) {
  for (int form = 0; form < 2 * kNumComparisons + 12; ++form) {
    CompactCase c;
    c.comparison = static_cast<Comparison>(form % kNumComparisons);
    if (form >= 2 * kNumComparisons) c.selector = form % 2 == 0 ? Selector::kByteMask : Selector::kBitMask;
    c.pattern = static_cast<Pattern>(random().Below(kNumPatterns));
    c.invert = random().OneIn(2);
    c.num_items = AnywhereSize(GetParam().dtype, random());
    ASSERT_TRUE(Passes(c, Outputs::kValues));
  }
}

// The indices of chunks are those of the whole array, and each chunk's count is its own.
TEST_P(CompactTest, ChunksCarryOn) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int round = 0; round < 6; ++round) {
      const size_t size = 1 + random().Below(SmallSizesOnly() ? 5000 : 60000);
      const std::vector<T> in = MakeInput<T>(Op::kSum, Data::kExact, size, random());
      std::vector<T> want_values, got_values;
      std::vector<uint64_t> want_indices, got_indices;
      for (size_t i = 0; i < size; ++i) {
        if (in[i] > T{1}) {
          want_values.push_back(in[i]);
          want_indices.push_back(i);
        }
      }
      DeviceArray<T> d_in(lane(), in);
      for (size_t begin = 0; begin < size;) {
        const size_t num_items = std::min(size - begin, random().OneIn(8) ? 0 : 1 + random().Below(size));
        auto d_values = DeviceArray<T>::Poisoned(lane(), num_items);
        auto d_indices = DeviceArray<uint64_t>::Poisoned(lane(), num_items);
        auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
        CompactArgs args;
        args.dtype = GetParam().dtype;
        args.comparison = Comparison::kGreater;
        args.value = Value::Of(T{1});
        args.in = d_in.data() + begin;
        args.num_items = num_items;
        args.first_item = begin;
        args.values = d_values.data();
        args.indices = d_indices.data();
        args.count = d_count.data();
        ASSERT_TRUE(lane().Compact(args).ok());
        std::vector<T> values;
        std::vector<uint64_t> indices, count;
        ASSERT_TRUE(d_values.Read(&values));
        ASSERT_TRUE(d_indices.Read(&indices));
        ASSERT_TRUE(d_count.Read(&count));
        ASSERT_LE(count[0], num_items);
        got_values.insert(got_values.end(), values.begin(), values.begin() + count[0]);
        got_indices.insert(got_indices.end(), indices.begin(), indices.begin() + count[0]);
        begin += num_items;
      }
      ASSERT_EQ(got_indices, want_indices);
      ASSERT_EQ(got_values, want_values);
    }
  });
}

PREFIXD_ON_EVERY_DEVICE(CompactTest, EveryDType);

// The highest index that u32 holds; one element more is the error that lane_test.cc checks.
using CompactExampleTest = DeviceTest<DeviceParam>;

TEST_P(CompactExampleTest, LastU32Index) {
  DeviceArray<int32_t> d_in(lane(), {3, 1, 2, 4});
  auto d_indices = DeviceArray<uint32_t>::Poisoned(lane(), 4);
  auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
  CompactArgs args;
  args.comparison = Comparison::kGreater;
  args.value = Value::Of(int32_t{1});
  args.in = d_in.data();
  args.num_items = 4;
  args.first_item = (uint64_t{1} << 32) - 4;
  args.indices = d_indices.data();
  args.index_dtype = DType::kU32;
  args.count = d_count.data();
  ASSERT_TRUE(lane().Compact(args).ok());
  EXPECT_TRUE(Check<uint32_t>("indices", d_indices, {0xfffffffc, 0xfffffffe, 0xffffffff}));
  EXPECT_TRUE(Check<uint64_t>("count", d_count, {3}));
}

PREFIXD_ON_EVERY_DEVICE(CompactExampleTest, EveryDevice);

}  // namespace
}  // namespace prefixd::conformance
