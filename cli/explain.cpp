#include "cli/explain.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "builder/plan.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

template <typename Parse>
auto read_if_sound(const fs::path& path, Parse&& parse)
    -> std::optional<decltype(parse(std::string_view{}, path))> {
  try {
    const auto text = read_small_file_if_exists(path, size_limit::kLock);
    if (text) return parse(*text, path);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the build itself says what is wrong
  }
  return std::nullopt;
}

/// Of the old lock's wheels those that this step is about: of the same names, and of a step that
/// shares its layer among many wheels also those that such a step had.
std::vector<LockedWheel> counterparts(const Lock& before, const Lock& now, const Step& step) {
  std::vector<bool> wanted(before.wheels.size());
  for (std::size_t i = 0; i < before.wheels.size(); ++i) {
    wanted[i] = std::any_of(step.wheels.begin(), step.wheels.end(), [&](std::size_t wheel) {
      return now.wheels[wheel].name == before.wheels[i].name;
    });
  }
  for (const Step& old : make_plan(before).steps) {
    if (old.kind != step.kind || old.wheels.size() < 2 || step.wheels.size() < 2) continue;
    for (const std::size_t wheel : old.wheels) wanted[wheel] = true;
  }
  std::vector<LockedWheel> wheels;
  for (std::size_t i = 0; i < before.wheels.size(); ++i) {
    if (wanted[i]) wheels.push_back(before.wheels[i]);
  }
  return wheels;
}

/// What of a lock goes into a step, so that the differences of two are the step's own.
Lock inputs_of(const Lock& lock, Step::Kind kind, std::vector<LockedWheel> wheels) {
  Lock part;
  part.epoch = lock.epoch;
  switch (kind) {
    case Step::Kind::base:
    case Step::Kind::system:
    case Step::Kind::files:
      part.platform = lock.platform;
      part.distribution = lock.distribution;
      part.suite = lock.suite;
      part.base = lock.base;
      if (!lock.base || kind != Step::Kind::base) part.debs = lock.debs;
      break;
    case Step::Kind::sources:
      part.settings.sources = lock.settings.sources;
      break;
    case Step::Kind::interpreter:
      part.request.interpreter = lock.request.interpreter;
      part.settings.bytecode = lock.settings.bytecode;
      part.distribution = lock.distribution;
      part.suite = lock.suite;
      part.debs = lock.debs;
      break;
    case Step::Kind::environment:
      part.python = lock.python;
      part.request.interpreter = lock.request.interpreter;
      part.base = lock.base;
      break;
    case Step::Kind::bytecode:
      part.python = lock.python;
      part.wheels = std::move(wheels);
      break;
    case Step::Kind::wheels:
      part.wheels = std::move(wheels);
      break;
    case Step::Kind::run:
      part = lock;
      break;
  }
  return part;
}

std::string changes(const Lock& before, const Lock& now, const Step& step) {
  constexpr std::size_t kMost = 3;
  std::vector<LockedWheel> wheels;
  wheels.reserve(step.wheels.size());
  for (const std::size_t wheel : step.wheels) wheels.push_back(now.wheels[wheel]);
  const std::vector<std::string> lines =
      lock_differences(inputs_of(before, step.kind, counterparts(before, now, step)),
                       inputs_of(now, step.kind, std::move(wheels)));
  return listed(lines, kMost);
}

/// Of what an earlier build left, what is of this build's platform; null: nothing.
struct Before {
  Before(const EarlierBuild& earlier, const std::string& platform)
      : lock(earlier.locks ? earlier.locks->find(platform) : nullptr),
        built(earlier.builds ? earlier.builds->find(platform) : nullptr) {}
  const Lock* lock;
  const Built* built;
};

std::string why_made(const Before& earlier, const BuildOutcome& outcome, const Step& step) {
  const Lock& lock = outcome.lock;
  const std::string key = fmt::format("(key {})", step.key.brief());
  if (earlier.built != nullptr && earlier.built->layer_format != kLayerFormat) {
    return fmt::format("layer format {} → {}", earlier.built->layer_format, kLayerFormat);
  }
  const bool other_files = earlier.built != nullptr && earlier.built->files != outcome.files.digest;
  if ((step.kind == Step::Kind::files || step.kind == Step::Kind::run) && other_files) {
    return fmt::format("since the last build: project files {} → {}",
                       earlier.built->files ? earlier.built->files->brief() : "none",
                       outcome.files.digest ? outcome.files.digest->brief() : "none");
  }
  if (earlier.built != nullptr && earlier.built->lock == lock_digest(lock)) {
    return "built before, but its layers are not in this store " + key;
  }
  if (earlier.built != nullptr && earlier.lock != nullptr &&
      earlier.built->lock == lock_digest(*earlier.lock)) {
    const std::string text = changes(*earlier.lock, lock, step);
    if (!text.empty()) return "since the last build: " + text;
  }
  return "not built yet with these inputs " + key;
}

}  // namespace

EarlierBuild earlier_build(const fs::path& recipe) {
  return {read_if_sound(lock_path(recipe), parse_locks),
          read_if_sound(built_path(recipe), parse_builds)};
}

std::vector<std::string> explanation(const EarlierBuild& earlier, const BuildOutcome& outcome) {
  Plan plan = make_plan(outcome.lock, outcome.files.parts);
  const Before before{earlier, outcome.lock.platform};
  const std::vector<StepReport>& steps = outcome.result.steps;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepReport& step = steps[i];
    plan.steps.at(i).key = step.key;
    std::uint64_t bytes = 0;
    for (const Layer& layer : step.layers) bytes += layer.blob.size_bytes;
    lines.push_back(fmt::format(
        "{:<7} {}  {}  {}", step.reused ? "reused" : "made", step.title, human_bytes(bytes),
        step.reused ? fmt::format("in the store already (key {})", step.key.brief())
                    : why_made(before, outcome, plan.steps.at(i))));
  }
  return lines;
}

}  // namespace mlenv::cli
