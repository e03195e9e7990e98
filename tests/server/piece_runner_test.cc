// The pieces of one request on a lane: every cut gives the result of the whole array, bit for bit.
#include "server/work/piece_runner.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/association.h"
#include "server/work/chunk_checker.h"
#include "tests/server/fake_device.h"
#include "tests/server/fake_transport.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

// Values whose sums and products round at every step, and stay finite.
template <class T>
std::vector<T> RoughItems(std::mt19937& random, size_t n, Op op) {
  std::vector<T> items(n);
  std::uniform_real_distribution<T> sums(T{-1}, T{1});
  std::uniform_real_distribution<T> products(T{0.999}, T{1.001});
  for (T& item : items) item = op == Op::kProd ? products(random) : sums(random);
  return items;
}

std::string RandomBytes(std::mt19937& random, size_t num_bytes) {
  std::string bytes(num_bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Lengths that add up to n: single elements, a few, around a group, several groups.
std::vector<size_t> RandomCuts(std::mt19937& random, size_t n) {
  std::vector<size_t> cuts;
  while (n > 0) {
    constexpr size_t kMost[] = {1, 1, 50, 5'000, kGroupItems, 2 * kGroupItems};
    size_t cut = 1 + random() % kMost[random() % std::size(kMost)];
    if (random() % 8 == 0) cut = kGroupItems - random() % 2;
    cuts.push_back(std::min(cut, n));
    n -= cuts.back();
  }
  return cuts;
}

// A payload cut where gRPC might: at each of the ascending `cuts`, every part in memory of its own and `shift` bytes
// behind an aligned place. There is nothing behind a part: ASan sees who reads on.
Payload InParts(const std::string& bytes, const std::vector<size_t>& cuts, size_t shift) {
  auto slices = std::make_shared<std::vector<std::unique_ptr<char[]>>>();
  Payload payload;
  size_t begin = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t size = (i < cuts.size() ? cuts[i] : bytes.size()) - begin;
    char* const slice = slices->emplace_back(new char[shift + size]).get() + shift;
    bytes.copy(slice, size, begin);
    payload.Append({slice, size});
    begin += size;
  }
  payload.SetOwner(slices);
  return payload;
}

class PieceRunnerTest : public testing::TestWithParam<bool> {
 protected:
  PieceRunnerTest() {
    device_.set_direct_bytes(GetParam() ? DeviceInfo::kHostMemory : 0);
    lanes_ = *LanePool::Create(device_, 2, kStagingBytes);
  }
  ~PieceRunnerTest() override { lanes_.reset(); }

  template <class F>
  absl::Status OnALane(F work) {
    Gate done;
    absl::Status status;
    lanes_->Submit({TaskSize::kLarge}, [&](BorrowedLane& lane) {
      status = work(lane);
      done.Arrive();
    });
    return done.WaitFor(1) ? status : absl::InternalError("the lane did not come back");
  }

  // Runs the array, cut so. declares: says beforehand how long it is.
  template <class S>
  absl::Status Run(S spec, const std::string& values, const std::vector<size_t>& cuts, bool declares) {
    out_.clear();
    if (declares) spec.num_items = values.size() / SizeOf(spec.dtype);
    PREFIXD_ASSIGN_OR_RETURN(std::shared_ptr<const Work> work, MakeWork(device_, Operation(spec)));
    ChunkChecker checker(work, CallShape::kStream);
    runner_ = std::make_unique<PieceRunner>(std::move(work), CallShape::kStream);
    size_t begin = 0;
    for (const size_t cut : cuts) {
      Chunk chunk;
      const size_t size_bytes = cut * SizeOf(spec.dtype);
      chunk.values = Payload(values.substr(begin, size_bytes));
      begin += size_bytes;
      PREFIXD_RETURN_IF_ERROR(checker.Check(&chunk));
      for (uint64_t first = 0; first < cut;) {
        const Piece piece = runner_->Cut(chunk, first, /*ends=*/false);
        std::optional<Reply> reply;
        PREFIXD_RETURN_IF_ERROR(OnALane([&](BorrowedLane& lane) { return runner_->Run(lane, piece, stop_, &reply); }));
        // Whoever sends a chunk and waits gets all its results.
        if (S::kPrimitive != Primitive::kReduce) {
          const uint64_t initial = runner_->work().shape().has_initial && !piece.is_part ? 1 : 0;
          EXPECT_EQ(reply->values.size(), (piece.num_items + initial) * SizeOf(spec.output()));
          out_ += reply->values.ToString();
        }
        first += piece.num_items;
      }
    }
    if (runner_->NeedsEnd()) {
      EXPECT_FALSE(declares);
      PREFIXD_RETURN_IF_ERROR(OnALane([&](BorrowedLane& lane) { return runner_->RunEnd(lane, stop_); }));
    }
    result_ = {};
    runner_->Describe(&result_);
    PREFIXD_RETURN_IF_ERROR(runner_->Publish(&result_));
    out_ += result_.row_values.ToString();
    return checker.Finish();
  }

  // Runs an array that is one message.
  absl::Status RunMessage(const Spec& spec, Chunk chunk) {
    out_.clear();
    PREFIXD_ASSIGN_OR_RETURN(std::shared_ptr<const Work> work, MakeWork(device_, OperationOf(spec)));
    const uint64_t num_items = chunk.values.size() / work->item_bytes();
    chunk.num_items = num_items;
    runner_ = std::make_unique<PieceRunner>(std::move(work), CallShape::kStream);
    for (uint64_t first = 0; first < num_items;) {
      Piece piece = runner_->Cut(chunk, first, /*ends=*/true);
      first += piece.num_items;
      if (first == num_items) chunk = {};  // The piece alone keeps the message.
      std::optional<Reply> reply;
      PREFIXD_RETURN_IF_ERROR(OnALane([&](BorrowedLane& lane) { return runner_->Run(lane, piece, stop_, &reply); }));
      if (reply) out_ += reply->values.ToString();
    }
    result_ = {};
    runner_->Describe(&result_);
    return absl::OkStatus();
  }

  template <class In, class Out>
  void CutsDoNotShow(Op op) {
    const uint32_t seed = std::random_device{}();
    std::mt19937 random(seed);
    const size_t n = 2 * kGroupItems + random() % (2 * kGroupItems);
    SCOPED_TRACE(
        StrCat("seed ", seed, ", ", n, " of ", Name(kDTypeOf<In>), " to ", Name(kDTypeOf<Out>), ", ", Name(op)));
    const std::string values = Bytes(RoughItems<In>(random, n, op));
    for (const ScanKind kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
      ScanSpec spec = {.dtype = kDTypeOf<In>, .out_dtype = kDTypeOf<Out>, .op = op, .kind = kind};
      if (random() % 2 == 0) spec.init = Value::Of(Out{0.1});
      ASSERT_TRUE(Run(spec, values, {n}, true).ok());
      const std::string whole = out_;
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(Run(spec, values, RandomCuts(random, n), random() % 2 == 0).ok());
        EXPECT_TRUE(out_ == whole) << Name(kind);
      }
    }
    const ReduceSpec spec = {.dtype = kDTypeOf<In>, .out_dtype = kDTypeOf<Out>, .op = op};
    ASSERT_TRUE(Run(spec, values, {n}, true).ok());
    const Out whole = result_.value->As<Out>();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(Run(spec, values, RandomCuts(random, n), random() % 2 == 0).ok());
      EXPECT_EQ(result_.value->As<Out>(), whole);
      EXPECT_EQ(result_.timing.num_items, n);
    }
  }

  // Rows that are cut anywhere have the bits of a batch of whole ones, and of each row alone.
  template <class S>
  void RowCutsDoNotShow(S spec) {
    const uint32_t seed = std::random_device{}();
    std::mt19937 random(seed);
    constexpr size_t kRows[] = {1, 2, 7, 5'000, kGroupItems - 1, kGroupItems, 2 * kGroupItems + 3};
    for (const size_t row_items : kRows) {
      const size_t rows = std::max<size_t>(2, (kGroupItems + random() % kGroupItems) / row_items);
      const size_t n = rows * row_items;
      SCOPED_TRACE(StrCat("seed ", seed, ", ", rows, " rows of ", row_items, " ", Name(spec.dtype)));
      const std::string values =
          spec.dtype == DType::kF32 ? Bytes(RoughItems<float>(random, n, Op::kSum)) : RandomBytes(random, n * 4);
      spec.axis = {.along = Axis::Along::kRow, .row_items = row_items};
      ASSERT_TRUE(Run(spec, values, RandomCuts(random, n), random() % 2 == 0).ok());
      const std::string got = out_;
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(Run(spec, values, RandomCuts(random, n), random() % 2 == 0).ok());
        EXPECT_TRUE(out_ == got);
      }
      ASSERT_TRUE(Run(spec, values, {n}, true).ok());
      EXPECT_TRUE(out_ == got);
      spec.axis.reset();
      const size_t out_bytes = got.size() / rows;
      for (size_t row = 0; row < std::min<size_t>(rows, 5); ++row) {
        ASSERT_TRUE(Run(spec, values.substr(row * row_items * 4, row_items * 4), {row_items}, true).ok());
        if (result_.value) out_.assign(reinterpret_cast<const char*>(&result_.value->bits), SizeOf(result_.dtype));
        EXPECT_TRUE(out_ == got.substr(row * out_bytes, out_bytes)) << row;
      }
    }
  }

  FakeDevice device_;
  std::unique_ptr<LanePool> lanes_;
  std::unique_ptr<PieceRunner> runner_;
  StopSignal stop_{absl::InfiniteFuture()};
  std::string out_;
  Result result_;
};

