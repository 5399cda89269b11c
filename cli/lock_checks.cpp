#include "cli/lock_checks.hpp"

#include <algorithm>

#include "cli/settings.hpp"
#include "recipes/device_code.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

bool holds_wheel(const LockSet& locks, std::string_view name) {
  return std::any_of(locks.locks.begin(), locks.locks.end(),
                     [&](const Lock& lock) { return find_wheel(lock.wheels, name) != nullptr; });
}

bool holds_deb(const LockSet& locks, std::string_view name) {
  return std::any_of(locks.locks.begin(), locks.locks.end(), [&](const Lock& lock) {
    return std::any_of(lock.debs.begin(), lock.debs.end(),
                       [&](const LockedDeb& deb) { return deb.name == name; });
  });
}

Error not_locked(const std::string& name, const LockSet& locks, const fs::path& path) {
  Error error =
      usage_error("bad-package", "`{}` holds no Python package `{}`", path.string(), name);
  if (holds_deb(locks, name)) {
    return std::move(error)
        .because("it holds the Debian package; these move together, with their archive")
        .hint("`mlenv lock --upgrade` without a name resolves everything anew");
  }
  std::vector<std::string_view> names;
  for (const Lock& lock : locks.locks) {
    for (const LockedWheel& wheel : lock.wheels) names.emplace_back(wheel.name);
  }
  const std::string_view near = nearest(name, names);
  if (near.empty()) return std::move(error).hint("`mlenv add` puts a package into the recipe");
  return std::move(error).hint(did_you_mean(near));
}

}  // namespace

std::vector<std::string> moved_packages(const std::vector<std::string>& wanted,
                                        const std::optional<LockSet>& locks, const fs::path& path) {
  if (!locks) {
    throw usage_error("no-lock", "there is no `{}` whose packages could be upgraded", path.string())
        .hint("run `mlenv lock` without --upgrade");
  }
  std::vector<std::string> names;
  for (const std::string& text : wanted) {
    std::string name = normalise_wheel_name(text);
    if (!holds_wheel(*locks, name)) throw not_locked(text, *locks, path);
    names.push_back(std::move(name));
  }
  return names;
}

void require_device_code(Ui& ui, const Lock& lock) {
  if (lock.request.gpus.empty()) return;
  const auto path_of = [&](const LockedWheel& wheel) { return ui.store().path_of(wheel.digest); };
  const std::vector<std::string> gaps =
      missing_device_code(lock, path_of, cache_folder(), ui.progress());
  if (gaps.empty()) return;
  Error error = refusal("no-gpu-code", "the wheels hold no code for some of the recipe's `gpus`");
  for (const std::string& gap : gaps) error.because(gap);
  throw std::move(error).hint(
      "ask for other versions of these packages, or for another `cuda`; or leave the GPU out");
}

}  // namespace mlenv::cli
