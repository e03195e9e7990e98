// Random segments and keys of the families that need care (offsets.h). What a device does with all of them at once has
// the bits of what the CPU does with each one alone.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/found_runs.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/offsets.h"

namespace prefixd::conformance {
namespace {

using Bytes = std::vector<uint8_t>;

template <class T>
Bytes BytesOf(const std::vector<T>& items) {
  Bytes bytes(items.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), items.data(), bytes.size());
  return bytes;
}

// Results that belong to elements, as bytes. The first wrong one is named by its segment.
testing::AssertionResult AreAsAlone(std::string_view what, const Bytes& got, const Bytes& want, size_t item_bytes,
                                    const std::vector<uint64_t>& offsets) {
  if (got.size() != want.size()) return testing::AssertionFailure() << got.size() << " bytes for " << want.size();
  const auto wrong = std::ranges::mismatch(got, want).in1;
  if (wrong == got.end()) return testing::AssertionSuccess();
  const uint64_t item = static_cast<uint64_t>(wrong - got.begin()) / item_bytes;
  const auto segment = static_cast<uint64_t>(std::ranges::upper_bound(offsets, item) - offsets.begin()) - 1;
  const auto bits = [&](const Bytes& bytes) {
    Value value;
    std::memcpy(&value.bits, &bytes[item * item_bytes], item_bytes);
    return Show(value.bits);
  };
  return testing::AssertionFailure() << what << " of item " << item - offsets[segment] << " of segment " << segment
                                     << ", which has " << offsets[segment + 1] - offsets[segment] << " items from "
                                     << offsets[segment] << ", has the bits " << bits(got) << ", alone " << bits(want);
}

// Some segments on a device, and what runs over them there and on the CPU.
class Segments {
 public:
  // d_offsets may be null, if all have one length.
  Segments(Lane& lane, Random& random, std::vector<uint64_t> offsets, const uint64_t* d_offsets)
      : lane_(lane),
        cpu_(Require(Require(SharedDevice("cpu"))->CreateLane())),
        random_(random),
        offsets_(std::move(offsets)),
        d_offsets_(d_offsets) {}