INSTANTIATE_TEST_SUITE_P(Places, PieceRunnerTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "InHostMemory" : "Copied"; });

TEST_P(PieceRunnerTest, CutsDoNotShowInSumsOfF32) { CutsDoNotShow<float, float>(Op::kSum); }
TEST_P(PieceRunnerTest, CutsDoNotShowInSumsOfF64) { CutsDoNotShow<double, double>(Op::kSum); }
TEST_P(PieceRunnerTest, CutsDoNotShowInSumsOfF32ToF64) { CutsDoNotShow<float, double>(Op::kSum); }
TEST_P(PieceRunnerTest, CutsDoNotShowInProducts) { CutsDoNotShow<float, float>(Op::kProd); }

TEST_P(PieceRunnerTest, CutsOfRowsDoNotShow) {
  for (const DType dtype : {DType::kF32, DType::kI32}) {
    RowCutsDoNotShow(ScanSpec{.dtype = dtype});
    RowCutsDoNotShow(ScanSpec{.dtype = dtype, .kind = ScanKind::kExclusive});
    RowCutsDoNotShow(DifferenceSpec{.dtype = dtype});
    RowCutsDoNotShow(ReduceSpec{.dtype = dtype});
    RowCutsDoNotShow(ReduceSpec{.dtype = dtype, .op = Op::kMin});
  }
  RowCutsDoNotShow(ScanSpec{.dtype = DType::kF32, .precision = Precision::kWide});
  RowCutsDoNotShow(ReduceSpec{.dtype = DType::kF32, .precision = Precision::kWide});
}

