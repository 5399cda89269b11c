#include "cli/edited_recipe.hpp"

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/recipe_write.hpp"

namespace mlenv::cli {

LockOutcome relock(Ui& ui, const Recipe& before, const Recipe& after) {
  const fs::path path = lock_path(before.path);
  LockTexts texts;
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) {
    texts.before = read_small_file_if_exists(path, size_limit::kLock);
  }
  LockOutcome outcome = choose_lock(ui, after, {});
  if (outcome.written) texts.after = render_locks(outcome.locks);
  write_recipe(before, after, texts);
  return outcome;
}

std::string edit_sentence(const PackageEdit& change, std::string_view key) {
  if (!change.before) return fmt::format("added `{}` to `{}`", *change.after, key);
  if (!change.after) return fmt::format("removed `{}` from `{}`", *change.before, key);
  if (change.none()) return fmt::format("`{}` is in `{}` already", *change.before, key);
  return fmt::format("`{}` in `{}` is now `{}`", *change.before, key, *change.after);
}

}  // namespace mlenv::cli
