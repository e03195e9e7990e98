#include "server/call/watchdog.h"

#include <atomic>
#include <memory>
#include <string>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/gate.h"
#include "tests/server/session_fixture.h"

namespace prefixd {
namespace {

constexpr std::chrono::milliseconds kTick{5};

// Only the first limit is there to be passed: a test for what is never ended waits for another that is.
constexpr Watchdog::Limits kFirstOnly{
    .first_message = std::chrono::seconds(1), .message = std::chrono::seconds(0), .reader = std::chrono::seconds(0)};

struct FakeCall {
  explicit FakeCall(WaitsFor waits_for) : waits_for(waits_for) {}
  std::atomic<WaitsFor> waits_for;
  std::atomic<uint64_t> progress{0};
  std::atomic<bool> moves{false};
  std::atomic<bool> is_idle{false};
  Gate given_up;
  absl::Status why;
  std::shared_ptr<Watched> watched = std::make_shared<Watched>(
      [this] {
        if (moves) ++progress;
        return Watched::Sight{.waits_for = waits_for, .progress = progress, .is_idle = is_idle};
      },
      [this](absl::Status status) {
        why = std::move(status);
        watched->Detach();  // As a call that ends does, on this thread.
        given_up.Arrive();
      });
};

TEST(WatchdogTest, EndsWhatWaitsTooLongAndNothingElse) {
  Watchdog watchdog(kFirstOnly, kTick);
  FakeCall silent(WaitsFor::kFirstMessage), moving(WaitsFor::kFirstMessage), working(WaitsFor::kNothing),
      unlimited(WaitsFor::kMessage), detached(WaitsFor::kFirstMessage);
  moving.moves = true;
  detached.watched->Detach();
  for (FakeCall* call : {&moving, &working, &unlimited, &detached, &silent}) watchdog.Watch(call->watched);
  ASSERT_TRUE(silent.given_up.WaitFor(1));
  EXPECT_EQ(ErrorReason(silent.why), "FIRST_MESSAGE_TIMEOUT");
  EXPECT_EQ(silent.why.code(), absl::StatusCode::kDeadlineExceeded);
  for (FakeCall* call : {&moving, &working, &unlimited, &detached}) EXPECT_EQ(call->given_up.arrived(), 0);
  for (FakeCall* call : {&moving, &working, &unlimited}) call->watched->Detach();
}

TEST(WatchdogTest, EndsWhatIsIdleWhenItIsTold) {
  Watchdog watchdog(kFirstOnly, kTick);
  FakeCall idle(WaitsFor::kMessage), other(WaitsFor::kMessage), moving(WaitsFor::kMessage);
  idle.is_idle = moving.is_idle = moving.moves = true;
  FakeCall silent(WaitsFor::kFirstMessage);
  for (FakeCall* call : {&idle, &other, &moving, &silent}) watchdog.Watch(call->watched);
  ASSERT_TRUE(silent.given_up.WaitFor(1));  // Some ticks have passed.
  EXPECT_EQ(idle.given_up.arrived(), 0);
  watchdog.EndIdle(absl::UnavailableError("enough"));
  ASSERT_TRUE(idle.given_up.WaitFor(1));
  EXPECT_EQ(idle.why, absl::UnavailableError("enough"));
  FakeCall late(WaitsFor::kMessage);
  late.is_idle = true;
  watchdog.Watch(late.watched);
  ASSERT_TRUE(late.given_up.WaitFor(1));
  for (FakeCall* call : {&other, &moving}) {
    EXPECT_EQ(call->given_up.arrived(), 0);
    call->watched->Detach();
  }
}

TEST(WatchdogTest, EachWaitHasItsReason) {
  Watchdog watchdog(
      {.first_message = std::chrono::seconds(1), .message = std::chrono::seconds(1), .reader = std::chrono::seconds(1)},
      kTick);
  FakeCall message(WaitsFor::kMessage), reader(WaitsFor::kReader);
  watchdog.Watch(message.watched);
  watchdog.Watch(reader.watched);
  ASSERT_TRUE(message.given_up.WaitFor(1) && reader.given_up.WaitFor(1));
  EXPECT_EQ(ErrorReason(message.why), "MESSAGE_TIMEOUT");
  EXPECT_EQ(ErrorReason(reader.why), "REPLY_TIMEOUT");
}

// ---- Sessions ------------------------------------------------------------------------------------------------------
// A carrier that does nothing by itself.
class SilentTransport final : public Transport {
 public:
  SilentTransport(ServerContext* context, CallInfo call) {
    call.cancel = [this] {
      session_->OnCancel();
      cancelled.Arrive();
    };
    session_ = Session::Create(context, std::move(call), this);
  }

