#include "cli/run_matrix.hpp"

#include <unistd.h>
#include <algorithm>

#include "base/error.hpp"
#include "cli/quick_runtime.hpp"
#include "cli/run_matrix_keeper.hpp"
#include "cli/run_matrix_results.hpp"
#include "cli/run_matrix_variation.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"
#include "runner/facts/probe.hpp"
#include "runner/local/detached.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/matrix/drive.hpp"
#include "runner/matrix/placeholders.hpp"
#include "runner/matrix/share.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

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
             const OpenedMatrix& opened)
      : choice_(choice),
        job_(job),
        folder_(opened.folder),
        record_(opened.record),
        store_(fs::absolute(ui.store().root())) {
    sources_.find(job.run);
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
    const fs::path folder =
        make_variation_folder(folder_, record_, variation, runs_as_other(job_.run));
    const std::vector<matrix::Value> values = values_of(choice_.axes, index);
    DetachedRun out;
    out.run = job_.run;
    LocalRun& run = out.run;
    run.mounts.push_back({folder, std::string(matrix::kOutputTarget), false});
    run.argv = with_values(job_.run.argv, values, variation.number);
    run.env.insert(run.env.begin(), threads_.begin(), threads_.end());
    const std::vector<std::string> own = variation_variables(record_, variation, values);
    run.env.insert(run.env.end(), own.begin(), own.end());
    const ChosenDevices& devices = devices_[slot % devices_.size()];
    run.devices = devices.edits;
    run.devices.append(job_.run.devices);
    out.start = start_of(run, variation, devices);
    run.runtime = runtime_;
    choose_runtime(run);
    sources_.apply(run);
    record_settled(run, out.start);
    out.store = store_;
    out.most_log_bytes = job_.life.most_log_bytes;
    out.failure_status = failure_status_;
    return out;
  }

 private:
  RunStart start_of(const LocalRun& run, const Variation& variation,
                    const ChosenDevices& devices) const {
    RunBackground background = job_.background;
    background.devices = devices.names;
    RunStart start = run_start(run, job_.image, background);
    record_life(job_.life, start);
    if (start.name) start.name = fmt::format("{}-{}", *start.name, variation.number);
    start.argv = masked_argv(variation, job_.run.argv, run.argv);
    start.variation = recorded_variation(record_, variation);
    RepeatOptions repeat = job_.repeat;
    for (std::string& path : repeat.outputs) {
      path = (fs::path(matrix::kOutputTarget) / path).lexically_normal();
    }
    (void)declare_repeat(repeat, run, start);
    return start;
  }

  const MatrixChoice& choice_;
  const MatrixJob& job_;
  const matrix::MatrixFolder& folder_;
  const MatrixRecord& record_;
  SettledSources sources_;  ///< what one variation puts in their place, the next does not mount
  fs::path store_;
  int failure_status_ = 1;
  std::string runtime_;
  std::vector<std::string> threads_;
  std::vector<ChosenDevices> devices_;  ///< of each that runs at once; one where they have the same
};

void say_begin_matrix(const Ui& ui, const OpenedMatrix& opened, const Share& share) {
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

}  // namespace

int run_matrix(Ui& ui, const MatrixChoice& choice, const MatrixJob& job) {
  OpenedMatrix opened = open_matrix(ui, choice, job);
  MatrixRecord& record = opened.record;
  const matrix::DrivePlan plan_of_all{not_done(record), 1, choice.words.fail_fast,
                                      runs_folder(ui.store().root())};
  if (plan_of_all.todo.empty()) {
    if (!ui.options.json) ui.say(fmt::format("matrix {}: all is done", record.id));
    return answer_matrix(ui, record, 0);
  }
  const Share share = share_of(choice, job, plan_of_all.todo.size());
  const Variations variations{ui, choice, job, share, opened};
  matrix::DrivePlan plan = plan_of_all;
  plan.at_once = share.at_once;
  record.state = "running";
  record.at_once = share.at_once;
  record.threads.reset();
  if (variations.sets_threads()) record.threads = *share.threads;
  say_begin_matrix(ui, opened, share);
  MatrixKeeper keeper{ui, opened};
  matrix::DriveEvents events;
  events.start = [&](std::size_t index, std::size_t slot) {
    return std::make_unique<AttachedRun>(variations.prepare(index, slot));
  };
  keeper.watch(events);
  try {
    const matrix::DriveEnd end = drive(plan, events);
    keeper.finish(end.signal, end.refused);
    return answer_matrix(ui, record, end.signal);
  } catch (const Error&) {
    if (!opened.resumed && nothing_ran(record)) opened.folder.take_back(record);
    throw;
  }
}

}  // namespace mlenv::cli
