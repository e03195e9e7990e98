#include "tests/bench/server_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

namespace prefixd {

void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  _exit(1);
}

double ServerProcess::CpuSeconds() const {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string all((std::istreambuf_iterator<char>(file)), {});
  unsigned long user = 0;
  unsigned long system = 0;
  std::sscanf(all.c_str() + all.rfind(')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t ServerProcess::ResidentBytes() const {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  uint64_t size_pages = 0;
  uint64_t resident_pages = 0;
  file >> size_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void ServerProcess::Kill() const {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

ServerProcess StartServer(std::vector<std::string> command) {
  const std::string port_file = "/tmp/server_process." + std::to_string(getpid());
  std::replace(command.begin(), command.end(), std::string("PORT_FILE"), port_file);
  unlink(port_file.c_str());  // A process that had our number may have left it.
  ServerProcess server;
  server.pid = fork();
  if (server.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> argv;
    for (std::string& argument : command) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int port = 0;
  for (int i = 0; i < 600 && !(std::ifstream(port_file) >> port); ++i) {
    if (waitpid(server.pid, nullptr, WNOHANG) != 0) Fail(command[0] + " ended before it served");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // A file does not tell when it is written.
  }
  unlink(port_file.c_str());
  if (port == 0) Fail(command[0] + " did not serve within half a minute");
  server.address = "127.0.0.1:" + std::to_string(port);
  return server;
}

}  // namespace prefixd
