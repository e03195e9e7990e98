// Whole requests through a fake transport and all of the server below gRPC: the answers that they get.
#include "server/call/session.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/session_fixture.h"

namespace prefixd {
namespace {

TEST_F(SessionTest, UnaryScan) {
  ASSERT_TRUE(Run(Unary(), Messages(ScanOf(), {Bytes<int32_t>({3, 1, 2, 4})})).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), (std::vector<int32_t>{3, 4, 6, 10}));
  EXPECT_EQ(transport_->result().timing.num_items, 4u);
  EXPECT_EQ(transport_->result().timing.device, "fake");
  EXPECT_EQ(transport_->result().timing.algorithm, Algorithm{Strategy::kChained});
  EXPECT_TRUE(transport_->result().timing.kernel_ns.has_value());
}

TEST_F(SessionTest, StreamsCutAnywhereGiveTheScanOfTheWhole) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::vector<int32_t> in = Iota(3 * kPieceItems + 17);
  for (const auto answers : {FakeTransport::Answers::kInline, FakeTransport::Answers::kFromAnotherThread}) {
    std::vector<std::string> chunks;
    for (size_t first = 0; first < in.size();) {
      const size_t most = random() % 3 == 0 ? 5 : 2 * kPieceItems;
      const size_t n = std::min<size_t>(random() % most, in.size() - first);
      chunks.push_back(Bytes(std::vector<int32_t>(in.begin() + first, in.begin() + first + n)));
      first += n;
    }
    FakeTransport transport(&context_, Stream(), Messages(ScanOf(), std::move(chunks)), answers);
    ASSERT_TRUE(transport.Run());
    ASSERT_TRUE(transport.result().status.ok()) << transport.result().status;
    EXPECT_EQ(Items<int32_t>(transport.values()), InclusiveSum(in));
    for (const Reply& reply : transport.replies()) EXPECT_LE(reply.values.size(), kMaxReplyPayloadBytes);
  }
}

TEST_F(SessionTest, ReduceCarriesItsStateOverChunksAndPieces) {
  std::vector<int32_t> in(2 * kPieceItems + 5, 7);
  in[kPieceItems + 3] = -9;
  in[kPieceItems + 9] = -9;
  const auto middle = in.begin() + 12345;
  ASSERT_TRUE(Run(Stream(), Messages(ReduceOf({.op = Op::kMin}), {Bytes(std::vector<int32_t>(in.begin(), middle)), "",
                                                                  Bytes(std::vector<int32_t>(middle, in.end()))}))
                  .ok());
  EXPECT_EQ(transport_->result().value->As<int32_t>(), -9);
  EXPECT_EQ(transport_->result().index, kPieceItems + 3);
  EXPECT_EQ(transport_->result().timing.num_items, in.size());
}

TEST_F(SessionTest, CompactKeepsIndicesOfTheWholeArray) {
  const std::vector<int32_t> in = Iota(2 * kPieceItems);
  CompactSpec compact{.mask_kind = MaskKind::kBytes, .return_indices = true};
  std::string mask(in.size(), '\0');
  std::vector<int32_t> expected;
  std::vector<uint64_t> expected_indices;
  for (size_t i = 0; i < in.size(); i += 3) {
    mask[i] = 1;
    expected.push_back(in[i]);
    expected_indices.push_back(i);
  }
  const size_t cut = kPieceItems + 7;
  std::vector<Message> messages;
  messages.push_back(
      MakeMessage(CompactOf(compact), Bytes(std::vector<int32_t>(in.begin(), in.begin() + cut)), mask.substr(0, cut)));
  messages.push_back(
      MakeMessage(std::nullopt, Bytes(std::vector<int32_t>(in.begin() + cut, in.end())), mask.substr(cut)));
  ASSERT_TRUE(Run(Stream(), std::move(messages)).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), expected);
  EXPECT_EQ(Items<uint64_t>(transport_->indices()), expected_indices);
  EXPECT_EQ(transport_->result().num_kept, expected.size());
  for (const Reply& reply : transport_->replies()) {
    EXPECT_LE(reply.values.size() + reply.indices.size(), kMaxReplyPayloadBytes);
  }
}

