#include "cli/slurm_jobs.hpp"

#include <poll.h>
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/settings.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/job/job_progress.hpp"
#include "runner/job/plan_file.hpp"
#include "runner/job/variations.hpp"
#include "runner/launch/slurm_array.hpp"
#include "runner/launch/slurm_job.hpp"
#include "runner/node/version.hpp"

namespace mlenv::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kFewestLetters = 4;
constexpr std::chrono::minutes kMostQueueSilence{10};
constexpr std::string_view kNoSlurm = "no-slurm";

/// Of one that nobody noted; a task of an array goes without.
std::string name_in_plan(const fs::path& folder) {
  const std::optional<std::string> plan = read_file_if_exists(folder / "job");
  if (!plan) return {};
  try {
    return job::parse_plan_file(*plan, "", job::own_version()).plan.job.name;
  } catch (const Error&) {
    return {};
  }
}

/// nullopt: of no job that Slurm has taken.
std::optional<LeftJob> read_job(const fs::path& folder, job::SlurmIds& ids) {
  LeftJob job;
  job.slurm = ids.of(folder);
  if (job.slurm.empty()) return std::nullopt;
  job.id = folder.filename().string();
  job.folder = folder;
  if (const auto text = read_file_if_exists(folder / "slurm")) {
    const std::vector<std::string_view> lines = split(*text, '\n');
    if (lines.size() > 1) job.name = lines[1];
  } else {
    job.name = name_in_plan(folder);
  }
  job.record = job::record_of_job(folder);
  return job;
}

/// Oldest first: ids begin with their time.
std::vector<LeftJob> all_jobs(const fs::path& store, job::SlurmIds& ids) {
  std::vector<LeftJob> jobs;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(job::jobs_folder(store), ignored)) {
    if (std::optional<LeftJob> job = read_job(entry.path(), ids)) jobs.push_back(*std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const LeftJob& a, const LeftJob& b) { return a.id < b.id; });
  return jobs;
}

