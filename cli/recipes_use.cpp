#include "cli/recipes_use.hpp"

#include <spawn.h>

#include "base/process.hpp"
#include "cli/settings.hpp"
#include "recipes/resolve/debian.hpp"
#include "recipes/resolve/resolve.hpp"

namespace mlenv::cli {
namespace {

Error conflict_error(const Conflict& conflict) {
  Error error = refusal("unsatisfiable", "{}", conflict.headline);
  for (const std::string& fact : conflict.facts) error.because(fact);
  if (!conflict.hint.empty()) error.hint(conflict.hint);
  return error;
}

std::optional<Lock> read_lock(const fs::path& path) {
  const std::optional<std::string> text = read_file_if_exists(path);
  if (!text) return std::nullopt;
  return parse_lock(*text, path);
}

Error lock_mismatch(const Recipe& recipe, const Lock& lock) {
  Error error = refusal("lock-outdated", "`{}` does not match `{}`",
                        lock_path(recipe.path).string(), recipe.path.string());
  Lock wanted = lock;
  wanted.request = request_of(recipe);
  wanted.settings = settings_of(recipe);
  for (const std::string& line : lock_differences(lock, wanted)) error.because(line);
  return std::move(error).hint("run `mlenv lock` and commit the lock");
}

Lock require_lock(const Recipe& recipe) {
  const fs::path path = lock_path(recipe.path);
  std::optional<Lock> lock = read_lock(path);
  if (!lock) {
    throw refusal("no-lock", "there is no `{}`, and --locked asks for one", path.string())
        .hint("run `mlenv lock` and commit the lock");
  }
  if (lock->request != request_of(recipe) || lock->settings != settings_of(recipe)) {
    throw lock_mismatch(recipe, *lock);
  }
  return *std::move(lock);
}

/// Writes what the build gave, or holds it against what is there.
void settle_built(const Recipe& recipe, const Lock& lock, const Image& image, bool locked) {
  Built built{lock.platform, lock_digest(lock), kLayerFormat, image.digest(), {}};
  for (const Layer& layer : image.layers) built.layers.emplace_back(layer.title, layer.blob.digest);
  const fs::path path = built_path(recipe.path);
  const std::string text = render_built(built);
  const std::optional<std::string> before = read_file_if_exists(path);
  if (before == text) return;
  if (before && locked) {
    const Built old = parse_built(*before, path);
    if (old.lock == built.lock && old.layer_format == built.layer_format) {
      throw refusal("not-reproduced", "this build differs from `{}`", path.string())
          .because(fmt::format("image: recorded {}, built {}", old.image.str(), built.image.str()));
    }
  }
  write_file(path, text);
}

}  // namespace

LockOutcome provide_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice) {
  if (choice.locked) return {require_lock(recipe), false, {}};
  const fs::path path = lock_path(recipe.path);
  const std::optional<Lock> previous = read_lock(path);
  const bool current = previous && previous->request == request_of(recipe) &&
                       previous->settings == settings_of(recipe);
  if (current && !choice.upgrade) return {*previous, false, {}};
  ResolveOptions options;
  options.cache = cache_folder();
  options.previous = previous ? &*previous : nullptr;
  options.upgrade = choice.upgrade;
  options.epoch = source_date_epoch();
  Resolution resolution = while_doing("locking `" + recipe.path.string() + "`", [&] {
    return resolve(recipe, options, ui.http(), ui.progress());
  });
  if (const Conflict* conflict = std::get_if<Conflict>(&resolution))
    throw conflict_error(*conflict);
  Lock lock = std::get<Lock>(std::move(resolution));
  const bool changed = !previous || *previous != lock;
  if (changed) write_file(path, render_lock(lock));
  std::vector<std::string> changes;
  if (previous) changes = lock_differences(*previous, lock);
  return {std::move(lock), changed, std::move(changes)};
}

BuildOutcome build_recipe(Ui& ui, const fs::path& recipe_path, const BuildChoice& choice) {
  const Recipe recipe = read_recipe(recipe_path);
  const Lock lock = provide_lock(ui, recipe, choice.lock).lock;
  InputSources sources;
  sources.wheel_urls = [&](const std::vector<LockedWheel>& wheels, bool anew) {
    return wheel_urls(recipe, lock, wheels, anew, cache_folder(), ui.progress());
  };
  std::optional<std::vector<DebianSource>> debian;
  std::mutex mutex;
  sources.deb_urls = [&](const LockedDeb& deb) {
    const std::lock_guard guard{mutex};
    if (!debian) debian = debian_sources(recipe);
    return deb_urls(deb, *debian);
  };
  Inputs inputs{ui.store(), ui.http(), sources, cache_folder(), ui.progress()};
  BuildOptions options;
  options.jobs = choice.jobs;
  options.unpack = choice.unpack;
  options.on_layer = choice.on_layer;
  options.sources = image_sources(recipe);
  BuildResult result = while_doing("building `" + recipe_path.string() + "`", [&] {
    return build(lock, ui.store(), inputs, options, ui.progress());
  });
  ui.store().tag(Reference::parse(recipe.name + ":latest"), result.image.digest());
  settle_built(recipe, lock, result.image, choice.lock.locked);
  bool anything_new = false;
  for (const StepReport& step : result.steps) anything_new = anything_new || !step.reused;
  if (anything_new) sync_in_background();
  return {lock, std::move(result)};
}

bool is_recipe_path(std::string_view argument) {
  return argument.ends_with(".yaml") || argument.ends_with(".yml");
}

void sync_in_background() {
  // The child outlives us on purpose: nobody waits for the disk. It exits by itself after one sync.
  const std::string program = own_executable().string();
  std::array<char*, 5> argv{const_cast<char*>(program.c_str()), const_cast<char*>("-q"),
                            const_cast<char*>("store"), const_cast<char*>("sync"), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  for (int fd = 0; fd < 3; ++fd)
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", 2, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  (void)::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
}

}  // namespace mlenv::cli
