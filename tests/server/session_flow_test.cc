// Whole requests through a fake transport: who waits for whom, and how requests end when something goes wrong.
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "server/call/session.h"
#include "tests/server/gate.h"
#include "tests/server/session_fixture.h"

namespace prefixd {
namespace {

TEST_F(SessionTest, RepliesFlowWhileChunksStillArrive) {
  const std::string chunk = Bytes<int32_t>({1, 2, 3});
  Gate replied;
  transport_ = std::make_unique<FakeTransport>(&context_, Stream(), Messages(ScanOf(), {chunk, chunk, chunk}));
  std::atomic<bool> in_step{true};
  transport_->before_read = [&](size_t i) {
    if (i > 0 && !replied.WaitFor(static_cast<int>(i))) in_step = false;  // The next chunk only after its reply.
  };
  transport_->before_write_done = [&](size_t) { replied.Arrive(); };
  ASSERT_TRUE(transport_->Run());
  EXPECT_TRUE(transport_->result().status.ok());
  EXPECT_TRUE(in_step);
}

// Sending may take as long as a piece does: meanwhile others read and run what comes next, and nothing is lost or in
// disorder when it ends.
TEST_F(SessionTest, AWriteThatTakesLongHoldsUpNeitherReadingNorRunning) {
  constexpr int kChunks = 8;
  const std::vector<int32_t> chunk = {1, 2, 3};
  transport_ = std::make_unique<FakeTransport>(&context_, Stream(),
                                               Messages(ScanOf(), std::vector<std::string>(kChunks, Bytes(chunk))));
  Gate reads;
  Gate first_done;
  std::atomic<bool> overlaps{true};
  transport_->before_read = [&](size_t) { reads.Arrive(); };
  transport_->before_write_done = [&](size_t) { first_done.Arrive(); };
  transport_->in_write = [&](size_t i) {
    // It is done, the second chunk is run and its reply waits, two more are held: nobody may write it but who is in
    // here.
    if (i == 0 && !(first_done.WaitFor(1) && reads.WaitFor(2 + Flow::kMaxIncoming))) overlaps = false;
  };
  ASSERT_TRUE(transport_->Run());
  EXPECT_TRUE(transport_->result().status.ok());
  EXPECT_TRUE(overlaps);
  EXPECT_FALSE(transport_->broke_in());
  EXPECT_EQ(transport_->replies().size(), kChunks);
  std::vector<int32_t> whole;
  for (int i = 0; i < kChunks; ++i) whole.insert(whole.end(), chunk.begin(), chunk.end());
  EXPECT_EQ(Items<int32_t>(transport_->values()), InclusiveSum(whole));
}

// Also where everything has come and the last write is done before it has returned.
TEST_F(SessionTest, TheEndWaitsForAWriteToReturn) {
  const std::string chunk = Bytes<int32_t>({1, 2, 3});
  transport_ = std::make_unique<FakeTransport>(&context_, Stream(), Messages(ScanOf(), {chunk}));
  Gate others;
  transport_->before_read = [&](size_t i) {
    if (i == 1) others.Arrive();  // The end of the stream.
  };
  transport_->before_write_done = [&](size_t) { others.Arrive(); };
  transport_->in_write = [&](size_t) {
    EXPECT_TRUE(others.WaitFor(2));
    absl::SleepFor(absl::Milliseconds(50));  // For a Finish that should not come.
  };
  ASSERT_TRUE(transport_->Run());
  EXPECT_FALSE(transport_->broke_in());
  EXPECT_TRUE(transport_->result().status.ok());
}

TEST_F(SessionTest, ASlowReaderHoldsNoLaneAndStopsTheReading) {
  MakeServer(1);
  const std::string chunk = Bytes<int32_t>({1, 2, 3});
  transport_ =
      std::make_unique<FakeTransport>(&context_, Stream(), Messages(ScanOf(), std::vector<std::string>(50, chunk)));
  Gate reader;
  transport_->before_write_done = [&](size_t i) {
    if (i != 0) return;
    EXPECT_TRUE(reader.WaitFor(1));
  };
  transport_->Start();
  // The only lane serves others meanwhile: were it held, this would not end.
  for (int i = 0; i < 5; ++i) {
    FakeTransport other(&context_, Unary(), Messages(ScanOf(), {chunk}));
    ASSERT_TRUE(other.Run());
    EXPECT_TRUE(other.result().status.ok());
  }
  // One reply is being written, one waits, kMaxIncoming messages are held, of which one may still be on its way.
  EXPECT_LE(transport_->num_reads(), 2 + Flow::kMaxIncoming);
  reader.Arrive();
  ASSERT_TRUE(transport_->Wait());
  EXPECT_TRUE(transport_->result().status.ok());
  EXPECT_EQ(transport_->replies().size(), 50u);
}

// Two streams hold a message and its replies each, and wait for bytes for the next one, which do not fit beside both.
TEST_F(SessionTest, StreamsThatWaitForBytesKeepNoneThatTheyHaveNoUseFor) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  MakeServer(2, /*max_requests=*/64, 2 * Call::kBytes + 6 * kMiB + kMiB / 2);
  const std::vector<std::string> chunks(3, Bytes(Iota(kPieceItems)));
  Gate arrivals, pieces;
  device_.before_work = [&] {
    return pieces.WaitFor(1) ? absl::OkStatus() : absl::InternalError("the test stands still");
  };
  std::vector<std::unique_ptr<FakeTransport>> streams;
  for (int i = 0; i < 2; ++i) {
    streams.push_back(std::make_unique<FakeTransport>(&context_, Stream(), Messages(ScanOf(), chunks)));
    streams.back()->before_read = [&](size_t message) {
      if (message != 1) return;
      arrivals.Arrive();
      EXPECT_TRUE(arrivals.WaitFor(2));  // Both first messages are charged.
    };
    streams.back()->Start();
  }
  ASSERT_TRUE(arrivals.WaitFor(2));
  absl::SleepFor(absl::Milliseconds(50));  // Until both wait.
  EXPECT_EQ(admission_->in_use().bytes, 2 * Call::kBytes + 6 * kMiB);
  pieces.Arrive();
  for (const auto& stream : streams) {
    ASSERT_TRUE(stream->Wait());
    EXPECT_TRUE(stream->result().status.ok()) << stream->result().status;
  }
}

// All that a caller's share allows is the open groups of his streams, and each waits for bytes for its next message.
TEST_F(SessionTest, StreamsWhoseOpenGroupsFillTheirShareGoOnInTurns) {
  constexpr int kStreams = 14;
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  MakeServer(2, /*max_requests=*/64, 64 * kMiB, /*share_percent=*/50);  // A quarter is for a connection.
  const std::string chunk = Bytes(std::vector<double>(kPieceItems / 2, 1));
  Gate begun;
  std::vector<std::unique_ptr<FakeTransport>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<FakeTransport>(
        &context_, Stream(), Messages(ScanOf({}, DType::kF64), {Bytes<double>({1}), chunk, chunk, chunk})));
    streams.back()->before_read = [&](size_t message) {
      if (message != 1) return;
      begun.Arrive();
      EXPECT_TRUE(begun.WaitFor(kStreams));  // All have their groups.
    };
    streams.back()->Start();
  }
  // Who has ended goes at once: until then he is charged for what may be under way to a reader.
  for (const absl::Time limit = absl::Now() + absl::Seconds(20); !streams.empty();) {
    ASSERT_LT(absl::Now(), limit) << streams.size() << " streams stand still";
    std::erase_if(streams, [](const auto& stream) {
      if (!stream->HasEnded()) return false;
      EXPECT_TRUE(stream->result().status.ok()) << stream->result().status;
      return true;
    });
    absl::SleepFor(absl::Milliseconds(1));  // Until the next ends.
  }
}

