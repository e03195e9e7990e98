#include "client/prefixctl/interrupt.h"

#include <pthread.h>
#include <signal.h>

namespace prefixd::cli {
namespace {

constexpr int kWakeUp = SIGUSR1;

// Those that the process was not told to ignore, as under nohup.
sigset_t Interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

CancelOnInterrupt::CancelOnInterrupt() {
  sigset_t signals = Interrupts();
  sigaddset(&signals, kWakeUp);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { Watch(); });
}

CancelOnInterrupt::~CancelOnInterrupt() {
  ended_ = true;
  pthread_kill(watcher_.native_handle(), kWakeUp);
  watcher_.join();
  const sigset_t signals = Interrupts();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void CancelOnInterrupt::Watch() {
  const sigset_t interrupts = Interrupts();
  sigset_t signals = interrupts;
  sigaddset(&signals, kWakeUp);
  int signal = 0;
  sigwait(&signals, &signal);
  if (!ended_) {
    cancellation_.Cancel();
    pthread_sigmask(SIG_UNBLOCK, &interrupts, nullptr);
  }
  sigset_t wake_up;
  sigemptyset(&wake_up);
  sigaddset(&wake_up, kWakeUp);
  while (!ended_) sigwait(&wake_up, &signal);
}

}  // namespace prefixd::cli
