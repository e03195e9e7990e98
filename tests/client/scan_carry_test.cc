// Scans that go on where others ended, against a real server in this process: however an array is cut, and whatever the
// place of each part and of its result, the parts' results are one call's, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "client/client.h"
#include "tests/client/resident_fixture.h"

namespace prefixd::client {
namespace {

class ScanCarryTest : public ResidentTest {
 protected:
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  // The scan of one part, from somewhere to somewhere.
  template <class T, class Out>
  absl::StatusOr<ScanResult<Out>> ScanSomewhere(absl::Span<const T> part, const ScanOptions<Out>& options) {
    const size_t place = Below(std::is_same_v<T, Out> ? 4 : 3);
    places_.push_back(place);
    if (place == 0) return client_.Scan<T, Out>(part, options);
    PREFIXD_ASSIGN_OR_RETURN(const Array array, client_.CreateArray<T>(part));
    if (place == 1) return client_.Scan<T, Out>(array, options);
    const bool in_place = place == 3 && !options.return_indices;
    ScanTargets to = {in_place ? Target(ArrayPart(array)) : Target(NewArray{})};
    if (options.return_indices) to.indices = NewArray{};
    PREFIXD_ASSIGN_OR_RETURN(ResidentResult left, (client_.ScanInto<T, Out>(array, to, options)));
    ScanResult<Out> result = {{}, std::move(left.timing), std::move(left.carry)};
    PREFIXD_ASSIGN_OR_RETURN(result.values, (in_place ? array : left.values).template Read<Out>());
    if (options.return_indices) {
      PREFIXD_ASSIGN_OR_RETURN(result.indices, left.indices.template Read<uint64_t>());
    }
    return result;
  }

  // One call, and its parts, which end at the cuts.
  template <class T, class Out>
  void Compare(ScanOptions<Out> options, absl::Span<const T> values, const std::vector<size_t>& cuts) {
    const auto expected = client_.Scan<T, Out>(values, options);
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::vector<Out> joined;
    std::vector<uint64_t> indices;
    places_.clear();
    size_t first = 0;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const size_t end = i < cuts.size() ? cuts[i] : values.size();
      SCOPED_TRACE(testing::Message() << "elements " << first << " to " << end << " of " << values.size());
      options.return_carry = i < cuts.size() || Below(2) == 0;
      const auto scanned = ScanSomewhere<T, Out>(values.subspan(first, end - first), options);
      ASSERT_TRUE(scanned.ok()) << scanned.status();
      ASSERT_EQ(scanned->carry.has_value(), options.return_carry);
      joined.insert(joined.end(), scanned->values.begin(), scanned->values.end());
      indices.insert(indices.end(), scanned->indices.begin(), scanned->indices.end());
      if (scanned->carry) options.carry_in = Carry::FromBytes(scanned->carry->ToBytes());  // As if kept in a file.
      first = end;
    }
    EXPECT_TRUE(indices == expected->indices) << "after cuts at " << testing::PrintToString(cuts);
    EXPECT_EQ(indices.size(), options.return_indices ? values.size() : 0);
    ASSERT_EQ(joined.size(), expected->values.size());
    const auto wrong = std::mismatch(joined.begin(), joined.end(), expected->values.begin(),
                                     [](const Out& a, const Out& b) { return std::memcmp(&a, &b, sizeof(Out)) == 0; });
    EXPECT_TRUE(wrong.first == joined.end())
        << "element " << wrong.first - joined.begin() << " is " << *wrong.first << ", not " << *wrong.second
        << ", after cuts at " << testing::PrintToString(cuts) << " with parts at " << testing::PrintToString(places_);
  }

  template <class T, class Out>
  void CompareRandomCuts(Op op, ScanKind kind) {
    SCOPED_TRACE(testing::Message() << Name(kDTypeOf<T>) << " to " << Name(kDTypeOf<Out>) << ' ' << Name(op) << ' '
                                    << Name(kind) << ", PREFIXD_TEST_SEED=" << seed_);
    std::vector<T> values = Values<T>(2 * Below(Below(4) == 0 ? 200'000 : 3'000) + 1);
    if constexpr (kIsFloating<T>) {
      if (op == Op::kProd) {  // None leaves the range.
        for (T& value : values) value = static_cast<T>(1 + value / 1000);
      }
    }
    std::vector<size_t> cuts(Below(5));
    for (size_t& cut : cuts) cut = Below(values.size() + 1);
    std::sort(cuts.begin(), cuts.end());
    ScanOptions<Out> options = {.op = op, .kind = kind};
    const bool may_have_indices =
        std::is_same_v<T, Out> && (op == Op::kMin || op == Op::kMax) && kind == ScanKind::kInclusive;
    options.return_indices = may_have_indices && Below(2) == 0;
    options.last_index = options.return_indices && Below(2) == 0;
    if (!options.return_indices && Below(2) == 0) options.init = Out{3};
    Compare<T, Out>(options, values, cuts);
  }