/// Of a job of an array: its number there.
std::optional<std::uint64_t> number_in_array(const LeftJob& job) {
  const std::size_t at = job.slurm.find('_');
  std::uint64_t number = 0;
  const char* const end = job.slurm.data() + job.slurm.size();
  if (at == std::string::npos) return std::nullopt;
  const auto [rest, error] = std::from_chars(job.slurm.data() + at + 1, end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

/// What Slurm still has, asked once for all jobs of an array.
class Queues {
 public:
  /// Throws `no-slurm`, as where it has forgotten the job.
  bool has(const LeftJob& job) {
    const std::optional<std::uint64_t> number = number_in_array(job);
    if (!number) {
      const std::optional<job::SlurmState> state = job::ask_slurm(job.slurm);
      return state && !state->is_over();
    }
    const std::string array = job.slurm.substr(0, job.slurm.find('_'));
    auto at = arrays_.find(array);
    if (at == arrays_.end()) {
      at = arrays_.emplace(array, job::ask_slurm_array(array).value_or(job::ArrayQueue{})).first;
    }
    return at->second.contains(*number);
  }

 private:
  std::map<std::string, job::ArrayQueue> arrays_;
};

/// As ask_slurm; nullopt, too, where its program takes too long.
std::optional<job::SlurmState> ask_patiently(const std::string& slurm) {
  try {
    return job::ask_slurm(slurm);
  } catch (const Error& error) {
    if (error.code() != "timeout") throw;
    return std::nullopt;
  }
}

/// Whether Slurm has it, whose record nobody holds: one that has ended for good has no progress.
bool may_go_on(const LeftJob& job) {
  if (!job::read_progress(job.folder)) return false;
  try {
    const std::optional<job::SlurmState> state = ask_patiently(job.slurm);
    return state && !state->is_over();
  } catch (const Error&) {
    return false;  // it knows it no more, or cannot be asked here
  }
}

/// Calls `done` with what Slurm says until that is true.
template <class Done>
void ask_until(const LeftJob& job, Done&& done) {
  job::AskingPace pace;
  while (true) {
    const std::optional<job::SlurmState> state = ask_patiently(job.slurm);
    pace.asked(state ? state->state : "");
    if (done(state)) return;
    (void)::poll(nullptr, 0, static_cast<int>(pace.wait().count()));
  }
}

std::string when_begun(Ui& ui, const LeftJob& job) {
  ui.say(fmt::format("mlenv: job {} of Slurm waits to begin", job.slurm));
  std::string record;
  ask_until(job, [&](const std::optional<job::SlurmState>& state) {
    record = job::record_of_job(job.folder);
    if (!record.empty() || !state || !state->is_over()) return !record.empty();
    throw failure("run-lost", "job `{}` never began", job.id)
        .because(fmt::format("Slurm's state of its job {} is {}", job.slurm, state->state))
        .hint(fmt::format("what it printed is in `{}`", (job.folder / "out").string()));
  });
  return record;
}

}  // namespace

std::optional<LeftJob> left_job(const fs::path& store, std::string_view word) {
  std::optional<LeftJob> found;
  job::SlurmIds ids;
  for (const LeftJob& job : all_jobs(store, ids)) {
    if (job.id == word || job.record == word) return job;
    const bool part =
        word.size() >= kFewestLetters && (job.id.starts_with(word) || job.id.ends_with(word));
    const bool by_name = job.record.empty() && !job.name.empty() && job.name == word;
    if (part || by_name) found = job;  // the newest
  }
  return found;
}

namespace {

/// As a record that has not begun.
RunRecord record_of(const LeftJob& job) {
  const std::optional<std::uint64_t> number = number_in_array(job);
  const fs::path folder = number ? fs::path(job.folder).replace_extension() : job.folder;
  const fs::path path = folder / "job";
  const job::PlanFile file =
      job::parse_plan_file(read_file(path), path.string(), job::own_version());
  RunRecord record;
  record.state = "queued";
  record.start = file.plan.start;
  if (number) {
    const fs::path all = folder / job::kVariationsFile;
    record.start = job::variation_start(
        record.start, job::parse_variation(read_file(all), *number, all.string()));
  }
  record.start.id = job.id;
  record.start.started = utc_text(std::chrono::file_clock::to_sys(fs::last_write_time(path)));
  if (!job.name.empty()) record.start.name = job.name;
  return record;
}

/// Whether it was put back, and waits to go on with its record, which nobody holds.
bool waits_again(const LeftJob& job, const RunRecords& records, job::SlurmIds& ids,
                 Queues& queues) {
  if (records.goes_on(job.record) || !job::read_progress(job.folder)) return false;
  if (number_in_array(job)) return queues.has(job);
  const std::string state = ids.state_of(job.folder, job.slurm);
  return state == "PENDING" || state == "CONFIGURING" || state == "RUNNING";
}

}  // namespace

std::vector<RunRecord> waiting_jobs(const RunRecords& records) {
  std::vector<RunRecord> waiting;
  job::SlurmIds ids;
  Queues queues;
  for (const LeftJob& job : all_jobs(store_folder(), ids)) {
    try {
      if (job.record.empty()) {
        if (queues.has(job)) waiting.push_back(record_of(job));
      } else if (waits_again(job, records, ids, queues)) {
        waiting.push_back(records.read_brief(job.record));
        waiting.back().state = "queued";
        waiting.back().end.reset();
      }
    } catch (const Error&) {
      continue;  // Slurm has forgotten it
    }
  }
  return waiting;
}

std::string begun_run(Ui& ui, const RunRecords& records, const std::string& word, bool wait) {
  try {
    return records.find(word);
  } catch (const Error& error) {
    if (error.code() != "no-run") throw;
    const std::optional<LeftJob> job = left_job(store_folder(), word);
    if (!job) throw;
    if (!job->record.empty()) return job->record;
    if (wait) return when_begun(ui, *job);
    throw refusal("run-queued", "job `{}` has not begun", job->id)
        .because(fmt::format("it is job {} of Slurm, and waits for its nodes", job->slurm))
        .hint(fmt::format("`mlenv logs -f {0}` and `mlenv wait {0}` wait, too", job->id));
  }
}

std::optional<LeftJob> job_in_slurm(const RunRecords& records, const std::string& word) {
  std::string known = word;
  try {
    known = records.find(word);
  } catch (const Error& error) {
    if (error.code() != "no-run") throw;
  }
  std::optional<LeftJob> job = left_job(store_folder(), known);
  if (!job || job->record.empty() || records.goes_on(job->record)) return job;
  return may_go_on(*job) ? job : std::nullopt;
}

void wait_in_slurm(const LeftJob& job) {
  try {
    ask_until(
        job, [](const std::optional<job::SlurmState>& state) { return state && state->is_over(); });
  } catch (const Error& error) {
    if (error.code() != kNoSlurm || job::record_of_job(job.folder).empty()) throw;
  }
}

SlurmRunLife::SlurmRunLife(const Ui& ui, const RunRecords& records, std::string id)
    : ui_(ui), records_(records), id_(std::move(id)), job_(left_job(store_folder(), id_)) {
  if (job_ && job_->record != id_) job_.reset();
}

bool SlurmRunLife::goes_on() {
  if (!records_.goes_on(id_)) return job_ && waits_again();
  heard_ = steady_clock::now();
  next_ = {};
  pace_.hurry();
  told_ = false;
  return true;
}

bool SlurmRunLife::waits_again() {
  const auto now = steady_clock::now();
  if (now < next_) return true;
  // One that ended for good has no progress, and should it be put back all the same another record.
  if (job::record_of_job(job_->folder) != id_ || !job::read_progress(job_->folder)) return false;
  std::optional<job::SlurmState> state;
  try {
    state = ask_patiently(job_->slurm);
  } catch (const Error& error) {
    if (job::says_unknown(error)) return false;
    ui_.say(fmt::format("mlenv: whether Slurm starts job {} again is not known: {}", job_->slurm,
                        error.frames().front()));
    return false;
  }
  if (state && state->is_over()) return false;
  if (state || heard_ == steady_clock::time_point{}) heard_ = now;
  if (now - heard_ > kMostQueueSilence) {
    ui_.say(fmt::format("mlenv: Slurm has not answered for ten minutes; job {} may begin again",
                        job_->slurm));
    return false;
  }
  pace_.asked(state ? state->state : "");
  next_ = now + pace_.wait();
  if (state && state->state == "PENDING" && !std::exchange(told_, true)) {
    ui_.say(fmt::format("mlenv: job {} of Slurm waits to begin again", job_->slurm));
  }
  return true;
}

void SlurmRunLife::wait_for_end() {
  while (goes_on()) {
    if (records_.goes_on(id_)) {
      records_.wait_for_end(id_);
    } else {
      (void)::poll(nullptr, 0, static_cast<int>(pace_.wait().count()));
    }
  }
}

}  // namespace mlenv::cli
