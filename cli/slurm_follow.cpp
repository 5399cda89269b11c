#include "cli/slurm_follow.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <csignal>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/job/job_json.hpp"
#include "runner/job/job_output.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::minutes kMostJobSilence{10};
constexpr std::chrono::seconds kLookForEnd{1};
constexpr std::chrono::seconds kMostJobLeaving{5};  // once a person has asked twice
constexpr int kLook = 200;                          // milliseconds

/// What the output gains: text as it is, of a job with --json each record as an answer, and what
/// mlenv remarked between them beside it.
class Tail {
 public:
  Tail(const Ui& ui, fs::path file) : ui_(ui), file_(std::move(file)) {}

  /// Whether there was something.
  bool show() {
    bool any = false;
    if (!fd_) fd_ = Fd{::open(file_.c_str(), O_RDONLY | O_CLOEXEC)};
    std::array<char, std::size_t{64} << 10U> buffer{};
    while (fd_) {
      const ssize_t count = ::read(fd_.get(), buffer.data(), buffer.size());
      if (count <= 0) break;
      any = true;
      take({buffer.data(), static_cast<std::size_t>(count)});
    }
    return any;
  }
  /// The newest record of an end, of which a job has one for each time that Slurm started it.
  const std::string& last_end() const { return last_end_; }

 private:
  void take(std::string_view text) {
    if (!ui_.options.json) return job::write_to_streams(true, text);
    begun_ += text;
    std::size_t start = 0;
    for (std::size_t end = 0; (end = begun_.find('\n', start)) != std::string::npos;) {
      take_line(begun_.substr(start, end - start));
      start = end + 1;
    }
    begun_.erase(0, start);
  }
  void take_line(const std::string& line) {
    if (!line.starts_with('{')) return ui_.say(printable(line));
    if (job::is_job_end(line)) {
      last_end_ = line;
    } else {
      ui_.answer(line);
    }
  }

  const Ui& ui_;
  fs::path file_;
  Fd fd_;
  std::string begun_;
  std::string last_end_;
};

class Follower {
 public:
  Follower(const Ui& ui, const SubmittedJob& job)
      : ui_(ui), job_(job), tail_(ui, job.folder / "out") {}

  std::optional<job::SlurmState> to_the_end(const SignalQueue& signals) {
    while (true) {
      pollfd waiting{signals.fd(), POLLIN, 0};
      (void)::poll(&waiting, 1, kLook);
      while (const int signal = signals.next()) {
        if (!heed(signal)) return std::nullopt;
      }
      if (leave_at_ && steady_clock::now() >= *leave_at_) return left();
      const bool wrote = tail_.show();
      if (wrote ? last_.state == "PENDING" : has_just_ended()) pace_.hurry();
      if (steady_clock::now() - asked_ < pace_.wait() || !ask()) continue;
      tail_.show();
      if (last_.state == "CANCELLED" && last_.exit.code == 0) {  // before it began
        last_.exit.code = last_.status(cancelled_by_ == 0 ? SIGTERM : cancelled_by_);
      }
      say_json_end();
      return last_;
    }
  }

 private:
  void note(const std::string& text) const { ui_.say("mlenv: " + printable(text)); }

  /// False: nobody is there any more who follows it.
  bool heed(int signal) {
    pace_.hurry();
    try {
      switch (signal) {
        case SIGUSR1:
          job::signal_in_slurm(job_.id, "USR1");
          break;
        case SIGUSR2:
          job::signal_in_slurm(job_.id, "USR2");
          break;
        case SIGHUP:
          say_how_to_go_on();
          return false;
        default:
          // Whoever asks twice does not wait for Slurm.
          if (cancelled_by_ != 0 && !leave_at_) leave_at_ = steady_clock::now() + kMostJobLeaving;
          if (cancelled_by_ == 0) cancelled_by_ = signal;
          job::cancel_in_slurm(job_.id);
      }
    } catch (const Error& error) {
      note(error.what());  // it may have just ended, which the next answer tells
    }
    return true;
  }

  job::SlurmState left() {
    note(
        fmt::format("job {} of Slurm was cancelled; Slurm has not said yet that it is over: "
                    "`squeue -j {}` tells",
                    job_.id, job_.id));
    last_.state = "CANCELLED";
    last_.exit = {kSignalBase + cancelled_by_, true};
    return last_;
  }

  void say_how_to_go_on() const {
    const std::string record = job::record_of_job(job_.folder);
    const std::string look = record.empty()
                                 ? fmt::format("`squeue -j {}` shows whether it has begun", job_.id)
                                 : fmt::format("`mlenv logs -f {}` follows it", record);
    note(fmt::format("job {} of Slurm goes on without this terminal: {}, `scancel {}` ends it",
                     job_.id, look, job_.id));
  }

  /// Whether its record has an end that was not there before. One that is put back into the queue
  /// goes on with its record, and has another end then.
  bool has_just_ended() {
    if (steady_clock::now() - looked_ < kLookForEnd) return false;
    looked_ = steady_clock::now();
    const std::string record = job::record_of_job(job_.folder);
    if (record.empty()) return false;
    const auto end = read_file_if_exists(runs_folder(job_.store) / record / "end.json");
    return end && std::exchange(ended_, *end) != *end;
  }

  /// Whether it is over.
  bool ask() {
    asked_ = steady_clock::now();
    const std::optional<job::SlurmState> state = job::ask_slurm(job_.id);
    pace_.asked(state ? state->state : "");
    if (!state) {
      if (asked_ - heard_ <= kMostJobSilence) return false;
      throw failure("no-slurm", "Slurm has not answered for ten minutes")
          .hint(fmt::format("job {} may still run: `scontrol show job {}`", job_.id, job_.id));
    }
    heard_ = asked_;
    if (is_news(*state)) say_state(*state);
    last_ = *state;
    return last_.is_over();
  }

  /// Another state, or another reason why it waits: that may be one which only a person mends.
  /// Those of a busy cluster come and go, and each is told once.
  bool is_news(const job::SlurmState& state) {
    const bool other = state.state != last_.state;
    if (other) told_.clear();
    const bool fresh = told_.insert(state.reason).second;
    return other || (fresh && state.state == "PENDING" && !state.reason.empty());
  }

  void say_state(const job::SlurmState& state) const {
    std::string text = fmt::format("job {} of Slurm: {}", job_.id, state.state);
    if (!state.reason.empty() && state.reason != "None") text += " (" + state.reason + ")";
    if (!state.nodes.empty()) text += " on " + state.nodes;
    note(text);
  }

  void say_json_end() const {
    if (!ui_.options.json) return;
    ui_.answer(
        job::job_end_json(job::record_of_job(job_.folder), last_.status(), tail_.last_end()));
  }

  const Ui& ui_;
  const SubmittedJob& job_;
  Tail tail_;
  job::AskingPace pace_;
  job::SlurmState last_;
  steady_clock::time_point asked_ = steady_clock::now() - kLookForEnd;
  steady_clock::time_point heard_ = steady_clock::now();
  steady_clock::time_point looked_ = steady_clock::now();
  std::string ended_;     ///< the end that its record had last
  int cancelled_by_ = 0;  ///< the signal that had us cancel it
  std::optional<steady_clock::time_point> leave_at_{};
  std::set<std::string> told_{};  ///< why it waits, since its state changed last
};

}  // namespace

std::optional<job::SlurmState> follow_in_slurm(const Ui& ui, const SubmittedJob& job,
                                               const SignalQueue& signals) {
  return Follower{ui, job}.to_the_end(signals);
}

}  // namespace mlenv::cli
