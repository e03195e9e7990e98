// Requests that share a launch: each gets the result that it would get alone.
#include "server/lanes/batcher.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/fake_device.h"
#include "tests/server/fake_transport.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

constexpr ScanSpec kScan = {.dtype = DType::kI32};

// One request, and how it ended.
struct Request {
  std::unique_ptr<PieceRunner> runner;
  Chunk chunk;
  FairCaller caller;
  StopSignal stop{absl::InfiniteFuture()};
  int end = 0;  // Those that were done before.
  absl::Status status;
  std::string values;
  std::string indices;
  Result result;
};

class BatcherTest : public testing::TestWithParam<bool> {
 protected:
  BatcherTest() {
    device_.set_direct_bytes(GetParam() ? DeviceInfo::kHostMemory : 0);
    lanes_ = *LanePool::Create(device_, 1, kStagingBytes);
    batcher_ =
        std::make_unique<Batcher>(lanes_.get(), absl::ZeroDuration(), [this](const absl::Status&) { ++failures_; });
  }
  ~BatcherTest() override { lanes_.reset(); }

  std::unique_ptr<PieceRunner> MakeRunner(const Spec& spec, CallShape shape) {
    return std::make_unique<PieceRunner>(*MakeWork(device_, OperationOf(spec)), shape);
  }

  Request& Add(const Spec& spec, Chunk chunk) {
    auto request = std::make_unique<Request>();
    request->runner = MakeRunner(spec, CallShape::kUnary);
    request->chunk = std::move(chunk);
    request->chunk.num_items = request->chunk.values.size() / SizeOf(InputOf(spec));
    requests_.push_back(std::move(request));
    return *requests_.back();
  }
  Request& Add(const Spec& spec, std::string values) {
    Chunk chunk;
    chunk.values = Payload(std::move(values));
    return Add(spec, std::move(chunk));
  }

  // Submits all requests while the lane is held, and waits for their ends.
  void RunTogether() {
    Gate go_on;
    lanes_->Submit({TaskSize::kSmall}, [&](BorrowedLane&) { EXPECT_TRUE(go_on.WaitFor(1)); });
    Gate ended;
    for (const auto& request : requests_) Submit(*request, &ended);
    go_on.Arrive();
    ASSERT_TRUE(ended.WaitFor(static_cast<int>(requests_.size())));
  }

  // The same request, run on its own.
  std::unique_ptr<Request> Alone(const Request& request) {
    auto alone = std::make_unique<Request>();
    alone->runner = MakeRunner(*SpecOf(request.runner->work().operation()), CallShape::kUnary);
    alone->chunk = request.chunk;
    Gate ended;
    Submit(*alone, &ended);
    EXPECT_TRUE(ended.WaitFor(1));
    EXPECT_EQ(alone->result.timing.batch_size, 1u);
    return alone;
  }

  void ExpectAsAlone(const Request& request) {
    const std::unique_ptr<Request> alone = Alone(request);
    ASSERT_TRUE(request.status.ok()) << request.status;
    EXPECT_TRUE(request.values == alone->values);
    EXPECT_TRUE(request.indices == alone->indices);
    EXPECT_EQ(request.result.num_kept, alone->result.num_kept);
    EXPECT_EQ(request.result.value, alone->result.value);
    EXPECT_EQ(request.result.index, alone->result.index);
    EXPECT_EQ(request.result.timing.num_items, alone->result.timing.num_items);
  }

  void Submit(Request& request, Gate* ended) {
    const Piece piece = request.runner->Cut(request.chunk, 0, /*ends=*/true);
    ASSERT_TRUE(request.runner->IsBatchable(piece));
    batcher_->Submit({.runner = std::move(request.runner),
                      .caller = request.caller,
                      .piece = piece,
                      .stop = &request.stop,
                      .done = [this, &request, ended](PieceRun run) {
                        request.end = num_done_++;
                        request.status = run.status;
                        if (run.reply) request.values = run.reply->values.ToString();
                        if (run.reply) request.indices = run.reply->indices.ToString();
                        run.runner->Describe(&request.result);
                        request.runner = std::move(run.runner);
                        ended->Arrive();
                      }});
  }

  FakeDevice device_;
  std::atomic<int> failures_{0};
  std::atomic<int> num_done_{0};
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<LanePool> lanes_;
  std::vector<std::unique_ptr<Request>> requests_;
};

