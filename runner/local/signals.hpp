#pragma once
// Signals that are meant for a job but reach its runner.
#include <sys/types.h>
#include <array>
#include <chrono>
#include <csignal>
#include <optional>

namespace mlenv {

/// What is passed on.
inline constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/// Of these, what a person or a batch system ends programs with.
constexpr bool ends_programs(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

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
  /// Since when whoever sent them has asked twice, by SIGINT or SIGTERM, and the first of these.
  struct Insistence {
    std::chrono::steady_clock::time_point since;
    int signal = 0;
  };
  static std::optional<Insistence> insistence();

 private:
  std::array<struct sigaction, kForwarded.size()> before_{};
};

}  // namespace mlenv
