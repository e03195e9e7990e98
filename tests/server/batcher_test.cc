// Requests that share a launch: each has the result it has alone.
#include "server/batcher.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "kernels/status.h"
#include "tests/server/fake_device.h"
#include "tests/server/fake_transport.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

constexpr uint64_t kStagingBytes = 4 * kMaxReplyPayloadBytes;

// One request, and how it ended.
struct Request {
  std::unique_ptr<ChunkPipeline> pipeline;
  Chunk chunk;
  StopSignal stop{absl::InfiniteFuture()};
  absl::Status status;
  std::string values;
  std::string indices;
  Result result;
};

class BatcherTest : public testing::TestWithParam<bool> {
 protected:
  BatcherTest() {
    device_.set_direct_bytes(GetParam() ? UINT64_MAX : 0);
    lanes_ = *LanePool::Create(device_, 1, kStagingBytes);
    batcher_ =
        std::make_unique<Batcher>(lanes_.get(), absl::ZeroDuration(), [this](const absl::Status&) { ++failures_; });
  }
  ~BatcherTest() override { lanes_.reset(); }

  Request& Add(const Spec& spec, Chunk chunk) {
    auto request = std::make_unique<Request>();
    request->pipeline = *ChunkPipeline::Create(device_, spec, CallShape::kUnary);
    request->chunk = std::move(chunk);
    EXPECT_TRUE(request->pipeline->Check(request->chunk).ok());
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
    lanes_->Submit(TaskSize::kSmall, [&](BorrowedLane&) { EXPECT_TRUE(go_on.WaitFor(1)); });
    Gate ended;
    for (const auto& request : requests_) Submit(*request, &ended);
    go_on.Arrive();
    ASSERT_TRUE(ended.WaitFor(static_cast<int>(requests_.size())));
  }

  // The same request, run on its own.
  std::unique_ptr<Request> Alone(const Request& request) {
    auto alone = std::make_unique<Request>();
    alone->pipeline = *ChunkPipeline::Create(device_, request.pipeline->spec(), CallShape::kUnary);
    alone->chunk = request.chunk;
    EXPECT_TRUE(alone->pipeline->Check(alone->chunk).ok());
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
    const Piece piece = request.pipeline->Cut(request.chunk, 0, /*ends=*/true);
    ASSERT_TRUE(request.pipeline->IsBatchable(piece));
    batcher_->Submit({.pipeline = request.pipeline.get(),
                      .piece = piece,
                      .stop = &request.stop,
                      .done = [&request, ended](const absl::Status& status, std::optional<Reply> reply, int64_t) {
                        request.status = status;
                        if (reply) request.values = reply->values.ToString();
                        if (reply) request.indices = reply->indices.ToString();
                        request.pipeline->Describe(&request.result);
                        ended->Arrive();
                      }});
  }