TEST_F(SessionTest, RequestsRunOnTwoLanesAtTheSameTime) {
  Gate both;
  std::atomic<int> met{0};
  device_.before_work = [&] {
    both.Arrive();
    if (both.WaitFor(2)) ++met;
    return absl::OkStatus();
  };
  FakeTransport one(&context_, Unary(), Messages(ScanOf(), {Bytes<int32_t>({1})}));
  // Another shape, so that they don't share a launch.
  FakeTransport two(&context_, Unary(), Messages(ScanOf(), {Bytes<int32_t>({1, 2})}));
  one.Start();
  two.Start();
  ASSERT_TRUE(one.Wait() && two.Wait());
  EXPECT_EQ(met, 2);
}

TEST_F(SessionTest, CancellationFreesTheLaneBeforeTheNextPiece) {
  MakeServer(1);
  Gate running;
  Gate go_on;
  device_.before_work = [&] {
    running.Arrive();
    EXPECT_TRUE(go_on.WaitFor(1));
    return absl::OkStatus();
  };
  FakeTransport transport(&context_, Stream(), Messages(ScanOf(), {Bytes(Iota(4 * kPieceItems)), Bytes(Iota(1))}));
  transport.Start();
  ASSERT_TRUE(running.WaitFor(1));
  transport.session().OnCancel();
  go_on.Arrive();
  ASSERT_TRUE(transport.Wait());
  EXPECT_EQ(transport.result().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(device_.works(), 1);
  EXPECT_TRUE(transport.replies().empty());
}

TEST_F(SessionTest, CancellationEndsARequestThatWaitsForItsCaller) {
  Gate waiting;
  Gate cancelled;
  FakeTransport transport(&context_, Stream(), Messages(ScanOf(), {Bytes<int32_t>({1})}));
  transport.before_read = [&](size_t i) {
    if (i != 1) return;
    waiting.Arrive();
    EXPECT_TRUE(cancelled.WaitFor(1));
  };
  transport.Start();
  ASSERT_TRUE(waiting.WaitFor(1));
  transport.session().OnCancel();
  EXPECT_TRUE(transport.Wait());
  EXPECT_EQ(transport.result().status.code(), absl::StatusCode::kCancelled);
  cancelled.Arrive();
}

TEST_F(SessionTest, ABadChunkStopsTheWorkOnThoseBeforeIt) {
  Gate running;
  Gate refused;
  device_.before_work = [&] {
    running.Arrive();
    EXPECT_TRUE(refused.WaitFor(1));
    return absl::OkStatus();
  };
  FakeTransport transport(&context_, Stream(), Messages(ScanOf(), {Bytes(Iota(4 * kPieceItems))}));
  transport.Start();
  ASSERT_TRUE(running.WaitFor(1));
  transport.session().OnInvalidMessage(absl::InvalidArgumentError("bad"), "");
  refused.Arrive();
  ASSERT_TRUE(transport.Wait());
  EXPECT_EQ(transport.result().status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device_.works(), 1);
}

TEST_F(SessionTest, ADeadlineThatPassesStopsTheWork) {
  MakeServer(1);
  CallInfo call = Stream();
  device_.before_work = [&] {
    while (absl::Now() < call.deadline) absl::SleepFor(absl::Milliseconds(1));  // The first piece outlasts it.
    return absl::OkStatus();
  };
  for (absl::Duration timeout = absl::Seconds(1); device_.works() == 0; timeout *= 2) {  // Long enough for it to begin.
    call.deadline = absl::Now() + timeout;
    const absl::Status status = Run(call, Messages(ScanOf(), {Bytes(Iota(4 * kPieceItems))}));
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(ErrorReason(status), "DEADLINE");
  }
  EXPECT_EQ(device_.works(), 1);
}

TEST_F(SessionTest, ADeviceErrorEndsTheRequestAndIsReported) {
  device_.before_work = [] { return Error(absl::StatusCode::kUnavailable, "DEVICE_LOST", "", "gone"); };
  const absl::Status status = Run(Stream(), Messages(ScanOf(), {Bytes<int32_t>({1}), Bytes<int32_t>({2})}));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device_lost_, 1);
  device_.before_work = [] { return absl::InternalError("odd"); };
  EXPECT_EQ(Run(Unary(), Messages(ScanOf(), {Bytes<int32_t>({1})})).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_lost_, 1);
}

