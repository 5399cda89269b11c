#include "runner/job/lead.hpp"

#include <charconv>
#include <functional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/printable.hpp"
#include "images/store.hpp"
#include "runner/job/agreement_table.hpp"
#include "runner/job/failure_text.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/job/job_json.hpp"
#include "runner/job/job_output.hpp"
#include "runner/job/job_progress.hpp"
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

using Say = std::function<void(const std::string&)>;

void say_to_person(const std::string& text) {
  write_to_streams(false, "mlenv: " + printable(text) + "\n");
}

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
/// the job would have failed. So it says so. False: it does not go back.
bool wait_in_queue(const Say& say_so) {
  constexpr int kMost = 20;  // a node that only seems to be well ends here
  const std::string id = own_id();
  if (id.empty() || requeues() >= kMost) return false;
  try {
    say_so("a node was lost: the job goes back into Slurm's queue");
    requeue_in_slurm(id);
    return true;
  } catch (const Error& error) {
    say_so(error.what());
    return false;
  }
}

/// The signal does not say what is behind it, and the job's own state may be any afterwards.
void say_what_ended_it(int signal, const Say& say_so) {
  const std::string id = own_id();
  if (signal == 0 || id.empty()) return;
  std::string why = "it was cancelled, or its nodes are for another job";
  try {
    const std::optional<SlurmState> state = ask_slurm(id);
    if (state && state->state == "RUNNING") why = "its time is nearly over";
  } catch (const Error&) {
    why = "it was cancelled, its nodes are for another job, or its time is nearly over";
  }
  say_so(fmt::format("Slurm told the job to end by {}: {}", signal_name(signal), why));
}

/// Where the job is one of many by the same script.
std::optional<JobVariation> own_variation(const fs::path& folder) {
  const fs::path path = folder / kVariationsFile;
  const std::optional<std::string> bytes = read_file_if_exists(path);
  if (!bytes) return std::nullopt;
  return parse_variation(*bytes, task_number().value_or(0), path.string());
}

/// One record of the job, however often Slurm puts it back into its queue: the one that it has, or
/// a new one where it has none, or where somebody else still holds that.
class LedRecord {
 public:
  LedRecord(const fs::path& store, const fs::path& own, const RunStart& start, bool begun) {
    constexpr std::chrono::seconds kMostWaiting{30};
    const fs::path runs = runs_folder(store);
    const std::string before = begun ? record_of_job(own) : "";
    std::optional<FileLock> held;
    if (!before.empty()) held = hold_record(runs, before, kMostWaiting);
    if (held) {
      recorder_.emplace(runs, before, *std::move(held), start);
      return;
    }
    recorder_.emplace(runs, start);
    if (before.empty()) return;
    say_to_person(
        fmt::format("the job goes on in another record, since that of its beginning, {}, is gone "
                    "or still held",
                    before));
  }
  RunRecorder& operator*() { return *recorder_; }

 private:
  std::optional<RunRecorder> recorder_;
};

/// What was before, in a sentence.
std::string said_of(const JobProgress& before, const Job& job) {
  std::string text = fmt::format("Slurm starts the job again: attempt {}", before.attempts + 1);
  if (job.restarts > 0) {
    text += fmt::format(", {} of {} restarts are used", before.restarts, job.restarts);
  }
  if (job.deadline) {
    using Seconds = std::chrono::duration<double>;
    text += fmt::format(", and {:.6g} s of {:.6g} s", Seconds(before.used).count(),
                        Seconds(*job.deadline).count());
  }
  return text;
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
  const fs::path own = variation ? task_folder(folder, variation->recorded.number) : folder;
  // Whoever submitted it may have been killed before it could note it.
  if (!fs::exists(own / "slurm")) note_slurm_id(own, own_id(), start.name.value_or(""));
  const std::optional<JobProgress> before = read_progress(own);
  plan.before = before.value_or(JobProgress{});
  LedRecord record{file.store, own, start, before.has_value()};
  RunRecorder& recorder = *record;
  plan.id = recorder.id();
  write_file(own / "record", plan.id + "\n");
  JobOutput output{{false, false, file.json}, write_to_streams};
  const Fd control = listen_for_control(recorder.folder());
  DriveEvents events;
  events.control = control.get();
  events.notice = say_to_person;
  events.progress = [&](const JobProgress& progress) { write_progress(own, progress); };
  events.differ = [&](const Agreement& nodes) {
    if (file.json) write_to_streams(true, render_agreement(nodes) + "\n");
  };
  std::uint64_t attempts = plan.before.attempts;
  events.planned = [&](std::uint64_t attempt, const std::vector<Place>&, const JobPlan& ranks) {
    ++attempts;
    output.begin(told_apart(ranks), attempt);
  };
  events.line = [&](std::uint64_t, std::uint64_t rank, const std::string& line) {
    output.show(rank, line);
  };
  events.preflight = [&](const Preflight& found) {
    if (file.json) write_to_streams(true, render_preflight(found) + "\n");
    for (const std::string& note : preflight_notes(found)) say_to_person(note);
  };
  bool lost_node = requeues() > 0;  // the node may still seem to be well
  events.attempt_ended = [&](const AttemptResult& attempt) {
    output.flush();
    for (const std::string& line : failure_text(attempt)) write_to_streams(false, line + "\n");
    lost_node = attempt.failure && attempt.node_lost;
  };
  const Say say_last = [&](const std::string& text) {
    say_to_person(text);
    remark_in_log(recorder.folder(), plan.most_log_bytes, text);
  };
  if (before) say_last(said_of(*before, plan.job));
  try {
    const JobOutcome outcome = drive_recorded(store, *starter, plan, recorder, std::move(events));
    const bool by_itself = outcome.signal == 0 && outcome.ended_by == EndedBy::itself;
    const bool again = lost_node && by_itself && wait_in_queue(say_last);
    // Told to end by Slurm it may be put back; else it is over, and begins anew should anybody put
    // it back all the same.
    if (outcome.signal == 0 && !again) forget_progress(own);
    if (file.json) write_to_streams(true, job_end_json(plan.id, outcome) + "\n");
    say_what_ended_it(outcome.signal, say_last);
    return outcome.exit_code;
  } catch (const Error& error) {
    output.flush();
    const bool again = lost_node && error.code() == "no-node" && wait_in_queue(say_last);
    if (!again) forget_progress(own);
    if (file.json) write_to_streams(true, job_end_json(plan.id, attempts) + "\n");
    throw;
  }
}

}  // namespace

int lead(const fs::path& folder, std::string_view version) {
  try {
    return lead_job(folder, version);
  } catch (const Error& error) {
    say_to_person(error.what());
    if (!error.hint().empty()) say_to_person("what to do: " + error.hint());
    return kOwnFailureStatus;
  } catch (const std::exception& error) {
    say_to_person(error.what());
    return kOwnFailureStatus;
  }
}

}  // namespace mlenv::job