  // A scan with any arguments, by the parameter's types and operator.
  void Scan(const OpParam& param) {
    ScanArgs args = {.dtype = param.dtype, .out_dtype = param.out_dtype, .op = param.op};
    args.precision = AnyPrecision(param);
    if (random_.OneIn(2)) args.kind = ScanKind::kExclusive;
    args.reverse = random_.OneIn(3);
    args.init =
        random_.OneIn(2) ? AnyValue(args.output(), ItemsOp(args.op)) : ScanStart(args.op, args.output(), args.kind);
    const bool is_extremum = args.op == Op::kMin || args.op == Op::kMax;
    const bool has_indices = is_extremum && args.output() == args.dtype && random_.OneIn(2);
    const bool has_coefficients = args.op == Op::kLinearRecurrence && !random_.OneIn(3);
    if (has_indices) {
      args.kind = ScanKind::kInclusive;
      args.init = Neutral(args.op, args.dtype);
      args.index_dtype = random_.OneIn(2) ? DType::kU32 : DType::kU64;
      args.last_index = random_.OneIn(2);
    }
    args.coefficient = AnyValue(args.dtype, Op::kProd);
    const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
    const size_t index_bytes = has_indices ? SizeOf(args.index_dtype) : 0;
    const bool in_place = in_bytes == out_bytes && !has_indices && random_.OneIn(3);
    SCOPED_TRACE(StrCat(Name(args.kind), args.reverse ? ", reversed" : "", args.IsWide() ? ", wide" : "",
                        has_indices ? ", with indices" : "", in_place ? ", in place" : ""));
    const Bytes items = AnyItems(args.dtype, ItemsOp(args.op));
    const Bytes coefficients = has_coefficients ? AnyItems(args.dtype, Op::kProd) : Bytes();

    Bytes alone(NumItems() * out_bytes), indices_alone(NumItems() * index_bytes);
    ForEach([&](uint64_t, uint64_t begin, uint64_t num_items) {
      ScanArgs one = args;
      one.in = items.data() + begin * in_bytes;
      one.out = alone.data() + begin * out_bytes;
      if (has_coefficients) one.coefficients = coefficients.data() + begin * in_bytes;
      if (has_indices) one.indices = indices_alone.data() + begin * index_bytes;
      one.num_items = num_items;
      one.first_item = begin;
      if (num_items > 0) Require(cpu_->Scan(one));
    });

    DeviceArray<uint8_t> d_items(lane_, items, AnyPlace(in_bytes));
    DeviceArray<uint8_t> d_coefficients(lane_, coefficients, AnyPlace(in_bytes));
    auto d_out = DeviceArray<uint8_t>::Poisoned(lane_, alone.size(), AnyPlace(out_bytes));
    auto d_indices = DeviceArray<uint8_t>::Poisoned(lane_, indices_alone.size(), AnyPlace(index_bytes));
    args.in = d_items.data();
    args.out = in_place ? d_items.data() : d_out.data();
    if (has_coefficients) args.coefficients = d_coefficients.data();
    if (has_indices) args.indices = d_indices.data();
    args.num_items = NumItems();
    args.num_arrays = NumArrays();
    args.offsets = d_offsets_;
    Require(lane_.Scan(args));
    Bytes together, indices;
    ASSERT_TRUE((in_place ? d_items : d_out).Read(&together));
    ASSERT_TRUE(d_indices.Read(&indices));
    if (!in_place) {
      ASSERT_TRUE(d_items.IsUntouched());
    }
    ASSERT_TRUE(AreAsAlone("the result", together, alone, out_bytes, offsets_));
    ASSERT_TRUE(AreAsAlone("the index", indices, indices_alone, index_bytes, offsets_));
  }

  // The same for a reduce.
  void Reduce(const OpParam& param) {
    ReduceArgs args = {.dtype = param.dtype, .out_dtype = param.out_dtype, .op = param.op};
    args.precision = AnyPrecision(param);
    args.init.value = Neutral(args.op, args.StateDType());
    if (random_.OneIn(2)) args.init = {AnyState(args), 0};
    SCOPED_TRACE(args.IsWide() ? "wide" : "");
    const size_t in_bytes = SizeOf(args.dtype), out_bytes = SizeOf(args.output());
    const Bytes items = AnyItems(args.dtype, args.op);

    Bytes alone(NumArrays() * out_bytes);
    ForEach([&](uint64_t array, uint64_t begin, uint64_t num_items) {
      Value value = EmptyValue(args);
      if (num_items > 0) {
        ReduceState state;
        ReduceArgs one = args;
        one.in = items.data() + begin * in_bytes;
        one.num_items = num_items;
        one.state_out = &state;
        Require(cpu_->Reduce(one));
        value = ResultOf(args.output(), args.op, args.precision, state);
      }
      std::memcpy(&alone[array * out_bytes], &value.bits, out_bytes);
    });

    DeviceArray<uint8_t> d_items(lane_, items, AnyPlace(in_bytes));
    auto d_values = DeviceArray<uint8_t>::Poisoned(lane_, alone.size(), AnyPlace(out_bytes));
    args.in = d_items.data();
    args.values = d_values.data();
    args.num_items = d_offsets_ != nullptr ? NumItems() : offsets_[1];
    args.num_arrays = NumArrays();
    args.offsets = d_offsets_;
    Require(lane_.Reduce(args));
    Bytes values;
    ASSERT_TRUE(d_values.Read(&values));
    ASSERT_TRUE(d_items.IsUntouched());
    for (uint64_t array = 0; array < NumArrays(); ++array) {
      ASSERT_EQ(std::memcmp(&values[array * out_bytes], &alone[array * out_bytes], out_bytes), 0)
          << "the value of segment " << array << ", which has " << offsets_[array + 1] - offsets_[array]
          << " items from " << offsets_[array];
    }
  }

