// A server as a process of its own, for programs that measure it.
// Threads: one.
#ifndef PREFIXD_TESTS_BENCH_SERVER_PROCESS_H_
#define PREFIXD_TESTS_BENCH_SERVER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace prefixd {

// Ends this program, with what went wrong on standard error.
[[noreturn]] void Fail(const std::string& what);

struct ServerProcess {
  std::string address;  // "127.0.0.1:4242"
  pid_t pid = 0;

  // User and system time so far.
  double CpuSeconds() const;
  // Ends it at once, and waits for that.
  void Kill() const;
};

// Starts a server and waits until it serves: it writes its port to the file that `command` names where it says
// PORT_FILE. It ends with this program at the latest. Fails if it ends before, or does not serve within half a minute.
ServerProcess StartServer(std::vector<std::string> command);

}  // namespace prefixd

#endif  // PREFIXD_TESTS_BENCH_SERVER_PROCESS_H_
