#include "runner/local/job_watch.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "runner/local/signals.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostPending = 64;
/// From SIGKILL until nobody waits any more.
constexpr std::chrono::seconds kMostJobDying{10};
constexpr std::chrono::seconds kMostJobDyingHurried{3};  // a person has asked twice
/// A command that is asked to end for the second time has so long to do it by itself.
constexpr std::chrono::seconds kSecondJobGrace{2};
/// A runtime, its hooks included.
constexpr std::chrono::minutes kMostStarting{10};

/// A child of ours, with its PID namespace.
class ChildJob : public WatchedJob {
 public:
  ChildJob(pid_t pid, PidNamespace& processes) : ended_(open_pidfd(pid)), processes_(processes) {}
  int ended_fd() const override { return ended_.get(); }
  void signal(int number) override {
    ::syscall(SYS_pidfd_send_signal, ended_.get(), number, nullptr, 0);
  }
  void kill() override { processes_.kill(); }
  std::optional<pid_t> first_process() const override { return processes_.init(); }
  int process_space() const override { return processes_.fd(); }

 protected:
  void kill_child() { ::syscall(SYS_pidfd_send_signal, ended_.get(), SIGKILL, nullptr, 0); }

 private:
  Fd ended_;
  PidNamespace& processes_;
};

/// One that starts the job: it is not among the job's processes.
class StartingChild final : public ChildJob {
 public:
  using ChildJob::ChildJob;
  void kill() override {
    ChildJob::kill();
    kill_child();
  }
};

void answer_failure(int connection, const Error& error) {
  (void)send_packet(connection, render_outcome(error));
}

Error between_attempts() {
  return refusal("run-ended", "the command does not run at this moment")
      .because("the run is between two attempts, or has not started yet")
      .hint("try again; `mlenv runs show RUN` tells how its attempts ended");
}

void answer_where(int connection, const WatchedJob* job) {
  if (job == nullptr) return answer_failure(connection, between_attempts());
  const std::optional<pid_t> pid = job->first_process();
  if (!pid) {
    const auto [why, hint] = job->elsewhere();
    return answer_failure(
        connection,
        failure("run-unseen", "the processes of this run cannot be seen").because(why).hint(hint));
  }
  try {
    const Fd first = open_pidfd(*pid);
    std::vector<int> files{first.get()};
    if (job->process_space() >= 0) files.push_back(job->process_space());
    (void)send_packet(connection, render_outcome(Exit{}), files);
  } catch (const Error& error) {
    answer_failure(connection, error);  // whoever asks must not end the run
  }
}

}  // namespace

void JobWatch::while_starting(pid_t pid, PidNamespace& processes) {
  StartingChild job{pid, processes};
  begin_timeout();
  start_ends_at_ = Clock::now() + kMostStarting;
  until({&job, false, nullptr, true}, std::nullopt);
  start_ends_at_.reset();
}

void JobWatch::while_running(pid_t pid, PidNamespace& processes, const Exec& exec) {
  ChildJob job{pid, processes};
  while_running(job, exec);
}

void JobWatch::while_running(WatchedJob& job, const Exec& exec) {
  begin_timeout();
  const Target target{&job, true, &exec};
  if (stop_signal_due_) send_stop_signal(target);
  while (!held_signals_.empty()) {
    job.signal(held_signals_.front());
    held_signals_.pop_front();
  }
  until(target, std::nullopt);
}

void JobWatch::begin_timeout() {
  if (!life_.timeout || std::exchange(timeout_set_, true)) return;
  timeout_at_ = Clock::now() + *life_.timeout;
}

void JobWatch::pause(std::chrono::milliseconds time) { until({}, Clock::now() + time); }

int JobWatch::time_left(std::optional<Clock::time_point> end) const {
  constexpr std::int64_t kLongest = 1'000'000'000;
  std::optional<Clock::time_point> next = end;
  for (const auto& at : {timeout_at_, kill_at_, start_ends_at_, give_up_at_}) {
    if (at && (!next || *at < *next)) next = at;
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kLongest));
}

void JobWatch::hear_pending(const Target& target, std::span<const pollfd> fds) {
  std::vector<Fd> waiting = std::exchange(pending_, {});
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (fds[i].revents != 0) {
      take_request(target, std::move(waiting[i]));
    } else {
      pending_.push_back(std::move(waiting[i]));
    }
  }
}

void JobWatch::end_without_mlenv(const Target& target) {
  if (target.job != nullptr) target.job->kill();
  kill_by(give_up_at_, kMostJobDying);
  must_end_ = true;
  fds_.socket = -1;
}

std::vector<pollfd> JobWatch::listened_to(const Target& target) const {
  const bool pausing = target.job == nullptr;
  // Whoever waits to be heard is polled for only when there is somebody to hear them.
  std::vector<pollfd> fds{{pausing ? -1 : target.job->ended_fd(), POLLIN, 0},
                          {fds_.signals, POLLIN, 0},
                          {fds_.socket, 0, 0},
                          {pending_.size() < kMostPending ? fds_.control : -1, POLLIN, 0},
                          {pausing ? -1 : target.job->other_fd(), POLLIN, 0}};
  for (const Fd& connection : pending_) fds.push_back({connection.get(), POLLIN, 0});
  return fds;
}

