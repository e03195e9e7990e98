// What a call does next: the table, row by row, and then every state that there is.
#include "server/call/flow.h"

#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

constexpr ReadState kReading = ReadState::kReading;
constexpr ReadState kEnded = ReadState::kEnded;
constexpr RunState kRunning = RunState::kRunning;
constexpr WriteState kWriting = WriteState::kWriting;

struct Row {
  const char* when;
  Flow flow;
  Step next;
};

TEST(FlowTest, TheTable) {
  const std::vector<Row> rows = {
      {"a call begins", {}, Step::kRead},
      {"its first message is on its way", {.reading = kReading}, Step::kWait},
      {"a message came", {.num_incoming = 1}, Step::kRun},
      {"it runs, and there is room for another", {.running = kRunning, .num_incoming = 1}, Step::kRead},
      {"it runs, and the next is on its way",
       {.reading = kReading, .running = kRunning, .num_incoming = 1},
       Step::kWait},
      {"it runs, and no more fit", {.running = kRunning, .num_incoming = 2}, Step::kWait},
      {"its reply is there, and nothing else", {.reading = kReading, .num_outgoing = 1}, Step::kWrite},
      {"its reply is there, and the next message",
       {.reading = kReading, .num_incoming = 1, .num_outgoing = 1},
       Step::kRun},
      {"the lane runs beside the reply",
       {.reading = kReading, .running = kRunning, .num_incoming = 1, .num_outgoing = 1},
       Step::kWrite},
      {"a reply is being written, and a message came",
       {.reading = kReading, .writing = kWriting, .num_incoming = 1},
       Step::kRun},
      {"one is being written, one waits: the reader is slow",
       {.reading = kReading, .writing = kWriting, .num_incoming = 1, .num_outgoing = 1},
       Step::kWait},
      {"the same, with room for a message", {.writing = kWriting, .num_incoming = 1, .num_outgoing = 1}, Step::kRead},
      {"two replies wait", {.reading = kReading, .num_incoming = 1, .num_outgoing = 2}, Step::kWrite},
      {"all came, and some is left to run", {.reading = kEnded, .num_incoming = 1}, Step::kRun},
      {"all came and ran, and the result is on the device", {.reading = kEnded, .needs_end = true}, Step::kRunEnd},
      {"the result is on its way", {.reading = kEnded, .running = kRunning, .needs_end = true}, Step::kWait},
      {"the result is on the device, more may come", {.reading = kReading, .needs_end = true}, Step::kWait},
      {"the last reply waits", {.reading = kEnded, .num_outgoing = 1}, Step::kWrite},
      {"the last reply is being written", {.reading = kEnded, .writing = kWriting}, Step::kWait},
      {"all is done", {.reading = kEnded}, Step::kFinish},
      {"it has finished", {.has_finished = true, .reading = kEnded}, Step::kWait},
      {"it failed", {.has_failed = true}, Step::kFinish},
      {"it failed while a message was on its way", {.has_failed = true, .reading = kReading}, Step::kFinish},
      {"it failed while a piece ran", {.has_failed = true, .running = kRunning}, Step::kWait},
      {"it failed while a reply was written", {.has_failed = true, .writing = kWriting}, Step::kWait},
      {"it failed, with a result on the device",
       {.has_failed = true, .reading = kEnded, .needs_end = true},
       Step::kFinish},
  };
  for (const Row& row : rows) EXPECT_EQ(static_cast<int>(NextStep(row.flow)), static_cast<int>(row.next)) << row.when;
}

// Each state: nothing is begun twice or too early, and a call of which nothing is under way never waits.
TEST(FlowTest, EveryState) {
  int num_states = 0;
  for (const bool has_failed : {false, true}) {
    for (const ReadState reading : {ReadState::kIdle, kReading, kEnded}) {
      for (const RunState running : {RunState::kIdle, kRunning}) {
        for (const WriteState writing : {WriteState::kIdle, kWriting}) {
          for (size_t num_incoming = 0; num_incoming <= Flow::kMaxIncoming; ++num_incoming) {
            for (size_t num_outgoing = 0; num_outgoing <= 2; ++num_outgoing) {
              for (const bool needs_end : {false, true}) {
                if (running == kRunning && num_incoming == 0 && reading != kEnded) continue;  // What would it run?
                // Fail drops what waits.
                if (has_failed && (num_incoming > 0 || num_outgoing > 0)) continue;
                ++num_states;
                const Flow flow = {.has_failed = has_failed,
                                   .reading = reading,
                                   .running = running,
                                   .writing = writing,
                                   .num_incoming = num_incoming,
                                   .num_outgoing = num_outgoing,
                                   .needs_end = needs_end};
                SCOPED_TRACE(StrCat(has_failed, " ", static_cast<int>(reading), " ", static_cast<int>(running), " ",
                                    static_cast<int>(writing), " ", num_incoming, " ", num_outgoing, " ", needs_end));
                const Step step = NextStep(flow);
                const bool is_run = step == Step::kRun || step == Step::kRunEnd;
                EXPECT_TRUE(!is_run || (running == RunState::kIdle && !has_failed));
                EXPECT_TRUE(step != Step::kRun || num_incoming > 0);
                EXPECT_TRUE(step != Step::kRunEnd || (reading == kEnded && num_incoming == 0 && needs_end));
                EXPECT_TRUE(step != Step::kRead ||
                            (reading == ReadState::kIdle && num_incoming < Flow::kMaxIncoming && !has_failed));
                EXPECT_TRUE(step != Step::kWrite || (writing == WriteState::kIdle && num_outgoing > 0 && !has_failed));
                const bool is_quiet = running == RunState::kIdle && writing == WriteState::kIdle;
                const bool is_complete = reading == kEnded && num_incoming == 0 && num_outgoing == 0 && !needs_end;
                EXPECT_EQ(step == Step::kFinish, is_quiet && (has_failed || is_complete));
                const bool waits_for_news = !is_quiet || reading == kReading;
                EXPECT_TRUE(step != Step::kWait || waits_for_news) << "a call that nobody wakes";
                Flow finished = flow;
                finished.has_finished = true;
                EXPECT_EQ(NextStep(finished), Step::kWait);
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(num_states, 150);
}

}  // namespace
}  // namespace prefixd
