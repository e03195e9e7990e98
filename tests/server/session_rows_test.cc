// Rows that come in streams, as whole requests: what a session answers, what it holds, and what it refuses.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/session_fixture.h"

namespace prefixd {
namespace {

class SessionRowsTest : public SessionTest {
 protected:
  static constexpr uint64_t kMostRows = kMaxReplyPayloadBytes / sizeof(int32_t);

  static std::optional<Axis> Rows(uint64_t row_items) {
    return Axis{.along = Axis::Along::kRow, .row_items = row_items};
  }
  // 1, 2, 3, ... in chunks of so many, and a message without any.
  static std::vector<Message> Stream123(const Spec& spec, size_t n, size_t chunk_items) {
    const std::vector<int32_t> items = Iota(n);
    std::vector<std::string> chunks;
    for (size_t i = 0; i < n; i += chunk_items) {
      chunks.push_back(Bytes(items).substr(i * sizeof(int32_t), chunk_items * sizeof(int32_t)));
    }
    chunks.emplace_back();
    return Messages(spec, std::move(chunks));
  }
  // The sums of rows of 1, 2, 3, ...
  static std::vector<int32_t> Sums(size_t n, size_t row_items) {
    std::vector<int32_t> sums(n / row_items);
    for (size_t i = 0; i < n; ++i) sums[i / row_items] += static_cast<int32_t>(i + 1);
    return sums;
  }
};

TEST_F(SessionRowsTest, ScansOfRows) {
  std::vector<int32_t> expected = Iota(60);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (i % 12 != 0) expected[i] += expected[i - 1];
  }
  for (const size_t chunk_items : {1, 5, 12, 24, 50, 60}) {
    ASSERT_TRUE(Run(Stream(), Stream123(ScanOf({.axis = Rows(12)}), 60, chunk_items)).ok());
    EXPECT_EQ(Items<int32_t>(transport_->values()), expected) << chunk_items;
  }
}

TEST_F(SessionRowsTest, TheValuesOfAReduceComeWithItsEnd) {
  for (const size_t chunk_items : {1, 5, 12, 24, 50, 60}) {
    ASSERT_TRUE(Run(Stream(), Stream123(ReduceOf({.axis = Rows(12)}), 60, chunk_items)).ok());
    EXPECT_TRUE(transport_->replies().empty());
    EXPECT_EQ(Items<int32_t>(transport_->result().row_values.ToString()), Sums(60, 12)) << chunk_items;
    EXPECT_FALSE(transport_->result().value);
  }
}

// One message of several pieces: rows that end in the next one, and values in as many replies.
TEST_F(SessionRowsTest, AUnaryMessageIsCutAsAStreamIs) {
  const size_t row_items = kPieceItems - 1;
  const size_t n = 3 * row_items;
  ASSERT_TRUE(Run(Unary(), Messages(ReduceOf({.axis = Rows(row_items)}), {Bytes(Iota(n))})).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), Sums(n, row_items));
  EXPECT_TRUE(transport_->result().row_values.empty());
}