  void Read() override { reads.Arrive(); }
  void Decode() override { session_->OnMessage(std::move(message)); }
  void Write(Reply /*reply*/) override {
    if (answers_writes) session_->OnWriteDone(true);
    writes.Arrive();
  }
  void Finish(const Result& result) override {
    status = result.status;
    finished.Arrive();
  }
  void Arrive(Message next) {
    message = std::move(next);
    session_->OnArrival(message.held_bytes);
  }
  Session& session() { return *session_; }

  Message message;
  bool answers_writes = false;
  Gate reads, writes, cancelled, finished;
  absl::Status status;

 private:
  std::shared_ptr<Session> session_;
};

class WatchedSessionTest : public SessionTest {
 protected:
  WatchedSessionTest() { context_.watchdog = &watchdog_; }

  static Message Of(const std::vector<int32_t>& items, bool first = true) {
    return MakeMessage(first ? std::optional<Spec>(ScanOf()) : std::nullopt, Bytes(items));
  }

  // Starts the session and brings its first reply.
  static bool IsReplied(SilentTransport& transport) {
    transport.session().Start();
    if (!transport.reads.WaitFor(1)) return false;
    transport.Arrive(Of({1, 2}));
    return transport.writes.WaitFor(1);
  }

  Watchdog watchdog_{
      {.first_message = std::chrono::seconds(1), .message = std::chrono::seconds(1), .reader = std::chrono::seconds(1)},
      kTick};
};

TEST_F(WatchedSessionTest, EndsAStreamThatNeverSends) {
  SilentTransport transport(&context_, Stream());
  transport.session().Start();
  ASSERT_TRUE(transport.finished.WaitFor(1));
  EXPECT_EQ(ErrorReason(transport.status), "FIRST_MESSAGE_TIMEOUT");
  transport.session().OnDone(true);
}

TEST_F(WatchedSessionTest, EndsAUnaryCallThatNeverSends) {
  SilentTransport transport(&context_, Unary());
  transport.session().Start();
  ASSERT_TRUE(transport.finished.WaitFor(1));
  EXPECT_EQ(ErrorReason(transport.status), "FIRST_MESSAGE_TIMEOUT");
  transport.session().OnDone(true);
}

TEST_F(WatchedSessionTest, EndsAStreamThatStopsSending) {
  SilentTransport transport(&context_, Stream());
  ASSERT_TRUE(IsReplied(transport));
  transport.session().OnWriteDone(true);
  ASSERT_TRUE(transport.finished.WaitFor(1));
  EXPECT_EQ(ErrorReason(transport.status), "MESSAGE_TIMEOUT");
  transport.session().OnDone(true);
}

// Its end could not be sent either: the carrier is told to break off, and then a write fails.
TEST_F(WatchedSessionTest, EndsAStreamWhoseReplyIsNotTaken) {
  SilentTransport transport(&context_, Stream());
  ASSERT_TRUE(IsReplied(transport));
  ASSERT_TRUE(transport.cancelled.WaitFor(1));
  EXPECT_EQ(transport.finished.arrived(), 0);
  transport.session().OnWriteDone(false);
  ASSERT_TRUE(transport.finished.WaitFor(1));
  EXPECT_EQ(ErrorReason(transport.status), "REPLY_TIMEOUT");
  transport.session().OnDone(false);
}

// A unary call whose answer is stuck: the log says why it was cancelled.
TEST_F(WatchedSessionTest, EndsACallWhoseAnswerIsNotTaken) {
  SilentTransport transport(&context_, Unary());
  transport.answers_writes = true;
  transport.session().Start();
  transport.Arrive(Of({1, 2}));
  ASSERT_TRUE(transport.finished.WaitFor(1));
  EXPECT_TRUE(transport.status.ok());
  ASSERT_TRUE(transport.cancelled.WaitFor(1));
  transport.session().OnDone(false);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].substr(log_[0].rfind(' ')), StrCat(" ", static_cast<int>(absl::StatusCode::kDeadlineExceeded)));
}

