#include "cli/recipe_lock.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/data.hpp"
#include "cli/input_sources.hpp"
#include "cli/lock_checks.hpp"
#include "cli/platforms.hpp"
#include "cli/settings.hpp"
#include "images/platform.hpp"
#include "recipes/resolve/lock_gaps.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

Error conflict_error(const Conflict& conflict) {
  Error error = refusal("unsatisfiable", "{}", conflict.headline);
  for (const std::string& fact : conflict.facts) error.because(fact);
  if (!conflict.hint.empty()) error.hint(conflict.hint);
  return error;
}

std::optional<LockSet> read_lock(const fs::path& path) {
  const std::optional<std::string> text = read_beside(path, "lock-invalid", "the recipe's lock");
  if (!text) return std::nullopt;
  return parse_locks(*text, path);
}

bool is_current(const Recipe& recipe, const Lock& lock) {
  return lock.request == request_of(recipe) && lock.settings == settings_of(recipe) &&
         lock_gaps(recipe, lock).empty() && source_changes(recipe, lock).empty();
}

/// The locks as they would be if the recipe's new wishes changed no package.
LockSet wished(const Recipe& recipe, const LockSet& locks) {
  LockSet wanted;
  for (const std::string& platform : recipe.wanted_platforms()) {
    const Lock* there = locks.find(platform);
    wanted.locks.push_back(there == nullptr ? locks.locks.front() : *there);
    wanted.locks.back().platform = platform;
    wanted.locks.back().request = request_of(recipe);
    wanted.locks.back().settings = settings_of(recipe);
  }
  return wanted;
}

Error lock_mismatch(const Recipe& recipe, const LockSet& locks) {
  Error error = refusal("lock-outdated", "`{}` does not match `{}`",
                        lock_path(recipe.path).string(), recipe.path.string());
  std::vector<std::string> reasons = lock_set_differences(locks, wished(recipe, locks));
  for (const Lock& lock : locks.locks) {
    if (reasons.empty()) reasons = lock_gaps(recipe, lock);
  }
  for (std::string& change : source_changes(recipe, locks.locks.front())) {
    reasons.push_back(std::move(change));
  }
  for (const std::string& reason : reasons) error.because(reason);
  return std::move(error).hint("run `mlenv lock` and commit the lock");
}

bool is_current(const Recipe& recipe, const LockSet& locks) {
  const std::vector<std::string> wanted = recipe.wanted_platforms();
  return std::equal(wanted.begin(), wanted.end(), locks.locks.begin(), locks.locks.end(),
                    [&](const std::string& platform, const Lock& lock) {
                      return lock.platform == platform && is_current(recipe, lock);
                    });
}

LockSet require_lock(const Recipe& recipe) {
  const fs::path path = lock_path(recipe.path);
  std::optional<LockSet> locks = read_lock(path);
  if (!locks) {
    throw refusal("no-lock", "there is no `{}`, and --locked asks for one", path.string())
        .hint("run `mlenv lock` and commit the lock");
  }
  if (!is_current(recipe, *locks)) throw lock_mismatch(recipe, *locks);
  return *std::move(locks);
}

/// Of another platform: what was just made or kept, else what is there.
const Lock* sibling_of(const LockSet& made, const std::optional<LockSet>& previous,
                       const std::string& platform) {
  if (!made.locks.empty()) return &made.locks.front();
  if (!previous) return nullptr;
  const auto found = std::find_if(previous->locks.begin(), previous->locks.end(),
                                  [&](const Lock& lock) { return lock.platform != platform; });
  return found == previous->locks.end() ? nullptr : &*found;
}

/// What is asked of the resolver for one platform.
class Locking {
 public:
  Locking(Ui& ui, const Recipe& recipe, const LockChoice& choice)
      : ui_(ui), recipe_(recipe), choice_(choice) {}

  /// `sibling`: of another platform, or null.
  Lock resolve_for(const std::string& platform, const Lock* previous, const Lock* sibling,
                   ResolveOptions options) {
    options.platform = platform;
    options.previous = previous;
    options.sibling = sibling;
    options.cache = cache_folder();
    options.upgrade = choice_.upgrade;
    options.find_base = [&](const std::optional<Digest>& pinned) {
      return find_base(recipe_, platform, pinned, base_access(ui_));
    };
    options.build = [&](const SourceRelease& release,
                        const Lock& base) -> std::variant<BuiltRelease, Conflict> {
      if (platform != machine_platform()) return cannot_build(release, platform);
      return release_builder(ui_, recipe_, 0).build(release, base);
    };
    options.build_direct = [&](const DirectRequirement& wanted, const Lock& base,
                               const Lock* before) -> std::variant<BuiltRelease, Conflict> {
      if (platform != machine_platform() && !wanted.address.is_wheel()) {
        return cannot_build(
            {wanted.name, {}, wanted.address.str(), {}, Digest::of(std::string_view{}), 0},
            platform);
      }
      return release_builder(ui_, recipe_, 0).build_direct(wanted, base, before);
    };
    Resolution resolution = while_doing(
        what(platform), [&] { return resolve(recipe_, options, ui_.http(), ui_.progress()); });
    if (Conflict* conflict = std::get_if<Conflict>(&resolution)) {
      if (is_named()) conflict->headline = platform + ": " + conflict->headline;
      throw conflict_error(*conflict);
    }
    Lock lock = std::get<Lock>(std::move(resolution));
    require_device_code(ui_, lock);
    return lock;
  }

