#include "runner/job/lead.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "images/store.hpp"
#include "runner/job/failure_text.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/job/job_json.hpp"
#include "runner/job/job_output.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/job/mpi.hpp"
#include "runner/job/plan_file.hpp"
#include "runner/job/variations.hpp"
#include "runner/launch/slurm_array.hpp"
#include "runner/launch/slurm_job.hpp"
#include "runner/launch/slurm_steps.hpp"
#include "runner/local/control.hpp"
#include "runner/local/machine.hpp"
#include "runner/node/program.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

void say(const std::string& text) { write_to_streams(false, "mlenv: " + printable(text) + "\n"); }

std::string variable_of(const char* name) {
  const auto all = caller_variables();
  const auto found = all.find(name);
  return found == all.end() ? "" : found->second;
}

/// Which job of its array this one is; nothing: it is none of an array.
std::optional<std::uint64_t> task_number() {
  const std::string text = variable_of("SLURM_ARRAY_TASK_ID");
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || *rest != '\0') return std::nullopt;
  return number;
}

/// This job alone: one of an array may have the array's number for its own.
std::string own_id() {
  const std::optional<std::uint64_t> number = task_number();
  return number ? array_task(variable_of("SLURM_ARRAY_JOB_ID"), *number)
                : variable_of("SLURM_JOB_ID");
}

/// How often Slurm has put this job back before.
int requeues() {
  const std::string text = variable_of("SLURM_RESTART_COUNT");
  int count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

/// The controller notices a lost node within seconds, and Slurm itself only minutes later: by then
/// the job would have failed. So it says so.
void wait_in_queue() {
  constexpr int kMost = 20;  // a node that only seems to be well ends here
  const std::string id = own_id();
  if (id.empty() || requeues() >= kMost) return;
  try {
    say("a node was lost: the job goes back into Slurm's queue");
    requeue_in_slurm(id);
  } catch (const Error& error) {
    say(error.what());
  }
}

/// The signal does not say what is behind it, and the job's own state may be any afterwards.
void say_what_ended_it(int signal) {
  const std::string id = own_id();
  if (signal == 0 || id.empty()) return;
  std::string why = "it was cancelled, or its nodes are for another job";
  try {
    const std::optional<SlurmState> state = ask_slurm(id);
    if (state && state->state == "RUNNING") why = "its time is nearly over";
  } catch (const Error&) {
    why = "it was cancelled, its nodes are for another job, or its time is nearly over";
  }
  say(fmt::format("Slurm told the job to end by {}: {}", signal_name(signal), why));
}

/// Where the job is one of many by the same script.
std::optional<JobVariation> own_variation(const fs::path& folder) {
  const fs::path path = folder / kVariationsFile;
  const std::optional<std::string> bytes = read_file_if_exists(path);
  if (!bytes) return std::nullopt;
  return parse_variation(*bytes, task_number().value_or(0), path.string());
}

int lead_job(const fs::path& folder, std::string_view version) {
  const fs::path path = folder / "job";
  PlanFile file = parse_plan_file(read_file(path), path.string(), version);
  DrivePlan& plan = file.plan;
  const std::optional<JobVariation> variation = own_variation(folder);
  RunStart start = plan.start;
  if (!plan.job.name.empty()) start.name = plan.job.name;
  if (variation) {
    start = variation_start(start, *variation);
    plan = plan_of(std::move(plan), *variation);
  }
  Store store{file.store};
  const std::unique_ptr<NodeStarter> starter =
      slurm_steps({variable_of("SLURM_JOB_NODELIST"), node_program()});
  start.launch = recorded_launch(plan.job, file.engine, starter->offers(), plan.code_digest);
  RunRecorder recorder{runs_folder(file.store), start};
  plan.id = recorder.id();
  const fs::path own = variation ? task_folder(folder, variation->recorded.number) : folder;
  write_file(own / "record", plan.id + "\n");
  JobOutput output{{false, false, file.json}, write_to_streams};
  const Fd control = listen_for_control(recorder.folder());
  DriveEvents events;
  events.control = control.get();
  events.notice = say;
  std::uint64_t attempts = 0;
  events.planned = [&](std::uint64_t attempt, const std::vector<Place>&, const JobPlan& ranks) {
    ++attempts;
    output.begin(told_apart(ranks), attempt);
  };
  events.line = [&](std::uint64_t, std::uint64_t rank, const std::string& line) {
    output.show(rank, line);
  };
  events.preflight = [&](const Preflight& found) {
    if (file.json) write_to_streams(true, render_preflight(found) + "\n");
    for (const std::string& note : preflight_notes(found)) say(note);
  };
  bool lost_node = requeues() > 0;  // the node may still seem to be well
  events.attempt_ended = [&](const AttemptResult& attempt) {
    output.flush();
    for (const std::string& line : failure_text(attempt)) write_to_streams(false, line + "\n");
    lost_node = attempt.failure && attempt.node_lost;
  };
  try {
    const JobOutcome outcome = drive_recorded(store, *starter, plan, recorder, std::move(events));
    if (lost_node && outcome.signal == 0 && outcome.ended_by == EndedBy::itself) wait_in_queue();
    if (file.json) write_to_streams(true, job_end_json(plan.id, outcome) + "\n");
    say_what_ended_it(outcome.signal);
    return outcome.exit_code;
  } catch (const Error& error) {
    output.flush();
    if (lost_node && error.code() == "no-node") wait_in_queue();
    if (file.json) write_to_streams(true, job_end_json(plan.id, attempts) + "\n");
    throw;
  }
}

}  // namespace

int lead(const fs::path& folder, std::string_view version) {
  try {
    return lead_job(folder, version);
  } catch (const Error& error) {
    say(error.what());
    if (!error.hint().empty()) say("what to do: " + error.hint());
    return kOwnFailureStatus;
  } catch (const std::exception& error) {
    say(error.what());
    return kOwnFailureStatus;
  }
}

}  // namespace mlenv::job