 private:
  uint64_t NumItems() const { return offsets_.back(); }
  uint64_t NumArrays() const { return offsets_.size() - 1; }

  // Calls run(array, begin, num_items) for each.
  template <class Run>
  void ForEach(const Run& run) const {
    for (uint64_t array = 0; array < NumArrays(); ++array) {
      run(array, offsets_[array], offsets_[array + 1] - offsets_[array]);
    }
  }

  Precision AnyPrecision(const OpParam& param) {
    const bool is_wide = IsWideSum(param.dtype, param.out_dtype, param.op) && random_.OneIn(2);
    return is_wide ? Precision::kWide : Precision::kNative;
  }
  Bytes AnyItems(DType dtype, Op op) {
    return VisitDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return BytesOf(MakeInput<T>(op, static_cast<Data>(random_.Below(kNumData)), NumItems(), random_));
    });
  }
  // What is added in a linear recurrence is like what is added in a sum.
  static Op ItemsOp(Op op) { return op == Op::kLinearRecurrence ? Op::kSum : op; }
  Value AnyValue(DType dtype, Op op) {
    return VisitDType(dtype, [&](auto tag) {
      return Value::Of(MakeInput<typename decltype(tag)::type>(op, Data::kRandom, 1, random_)[0]);
    });
  }
  // One of the output type, as a state has it.
  Value AnyState(const ReduceArgs& args) {
    return VisitDType(args.output(), [&](auto tag) {
      using Out = typename decltype(tag)::type;
      const auto value = static_cast<Accumulator<Out>>(AnyValue(args.output(), args.op).template As<Out>());
      return args.IsWide() ? Value::Of(static_cast<double>(value)) : Value::Of(value);
    });
  }
  // Where bulk copies may begin, or not.
  size_t AnyPlace(size_t item_bytes) { return random_.OneIn(3) ? (1 + random_.Below(3)) * item_bytes : 0; }

  Lane& lane_;
  std::unique_ptr<Lane> cpu_;
  Random& random_;
  std::vector<uint64_t> offsets_;
  const uint64_t* d_offsets_;
};

class SegmentFuzzTest : public DeviceTest<OpParam> {
 protected:
  // Calls check(segments) for every family, or, of the many parameters that take a share, for a few.
  template <class Check>
  void Fuzz(const Check& check) {
    for (int family = 0; family < kNumLengths; ++family) {
      if (TakesAShare(GetParam()) && !random().OneIn(3)) continue;
      const auto lengths = static_cast<Lengths>(family);
      const std::vector<uint64_t> offsets = MakeOffsets(lengths, SizeOf(GetParam().dtype), random());
      SCOPED_TRACE(StrCat(Name(lengths), ": ", offsets.size() - 1, " segments of ", offsets.back(), " items"));
      DeviceArray<uint64_t> d_offsets(lane(), offsets, random().OneIn(4) ? 1 : 0);
      Segments segments(lane(), random(), offsets, d_offsets.data());
      check(segments);
      if (HasFatalFailure()) return;
      ASSERT_TRUE(d_offsets.IsUntouched());
    }
  }
};
using SegmentScanFuzzTest = SegmentFuzzTest;
using SegmentReduceFuzzTest = SegmentFuzzTest;

// Linear recurrences too.
std::vector<OpParam> EveryScan(const std::string& device) {
  std::vector<OpParam> params = EveryOp(device);
  for (const DTypeParam& param : EveryFloatingDType(device)) {
    if (!IsRecurrence(Primitive::kScan, param.dtype, param.dtype, Op::kLinearRecurrence)) continue;
    params.push_back({device, param.dtype, param.dtype, Op::kLinearRecurrence});
  }
  return params;
}

