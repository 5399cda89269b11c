#include "runner/matrix/drive.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <memory>
#include <utility>

#include "runner/local/exec_client.hpp"
#include "runner/local/signal_queue.hpp"

namespace mlenv::matrix {
namespace {

using std::chrono::steady_clock;

struct Running {
  std::size_t variation = 0;
  std::size_t slot = 0;
  bool recorded = false;
  bool started = false;
  bool stopped = false;
  std::unique_ptr<Supervised> run = nullptr;
};

class MatrixDrive {
 public:
  MatrixDrive(const DrivePlan& plan, const DriveEvents& events)
      : plan_(plan), events_(events), todo_(plan.todo.begin(), plan.todo.end()) {
    for (std::size_t slot = plan.at_once; slot > 0; --slot) free_slots_.push_back(slot - 1);
  }

  DriveEnd run() {
    while (true) {
      while (!stopping_ && !free_slots_.empty() && !todo_.empty()) start_next();
      events_.tick();
      if (running_.empty() && (stopping_ || todo_.empty())) break;
      if (!running_.empty()) wait();
    }
    if (end_.refused && !any_started_) throw Error{*std::move(end_.refused)};
    return end_;
  }

 private:
  void start_next() {
    Running next{todo_.front(), free_slots_.back()};
    todo_.pop_front();
    events_.began(next.variation);
    try {
      next.run = events_.start(next.variation, next.slot);
    } catch (const Error& error) {
      over({next.variation, next.slot, "", false, std::nullopt, error, false});
      return;
    }
    free_slots_.pop_back();
    running_.push_back(std::move(next));
  }

  void wait() {
    constexpr int kTick = 1000;  // milliseconds
    std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
    for (const Running& one : running_) fds.push_back({one.run->fd(), POLLIN, 0});
    if (::poll(fds.data(), fds.size(), kTick) < 0) {
      if (errno == EINTR) return;
      throw os_error(errno, "cannot wait for the variations");
    }
    // From the back: those that are over leave the list.
    for (std::size_t i = fds.size() - 1; i > 0; --i) {
      if (fds[i].revents != 0) hear(i - 1);
    }
    while (const int number = signals_.next()) take_signal(number);
    force();
  }

  void hear(std::size_t index) {
    Running& one = running_[index];
    const bool goes_on = one.run->hear();
    if (one.run->started() && !std::exchange(one.started, true)) {
      any_started_ = true;
      if (end_.refused) ask_to_end(one, {});
    }
    if (!one.recorded && !one.run->id().empty()) {
      one.recorded = true;
      events_.recorded(one.variation, one.run->id());
    }
    if (goes_on) return;
    Ended ended{one.variation,      one.slot,           one.run->id(), one.stopped,
                one.run->outcome(), one.run->failure(), false};
    const bool unreached = plan_.own_hosts && !stopping_ && !one.started && ended.failure &&
                           ended.failure->code() == "no-node";
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    if (unreached) return leave_out(ended);
    free_slots_.push_back(ended.slot);
    over(std::move(ended));
  }

  /// With the last slot it is as if that were so of all that are still to do.
  void leave_out(Ended ended) {
    if (++left_out_ < plan_.at_once) {
      todo_.push_front(ended.variation);
      events_.left_out(ended);
      return;
    }
    end_.refused = ended.failure;
    begin_stop();
    over(std::move(ended));
  }

  void over(Ended ended) {
    if (ended.failure && !any_started_ && !stopping_) {
      // Others are on their way: each is asked once it has been started, or is refused likewise.
      end_.refused = ended.failure;
      begin_stop();
    }
    ended.ends_all = end_.refused.has_value();
    events_.ended(ended);
    const bool failed = !ended.outcome || ended.outcome->exit.code != 0;
    if (plan_.fail_fast && failed && !stopping_) {
      begin_stop();
      for (Running& one : running_) ask_to_end(one, {});
    }
  }

  void begin_stop() {
    stopping_ = true;
    for (Running& one : running_) one.stopped = true;
  }

  void take_signal(int number) {
    const bool ends = number != SIGUSR1 && number != SIGUSR2;
    if (!ends) {
      for (Running& one : running_) one.run->signal(number);
      return;
    }
    const bool again = end_.signal != 0;
    if (again) {
      force_at_ = force_at_ == kNever ? steady_clock::now() + kMostAsked : steady_clock::now();
    }
    if (!again) end_.signal = number;
    begin_stop();
    events_.stopping(number, again);
    for (Running& one : running_) {
      if (again) {
        ask_to_end(one, std::uint64_t{0});
      } else {
        one.run->signal(number);
      }
    }
  }

  /// Who does not end though a person has asked twice is killed, and whoever does not even then is
  /// left: the kernel may hold a process as long as it likes.
  void force() {
    if (steady_clock::now() < force_at_) return;
    force_at_ = steady_clock::now() + kMostDying;
    if (std::exchange(forced_, true)) {
      std::vector<Running> left = std::exchange(running_, {});
      for (Running& one : left) {
        over({one.variation, one.slot, one.run->id(), true, std::nullopt, std::nullopt, false});
      }
      return;
    }
    for (Running& one : running_) one.run->kill();
  }

  /// As `mlenv stop` does it, so that it is recorded how it ended; with force where that fails.
  void ask_to_end(Running& one, std::optional<std::uint64_t> grace_ms) const {
    try {
      if (one.run->started()) {
        return stop_run(plan_.runs_folder / one.run->id(), one.run->id(), {grace_ms});
      }
    } catch (const Error& error) {
      if (error.code() == "run-ended") return;
    }
    one.run->kill();
  }

  const DrivePlan& plan_;
  const DriveEvents& events_;
  SignalQueue signals_{SignalQueue::Impatience::ends};
  std::deque<std::size_t> todo_;
  std::vector<std::size_t> free_slots_;  ///< the lowest last
  std::size_t left_out_ = 0;             ///< slots
  std::vector<Running> running_;
  bool stopping_ = false;
  static constexpr std::chrono::seconds kMostAsked{5};
  static constexpr std::chrono::seconds kMostDying{5};
  static constexpr steady_clock::time_point kNever = steady_clock::time_point::max();
  steady_clock::time_point force_at_ = kNever;
  bool forced_ = false;
  bool any_started_ = false;
  DriveEnd end_;
};

}  // namespace

DriveEnd drive(const DrivePlan& plan, const DriveEvents& events) {
  return MatrixDrive(plan, events).run();
}

}  // namespace mlenv::matrix