// Eight bytes an element come in and four go out: the result of one message comes in two pieces.
TEST_F(SessionTest, AUnaryResultInSeveralPieces) {
  const size_t n = kMaxReplyPayloadBytes / sizeof(double) + 100;
  const std::vector<double> in(n, 1.0);
  const CompactSpec compact{.dtype = DType::kF64,
                            .predicate = Predicate{Comparison::kIsFinite},
                            .return_values = false,
                            .return_indices = true,
                            .index_dtype = DType::kU32};
  ASSERT_TRUE(Run(Unary(), Messages(compact, {Bytes(in)})).ok());
  std::vector<uint32_t> expected(n);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(Items<uint32_t>(transport_->indices()), expected);
}

TEST_F(SessionTest, BitMasksRestartInEachChunk) {
  const std::vector<int32_t> in = Iota(13);
  const CompactSpec compact{.mask_kind = MaskKind::kBits};
  std::vector<Message> messages;
  messages.push_back(MakeMessage(CompactOf(compact), Bytes(std::vector<int32_t>(in.begin(), in.begin() + 3)), "\xFD"));
  messages.push_back(
      MakeMessage(std::nullopt, Bytes(std::vector<int32_t>(in.begin() + 3, in.end())), std::string("\x01\xFE", 2)));
  ASSERT_TRUE(Run(Stream(), std::move(messages)).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), (std::vector<int32_t>{1, 3, 4, 13}));
}

TEST_F(SessionTest, EmptyArraysAreValid) {
  EXPECT_TRUE(Run(Unary(), Messages(ScanOf(), {""})).ok());
  EXPECT_EQ(transport_->values(), "");
  EXPECT_TRUE(Run(Stream(), Messages(ScanOf(), {"", "", ""})).ok());
  EXPECT_TRUE(Run(Stream(), Messages(ReduceOf({.op = Op::kProd}), {""})).ok());
  EXPECT_EQ(transport_->result().value->As<int32_t>(), 1);
  EXPECT_EQ(transport_->result().timing.num_items, 0u);
  EXPECT_FALSE(transport_->result().index);
  EXPECT_TRUE(Run(Unary(), Messages(ReduceSpec{.dtype = DType::kF32}, {""})).ok());
  EXPECT_EQ(transport_->result().value, Value::Of(0.0f));  // +0.0, though sums are padded with -0.0.
}

TEST_F(SessionTest, InitStandsInFront) {
  ASSERT_TRUE(Run(Unary(), Messages(ReduceOf({.op = Op::kMin, .init = Value::Of(3)}), {Bytes<int32_t>({3, 4})})).ok());
  EXPECT_EQ(transport_->result().value->As<int32_t>(), 3);
  EXPECT_FALSE(transport_->result().index);  // The init was there first.
  ASSERT_TRUE(Run(Stream(), Messages(ScanOf({.kind = ScanKind::kExclusive, .init = Value::Of(10)}),
                                     {Bytes<int32_t>({1, 2}), Bytes<int32_t>({3})}))
                  .ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), (std::vector<int32_t>{10, 11, 13}));
}

TEST_F(SessionTest, ReverseIsForUnaryCalls) {
  ASSERT_TRUE(Run(Unary(), Messages(ScanOf({.reverse = true}), {Bytes<int32_t>({1, 2, 3})})).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), (std::vector<int32_t>{6, 5, 3}));
  const absl::Status refused = Run(Stream(), Messages(ScanOf({.reverse = true}), {Bytes<int32_t>({1})}));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorReason(refused), "REVERSE_ON_STREAM");
  ScanSpec wide = ScanOf({.reverse = true});
  wide.out_dtype = DType::kI64;
  EXPECT_NE(Run(Stream(), Messages(wide, {Bytes<int32_t>({1})})).message().find("131072 elements"), std::string::npos);
}