// Streams that hold bytes and want more could wait for each other for ever.
TEST_F(WatchedSessionTest, AStreamThatWaitsForBytesForTooLongIsRefused) {
  MakeServer(1, /*max_requests=*/64, /*max_bytes=*/uint64_t{1} << 20);
  context_.watchdog = &watchdog_;
  auto other = admission_->Admit({.name = "other", .connection = "other:1"});
  SilentTransport transport(&context_, Stream());
  transport.answers_writes = true;
  transport.session().Start();
  transport.Arrive(Of({1, 2}));
  ASSERT_TRUE(transport.reads.WaitFor(2) && transport.writes.WaitFor(1));  // Nothing is let go of any more.
  ASSERT_TRUE(other->Charge((uint64_t{1} << 20) - admission_->in_use().bytes).ok());
  transport.Arrive(Of({3, 4}, /*first=*/false));
  ASSERT_TRUE(transport.finished.WaitFor(1));
  EXPECT_EQ(transport.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(transport.status), "BYTE_BUDGET");
  transport.session().OnDone(true);
}

// Who waits for the server for less is not given up.
TEST_F(WatchedSessionTest, AStreamThatWaitsForBytesGoesOnWhenThereAreSome) {
  MakeServer(1, /*max_requests=*/64, /*max_bytes=*/uint64_t{1} << 20);
  Watchdog patient({.first_message = std::chrono::seconds(1),
                    .message = std::chrono::seconds(3600),
                    .reader = std::chrono::seconds(1)},
                   kTick);
  context_.watchdog = &patient;
  auto other = admission_->Admit({.name = "other", .connection = "other:1"});
  SilentTransport transport(&context_, Stream());
  transport.answers_writes = true;
  transport.session().Start();
  transport.Arrive(Of({1, 2}));
  ASSERT_TRUE(transport.reads.WaitFor(2) && transport.writes.WaitFor(1));  // Nothing is let go of any more.
  ASSERT_TRUE(other->Charge((uint64_t{1} << 20) - admission_->in_use().bytes).ok());
  transport.Arrive(Of({3, 4}, /*first=*/false));
  // A call that is given up in the meantime shows that time has passed.
  FakeCall silent(WaitsFor::kFirstMessage);
  patient.Watch(silent.watched);
  ASSERT_TRUE(silent.given_up.WaitFor(1));
  EXPECT_EQ(transport.finished.arrived(), 0);
  EXPECT_EQ(transport.writes.arrived(), 1);
  other->ShrinkTo(0);
  ASSERT_TRUE(transport.writes.WaitFor(2));
  transport.session().OnReadEnd();
  ASSERT_TRUE(transport.finished.WaitFor(1));
  EXPECT_TRUE(transport.status.ok()) << transport.status;
  transport.session().OnDone(true);
}

// A stream that waits for bytes and is cancelled ends at once, and leaves nothing charged.
TEST_F(WatchedSessionTest, AStreamThatWaitsForBytesCanBeCancelled) {
  MakeServer(1, /*max_requests=*/64, /*max_bytes=*/uint64_t{1} << 20);
  auto other = admission_->Admit({.name = "other", .connection = "other:1"});
  {
    SilentTransport transport(&context_, Stream());
    transport.answers_writes = true;
    transport.session().Start();
    transport.Arrive(Of({1, 2}));
    ASSERT_TRUE(transport.reads.WaitFor(2) && transport.writes.WaitFor(1));  // Nothing is let go of any more.
    ASSERT_TRUE(other->Charge((uint64_t{1} << 20) - admission_->in_use().bytes).ok());
    transport.Arrive(Of({3, 4}, /*first=*/false));
    transport.session().OnCancel();
    ASSERT_TRUE(transport.finished.WaitFor(1));
    EXPECT_EQ(ErrorReason(transport.status), "CANCELLED");
    transport.session().OnDone(false);
  }
  other->ShrinkTo(0);
  for (int i = 0; i < 20'000 && admission_->in_use().bytes > Call::kBytes; ++i) {
    absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
  }
  EXPECT_EQ(admission_->in_use().bytes, Call::kBytes);
}

// Between two messages a stream holds nothing but itself.
TEST_F(WatchedSessionTest, AStreamIsChargedForWhatItHolds) {
  SilentTransport transport(&context_, Stream());
  transport.session().Start();
  ASSERT_TRUE(transport.reads.WaitFor(1));
  EXPECT_EQ(admission_->in_use().bytes, Call::kBytes);
  const std::vector<int32_t> items(1000);
  transport.Arrive(Of(items));
  ASSERT_TRUE(transport.writes.WaitFor(1));
  EXPECT_EQ(admission_->in_use().bytes, Call::kBytes + 9 * 4000);  // The reply, and what may yet come of it.
  transport.session().OnWriteDone(true);
  EXPECT_EQ(admission_->in_use().bytes, Call::kBytes + 4000);  // gRPC may still send it.
  transport.session().OnReadEnd();
  ASSERT_TRUE(transport.finished.WaitFor(1));
  transport.session().OnDone(true);
}

}  // namespace
}  // namespace prefixd
