// Maps against one plain function for each operator, for every operator, type and kind of value.
#include <cmath>
#include <string>
#include <vector>

#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

// ---- What is right -------------------------------------------------------------------------------------------------
// Long double holds every value of every type exactly.
template <class Out, class In>
Out CastTo(In x) {
  using Limits = std::numeric_limits<Out>;
  if constexpr (kIsFloating<In> && !kIsFloating<Out>) {
    if (std::isnan(x)) return 0;
    const long double whole = std::trunc(static_cast<long double>(x));
    if (whole <= static_cast<long double>(Limits::min())) return Limits::min();
    if (whole >= static_cast<long double>(Limits::max())) return Limits::max();
    return static_cast<Out>(whole);
  } else if constexpr (kIsFloating<Out>) {
    return Canonical(Nearest<Out>(static_cast<long double>(x)));
  } else {
    return static_cast<Out>(static_cast<uint64_t>(x));
  }
}

template <class T>
T Quotient(T x, T y) {
  if constexpr (kIsFloating<T>) return x / y;
  if (y == 0) return 0;
  if (kIsSignedInteger<T> && y == static_cast<T>(-1)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  return static_cast<T>(x / y);
}

template <class T>
T AffineOf(T x, T a, T b) {
  const T product = Apply(Op::kProd, a, x);
  return Apply(Op::kSum, product, b);
}

template <class T>
T AbsOf(T x) {
  if constexpr (kIsFloating<T>) return std::signbit(x) ? -x : x;
  return x < T{0} ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
}

// What becomes of one item. other: the other array's.
template <class Out, class T>
Out MapItem(const MapArgs& args, T item, T other) {
  // Items of f16 and bf16 are those of f32, whose result is rounded.
  const auto x = static_cast<Accumulator<T>>(item), y = static_cast<Accumulator<T>>(other);
  const auto a = static_cast<Accumulator<T>>(args.a.As<T>()), b = static_cast<Accumulator<T>>(args.b.As<T>());
  const auto result = [&]() -> Accumulator<T> {
    switch (args.op) {
      case MapOp::kAffine:
        return AffineOf(x, a, b);
      case MapOp::kAbs:
        return AbsOf(x);
      case MapOp::kAdd:
        return Apply(Op::kSum, x, y);
      case MapOp::kSubtract:
        if constexpr (kIsFloating<T>) return x - y;
        return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
      case MapOp::kMultiply:
        return Apply(Op::kProd, x, y);
      case MapOp::kDivide:
        return Quotient(x, y);
      case MapOp::kMinimum:
        return Apply(Op::kMin, x, y);
      case MapOp::kMaximum:
        return Apply(Op::kMax, x, y);
      default:
        throw std::logic_error("no such operator");
    }
  };
  if (args.op == MapOp::kCast) return CastTo<Out>(item);
  if (args.op == MapOp::kCompare) return static_cast<Out>(Holds(args.comparison, x, a, b) ? 1 : 0);
  if (args.op == MapOp::kCompareArrays) return static_cast<Out>(Holds(args.comparison, x, y, y) ? 1 : 0);
  const T mapped = Canonical(static_cast<T>(result()));
  return std::bit_cast<Out>(static_cast<BitsOf<Out>>(std::bit_cast<BitsOf<T>>(mapped)));
}

// ---- The values ----------------------------------------------------------------------------------------------------
template <class T>
T PickInteger(Random& random) {
  using Limits = std::numeric_limits<T>;
  const T picks[] = {0,
                     1,
                     2,
                     3,
                     static_cast<T>(-1),
                     static_cast<T>(-2),
                     Limits::min(),
                     Limits::max(),
                     static_cast<T>(Limits::min() + 1),
                     static_cast<T>(Limits::max() - 1),
                     Limits::max() / 2};
  if (random.OneIn(3)) return picks[random.Below(std::size(picks))];
  if constexpr (sizeof(T) >= 4) {  // Beside the middle of two neighbours of bf16, which an f32 takes them for.
    const uint64_t middle = (257 + 2 * random.Below(128)) << random.Below(8 * sizeof(T) - 9);
    if (random.OneIn(4)) return static_cast<T>(middle + random.Below(3) - 1);
  }
  // As many small values as large ones.
  return static_cast<T>(RandomBits<T>(random) >> random.Below(8 * sizeof(T)));
}

// The middle of two neighbours of N, or beside it, where it would be the middle if it was rounded twice.
template <class N, class T>
T PickMiddle(Random& random) {
  const N below = RandomBits<N>(random);
  const double a = below, b = N::FromBits(static_cast<uint16_t>(below.bits + 1));
  const auto middle = static_cast<T>((a + b) / 2);
  return random.OneIn(3) ? middle : std::nextafter(middle, static_cast<T>(random.OneIn(2) ? a : b));
}

template <class T>
T PickFloat(Random& random) {
  using Limits = std::numeric_limits<T>;
  if constexpr (!kIsNarrowFloat<T>) {
    if (random.OneIn(6)) return random.OneIn(2) ? PickMiddle<Float16, T>(random) : PickMiddle<BFloat16, T>(random);
  }
  const auto sign = static_cast<Accumulator<T>>(random.OneIn(2) ? 1 : -1);
  if (random.OneIn(4)) return RandomBits<T>(random);  // Any NaN is among them.
  if (random.OneIn(4)) {
    const T picks[] = {T{0},
                       T(0.5),
                       T(1),
                       T(1.5),
                       Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::denorm_min(),
                       Limits::min(),
                       Limits::max(),
                       std::bit_cast<T>(static_cast<BitsOf<T>>(1 + std::bit_cast<BitsOf<T>>(Limits::infinity())))};
    return static_cast<T>(sign * picks[random.Below(std::size(picks))]);
  }
  if (random.OneIn(3)) {  // Around the limits of integers.
    const auto limit = static_cast<T>(std::ldexp(1.0, static_cast<int>(random.Below(66))));
    const T steps[] = {T{0}, T(0.5), T(0.999), T{1}, T{-1}, T(-0.5)};
    // As integers the bits of floats have the order of their values.
    const auto step = static_cast<BitsOf<T>>(random.OneIn(2) ? 0 : random.OneIn(2) ? 1 : -1);
    const auto beside = std::bit_cast<T>(static_cast<BitsOf<T>>(std::bit_cast<BitsOf<T>>(limit) + step));
    return static_cast<T>(sign * (beside + steps[random.Below(std::size(steps))]));
  }
  // Few of f16 are infinite.
  const int exponents = std::is_same_v<T, Float16> ? 20 : 70;
  return static_cast<T>(sign * std::ldexp(random.Uniform(), static_cast<int>(random.Below(exponents)) - 2));
}

template <class T>
T Pick(Random& random) {
  if constexpr (kIsFloating<T>) {
    return PickFloat<T>(random);
  } else {
    return PickInteger<T>(random);
  }
}

// Every operator with every comparison or type that it takes.
std::vector<MapArgs> EveryMap(DType dtype) {
  std::vector<MapArgs> maps;
  for (int i = 0; i < kNumMapOps; ++i) {
    MapArgs args = {.op = static_cast<MapOp>(i), .dtype = dtype};
    if (args.op == MapOp::kCast) {
#define PREFIXD_ADD(name, type)  \
  args.cast_dtype = DType::name; \
  maps.push_back(args);
      PREFIXD_FOR_EACH_DTYPE(PREFIXD_ADD)
#undef PREFIXD_ADD
    } else if (args.op == MapOp::kCompare || args.op == MapOp::kCompareArrays) {
      for (int k = 0; k < kNumComparisons; ++k) {
        args.comparison = static_cast<Comparison>(k);
        if (args.op == MapOp::kCompare || IsOfTwo(args.comparison)) maps.push_back(args);
      }
    } else {
      maps.push_back(args);
    }
  }
  return maps;
}

std::string Describe(const MapArgs& args) {
  return StrCat(Name(args.op), " ", Name(args.dtype), " to ", Name(args.output()), " ", Name(args.comparison), ", ",
                args.num_items, " items, a ", absl::Hex(args.a.bits), ", b ", absl::Hex(args.b.bits));
}

// ---- The test ------------------------------------------------------------------------------------------------------
enum class Place { kApart, kInIsOut, kOtherIsOut, kAllAreOne };

class MapTest : public DeviceTest<DTypeParam> {
 protected:
  template <class F>
  void WithType(F f) {
    VisitDType(GetParam().dtype, [&](auto tag) { f(typename decltype(tag)::type{}); });
  }

  template <class T>
  testing::AssertionResult Passes(MapArgs args, size_t num_items, Place place = Place::kApart) {
    std::vector<T> in(num_items), other(num_items);
    for (T& item : in) item = Pick<T>(random());
    for (T& item : other) item = Pick<T>(random());
    for (size_t i = 0; i < num_items; i += 5) other[i] = in[i];
    args.a = Value::Of(Pick<T>(random()));
    args.b = Value::Of(Pick<T>(random()));
    if (num_items > 0 && random().OneIn(2)) args.a = Value::Of(in[num_items / 2]);
    return PassesFor(args, in, other, place);
  }

  template <class T>
  testing::AssertionResult PassesFor(MapArgs args, const std::vector<T>& in, const std::vector<T>& other, Place place) {
    return VisitDType(args.output(),
                      [&](auto tag) { return PassesTo<T, typename decltype(tag)::type>(args, in, other, place); });
  }

  template <class T, class Out>
  testing::AssertionResult PassesTo(MapArgs args, const std::vector<T>& in, const std::vector<T>& other, Place place) {
    if (sizeof(T) != sizeof(Out)) place = Place::kApart;
    if (NumInputs(args.op) == 1 && place != Place::kApart) place = Place::kInIsOut;
    const bool aligned = random().OneIn(2);
    const auto offset = [&] { return aligned ? 0 : random().Below(9); };
    const std::vector<T>& second = place == Place::kAllAreOne ? in : other;
    DeviceArray<T> d_in(lane(), in, offset());
    DeviceArray<T> d_other(lane(), second, offset());
    auto d_out = DeviceArray<Out>::Poisoned(lane(), in.size(), offset());
    args.num_items = in.size();
    args.in = d_in.data();
    if (NumInputs(args.op) == 2) args.other = place == Place::kAllAreOne ? d_in.data() : d_other.data();
    args.out = d_out.data();
    if (place == Place::kInIsOut || place == Place::kAllAreOne) args.out = d_in.data();
    if (place == Place::kOtherIsOut) args.out = d_other.data();
    if (absl::Status status = lane().Map(args); !status.ok()) {
      return testing::AssertionFailure() << status << ": " << Describe(args);
    }
    std::vector<Out> got, want(in.size());
    for (size_t i = 0; i < in.size(); ++i) want[i] = MapItem<Out>(args, in[i], second[i]);
    if (place == Place::kApart) {
      if (auto guards = d_out.Read(&got); !guards) return guards << " (out): " << Describe(args);
    } else {
      std::vector<T> written;
      if (auto guards = (place == Place::kOtherIsOut ? d_other : d_in).Read(&written); !guards) {
        return guards << " (in place): " << Describe(args);
      }
      got.resize(written.size());
      std::memcpy(static_cast<void*>(got.data()), written.data(), written.size() * sizeof(T));
    }
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::memcmp(&got[i], &want[i], sizeof(Out)) == 0) continue;
      return Mismatch("out", i, got[i], Expected<Out>{want[i]})
             << " from " << Show(in[i]) << " and " << Show(second[i]) << ": " << Describe(args);
    }
    if (place == Place::kInIsOut || place == Place::kAllAreOne) return d_other.IsUntouched();
    if (place == Place::kApart) {
      if (auto untouched = d_other.IsUntouched(); !untouched) return untouched;
    }
    return d_in.IsUntouched();
  }
};

