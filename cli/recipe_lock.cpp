#include "cli/recipe_lock.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "cli/data.hpp"
#include "cli/lock_checks.hpp"
#include "cli/platform_lock.hpp"
#include "cli/settings.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "recipes/resolve/lock_gaps.hpp"
#include "recipes/resolve/machine_steering.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

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

/// Of another platform, where the lock that is replaced has one.
const Lock* other_of(const std::optional<LockSet>& previous, const std::string& platform) {
  if (!previous) return nullptr;
  const auto found = std::find_if(previous->locks.begin(), previous->locks.end(),
                                  [&](const Lock& lock) { return lock.platform != platform; });
  return found == previous->locks.end() ? nullptr : &*found;
}

/// What the recipe's files and this machine say of packages, and no lock heeds.
void say_what_does_not_count(Ui& ui, const Recipe& recipe) {
  for (const ListedText& one : recipe.listed.notes) {
    ui.say(fmt::format("note: {}:{}: {}", one.file->shown_path.string(), one.line, one.text));
  }
  std::vector<std::string> words;
  std::set<std::string> keys;
  for (const MachineWord& one : machine_steering(own_environment())) {
    words.push_back(one.where);
    if (!one.key.empty()) keys.insert('`' + one.key + '`');
  }
  if (words.empty()) return;
  ui.say(fmt::format(
      "note: of this machine's settings {} {} not count, as a lock is the same "
      "everywhere{}",
      join(words, ", "), words.size() == 1 ? "does" : "do",
      keys.empty() ? "" : ": the recipe says it with " + join({keys.begin(), keys.end()}, ", ")));
}

}  // namespace

std::optional<std::string> read_beside(const fs::path& path, std::string_view code,
                                       std::string_view what) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    throw usage_error(std::string(code), "`{}` is a folder, and {} belongs there", path.string(),
                      what)
        .hint("give the folder or the recipe another name");
  }
  return read_small_file_if_exists(path, size_limit::kLock);
}

LockOutcome choose_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice) {
  std::vector<VerifiedData> data = verify_data(ui, recipe);
  if (choice.locked) return {require_lock(recipe), false, {}, std::move(data)};
  const fs::path path = lock_path(recipe.path);
  const std::optional<LockSet> previous = read_lock(path);
  const bool moves = choice.upgrade || !choice.moved_names.empty();
  if (previous && !moves && is_current(recipe, *previous)) {
    return {*previous, false, {}, std::move(data)};
  }
  if (previous) require_known_revision(previous->locks.front());
  say_what_does_not_count(ui, recipe);
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
  PlatformLocking locking(ui, recipe, choice, options);
  for (const std::string& platform : platforms) {
    const Lock* before = previous ? previous->find(platform) : nullptr;
    // What stands aside for an upgrade must not come back through another platform.
    const Lock* other = choice.upgrade ? nullptr : other_of(previous, platform);
    locks.locks.push_back(stays(before) ? *before : locking.lock(platform, {locks, before, other}));
  }
  const bool changed = !previous || *previous != locks;
  std::vector<std::string> changes;
  if (previous) changes = lock_set_differences(*previous, locks);
  return {std::move(locks), changed, std::move(changes), std::move(data)};
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
