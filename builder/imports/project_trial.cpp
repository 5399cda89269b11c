#include "builder/imports/project_trial.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "builder/imports/import_place.hpp"
#include "builder/imports/import_trial.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostToldApart = 200;

/// As the importing program takes it: `a.b:c,d`.
std::string word_of(const ImportStatement& one) {
  return one.names.empty() ? one.module : fmt::format("{}:{}", one.module, join(one.names, ","));
}

using Group = std::vector<const ProjectImport*>;

/// By the package that they are of: its imports share an interpreter.
std::vector<Group> groups_of(const std::vector<ProjectImport>& imports) {
  std::map<std::string, Group> by_package;
  for (const ProjectImport& one : imports) {
    const std::string& module = one.statement.module;
    by_package[module.substr(0, module.find('.'))].push_back(&one);
  }
  std::vector<Group> groups;
  for (auto& [name, group] : by_package) groups.push_back(std::move(group));
  return groups;
}

FailedImport failed_import(const ProjectImport& one, const ImportOutcome& outcome) {
  FailedImport failed{fmt::format("{}:{}", one.file, one.statement.line),
                      {},
                      one.statement.module,
                      outcome.error,
                      {},
                      outcome.module};
  find_cause(failed);
  return failed;
}

/// Its own first part is nowhere, and no package is known to have it.
bool is_unknown(const FailedImport& failed) {
  const std::string first = failed.import.substr(0, failed.import.find('.'));
  return failed.module == first && distribution_of_module(first).empty() &&
         dropped_from_python(first).empty();
}

std::vector<FailedImport> failures_of(const ImportPlace& place, const Group& group) {
  std::vector<std::string> words;
  for (const ProjectImport* one : group) words.push_back(word_of(one->statement));
  std::vector<FailedImport> failed;
  const ImportOutcome together = place.once(words, kImportLimit);
  if (together.error.empty()) return failed;
  if (group.size() == 1) return {failed_import(*group.front(), together)};
  for (std::size_t i = 0; i < group.size() && failed.size() < kMostToldApart; ++i) {
    const ImportOutcome outcome = place.once({words[i]}, kImportLimit);
    if (outcome.error.empty()) continue;
    failed.push_back(failed_import(*group[i], outcome));
    // Nothing else of it comes in either.
    if (is_unknown(failed.back())) break;
  }
  return failed;
}

}  // namespace

ProjectTrial try_project_imports(const Image& image, Store& store, Progress& progress,
                                 const std::vector<ProjectImport>& imports) {
  ProjectTrial trial;
  if (imports.empty()) return trial;
  ImportPlace place{image, store, progress};
  const std::vector<Group> groups = groups_of(imports);
  Activity activity{progress, "import what the project does", groups.size(), "packages"};
  std::vector<std::vector<FailedImport>> found(groups.size());
  place.pool().for_each(groups.size(), [&](std::size_t i) {
    found[i] = failures_of(place, groups[i]);
    activity.advance(1);
  });
  for (std::size_t i = 0; i < groups.size(); ++i) {
    trial.imported += groups[i].size() - std::min(groups[i].size(), found[i].size());
    for (FailedImport& one : found[i]) {
      if (wants_driver(one)) continue;
      (is_unknown(one) ? trial.unknown : trial.failed).push_back(std::move(one));
    }
  }
  activity.result(counted(trial.imported, "import"));
  return trial;
}

}  // namespace mlenv