TEST_P(MapTest, EveryOperatorAndSize) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    const std::vector<MapArgs> maps = EveryMap(GetParam().dtype);
    for (const size_t size : Sizes()) {
      for (const MapArgs& args : maps) {
        if (!Takes(size) || (size > 5000 && !random().OneIn(6))) continue;
        const auto place = static_cast<Place>(random().OneIn(3) ? random().Below(4) : 0);
        ASSERT_TRUE(Passes<T>(args, size, place));
      }
    }
  });
}

TEST_P(MapTest, ManyTiles) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    for (const MapArgs& args : EveryMap(GetParam().dtype)) {
      if (!random().OneIn(3)) continue;
      ASSERT_TRUE(Passes<T>(args, ManyTilesSize()));
    }
  });
}

// Every pair of bytes, and every value of 16 bits by what is hard to divide by.
TEST_P(MapTest, EveryQuotientOfNarrowIntegers) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) <= 2 && !kIsFloating<T>) {
      std::vector<T> in, other;
      constexpr int kValues = 1 << (8 * sizeof(T));
      for (int y = 0; y < kValues; y += sizeof(T) == 1 || y < 40 || y > kValues - 40 ? 1 : 2999) {
        for (int x = 0; x < kValues; ++x) {
          in.push_back(static_cast<T>(x));
          other.push_back(static_cast<T>(y));
        }
      }
      ASSERT_TRUE(PassesFor({.op = MapOp::kDivide, .dtype = GetParam().dtype}, in, other, Place::kApart));
    }
  });
}

