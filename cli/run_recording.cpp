#include "cli/run_recording.hpp"

#include "base/error.hpp"
#include "runner/record/run_recorder.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

/// A record that cannot be written stops no run.
class Recording {
 public:
  Recording(Ui& ui, const RunStart& start, const std::optional<CodeState>& code) : ui_(ui) {
    attempt([&] { recorder_.emplace(runs_folder(ui_.store().root()), start, code); });
  }
  std::string id() const { return recorder_ ? recorder_->id() : ""; }
  void ended(const Exit& exit, const std::function<std::vector<RecordedOutput>()>& outputs) {
    attempt([&] { recorder_->ended(exit, outputs); });
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
      failed_ = true;
      ui_.say(fmt::format("this run is not recorded: {}", error.what()));
    }
  }

  Ui& ui_;
  std::optional<RunRecorder> recorder_;
  bool failed_ = false;
};

}  // namespace

RecordedRun run_recorded(Ui& ui, const LocalRun& run, const RunStart& start,
                         const std::function<std::vector<RecordedOutput>()>& outputs,
                         const std::optional<CodeState>& code) {
  Recording recording{ui, start, code};
  try {
    RecordedRun done;
    done.exit = run_local(run);
    std::optional<std::vector<RecordedOutput>> found;
    const auto read = [&] {
      if (!found) found = outputs();
      return *found;
    };
    recording.ended(done.exit, read);
    done.outputs = read();
    done.id = recording.id();
    return done;
  } catch (const Error& error) {
    recording.gave_up(error);
    throw;
  }
}

}  // namespace mlenv::cli