TEST_P(SegmentScanFuzzTest, AsAlone) {
  Fuzz([&](Segments& segments) { segments.Scan(GetParam()); });
}
// So many that a card has other kernels for them, though they are short on average.
TEST_P(SegmentScanFuzzTest, ManyBytes) {
  if (device().info().direct_bytes == DeviceInfo::kHostMemory) GTEST_SKIP() << "A CPU has one way for all.";
  if (SmallSizesOnly() || !random().OneIn(6)) GTEST_SKIP() << "Others take their share.";
  constexpr uint64_t kManyBytes = uint64_t{65} << 20;
  std::vector<uint64_t> offsets = {0};
  while (offsets.back() * SizeOf(GetParam().dtype) < kManyBytes) {
    constexpr uint64_t kLengths[] = {0, 1, 127, 128, 129, 512, 513, 1024, 4096};
    const bool is_any = !random().OneIn(8);
    offsets.push_back(offsets.back() + (is_any ? random().Below(700) : kLengths[random().Below(std::size(kLengths))]));
  }
  DeviceArray<uint64_t> d_offsets(lane(), offsets);
  Segments(lane(), random(), offsets, d_offsets.data()).Scan(GetParam());
}
PREFIXD_ON_EVERY_DEVICE(SegmentScanFuzzTest, EveryScan);

TEST_P(SegmentReduceFuzzTest, AsAlone) {
  Fuzz([&](Segments& segments) { segments.Reduce(GetParam()); });
}
// So many that a card has other kernels for them.
TEST_P(SegmentReduceFuzzTest, ManyBytes) {
  if (device().info().direct_bytes == DeviceInfo::kHostMemory) GTEST_SKIP() << "A CPU has one way for all.";
  if (SmallSizesOnly() || !random().OneIn(4)) GTEST_SKIP() << "Others take their share.";
  constexpr uint64_t kManyBytes = uint64_t{17} << 20;
  constexpr Lengths kLengths[] = {Lengths::kMixed, Lengths::kEdges, Lengths::kRangeEnds, Lengths::kEmptyRuns};
  const size_t item_bytes = SizeOf(GetParam().dtype);
  std::vector<uint64_t> offsets = {0};
  while (offsets.back() * item_bytes < kManyBytes) {
    const uint64_t begin = offsets.back();
    for (const uint64_t offset : MakeOffsets(kLengths[random().Below(std::size(kLengths))], item_bytes, random())) {
      offsets.push_back(begin + offset);
    }
  }
  DeviceArray<uint64_t> d_offsets(lane(), offsets);
  Segments(lane(), random(), offsets, d_offsets.data()).Reduce(GetParam());
  if (HasFatalFailure()) return;
  const uint64_t row_items = 129 + random().Below(random().OneIn(2) ? 1000 : 10'000);
  std::vector<uint64_t> rows = {0};
  while (rows.back() * item_bytes < kManyBytes) rows.push_back(rows.back() + row_items);
  SCOPED_TRACE(StrCat("rows of ", row_items));
  Segments(lane(), random(), rows, nullptr).Reduce(GetParam());
}
PREFIXD_ON_EVERY_DEVICE(SegmentReduceFuzzTest, EveryOp);

// Keys and elements to compact, of every type.
class SegmentKeysFuzzTest : public DeviceTest<DTypeParam> {
 protected:
  Lengths AnyLengths() { return static_cast<Lengths>(random().Below(kNumLengths)); }

  // A key for each segment. Neighbours may be equal all the same, or a NaN, which makes each element a run.
  template <class T>
  std::vector<T> MakeKeys(const std::vector<uint64_t>& offsets) {
    std::vector<T> keys;
    for (uint64_t segment = 0; segment + 1 < offsets.size(); ++segment) {
      keys.resize(offsets[segment + 1], RandomKey<T>(random()));
    }
    return keys;
  }
};

TEST_P(SegmentKeysFuzzTest, ByKey) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<OpParam> params = EveryScan(GetParam().device);
    for (int round = 0; round < 8; ++round) {
      const OpParam& param = params[random().Below(params.size())];
      const Lengths lengths = AnyLengths();
      const std::vector<T> keys = MakeKeys<T>(MakeOffsets(lengths, SizeOf(param.dtype), random()));
      FoundRuns<T> runs(lane(), keys, random());
      SCOPED_TRACE(
          StrCat(Name(lengths), ": ", runs.Want().size() - 1, " runs of ", keys.size(), " keys, ", ParamName(param)));
      ASSERT_TRUE(runs.AreRight());
      if (keys.empty()) continue;  // No run at all.
      Segments segments(lane(), random(), runs.Want(), runs.DeviceOffsets());
      segments.Scan(param);
      if (param.op != Op::kLinearRecurrence) segments.Reduce(param);
      if (HasFatalFailure()) return;
    }
  });
}

