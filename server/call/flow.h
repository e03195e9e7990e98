// What a call does next: a pure function of what is under way. Sessions and echoes ask it whenever there is news, and
// do one step at a time.
//
//        Read                 Run                  Write
//   wire ----> [incoming] ----------> [outgoing] ----------> wire
//              at most 2     a lane    at most 2
//
//   kRun     when the lane's last reply is on its way out, so that a slow reader holds no lane and no more memory
//   kRunEnd  the same, once all messages came and what is left is the result on the device
//   kRead    while there is room among the incoming, so that a slow lane stops the sender
//   kWrite   one at a time
//   kFinish  when nothing is under way, and there is an error or nothing left to do
//   kWait    for news
//
// Where several may be done, the first of this list is: what sets others to work comes before a write, which may take
// long. A call that has failed starts nothing more, and finishes when what is under way has ended.
#ifndef PREFIXD_SERVER_CALL_FLOW_H_
#define PREFIXD_SERVER_CALL_FLOW_H_

#include <cstddef>
#include <cstdint>

namespace prefixd {

enum class Step : uint8_t { kWait, kRun, kRunEnd, kRead, kWrite, kFinish };

enum class ReadState : uint8_t { kIdle, kReading, kEnded };
enum class RunState : uint8_t { kIdle, kRunning };
// A write is done when its bytes have left, and over when the call that sends them has returned as well: either may be
// first.
enum class WriteState : uint8_t { kIdle, kWriting };

struct Flow {
  // Messages that are held at once, the one that is being run among them, besides one that is being read.
  static constexpr size_t kMaxIncoming = 2;

  bool has_failed = false;
  bool has_finished = false;
  ReadState reading = ReadState::kIdle;
  RunState running = RunState::kIdle;
  WriteState writing = WriteState::kIdle;
  size_t num_incoming = 0;  // The one that is being run among them.
  size_t num_outgoing = 0;  // The one that is being written not among them.
  bool needs_end = false;   // There is a result on the device.
};

Step NextStep(const Flow& flow);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_FLOW_H_
