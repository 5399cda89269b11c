#include "cli/run_matrix.hpp"

#include <unistd.h>
#include <algorithm>

#include "base/error.hpp"
#include "cli/quick_runtime.hpp"
#include "cli/run_matrix_results.hpp"
#include "cli/run_matrix_show.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"
#include "runner/facts/probe.hpp"
#include "runner/matrix/drive.hpp"
#include "runner/matrix/placeholders.hpp"
#include "runner/matrix/share.hpp"
#include "runner/record/run_records.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {
namespace {

using matrix::Ended;
using matrix::MatrixRecord;
using matrix::Share;
using matrix::Variation;

std::optional<std::uint64_t> usable_memory(const MemoryFacts& memory) {
  std::optional<std::uint64_t> bytes = memory.total_bytes.value;
  if (memory.limit_bytes && memory.limit_bytes->most) {
    bytes = std::min(bytes.value_or(*memory.limit_bytes->most), *memory.limit_bytes->most);
  }
  return bytes;
}

Share share_of(const MatrixChoice& choice, const MatrixJob& job, std::size_t variations) {
  const FactSources host =
      host_sources(fs::absolute(store_folder()), fs::absolute(temporary_root()));
  matrix::Machine machine;
  machine.processors = usable_processors(probe_cpu(host)).value_or(1);
  machine.memory_bytes = usable_memory(probe_memory(host));
  if (job.with_gpus) machine.gpus = gpus_to_divide(job.devices.gpus);
  return divide(machine,
                {variations, choice.words.at_once, job.devices.gpus, job.run.options.limits});
}

/// Names of variables that image or person set.
std::vector<std::string> set_variables(const MatrixChoice& choice, const LocalRun& run) {
  std::vector<std::string> names = names_of(choice.axes);
  for (const auto* words : {&run.config.env, &run.env}) {
    for (const std::string& word : *words) names.push_back(word.substr(0, word.find('=')));
  }
  return names;
}

/// Each variation of a matrix as a run of its own.
class Variations {
 public:
  Variations(Ui& ui, const MatrixChoice& choice, const MatrixJob& job, const Share& share,
             const MatrixRecord& record)
      : choice_(choice), job_(job), record_(record), store_(fs::absolute(ui.store().root())) {
    failure_status_ = ui.failure_status.value_or(1);
    LocalRun any = job.run;
    choose_runtime(any);
    runtime_ = any.runtime;
    if (runtime_.find('/') != std::string::npos) runtime_ = fs::absolute(runtime_);
    if (share.threads && !job.repeat.deterministic) {
      threads_ = matrix::thread_variables(*share.threads, set_variables(choice, job.run));
    }
    for (std::size_t slot = 0; slot < std::max<std::size_t>(1, share.gpus.size()); ++slot) {
      DeviceChoice own = job.devices;
      if (!share.gpus.empty()) own.gpus = {GpuChoice::Kind::named, 0, share.gpus[slot]};
      devices_.push_back(devices_for(own, job.with_gpus));
    }
  }
  bool sets_threads() const { return !threads_.empty(); }

  DetachedRun prepare(std::size_t index, std::size_t slot) const {
    const Variation& variation = record_.variations.at(index);
    const fs::path folder = make_folder(variation);
    const std::vector<matrix::Value> values = values_of(choice_.axes, index);
    DetachedRun out;
    out.run = job_.run;
    LocalRun& run = out.run;
    run.mounts.push_back({folder, std::string(matrix::kOutputTarget), false});
    run.argv = with_values(job_.run.argv, values, variation.number);
    run.env.insert(run.env.begin(), threads_.begin(), threads_.end());
    for (const matrix::Value& value : values) run.env.push_back(value.name + "=" + value.text);
    run.env.insert(run.env.end(), {fmt::format("MLENV_OUTPUT={}", matrix::kOutputTarget),
                                   "MLENV_MATRIX=" + record_.id,
                                   fmt::format("MLENV_VARIATION={}", variation.number)});
    const ChosenDevices& devices = devices_[slot % devices_.size()];
    run.devices = devices.edits;
    run.devices.append(job_.run.devices);
    out.start = start_of(run, variation, folder, devices);
    run.runtime = runtime_;
    choose_runtime(run);
    out.store = store_;
    out.most_log_bytes = job_.life.most_log_bytes;
    out.failure_status = failure_status_;
    return out;
  }

