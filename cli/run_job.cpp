#include "cli/run_job.hpp"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/scratch_folder.hpp"
#include "cli/interrupt.hpp"
#include "cli/pull_from.hpp"
#include "cli/run_devices.hpp"
#include "cli/run_job_matrix.hpp"
#include "cli/run_job_shown.hpp"
#include "cli/run_verdict.hpp"
#include "images/inspect/inspect.hpp"
#include "recipes/text.hpp"
#include "runner/job/agreement.hpp"
#include "runner/job/code.hpp"
#include "runner/job/detached_job.hpp"
#include "runner/job/failure_text.hpp"
#include "runner/job/job_json.hpp"
#include "runner/job/job_output.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/job/mpi.hpp"
#include "runner/job/patient_streams.hpp"
#include "runner/job/words.hpp"
#include "runner/launch/hosts.hpp"
#include "runner/local/control.hpp"
#include "runner/node/node_gpus.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

/// Sending, and a note for each thing that happens to nodes.
class JobShow {
 public:
  explicit JobShow(Ui& ui)
      : ui_(ui),
        output_({ui.color(), false, ui.options.json},
                [this](bool to_out, std::string_view text) { streams_.add(to_out, text); }) {}

  job::DriveEvents events() {
    job::DriveEvents events;
    events.notice = [this](const std::string& text) { note(text); };
    events.planned = [this](std::uint64_t attempt, const std::vector<job::Place>&,
                            const job::JobPlan& plan) {
      ++attempts_;
      output_.begin(job::told_apart(plan), attempt);
    };
    events.line = [this](std::uint64_t, std::uint64_t rank, const std::string& line) {
      output_.show(rank, line);
    };
    events.preflight = [this](const job::Preflight& found) { tell(found); };
    events.differ = [this](const job::Agreement& nodes) {
      if (ui_.options.json) streams_.add(true, job::render_agreement(nodes) + "\n");
    };
    events.attempt_ended = [this](const job::AttemptResult& attempt) {
      output_.flush();
      for (const std::string& line : job::failure_text(attempt)) say(line);
    };
    events.poll_for = [this](std::vector<pollfd>& fds) { streams_.add_to(fds); };
    events.polled = [this](const pollfd* seen) { streams_.write(seen); };
    return events;
  }
  JobShow(const JobShow&) = delete;
  JobShow& operator=(const JobShow&) = delete;
  ~JobShow() { finish(); }
  /// Waits until all is shown.
  void finish() {
    output_.flush();
    streams_.finish();
  }
  std::uint64_t attempts() const { return attempts_; }  ///< that have begun

 private:
  void note(const std::string& text) { say("mlenv: " + printable(text)); }
  /// After what was written before, and without waiting.
  void say(const std::string& line) {
    if (!ui_.options.quiet) streams_.add(false, line + "\n");
  }

  void tell(const job::Preflight& found) {
    if (ui_.options.json) streams_.add(true, job::render_preflight(found) + "\n");
    for (const std::string& line : job::preflight_notes(found)) note(line);
  }

  Ui& ui_;
  job::PatientStreams streams_;
  job::JobOutput output_;
  std::uint64_t attempts_ = 0;
};

void say_end(Ui& ui, const job::JobOutcome& outcome, const std::string& id) {
  if (outcome.exit_code == 0) return;
  ui.say(fmt::format("mlenv: the job ended with status {}; `mlenv runs show {}` tells more",
                     outcome.exit_code, id));
}

/// What looks like a secret does not travel, and a program may miss it.
void say_kept_back(const Ui& ui, const job::CodeSnapshot& code) {
  if (code.kept_back.empty()) return;
  constexpr std::size_t kShown = 4;
  std::vector<std::string> names;
  for (const std::string& path : code.kept_back) names.push_back("`" + printable(path) + "`");
  ui.say(
      fmt::format("mlenv: the code travels without {}: such names are those of secrets (`!{}` in "
                  "`.mlenvignore` takes it along)",
                  listed(names, kShown), printable(code.kept_back.front())));
}

/// The project as the nodes get it.
std::optional<std::string> snapshot(const Ui& ui, Store& store, const LocalRun& run,
                                    const JobChoice& choice,
                                    const std::vector<job::DataSet>& data) {
  if (!run.project) return std::nullopt;
  std::vector<fs::path> without;
  for (const job::DataSet& one : data) without.emplace_back(one.from);
  const bool of_commit = choice.code && !choice.code->revision.empty();
  const job::CodeSnapshot code =
      of_commit ? job::snapshot_of_commit(store, *run.project, choice.code->revision)
                : job::snapshot_of(store, *run.project, {}, without);
  say_kept_back(ui, code);
  return code.digest.str();
}

/// A lock does not tell of all that has a framework: Debian's packages, wheels by other names.
job::Framework framework_in(Ui& ui, const Image& image, const ImageFacts& facts) {
  const job::Framework known = job::framework_of(facts);
  if (known != job::Framework::none) return known;
  return job::framework_of(image_facts(ui.store(), image, ui.progress()));
}

/// What each node is asked for. By itself a job takes all GPUs where its image uses CUDA.
std::string gpus_of(const PreparedJob& job, const ImageFacts& facts) {
  if (job.choice.job.gpus_per_node) return std::to_string(*job.choice.job.gpus_per_node);
  if (!job.gpus.empty()) return job.gpus;
  if (const auto said = wants_gpus(job.image.settings)) {
    return *said ? std::string(job::kGpusIfAny) : "";
  }
  const bool has_cuda = facts.cuda_runtimes && !facts.cuda_runtimes->empty();
  return has_cuda ? std::string(job::kGpusIfAny) : "";
}

