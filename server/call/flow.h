// What a call does next: a pure function of what is under way. Sessions and echoes ask it whenever there is news, and
// do one step at a time.
//
//        Read                 Run                  Write
//   wire ----> [incoming] ----------> [outgoing] ----------> wire
//              at most 2     a lane    at most 2
//
//   kRun     when the last reply is being sent, so that a slow reader holds no lane and no more than two replies
//   kRunEnd  the same, once all messages have come and only the result on the device is missing
//   kRead    while there is room among the incoming, so that a slow lane stops the sender
//   kWrite   one at a time
//   kFinish  when nothing is under way, and the call has failed or everything is done
//   kWait    until something that is under way ends
//
// If several steps are possible, the first of this list is taken: a run and a read start work elsewhere and return at
// once, a write may take long. A call that has failed starts nothing more, and finishes when what is under way has
// ended.
#ifndef PREFIXD_SERVER_CALL_FLOW_H_
#define PREFIXD_SERVER_CALL_FLOW_H_

#include <cstddef>
#include <cstdint>

namespace prefixd {

enum class Step : uint8_t { kWait, kRun, kRunEnd, kRead, kWrite, kFinish };

// What was read is charged, and then decoded.
enum class ReadState : uint8_t { kIdle, kReading, kDecoding, kEnded };
enum class RunState : uint8_t { kIdle, kRunning };
// A write is done when its bytes have left, and over when the call that sends them has returned as well: either may be
// first.
enum class WriteState : uint8_t { kIdle, kWriting };

struct Flow {
  // Messages held at once: with the one that is being run, without one that is being read.
  static constexpr size_t kMaxIncoming = 2;

  bool has_failed = false;
  bool has_finished = false;
  ReadState reading = ReadState::kIdle;
  RunState running = RunState::kIdle;
  WriteState writing = WriteState::kIdle;
  size_t num_incoming = 0;  // With the one that is being run.
  size_t num_outgoing = 0;  // Without the one that is being written.
  bool needs_end = false;   // There is a result on the device.
};

Step NextStep(const Flow& flow);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_FLOW_H_