INSTANTIATE_TEST_SUITE_P(Places, BatcherTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "InHostMemory" : "Copied"; });

template <class T>
std::string RandomItems(std::mt19937& random, size_t n) {
  std::vector<T> items(n);
  for (T& item : items) item = static_cast<T>(static_cast<int>(random() % 2001) - 1000) / T{7};
  return Bytes(items);
}

TEST_P(BatcherTest, EachHasTheResultItHasAlone) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::vector<Spec> specs = {
      ScanSpec{.dtype = DType::kF32},
      ScanSpec{.dtype = DType::kF64, .kind = ScanKind::kExclusive, .init = Value::Of(0.1)},
      ScanSpec{.dtype = DType::kF32, .out_dtype = DType::kF64, .reverse = true},
      ScanSpec{.dtype = DType::kI32, .op = Op::kMax},
      ReduceSpec{.dtype = DType::kF32},
      ReduceSpec{.dtype = DType::kF64, .op = Op::kMin},
      ReduceSpec{.dtype = DType::kI32, .op = Op::kXor, .init = Value::Of(int32_t{5})},
      CompactSpec{
          .dtype = DType::kF32, .predicate = Predicate{Comparison::kGreater, Value::Of(1.0F)}, .return_indices = true},
      CompactSpec{.dtype = DType::kF64, .mask_kind = MaskKind::kBytes, .invert = true},
      CompactSpec{.dtype = DType::kI32,
                  .mask_kind = MaskKind::kBits,
                  .return_values = false,
                  .return_indices = true,
                  .index_dtype = DType::kU32},
      DifferenceSpec{.dtype = DType::kF32},
      DifferenceSpec{.dtype = DType::kF64, .init = Value::Of(0.25), .reverse = true},
  };
  for (const Spec& spec : specs) {
    const size_t n = 1 + random() % 1000;
    SCOPED_TRACE(StrCat(Name(PrimitiveOf(spec)), " of ", Name(InputOf(spec)), ", ", n));
    requests_.clear();
    for (int i = 0; i < 7; ++i) {
      Chunk chunk;
      chunk.values = Payload(InputOf(spec) == DType::kF32   ? RandomItems<float>(random, n)
                             : InputOf(spec) == DType::kF64 ? RandomItems<double>(random, n)
                                                            : RandomItems<int32_t>(random, n));
      const auto* compact = std::get_if<CompactSpec>(&spec);
      if (compact != nullptr && !compact->predicate) {
        std::string mask(MaskBytes(compact->mask_kind, n), '\0');
        for (char& byte : mask) byte = static_cast<char>(random() % 3);
        chunk.mask = Payload(mask);
      }
      Add(spec, std::move(chunk));
    }
    const int works_before = device_.works();
    RunTogether();
    EXPECT_EQ(device_.works() - works_before, 1);
    for (const auto& request : requests_) {
      EXPECT_EQ(request->result.timing.batch_size, 7u);
      ExpectAsAlone(*request);
    }
  }
}

TEST_P(BatcherTest, OnlyOneShapeSharesALaunch) {
  const Spec sum = ReduceSpec{.dtype = DType::kI32};
  Add(sum, std::string(40, '\1'));
  Add(sum, std::string(40, '\2'));
  Add(sum, std::string(44, '\3'));
  Add(ReduceSpec{.dtype = DType::kI32, .init = Value::Of(int32_t{1})}, std::string(40, '\4'));
  Add(ReduceSpec{.dtype = DType::kI32, .num_items = 10},
      std::string(40, '\5'));  // Declared, which makes no difference.
  Add(kScan, std::string(40, '\6'));
  RunTogether();
  const std::vector<uint32_t> sizes = {3, 3, 1, 1, 3, 1};
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(requests_[i]->result.timing.batch_size, sizes[i]) << i;
    ExpectAsAlone(*requests_[i]);
  }
}

TEST_P(BatcherTest, AStoppedRequestDropsOut) {
  for (int i = 0; i < 3; ++i) Add(kScan, std::string(40, static_cast<char>(i + 1)));
  requests_[1]->stop.Cancel();
  RunTogether();
  EXPECT_EQ(requests_[1]->status.code(), absl::StatusCode::kCancelled);
  for (const int i : {0, 2}) {
    EXPECT_EQ(requests_[i]->result.timing.batch_size, 2u);
    ExpectAsAlone(*requests_[i]);
  }
}

