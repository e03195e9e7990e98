// The pieces of one request on a lane: every cut gives the result of the whole array, bit for bit.
#include "server/work/piece_runner.h"

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

constexpr uint64_t kStagingBytes = 4 * kMaxReplyPayloadBytes;

// Values whose sums and products round at every step, and stay finite.
template <class T>
std::vector<T> RoughItems(std::mt19937& random, size_t n, Op op) {
  std::vector<T> items(n);
  std::uniform_real_distribution<T> sums(T{-1}, T{1});
  std::uniform_real_distribution<T> products(T{0.999}, T{1.001});
  for (T& item : items) item = op == Op::kProd ? products(random) : sums(random);
  return items;
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

class PieceRunnerTest : public testing::TestWithParam<bool> {
 protected:
  PieceRunnerTest() {
    device_.set_direct_bytes(GetParam() ? UINT64_MAX : 0);
    lanes_ = *LanePool::Create(device_, 2, kStagingBytes);
  }
  ~PieceRunnerTest() override { lanes_.reset(); }

  template <class F>
  absl::Status OnALane(F work) {
    Gate done;
    absl::Status status;
    lanes_->Submit(TaskSize::kLarge, [&](BorrowedLane& lane) {
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
    PREFIXD_ASSIGN_OR_RETURN(std::shared_ptr<const Work> work, MakeWork(device_, spec));
    ChunkChecker checker(work, CallShape::kStream);
    runner_ = std::make_unique<PieceRunner>(std::move(work), CallShape::kStream);
    size_t begin = 0;
    for (const size_t cut : cuts) {
      Chunk chunk;
      const size_t size_bytes = cut * SizeOf(spec.dtype);
      chunk.values = Payload(values.substr(begin, size_bytes));
      begin += size_bytes;
      PREFIXD_RETURN_IF_ERROR(checker.Check(chunk));
      for (uint64_t first = 0; first < cut;) {
        const Piece piece = runner_->Cut(chunk, first, /*ends=*/false);
        std::optional<Reply> reply;
        PREFIXD_RETURN_IF_ERROR(OnALane([&](BorrowedLane& lane) { return runner_->Run(lane, piece, stop_, &reply); }));
        // Whoever sends a chunk and waits gets all its results.
        if (S::kPrimitive == Primitive::kScan) {
          EXPECT_EQ(reply->values.size(), piece.num_items * SizeOf(spec.output()));
          out_ += reply->values.ToString();
        }
        first += piece.num_items;
      }
    }
    if (runner_->NeedsEnd()) {
      EXPECT_FALSE(declares);
      PREFIXD_RETURN_IF_ERROR(OnALane([&](BorrowedLane& lane) { return runner_->RunEnd(lane, stop_); }));
    }
    runner_->Describe(&result_);
    return checker.Finish();
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
    const Out whole = result_.value.As<Out>();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(Run(spec, values, RandomCuts(random, n), random() % 2 == 0).ok());
      EXPECT_EQ(result_.value.As<Out>(), whole);
      EXPECT_EQ(result_.timing.num_items, n);
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
    return PieceRunner(*MakeWork(device_, one), CallShape::kUnary).SizeOfTask(num_items);
  };
  EXPECT_EQ(size_of(ScanSpec{.dtype = DType::kI32, .algorithm = {Strategy::kNaive}}, 1), TaskSize::kLarge);
  EXPECT_EQ(size_of(CompactSpec{.dtype = DType::kU8, .predicate = Predicate{}, .return_indices = true}, 10'000),
            TaskSize::kLarge);
}

TEST_P(PieceRunnerTest, LargeRepliesLeaveInTheirBlockWhileThereAreOthers) {
  const ScanSpec spec = {.dtype = DType::kI32};
  const std::string values = Bytes(std::vector<int32_t>(kMaxReplyPayloadBytes / sizeof(int32_t), 1));
  runner_ = std::make_unique<PieceRunner>(*MakeWork(device_, spec), CallShape::kStream);
  Chunk chunk;
  chunk.values = Payload(values);
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
