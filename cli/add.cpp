// Packages more or less in a recipe: add, remove. The lock comes first, from the recipe as it would
// be; its file is written when that has worked, so that a failure at any moment leaves it whole.
#include <sys/stat.h>
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/interrupt.hpp"
#include "cli/recipes_use.hpp"
#include "recipes/recipe_edit.hpp"

namespace mlenv::cli {
namespace {

struct Options {
  std::vector<std::string> packages;
  std::string recipe = "recipe.yaml";
  bool system = false;
};
using Edit = RecipeEdit (*)(const Recipe&, PackageList, const std::vector<std::string>&);

/// In the recipe's place (where a link leads), with its permissions.
void write_recipe(const Recipe& before, const Recipe& after) {
  const fs::path path = fs::canonical(before.path);
  while_doing("writing `" + before.path.string() + "`", [&] {
    if (read_file(path) != before.source) {
      throw failure("recipe-changed", "it was changed while the lock was made")
          .hint("the same command again takes the change in");
    }
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
      throw os_error(errno, "cannot read `{}`", path.string());
    AtomicFile file{path};
    constexpr mode_t kPermissions = 07777;
    if (::fchmod(file.fd(), status.st_mode & kPermissions) != 0) {
      throw os_error(errno, "cannot set its permissions");
    }
    file.write(as_bytes(after.source));
    file.commit();
  });
}

/// What `path` held, put back.
void restore(const fs::path& path, const std::optional<std::string>& text) {
  if (text) return write_file(path, *text);
  std::error_code ignored;
  fs::remove(path, ignored);
}

LockOutcome relock(Ui& ui, const Recipe& before, const Recipe& after) {
  const fs::path path = lock_path(before.path);
  std::optional<std::string> lock;
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) lock = read_file_if_exists(path);
  LockOutcome outcome = provide_lock(ui, after, {});
  try {
    write_recipe(before, after);
  } catch (const Error&) {
    if (outcome.written) restore(path, lock);
    throw;
  }
  return outcome;
}

std::string sentence(const PackageEdit& change, std::string_view key) {
  if (!change.before) return fmt::format("added `{}` to `{}`", *change.after, key);
  if (!change.after) return fmt::format("removed `{}` from `{}`", *change.before, key);
  if (change.none()) return fmt::format("`{}` is in `{}` already", *change.before, key);
  return fmt::format("`{}` in `{}` is now `{}`", *change.before, key, *change.after);
}

void answer_as_json(const Options& options, std::string_view key, const RecipeEdit& edit,
                    const std::optional<LockOutcome>& outcome, const Ui& ui) {
  nlohmann::json changes = nlohmann::json::array();
  for (const PackageEdit& change : edit.changes) {
    nlohmann::json item{{"package", change.package}, {"before", nullptr}, {"after", nullptr}};
    if (change.before) item["before"] = *change.before;
    if (change.after) item["after"] = *change.after;
    changes.push_back(std::move(item));
  }
  nlohmann::json lock = nullptr;
  if (outcome) lock = lock_as_json(edit.recipe, *outcome);
  ui.answer(canonical({{"schema", "mlenv.recipe-edit/1"},
                       {"recipe", options.recipe},
                       {"key", key},
                       {"packages", std::move(changes)},
                       {"lock", std::move(lock)}}));
}

int edit_command(const Options& options, Edit make, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const Recipe recipe = read_recipe(options.recipe);
  const PackageList list = options.system ? PackageList::system : PackageList::packages;
  const std::string_view key = key_of(list);
  std::optional<LockOutcome> outcome;
  std::optional<RecipeEdit> edit;
  try {
    edit = make(recipe, list, options.packages);
    if (edit->recipe.source != recipe.source) outcome = relock(ui, recipe, edit->recipe);
  } catch (Error& error) {
    if (error.code() == "bad-package" || error.code() == "not-found") throw;
    error.while_doing(fmt::format("`{}` is left as it was", options.recipe));
    throw;
  }
  if (ui.options.json) {
    answer_as_json(options, key, *edit, outcome, ui);
    return 0;
  }
  for (const PackageEdit& change : edit->changes) ui.say(sentence(change, key));
  if (!outcome) return 0;
  for (const std::string& change : outcome->changes) ui.answer(change);
  ui.say(lock_summary(edit->recipe, *outcome));
  return 0;
}

Action declare(CLI::App& app, Edit make, const char* what) {
  auto options = std::make_shared<Options>();
  app.add_option("PACKAGE", options->packages, what)->required();
  take_word_of(app.add_option("--recipe", options->recipe, "recipe file")->capture_default_str(),
               WordKind::recipe);
  app.add_flag("--system", options->system, "of Debian: the recipe's `system`, not its `packages`");
  return [options, make](Ui& ui) { return edit_command(*options, make, ui); };
}

}  // namespace

Action declare_add(CLI::App& app) {
  app.footer("example: mlenv add 'transformers>=4.50' datasets");
  return declare(app, add_packages, "requirements, as `optax` or `optax>=0.2`");
}

Action declare_remove(CLI::App& app) {
  app.footer("example: mlenv remove datasets");
  return declare(app, remove_packages, "names of packages");
}

}  // namespace mlenv::cli
