// A server as a process of its own, for programs that measure it.
// Threads: one.
#ifndef PREFIXD_TESTS_BENCH_SERVER_PROCESS_H_
#define PREFIXD_TESTS_BENCH_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace prefixd {

// Writes `what`, which says what went wrong, to standard error and ends this program.
[[noreturn]] void Fail(const std::string& what);

struct ServerProcess {
  std::string address;  // "127.0.0.1:4242"
  pid_t pid = 0;

  // The server's user and system time so far.
  double CpuSeconds() const;
  // The server's resident memory.
  uint64_t ResidentBytes() const;
  // Kills the server and waits until it has ended.
  void Kill() const;
};

// Starts a server and waits until it serves. A file's name replaces the word PORT_FILE in `command`; the server writes
// its port there. It ends with this program at the latest. Calls Fail if the server ends before it serves, or does not
// serve within half a minute.
ServerProcess StartServer(std::vector<std::string> command);

}  // namespace prefixd

#endif  // PREFIXD_TESTS_BENCH_SERVER_PROCESS_H_
