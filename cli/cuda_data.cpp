#include <chrono>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/own_entries.hpp"
#include "cli/command_tree.hpp"
#include "cli/cuda_index.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "recipes/machine_config.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

using nlohmann::json;

json releases_as_json(const CudaTable& table) {
  json releases = json::array();
  for (const CudaTable::Release& one : table.releases) {
    releases.push_back({{"release", one.release},
                        {"driver", one.driver},
                        {"updates", one.updates},
                        {"source", table.sources.at(one.origin.source)},
                        {"read", one.origin.read},
                        {"standing", text_or_null(one.origin.standing)},
                        {"conflict", text_or_null(one.origin.conflict)}});
  }
  return releases;
}

int show_cuda_data(const Ui& ui) {
  const CudaTable& table = cuda_table();
  const CudaDataOrigin& origin = cuda_data_origin();
  if (ui.options.json) {
    json floors = json::array();
    for (const CudaTable::Floor& one : table.floors) {
      floors.push_back({{"major", one.major}, {"driver", one.driver}});
    }
    ui.answer(canonical({{"schema", "mlenv.data/1"},
                         {"date", table.date},
                         {"file", text_or_null(origin.file.string())},
                         {"passed_over", text_or_null(origin.passed_over)},
                         {"releases", releases_as_json(table)},
                         {"floors", floors}}));
    return 0;
  }
  ui.answer(fmt::format("CUDA releases as of {}, {}", table.date,
                        origin.file.empty() ? "built in" : origin.file.string()));
  for (const CudaTable::Release& one : table.releases) {
    std::string line = fmt::format("  {:<6} driver {:<11}", one.release, one.driver);
    if (!one.updates.empty()) line += fmt::format(" updates {}", join(one.updates, " "));
    if (!one.origin.conflict.empty()) line += fmt::format(" ({})", one.origin.conflict);
    line.erase(line.find_last_not_of(' ') + 1);
    ui.answer(line);
  }
  for (const CudaTable::Floor& one : table.floors) {
    ui.answer(fmt::format("  {:<6} machine code from driver {} on", one.major + ".x", one.driver));
  }
  if (!origin.passed_over.empty()) {
    ui.say(fmt::format("note: `{}` is not used: {}", (store_folder() / kCudaDataFile).string(),
                       origin.passed_over));
  }
  return 0;
}

/// YYYY-MM-DD, UTC.
std::string today() {
  const auto now = std::chrono::system_clock::now();
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(now)};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string place_of_index(const std::string& given) {
  if (!given.empty()) return given;
  std::string place = machine_config().cuda_index;
  if (!place.empty()) return place;
  throw usage_error("no-index", "nothing says where NVIDIA's index of CUDA redistributables is")
      .hint(
          "`mlenv data update --from URL` (or a folder) where the redistrib_X.Y.Z.json are, or "
          "`cuda-index: URL` in config.yaml");
}

void say_update(const CudaUpdate& update, const fs::path& file, const Ui& ui) {
  for (const std::string& words : update.left_out) ui.say("not taken over: " + words);
  if (!update.changed) {
    ui.answer(fmt::format("nothing new; the data in use is of {}", cuda_table().date));
    return;
  }
  for (const std::string& release : update.added) ui.answer("new: CUDA " + release);
  for (const std::string& release : update.extended) ui.answer("further updates: CUDA " + release);
  ui.answer(fmt::format("written: {}", file.string()));
}

int update_command(const std::string& from, Ui& ui) {
  const std::string place = place_of_index(from);
  const CudaTable& before = cuda_table();
  const std::vector<Redistrib> found = while_doing(
      "updating the CUDA data; what is in use stays in use",
      [&] { return read_redistributables(place, before.releases.back().release, ui.http()); });
  const CudaUpdate update = updated_cuda_table(before, found, today());
  const fs::path file = store_folder() / kCudaDataFile;
  if (update.changed) {
    const std::string text = render_cuda_releases(update.table);
    (void)parse_cuda_table(text, file);  // what could not be read back is not written
    make_own_folders(store_folder());
    write_file(file, text);
  }
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.data-update/1"},
                         {"file", update.changed ? json(file.string()) : json()},
                         {"date", update.changed ? update.table.date : before.date},
                         {"added", update.added},
                         {"extended", update.extended},
                         {"left_out", update.left_out}}));
  } else {
    say_update(update, file, ui);
  }
  return 0;
}

}  // namespace

Action declare_data(CLI::App& app) {
  auto action = std::make_shared<Action>();
  auto from = std::make_shared<std::string>();
  app.require_subcommand(1);
  CLI::App* show = app.add_subcommand("show", "list the CUDA releases and drivers that are known");
  show->callback([=] { *action = show_cuda_data; });
  CLI::App* update = app.add_subcommand("update", "learn of newer CUDA releases");
  take_word_of(update->add_option("--from", *from,
                                  "address or folder of NVIDIA's redistrib_X.Y.Z.json; else "
                                  "`cuda-index` of config.yaml"),
               WordKind::file);
  update->callback([=] { *action = [from](Ui& ui) { return update_command(*from, ui); }; });
  app.footer("example: mlenv data show");
  return [action](Ui& ui) { return (*action)(ui); };
}

}  // namespace mlenv::cli
