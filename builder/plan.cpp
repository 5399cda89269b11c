#include "builder/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "builder/key_text.hpp"
#include "builder/run/run_step.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// The layers say all: which image names them makes no difference.
Step image_step(const Lock& lock, const LockedBase& base) {
  KeyText key{"base image"};
  for (const Layer& layer : base.layers) {
    key.add("type", layer.blob.media_type).add("layer", layer.blob.digest.str());
  }
  return {Step::Kind::base, lock.request.base, key.digest(), {}};
}

Step base_step(const Lock& lock) {
  if (lock.base) return image_step(lock, *lock.base);
  KeyText key{"base"};
  key.add("epoch", lock.epoch).add("platform", lock.platform);
  key.add("distribution", lock.distribution).add("suite", lock.suite);
  for (const LockedDeb& deb : lock.debs) key.add("deb", deb.digest.str());
  return {Step::Kind::base, fmt::format("{}:{}", lock.distribution, lock.suite), key.digest(), {}};
}

Step system_step(const Lock& lock, const Digest& base) {
  KeyText key{"system"};
  key.add("epoch", lock.epoch).add("base", base.str());
  for (const LockedDeb& deb : lock.debs) key.add("deb", deb.digest.str());
  return {Step::Kind::system, system_title(lock), key.digest(), {}};
}

Step sources_step(const Lock& lock, const Digest& files) {
  KeyText key{"sources"};
  key.add("epoch", lock.epoch).add("files", files.str());
  return {Step::Kind::sources, "package sources", key.digest(), {}};
}

/// The base is an input: in it the interpreter compiles its own modules.
Step interpreter_step(const Lock& lock, const LockedPython& python, const Digest& base) {
  KeyText key{"interpreter"};
  key.add("epoch", lock.epoch).add("archive", python.digest.str());
  key.add("bytecode", static_cast<std::int64_t>(lock.settings.bytecode));
  key.add("base", base.str());
  return {Step::Kind::interpreter, "Python " + python.version, key.digest(), {}};
}

Step environment_step(const Lock& lock) {
  KeyText key{"environment"};
  key.add("epoch", lock.epoch).add("python", lock.python);
  if (lock.interpreter) key.add("interpreter", lock.interpreter->digest.str());
  if (lock.base) key.add("interpreter", lock.base->interpreter);
  return {
      Step::Kind::environment, "environment for Python " + lock.python_minor(), key.digest(), {}};
}

Step wheels_step(const Lock& lock, std::vector<std::size_t> wheels, std::string title) {
  KeyText key{"wheels"};
  key.add("epoch", lock.epoch);
  for (const std::size_t index : wheels) {
    const LockedWheel& wheel = lock.wheels[index];
    key.add("wheel", wheel.digest.str()).add("file", wheel.file);
    key.add("requested", static_cast<std::int64_t>(wheel.requested));
  }
  return {Step::Kind::wheels, std::move(title), key.digest(), std::move(wheels)};
}

std::uint64_t own_layer_bound(const Lock& lock) {
  std::uint64_t bound = kOwnLayerBytes;
  auto owners = [&] {
    return static_cast<std::size_t>(
        std::count_if(lock.wheels.begin(), lock.wheels.end(),
                      [&](const LockedWheel& wheel) { return wheel.size_bytes >= bound; }));
  };
  while (owners() > kOwnLayers) bound *= 2;
  return bound;
}

void add_wheel_steps(const Lock& lock, Plan& plan) {
  const std::uint64_t bound = own_layer_bound(lock);
  std::vector<std::size_t> pool;
  for (std::size_t i = 0; i < lock.wheels.size(); ++i) {
    const LockedWheel& wheel = lock.wheels[i];
    if (wheel.size_bytes < bound) {
      pool.push_back(i);
    } else {
      plan.steps.push_back(wheels_step(lock, {i}, fmt::format("{} {}", wheel.name, wheel.version)));
    }
  }
  if (pool.empty()) return;
  std::string title = fmt::format("{} small wheels", pool.size());
  if (pool.size() == 1) {
    title = fmt::format("{} {}", lock.wheels[pool[0]].name, lock.wheels[pool[0]].version);
  }
  plan.steps.push_back(wheels_step(lock, std::move(pool), std::move(title)));
}

Step bytecode_step(const Lock& lock) {
  KeyText key{"bytecode"};
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < lock.wheels.size(); ++i) {
    key.add("wheel", bytecode_key(lock, lock.wheels[i]).str());
    all.push_back(i);
  }
  return {Step::Kind::bytecode, "bytecode", key.digest(), std::move(all)};
}

/// The base is an input: its folders keep their modes.
Step files_step(const Lock& lock, const FilesPart& part, const Digest& base) {
  KeyText key{"files"};
  key.add("epoch", lock.epoch).add("base", base.str());
  key.add("title", part.title).add("files", part.digest.str());
  return {Step::Kind::files, part.title, key.digest(), {}};
}

void add_python_steps(const Lock& lock, Plan& plan) {
  if (lock.interpreter) {
    plan.steps.push_back(interpreter_step(lock, *lock.interpreter, plan.steps.front().key));
  }
  plan.steps.push_back(environment_step(lock));
  add_wheel_steps(lock, plan);
  if (lock.settings.bytecode && !lock.wheels.empty()) plan.steps.push_back(bytecode_step(lock));
}

}  // namespace

Plan make_plan(const Lock& lock, const std::vector<FilesPart>& files) {
  Plan plan;
  plan.steps.push_back(base_step(lock));
  if (lock.base && !lock.debs.empty()) {
    plan.steps.push_back(system_step(lock, plan.steps.front().key));
  }
  const Digest base = plan.steps.back().key;
  if (lock.settings.sources) plan.steps.push_back(sources_step(lock, *lock.settings.sources));
  if (!lock.python.empty()) add_python_steps(lock, plan);
  for (const FilesPart& part : files) {
    plan.steps.push_back(files_step(lock, part, base));
  }
  for (const RunStep& step : lock.settings.run) {
    plan.steps.push_back({Step::Kind::run, run_title(step), Digest::of(step.command.text), {}});
  }
  return plan;
}

std::string system_title(const Lock& lock) { return counted(lock.debs.size(), "Debian package"); }

Digest bytecode_key(const Lock& lock, const LockedWheel& wheel) {
  KeyText key{"bytecode of a wheel"};
  key.add("epoch", lock.epoch).add("python", lock.python).add("wheel", wheel.digest.str());
  if (lock.interpreter) key.add("interpreter", lock.interpreter->digest.str());
  return key.digest();
}

}  // namespace mlenv
