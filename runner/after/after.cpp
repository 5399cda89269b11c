#include "runner/after/after.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>

#include <fmt/format.h>

#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/launch/slurm_job.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/local/stop_listener.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv {
namespace {

using std::chrono::steady_clock;
using State = AwaitedRun::State;

/// Why one that is over did not end well; empty: it did.
std::string what_was_wrong(const RunRecord& record) {
  if (!record.end) return "was lost: its mlenv was killed, or its machine went down";
  const RunEnd& end = *record.end;
  if (end.failure) return "could not be run: " + end.failure->message;
  if (end.ended_by == "stop") return "was ended by `mlenv stop`";
  if (end.ended_by == "timeout") return "was ended by its time limit";
  if (end.signal) {
    const std::string name = signal_name(static_cast<int>(*end.signal));
    return fmt::format("was ended by signal {}{}", *end.signal,
                       name.empty() ? "" : " (" + name + ")");
  }
  if (end.exit_code != 0) return fmt::format("ended with status {}", end.exit_code);
  return {};
}

AwaitedRun look_at_record(const RunRecords& records, const std::string& id) {
  // The lock before the end: it is freed after the end is written.
  if (records.goes_on(id)) return {State::goes_on};
  try {
    const std::string wrong = what_was_wrong(records.read_brief(id));
    return wrong.empty() ? AwaitedRun{State::well} : AwaitedRun{State::never, wrong};
  } catch (const Error&) {
    return {State::never, "has no record any more"};
  }
}

/// Slurm has forgotten it, or cannot be asked here: what is known is the newest record.
AwaitedRun look_without_slurm(const fs::path& store, const fs::path& folder,
                              const std::string& why) {
  const std::string record = job::record_of_job(folder);
  if (record.empty()) return {State::never, "never began: " + why};
  return look_at_record(RunRecords{runs_folder(store)}, record);
}

AwaitedRun look_in_slurm(const fs::path& store, const fs::path& folder, const std::string& slurm) {
  try {
    const std::optional<job::SlurmState> state = job::ask_slurm(slurm);
    if (!state || !state->is_over()) return {State::goes_on, "", slurm};
    if (state->status() == 0) return {State::well};
    if (state->exit.code == 0) {
      return {State::never, fmt::format("is {} as job {} of Slurm", to_lower(state->state), slurm)};
    }
    return {State::never, fmt::format("ended with status {}", state->exit.code)};
  } catch (const Error& error) {
    // Its daemon may be slow, or another one be taking over.
    if (error.code() == "timeout") return {State::goes_on, "", slurm};
    return look_without_slurm(store, folder, error.frames().front());
  }
}

/// `run `a``, `runs `a` and `b``.
std::string called(const std::vector<std::string>& ids) {
  std::string text = ids.size() == 1 ? "run" : "runs";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const char* const before = i == 0 ? " " : i + 1 == ids.size() ? " and " : ", ";
    text += fmt::format("{}`{}`", before, ids[i]);
  }
  return text;
}

/// Those that are waited for, each asked as often as is good for whoever answers.
class AwaitedRuns {
 public:
  AwaitedRuns(const fs::path& store, std::vector<std::string> ids)
      : store_(store), left_(std::move(ids)) {}

  /// True: all have ended well.
  bool look() {
    std::erase_if(left_, [&](const std::string& id) { return has_ended(id); });
    return left_.empty();
  }

 private:
  bool has_ended(const std::string& id) {
    Pace& pace = paces_[id];
    if (steady_clock::now() < pace.next) return false;
    const AwaitedRun run = look_at_run(store_, id);
    if (run.state == State::never) throw cannot_follow(id, run);
    if (!run.slurm.empty()) {
      pace.asking.asked(run.slurm);
      pace.next = steady_clock::now() + pace.asking.wait();
    }
    return run.state == State::well;
  }

  struct Pace {
    job::AskingPace asking;
    steady_clock::time_point next;
  };
  const fs::path& store_;
  std::vector<std::string> left_;
  std::map<std::string, Pace> paces_;
};

/// 0: nobody said so.
int end_signal(const SignalQueue& signals) {
  while (const int signal = signals.next()) {
    if (signal != SIGUSR1 && signal != SIGUSR2) return signal;
  }
  return 0;
}

RunOutcome ended_by_signal(int signal, EndedBy why) {
  RunOutcome outcome;
  outcome.exit = {kSignalBase + signal, true};
  outcome.ended_by = why;
  outcome.attempts = 0;
  return outcome;
}

}  // namespace

AwaitedRun look_at_run(const fs::path& store, const std::string& id) {
  const fs::path folder = job::jobs_folder(store) / id;
  const std::string slurm = job::slurm_id_of_job(folder);
  if (slurm.empty()) return look_at_record(RunRecords{runs_folder(store)}, id);
  return look_in_slurm(store, folder, slurm);
}

Error cannot_follow(const std::string& id, const AwaitedRun& run) {
  return failure("after-failed", "run `{}`, after which this was to start, {}", id, run.why)
      .hint(fmt::format("`mlenv runs show {}` tells more; without `--after` it starts all the same",
                        id));
}

std::vector<std::string> not_over(const fs::path& store, const std::vector<std::string>& ids) {
  std::vector<std::string> left;
  for (const std::string& id : ids) {
    const AwaitedRun run = look_at_run(store, id);
    if (run.state == State::never) throw cannot_follow(id, run);
    if (run.state == State::goes_on) left.push_back(id);
  }
  return left;
}

std::optional<RunOutcome> wait_for_runs(const fs::path& store, const std::vector<std::string>& ids,
                                        const WaitEvents& events) {
  const std::vector<std::string> left = not_over(store, ids);
  if (left.empty()) return std::nullopt;
  constexpr int kTick = 500;  // milliseconds
  const SignalQueue signals;
  StopListener stops{events.control};
  if (events.notice) events.notice(fmt::format("waits for the end of {}", called(left)));
  if (events.waiting) events.waiting(true);
  AwaitedRuns waiting{store, left};
  while (!waiting.look()) {
    std::vector<pollfd> fds{{signals.fd(), POLLIN, 0}};
    stops.add_to(fds);
    if (::poll(fds.data(), fds.size(), kTick) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the end of {}", called(left));
    }
    if (const int signal = end_signal(signals)) return ended_by_signal(signal, EndedBy::itself);
    const bool stopped = stops.hear(fds.data() + 1).has_value();
    if (stopped || (events.is_needless && events.is_needless())) {
      return ended_by_signal(SIGTERM, EndedBy::stop);
    }
  }
  // One that came while that was looked at.
  if (const int signal = end_signal(signals)) return ended_by_signal(signal, EndedBy::itself);
  if (events.waiting) events.waiting(false);
  return std::nullopt;
}

}  // namespace mlenv