TEST_F(SessionTest, BadInputIsNamed) {
  const std::string four = Bytes<int32_t>({1, 2, 3, 4});
  EXPECT_EQ(Reason(Stream(), {}), "SPEC_MISSING");
  std::vector<Message> no_spec;
  no_spec.push_back(MakeMessage(std::nullopt, four));
  EXPECT_EQ(Reason(Stream(), std::move(no_spec)), "SPEC_MISSING");
  std::vector<Message> two_specs;
  two_specs.push_back(MakeMessage(ScanOf(), four));
  two_specs.push_back(MakeMessage(ScanOf(), four));
  EXPECT_EQ(Reason(Stream(), std::move(two_specs)), "SPEC_REPEATED");
  EXPECT_EQ(Reason(Unary(), Messages(ScanOf(), {"12345"})), "LENGTH_NOT_MULTIPLE");

  for (const uint64_t wrong : {uint64_t{3}, uint64_t{5}, ~uint64_t{0}}) {
    std::vector<Message> order = Messages(ScanOf(), {four, four});
    order[0].chunk.first_item = 0;
    order[1].chunk.first_item = wrong;
    EXPECT_EQ(Reason(Stream(), std::move(order)), "CHUNK_OUT_OF_ORDER") << wrong;
  }
  std::vector<Message> right_order = Messages(ScanOf(), {four, four});
  right_order[1].chunk.first_item = 4;
  EXPECT_TRUE(Run(Stream(), std::move(right_order)).ok());

  for (const uint64_t wrong : {uint64_t{0}, uint64_t{7}, uint64_t{9}, ~uint64_t{0}}) {
    ScanSpec declared = ScanOf();
    declared.num_items = wrong;
    EXPECT_EQ(Reason(Stream(), Messages(declared, {four, four})), "COUNT_MISMATCH") << wrong;
  }
  ScanSpec right_count = ScanOf();
  right_count.num_items = 8;
  EXPECT_TRUE(Run(Stream(), Messages(right_count, {four, four})).ok());

  for (const MaskKind mask_kind : {MaskKind::kBytes, MaskKind::kBits}) {
    const Spec masked = CompactOf({.mask_kind = mask_kind});
    for (const std::optional<std::string>& mask :
         {std::optional<std::string>(), std::optional<std::string>(""), std::optional<std::string>("12"),
          std::optional<std::string>("12345")}) {
      std::vector<Message> messages;
      messages.push_back(MakeMessage(masked, four, mask));
      EXPECT_EQ(Reason(Unary(), std::move(messages)), "MASK_LENGTH");
    }
  }
  std::vector<Message> mask_and_predicate;
  mask_and_predicate.push_back(MakeMessage(CompactOf({.predicate = Predicate{}}), four, "1234"));
  EXPECT_EQ(Reason(Unary(), std::move(mask_and_predicate)), "FIELD_CONFLICT");

  ScanSpec algorithm = ScanOf();
  algorithm.algorithm = {Strategy::kCub};
  EXPECT_EQ(Reason(Unary(), Messages(algorithm, {four})), "NOT_IMPLEMENTED");
  algorithm.algorithm = {Strategy::kThreePhase, TileScan::kBlelloch};
  EXPECT_EQ(Reason(Unary(), Messages(algorithm, {four})), "NOT_IMPLEMENTED");
  for (const Algorithm& wrong : {Algorithm{Strategy::kSequential, TileScan::kBlelloch},
                                 Algorithm{Strategy::kThreePhase, TileScan::kKoggeStone, 0, true},
                                 Algorithm{Strategy::kThreePhase, TileScan::kDefault, 4}}) {
    algorithm.algorithm = wrong;
    EXPECT_EQ(Reason(Unary(), Messages(algorithm, {four})), "ALGORITHM_CHOICE") << Name(wrong);
    EXPECT_EQ(Reason(Stream(), Messages(algorithm, {four})), "ALGORITHM_CHOICE") << Name(wrong);
  }

  for (const std::string& id : {std::string(65, 'x'), std::string("two words"), std::string("tab\t")}) {
    std::vector<Message> messages = Messages(ScanOf(), {four});
    messages[0].request_id = id;
    EXPECT_EQ(Reason(Unary(), std::move(messages)), "REQUEST_ID");
  }
}

TEST_F(SessionTest, AStreamThatAnnouncedItsEndIsNothingWithoutIt) {
  const std::string four = Bytes<int32_t>({1, 2, 3, 4});
  for (const Spec& spec : {Spec(ScanOf()), Spec(ReduceOf())}) {
    std::vector<Message> cut = Messages(spec, {four, four});
    cut[0].announces_end = true;
    EXPECT_EQ(Reason(Stream(), std::move(cut)), "INCOMPLETE");

    std::vector<Message> whole = Messages(spec, {four, four});
    whole[0].announces_end = true;
    whole[1].ends = true;
    EXPECT_TRUE(Run(Stream(), std::move(whole)).ok());

    std::vector<Message> with_empty_end = Messages(spec, {four, ""});
    with_empty_end[0].announces_end = true;
    with_empty_end[1].ends = true;
    EXPECT_TRUE(Run(Stream(), std::move(with_empty_end)).ok());

    std::vector<Message> empty = Messages(spec, {""});
    empty[0].announces_end = empty[0].ends = true;
    EXPECT_TRUE(Run(Stream(), std::move(empty)).ok());

    std::vector<Message> behind = Messages(spec, {four, four, four});
    behind[1].ends = true;
    EXPECT_EQ(Reason(Stream(), std::move(behind)), "AFTER_END");

    std::vector<Message> unary = Messages(spec, {four});
    unary[0].announces_end = true;
    EXPECT_TRUE(Run(Unary(), std::move(unary)).ok());  // It is one message, so it is whole.
  }
}

