#include "cli/diff_sides.hpp"

#include <algorithm>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "cli/is_file.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_environment.hpp"
#include "cli/usage.hpp"
#include "images/platform.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

/// `did you mean …?`, of the locks and recipes in the folder where `path` should be.
std::string near_file(const fs::path& path) {
  std::vector<std::string> there;
  const fs::path folder = path.parent_path();
  std::error_code unreadable;
  for (const fs::directory_entry& one :
       fs::directory_iterator{folder.empty() ? fs::path(".") : folder, unreadable}) {
    const std::string name = one.path().filename().string();
    if (name.ends_with(kLockEnd) || is_recipe_path(name)) there.push_back((folder / name).string());
  }
  std::sort(there.begin(), there.end());
  return did_you_mean(nearest_word(path.string(), there));
}

Error no_such_file(const std::string& argument) {
  Error error = failure("absent", "there is no file `{}`", argument);
  const std::string near = near_file(argument);
  return std::move(error).hint(near.empty() ? "`mlenv lock` makes a recipe's lock" : near);
}

Side lock_at(const std::string& name, const fs::path& path) {
  LockSet locks = parse_locks(read_small_file(path, size_limit::kLock), path);
  const Lock* const own = locks.find(machine_platform());
  Lock chosen = own == nullptr ? locks.locks.front() : *own;
  return {name, std::move(chosen), std::nullopt, std::move(locks)};
}

bool take(Side& side, const std::string& platform) {
  if (!side.lock) return side.platform() == platform;
  const Lock* const found = side.locks.find(platform);
  if (found != nullptr) side.lock = *found;
  return found != nullptr;
}

void require_platform(Side& side, const std::string& platform) {
  if (take(side, platform)) return;
  throw usage_error("no-platform", "`{}` is not for {}", side.name, platform)
      .because(fmt::format("it is for {}", side.lock ? side.locks.platforms() : side.platform()))
      .hint("name one that both are for");
}

Side lock_of_recipe(const Ui& ui, const std::string& argument) {
  if (!is_file(argument)) throw no_such_file(argument);
  const Recipe recipe = read_recipe(argument);
  const fs::path path = lock_path(recipe.path);
  if (!is_file(path)) {
    throw usage_error("no-lock", "there is no `{}`, which would say what `{}` stands for",
                      path.string(), argument)
        .hint(fmt::format("run `mlenv lock {}`", argument));
  }
  Side side = lock_at(argument, path);
  if (side.lock->request != request_of(recipe) || side.lock->settings != settings_of(recipe)) {
    ui.say(fmt::format("warning: `{}` was changed after `{}` was made; the lock is compared",
                       argument, path.string()));
  }
  return side;
}

Environment side_environment(Ui& ui, const Side& side) {
  if (side.lock) return mlenv::environment_of(*side.lock);
  if (side.recorded) return side.recorded->installed;
  return installed_in(ui, *side.image, side.name);
}

void refuse_other_platforms(const Side& from, const Side& to) {
  if (from.platform() == to.platform()) return;
  throw usage_error("other-platform", "`{}` is for {}, and `{}` for {}", from.name, from.platform(),
                    to.name, to.platform())
      .because("nearly every package is another file there, so nothing would stand out")
      .hint("compare what is for one platform");
}

}  // namespace

std::string Side::platform() const {
  if (lock) return lock->platform;
  if (recorded) return recorded->installed.platform;
  return image->settings.os + '/' + image->settings.architecture;
}

Digest Side::digest() const {
  if (recorded) return recorded->image;
  return lock ? lock_digest(*lock) : image->digest();
}

void choose_platform_of(Side& from, Side& to, const std::string& asked) {
  if (!asked.empty()) {
    require_platform(from, asked);
    require_platform(to, asked);
  } else if (from.platform() == to.platform()) {
    return;
  } else if (!from.lock || !to.lock) {
    take(from.lock ? from : to, from.lock ? to.platform() : from.platform());
  } else {
    for (const Lock& lock : from.locks.locks) {
      if (take(to, lock.platform) && take(from, lock.platform)) return;
    }
  }
}

Side side_named(Ui& ui, const std::string& argument) {
  if (is_recipe_path(argument)) return lock_of_recipe(ui, argument);
  const bool named_as_lock = argument.ends_with(kLockEnd);
  if (named_as_lock && is_file(argument)) return lock_at(argument, argument);
  if (ui.store().find_image(argument))
    return {argument, std::nullopt, image_named(ui, argument), {}};
  if (is_file(argument)) return lock_at(argument, argument);
  if (named_as_lock) throw no_such_file(argument);
  return {argument, std::nullopt, image_named(ui, argument), {}};
}

SideComparison compare(Ui& ui, const Side& from, const Side& to) {
  refuse_other_platforms(from, to);
  SideComparison out;
  if (from.lock && to.lock) {
    out.packages = diff_locks(*from.lock, *to.lock);
    out.fetch = fetch_between(*from.lock, *to.lock);
    out.same = *from.lock == *to.lock;
    return out;
  }
  if (from.image && to.image) {
    out.image = diff_images(*from.image, *to.image);
    out.same = from.digest() == to.digest();
    if (out.image->same_files) return out;
  }
  if (!from.lock && !to.lock && from.digest() == to.digest()) {
    out.same = true;
    return out;
  }
  out.packages = diff_environments(side_environment(ui, from), side_environment(ui, to));
  // Two images of other digests differ, if only in files that no package brings.
  if (from.lock || to.lock) out.same = out.packages.empty();
  return out;
}

}  // namespace mlenv::cli
