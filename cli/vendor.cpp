#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "builder/vendor.hpp"
#include "cli/command_tree.hpp"
#include "cli/input_sources.hpp"
#include "cli/interrupt.hpp"
#include "cli/recipes_use.hpp"
#include "cli/settings.hpp"
#include "images/platform.hpp"
#include "recipes/ignore.hpp"
#include "recipes/text.hpp"
#include "recipes/vendored.hpp"

namespace mlenv::cli {
namespace {

struct VendorWords {
  std::string recipe = "recipe.yaml";
  std::string folder;
  LockChoice lock;
};

void require_vendor_apart(const Recipe& recipe, const fs::path& folder) {
  const std::optional<std::string> place = copied_place(recipe, folder);
  if (!place) return;
  throw usage_error("bad-output", "`{}` lies where `files` copies it", folder.string())
      .because("the image would hold its own packages")
      .hint(fmt::format("name another folder, or write `{}` into `{}`", *place,
                        read_ignores(recipe.folder()).file));
}

/// A repository's link leads anywhere. Whoever has a disk for such copies names it once.
void require_own_folder(const fs::path& folder) {
  if (!fs::is_symlink(folder)) return;
  const std::vector<fs::path> there = list_folder(folder);
  if (there.empty() || !vendored_names(folder).empty()) return;
  const std::string place = fs::canonical(folder).string();
  throw usage_error("bad-output", "`{}` is a link to `{}`", folder.string(), place)
      .because("other things lie there, and no copies that `mlenv vendor` made")
      .hint("name it once, where that is meant: `mlenv vendor RECIPE DIR`");
}

void answer_vendor(const Recipe& recipe, const LockSet& locks, const fs::path& folder,
                   const std::vector<VendoredFile>& files, const Ui& ui) {
  std::uint64_t bytes = 0;
  std::size_t fetched = 0;
  nlohmann::json items = nlohmann::json::array();
  for (const VendoredFile& one : files) {
    bytes += one.file.size_bytes;
    if (one.fetched) ++fetched;
    items.push_back({{"file", one.path.filename().string()},
                     {"sha256", one.file.digest.hex()},
                     {"size_bytes", one.file.size_bytes},
                     {"fetched", one.fetched}});
  }
  if (ui.options.json) {
    return ui.answer(canonical({{"schema", "mlenv.vendor/1"},
                                {"recipe", recipe.path.string()},
                                {"lock", locks_digest(locks).str()},
                                {"path", folder.string()},
                                {"files", std::move(items)}}));
  }
  ui.say(fmt::format("`{}` holds all that `{}` names: {}, {}; {} new", folder.string(),
                     lock_path(recipe.path).string(), counted(files.size(), "file"),
                     human_bytes(bytes), fetched));
  ui.answer(folder.string());
}

int vendor_command(const VendorWords& options, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const Recipe recipe = read_recipe(options.recipe);
  const fs::path folder =
      options.folder.empty() ? usual_vendor_folder(recipe) : fs::path(options.folder);
  require_vendor_apart(recipe, folder);
  if (options.folder.empty()) require_own_folder(folder);
  const LockOutcome locked = provide_lock(ui, recipe, options.lock);
  for (const std::string& change : locked.changes) ui.say(change);
  if (locked.written) ui.say(lock_summary(recipe, locked));
  std::vector<VendoredFile> files;
  // A wheel that is built again here serves other platforms too.
  std::vector<Lock> locks = locked.locks.locks;
  std::stable_partition(locks.begin(), locks.end(),
                        [](const Lock& lock) { return lock.platform == machine_platform(); });
  for (const Lock& lock : locks) {
    Inputs inputs{ui.store(), ui.http(), input_sources(ui, recipe, lock), cache_folder(),
                  ui.progress()};
    for (VendoredFile& one :
         while_doing(fmt::format("vendoring what `{}` names", lock_path(recipe.path).string()),
                     [&] { return vendor(lock, folder, ui.store(), inputs, ui.progress()); })) {
      const bool known = std::any_of(files.begin(), files.end(), [&](const VendoredFile& other) {
        return other.path == one.path;
      });
      if (!known) files.push_back(std::move(one));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const VendoredFile& a, const VendoredFile& b) { return a.path < b.path; });
  sync_in_background(ui.store());
  answer_vendor(recipe, locked.locks, folder, files, ui);
  return 0;
}

}  // namespace

Action declare_vendor(CLI::App& app) {
  auto options = std::make_shared<VendorWords>();
  take_word_of(app.add_option("RECIPE", options->recipe, "recipe file")->capture_default_str(),
               WordKind::recipe);
  take_word_of(app.add_option("DIR", options->folder,
                              "folder to fill; by default `vendor` beside the recipe, where builds "
                              "look for it"),
               WordKind::file);
  app.add_flag("--locked", options->lock.locked, "the lock must exist and match the recipe");
  app.footer("example: mlenv vendor recipe.yaml");
  return [options](Ui& ui) { return vendor_command(*options, ui); };
}

}  // namespace mlenv::cli
