#include "recipes/project_imports.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/tree_walk.hpp"
#include "images/store_mark.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/notebook_cells.hpp"
#include "recipes/python_library.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostSources = 2'000;
constexpr std::size_t kDeepestSource = 12;
constexpr std::size_t kMostEntriesSeen = 20'000;  ///< folders
constexpr std::array<std::string_view, 14> kOtherFolders = {
    "tests", "test", "testing",      "docs", "doc",   "build",         "dist",
    "venv",  "env",  "node_modules", "ci",   "conda", "site-packages", "wheels"};
constexpr std::array<std::string_view, 5> kOtherFiles = {"setup.py", "conftest.py", "noxfile.py",
                                                         "fabfile.py", "tasks.py"};

/// The Python of a notebook's cells, without lines of the shell and magics; a line is told by its
/// cell's number.
std::vector<ImportStatement> statements_of_notebook(const std::string& text) {
  std::vector<ImportStatement> all;
  for (const CodeCell& cell : code_cells(nlohmann::json::parse(text, nullptr, false))) {
    for (ImportStatement& one : import_statements(cell.text)) {
      one.line = cell.number;
      all.push_back(std::move(one));
    }
  }
  return all;
}

bool is_notebook(const std::string& name) { return name.ends_with(".ipynb"); }

bool is_source_of_project(const std::string& name) {
  return name.ends_with(".py") && !name.starts_with("test_") && !name.ends_with("_test.py") &&
         !is_among(kOtherFiles, name);
}

/// Sources, and the names that an import finds in the project itself.
struct ProjectTree {
  std::vector<std::string> sources;  ///< relative, sorted by folder and name
  std::set<std::string> own;
};

/// The folders that lead to a source, and the source itself.
void add_own_names(std::string_view path, std::set<std::string>& own) {
  for (const std::string_view part : split(path, '/')) {
    own.emplace(part.substr(0, part.find('.')));
  }
}

/// Whether the folder that `entry` is has a file of that name.
bool has_file(const TreeEntry& entry, std::string_view name) {
  struct stat inside {};
  const std::string path = fmt::format("{}/{}", entry.name, name);
  return ::fstatat(entry.folder, path.c_str(), &inside, 0) == 0;
}

ProjectTree tree_of(const fs::path& folder) {
  ProjectTree tree;
  std::size_t seen = 0;
  const auto look = [&](const TreeEntry& entry) {
    const std::string& name = entry.name;
    if (S_ISDIR(entry.status.st_mode)) {
      const bool other = name.starts_with('.') || name.starts_with("__") ||
                         is_among(kOtherFolders, name) || has_file(entry, "pyvenv.cfg") ||
                         has_file(entry, kStoreMark);
      return !other && entry.depth < kDeepestSource && ++seen < kMostEntriesSeen;
    }
    if (!S_ISREG(entry.status.st_mode)) return false;
    if (name.ends_with(".py") || name.ends_with(".so") || name.ends_with(".pyx")) {
      add_own_names(entry.path, tree.own);
    }
    if (is_notebook(name) || is_source_of_project(name)) tree.sources.emplace_back(entry.path);
    return false;
  };
  walk_tree(folder, {.visit = look, .unreadable = [](std::string_view, int) {}, .sorted = true});
  if (tree.sources.size() > kMostSources) tree.sources.resize(kMostSources);
  return tree;
}

std::string first_of_module(const std::string& module) {
  return module.substr(0, module.find('.'));
}

}  // namespace

std::vector<ProjectImport> project_imports(const fs::path& folder) {
  const ProjectTree tree = tree_of(folder);
  std::vector<ProjectImport> all;
  std::set<std::pair<std::string, std::vector<std::string>>> known;
  for (const std::string& name : tree.sources) {
    const fs::path source = folder / name;
    std::error_code unknown;
    // Notebooks hold pictures, too.
    const bool notebook = is_notebook(name);
    const std::uint64_t most = notebook ? size_limit::kConverted : size_limit::kMiB;
    if (fs::file_size(source, unknown) > most || unknown) continue;
    const std::string text = read_small_file_if_exists(source, most).value_or("");
    for (ImportStatement& one : notebook ? statements_of_notebook(text) : import_statements(text)) {
      const std::string first = first_of_module(one.module);
      if (tree.own.contains(first)) continue;
      if (is_in_python_library(first) && dropped_from_python(first).empty()) continue;
      if (!known.emplace(one.module, one.names).second) continue;
      all.push_back({name, std::move(one)});
    }
  }
  return all;
}

}  // namespace mlenv
