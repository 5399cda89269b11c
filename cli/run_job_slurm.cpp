#include <chrono>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/json.hpp"
#include "base/own_entries.hpp"
#include "cli/run_after.hpp"
#include "cli/run_job.hpp"
#include "cli/run_job_data.hpp"
#include "cli/run_job_shown.hpp"
#include "cli/slurm_follow.hpp"
#include "cli/slurm_submit.hpp"
#include "recipes/text.hpp"
#include "runner/after/after.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/node/program.hpp"
#include "runner/node/version.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::cli {

static_assert(kHungUp == 128 + SIGHUP);

fs::path shared_program(const fs::path& store) {
  return store / "node" / Digest::of(read_file(job::node_program())).hex() / "mlenv-node";
}

void make_shared_program(const fs::path& path) {
  if (!fs::exists(path)) {
    make_own_folders(path.parent_path());
    write_file(path, read_file(job::node_program()));
  }
  fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec);
}

job::SlurmScript batch_script(const PreparedJob& job, const fs::path& folder,
                              const fs::path& program, std::vector<std::string> words) {
  for (const std::string& one : job.choice.site) {
    if (words.empty() || !one.starts_with("--dependency")) continue;
    throw usage_error("usage", "`--slurm-option={}` and `--after` do not go together", one)
        .because("sbatch would take the last one alone")
        .hint("leave one of them out");
  }
  words.insert(words.end(), job.choice.site.begin(), job.choice.site.end());
  return {job.choice.job.name.empty() ? job.start.image.name : job.choice.job.name,
          (folder / "out").string(),
          std::move(words),
          {program.string(), "lead", folder.string()}};
}

int show_script(const Ui& ui, const PreparedJob& job, const std::string& text) {
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.job-script/1"},
                         {"engine", "slurm"},
                         {"image", job.image.digest().str()},
                         {"job", summary_json(ui, job)},
                         {"script", text}}));
    return 0;
  }
  std::string whole =
      text + "\n# What the controller is given, in the file `job` of that folder:\n";
  for (const std::string& line : summary_lines(ui, job)) whole += "#   " + line + "\n";
  ui.answer_exactly(whole.substr(0, whole.size() - 1));
  return 0;
}

/// What waits for runs outside of Slurm is held there, in the background; else it is not yet
/// submitted.
std::string script_of(const Ui& ui, const PreparedJob& job, const fs::path& program,
                      const fs::path& folder, SlurmAfter after) {
  const bool waits = !after.others.empty();
  if (waits && job.start.detached) after.words.emplace_back("--hold");
  if (waits && job.choice.dry_run) {
    ui.say(fmt::format("mlenv: {} only once {} has ended well",
                       job.start.detached ? "released" : "submitted", join(after.others, ", ")));
  }
  return job::slurm_script(job.choice.job,
                           batch_script(job, folder, program, std::move(after.words)));
}

job::PlanFile slurm_plan(Ui& ui, PreparedJob& job, const fs::path& store) {
  job::PlanFile file;
  file.version = job::own_version();
  file.engine = "slurm";
  file.store = store;
  file.json = ui.options.json;
  file.plan = drive_plan(ui, job);
  return file;
}

std::vector<std::string> needs_of(const job::DrivePlan& plan) {
  std::vector<std::string> needs = {plan.image_digest};
  if (plan.code_digest) needs.push_back(*plan.code_digest);
  for (const job::DataSet& one : plan.data) {
    if (!one.list.empty()) needs.push_back(one.list);
  }
  return needs;
}

Error taken_back(Error error, std::string_view what, const std::string& id) {
  try {
    job::cancel_in_slurm(id);
    return std::move(error).because(fmt::format("{} {} of Slurm was cancelled", what, id));
  } catch (const Error&) {
    return std::move(error).because(
        fmt::format("{} {} of Slurm goes on, `scancel {}` ends it", what, id, id));
  }
}

namespace {

/// With the job's folder, which goes again where Slurm does not take it.
SubmittedJob submit_plan(Ui& ui, const fs::path& path, const job::PlanFile& file,
                         const std::string& script) {
  job::JobFolder folder{path};
  folder.need(needs_of(file.plan));
  write_file(path / "job", job::render_plan_file(file));
  write_file(path / "job.sh", script);
  SubmittedJob submitted{job::submit_to_slurm(path / "job.sh"), path, file.store};
  folder.keep();
  try {
    job::note_slurm_id(path, submitted.id, file.plan.job.name);
  } catch (Error& error) {
    throw taken_back(std::move(error), "job", submitted.id);
  }
  ui.say(fmt::format("mlenv: job {} of Slurm: submitted, its output goes to {}", submitted.id,
                     (path / "out").string()));
  return submitted;
}

/// Its id is that of its folder: a record it has once it runs.
int leave_in_slurm(const Ui& ui, const fs::path& folder, const std::string& name) {
  const std::string id = folder.filename().string();
  if (!ui.options.json) {
    ui.answer(id);
    return 0;
  }
  BegunRun begun{id, std::nullopt, std::nullopt};
  if (!name.empty()) begun.name = name;
  answer_started(ui, begun);
  return 0;
}

}  // namespace

int run_in_slurm(Ui& ui, PreparedJob job) {
  const auto now = std::chrono::system_clock::now();
  const fs::path store = fs::absolute(ui.store().root());
  const fs::path folder = job::jobs_folder(store) / new_run_id(now);
  const fs::path program = shared_program(store);
  SlurmAfter after = slurm_after(store, job.start.after);
  if (job.choice.dry_run) {
    note_data(ui, job.data);
    return show_script(ui, job, script_of(ui, job, program, folder, std::move(after)));
  }
  job::sweep_job_folders(store, now);
  make_shared_program(program);
  const job::PlanFile file = slurm_plan(ui, job, store);
  const std::vector<std::string> others = after.others;
  if (!job.start.detached && !others.empty()) {
    if (const auto told = wait_before(ui, others)) return told->exit.code;
    after = slurm_after(store, after.in_slurm);  // those are over, and their records may have gone
  }
  const std::string script = script_of(ui, job, program, folder, std::move(after));
  const SignalQueue signals{
      SignalQueue::Impatience::ends};  // from before there is a job that could be left alone
  const SubmittedJob submitted = submit_plan(ui, folder, file, script);
  if (job.start.detached) {
    if (!others.empty()) release_after(folder, others);
    return leave_in_slurm(ui, folder, file.plan.job.name);
  }
  const std::optional<job::SlurmState> end = follow_in_slurm(ui, submitted, signals);
  if (!end) return kHungUp;
  const std::string record = job::record_of_job(folder);
  if (record.empty()) {
    if (end->status() != 0) (void)not_over(store, job.start.after);
    if (!fs::exists(folder / "out")) job::remove_job_folder(folder);  // it never began
  } else if (end->status() != 0) {
    ui.say(fmt::format("mlenv: the job ended with status {}; `mlenv runs show {}` tells more",
                       end->status(), record));
  }
  return end->status();
}

}  // namespace mlenv::cli
