#include "recipes/requirement_files.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/project_path.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Files of other tools, by which people keep requirements too.
struct OtherTool {
  std::string_view name;
  std::string_view advice;
};
constexpr std::string_view kExport = "export a requirements.txt or pylock.toml from it";
constexpr std::array<OtherTool, 11> kOtherTools = {
    {{"poetry.lock", kExport},
     {"pdm.lock", kExport},
     {"Pipfile", kExport},
     {"Pipfile.lock", kExport},
     {"setup.py", "only running it would tell; write a requirements.txt"},
     {"setup.cfg", "write a pyproject.toml or requirements.txt"},
     {"environment.yml", "its Python packages belong in a requirements.txt"},
     {"environment.yaml", "its Python packages belong in a requirements.txt"},
     {"conda-lock.yml", "its Python packages belong in a requirements.txt"},
     {"Cargo.toml", "it is no Python project's"},
     {"package.json", "it is no Python project's"}}};

}  // namespace

std::optional<RequirementFormat> requirement_format(std::string_view name, std::string& why) {
  if (name == "pyproject.toml") return RequirementFormat::pyproject;
  if (name == "uv.lock") return RequirementFormat::uv_lock;
  const bool named = name.size() > 12 && name.starts_with("pylock.") && name.ends_with(".toml");
  if (name == "pylock.toml" || named) return RequirementFormat::pylock;
  const auto other = std::find_if(kOtherTools.begin(), kOtherTools.end(),
                                  [&](const OtherTool& tool) { return tool.name == name; });
  if (other != kOtherTools.end()) {
    why = fmt::format("`{}` is not supported: {}", name, other->advice);
    return std::nullopt;
  }
  for (const std::string_view ending : {".toml", ".lock", ".yml", ".yaml", ".py", ".json"}) {
    if (!name.ends_with(ending)) continue;
    why = fmt::format(
        "`{}` is no file of requirements: write a requirements.txt, pyproject.toml, pylock.toml or "
        "uv.lock",
        name);
    return std::nullopt;
  }
  return RequirementFormat::lines;
}

bool is_constraints_file(std::string_view text) {
  if (text.starts_with("-c ") || text.starts_with("./")) return true;
  return text.find_first_of(" @[;<>=!~") == std::string_view::npos &&
         (text.ends_with(".txt") || text.ends_with(".in"));
}

std::shared_ptr<const RequirementsText> RequirementFolder::open(const std::string& path,
                                                                std::string& mistake) const {
  const auto found = find_project_path(recipe_.folder(), path);
  if (const auto* wrong = std::get_if<PathMistake>(&found)) {
    mistake = wrong->message;
    return nullptr;
  }
  const fs::path& file = std::get<fs::path>(found);
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) {
    mistake = "is no file";
    return nullptr;
  }
  if (fs::file_size(file, unknown) > size_limit::kRequirements) {
    mistake = "is too large to be a file of requirements";
    return nullptr;
  }
  fs::path shown = recipe_.path.parent_path() / path;
  std::string text = decoded_text(read_small_file(file, size_limit::kRequirements));
  return std::make_shared<const RequirementsText>(
      RequirementsText{std::move(shown), std::move(text)});
}

std::shared_ptr<const RequirementsText> RequirementFolder::open(const Placed& place) const {
  std::string mistake;
  auto file = open(place.text, mistake);
  if (file == nullptr) fail(place, fmt::format("`{}` {}", place.text, mistake));
  return file;
}

void RequirementFolder::fail(const Placed& place, std::string_view message) const {
  throw recipe_error(recipe_, place, message);
}

namespace {

/// `constraints`, and those of `build`.
void read_own_constraints(const RequirementFolder& folder, RequirementLists& lists) {
  const Recipe& recipe = folder.recipe();
  const auto own =
      std::make_shared<const RequirementsText>(RequirementsText{recipe.path, recipe.source});
  const auto file_in = [](const Placed& one) {
    return Placed{one.text.substr(std::string_view("-c ").size()), one.line, one.column};
  };
  for (const Placed& one : recipe.constraints) {
    if (is_constraints_file(one.text)) {
      read_constraint_lines(folder, file_in(one), lists);
    } else {
      lists.constraints.push_back({one.text, own, one.line, one.column});
    }
  }
  for (const Placed& one : recipe.build_constraints) {
    if (!is_constraints_file(one.text)) continue;  // in the recipe's steering
    RequirementLists alone;
    read_constraint_lines(folder, file_in(one), alone);
    for (const ListedText& line : alone.constraints) {
      lists.steering.build.constraints.push_back(line.text);
    }
  }
}

}  // namespace

RequirementLists read_requirement_files(const Recipe& recipe) {
  RequirementLists lists;
  const RequirementFolder folder(recipe);
  read_own_constraints(folder, lists);
  for (const RequirementSource& source : recipe.requirements) {
    std::string why;
    const std::string& path = source.file.text;
    const auto format = requirement_format(path.substr(path.rfind('/') + 1), why);
    if (!format) folder.fail(source.file, why);
    switch (*format) {
      case RequirementFormat::lines:
        read_requirement_lines(folder, source, lists);
        break;
      case RequirementFormat::pyproject:
        read_pyproject(folder, source, folder.open(source.file), lists);
        break;
      case RequirementFormat::pylock:
        read_pylock_file(path, folder.open(source.file), lists);
        break;
      case RequirementFormat::uv_lock:
        read_uv_lock(folder, source, folder.open(source.file), lists);
        break;
    }
  }
  return lists;
}

}  // namespace mlenv