 private:
  fs::path make_folder(const Variation& variation) const {
    fs::path folder = fs::path(record_.results) / variation.folder;
    make_folders(folder);
    // Checkpoints of a run before stay, its result does not.
    std::error_code error;
    fs::remove(folder / matrix::kMetricsFile, error);
    const bool other_user = job_.run.options.user || !job_.run.config.user.empty();
    if (::geteuid() == 0 && other_user) {
      fs::permissions(folder, fs::perms::all | fs::perms::sticky_bit, error);
    }
    return folder;
  }

  RunStart start_of(const LocalRun& run, const Variation& variation, const fs::path& folder,
                    const ChosenDevices& devices) const {
    RunBackground background = job_.background;
    background.devices = devices.names;
    RunStart start = run_start(run, job_.image, background);
    record_life(job_.life, start);
    if (start.name) start.name = fmt::format("{}-{}", *start.name, variation.number);
    start.argv = masked_argv(variation, run.argv);
    start.variation =
        RecordedVariation{record_.id,       variation.number, record_.variations.size(),
                          variation.values, folder.string(),  record_.results};
    RepeatOptions repeat = job_.repeat;
    for (std::string& path : repeat.outputs) {
      path = (fs::path(matrix::kOutputTarget) / path).lexically_normal();
    }
    (void)declare_repeat(repeat, run, start);
    return start;
  }

  /// A secret value stays one in the command.
  std::vector<std::string> masked_argv(const Variation& variation,
                                       const std::vector<std::string>& argv) const {
    const bool has_secret =
        std::any_of(variation.values.begin(), variation.values.end(),
                    [](const RecordedVariable& one) { return !one.value.has_value(); });
    if (!has_secret) return without_secrets(argv);
    std::vector<matrix::Value> shown;
    for (const RecordedVariable& one : variation.values) {
      shown.push_back({one.name, one.value.value_or(std::string(kMasked))});
    }
    return without_secrets(with_values(job_.run.argv, shown, variation.number));
  }

  const MatrixChoice& choice_;
  const MatrixJob& job_;
  const MatrixRecord& record_;
  fs::path store_;
  int failure_status_ = 1;
  std::string runtime_;
  std::vector<std::string> threads_;
  std::vector<ChosenDevices> devices_;  ///< of each that runs at once; one where they have the same
};

/// The matrix's record while it runs: kept up, shown, and written down now and then.
class Keeper {
 public:
  Keeper(Ui& ui, OpenedMatrix& opened)
      : ui_(ui),
        opened_(opened),
        runs_(runs_folder(ui.store().root())),
        show_(std::in_place, ui.progress(), opened.record, runs_folder(ui.store().root())) {
    write();
  }

  void began(std::size_t index) {
    Variation& one = record().variations[index];
    one = {one.number, one.values, one.folder, "running", {}, {}, {}, {}};
    show_->began(index);
    dirty_ = true;
  }
  void recorded(std::size_t index, const std::string& run) {
    record().variations[index].run = run;
    dirty_ = true;
  }
  void ended(const Ended& ended) {
    Variation& one = record().variations[ended.variation];
    if (!ended.run.empty()) take_record(ended.run, one);
    if (ended.failure) {
      one.state = "refused";
      if (!ended.ends_all)
        show_->note(fmt::format("{}: {}", matrix::shown_values(one), ended.failure->what()));
    } else if (ended.run.empty()) {
      one.state = "lost";
    }
    if (ended.stopped && one.state != "refused") one.state = "stopped";
    take_metrics(one);
    show_->ended(ended.variation);
    dirty_ = true;
    if (ended.stopped) write();  // its record may say that it is done
  }
  void stopping(bool again) {
    show_->note(again ? "interrupted again: what still runs is killed"
                      : "interrupted: what runs was told, and no more is started; once more kills");
  }
  void tick() {
    using std::chrono::steady_clock;
    constexpr std::chrono::seconds kPause{1};
    show_->refresh();
    if (dirty_ && steady_clock::now() - written_ >= kPause) write();
  }
  /// The last word on it.
  void finish(const matrix::DriveEnd& end) {
    MatrixRecord& all = record();
    const std::size_t open = not_done(all).size();
    const bool stopped = count_in(all, "stopped") + count_in(all, "waiting") > 0;
    all.state = open == 0 ? "done" : end.signal != 0 || stopped ? "stopped" : "failed";
    if (end.refused) show_->note(end.refused->what());
    write();
    show_.reset();
  }

 private:
  MatrixRecord& record() { return opened_.record; }