TEST_F(SessionTest, BudgetsHoldForWholeRequests) {
  MakeServer(1, /*max_requests=*/1);
  Gate first_read;
  Gate go_on;
  transport_ = std::make_unique<FakeTransport>(&context_, Stream(),
                                               Messages(ScanOf(), {Bytes<int32_t>({1}), Bytes<int32_t>({2})}));
  transport_->before_read = [&](size_t i) {
    if (i != 1) return;
    first_read.Arrive();
    EXPECT_TRUE(go_on.WaitFor(1));
  };
  transport_->Start();
  ASSERT_TRUE(first_read.WaitFor(1));
  {
    FakeTransport refused(&context_, Unary(), Messages(ScanOf(), {Bytes<int32_t>({1})}));
    ASSERT_TRUE(refused.Run());
    EXPECT_EQ(refused.result().status.code(), absl::StatusCode::kResourceExhausted);
  }
  go_on.Arrive();
  ASSERT_TRUE(transport_->Wait());
  EXPECT_TRUE(transport_->result().status.ok());
  transport_.reset();
  EXPECT_TRUE(Run(Unary(), Messages(ScanOf(), {Bytes<int32_t>({1})})).ok());
}

TEST_F(SessionTest, AStreamThatWasLetInWaitsForRoomForItsOpenGroup) {
  constexpr uint64_t kGroupBytes = kGroupItems * sizeof(float);
  MakeServer(1, /*max_requests=*/64, /*max_bytes=*/kGroupBytes + kGroupBytes / 4);
  std::optional<Admission::Ticket> other;
  FakeTransport transport(&context_, Stream(), Messages(ScanOf({}, DType::kF32), {"", Bytes<float>({1, 2})}),
                          FakeTransport::Answers::kInline);
  transport.before_read = [&](size_t i) {
    if (i != 1) return;
    other = *admission_->Admit({.name = "other", .connection = "other:1"});
    EXPECT_TRUE(other->Charge(kGroupBytes / 2).ok());  // The elements fit beside it, their group does not.
  };
  transport.Start();
  EXPECT_EQ(transport.num_reads(), 2u);
  EXPECT_EQ(device_.works(), 0);
  EXPECT_TRUE(transport.result().status.ok()) << transport.result().status;
  other.reset();
  ASSERT_TRUE(transport.Wait());
  EXPECT_TRUE(transport.result().status.ok()) << transport.result().status;
  EXPECT_EQ(Items<float>(transport.values()), (std::vector<float>{1, 3}));
}

