#include "runner/job/job_folders.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/digest_scan.hpp"
#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/text.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

constexpr std::chrono::hours kFoldersKept{7 * 24};
constexpr const char* kScriptFile = "job.sh";
constexpr const char* kNeedsFile = "needs";

/// A job that has not begun may still wait; whether Slurm has forgotten it.
bool never_began(const fs::path& folder, std::chrono::system_clock::time_point when,
                 SlurmIds& ids) {
  std::error_code error;
  const auto made = fs::last_write_time(folder, error);
  if (error || std::chrono::file_clock::to_sys(made) >= when) return false;
  const std::string slurm = ids.of(folder);
  if (slurm.empty()) return ids.heard();  // it was never submitted
  try {
    const std::optional<SlurmState> state = ask_slurm(slurm);
    return state && state->is_over();
  } catch (const Error& asked) {
    return says_unknown(asked);
  }
}

/// By its name, `ID` or `ID.NUMBER`, and its owner.
bool is_job_folder(const fs::path& folder) {
  constexpr std::size_t kId = 22;
  const std::string name = folder.filename().string();
  const std::string_view id = std::string_view(name).substr(0, kId);
  const std::string_view rest = std::string_view(name).substr(id.size());
  const bool is_task =
      rest.size() > 1 && rest.front() == '.' && std::all_of(rest.begin() + 1, rest.end(), is_digit);
  return is_time_name(id) && (rest.empty() || is_task) && is_own_folder(folder);
}

/// Whether the job in the folder ended before `when`.
bool ended_before(const fs::path& folder, const RunRecords& records,
                  std::chrono::system_clock::time_point when, SlurmIds& ids) {
  const std::string id = record_of_job(folder);
  if (id.empty()) return never_began(folder, when, ids);
  std::error_code unknown;
  if (!fs::exists(records.folder_of(id), unknown)) return !unknown;
  const RunRecord record = records.read_brief(id);
  if (!record.end) return false;
  const auto ended = parse_utc(record.end->ended);
  return ended && *ended < when;
}

/// The same; a record that cannot be read tells nothing.
bool has_ended_before(const fs::path& folder, const RunRecords& records,
                      std::chrono::system_clock::time_point when, SlurmIds& ids) {
  try {
    return ended_before(folder, records, when, ids);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

JobFolder::JobFolder(fs::path path) : path_(std::move(path)) {
  make_own_folders(path_);
  fs::permissions(path_, fs::perms::owner_all);
}

JobFolder::~JobFolder() {
  if (!kept_) remove_job_folder(path_);
}

void JobFolder::need(const std::vector<std::string>& digests) const {
  std::string text;
  for (const std::string& digest : digests) text += digest + "\n";
  write_file(path_ / kNeedsFile, text);
}

fs::path jobs_folder(const fs::path& store) { return store / "jobs"; }

fs::path task_folder(const fs::path& folder, std::uint64_t number) {
  return folder.string() + "." + std::to_string(number);
}

std::string record_of_job(const fs::path& folder) {
  const std::optional<std::string> text = read_file_if_exists(folder / "record");
  return text ? std::string(trim(*text)) : std::string{};
}

/// One whose folder and script it is: a store may have been named by another path then.
const QueuedScript* SlurmIds::in_queue(const fs::path& script) {
  if (!std::exchange(asked_, true)) queue_ = ask_slurm_scripts();
  if (!queue_) return nullptr;
  const fs::path own = script.parent_path().filename() / script.filename();
  const auto found = std::find_if(queue_->begin(), queue_->end(), [&](const auto& one) {
    const fs::path path = one.first;
    return path.parent_path().filename() / path.filename() == own;
  });
  return found == queue_->end() ? nullptr : &found->second;
}

std::string SlurmIds::of(const fs::path& folder) {
  const std::optional<std::string> text = read_file_if_exists(folder / "slurm");
  if (text) return text->substr(0, text->find('\n'));
  if (fs::exists(folder / kVariationsFile)) return {};  // what an array's jobs share is none
  const bool alone = fs::exists(folder / kScriptFile);
  const fs::path script = (alone ? folder : fs::path(folder).replace_extension()) / kScriptFile;
  if (!alone && !fs::exists(script)) return {};
  const QueuedScript* const job = in_queue(script);
  if (job == nullptr) return {};
  return alone ? job->id : job->id + "_" + folder.extension().string().substr(1);
}

std::string SlurmIds::state_of(const fs::path& folder, const std::string& id) {
  const QueuedScript* const job = in_queue(folder / kScriptFile);
  return job != nullptr && job->id == id ? job->state : std::string{};
}

std::string slurm_id_of_job(const fs::path& folder) { return SlurmIds{}.of(folder); }

void note_slurm_id(const fs::path& folder, const std::string& id, const std::string& name) {
  write_file(folder / "slurm", id + "\n" + name + "\n");
}

std::vector<Digest> needed_by_jobs(const fs::path& store) {
  std::vector<Digest> needs;
  for (const fs::path& folder : list_folder(jobs_folder(store))) {
    add_digests_in_file(folder / kNeedsFile, needs);
  }
  return needs;
}

void remove_job_folder(const fs::path& folder) noexcept {
  try {
    remove_tree(folder);
  } catch (const std::exception&) {
    return;  // the next submission tries again
  }
}

void sweep_job_folders(const fs::path& store, std::chrono::system_clock::time_point now) {
  const RunRecords records{runs_folder(store)};
  SlurmIds ids;
  std::error_code ignored;
  std::vector<fs::path> old;
  std::vector<fs::path> arrays;
  std::set<std::string> with_tasks;
  for (const auto& entry : fs::directory_iterator(jobs_folder(store), ignored)) {
    const fs::path& path = entry.path();
    std::error_code unknown;
    if (!is_job_folder(path)) continue;
    if (fs::exists(path / kVariationsFile, unknown)) {
      arrays.push_back(path);
    } else if (!unknown && has_ended_before(path, records, now - kFoldersKept, ids)) {
      old.push_back(path);
    } else {
      with_tasks.insert(path.stem().string());
    }
  }
  for (const fs::path& folder : old) remove_job_folder(folder);
  for (const fs::path& folder : arrays) {
    if (!with_tasks.contains(folder.filename().string())) remove_job_folder(folder);
  }
}

}  // namespace mlenv::job
