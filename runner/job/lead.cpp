#include "runner/job/lead.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "images/store.hpp"
#include "runner/job/job_json.hpp"
#include "runner/job/job_output.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/job/plan_file.hpp"
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

int lead_job(const fs::path& folder, std::string_view version) {
  const fs::path path = folder / "job";
  PlanFile file = parse_plan_file(read_file(path), path.string(), version);
  DrivePlan& plan = file.plan;
  Store store{file.store};
  const std::unique_ptr<NodeStarter> starter =
      slurm_steps({variable_of("SLURM_JOB_NODELIST"), node_program()});
  RunStart start = plan.start;
  if (!plan.job.name.empty()) start.name = plan.job.name;
  start.launch = recorded_launch(plan.job, file.engine, starter->offers(), plan.code_digest);
  RunRecorder recorder{runs_folder(file.store), start};
  plan.id = recorder.id();
  write_file(folder / "record", plan.id + "\n");
  JobOutput output{{}, write_to_streams};
  const Fd control = listen_for_control(recorder.folder());
  DriveEvents events;
  events.control = control.get();
  events.notice = say;
  events.planned = [&](std::uint64_t, const std::vector<Place>&, const JobPlan& ranks) {
    output.begin(ranks.ranks.size());
  };
  events.line = [&](std::uint64_t attempt, std::uint64_t rank, const std::string& line) {
    if (!file.json) return output.show(rank, line);
    write_to_streams(true, log_line_json(attempt, rank, line) + "\n");
  };
  events.preflight = [&](const Preflight& found) {
    if (file.json) write_to_streams(true, render_preflight(found) + "\n");
    for (const std::string& note : preflight_notes(found)) say(note);
  };
  events.attempt_ended = [&](const AttemptResult&) { output.flush(); };
  const JobOutcome outcome = drive_recorded(store, *starter, plan, recorder, std::move(events));
  if (file.json) write_to_streams(true, job_end_json(plan.id, outcome) + "\n");
  return outcome.exit_code;
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
