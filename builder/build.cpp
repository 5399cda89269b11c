#include "builder/build.hpp"

#include <algorithm>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/task_group.hpp"
#include "builder/base_image.hpp"
#include "builder/bytecode/bytecode_step.hpp"
#include "builder/foreign.hpp"
#include "builder/image_config.hpp"
#include "builder/layers.hpp"
#include "builder/run/step_runner.hpp"
#include "builder/step_layers.hpp"
#include "builder/system_layer.hpp"
#include "builder/wheel_files.hpp"
#include "images/unpack.hpp"

namespace mlenv {
namespace {

constexpr unsigned kBuildDownloads = 8;

class Build {
 public:
  Build(const Lock& lock, Store& store, Inputs& inputs, const BuildOptions& options,
        Progress& progress)
      : lock_(lock),
        store_(store),
        inputs_(inputs),
        options_(options),
        progress_(progress),
        plan_(make_plan(lock, options.files.parts)),
        wheels_(lock, inputs),
        bytecode_({lock, store, progress, options.unpack,
                   [this](std::size_t wheel) { return wheels_.get(wheel); }}) {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      if (plan_.steps[i].kind == Step::Kind::bytecode) bytecode_step_ = i;
      if (plan_.steps[i].kind == Step::Kind::interpreter) interpreter_step_ = i;
      if (plan_.steps[i].kind == Step::Kind::system) system_step_ = i;
    }
  }

  BuildResult run() {
    look_up();
    if (std::optional<Image> image = take_finished()) {
      if (options_.unpack) unpack_all();
      return {*std::move(image), std::move(reports_)};
    }
    check_secrets();
    require_no_programs(lock_, plan_, missing_, options_.run, store_);
    if (!missing_.empty()) make_missing();
    make_runs();
    if (options_.unpack) unpack_all();
    check_agreement_at_last();
    std::vector<Layer> layers;
    for (const StepReport& report : reports_) {
      layers.insert(layers.end(), report.layers.begin(), report.layers.end());
    }
    BuildResult result{compose_image(config(), layers, lock_.epoch), std::move(reports_)};
    store_.put_image(result.image);
    return result;
  }

 private:
  ImageConfig config() {
    if (!lock_.base) return image_config(lock_, options_.files.digest);
    const BaseImageLayers base{store_, inputs_, *lock_.base};
    const ImageConfig settings = base.settings();
    return image_config(lock_, options_.files.digest, &settings);
  }

