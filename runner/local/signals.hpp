#pragma once
// Signals that are meant for a job but reach its runner.
#include <sys/types.h>
#include <array>
#include <csignal>

namespace mlenv {

/// What is passed on.
inline constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/// `kForwarded` as a set.
sigset_t forwarded_signals();

/// From its making on, signals to this process are kept, and passed on to a child once there is
/// one; its end restores what was. One at a time in a process. A signal that was ignored before
/// (nohup) stays ignored.
class SignalForwarding {
 public:
  SignalForwarding();
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;
  ~SignalForwarding();
  /// `pid` is a child that has not been waited for.
  void to(pid_t pid);

 private:
  std::array<struct sigaction, kForwarded.size()> before_{};
};

}  // namespace mlenv
