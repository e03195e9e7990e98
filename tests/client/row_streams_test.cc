// Rows that are streamed: of any number, in bounded memory, to whoever has the values.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/client.h"
#include "client/row_source.h"
#include "tests/client/resident_fixture.h"

namespace prefixd::client {
namespace {

// An array in memory, which tells its length at the end only, and stops when it is interrupted, as a file does.
class PipeSource : public ChunkSource {
 public:
  explicit PipeSource(const std::vector<uint8_t>& items) : items_(items) {}

  absl::StatusOr<Chunk> Next(size_t max_items) override {
    if (interrupted_) return absl::CancelledError("interrupted");
    const size_t count = std::min(max_items, items_.size() - next_);
    if (fails_at_ && next_ + count > *fails_at_) return absl::DataLossError("a hole in the file");
    const Chunk chunk = {AsBytes(absl::MakeConstSpan(items_).subspan(next_, count))};
    next_ += count;
    return chunk;
  }
  bool Rewind() override { return false; }
  void Interrupt() override { interrupted_ = true; }

  void FailAt(size_t item) { fails_at_ = item; }
  bool IsInterrupted() const { return interrupted_; }

 private:
  const std::vector<uint8_t>& items_;
  size_t next_ = 0;
  std::optional<size_t> fails_at_;
  std::atomic<bool> interrupted_ = false;
};

class RowStreamsTest : public ResidentTest {
 protected:
  // Rows of two bytes, each with a sum of eight bytes.
  static constexpr uint64_t kMostRows = kMaxPayloadBytes / sizeof(uint64_t);
  static ReduceSpec Spec() {
    return {.dtype = DType::kU8, .out_dtype = DType::kU64, .axis = Axis{.along = Axis::Along::kRow, .row_items = 2}};
  }
  static std::vector<uint8_t> Items(size_t n) {
    std::mt19937 random(static_cast<uint32_t>(n));
    std::vector<uint8_t> items(n);
    for (uint8_t& item : items) item = static_cast<uint8_t>(random());
    return items;
  }
  static std::vector<uint64_t> Sums(const std::vector<uint8_t>& items, size_t row_items = 2) {
    std::vector<uint64_t> sums(items.size() / row_items);
    for (size_t i = 0; i < items.size(); ++i) sums[i / row_items] += items[i];
    return sums;
  }
};

// The calls that they take are unary where rows are of two elements, and streams where they are of 20.
TEST_F(RowStreamsTest, AReduceHasAnyNumberOfRows) {
  constexpr uint64_t kRows[] = {0, 1, kMostRows - 1, kMostRows, kMostRows + 1, 2 * kMostRows, 3 * kMostRows + 5};
  for (const uint64_t row_items : {uint64_t{2}, uint64_t{20}}) {
    for (const uint64_t rows : kRows) {
      SCOPED_TRACE(StrCat(rows, " rows of ", row_items));
      const std::vector<uint8_t> items = Items(row_items * rows);
      ReduceSpec spec = Spec();
      spec.axis->row_items = row_items;
      const auto reduced = client_.Reduce<uint8_t, uint64_t>(items, {.axis = spec.axis});
      ASSERT_TRUE(reduced.ok()) << reduced.status();
      EXPECT_TRUE(reduced->values == Sums(items, row_items));
      EXPECT_EQ(reduced->count, items.size());
      EXPECT_EQ(reduced->timing.num_items, items.size());
      for (const bool declares : {false, true}) {
        if (declares) spec.num_items = items.size();
        PipeSource source(items);
        std::string values;
        size_t most_at_once = 0;
        const auto sink = [&](Pieces pieces, Pieces) {
          most_at_once = std::max<size_t>(most_at_once, NumBytes(pieces));
          for (const std::string_view piece : pieces) values += piece;
          return absl::OkStatus();
        };
        const auto timing = client_.RunChunks(spec, source, sink);
        ASSERT_TRUE(timing.ok()) << timing.status();
        EXPECT_TRUE(values == std::string(reinterpret_cast<const char*>(reduced->values.data()), 8 * rows));
        EXPECT_LE(most_at_once, kMaxPayloadBytes);
      }
    }
  }
}

TEST_F(RowStreamsTest, WhatIsWrongEndsTheReduce) {
  const std::vector<uint8_t> items = Items(4 * kMostRows);
  PipeSource broken(items);
  broken.FailAt(3 * kMostRows);
  EXPECT_EQ(client_.ReduceChunks(Spec(), broken).status().code(), absl::StatusCode::kDataLoss);
  const std::vector<uint8_t> odd = Items(2 * kMostRows + 1);
  PipeSource half_a_row(odd);
  EXPECT_EQ(ErrorReason(client_.ReduceChunks(Spec(), half_a_row).status()), "SHAPE");
  for (const uint64_t declared : {2 * kMostRows + 2, 4 * kMostRows - 2, 4 * kMostRows + 2}) {
    ReduceSpec spec = Spec();
    spec.num_items = declared;
    PipeSource other(items);
    EXPECT_EQ(ErrorReason(client_.ReduceChunks(spec, other).status()), "COUNT_MISMATCH") << declared;
  }
  PipeSource late(items);
  EXPECT_EQ(client_.ReduceChunks(Spec(), late, {.timeout = absl::ZeroDuration()}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  Cancellation cancellation;
  const auto cancel = [&](Pieces, Pieces) {
    cancellation.Cancel();
    return absl::OkStatus();
  };
  PipeSource cancelled(items);
  EXPECT_EQ(client_.RunChunks(Spec(), cancelled, cancel, {.cancellation = &cancellation}).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(RowStreamsTest, AStreamThatIsDrivenByHandHasItsValuesAtTheEnd) {
  const std::vector<uint8_t> items = Items(2'000);
  auto stream = client_.OpenReduce(Spec());
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (size_t i = 0; i < items.size(); i += 125) {
    ASSERT_TRUE((*stream)->Write({AsBytes(absl::MakeConstSpan(items).subspan(i, 125))}).ok());
  }
  (*stream)->WritesDone();
  ReduceReply reply;
  ASSERT_TRUE((*stream)->Read(&reply));
  EXPECT_TRUE((*stream)->Finish().ok());
  const std::vector<uint64_t> sums = Sums(items);
  EXPECT_TRUE(reply.values == std::string(reinterpret_cast<const char*>(sums.data()), 8 * sums.size()));
  EXPECT_EQ(reply.count, items.size());
}

TEST_F(RowStreamsTest, AScanOfALongRow) {
  std::vector<float> items(1'000'000);
  std::mt19937 random(7);
  for (float& item : items) item = std::uniform_real_distribution<float>(-1, 1)(random);
  const auto scanned = client_.Scan<float>(items, {.axis = Axis{.row_items = 500'000}});
  ASSERT_TRUE(scanned.ok()) << scanned.status();
  std::vector<float> expected;
  for (const size_t first : {0, 500'000}) {
    const auto row = client_.Scan<float>(absl::MakeConstSpan(items).subspan(first, 500'000));
    ASSERT_TRUE(row.ok()) << row.status();
    expected.insert(expected.end(), row->values.begin(), row->values.end());
  }
  EXPECT_TRUE(scanned->values == expected);
}

TEST(RowSource, EndsAfterItsRowsAndLeavesTheOthers) {
  const std::vector<uint8_t> items(10, 1);
  PipeSource all(items);
  RowSource first(all, 1, 6, /*may_rewind=*/false);
  EXPECT_EQ(first.Next(4)->values.size(), 4);
  EXPECT_FALSE(first.IsEndOfAll());
  const auto rest = first.Next(4);
  EXPECT_EQ(rest->values.size(), 2);
  EXPECT_TRUE(rest->last);
  first.Interrupt();  // Its call has ended, and the next one reads on.
  EXPECT_FALSE(all.IsInterrupted());
  RowSource second(all, 1, 6, /*may_rewind=*/false);
  const auto last = second.Next(6);
  EXPECT_EQ(last->values.size(), 4);
  EXPECT_TRUE(last->last);
  EXPECT_TRUE(second.IsEndOfAll());
  RowSource third(all, 1, 6, /*may_rewind=*/false);
  third.Interrupt();
  EXPECT_TRUE(all.IsInterrupted());
}

}  // namespace
}  // namespace prefixd::client
