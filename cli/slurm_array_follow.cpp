#include "cli/slurm_array_follow.hpp"

#include <poll.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/printable.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/launch/slurm_array.hpp"

namespace mlenv::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::minutes kMostArraySilence{10};
constexpr std::chrono::seconds kLookPause{1};
constexpr int kWait = 200;  // milliseconds
/// From the second signal: what is killed takes Slurm seconds to tell.
constexpr std::chrono::seconds kMostArrayLeaving{15};
constexpr std::string_view kNote = ".slurm";

/// How Slurm says that one ended that its queue has no more; without a state where it has forgotten
/// it: the record tells. Nullopt: it is not over, or nobody answers.
std::optional<job::SlurmState> ended_state(const std::string& task) {
  try {
    std::optional<job::SlurmState> state = job::ask_slurm(task);
    if (state && !state->state.empty() && !state->is_over()) state.reset();
    return state;
  } catch (const Error& error) {
    if (error.code() != "no-slurm") return std::nullopt;
  }
  return job::SlurmState{};
}

class ArrayFollower {
 public:
  ArrayFollower(Ui& ui, const FollowedArray& array, MatrixKeeper& keeper)
      : ui_(ui),
        array_(array),
        keeper_(keeper),
        runs_(runs_folder(ui.store().root())),
        open_(array.variations.begin(), array.variations.end()) {}

  ArrayEnd to_the_end(const SignalQueue& signals) {
    while (!open_.empty()) {
      pollfd waiting{signals.fd(), POLLIN, 0};
      (void)::poll(&waiting, 1, kWait);
      while (const int signal = signals.next()) {
        if (!heed(signal)) return end_;
      }
      if (leave_at_ && steady_clock::now() >= *leave_at_) {
        note(
            fmt::format("array {} of Slurm was cancelled; Slurm has not said yet that it is over: "
                        "`squeue -j {}` tells",
                        array_.id, array_.id));
        end_.left = true;
        return end_;
      }
      if (steady_clock::now() - looked_ >= kLookPause) look_at_records();
      keeper_.tick();
      if (steady_clock::now() - asked_ >= pace_.wait()) ask();
    }
    return end_;
  }

 private:
  struct Task {
    bool began = false;
    bool ending = false;   ///< its record has an end
    bool stopped = false;  ///< it ran when it was cancelled
    bool spared = false;   ///< it had ended by itself by then
    std::string run{};
  };

  fs::path folder_of(std::size_t variation) const {
    return job::task_folder(array_.folder, variation + 1);
  }
  std::string task_of(std::size_t variation) const {
    return job::array_task(array_.id, variation + 1);
  }
  void note(const std::string& text) const { ui_.say("mlenv: " + printable(text)); }

  /// False: nobody is there any more who follows it.
  bool heed(int signal) {
    pace_.hurry();
    try {
      if (signal == SIGUSR1 || signal == SIGUSR2) {
        pass_on(signal == SIGUSR1 ? "USR1" : "USR2");
      } else if (signal == SIGHUP) {
        note(
            fmt::format("array {} of Slurm goes on without this terminal: the same command with "
                        "`--resume` follows it, `scancel {}` ends it",
                        array_.id, array_.id));
        end_ = {signal, true};
        return false;
      } else {
        const bool again = end_.signal != 0;
        end_.signal = signal;
        cancel();
        if (again && !leave_at_) leave_at_ = steady_clock::now() + kMostArrayLeaving;
        if (again) kill();
      }
    } catch (const Error& error) {
      note(error.what());  // it may have just ended, which the next answer tells
    }
    return true;
  }

  /// To those that run: for one that waits scancel would try again and again for a minute.
  void pass_on(const std::string& signal) const {
    for (const auto& [variation, task] : tasks_) {
      if (!open_.contains(variation) || task.run.empty() || task.ending) continue;
      try {
        job::signal_in_slurm(task_of(variation), signal);
      } catch (const Error& error) {
        note(error.what());  // the others may go on
      }
    }
  }

  /// Those that wait are never begun, those that run end. Where Slurm does not take it just now, it
  /// is told again when it is asked next.
  void cancel() {
    if (!cancelled_ && !open_.empty()) try_to_cancel();
    if (!cancelled_ || end_.signal == 0 || std::exchange(said_, true)) return;
    note(
        fmt::format("interrupted: array {} of Slurm is cancelled: what runs is told to end, and "
                    "no more is started; once more kills",
                    array_.id));
  }

  void try_to_cancel() {
    look_at_records();
    const bool again = std::exchange(to_cancel_, true);
    try {
      job::cancel_in_slurm(array_.id);
    } catch (const Error& error) {
      if (!again) note(error.what());
      return;
    }
    cancelled_ = true;
    for (const std::size_t one : open_) {
      Task& task = tasks_[one];
      if (task.began) (task.ending ? task.spared : task.stopped) = true;
    }
  }

  void kill() const {
    if (!cancelled_) return;
    job::kill_in_slurm(array_.id);
    note(fmt::format("interrupted again: what still runs of array {} is killed", array_.id));
  }

  /// The shared store tells sooner than Slurm, and costs its daemon nothing.
  void look_at_records() {
    looked_ = steady_clock::now();
    for (const std::size_t one : open_) {
      Task& task = tasks_[one];
      if (!task.began) continue;
      std::string run = job::record_of_job(folder_of(one));
      if (run.empty()) continue;
      if (run != task.run) {
        task.run = std::move(run);
        task.ending = false;
        keeper_.recorded(one, task.run);
      }
      // One that was put back into the queue has none any more when it goes on.
      const bool was_ending =
          std::exchange(task.ending, fs::exists(runs_.folder_of(task.run) / "end.json"));
      if (task.ending && !was_ending) pace_.hurry();
    }
  }