  void take_record(const std::string& id, Variation& one) {
    one.run = id;
    try {
      const RunRecord run = runs_.read_brief(id);
      one.state = matrix::state_by(run);
      if (!run.end) return;
      one.exit_code = run.end->exit_code;
      one.seconds = run.end->seconds;
    } catch (const Error& error) {
      one.state = "lost";
      show_->note(error.what());
    }
  }
  void take_metrics(Variation& one) {
    try {
      one.metrics = matrix::read_metrics(fs::path(record().results) / one.folder);
    } catch (const Error& error) {
      show_->note(fmt::format("{}: {}", matrix::shown_values(one), error.what()));
    }
  }
  /// A full disk ends no run: it is told of once.
  void write() {
    dirty_ = false;
    written_ = std::chrono::steady_clock::now();
    try {
      opened_.folder.write(record());
    } catch (const Error& error) {
      if (!std::exchange(told_, true)) {
        ui_.say(fmt::format("how far the matrix got is not written down: {}", error.what()));
      }
    }
  }

  Ui& ui_;
  OpenedMatrix& opened_;
  RunRecords runs_;
  std::optional<MatrixShow> show_;
  bool dirty_ = false;
  bool told_ = false;
  std::chrono::steady_clock::time_point written_;
};

void say_begin(const Ui& ui, const OpenedMatrix& opened, const Share& share) {
  if (ui.options.json) return;
  const MatrixRecord& record = opened.record;
  const std::size_t all = record.variations.size();
  const std::size_t left = not_done(record).size();
  std::string text = opened.resumed
                         ? fmt::format("{} of {} are left", left, counted(all, "variation"))
                         : counted(all, "variation");
  if (share.at_once > 1) {
    text += fmt::format(", {} at a time", share.at_once);
    if (record.threads) text += fmt::format(" with {} each", counted(*record.threads, "thread"));
    if (share.gpus_are_shared) text += ", which share GPUs";
  }
  ui.say(fmt::format("matrix {}: {}; results in {}", record.id, text, record.results));
}

bool nothing_ran(const MatrixRecord& record) {
  return count_in(record, "waiting") + count_in(record, "refused") == record.variations.size();
}

int answer(const Ui& ui, const MatrixRecord& record, const matrix::DriveEnd& end) {
  constexpr int kSignalBase = 128;
  const std::size_t open = not_done(record).size();
  if (ui.options.json) {
    ui.answer(render_matrix(record));
  } else {
    for (const std::string& line : matrix_table(record)) ui.answer(line);
  }
  if (open > 0 && !ui.options.json) {
    ui.say(fmt::format("{} of {} not done; the same command with `--resume` goes on with {}", open,
                       counted(record.variations.size(), "variation"), open == 1 ? "it" : "them"));
  }
  if (end.signal != 0) return kSignalBase + end.signal;
  return open == 0 ? 0 : 1;
}

}  // namespace

int run_matrix(Ui& ui, const MatrixChoice& choice, const MatrixJob& job) {
  OpenedMatrix opened = open_matrix(ui, choice, job);
  MatrixRecord& record = opened.record;
  const matrix::DrivePlan plan_of_all{not_done(record), 1, choice.words.fail_fast,
                                      runs_folder(ui.store().root())};
  if (plan_of_all.todo.empty()) {
    if (!ui.options.json) ui.say(fmt::format("matrix {}: all is done", record.id));
    return answer(ui, record, {});
  }
  const Share share = share_of(choice, job, plan_of_all.todo.size());
  const Variations variations{ui, choice, job, share, record};
  matrix::DrivePlan plan = plan_of_all;
  plan.at_once = share.at_once;
  record.state = "running";
  record.at_once = share.at_once;
  record.threads.reset();
  if (variations.sets_threads()) record.threads = *share.threads;
  say_begin(ui, opened, share);
  Keeper keeper{ui, opened};
  matrix::DriveEvents events;
  events.prepare = [&](std::size_t index, std::size_t slot) {
    return variations.prepare(index, slot);
  };
  events.began = [&](std::size_t index) { keeper.began(index); };
  events.recorded = [&](std::size_t index, const std::string& run) { keeper.recorded(index, run); };
  events.ended = [&](const Ended& ended) { keeper.ended(ended); };
  events.stopping = [&](int, bool again) { keeper.stopping(again); };
  events.tick = [&] { keeper.tick(); };
  try {
    const matrix::DriveEnd end = drive(plan, events);
    keeper.finish(end);
    return answer(ui, record, end);
  } catch (const Error&) {
    if (!opened.resumed && nothing_ran(record)) opened.folder.take_back(record);
    throw;
  }
}

}  // namespace mlenv::cli