// The limit of a quadratic algorithm is that of the whole array, whatever it comes in.
TEST_F(SessionTest, ArraysAboveTheLimitOfAnAlgorithmAreRefusedBeforeTheyRun) {
  constexpr size_t kLimit = size_t{1} << 14;
  ScanSpec naive = ScanOf();
  naive.algorithm = {Strategy::kNaive};
  const std::string half = Bytes(Iota(kLimit / 2));
  ASSERT_TRUE(Run(Unary(), Messages(naive, {half + half})).ok());
  EXPECT_EQ(transport_->result().timing.algorithm, naive.algorithm);
  EXPECT_EQ(transport_->result().timing.launches, 1u);
  ASSERT_TRUE(Run(Stream(), Messages(naive, {half, half, ""})).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()).size(), kLimit);

  int works = device_.works();
  const absl::Status unary = Run(Unary(), Messages(naive, {half + half + half}));
  EXPECT_EQ(unary.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorReason(unary), "ALGORITHM_LIMIT");
  EXPECT_NE(std::string(unary.message()).find("at most 16384 elements"), std::string::npos) << unary;
  EXPECT_EQ(device_.works(), works);
  naive.num_items = kLimit + 1;
  EXPECT_EQ(Reason(Stream(), Messages(naive, {half})), "ALGORITHM_LIMIT");
  EXPECT_EQ(device_.works(), works) << "the length was declared";
  naive.num_items.reset();
  EXPECT_EQ(Reason(Stream(), Messages(naive, {half, half, Bytes<int32_t>({1})})), "ALGORITHM_LIMIT");
  EXPECT_LE(device_.works(), works + 2);
}

TEST_F(SessionTest, EveryAlgorithmOfTheDeviceIsServedByName) {
  const std::string in = Bytes<int32_t>({3, 1, 2, 4});
  for (const AlgorithmInfo& row : device_.Algorithms()) {
    SCOPED_TRACE(StrCat(Name(row.primitive), " ", Name(row.algorithm)));
    if (!row.serves(DType::kI32, DType::kI32, Op::kSum)) continue;
    const Spec spec = SampleSpec(row.primitive, DType::kI32, Op::kSum, row.algorithm);
    ASSERT_TRUE(Run(Unary(), Messages(spec, {in})).ok());
    EXPECT_EQ(transport_->result().timing.algorithm, *device_.Resolve(row.primitive, row.algorithm));
    EXPECT_GE(transport_->result().timing.launches, 1u);
    if (row.primitive == Primitive::kReduce) {
      EXPECT_EQ(transport_->result().value->As<int32_t>(), 10);
    }
    if (row.primitive == Primitive::kScan) {
      EXPECT_EQ(Items<int32_t>(transport_->values()), (std::vector<int32_t>{3, 4, 6, 10}));
    }
  }
}

TEST_F(SessionTest, AUnaryReplyThatWouldNotFitIsRefusedBeforeItRuns) {
  const std::string fits = Bytes(Iota(kPieceItems));
  EXPECT_TRUE(Run(Unary(), Messages(ScanOf(), {fits})).ok());
  const int works = device_.works();
  const std::string too_large = Bytes(Iota(kPieceItems + 1));
  EXPECT_EQ(Reason(Unary(), Messages(ScanOf(), {too_large})), "REPLY_TOO_LARGE");
  EXPECT_EQ(Reason(Unary(), Messages(CompactOf({.predicate = Predicate{}, .return_indices = true}), {fits})),
            "REPLY_TOO_LARGE");
  EXPECT_EQ(device_.works(), works);
  EXPECT_TRUE(Run(Unary(), Messages(ReduceOf(), {too_large})).ok());
}

// u8 in, u64 out: the most that a result can outgrow its array.
template <class S>
Spec Widening(S spec) {
  spec.dtype = DType::kU8;
  spec.out_dtype = DType::kU64;
  return spec;
}

constexpr size_t kWideItems = kMaxReplyPayloadBytes / sizeof(uint64_t);