// A caller may be back thousands of times before the transport has let go of its first request.
TEST_F(SessionTest, WhatIsAnsweredIsChargedForWhatMayStillBeHeld) {
  ASSERT_TRUE(Run(Unary(), Messages(ScanOf(), {Bytes<int32_t>({1, 2})})).ok());
  EXPECT_EQ(admission_->in_use().requests, 0u);
  EXPECT_EQ(admission_->in_use().bytes, 8 + Call::kBytes);  // The reply: the message went when it had run.
  transport_.reset();
  // Its lane may still be leaving the task, and holds it until then.
  for (int i = 0; i < 20'000 && admission_->in_use().bytes > 0; ++i) {
    absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
  }
  ASSERT_TRUE(Run(Stream(), Messages(ScanOf(), {Bytes<int32_t>({1})})).ok());
  EXPECT_EQ(admission_->in_use().bytes, 4 + Call::kBytes);
}

TEST_F(SessionTest, EachRequestIsLoggedOnce) {
  std::vector<Message> named = Messages(ScanOf(), {Bytes<int32_t>({1, 2})});
  named[0].request_id = "mine";
  ASSERT_TRUE(Run(Unary(), std::move(named)).ok());
  ASSERT_FALSE(Run(Stream(), {}).ok());
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[0], "mine Unary 8 8 0");
  EXPECT_EQ(log_[1].substr(log_[1].find(' ')), " Stream 0 0 3");
}

TEST_F(SessionTest, AnEndThatTheCallerDidNotSeeIsLoggedAsCancelled) {
  ASSERT_TRUE(Run(Unary(), Messages(ScanOf(), {Bytes<int32_t>({1})})).ok());
  transport_->session().OnDone(/*delivered=*/false);
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[1].back(), '1') << log_[1];
}

TEST_F(SessionTest, ALargeMessageIsRunPieceByPieceAsItsRepliesAreTaken) {
  // Indices triple the bytes: eleven pieces and more, of which two are made before the reader takes the first.
  const std::string values = Bytes(std::vector<int32_t>(kMaxMessageBytes / sizeof(int32_t)));
  const CompactSpec compact{.predicate = Predicate{Comparison::kEqual, Value::Of(0)}, .return_indices = true};
  FakeTransport transport(&context_, Stream(), Messages(CompactOf(compact), {values}));
  transport.before_write_done = [&](size_t i) {
    if (i != 0) return;
    for (int j = 0; j < 5; ++j) {
      FakeTransport other(&context_, Unary(), Messages(ScanOf(), {Bytes<int32_t>({1})}));
      EXPECT_TRUE(other.Run());
    }
    EXPECT_LE(device_.works(), 2 + 5);
  };
  ASSERT_TRUE(transport.Run());
  EXPECT_EQ(transport.result().num_kept, kMaxMessageBytes / sizeof(int32_t));
  EXPECT_GE(transport.replies().size(), 12u);
  for (const Reply& reply : transport.replies()) {
    EXPECT_LE(reply.values.size() + reply.indices.size(), kMaxReplyPayloadBytes);
  }
}

TEST_F(SessionTest, ManyRequestsAtOnceWithRandomCancellations) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::vector<int32_t> in = Iota(1000);
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<FakeTransport>> transports;
    for (int i = 0; i < 8; ++i) {
      transports.push_back(std::make_unique<FakeTransport>(&context_, Stream(),
                                                           Messages(ScanOf(), std::vector<std::string>(5, Bytes(in)))));
      transports.back()->Start();
    }
    std::vector<bool> cancelled;
    for (auto& transport : transports) {
      cancelled.push_back(random() % 2 == 0);
      if (cancelled.back()) transport->session().OnCancel();
    }
    for (size_t i = 0; i < transports.size(); ++i) {
      ASSERT_TRUE(transports[i]->Wait());
      const absl::StatusCode code = transports[i]->result().status.code();
      if (!cancelled[i]) {
        EXPECT_EQ(code, absl::StatusCode::kOk);
        EXPECT_EQ(Items<int32_t>(transports[i]->values()).size(), 5 * in.size());
      } else {
        EXPECT_TRUE(code == absl::StatusCode::kOk || code == absl::StatusCode::kCancelled);
      }
    }
    transports.clear();
    // The lanes may still be leaving the last tasks; nothing else holds a session.
    for (int i = 0; i < 20'000 && admission_->in_use().bytes > 0; ++i) {
      absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    }
    ASSERT_EQ(admission_->in_use().bytes, 0u);
  }
}

}  // namespace
}  // namespace prefixd