  void ask() {
    asked_ = steady_clock::now();
    if (to_cancel_ && !cancelled_) cancel();
    const std::optional<job::ArrayQueue> queue = job::ask_slurm_array(array_.id);
    if (!queue) {
      pace_.asked("");
      if (asked_ - heard_ <= kMostArraySilence) return;
      throw failure("no-slurm", "Slurm has not answered for ten minutes")
          .hint(fmt::format("array {} may still run: `squeue -j {}`", array_.id, array_.id));
    }
    heard_ = asked_;
    std::string states;
    std::vector<std::pair<std::size_t, job::SlurmState>> over;
    for (const std::size_t one : open_) {
      const auto at = queue->find(one + 1);
      if (at == queue->end()) {
        if (auto state = ended_state(task_of(one))) over.emplace_back(one, *std::move(state));
        continue;
      }
      states += at->second.state + ' ';
      if (at->second.state != "PENDING") begin(one);
    }
    for (const auto& one : over) open_.erase(one.first);  // before one of them cancels the rest
    for (const auto& [one, state] : over) end(one, state);
    pace_.asked(states.empty() ? "-" : states);
  }

  void begin(std::size_t variation) {
    if (std::exchange(tasks_[variation].began, true)) return;
    keeper_.began(variation);
  }

  void end(std::size_t variation, const job::SlurmState& state) {
    const std::string run = job::record_of_job(folder_of(variation));
    const bool cancelled = state.state == "CANCELLED";
    if (run.empty() && (cancelled || end_.signal != 0)) {
      if (tasks_[variation].began) keeper_.ended({variation, 0, "", true, {}, {}, false});
      keeper_.given_up(variation);
      job::remove_job_folder(folder_of(variation));
      return;
    }
    begin(variation);
    if (run.empty()) say_lost(variation, state);
    const Task& task = tasks_[variation];
    const bool stopped = task.stopped || (cancelled && !task.spared);
    keeper_.ended({variation, 0, run, stopped, {}, {}, false});
    const std::string& became = keeper_.record().variations[variation].state;
    if (!array_.fail_fast || became == "done" || failed_) return;
    failed_ = true;
    cancel();
  }

  /// It ended without a word of ours: what it printed may tell why.
  void say_lost(std::size_t variation, const job::SlurmState& state) const {
    note(fmt::format("{}: Slurm's state of job {} is {}; what it printed is in `{}`",
                     matrix::shown_values(keeper_.record().variations[variation]),
                     task_of(variation), state.state.empty() ? "not known" : state.state,
                     (folder_of(variation) / "out").string()));
  }

  Ui& ui_;
  const FollowedArray& array_;
  MatrixKeeper& keeper_;
  RunRecords runs_;
  std::set<std::size_t> open_;
  std::map<std::size_t, Task> tasks_;
  bool failed_ = false;
  bool to_cancel_ = false;
  bool cancelled_ = false;
  bool said_ = false;  ///< that it is
  ArrayEnd end_;
  std::optional<steady_clock::time_point> leave_at_{};
  job::AskingPace pace_;
  steady_clock::time_point asked_ = steady_clock::now() - kMostArraySilence;
  steady_clock::time_point heard_ = steady_clock::now();
  steady_clock::time_point looked_ = steady_clock::now() - kLookPause;
};

}  // namespace

ArrayEnd follow_array(Ui& ui, const FollowedArray& array, MatrixKeeper& keeper,
                      const SignalQueue& signals) {
  return ArrayFollower{ui, array, keeper}.to_the_end(signals);
}

void note_array(const fs::path& results, const FollowedArray& array) {
  write_file(results / kNote, array.id + "\n" + array.folder.string() + "\n");
}

void forget_array(const fs::path& results) noexcept {
  std::error_code error;
  fs::remove(results / kNote, error);
}

FollowedArray array_at(const fs::path& results, const fs::path& store) {
  FollowedArray array;
  const std::optional<std::string> text =
      read_small_file_if_exists(results / kNote, size_limit::kJobFile);
  if (!text) return array;
  const std::vector<std::string_view> lines = split(*text, '\n');
  if (lines.size() < 2) return array;
  // Runs may write there: an id of Slurm's, and a folder of this store's jobs, or it is not ours.
  const fs::path noted{std::string(lines[1])};
  const bool is_ours = !lines[0].empty() &&
                       std::all_of(lines[0].begin(), lines[0].end(), is_digit) &&
                       is_time_name(noted.filename().string());
  if (!is_ours) {
    throw failure("no-slurm", "`{}` is not what mlenv wrote", (results / kNote).string())
        .hint("remove it if no array of Slurm works on this matrix any more");
  }
  array.id = lines[0];
  array.folder = job::jobs_folder(store) / noted.filename();
  const std::optional<job::ArrayQueue> queue = job::ask_slurm_array(array.id);
  if (!queue) {
    throw failure("no-slurm", "Slurm does not say what became of array {}", array.id)
        .hint("once it answers again, `--resume` goes on");
  }
  for (const auto& [number, state] : *queue) array.variations.push_back(number - 1);
  return array;
}

}  // namespace mlenv::cli
