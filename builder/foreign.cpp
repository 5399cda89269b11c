#include "builder/foreign.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "builder/bytecode/segments.hpp"
#include "images/platform.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

bool runs_programs(const Lock& lock, const Step& step) {
  return (step.kind == Step::Kind::base && !lock.base) || step.kind == Step::Kind::bytecode ||
         step.kind == Step::Kind::system ||
         (step.kind == Step::Kind::interpreter && lock.settings.bytecode);
}

/// Wheels whose bytecode the store does not know.
std::size_t uncompiled(const Lock& lock, const Store& store) {
  return static_cast<std::size_t>(std::count_if(
      lock.wheels.begin(), lock.wheels.end(),
      [&](const LockedWheel& wheel) { return !find_segment(store, bytecode_key(lock, wheel)); }));
}

/// What a step would have to run, as a sentence; empty: nothing.
std::string program_of(const Lock& lock, const Step& step, const Store& store) {
  if (!runs_programs(lock, step)) return {};
  if (step.kind == Step::Kind::base) {
    return fmt::format("the packages of `{}` are configured by dpkg and their own scripts",
                       step.title);
  }
  if (step.kind == Step::Kind::system) {
    return "the packages of `system` are put onto the base by its own dpkg";
  }
  if (step.kind == Step::Kind::interpreter) {
    return fmt::format("`{}` compiles its own modules", step.title);
  }
  const std::size_t count = uncompiled(lock, store);
  if (count == 0) return {};
  return fmt::format("the bytecode of {} is made by the image's own Python",
                     counted(count, "wheel"));
}

std::string program_of(const RunStep& step) {
  return fmt::format("`{}` is executed in the image", run_title(step));
}

Error foreign_programs(const Lock& lock, const std::vector<std::string>& programs,
                       bool bytecode_alone) {
  Error error = failure("foreign-platform",
                        "this machine, which is {}, cannot run what makes an image for {}",
                        machine_platform(), lock.platform);
  for (const std::string& program : programs) error.because(program);
  return std::move(error).hint(fmt::format(
      "build it on a {0} machine{1}; or `mlenv pull --platform {0}` the image that the recipe's "
      "`.built` file records for it, and its layers are used",
      lock.platform, bytecode_alone ? ", or write `bytecode: false` into the recipe" : ""));
}

}  // namespace

bool runs_here(const std::string& platform) { return platform == machine_platform(); }

std::optional<std::vector<Layer>> recorded_foreign_layers(const Lock& lock, const Plan& plan,
                                                          std::size_t index,
                                                          const RunOptions& run) {
  const bool wanted = !runs_here(lock.platform) && runs_programs(lock, plan.steps[index]);
  if (!wanted || !run.find) return std::nullopt;
  const std::vector<std::vector<Digest>> parts = blobs_by_step(plan, lock, run.recorded);
  if (parts.empty()) return std::nullopt;
  std::vector<Layer> layers;
  for (const Digest& blob : parts[index]) {
    std::optional<Layer> layer = run.find(blob);
    if (!layer) return std::nullopt;
    layers.push_back(*std::move(layer));
  }
  return layers;
}

void require_no_programs(const Lock& lock, const Plan& plan,
                         const std::vector<std::size_t>& missing, const RunOptions& run,
                         const Store& store) {
  if (runs_here(lock.platform)) return;
  std::vector<std::string> programs;
  bool bytecode_alone = true;
  for (const std::size_t index : missing) {
    std::string program = program_of(lock, plan.steps[index], store);
    if (program.empty()) continue;
    bytecode_alone = bytecode_alone && plan.steps[index].kind != Step::Kind::base;
    programs.push_back(std::move(program));
  }
  // Steps are certain to be executed where something below is new.
  if (!missing.empty() && run.recorded.empty() && !lock.settings.run.empty()) {
    bytecode_alone = false;
    for (const RunStep& step : lock.settings.run) programs.push_back(program_of(step));
  }
  if (!programs.empty()) throw foreign_programs(lock, programs, bytecode_alone);
}

void require_runs_here(const Lock& lock, const RunStep& step) {
  if (runs_here(lock.platform)) return;
  throw foreign_programs(lock, {program_of(step)}, /*bytecode_alone=*/false);
}

std::vector<std::vector<Digest>> blobs_by_step(const Plan& plan, const Lock& lock,
                                               const std::vector<Digest>& blobs) {
  const auto fixed = [&](const Step& step) -> std::size_t {
    if (step.kind == Step::Kind::bytecode) return 0;
    return step.kind == Step::Kind::base && lock.base ? lock.base->layers.size() : 1;
  };
  std::size_t certain = 0;
  bool has_bytecode = false;
  for (const Step& step : plan.steps) {
    certain += fixed(step);
    has_bytecode = has_bytecode || step.kind == Step::Kind::bytecode;
  }
  if (blobs.size() < certain || (blobs.size() > certain && !has_bytecode)) return {};
  std::vector<std::vector<Digest>> parts;
  auto next = blobs.begin();
  for (const Step& step : plan.steps) {
    const bool rest = step.kind == Step::Kind::bytecode;
    const auto count = static_cast<std::ptrdiff_t>(rest ? blobs.size() - certain : fixed(step));
    parts.emplace_back(next, next + count);
    next += count;
  }
  return parts;
}

}  // namespace mlenv
