#include "builder/run/step_runner.hpp"

#include "builder/foreign.hpp"
#include "builder/step_layers.hpp"

namespace mlenv {

// NOLINTNEXTLINE(readability-function-size): what a step is made with
StepRunner::StepRunner(const Lock& lock, std::vector<std::string> env, std::string workdir,
                       const RunOptions& options, Store& store, Progress& progress, unsigned jobs)
    : lock_(lock),
      env_(std::move(env)),
      workdir_(std::move(workdir)),
      options_(options),
      store_(store),
      progress_(progress),
      jobs_(jobs) {}

void StepRunner::put(const Layer& layer, bool owned) {
  below_.push_back(layer);
  if (owned) unread_.push_back(layer);
}

/// Of another stack below, the record says nothing.
std::optional<Layer> StepRunner::recorded_layer() const {
  if (options_.recorded.size() <= below_.size() || !options_.find) return std::nullopt;
  for (std::size_t i = 0; i < below_.size(); ++i) {
    if (below_[i].blob.digest != options_.recorded[i]) return std::nullopt;
  }
  return options_.find(options_.recorded[below_.size()]);
}

StepRunner::Outcome StepRunner::run(std::size_t number) {
  const RunStep& step = lock_.settings.run.at(number);
  const RunJob job{step, number, below_, owners_, env_, workdir_, lock_.epoch, options_};
  const Digest key = run_key(job);
  const std::optional<std::vector<Layer>> known = find_layers(store_, key);
  std::optional<Layer> layer = recorded_layer();
  if (!layer && known && known->size() == 1) layer = known->front();
  const bool reused = layer.has_value();
  if (!layer) layer = execute(job);
  layer->title = run_title(step);
  if (!known || *known != std::vector<Layer>{*layer}) remember_layers(store_, key, {*layer});
  put(*layer, true);
  return {key, *std::move(layer), reused};
}

Layer StepRunner::execute(const RunJob& job) {
  require_runs_here(lock_, job.step);
  for (const Layer& layer : unread_) owners_.add(store_, layer);
  unread_.clear();
  Pool pool{jobs_};
  return run_step(job, store_, pool, progress_);
}

}  // namespace mlenv
