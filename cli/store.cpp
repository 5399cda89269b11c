#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/sandbox/read_own.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

/// What a repair has left: files of which nobody knows whose they are.
std::size_t count_staying(const std::vector<Store::Damage>& damages, const fs::path& store) {
  constexpr std::string_view kFile = "file ";
  return static_cast<std::size_t>(
      std::count_if(damages.begin(), damages.end(), [&](const Store::Damage& damage) {
        std::error_code unknown;
        return damage.what.starts_with(kFile) &&
               fs::exists(fs::symlink_status(store / damage.what.substr(kFile.size()), unknown));
      }));
}

int verify_command(bool repair, Ui& ui) {
  // Before other users' ids look all the same.
  const Store& store = ui.store();
  // Before there are threads. Where it cannot be had, shut folders of trees are opened up for a
  // while.
  (void)read_own_past_modes();
  std::size_t looked_at = 0;
  const std::vector<Store::Damage> damages =
      store.verify(repair, [&](std::string_view) { ++looked_at; });
  const std::size_t staying = repair ? count_staying(damages, store.root()) : 0;
  if (ui.options.json) {
    nlohmann::json items = nlohmann::json::array();
    for (const Store::Damage& damage : damages) {
      items.push_back({{"what", damage.what}, {"why", damage.why}});
    }
    ui.answer(canonical({{"schema", "mlenv.store-verify/1"},
                         {"items", looked_at},
                         {"repaired", repair},
                         {"damage", items}}));
  } else {
    for (const Store::Damage& damage : damages) {
      ui.answer_lines({damage.what + ": " + damage.why});
    }
    ui.say(fmt::format("{} checked, {} damaged{}", counted(looked_at, "item"), damages.size(),
                       repair && !damages.empty() ? " and removed" : ""));
    if (staying > 0) {
      ui.say(fmt::format("{} not removed: mlenv did not make them. Move them out of the store",
                         counted(staying, "file")));
    }
  }
  return damages.empty() || (repair && staying == 0) ? 0 : 3;
}

int sync_command(Ui& ui) {
  // Removed since the command that asked for this: it is not made again.
  if (Store::exists(store_folder())) ui.store().sync();
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.store-sync/1"}, {"path", store_folder().string()}}));
  }
  return 0;
}

int path_command(Ui& ui) {
  const std::string path = store_folder().string();
  if (!ui.options.json) {
    ui.answer_exactly(path);
  } else {
    ui.answer(canonical({{"schema", "mlenv.store-path/1"}, {"path", path}}));
  }
  return 0;
}

}  // namespace

Action declare_store(CLI::App& app) {
  auto action = std::make_shared<Action>();
  auto repair = std::make_shared<bool>(false);
  app.require_subcommand(1);
  CLI::App* verify =
      app.add_subcommand("verify", "read everything and say what is damaged (exit 3)");
  verify->add_flag("--repair", *repair, "remove what is damaged, so that it is made anew");
  verify->callback([=] { *action = [repair](Ui& ui) { return verify_command(*repair, ui); }; });
  CLI::App* sync = app.add_subcommand("sync", "wait until all of the store is on the disk");
  sync->callback([=] { *action = sync_command; });
  CLI::App* path = app.add_subcommand("path", "print the store's folder");
  path->callback([=] { *action = path_command; });
  app.footer("example: mlenv store verify");
  return [action](Ui& ui) { return (*action)(ui); };
}

}  // namespace mlenv::cli