TEST_F(SessionRowsTest, TheValuesOfRowsAreChargedWhileTheyWait) {
  const auto charged = [&](std::optional<uint64_t> declared) {
    const uint64_t before = admission_->in_use().bytes;
    const ReduceSpec reduce = ReduceOf({.num_items = declared, .axis = Rows(2)});
    uint64_t waiting = 0;
    {
      FakeTransport transport(&context_, Stream(), Stream123(reduce, 2'000, 1'000));
      transport.before_read = [&](size_t i) {
        if (i == 2) waiting = admission_->in_use().bytes;
      };
      EXPECT_TRUE(transport.Run());
      EXPECT_TRUE(transport.result().status.ok()) << transport.result().status;
    }
    for (int i = 0; i < 2000 && admission_->in_use().bytes != before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // The lane may have the session for a moment.
    }
    EXPECT_EQ(admission_->in_use().bytes, before);
    return waiting - before - Call::kBytes;
  };
  EXPECT_GE(charged({}), kMaxReplyPayloadBytes);
  const uint64_t of_few = charged(2'000);
  EXPECT_GE(of_few, 1'000 * sizeof(int32_t));
  EXPECT_LT(of_few, kMaxReplyPayloadBytes / 2);
}

TEST_F(SessionRowsTest, ManyRowsOfOne) {
  ASSERT_TRUE(Run(Stream(), Stream123(ReduceOf({.axis = Rows(1)}), kMostRows, 99'999)).ok());
  EXPECT_EQ(Items<int32_t>(transport_->result().row_values.ToString()), Iota(kMostRows));
  EXPECT_EQ(Reason(Stream(), Stream123(ReduceOf({.axis = Rows(1)}), kMostRows + 1, 99'999)), "REPLY_TOO_LARGE");
  ASSERT_TRUE(Run(Stream(), Stream123(ScanOf({.axis = Rows(1)}), kMostRows + 1, 99'999)).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), Iota(kMostRows + 1));
}

TEST_F(SessionRowsTest, WhatIsNoMatrixIsRefused) {
  const auto run = [&](const Spec& spec) { return Run(Stream(), Stream123(spec, 12, 5)); };
  for (const uint64_t row_items : {uint64_t{0}, uint64_t{5}, uint64_t{13}, ~uint64_t{0}}) {
    for (const Spec& spec : {Spec(ScanOf({.axis = Rows(row_items)})), Spec(ReduceOf({.axis = Rows(row_items)})),
                             Spec(DifferenceSpec{.dtype = DType::kI32, .axis = Rows(row_items)})}) {
      EXPECT_EQ(ErrorReason(run(spec)), "SHAPE") << row_items;
    }
  }
  EXPECT_EQ(
      run(ScanOf({.axis = Rows(5)})).message(),
      "the elements end within row 2, of which 2 came, and 5 are expected: send whole rows, or say how many elements "
      "one has");
  EXPECT_EQ(ErrorReason(run(ScanOf({.num_items = 12, .axis = Rows(5)}))), "SHAPE");
  EXPECT_EQ(ErrorReason(run(ScanOf({.num_items = 15, .axis = Rows(3)}))), "COUNT_MISMATCH");
  EXPECT_EQ(ErrorReason(run(ScanOf({.reverse = true, .axis = Rows(3)}))), "REVERSE_ON_STREAM");
  EXPECT_EQ(ErrorReason(run(ScanOf({.axis = Axis{.along = Axis::Along::kColumn, .row_items = 3}}))), "AXIS_ON_STREAM");
  EXPECT_EQ(ErrorReason(run(ReduceOf({.axis = Axis{.along = Axis::Along::kColumn, .row_items = 3}}))),
            "AXIS_ON_STREAM");
}

// There are more rows than one launch takes, and no launch has all of them.
TEST_F(SessionRowsTest, AnyNumberOfRowsMayBeDeclared) {
  const ScanSpec scan = ScanOf({.num_items = uint64_t{1} << 40, .axis = Rows(1)});
  EXPECT_EQ(Reason(Stream(), Stream123(scan, 12, 5)), "COUNT_MISMATCH");
  EXPECT_EQ(Reason(Unary(), Messages(scan, {Bytes(Iota(12))})), "COUNT_MISMATCH");
}

TEST_F(SessionRowsTest, AnErrorInsideARowEndsTheStream) {
  device_.before_work = [n = 0]() mutable { return ++n < 3 ? absl::OkStatus() : absl::InternalError("it broke"); };
  EXPECT_EQ(Run(Stream(), Stream123(ReduceOf({.axis = Rows(12)}), 60, 5)).message(), "it broke");
  EXPECT_TRUE(transport_->result().row_values.empty());
}

TEST_F(SessionRowsTest, TheInitialValueComesFirst) {
  const ScanSpec scan = ScanOf({.init = Value::Of<int32_t>(7), .include_initial = true});
  for (const size_t chunk_items : {1, 3, 10, 20}) {
    ASSERT_TRUE(Run(Stream(), Stream123(scan, 10, chunk_items)).ok());
    EXPECT_EQ(Items<int32_t>(transport_->values()), (std::vector<int32_t>{7, 8, 10, 13, 17, 22, 28, 35, 43, 52, 62}));
  }
  for (const size_t num_messages : {1, 2, 3}) {
    ASSERT_TRUE(Run(Stream(), Messages(scan, std::vector<std::string>(num_messages))).ok());
    EXPECT_EQ(Items<int32_t>(transport_->values()), std::vector<int32_t>{7});
  }
  // A full piece has one result too many for a reply.
  std::vector<int32_t> expected = {7};
  for (const int32_t sum : InclusiveSum(Iota(kPieceItems))) expected.push_back(7 + sum);
  ScanSpec declared = scan;
  declared.num_items = kPieceItems;
  ASSERT_TRUE(Run(Stream(), Messages(declared, {Bytes(Iota(kPieceItems))})).ok());
  EXPECT_EQ(Items<int32_t>(transport_->values()), expected);
  for (const Reply& reply : transport_->replies()) EXPECT_LE(reply.size_bytes(), kMaxReplyPayloadBytes);
}

}  // namespace
}  // namespace prefixd