void JobWatch::until(const Target& target, std::optional<Clock::time_point> end) {
  constexpr std::size_t kFixed = 5;
  const bool pausing = target.job == nullptr;
  while (true) {
    std::vector<pollfd> fds = listened_to(target);
    if (::poll(fds.data(), fds.size(), time_left(end)) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the container");
    }
    if (fds[1].revents != 0) take_signals(target);
    if (fds[0].revents != 0) return;
    if ((fds[2].revents & (POLLHUP | POLLERR)) != 0) end_without_mlenv(target);
    hear_pending(target, std::span(fds).subspan(kFixed));
    if (fds[3].revents != 0) take_connection();
    if (fds[4].revents != 0) target.job->look();
    look_at_clock(target);
    if (gave_up_) return;
    if (pausing && (must_end_ || Clock::now() >= end.value())) return;
  }
}

void JobWatch::look_at_clock(const Target& target) {
  const auto now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_) {
    timeout_at_.reset();
    begin_end(EndedBy::timeout, life_.grace, target);
  }
  if (target.job == nullptr) return;
  for (auto* const at : {&kill_at_, &start_ends_at_}) {
    if (!*at || now < **at) continue;
    at->reset();
    if (at == &start_ends_at_) {
      start_was_late_ = !std::exchange(must_end_, true);
      killed_for_signal_ = first_signal_;
    }
    target.job->kill();
    if (!give_up_at_)
      give_up_at_ = now + (killed_for_signal_ == 0 ? kMostJobDying : kMostJobDyingHurried);
  }
  if (give_up_at_ && now >= *give_up_at_) gave_up_ = true;
}

void JobWatch::take_signals(const Target& target) {
  signalfd_siginfo info{};
  while (::read(fds_.signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    take_signal(static_cast<int>(info.ssi_signo), target);
  }
}

void JobWatch::take_signal(int number, const Target& target) {
  if (ends_programs(number)) {
    must_end_ = true;
    if (target.starts) kill_by(start_ends_at_, life_.grace);
  }
  if (target.starts) {
    held_signals_.push_back(number);
  } else if (target.job != nullptr) {
    target.job->signal(number);
  }
  heed_insistence(number, target);
}

/// A program may do what it likes about the first, and use SIGHUP and SIGQUIT for something else.
void JobWatch::heed_insistence(int number, const Target& target) {
  if (number != SIGINT && number != SIGTERM) return;
  if (first_signal_ == 0) {
    first_signal_ = number;
    first_came_ = Clock::now();
    return;
  }
  // One request: systemd and timeout(1) send it to all of us, and mlenv passes its own on.
  if (Clock::now() - first_came_ < kOneRequest) return;
  if (killed_for_signal_ == 0) killed_for_signal_ = first_signal_;
  kill_by(target.starts ? start_ends_at_ : kill_at_, kSecondJobGrace);
  if (give_up_at_) kill_by(give_up_at_, kMostJobDyingHurried);
}

/// Never later than was said before.
void JobWatch::kill_by(std::optional<Clock::time_point>& when, std::chrono::milliseconds after) {
  const auto at = Clock::now() + after;
  if (!when || at < *when) when = at;
}

void JobWatch::take_connection() {
  Fd connection{::accept4(fds_.control, nullptr, nullptr, SOCK_CLOEXEC)};
  if (connection) pending_.push_back(std::move(connection));
}

void JobWatch::take_request(const Target& target, Fd connection) {
  Packet packet = receive_packet(connection.get());
  if (packet.bytes.empty()) return;
  const ControlRequest request = parse_request_packet(packet.bytes);
  if (request.stop) {
    begin_end(
        EndedBy::stop,
        request.stop->grace_ms ? std::chrono::milliseconds(*request.stop->grace_ms) : life_.grace,
        target);
    (void)send_packet(connection.get(), render_outcome(Exit{}));
  } else if (request.where) {
    answer_where(connection.get(), target.job);
  } else if (!request.exec) {
    answer_failure(connection.get(),
                   failure("run-failed", "the run's mlenv does not understand this")
                       .because("it is of another version"));
  } else if (target.exec == nullptr) {
    answer_failure(connection.get(), between_attempts());
  } else {
    (*target.exec)(*request.exec, std::move(packet.files), std::move(connection));
  }
}

void JobWatch::begin_end(EndedBy why, std::chrono::milliseconds grace, const Target& target) {
  kill_by(kill_at_, grace);
  if (ended_by_ != EndedBy::itself) return;
  ended_by_ = why;
  must_end_ = true;
  stop_signal_due_ = true;
  if (target.takes_signals) send_stop_signal(target);
}

void JobWatch::send_stop_signal(const Target& target) {
  stop_signal_due_ = false;
  target.job->signal(life_.stop_signal);
  // One that is stopped (SIGSTOP, Ctrl-Z) would not see it.
  target.job->signal(SIGCONT);
}

}  // namespace mlenv