  FakeDevice device_;
  std::atomic<int> failures_{0};
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
      {.dtype = DType::kF32, .detail = ScanSpec{}},
      {.dtype = DType::kF64, .detail = ScanSpec{.kind = ScanKind::kExclusive, .init = Value::Of(0.1)}},
      {.dtype = DType::kF32, .out_dtype = DType::kF64, .detail = ScanSpec{.reverse = true}},
      {.dtype = DType::kI32, .detail = ScanSpec{.op = Op::kMax}},
      {.dtype = DType::kF32, .detail = ReduceSpec{}},
      {.dtype = DType::kF64, .detail = ReduceSpec{.op = Op::kMin}},
      {.dtype = DType::kI32, .detail = ReduceSpec{.op = Op::kXor, .init = Value::Of(int32_t{5})}},
      {.dtype = DType::kF32,
       .detail = CompactSpec{.comparison = Comparison::kGreater, .value = Value::Of(1.0F), .return_indices = true}},
      {.dtype = DType::kF64, .detail = CompactSpec{.selector = Selector::kByteMask, .invert = true}},
      {.dtype = DType::kI32,
       .detail = CompactSpec{.selector = Selector::kBitMask,
                             .return_values = false,
                             .return_indices = true,
                             .index_dtype = DType::kU32}},
  };
  for (const Spec& spec : specs) {
    const size_t n = 1 + random() % 1000;
    SCOPED_TRACE(StrCat(Name(spec.primitive()), " of ", Name(spec.dtype), ", ", n));
    requests_.clear();
    for (int i = 0; i < 7; ++i) {
      Chunk chunk;
      chunk.values = Payload(spec.dtype == DType::kF32   ? RandomItems<float>(random, n)
                             : spec.dtype == DType::kF64 ? RandomItems<double>(random, n)
                                                         : RandomItems<int32_t>(random, n));
      const auto* compact = std::get_if<CompactSpec>(&spec.detail);
      if (compact != nullptr && compact->selector != Selector::kPredicate) {
        std::string mask(compact->selector == Selector::kBitMask ? (n + 7) / 8 : n, '\0');
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
  const Spec sum = {.detail = ReduceSpec{}};
  Add(sum, std::string(40, '\1'));
  Add(sum, std::string(40, '\2'));
  Add(sum, std::string(44, '\3'));
  Add({.detail = ReduceSpec{.init = Value::Of(int32_t{1})}}, std::string(40, '\4'));
  Add({.num_items = 10, .detail = ReduceSpec{}}, std::string(40, '\5'));  // Declared, which makes no difference.
  Add({.detail = ScanSpec{}}, std::string(40, '\6'));
  RunTogether();
  const std::vector<uint32_t> sizes = {3, 3, 1, 1, 3, 1};
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(requests_[i]->result.timing.batch_size, sizes[i]) << i;
    ExpectAsAlone(*requests_[i]);
  }
}

TEST_P(BatcherTest, AStoppedRequestDropsOut) {
  for (int i = 0; i < 3; ++i) Add({.detail = ScanSpec{}}, std::string(40, static_cast<char>(i + 1)));
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
  for (int i = 0; i < 4; ++i) Add({.detail = ScanSpec{}}, std::string(40, static_cast<char>(i + 1)));
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
  for (int i = 0; i < 40; ++i) Add({.detail = ScanSpec{}}, Bytes(std::vector<int32_t>(n, i)));
  const int works_before = device_.works();
  RunTogether();
  EXPECT_EQ(device_.works() - works_before, 3);  // 16, 16 and 8.
  for (const auto& request : requests_) ExpectAsAlone(*request);
}

TEST_P(BatcherTest, UnderLoadALaneWaitsForTheWindow) {
  constexpr absl::Duration kWindow = absl::Milliseconds(200);
  batcher_ = std::make_unique<Batcher>(lanes_.get(), kWindow, [](const absl::Status&) {});
  for (bool came_in_time = false; !came_in_time;) {  // On a machine that pauses, the third may miss the window.
    requests_.clear();
    Gate held;
    Gate go_on;
    Gate ended;
    for (int i = 0; i < 3; ++i) Add({.detail = ScanSpec{}}, std::string(40, static_cast<char>(i + 1)));
    lanes_->Submit(TaskSize::kSmall, [&](BorrowedLane&) {
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
    lanes_->Submit(TaskSize::kSmall, [&](BorrowedLane&) {
      held.Arrive();
      EXPECT_TRUE(go_on.WaitFor(1));
    });
  }
  ASSERT_TRUE(held.WaitFor(3));
  const size_t n = kMaxSmallBytes / sizeof(int32_t);
  for (int i = 0; i < 40; ++i) Add({.detail = ScanSpec{}}, Bytes(std::vector<int32_t>(n, i)));
  Gate ended;
  for (const auto& request : requests_) Submit(*request, &ended);
  Gate ran;
  for (int i = 0; i < 2; ++i) lanes_->Submit(TaskSize::kSmall, [&](BorrowedLane&) { ran.Arrive(); });
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
  for (int i = 0; i < 2; ++i) Add({.detail = ScanSpec{}}, std::string(40, '1'));
  Gate answered;
  for (const auto& request : requests_) Submit(*request, &answered);
  Gate ended;
  Gate started;
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 5; ++i) {  // As many as there are lanes for them.
    lanes_->Submit(TaskSize::kLarge, [&](BorrowedLane&) {
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
  lanes_->Submit(TaskSize::kSmall, [&](BorrowedLane&) { EXPECT_TRUE(go_on.WaitFor(1)); });
  for (int i = 0; i < 4; ++i) {
    Request& request = Add({.detail = ScanSpec{}}, std::string(40, static_cast<char>(i + 1)));
    auto session = std::make_shared<int>(i);
    held.push_back(session);
    batcher_->Submit({.pipeline = request.pipeline.get(),
                      .piece = request.pipeline->Cut(request.chunk, 0, /*ends=*/true),
                      .stop = &request.stop,
                      .done = [&, session](const absl::Status&, const std::optional<Reply>&, int64_t) {
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
    auto pipeline = *ChunkPipeline::Create(device_, spec, shape);
    return pipeline->IsBatchable(pipeline->Cut(chunk, 0, ends));
  };
  const Spec scan = {.detail = ScanSpec{}};
  const Spec by_name = {.algorithm = {Strategy::kSequential}, .detail = ScanSpec{}};
  EXPECT_TRUE(is_batchable(scan, CallShape::kUnary, kMaxSmallBytes, true));
  EXPECT_FALSE(is_batchable(scan, CallShape::kUnary, kMaxSmallBytes + 4, true));
  EXPECT_FALSE(is_batchable(scan, CallShape::kUnary, kMaxSmallBytes, false));
  EXPECT_FALSE(is_batchable(scan, CallShape::kStream, kMaxSmallBytes, true));
  EXPECT_FALSE(is_batchable(by_name, CallShape::kUnary, kMaxSmallBytes, true));
}

}  // namespace
}  // namespace prefixd