// Every value of 16 bits through every operator of one array.
TEST_P(MapTest, EveryNarrowFloat) {
  WithType([&](auto zero) {
    using T = decltype(zero);
    if constexpr (kIsNarrowFloat<T>) {
      std::vector<T> in;
      for (int bits = 0; bits < 1 << 16; ++bits) in.push_back(T::FromBits(static_cast<uint16_t>(bits)));
      for (MapArgs args : EveryMap(GetParam().dtype)) {
        args.a = Value::Of(Pick<T>(random()));
        args.b = Value::Of(Pick<T>(random()));
        if (NumInputs(args.op) == 2) continue;
        ASSERT_TRUE(PassesFor(args, in, in, Place::kApart));
      }
    }
  });
}

TEST_P(MapTest, IsOneLaunch) {
  auto d_items = DeviceArray<uint64_t>::Poisoned(lane(), 3000);
  for (const MapArgs& map : EveryMap(GetParam().dtype)) {
    MapArgs args = map;
    args.in = d_items.data();
    args.other = d_items.data() + 1000;
    args.out = d_items.data() + 2000;
    args.num_items = 1000;
    Require(lane().Synchronize());
    lane().TakeStageTimes();
    Require(lane().Map(args));
    Require(lane().Synchronize());
    const StageTimes times = lane().TakeStageTimes();
    EXPECT_TRUE(times.kernel_ns);
    EXPECT_EQ(times.launches, 1u);
    EXPECT_EQ(times.num_bytes, 1000 * (NumInputs(args.op) * SizeOf(args.dtype) + SizeOf(args.output())));
  }
}