  template <class T, class Out>
  void CompareAll() {
    for (int op = 0; op < kNumOps; ++op) {
      if (!IsSupported(Primitive::kScan, kDTypeOf<T>, kDTypeOf<Out>, Op{static_cast<uint8_t>(op)})) continue;
      for (const ScanKind kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
        CompareRandomCuts<T, Out>(Op{static_cast<uint8_t>(op)}, kind);
      }
    }
  }

  const uint64_t seed_ = [] {
    const char* const text = std::getenv("PREFIXD_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
  }();
  std::mt19937_64 random_{seed_};
  std::vector<size_t> places_;
};

TEST_F(ScanCarryTest, PartsHaveTheBitsOfOneScan) {
  std::printf("PREFIXD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
#define PREFIXD_COMPARE(dtype, T, out_dtype, Out) CompareAll<T, Out>();
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_COMPARE)
#undef PREFIXD_COMPARE
}

// Where streams begin, where a group ends, and parts of nothing.
TEST_F(ScanCarryTest, PartsOfEverySize) {
  std::printf("PREFIXD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  constexpr size_t kGroup = 131'072;
  const std::vector<float> values = Values<float>(5 * kGroup + 7);
  for (const std::vector<size_t>& cuts : std::vector<std::vector<size_t>>{
           {0}, {0, 0, 1}, {kGroup}, {kGroup - 1, kGroup + 1}, {2 * kGroup + 5}, {values.size()}}) {
    for (int turn = 0; turn < 4; ++turn) {
      Compare<float, float>({.kind = ScanKind::kExclusive, .init = 3.0f}, values, cuts);
      Compare<float, double>({}, values, cuts);
    }
  }
}

TEST_F(ScanCarryTest, NoneUnlessAskedFor) {
  const std::vector<float> values = Values<float>(kLong);
  for (const size_t count : {size_t{0}, size_t{7}, kLong}) {
    SCOPED_TRACE(count);
    const auto part = absl::MakeConstSpan(values).first(count);
    const auto array = client_.CreateArray<float>(part);
    ASSERT_TRUE(array.ok()) << array.status();
    ScanOptions<float> options = {.return_carry = true};
    options.carry_in = client_.Scan<float>(part, options)->carry;
    ASSERT_TRUE(options.carry_in.has_value());
    options.return_carry = false;
    EXPECT_FALSE(client_.Scan<float>(part, options)->carry.has_value());
    EXPECT_FALSE(client_.Scan<float>(*array, options)->carry.has_value());
    EXPECT_FALSE(client_.ScanInto<float>(*array, NewArray{}, options)->carry.has_value());
    EXPECT_FALSE(client_.Scan<float>(part)->carry.has_value());
  }
}

TEST_F(ScanCarryTest, OneOfAnotherScanIsRefused) {
  const std::vector<float> values = Values<float>(kLong);
  const auto array = client_.CreateArray<float>(values);
  ASSERT_TRUE(array.ok()) << array.status();
  const std::optional<Carry> carry = client_.Scan<float>(values, {.return_carry = true})->carry;
  ASSERT_TRUE(carry.has_value());
  const auto refused = [&](const ScanOptions<float>& options, const char* reason) {
    for (const size_t count : {size_t{7}, kLong}) {  // As a unary call, and as a stream.
      const auto part = absl::MakeConstSpan(values).first(count);
      EXPECT_EQ(ErrorReason(client_.Scan<float>(array->Part(0, count), options).status()), reason);
      const absl::Status status = client_.Scan<float>(part, options).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_EQ(ErrorReason(status), reason);
    }
    EXPECT_EQ(ErrorReason(client_.ScanInto<float>(*array, *array, options).status()), reason);
  };
  refused({.op = Op::kMax, .carry_in = carry}, "CARRY");
  refused({.kind = ScanKind::kExclusive, .carry_in = carry}, "CARRY");
  const std::string& bytes = carry->ToBytes();
  for (const std::string& wrong :
       {std::string(), std::string("x"), bytes.substr(0, bytes.size() - 1), bytes + "x", std::string(2 << 20, '\0')}) {
    refused({.carry_in = Carry::FromBytes(wrong)}, "CARRY");
  }
  EXPECT_EQ(ErrorField(client_.Scan<float>(values, {.op = Op::kMax, .carry_in = carry}).status()), "carry_in");
  EXPECT_EQ(ErrorReason((client_.Scan<float, double>(values, {.carry_in = carry}).status())), "CARRY");
  EXPECT_EQ(ErrorReason(client_.Scan<int32_t>(Values<int32_t>(5), {.carry_in = carry}).status()), "CARRY");
  const auto few = absl::MakeConstSpan(values).first(5);
  EXPECT_EQ(ErrorReason(client_.Scan<float>(few, {.reverse = true, .carry_in = carry}).status()), "FIELD_CONFLICT");
  EXPECT_EQ(ErrorReason(client_.Scan<float>(few, {.reverse = true, .return_carry = true}).status()), "FIELD_CONFLICT");
  // None of that wrote into the array.
  EXPECT_TRUE(Bits(*array->Read<float>()) == Bits(values));
}

}  // namespace
}  // namespace prefixd::client