TEST_F(SessionTest, AWiderUnaryReplyThatWouldNotFitIsRefusedBeforeItRuns) {
  const std::string fits(kWideItems, '\xff');
  ASSERT_TRUE(Run(Unary(), Messages(Widening(ScanOf()), {fits})).ok());
  EXPECT_EQ(Items<uint64_t>(transport_->values()).back(), 255 * kWideItems);
  const int works = device_.works();
  const absl::Status refused = Run(Unary(), Messages(Widening(ScanOf()), {fits + '\1'}));
  EXPECT_EQ(refused.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ErrorReason(refused), "REPLY_TOO_LARGE");
  EXPECT_EQ(device_.works(), works);
}

TEST_F(SessionTest, StreamsWithWiderOutputKeepTheirRepliesSmall) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::string in(3 * kWideItems + 17, '\0');
  std::vector<uint64_t> expected;
  uint64_t sum = uint64_t{1} << 40;
  for (char& x : in) {
    x = static_cast<char>(random());
    expected.push_back(sum += static_cast<uint8_t>(x));
  }
  const size_t cut = random() % in.size();
  ASSERT_TRUE(Run(Stream(), Messages(Widening(ScanOf({.init = Value::Of(uint64_t{1} << 40)})),
                                     {in.substr(0, cut), in.substr(cut)}))
                  .ok());
  EXPECT_EQ(Items<uint64_t>(transport_->values()), expected);
  for (const Reply& reply : transport_->replies()) EXPECT_LE(reply.values.size(), kMaxReplyPayloadBytes);
  EXPECT_EQ(transport_->result().timing.num_items, in.size());
}

TEST_F(SessionTest, ReducesAccumulateInTheOutputType) {
  const std::string in(2 * kMaxReplyPayloadBytes + 3, '\xff');  // More than one piece.
  ASSERT_TRUE(Run(Unary(), Messages(Widening(ReduceOf()), {in})).ok());
  EXPECT_EQ(transport_->result().value, Value::Of(uint64_t{255} * in.size()));
  EXPECT_EQ(transport_->result().dtype, DType::kU64);
  const ReduceSpec least = {.op = Op::kMin, .init = Value::Of(uint64_t{300})};
  ASSERT_TRUE(Run(Stream(), Messages(Widening(ReduceOf(least)), {in})).ok());
  EXPECT_EQ(transport_->result().value, Value::Of(uint64_t{255}));
  EXPECT_EQ(transport_->result().index, 0u);
  ASSERT_TRUE(Run(Unary(), Messages(Widening(ReduceOf({.op = Op::kMin})), {""})).ok());
  EXPECT_EQ(transport_->result().value, Value::Of(~uint64_t{0}));
}

TEST_F(SessionTest, AnExclusiveScanStartsWithTheIdentityOfTheOutputType) {
  ASSERT_TRUE(Run(Unary(), Messages(Widening(ScanOf({.op = Op::kMin, .kind = ScanKind::kExclusive})), {"\5\3"})).ok());
  EXPECT_EQ(Items<uint64_t>(transport_->values()), (std::vector<uint64_t>{~uint64_t{0}, 5}));
}

TEST_F(SessionTest, DifferencesCarryOverChunksAndPieces) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::vector<int32_t> in(2 * kPieceItems + 99);
  for (int32_t& x : in) x = static_cast<int32_t>(random());
  const std::vector<int32_t> sums = InclusiveSum(in);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::string> chunks;
    for (size_t first = 0; first < in.size();) {
      const size_t n = std::min<size_t>(random() % (round == 0 ? 3 * kPieceItems : kPieceItems), in.size() - first);
      chunks.push_back(Bytes(std::vector<int32_t>(sums.begin() + first, sums.begin() + first + n)));
      first += n;
    }
    ASSERT_TRUE(Run(Stream(), Messages(DifferenceSpec{.dtype = DType::kI32}, std::move(chunks))).ok());
    EXPECT_EQ(Items<int32_t>(transport_->values()), in);
    EXPECT_EQ(transport_->result().timing.num_items, in.size());
  }
  const DifferenceSpec reverse = {.dtype = DType::kI32, .init = Value::Of(1), .reverse = true};
  ASSERT_TRUE(Run(Unary(), Messages(reverse, {Bytes<int32_t>({7, 5, 4})})).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), (std::vector<int32_t>{2, 1, 3}));
  EXPECT_EQ(Reason(Stream(), Messages(reverse, {Bytes<int32_t>({7})})), "REVERSE_ON_STREAM");
  ASSERT_TRUE(Run(Unary(), Messages(DifferenceSpec{.dtype = DType::kI32}, {""})).ok());
  EXPECT_EQ(transport_->values(), "");
}

}  // namespace
}  // namespace prefixd