 private:
  bool is_named() const { return !recipe_.platforms.empty(); }
  std::string what(const std::string& platform) const {
    const std::string text = "locking `" + recipe_.path.string() + "`";
    return is_named() ? text + " for " + platform : text;
  }

  Ui& ui_;
  const Recipe& recipe_;
  const LockChoice& choice_;
};

}  // namespace

std::optional<std::string> read_beside(const fs::path& path, std::string_view code,
                                       std::string_view what) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    throw usage_error(std::string(code), "`{}` is a folder, and {} belongs there", path.string(),
                      what)
        .hint("give the folder or the recipe another name");
  }
  return read_file_if_exists(path);
}

LockOutcome choose_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice) {
  verify_data(ui, recipe);
  if (choice.locked) return {require_lock(recipe), false, {}};
  const fs::path path = lock_path(recipe.path);
  const std::optional<LockSet> previous = read_lock(path);
  const bool moves = choice.upgrade || !choice.moved_names.empty();
  if (previous && !moves && is_current(recipe, *previous)) return {*previous, false, {}};
  if (previous) require_known_revision(previous->locks.front());
  ResolveOptions options;
  if (!choice.moved_names.empty())
    options.moved = moved_packages(choice.moved_names, previous, path);
  options.epoch = source_date_epoch();
  // What stays has its time, and all platforms have one.
  const auto stays = [&](const Lock* lock) {
    return lock != nullptr && !moves && is_current(recipe, *lock);
  };
  const std::vector<std::string> platforms = recipe.wanted_platforms();
  for (const std::string& platform : platforms) {
    const Lock* before = previous ? previous->find(platform) : nullptr;
    if (stays(before)) options.epoch = before->epoch;
  }
  LockSet locks;
  for (const std::string& platform : platforms) {
    const Lock* before = previous ? previous->find(platform) : nullptr;
    // What stands aside for an upgrade must not come back through another platform.
    const Lock* sibling = choice.upgrade ? sibling_of(locks, std::nullopt, platform)
                                         : sibling_of(locks, previous, platform);
    locks.locks.push_back(stays(before) ? *before
                                        : Locking{ui, recipe, choice}.resolve_for(
                                              platform, before, sibling, options));
  }
  const bool changed = !previous || *previous != locks;
  std::vector<std::string> changes;
  if (previous) changes = lock_set_differences(*previous, locks);
  return {std::move(locks), changed, std::move(changes)};
}

LockOutcome provide_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice) {
  LockOutcome outcome = choose_lock(ui, recipe, choice);
  if (outcome.written) write_file(lock_path(recipe.path), render_locks(outcome.locks));
  return outcome;
}

std::string lock_summary(const Recipe& recipe, const LockOutcome& outcome) {
  const PackageCounts counts = count_packages(outcome.locks);
  std::string text = fmt::format(
      "{} `{}`: {}, {}", outcome.written ? "wrote" : "unchanged:", lock_path(recipe.path).string(),
      counted(counts.wheels, "wheel"), counted(counts.debs, "Debian package"));
  if (recipe.platforms.empty()) return text;
  return fmt::format("{}, for {}", text, outcome.locks.platforms());
}

nlohmann::json lock_as_json(const Recipe& recipe, const LockOutcome& outcome) {
  const PackageCounts counts = count_packages(outcome.locks);
  nlohmann::json platforms = nlohmann::json::array();
  for (const Lock& lock : outcome.locks.locks) {
    platforms.push_back({{"platform", lock.platform},
                         {"digest", lock_digest(lock).str()},
                         {"wheels", lock.wheels.size()},
                         {"debs", lock.debs.size()}});
  }
  return {{"path", lock_path(recipe.path).string()},
          {"digest", locks_digest(outcome.locks).str()},
          {"written", outcome.written},
          {"wheels", counts.wheels},
          {"debs", counts.debs},
          {"platforms", std::move(platforms)},
          {"changes", outcome.changes}};
}

}  // namespace mlenv::cli
