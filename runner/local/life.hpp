#pragma once
// How long a run lives: when it is ended, by which signal, and whether it is started again.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/process.hpp"
#include "runner/vm/spec.hpp"

namespace mlenv {

/// When the command is started again within the same run, with its writable layer as it was.
struct RestartPolicy {
  enum class When { never, on_failure, always };
  When when = When::never;
  std::optional<std::uint64_t> most;  ///< so many further attempts
  std::string text = "no";            ///< as it was written
  /// `no`, `on-failure`, `on-failure:N`, `always`, `unless-stopped`; nullopt for another word.
  static std::optional<RestartPolicy> parse(std::string_view text);
  bool again(const Exit& exit, std::uint64_t attempts) const;
};

struct RunLife {
  std::optional<std::chrono::milliseconds> timeout;  ///< from the first start of the command
  int stop_signal = SIGTERM;
  std::chrono::milliseconds grace{10'000};  ///< between that signal and SIGKILL
  RestartPolicy restart;
};

/// `TERM`, `SIGTERM`, `15`; nullopt for what is no signal.
std::optional<int> parse_signal(std::string_view text);

/// `SIGTERM`; empty for a number that has no name.
std::string signal_name(int number);

/// How long to wait before the next attempt: 0.1 s, twice as long each time up to a minute; from
/// the beginning after an attempt of ten seconds.
class BackOff {
 public:
  std::chrono::milliseconds after(std::chrono::milliseconds attempt);

 private:
  std::chrono::milliseconds next_{100};
};

/// The status of a run that took too long, as timeout(1) has it.
inline constexpr int kTimedOutStatus = 124;
/// The status of mlenv's own failures where others are the command's.
inline constexpr int kOwnFailureStatus = 125;

enum class EndedBy { itself, stop, timeout };

/// What a job used where its processes are not this one's children (getrusage(2) in its container).
struct JobUsage {
  double user_seconds = 0;
  double system_seconds = 0;
  std::uint64_t read_blocks = 0;  ///< as getrusage(2) counts them
  std::uint64_t written_blocks = 0;
  std::uint64_t largest_kilobytes = 0;
};

struct RunOutcome {
  Exit exit;  ///< of the last attempt; 124 after a timeout
  EndedBy ended_by = EndedBy::itself;
  std::uint64_t attempts = 1;
  bool out_of_memory = false;  ///< the kernel killed a process of it for want of memory
  std::optional<JobUsage> usage{};
  std::optional<VmUse> vm{};
};

/// One attempt that is over.
struct AttemptEnd {
  std::uint64_t number = 1;
  Exit exit;
  std::chrono::milliseconds took{0};
};

}  // namespace mlenv
