#include "cli/run_recording.hpp"

#include "base/error.hpp"
#include "cli/quick_runtime.hpp"
#include "cli/run_after.hpp"
#include "runner/local/control.hpp"
#include "runner/record/run_recorder.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

/// A record that cannot be written stops no run.
class Recording {
 public:
  Recording(Ui& ui, const RunStart& start, const std::optional<CodeState>& code)
      : ui_(ui), keeps_(start.layer && start.layer->kept), after_(start.after) {
    attempt([&] { recorder_.emplace(runs_folder(ui_.store().root()), start, KnownState{code}); });
  }
  std::string id() const { return recorder_ ? recorder_->id() : ""; }
  fs::path folder() const { return recorder_ ? recorder_->folder() : fs::path{}; }
  void ended(const RunOutcome& outcome,
             const std::function<std::vector<RecordedOutput>()>& outputs) {
    attempt([&] { recorder_->ended(outcome, outputs); });
  }
  /// For the runs after which it is to start.
  std::optional<RunOutcome> wait(int control) {
    return wait_before(ui_, after_, control,
                       [this](bool waits) { attempt([&] { recorder_->waiting(waits); }); });
  }
  void started() {
    if (recorder_) recorder_->started();
  }
  void attempt_ended(const AttemptEnd& end) {
    attempt([&] { recorder_->attempt_ended(end); });
  }
  /// Where other mlenvs reach the run; none for one that is not recorded.
  Fd control() {
    Fd fd;
    attempt([&] { fd = listen_for_control(recorder_->folder()); });
    return fd;
  }
  void gave_up(const Error& error) {
    attempt([&] { recorder_->gave_up(error, ui_.failure_status.value_or(1)); });
  }

 private:
  template <class Work>
  void attempt(Work&& work) {
    if (failed_) return;
    try {
      std::forward<Work>(work)();
    } catch (const Error& error) {
      // A layer is found again by the record alone.
      if (error.code() == "name-taken" || (!recorder_ && keeps_)) throw;
      failed_ = true;
      ui_.say(fmt::format("this run is not recorded: {}", error.what()));
    }
  }

  Ui& ui_;
  bool keeps_;
  std::vector<std::string> after_;
  std::optional<RunRecorder> recorder_;
  bool failed_ = false;
};

}  // namespace

RecordedRun run_recorded(Ui& ui, LocalRun run, const RunStart& start, const AroundRun& around) {
  choose_runtime(run);
  Recording recording{ui, start, around.code};
  const Fd control = recording.control();
  run.fds.control = control.get();
  RunEvents events;
  events.started = [&] { recording.started(); };
  events.attempt_ended = [&](const AttemptEnd& end) { recording.attempt_ended(end); };
  if (around.before_start) around.before_start(recording.id(), recording.folder(), events);
  try {
    RecordedRun done;
    std::optional<RunOutcome> told = recording.wait(control.get());
    done.outcome = told ? *std::move(told) : run_local(run, std::move(events));
    std::optional<std::vector<RecordedOutput>> found;
    const auto read = [&] {
      if (!found) found = around.outputs();
      return *found;
    };
    recording.ended(done.outcome, read);
    done.outputs = read();
    done.id = recording.id();
    return done;
  } catch (const Error& error) {
    recording.gave_up(error);
    throw;
  }
}

}  // namespace mlenv::cli
