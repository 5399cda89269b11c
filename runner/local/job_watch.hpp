#pragma once
// What reaches a run from outside while it goes on, and when it must end: the stage's one loop.
#include <poll.h>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "runner/local/control.hpp"
#include "runner/local/life.hpp"
#include "runner/local/namespaces.hpp"

namespace mlenv {

/// Where it comes from.
struct WatchedFds {
  int signals = -1;  ///< a signalfd: what arrives there is for the job
  int socket = -1;   ///< when its other end closes, the job is to end
  int control = -1;  ///< where other mlenvs connect; -1: nobody can
};

/// What is watched, or what stands for it.
class WatchedJob {
 public:
  WatchedJob() = default;
  WatchedJob(const WatchedJob&) = delete;
  WatchedJob& operator=(const WatchedJob&) = delete;
  virtual ~WatchedJob() = default;
  /// Can be read when it has ended.
  virtual int ended_fd() const = 0;
  /// Can be read when there is something else to look at, which `look` then does; -1: nothing.
  virtual int other_fd() const { return -1; }
  virtual void look() {}
  virtual void signal(int number) = 0;
  /// It and all that it started.
  virtual void kill() = 0;
  /// The first process of its PID namespace, as we see it; nothing where that is not ours to know.
  virtual std::optional<pid_t> first_process() const { return std::nullopt; }
  /// Their namespace itself, where the first process does not let others see it; -1: it does.
  virtual int process_space() const { return -1; }
  /// Who has it then, and who knows what it uses.
  struct Elsewhere {
    std::string why;
    std::string hint;
  };
  virtual Elsewhere elsewhere() const {
    return {"docker or podman has them where mlenv's process ids do not reach",
            "`docker stats`, `podman stats` tell what they use"};
  }
};

class JobWatch {
 public:
  using Exec = std::function<void(const ExecRequest&, std::vector<Fd>, Fd)>;

  JobWatch(const WatchedFds& fds, RunLife life) : fds_(fds), life_(std::move(life)) {}

  /// Until `pid`, a child of ours that starts the job, has ended; it is not reaped. Signals wait
  /// for the job, but one that ends programs gives the start no longer than the grace.
  void while_starting(pid_t pid, PidNamespace& processes);
  /// The same with the job, or what stands for it, to which signals go. `exec` starts a process
  /// beside it. What was asked for while it started is done first.
  void while_running(pid_t pid, PidNamespace& processes, const Exec& exec);
  void while_running(WatchedJob& job, const Exec& exec);
  /// These return, too, when what was killed has not ended ten seconds later (three, where a person
  /// has asked twice): the kernel lets a
  /// process sleep as long as storage or a driver has no answer, and what an engine's container
  /// says may be anybody's. Whoever waits for it any more waits for ever.
  bool gave_up() const { return gave_up_; }
  /// What starts the job was killed, and nobody had asked for that.
  bool start_was_late() const { return start_was_late_; }
  /// The first of SIGINT and SIGTERM, where a second one had it killed; 0: none had.
  int killed_for_signal() const { return killed_for_signal_; }
  /// Between two attempts.
  void pause(std::chrono::milliseconds time);
  /// It was stopped, took too long, got a signal that ends programs, or mlenv is gone: no further
  /// attempt.
  bool must_end() const { return must_end_; }
  EndedBy ended_by() const { return ended_by_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Target {
    WatchedJob* job = nullptr;
    bool takes_signals = false;
    const Exec* exec = nullptr;
    bool starts = false;  ///< it is what starts the job
  };
  void until(const Target& target, std::optional<Clock::time_point> end);
  /// In the order in which until() looks at them; then `pending_`.
  std::vector<pollfd> listened_to(const Target& target) const;
  int time_left(std::optional<Clock::time_point> end) const;
  void look_at_clock(const Target& target);
  void begin_timeout();
  void take_signals(const Target& target);
  void take_signal(int number, const Target& target);
  void heed_insistence(int number, const Target& target);
  void kill_by(std::optional<Clock::time_point>& when, std::chrono::milliseconds after);
  void take_connection();
  /// `fds` are those of `pending_`, polled.
  void hear_pending(const Target& target, std::span<const pollfd> fds);
  void end_without_mlenv(const Target& target);
  void take_request(const Target& target, Fd connection);
  void begin_end(EndedBy why, std::chrono::milliseconds grace, const Target& target);
  void send_stop_signal(const Target& target);

  WatchedFds fds_;
  RunLife life_;
  std::vector<Fd> pending_;  ///< connections that have not said yet what they want
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> start_ends_at_;  ///< what starts the job has so long
  std::optional<Clock::time_point> give_up_at_;     ///< it was killed
  std::deque<int> held_signals_;                    ///< that came while it started
  static constexpr std::chrono::milliseconds kOneRequest{300};
  Clock::time_point first_came_{};
  int first_signal_ = 0;  ///< of SIGINT and SIGTERM
  int killed_for_signal_ = 0;
  bool gave_up_ = false;
  bool start_was_late_ = false;
  bool timeout_set_ = false;
  bool must_end_ = false;
  bool stop_signal_due_ = false;
  EndedBy ended_by_ = EndedBy::itself;
};

}  // namespace mlenv
