#include "cli/platform_lock.hpp"

#include <algorithm>

#include "builder/foreign_release.hpp"
#include "builder/kept_source.hpp"
#include "cli/input_sources.hpp"
#include "cli/lock_checks.hpp"
#include "cli/settings.hpp"
#include "images/platform.hpp"

namespace mlenv::cli {
namespace {

Error conflict_error(const Conflict& conflict) {
  Error error = refusal("unsatisfiable", "{}", conflict.headline);
  for (const std::string& fact : conflict.facts) error.because(fact);
  if (!conflict.hint.empty()) error.hint(conflict.hint);
  return error;
}

const Lock* sibling_of(const PlatformsSoFar& so_far) {
  return so_far.made.locks.empty() ? so_far.other_previous : &so_far.made.locks.front();
}

}  // namespace

bool PlatformLocking::moves(const std::string& name) const {
  return choice_.upgrade ||
         std::find(options_.moved.begin(), options_.moved.end(), name) != options_.moved.end();
}

/// All of a recipe's platforms have the same bases of Debian's packages, so that one for this
/// machine can be had though nothing is locked for it.
std::variant<const Lock*, Conflict> PlatformLocking::base_here(const PlatformsSoFar& so_far) {
  const std::string here = machine_platform();
  if (const Lock* made = so_far.made.find(here)) return made;
  if (recipe_.sources.python) {
    Conflict conflict;
    conflict.headline = fmt::format("what has no wheel has to be built on a {} machine",
                                    recipe_.wanted_platforms().front());
    conflict.facts.push_back(
        fmt::format("the recipe's own Python runs there alone; this machine is {}", here));
    return conflict;
  }
  if (!stand_in_) {
    ResolveOptions options = options_;
    options.platform = here;
    options.cache = cache_folder();
    options.base_alone = true;
    Resolution found = resolve(recipe_, options, ui_.http(), ui_.progress());
    if (auto* conflict = std::get_if<Conflict>(&found)) return std::move(*conflict);
    stand_in_ = std::get<Lock>(std::move(found));
  }
  return &*stand_in_;
}

PlatformLocking::Built PlatformLocking::build(const SourceRelease& release, const Lock& base,
                                              const PlatformsSoFar& so_far) {
  ReleaseBuilder builder = release_builder(ui_, recipe_, 0);
  if (base.platform == machine_platform()) return builder.build(release, base);
  ForeignBuilder foreign(
      builder, [&] { return base_here(so_far); }, moves(release.name) ? nullptr : so_far.previous);
  return foreign.build(release, base);
}

PlatformLocking::Built PlatformLocking::build_direct(const DirectRequirement& wanted,
                                                     const Lock& base, const Lock* before,
                                                     const PlatformsSoFar& so_far) {
  // A branch is at one commit in all of a lock: what another platform's has of it goes here too.
  const bool may_tell = !so_far.made.locks.empty() || !moves(wanted.name);
  if (kept_source(wanted, before) == nullptr && may_tell) before = sibling_of(so_far);
  ReleaseBuilder builder = release_builder(ui_, recipe_, 0);
  if (base.platform == machine_platform()) return builder.build_direct(wanted, base, before);
  ForeignBuilder foreign(
      builder, [&] { return base_here(so_far); }, nullptr);
  return foreign.build_direct(wanted, base, before);
}

ResolveOptions PlatformLocking::options_for(const std::string& platform,
                                            const PlatformsSoFar& so_far) {
  ResolveOptions options = options_;
  options.platform = platform;
  options.previous = so_far.previous;
  options.sibling = sibling_of(so_far);
  options.cache = cache_folder();
  options.note = [this](const std::string& text) { ui_.say("note: " + text); };
  options.upgrade = choice_.upgrade;
  options.find_base = [this, platform](const std::optional<Digest>& pinned) {
    return find_base(recipe_, platform, pinned, base_access(ui_));
  };
  options.build = [this, &so_far](const SourceRelease& release, const Lock& base) {
    return build(release, base, so_far);
  };
  options.build_direct = [this, &so_far](const DirectRequirement& wanted, const Lock& base,
                                         const Lock* before) {
    return build_direct(wanted, base, before, so_far);
  };
  return options;
}

Lock PlatformLocking::lock(const std::string& platform, const PlatformsSoFar& so_far) {
  const ResolveOptions options = options_for(platform, so_far);
  std::string what = "locking `" + recipe_.path.string() + "`";
  if (is_named()) what += " for " + platform;
  Resolution resolution =
      while_doing(what, [&] { return resolve(recipe_, options, ui_.http(), ui_.progress()); });
  if (Conflict* conflict = std::get_if<Conflict>(&resolution)) {
    if (is_named()) conflict->headline = platform + ": " + conflict->headline;
    throw conflict_error(*conflict);
  }
  Lock lock = std::get<Lock>(std::move(resolution));
  require_device_code(ui_, lock);
  return lock;
}

}  // namespace mlenv::cli