  void look_up() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      reports_.push_back({step.title, step.key, /*reused=*/false, {}});
      if (step.kind == Step::Kind::run) continue;
      if (std::optional<std::vector<Layer>> layers = find_layers(store_, step.key)) {
        reports_[i].reused = true;
        finish_step(i, *std::move(layers), /*made=*/false);
      } else if (auto recorded = recorded_foreign_layers(lock_, plan_, i, options_.run)) {
        reports_[i].reused = true;
        finish_step(i, *std::move(recorded), /*made=*/true);
      } else {
        missing_.push_back(i);
      }
    }
  }

  void finish_step(std::size_t index, std::vector<Layer> layers, bool made) {
    if (made) remember_layers(store_, plan_.steps[index].key, layers);
    if (options_.on_layer) {
      for (const Layer& layer : layers) options_.on_layer(layer);
    }
    reports_[index].layers = std::move(layers);
  }

  /// Steps give a layer each, but for an image as base, and bytecode, which gives what is left.
  std::size_t count_of_layers(const Step& step, std::size_t all) const {
    const auto base = [&] { return lock_.base ? lock_.base->layers.size() : 1; };
    if (step.kind == Step::Kind::base) return base();
    if (step.kind != Step::Kind::bytecode) return 1;
    const std::size_t others = base() + plan_.steps.size() - 2;
    return all - std::min(all, others);
  }

  std::optional<Image> take_finished() {
    if (missing_.empty() || !options_.finished) return std::nullopt;
    std::optional<Image> image = options_.finished();
    if (!image) return std::nullopt;
    std::vector<StepReport> reports;
    std::size_t next = 0;
    for (const Step& step : plan_.steps) {
      reports.push_back({step.title, step.key, /*reused=*/true, {}});
      const std::size_t count = count_of_layers(step, image->layers.size());
      for (std::size_t i = 0; i < count && next < image->layers.size(); ++i) {
        reports.back().layers.push_back(image->layers[next++]);
      }
    }
    if (next != image->layers.size()) return std::nullopt;
    reports_ = std::move(reports);
    for (const Layer& layer : image->layers) {
      if (options_.on_layer) options_.on_layer(layer);
    }
    return image;
  }

  // --- making what is missing --------------------------------------------------------------------

  void make_missing() {
    try {
      fetch_and_make();
    } catch (const Error& error) {
      if (!is_gone(error)) throw;
      throw inputs_.all_gone(error, needs());
    }
  }

  InputNeeds needs() const {
    InputNeeds needs;
    for (const std::size_t wheel : needed_) needs.wheels.push_back(lock_.wheels[wheel]);
    const bool debs = lock_.base ? system_step_ && is_missing(*system_step_) : is_missing(0);
    if (debs) needs.debs = lock_.debs;
    if (interpreter_step_ && is_missing(*interpreter_step_)) needs.python = lock_.interpreter;
    return needs;
  }

  void fetch_and_make() {
    const unsigned jobs = options_.jobs != 0 ? options_.jobs : usable_processors();
    inputs_.locate(wheels_needed());
    Pool downloads{kBuildDownloads};
    Pool work{jobs};
    work_ = &work;
    TaskGroup group;
    group_ = &group;
    waiting_.resize(plan_.steps.size());
    start_base(downloads, jobs);
    start_wheels(downloads);
    group.wait();
    // The compiler's interpreters end before the pools do.
    bytecode_.finish();
  }

  bool is_missing(std::size_t step) const {
    return std::find(missing_.begin(), missing_.end(), step) != missing_.end();
  }

  /// Wheels that some missing step reads.
  std::vector<LockedWheel> wheels_needed() {
    for (const std::size_t index : missing_) {
      const Step& step = plan_.steps[index];
      for (const std::size_t wheel : step.wheels) {
        if (step.kind != Step::Kind::bytecode || bytecode_.reads(wheel)) needed_.insert(wheel);
      }
    }
    std::vector<LockedWheel> wheels;
    wheels.reserve(needed_.size());
    for (const std::size_t index : needed_) wheels.push_back(lock_.wheels[index]);
    return wheels;
  }

  void start_base(Pool& downloads, unsigned jobs) {
    group_->spawn(downloads, [this, jobs] {
      if (is_missing(0)) make_base(jobs);
      if (system_step_ && is_missing(*system_step_)) make_system(jobs);
      if (!options_.files.parts.empty()) {
        group_->spawn(*work_, [this, jobs] { make_files(jobs); });
      }
      if (interpreter_step_ && is_missing(*interpreter_step_)) make_interpreter(jobs);
      if (wants_bytecode()) bytecode_.base_is_ready(base_layers(), own_python(), jobs);
    });
  }

  void make_base(unsigned jobs) {
    if (lock_.base) {
      const BaseImageLayers base{store_, inputs_, *lock_.base};
      return finish_step(0, base.layers(), /*made=*/true);
    }
    require_sandbox();
    // A pool of its own: the base's downloads and chunks must not wait behind wheels.
    Pool pool{std::max(jobs, 4U)};
    const std::vector<fs::path> packages = fetch_packages(pool);
    finish_step(0, {make_base_layer(lock_, packages, store_, pool, progress_)}, /*made=*/true);
  }

  /// On top of a base that is an image.
  void make_system(unsigned jobs) {
    require_sandbox();
    Pool pool{std::max(jobs, 4U)};
    const std::vector<fs::path> packages = fetch_packages(pool);
    const SystemJob job{lock_, packages, reports_[0].layers};
    finish_step(*system_step_, {make_system_layer(job, store_, pool, progress_)}, /*made=*/true);
  }

  std::vector<fs::path> fetch_packages(Pool& pool) {
    Activity activity{progress_, "fetch Debian packages", lock_.debs.size(), "packages"};
    return inputs_.packages(lock_.debs, pool, [&] { activity.advance(1); });
  }

  /// With the Debian packages that come on top of an image.
  std::vector<Layer> base_layers() const {
    std::vector<Layer> layers = reports_[0].layers;
    if (!system_step_) return layers;
    const std::vector<Layer>& more = reports_[*system_step_].layers;
    layers.insert(layers.end(), more.begin(), more.end());
    return layers;
  }

  void make_interpreter(unsigned jobs) {
    const Activity activity{progress_, "unpack Python " + lock_.python, 0, ""};
    Pool pool{jobs};
    const fs::path archive = inputs_.python(lock_.interpreter.value());
    const fs::path base = unpack_layer(store_, reports_[0].layers.at(0), progress_);
    finish_step(*interpreter_step_,
                {make_interpreter_layer({lock_, archive, base, jobs}, store_, pool)},
                /*made=*/true);
  }

  /// That the recipe brings along.
  const Layer* own_python() const {
    return interpreter_step_ ? &reports_[*interpreter_step_].layers.at(0) : nullptr;
  }

  bool wants_bytecode() const { return bytecode_step_ && is_missing(*bytecode_step_); }

  void make_files(unsigned jobs) {
    const std::vector<FilesPart>& parts = options_.files.parts;
    const std::vector<Layer> base = base_layers();
    Pool pool{jobs};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t index = first_run() - parts.size() + i;
      if (!is_missing(index)) continue;
      const Activity activity{progress_, "copy " + parts[i].title, 0, ""};
      const FilesJob job{parts[i], base, lock_.epoch};
      Layer layer = make_files_layer(job, store_, pool, options_.unpack);
      finish_step(index, {std::move(layer)}, /*made=*/true);
    }
  }

  void start_wheels(Pool& downloads) {
    for (const std::size_t index : missing_) {
      const Step& step = plan_.steps[index];
      if (step.kind == Step::Kind::sources) {
        finish_step(index, {make_sources()}, true);
      } else if (step.kind == Step::Kind::environment) {
        finish_step(index, {make_environment_layer(lock_, store_, options_.unpack)}, true);
      }
      waiting_[index] = step.wheels.size();
    }
    if (wants_bytecode()) {
      bytecode_.start(*work_, *group_, [this](std::vector<Layer> layers) {
        finish_step(bytecode_step_.value(), std::move(layers), /*made=*/true);
      });
    }
    // Largest first: the longest chain of work starts earliest.
    std::vector<std::size_t> order(needed_.begin(), needed_.end());
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return lock_.wheels[a].size_bytes > lock_.wheels[b].size_bytes;
    });
    for (const std::size_t wheel : order) {
      group_->spawn(downloads, [this, wheel] {
        inputs_.wheel(lock_.wheels[wheel]);
        wheel_is_ready(wheel);
      });
    }
  }

  Layer make_sources() {
    if (digest_of(options_.sources) != lock_.settings.sources) {
      throw Error{Kind::internal, "other-sources", "the package sources are not those of the lock"};
    }
    return make_sources_layer(lock_, options_.sources, store_, options_.unpack);
  }

  void wheel_is_ready(std::size_t wheel) {
    if (wants_bytecode()) bytecode_.wheel_is_ready(wheel);
    const std::lock_guard lock{mutex_};
    if (++ready_wheels_ == lock_.wheels.size())
      group_->spawn(*work_, [this] { wheels_.check_agreement(store_); });
    for (const std::size_t index : missing_) {
      const Step& step = plan_.steps[index];
      if (step.kind != Step::Kind::wheels) continue;
      if (std::find(step.wheels.begin(), step.wheels.end(), wheel) == step.wheels.end()) continue;
      if (--waiting_[index] == 0) group_->spawn(*work_, [this, index] { make_wheels(index); });
    }
  }

  void make_wheels(std::size_t index) {
    const Step& step = plan_.steps[index];
    const Activity activity{progress_, "unpack " + step.title, 0, "bytes"};
    Layer layer = while_doing("making the layer of " + step.title, [&] {
      return make_wheels_layer(wheels_.get(step.wheels), lock_.epoch, step.title, store_,
                               options_.unpack);
    });
    finish_step(index, {std::move(layer)}, /*made=*/true);
  }

  // --- run steps, on top of all others --------------------------------------------------------

  std::size_t first_run() const { return plan_.steps.size() - lock_.settings.run.size(); }

  /// Steps are certain to be executed where something below is new: then not after minutes.
  void check_secrets() const {
    if (missing_.empty() || !options_.run.recorded.empty()) return;
    for (std::size_t i = 0; i < lock_.settings.run.size(); ++i) {
      require_secrets(lock_.settings.run[i], i, options_.run);
    }
  }

  void make_runs() {
    if (lock_.settings.run.empty()) return;
    const ImageConfig image = config();
    StepRunner runner{lock_,  image.env, image.workdir, options_.run,
                      store_, progress_, options_.jobs};
    for (std::size_t i = 0; i < first_run(); ++i) {
      const Step::Kind kind = plan_.steps[i].kind;
      const bool owned =
          kind == Step::Kind::base || kind == Step::Kind::system || kind == Step::Kind::files;
      for (const Layer& layer : reports_[i].layers) runner.put(layer, owned);
    }
    for (std::size_t i = 0; i < lock_.settings.run.size(); ++i) {
      StepRunner::Outcome outcome = runner.run(i);
      StepReport& report = reports_[first_run() + i];
      report.key = outcome.key;
      report.reused = outcome.reused;
      finish_step(first_run() + i, {std::move(outcome.layer)}, /*made=*/false);
    }
  }

  // --- afterwards --------------------------------------------------------------------------------

  void unpack_all() {
    std::vector<Layer> folded;
    for (const StepReport& report : reports_) {
      for (const Layer& layer : report.layers) {
        if (!store_.find_tree(layer.diff_id)) folded.push_back(layer);
      }
    }
    Pool pool{options_.jobs};
    pool.for_each(folded.size(),
                  [&](std::size_t i) { unpack_layer(store_, folded[i], progress_); });
  }

  /// Where not all were needed, and fetched, anyway.
  void check_agreement_at_last() {
    if (lock_.wheels.empty() || wheels_.agree_as_known(store_)) return;
    inputs_.locate(lock_.wheels);
    wheels_.check_agreement(store_);
  }

  const Lock& lock_;
  Store& store_;
  Inputs& inputs_;
  const BuildOptions& options_;
  Progress& progress_;
  Plan plan_;
  std::optional<std::size_t> bytecode_step_;
  std::optional<std::size_t> interpreter_step_;
  std::optional<std::size_t> system_step_;
  std::vector<StepReport> reports_;
  std::vector<std::size_t> missing_;  // steps
  std::set<std::size_t> needed_;      // wheels

  std::mutex mutex_;                  // guards the next two while tasks run
  std::vector<std::size_t> waiting_;  // by step: wheels not there yet
  std::size_t ready_wheels_ = 0;

  WheelFiles wheels_;
  BytecodeStep bytecode_;

  Pool* work_ = nullptr;
  TaskGroup* group_ = nullptr;
};

}  // namespace

BuildResult build(const Lock& lock, Store& store, Inputs& inputs, const BuildOptions& options,
                  Progress& progress) {
  return Build{lock, store, inputs, options, progress}.run();
}

}  // namespace mlenv