// Whatever is wrong with a launch for many, it must not be the end of those that have nothing to do with it.
TEST_P(BatcherTest, WhereTheLaunchFailsEachIsRunAlone) {
  for (int i = 0; i < 4; ++i) Add(kScan, std::string(40, static_cast<char>(i + 1)));
  std::atomic<int> works{0};
  device_.before_work = [&]() -> absl::Status {
    const int work = works++;
    if (work == 0) return absl::InternalError("the batch");
    if (work == 2) return absl::InternalError("the second request");
    return absl::OkStatus();
  };
  RunTogether();
  EXPECT_EQ(works, 5);
  EXPECT_EQ(failures_, 1);
  EXPECT_EQ(requests_[1]->status.message(), "the second request");
  for (const int i : {0, 2, 3}) {
    EXPECT_EQ(requests_[i]->result.timing.batch_size, 1u);
    ExpectAsAlone(*requests_[i]);
  }
}

TEST_P(BatcherTest, ABatchFitsTheBlocks) {
  const size_t n = kMaxSmallBytes / sizeof(int32_t);
  for (int i = 0; i < 40; ++i) Add(kScan, Bytes(std::vector<int32_t>(n, i)));
  const int works_before = device_.works();
  RunTogether();
  EXPECT_EQ(device_.works() - works_before, 3);  // 16, 16 and 8.
  for (const auto& request : requests_) ExpectAsAlone(*request);
}

// The first batch serves whose turn it is, though there are more before it than fit.
TEST_P(BatcherTest, ACallersTurnServesHisOwnRequest) {
  const size_t n = kMaxSmallBytes / sizeof(int32_t);
  for (int i = 0; i < 41; ++i) Add(kScan, Bytes(std::vector<int32_t>(n, i)));
  for (int i = 0; i < 40; ++i) requests_[i]->caller = {.name = "greedy", .connection = ""};
  requests_.back()->caller = {.name = "modest", .connection = ""};
  RunTogether();
  for (const auto& request : requests_) EXPECT_TRUE(request->status.ok());
  EXPECT_EQ(requests_.back()->result.timing.batch_size, 16u);
  EXPECT_LT(requests_.back()->end, 2 * 16);  // The greedy one's turn comes before.
}

TEST_P(BatcherTest, UnderLoadALaneWaitsForTheWindow) {
  constexpr absl::Duration kWindow = absl::Milliseconds(200);
  batcher_ = std::make_unique<Batcher>(lanes_.get(), kWindow, [](const absl::Status&) {});
  for (bool came_in_time = false; !came_in_time;) {  // On a machine that pauses, the third may miss the window.
    requests_.clear();
    Gate held;
    Gate go_on;
    Gate ended;
    for (int i = 0; i < 3; ++i) Add(kScan, std::string(40, static_cast<char>(i + 1)));
    lanes_->Submit({TaskSize::kSmall}, [&](BorrowedLane&) {
      held.Arrive();
      EXPECT_TRUE(go_on.WaitFor(1));
    });
    ASSERT_TRUE(held.WaitFor(1));  // The tasks of the last round are done.
    Submit(*requests_[0], &ended);
    Submit(*requests_[1], &ended);
    const absl::Time opened = absl::Now();
    go_on.Arrive();
    absl::SleepFor(absl::Milliseconds(20));  // The lane waits now; if it did not, the third would be alone.
    Submit(*requests_[2], &ended);
    came_in_time = absl::Now() - opened < kWindow;
    ASSERT_TRUE(ended.WaitFor(3));
  }
  for (const auto& request : requests_) EXPECT_EQ(request->result.timing.batch_size, 3u);
}

// With several lanes, one waits and takes all; the others go on.
TEST_P(BatcherTest, OneLaneWaitsForTheWindow) {
  lanes_ = *LanePool::Create(device_, 3, kStagingBytes);
  batcher_ = std::make_unique<Batcher>(lanes_.get(), absl::Milliseconds(200), [](const absl::Status&) {});
  Gate held;
  Gate go_on;
  for (int i = 0; i < 3; ++i) {
    lanes_->Submit({TaskSize::kSmall}, [&](BorrowedLane&) {
      held.Arrive();
      EXPECT_TRUE(go_on.WaitFor(1));
    });
  }
  ASSERT_TRUE(held.WaitFor(3));
  const size_t n = kMaxSmallBytes / sizeof(int32_t);
  for (int i = 0; i < 40; ++i) Add(kScan, Bytes(std::vector<int32_t>(n, i)));
  Gate ended;
  for (const auto& request : requests_) Submit(*request, &ended);
  Gate ran;
  for (int i = 0; i < 2; ++i) lanes_->Submit({TaskSize::kSmall}, [&](BorrowedLane&) { ran.Arrive(); });
  const int works_before = device_.works();
  go_on.Arrive();
  EXPECT_TRUE(ran.WaitFor(2));
  EXPECT_EQ(device_.works(), works_before);  // These two did not wait for the window.
  ASSERT_TRUE(ended.WaitFor(40));
  for (const auto& request : requests_) EXPECT_TRUE(request->status.ok());
}