/// Each place once; written where one mount of it is.
std::vector<job::StorageUse> storage_in(const std::vector<Mount>& mounts) {
  std::vector<job::StorageUse> places;
  for (const Mount& mount : mounts) {
    if (mount.storage.empty()) continue;
    const std::string path = mount.source.string();
    const auto known = std::find_if(places.begin(), places.end(),
                                    [&](const job::StorageUse& one) { return one.path == path; });
    if (known == places.end()) {
      places.push_back({mount.storage, path, !mount.read_only});
    } else {
      known->writes = known->writes || !mount.read_only;
    }
  }
  return places;
}

}  // namespace

std::vector<job::Host> hosts_for(JobChoice& choice) {
  if (choice.engine != "ssh") return {};
  std::vector<job::Host> hosts = job::hosts_of(choice.hosts);
  choice.job.ranks_per_node = job::ranks_in_slots(hosts, choice.ranks);
  return hosts;
}

std::optional<std::string> code_of(const Ui& ui, const PreparedJob& job) {
  const ScratchFolder folder;
  Store store{folder.path() / "store"};
  const Interruption interruption{true};
  return snapshot(ui, store, job.run, job.choice, job.data);
}

int run_job(Ui& ui, PreparedJob job) {
  ImageFacts facts = facts_to_judge(ui, job.image, false);
  job.gpus = gpus_of(job, facts);
  if (!job.choice.framework_given) job.choice.job.framework = framework_in(ui, job.image, facts);
  if (job.start.checked) job.image_facts = std::move(facts);
  if (job.choice.script) return export_job(ui, std::move(job));
  const bool plan_alone = job.choice.dry_run && job.choice.engine != "slurm";
  if (job.matrix && !plan_alone) return run_job_matrix(ui, std::move(job));
  if (job.choice.engine == "slurm") return run_in_slurm(ui, std::move(job));
  const std::vector<job::Host> hosts = hosts_for(job.choice);
  if (job.start.detached && !job.choice.dry_run) return run_job_detached(ui, std::move(job), hosts);
  const std::unique_ptr<job::NodeStarter> starter = job::starter_of(
      job.choice.engine, fs::absolute(ui.store().root()), job.choice.job.nodes.most, hosts);
  if (job.choice.dry_run) return show_plan(ui, job, *starter);
  job::DrivePlan plan = drive_plan(ui, job);
  RunStart start = job.start;
  // What lies in the folder now is not what a commit's ranks run.
  if (job.choice.code && !job.choice.code->revision.empty()) start.project.reset();
  start.launch =
      job::recorded_launch(plan.job, job.choice.engine, starter->offers(), plan.code_digest);
  RunRecorder recorder{runs_folder(ui.store().root()), start};
  plan.id = recorder.id();
  const Fd control = listen_for_control(recorder.folder());
  JobShow show{ui};
  job::DriveEvents events = show.events();
  events.control = control.get();
  job::JobOutcome outcome;
  try {
    WaitEvents waits;
    waits.notice = [&](const std::string& text) { ui.say("mlenv: " + printable(text)); };
    waits.control = control.get();
    std::optional<job::JobOutcome> told =
        job::wait_recorded(ui.store().root(), start, recorder, std::move(waits));
    outcome = told ? *std::move(told)
                   : job::drive_recorded(ui.store(), *starter, plan, recorder, std::move(events));
  } catch (const Error&) {
    show.finish();
    if (ui.options.json) ui.answer(job::job_end_json(plan.id, show.attempts()));
    throw;
  }
  show.finish();
  if (ui.options.json) ui.answer(job::job_end_json(plan.id, outcome));
  say_end(ui, outcome, plan.id);
  return outcome.exit_code;
}

std::optional<std::string> pulled_from(const JobChoice& choice) {
  const std::string& from = choice.job.pull_from;
  if (from.empty() || choice.engine == "local" || choice.script) return std::nullopt;
  return from;
}

job::DrivePlan drive_plan(Ui& ui, PreparedJob& job) {
  job::DrivePlan plan;
  {
    const Interruption interruption{ui.options.quiet || ui.options.json};
    plan.code_digest = snapshot(ui, ui.store(), job.run, job.choice, job.data);
  }
  plan.job = job.choice.job;
  plan.image_digest = job.image.digest().str();
  if (const auto from = pulled_from(job.choice)) {
    plan.pull_from = pull_from_of(ui, {*from}, job.image);
  } else if (job.choice.script && !plan.job.pull_from.empty()) {
    ui.say("mlenv: the script carries the image: `pull-from` is not heeded");
  }
  plan.data = job.data;
  plan.run = std::move(job.run);
  if (plan.job.checkpoints) plan.run.mounts.push_back(*plan.job.checkpoints);
  plan.storage = storage_in(plan.run.mounts);
  plan.most_log_bytes = job.most_log_bytes;
  plan.gpus = job.gpus;
  plan.image_facts = std::move(job.image_facts);
  // Of the job alone: ranks have neither its name nor its project, which is this machine's.
  plan.start = job.start;
  plan.start.name.reset();
  plan.start.project.reset();
  plan.start.timeout_seconds.reset();
  return plan;
}

}  // namespace mlenv::cli