TEST_P(MapTest, BadArgumentsAreRefused) {
  auto d_items = DeviceArray<uint64_t>::Poisoned(lane(), 24);
  MapArgs args = {.num_items = 1};
  const auto refuses = [&](absl::StatusCode code, std::string_view text) {
    const absl::Status status = lane().Map(args);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(AbslView(text)), absl::string_view::npos) << status;
    args = {.op = MapOp::kAdd,
            .dtype = GetParam().dtype,
            .in = d_items.data(),
            .other = d_items.data() + 8,
            .out = d_items.data() + 16,
            .num_items = 8};
  };
  args.dtype = static_cast<DType>(kNumDTypes);
  refuses(absl::StatusCode::kUnimplemented, "as dtype: use another");
  args.op = MapOp::kCast;
  args.cast_dtype = static_cast<DType>(kNumDTypes);
  refuses(absl::StatusCode::kUnimplemented, "as cast_dtype: use another");
  args.op = static_cast<MapOp>(kNumMapOps);
  refuses(absl::StatusCode::kInvalidArgument, "op is 11");
  args.op = MapOp::kCompare;
  args.comparison = static_cast<Comparison>(kNumComparisons);
  refuses(absl::StatusCode::kInvalidArgument, "comparison is 9");
  args.op = MapOp::kCompareArrays;
  args.comparison = Comparison::kIsNan;
  refuses(absl::StatusCode::kInvalidArgument, "is-nan, which looks at one array");
  args.op = MapOp::kCompareArrays;
  args.comparison = Comparison::kInRange;
  refuses(absl::StatusCode::kInvalidArgument, "in-range, which looks at one array");
  args.in = nullptr;
  refuses(absl::StatusCode::kInvalidArgument, "in is null");
  args.other = nullptr;
  refuses(absl::StatusCode::kInvalidArgument, "other is null");
  args.out = nullptr;
  refuses(absl::StatusCode::kInvalidArgument, "out is null");
  const size_t size = SizeOf(GetParam().dtype);
  args.out = reinterpret_cast<uint8_t*>(d_items.data()) + size;
  refuses(absl::StatusCode::kInvalidArgument, "in and out overlap");
  args.out = reinterpret_cast<uint8_t*>(d_items.data() + 8) + size;
  refuses(absl::StatusCode::kInvalidArgument, "other and out overlap");
  args.op = MapOp::kCast;
  args.cast_dtype = size == 8 ? DType::kU8 : DType::kU64;
  args.out = d_items.data();
  refuses(absl::StatusCode::kInvalidArgument, "differ in size");
  args.num_items = ~uint64_t{0};
  refuses(absl::StatusCode::kInvalidArgument, "which no memory holds");
  if (size > 1) {
    args.in = reinterpret_cast<uint8_t*>(d_items.data()) + 1;
    args.num_items = 1;
    refuses(absl::StatusCode::kInvalidArgument, "in is not aligned");
  }
  EXPECT_TRUE(d_items.IsUntouched());
}

PREFIXD_ON_EVERY_DEVICE(MapTest, EveryDType);

}  // namespace
}  // namespace prefixd::conformance