TEST_P(SegmentKeysFuzzTest, Compact) {
  VisitDType(GetParam().dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int round = 0; round < 8; ++round) {
      const Lengths lengths = AnyLengths();
      const std::vector<uint64_t> offsets = MakeOffsets(lengths, sizeof(T), random());
      const uint64_t num_items = offsets.back(), num_segments = offsets.size() - 1;
      SCOPED_TRACE(StrCat(Name(lengths), ": ", num_segments, " segments of ", num_items, " items"));
      const auto items = MakeInput<T>(Op::kMin, Data::kSpecial, num_items, random());
      const auto any = [&] { return num_items == 0 ? T{0} : items[random().Below(num_items)]; };
      const T value = any(), end = any();
      const auto comparison = static_cast<Comparison>(random().Below(kNumComparisons));
      std::vector<T> kept;
      std::vector<uint64_t> want_indices, want(num_segments);
      for (uint64_t segment = 0; segment < num_segments; ++segment) {
        for (uint64_t i = offsets[segment]; i < offsets[segment + 1]; ++i) {
          if (!Holds(comparison, items[i], value, end)) continue;
          kept.push_back(items[i]);
          want_indices.push_back(i);
          ++want[segment];
        }
      }
      DeviceArray<T> d_items(lane(), items, random().Below(2));
      DeviceArray<uint64_t> d_offsets(lane(), offsets, random().Below(2));
      auto d_values = DeviceArray<T>::Poisoned(lane(), num_items, random().Below(2));
      auto d_indices = DeviceArray<uint64_t>::Poisoned(lane(), num_items, random().Below(2));
      auto d_count = DeviceArray<uint64_t>::Poisoned(lane(), 1);
      auto d_counts = DeviceArray<uint64_t>::Poisoned(lane(), num_segments, random().Below(2));
      CompactArgs args = {
          .dtype = kDTypeOf<T>, .comparison = comparison, .value = Value::Of(value), .end = Value::Of(end)};
      args.in = d_items.data();
      args.num_items = num_items;
      args.values = d_values.data();
      args.indices = d_indices.data();
      args.count = d_count.data();
      Require(lane().Compact(args));
      Require(lane().CountSegments({.indices = d_indices.data(),
                                    .num_indices = kept.size(),
                                    .offsets = d_offsets.data(),
                                    .counts = d_counts.data(),
                                    .num_items = num_segments}));
      std::vector<T> values;
      std::vector<uint64_t> indices, count, counts;
      ASSERT_TRUE(d_values.Read(&values));
      ASSERT_TRUE(d_indices.Read(&indices));
      ASSERT_TRUE(d_count.Read(&count));
      ASSERT_TRUE(d_counts.Read(&counts));
      ASSERT_EQ(count[0], kept.size());
      values.resize(kept.size());
      indices.resize(kept.size());
      ASSERT_TRUE(AreSame(values, kept));
      ASSERT_TRUE(AreSame(indices, want_indices));
      ASSERT_TRUE(AreSame(counts, want));
    }
  });
}
PREFIXD_ON_EVERY_DEVICE(SegmentKeysFuzzTest, EveryDType);

}  // namespace
}  // namespace prefixd::conformance
