#include "cli/run_after.hpp"

#include <fcntl.h>
#include <poll.h>
#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "cli/command_tree.hpp"
#include "cli/running.hpp"
#include "cli/settings.hpp"
#include "cli/slurm_jobs.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"
#include "runner/after/after.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/launch/slurm_job.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kRelease = "__release";

/// Of a name: one that waits in Slurm's queue comes before runs that had it earlier.
std::optional<std::string> waiting_in_slurm(const std::string& word) {
  const std::optional<LeftJob> job = left_job(store_folder(), word);
  if (!job || !job->record.empty() || job->name != word) return std::nullopt;
  const bool waits = look_at_run(store_folder(), job->id).state == AwaitedRun::State::goes_on;
  return waits ? std::optional(job->id) : std::nullopt;
}

/// A job of Slurm's by its folder: its record changes each time that Slurm starts it again.
std::string id_of(const RunRecords& records, const std::string& word) {
  if (const auto waiting = waiting_in_slurm(word)) return *waiting;
  std::string known = word;
  try {
    known = records.find(word);
  } catch (const Error& error) {
    const std::optional<LeftJob> job = left_job(store_folder(), word);
    if (error.code() != "no-run" || !job) throw;
    return job->id;
  }
  const std::optional<LeftJob> job = left_job(store_folder(), known);
  return job ? job->id : known;
}

/// Where what the job prints would be.
void write_down(const fs::path& folder, const std::string& text) {
  const Fd out{::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  if (out) (void)write_quietly(out.get(), "mlenv: " + printable(text) + "\n");
}

/// Whether it is over; asked as seldom as Slurm likes.
class JobIsOver {
 public:
  explicit JobIsOver(std::string slurm) : slurm_(std::move(slurm)) {}
  bool operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    bool over = false;
    try {
      const std::optional<job::SlurmState> state = job::ask_slurm(slurm_);
      pace_.asked(state ? state->state : "");
      over = state && state->is_over();
    } catch (const Error& error) {
      pace_.asked("");
      over = error.code() == "no-slurm";  // and not where it takes its time
    }
    next_ = now + pace_.wait();
    return over;
  }

 private:
  std::string slurm_;
  job::AskingPace pace_;
  std::chrono::steady_clock::time_point next_;
};

/// Until Slurm has done it to the job that it holds, however long its daemon is away, or nothing is
/// left to do it to.
void insist(const std::string& slurm, void (*work)(const std::string&)) {
  for (job::AskingPace pace;; pace.asked("")) {
    try {
      return work(slurm);
    } catch (const Error& error) {
      log::debug("{}", error.what());
    }
    try {
      const std::optional<job::SlurmState> state = job::ask_slurm(slurm);
      if (state && state->state != "PENDING") return;
    } catch (const Error& error) {
      if (error.code() == "no-slurm") return;
    }
    (void)::poll(nullptr, 0, static_cast<int>(pace.wait().count()));
  }
}

void release(const fs::path& folder, const std::vector<std::string>& ids) {
  const std::string slurm = job::slurm_id_of_job(folder);
  WaitEvents events;
  events.is_needless = JobIsOver{slurm};
  try {
    const fs::path store = folder.parent_path().parent_path();
    const std::optional<RunOutcome> told = wait_for_runs(store, ids, events);
    if (!told) return insist(slurm, job::release_in_slurm);
    if (told->ended_by != EndedBy::itself) return;  // there is nothing to release
    write_down(folder, "whoever was to release this job was told to end: it is cancelled");
  } catch (const Error& error) {
    write_down(folder, error.what());
  }
  insist(slurm, job::cancel_in_slurm);
}

}  // namespace

void add_after_option(CLI::App& app, std::vector<std::string>& words) {
  CLI::Option* const option =
      app.add_option("--after", words, "start it when that run has ended well; may be repeated")
          ->type_name("RUN");
  take_one_word(option);
  take_word_of(option, WordKind::run);
}

std::vector<std::string> runs_before(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const RunRecords records = run_records();
  std::vector<std::string> ids;
  for (const std::string& word : words) {
    const std::string id = id_of(records, word);
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  (void)not_over(store_folder(), ids);
  return ids;
}

std::optional<RunOutcome> wait_before(Ui& ui, const std::vector<std::string>& ids, int control,
                                      const std::function<void(bool)>& waiting) {
  WaitEvents events;
  events.notice = [&](const std::string& text) { ui.say("mlenv: " + printable(text)); };
  events.waiting = waiting;
  events.control = control;
  return wait_for_runs(ui.store().root(), ids, events);
}

SlurmAfter slurm_after(const fs::path& store, const std::vector<std::string>& ids) {
  SlurmAfter found;
  std::string jobs;
  for (const std::string& id : not_over(store, ids)) {
    const std::string slurm = job::slurm_id_of_job(job::jobs_folder(store) / id);
    if (slurm.empty()) {
      found.others.push_back(id);
    } else {
      jobs += ":" + slurm;
      found.in_slurm.push_back(id);
    }
  }
  if (!jobs.empty()) found.words = {"--dependency=afterok" + jobs, "--kill-on-invalid-dep=yes"};
  return found;
}

void release_after(const fs::path& folder, const std::vector<std::string>& ids) {
  std::vector<std::string> words = {own_executable().string(), std::string(kRelease),
                                    folder.string()};
  words.insert(words.end(), ids.begin(), ids.end());
  start_detached(Purpose{"run-after"}, words);
}

std::optional<int> release_main(int argc, char** argv) {
  constexpr int kWords = 3;
  if (argc < kWords || argv[1] != kRelease) return std::nullopt;
  try {
    release(argv[2], {argv + kWords, argv + argc});
  } catch (const std::exception& error) {
    write_down(argv[2], error.what());
    return 1;
  }
  return 0;
}

}  // namespace mlenv::cli