// One row of 1,000 items and a half came, or none.
TEST_P(PieceRunnerTest, RowsAreCutIntoTheRestOfOneWholeOnesAndTheBeginningOfOne) {
  const ScanSpec spec = {.dtype = DType::kI32, .axis = Axis{.row_items = 1'000}};
  EXPECT_FALSE(Run(spec, std::string(6'000, '\0'), {1'500}, false).ok());
  Chunk chunk;
  chunk.num_items = 3'000;
  const auto is = [](const Piece& piece, uint64_t num_items, bool is_part, bool is_last) {
    return piece.num_items == num_items && piece.is_part == is_part && piece.is_last == is_last;
  };
  EXPECT_TRUE(is(runner_->Cut(chunk, 0, false), 500, true, true));
  EXPECT_TRUE(is(runner_->Cut(chunk, 2'700, false), 300, true, false));
  runner_ = std::make_unique<PieceRunner>(*MakeWork(device_, Operation(spec)), CallShape::kStream);
  EXPECT_TRUE(is(runner_->Cut(chunk, 0, false), 3'000, false, true));
  EXPECT_TRUE(is(runner_->Cut(chunk, 500, false), 2'000, false, true));
  EXPECT_TRUE(is(runner_->Cut(chunk, 2'500, false), 500, true, false));
}

TEST_P(PieceRunnerTest, TheInitialValueStandsInFrontHoweverTheRestIsCut) {
  const uint32_t seed = std::random_device{}();
  std::mt19937 random(seed);
  SCOPED_TRACE(StrCat("seed ", seed));
  for (const size_t n : {size_t{1}, size_t{300}, 2 * kGroupItems + random() % kGroupItems}) {
    const std::string values = Bytes(RoughItems<float>(random, n, Op::kSum));
    ScanSpec spec = {.dtype = DType::kF32, .init = Value::Of(0.25f)};
    ASSERT_TRUE(Run(spec, values, {n}, true).ok());
    const std::string want = Bytes(std::vector<float>{0.25f}) + out_;
    spec.include_initial = true;
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(Run(spec, values, RandomCuts(random, n), random() % 2 == 0).ok());
      EXPECT_TRUE(out_ == want);
    }
    ASSERT_TRUE(Run(spec, values, {n}, true).ok());
    EXPECT_TRUE(out_ == want);
  }
}

// Where the parts of a message lie changes nothing: misaligned, cut within elements, empty, many of them, one for all.
TEST_P(PieceRunnerTest, PartsOfAMessageDoNotShow) {
  const uint32_t seed = std::random_device{}();
  std::mt19937 random(seed);
  SCOPED_TRACE(StrCat("seed ", seed));
  const size_t n = 3 * kGroupItems + random() % kGroupItems;
  const std::string values = Bytes(RoughItems<float>(random, n, Op::kSum));
  std::string mask(n, '\0');
  for (char& one : mask) one = static_cast<char>(random() % 2);
  const ScanSpec scan = {.dtype = DType::kF32};
  const ReduceSpec reduce = {.dtype = DType::kF32};
  const CompactSpec compact = {.dtype = DType::kF32, .mask_kind = MaskKind::kBytes};
  ASSERT_TRUE(RunMessage(scan, {.values = Payload(values)}).ok());
  const std::string sums = out_;
  ASSERT_TRUE(RunMessage(reduce, {.values = Payload(values)}).ok());
  const Value sum = *result_.value;
  ASSERT_TRUE(RunMessage(compact, {.values = Payload(values), .mask = Payload(mask)}).ok());
  const std::string kept = out_;
  for (const size_t num_cuts : {0, 1, 2, 20, 2000}) {
    for (const size_t shift : {0, 1, 2, 3}) {
      std::vector<size_t> cuts(num_cuts);
      for (size_t& cut : cuts) cut = random() % values.size();
      if (num_cuts > 1) cuts[1] = cuts[0];  // An empty part.
      std::sort(cuts.begin(), cuts.end());
      std::vector<size_t> mask_cuts = cuts;
      for (size_t& cut : mask_cuts) cut /= sizeof(float);
      SCOPED_TRACE(StrCat(num_cuts, " cuts, shifted by ", shift));
      ASSERT_TRUE(RunMessage(scan, {.values = InParts(values, cuts, shift)}).ok());
      EXPECT_TRUE(out_ == sums);
      ASSERT_TRUE(RunMessage(reduce, {.values = InParts(values, cuts, shift)}).ok());
      EXPECT_EQ(result_.value->bits, sum.bits);
      ASSERT_TRUE(
          RunMessage(compact, {.values = InParts(values, cuts, shift), .mask = InParts(mask, mask_cuts, shift)}).ok());
      EXPECT_TRUE(out_ == kept);
      EXPECT_EQ(result_.num_kept, kept.size() / sizeof(float));
    }
  }
}

// What lies in one aligned part is run there by a device that works in the host's memory. Anything else is copied.
TEST_P(PieceRunnerTest, MessagesAreRunWhereTheyLie) {
  const bool in_host_memory = GetParam();
  const size_t n = 3 * kMaxReplyPayloadBytes / sizeof(int32_t);
  const std::string values = Bytes(std::vector<int32_t>(n, 1));
  const auto is_copied = [&](const std::vector<size_t>& cuts, size_t shift) {
    EXPECT_TRUE(RunMessage(ReduceSpec{.dtype = DType::kI32}, {.values = InParts(values, cuts, shift)}).ok());
    EXPECT_EQ(result_.value->As<int32_t>(), static_cast<int32_t>(n));
    return result_.timing.host_copy_ns.has_value();
  };
  EXPECT_EQ(is_copied({}, 0), !in_host_memory);
  EXPECT_EQ(is_copied({}, 4), !in_host_memory);
  EXPECT_EQ(is_copied({kMaxReplyPayloadBytes, 2 * kMaxReplyPayloadBytes}, 0), !in_host_memory);
  EXPECT_TRUE(is_copied({}, 2));
  EXPECT_TRUE(is_copied({100}, 0));
  EXPECT_TRUE(is_copied({kMaxReplyPayloadBytes + 1}, 0));
}

// A card reaches pinned memory only, and that up to its limit.
TEST_P(PieceRunnerTest, OtherDevicesGetTheirCopy) {
  device_.set_direct_bytes(DeviceInfo::kHostMemory - 1);
  lanes_.reset();
  lanes_ = *LanePool::Create(device_, 2, kStagingBytes);
  const std::string values = Bytes(std::vector<int32_t>(1000, 1));
  ASSERT_TRUE(RunMessage(ReduceSpec{.dtype = DType::kI32}, {.values = InParts(values, {}, 0)}).ok());
  EXPECT_EQ(result_.value->As<int32_t>(), 1000);
  EXPECT_TRUE(result_.timing.host_copy_ns.has_value());
}

TEST_P(PieceRunnerTest, SingleElements) {
  std::mt19937 random(7);
  const size_t n = 300;
  const std::string values = Bytes(RoughItems<float>(random, n, Op::kSum));
  const ScanSpec spec = {.dtype = DType::kF32};
  ASSERT_TRUE(Run(spec, values, {n}, false).ok());
  const std::string whole = out_;
  ASSERT_TRUE(Run(spec, values, std::vector<size_t>(n, 1), false).ok());
  EXPECT_TRUE(out_ == whole);
}

// Integers have the same bits in any order: nothing is run twice for them.
TEST_P(PieceRunnerTest, IntegersHaveNoOpenGroup) {
  const ScanSpec spec = {.dtype = DType::kI32};
  ASSERT_TRUE(Run(spec, Bytes(std::vector<int32_t>(100, 1)), std::vector<size_t>(10, 10), false).ok());
  EXPECT_EQ(result_.timing.num_bytes, 2 * 100 * sizeof(int32_t));
}

// What counts is the work, not what has come.
TEST_P(PieceRunnerTest, AFewItemsAreALargeTaskWhereMuchIsRunWithThem) {
  const ReduceSpec spec = {.dtype = DType::kF32};
  const std::string values(kGroupItems, '\0');
  ASSERT_TRUE(Run(spec, values.substr(0, 400), {100}, false).ok());
  EXPECT_EQ(runner_->SizeOfTask(1), TaskSize::kSmall);
  ASSERT_TRUE(Run(spec, values, {kGroupItems / sizeof(float)}, false).ok());
  EXPECT_EQ(runner_->SizeOfTask(1), TaskSize::kLarge);
  EXPECT_EQ(runner_->SizeOfTask(0), TaskSize::kLarge);  // The end.
  const auto size_of = [&](const Spec& one, uint64_t num_items) {
    return PieceRunner(*MakeWork(device_, OperationOf(one)), CallShape::kUnary).SizeOfTask(num_items);
  };
  for (const Strategy yardstick : {Strategy::kNaive, Strategy::kSequential, Strategy::kOneTbb}) {
    EXPECT_EQ(size_of(ScanSpec{.dtype = DType::kI32, .algorithm = {yardstick}}, 1), TaskSize::kYardstick);
  }
  EXPECT_EQ(size_of(ScanSpec{.dtype = DType::kI32, .algorithm = {Strategy::kChained}}, 1), TaskSize::kSmall);
  EXPECT_EQ(size_of(CompactSpec{.dtype = DType::kU8, .predicate = Predicate{}, .return_indices = true}, 10'000),
            TaskSize::kLarge);
}

TEST_P(PieceRunnerTest, TheEstimateGrowsWithTheBytesAndWithTheSquareOfItemsWhereTheWorkDoes) {
  const auto estimate = [&](const Spec& one, uint64_t num_items) {
    return static_cast<double>((*MakeWork(device_, OperationOf(one)))->EstimateNs(num_items));
  };
  const ScanSpec scan = {.dtype = DType::kI32};
  const ScanSpec naive = {.dtype = DType::kI32, .algorithm = {Strategy::kNaive}};
  constexpr uint64_t kMany = uint64_t{1} << 14;
  EXPECT_GT(estimate(scan, 0), 0);  // A launch.
  EXPECT_LT(estimate(scan, 1000), 2 * estimate(scan, 0));
  EXPECT_NEAR(estimate(scan, 100 * kMany) / estimate(scan, 10 * kMany), 10, 1);
  EXPECT_NEAR(estimate(ScanSpec{.dtype = DType::kI64}, kMany * 64) / estimate(scan, kMany * 64), 2, 0.1);
  EXPECT_LT(estimate(ReduceSpec{.dtype = DType::kI32}, kMany), estimate(scan, kMany));
  EXPECT_NEAR(estimate(naive, kMany) / estimate(naive, kMany / 2), 4, 0.2);
  EXPECT_GT(estimate(naive, kMany), 1000 * estimate(scan, kMany));
  EXPECT_GT(estimate(naive, ~uint64_t{0}), 0);  // As long as can be, and not past the end of the type.
}

TEST_P(PieceRunnerTest, LargeRepliesLeaveInTheirBlockWhileThereAreOthers) {
  const ScanSpec spec = {.dtype = DType::kI32};
  const std::string values = Bytes(std::vector<int32_t>(kMaxReplyPayloadBytes / sizeof(int32_t), 1));
  runner_ = std::make_unique<PieceRunner>(*MakeWork(device_, Operation(spec)), CallShape::kStream);
  Chunk chunk;
  chunk.values = Payload(values);
  chunk.num_items = values.size() / sizeof(int32_t);
  std::vector<Reply> held;
  const size_t used_before = lanes_->used_staging_bytes();
  for (int i = 0; i < 6; ++i) {  // Two more than there are blocks.
    const Piece piece = runner_->Cut(chunk, 0, false);
    std::optional<Reply> reply;
    ASSERT_TRUE(OnALane([&](BorrowedLane& lane) { return runner_->Run(lane, piece, stop_, &reply); }).ok());
    held.push_back(*std::move(reply));
  }
  EXPECT_EQ(lanes_->used_staging_bytes() - used_before, kStagingBytes);
  for (int i = 0; i < 6; ++i) {
    const auto items = Items<int32_t>(held[i].values.ToString());
    ASSERT_EQ(items.size(), values.size() / sizeof(int32_t));
    EXPECT_EQ(items.front(), static_cast<int32_t>(i * items.size() + 1));
    EXPECT_EQ(items.back(), static_cast<int32_t>((i + 1) * items.size()));
  }
  held.clear();
  EXPECT_EQ(lanes_->used_staging_bytes(), used_before);
}

}  // namespace
}  // namespace prefixd
