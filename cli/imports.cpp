#include "cli/imports.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "images/inspect/inspect.hpp"
#include "recipes/text.hpp"
#include "runner/check/import_remedy.hpp"

namespace mlenv::cli {
namespace {

constexpr std::size_t kMostFailuresShown = 20;

}  // namespace

std::string shown_failure(const FailedImport& one) {
  return fmt::format("`import {}` ({}{}{}): {}", one.import, one.package,
                     one.version.empty() ? "" : " ", one.version, one.error);
}

ImportTrial try_and_keep_imports(Ui& ui, const Image& image, const Lock& lock) {
  ImportTrial trial = try_imports(image, lock, ui.store(), ui.progress());
  remember_imports(ui.store(), image, trial.failed);
  ui.say(fmt::format("imports: {} succeeded, {} failed", trial.imported, trial.failed.size()));
  for (const FailedImport& one : trial.without_gpu) {
    ui.say(fmt::format("note: it needs an NVIDIA driver, which builds do not have: {}",
                       shown_failure(one)));
  }
  return trial;
}

Error failed_imports_error(const ImportTrial& trial, const std::string& recipe) {
  const std::size_t count = trial.failed.size();
  const bool packages = std::all_of(trial.failed.begin(), trial.failed.end(),
                                    [](const FailedImport& one) { return !one.version.empty(); });
  Error error = packages ? refusal("imports-failed", "{} of `{}` cannot be imported",
                                   counted(count, "Python package"), recipe)
                         : refusal("imports-failed", "{} of `{}` and its project's sources failed",
                                   counted(count, "import"), recipe);
  for (std::size_t i = 0; i < std::min(count, kMostFailuresShown); ++i) {
    error.because(shown_failure(trial.failed[i]));
  }
  if (count > kMostFailuresShown)
    error.because(fmt::format("and {} more", count - kMostFailuresShown));
  const std::vector<std::string> lines = recipe_lines(trial.failed);
  if (lines.empty()) {
    return std::move(error).hint(
        fmt::format("look closer with `mlenv run {} -- python -c 'import {}'`", recipe,
                    trial.failed.front().import));
  }
  return std::move(error).hint(fmt::format("add {} to the recipe", join(lines, " and ")));
}

nlohmann::json imports_as_json(const ImportTrial& trial) {
  const auto listed_ones = [](const std::vector<FailedImport>& all) {
    nlohmann::json list = nlohmann::json::array();
    for (const FailedImport& one : all) {
      list.push_back({{"package", one.package},
                      {"version", one.version},
                      {"import", one.import},
                      {"error", one.error}});
    }
    return list;
  };
  return {{"imported", trial.imported},
          {"failed", listed_ones(trial.failed)},
          {"without_gpu", listed_ones(trial.without_gpu)}};
}

}  // namespace mlenv::cli