TEST_P(BatcherTest, LargeTasksMakeRoomForItsRequests) {
  lanes_ = *LanePool::Create(device_, 6, kStagingBytes, std::chrono::microseconds(0), std::chrono::hours(1));
  batcher_ = std::make_unique<Batcher>(lanes_.get(), absl::ZeroDuration(), [](const absl::Status&) {});
  for (int i = 0; i < 2; ++i) Add(kScan, std::string(40, '1'));
  Gate answered;
  for (const auto& request : requests_) Submit(*request, &answered);
  Gate ended;
  Gate started;
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 5; ++i) {  // As many as there are lanes for them.
    lanes_->Submit({TaskSize::kLarge}, [&](BorrowedLane&) {
      most = std::max<int>(most, ++running);
      started.Arrive();
      EXPECT_TRUE(started.WaitFor(2));
      absl::SleepFor(absl::Milliseconds(20));  // For those that should not be there.
      --running;
      ended.Arrive();
    });
  }
  EXPECT_TRUE(ended.WaitFor(5));
  EXPECT_TRUE(answered.WaitFor(2));
  EXPECT_LT(most, 5);
}

// Whoever was answered may come again before the last of the batch has his answer.
TEST_P(BatcherTest, AnAnsweredRequestIsLetGoAtOnce) {
  std::vector<std::weak_ptr<int>> held;
  Gate go_on;
  Gate ended;
  std::vector<size_t> alive;
  lanes_->Submit({TaskSize::kSmall}, [&](BorrowedLane&) { EXPECT_TRUE(go_on.WaitFor(1)); });
  for (int i = 0; i < 4; ++i) {
    Request& request = Add(kScan, std::string(40, static_cast<char>(i + 1)));
    auto session = std::make_shared<int>(i);
    held.push_back(session);
    const Piece piece = request.runner->Cut(request.chunk, 0, /*ends=*/true);
    batcher_->Submit({.runner = std::move(request.runner),
                      .caller = request.caller,
                      .piece = piece,
                      .stop = &request.stop,
                      .done = [&, session](const PieceRun&) {
                        alive.push_back(
                            std::count_if(held.begin(), held.end(), [](const auto& h) { return !h.expired(); }));
                        ended.Arrive();
                      }});
  }
  go_on.Arrive();
  ASSERT_TRUE(ended.WaitFor(4));
  EXPECT_EQ(alive, (std::vector<size_t>{4, 3, 2, 1}));
}

TEST_P(BatcherTest, LargePartialAndStreamedArraysAreNoneOfItsBusiness) {
  const auto is_batchable = [&](const Spec& spec, CallShape shape, size_t size_bytes, bool ends) {
    Chunk chunk;
    chunk.values = Payload(std::string(size_bytes, '\0'));
    chunk.num_items = size_bytes / SizeOf(InputOf(spec));
    const auto runner = MakeRunner(spec, shape);
    return runner->IsBatchable(runner->Cut(chunk, 0, ends));
  };
  const Spec by_name = ScanSpec{.dtype = DType::kI32, .algorithm = {Strategy::kSequential}};
  EXPECT_TRUE(is_batchable(kScan, CallShape::kUnary, kMaxSmallBytes, true));
  EXPECT_FALSE(is_batchable(kScan, CallShape::kUnary, kMaxSmallBytes + 4, true));
  EXPECT_FALSE(is_batchable(kScan, CallShape::kUnary, kMaxSmallBytes, false));
  EXPECT_FALSE(is_batchable(kScan, CallShape::kStream, kMaxSmallBytes, true));
  EXPECT_FALSE(is_batchable(by_name, CallShape::kUnary, kMaxSmallBytes, true));
}

}  // namespace
}  // namespace prefixd
