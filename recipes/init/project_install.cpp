#include "recipes/init/project_install.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/poetry_markers.hpp"
#include "recipes/init/poetry_versions.hpp"
#include "recipes/project_name.hpp"
#include "recipes/project_path.hpp"
#include "recipes/recipe.hpp"
#include "recipes/requirement.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/steering.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

using ProjectTool = ProjectInstall::Tool;

bool is_there(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

class Installer {
 public:
  Installer(const SourcePlace& place, const std::string& text, ProjectInstall install,
            Conversion& to)
      : place_(place), text_(text), install_(std::move(install)), to_(to) {}

  void run() {
    const fs::path folder = install_.folder.empty() ? "." : install_.folder;
    if (install_.tool == ProjectTool::pipenv) {
      if (!first_of({"Pipfile.lock", "Pipfile"}, folder)) return gone("Pipfile");
      return convert_source();
    }
    if (!is_there(folder / "pyproject.toml")) return gone("pyproject.toml");
    pyproject_ = parse_toml({folder / "pyproject.toml",
                             read_small_file(folder / "pyproject.toml", size_limit::kPyproject),
                             "source-invalid",
                             {}});
    name_all_extras();
    constexpr std::array<std::string_view, 3> kLocks = {"uv.lock", "poetry.lock", "pdm.lock"};
    const auto tool = static_cast<std::size_t>(install_.tool);
    first_of({std::string(kLocks.at(tool)), "pyproject.toml"}, folder);
    if (install_.tool == ProjectTool::uv || found_.filename() == "pyproject.toml") {
      if (!named()) convert_source();
    } else {
      convert_source();
    }
    python();
    if (install_.itself && is_package()) itself(folder);
  }

 private:
  bool first_of(const std::vector<std::string>& names, const fs::path& folder) {
    for (const std::string& name : names) {
      found_ = folder / name;
      if (is_there(found_)) return true;
    }
    return false;
  }

  /// `*` of `--all-extras` as their names.
  void name_all_extras() {
    if (install_.extras != std::vector<std::string>{"*"}) return;
    install_.extras.clear();
    const TomlValue* all = at({"project", "optional-dependencies"});
    if (all == nullptr) all = at({"tool", "poetry", "extras"});
    if (all == nullptr) return;
    for (const auto& [name, packages] : all->members) install_.extras.push_back(name);
  }

  void gone(std::string_view name) {
    to_.leave_out(place_, text_, fmt::format("there is no `{}` here", name));
  }

  /// `requirements: [uv.lock]`, where the recipe can read it.
  bool named() {
    const std::optional<std::string> name = name_from_recipe(to_, found_);
    if (!name) return false;
    DraftRequirements item{*name, install_.extras, install_.groups};
    const nlohmann::json as_json = {
        {"file", item.file}, {"extras", item.extras}, {"groups", item.groups}};
    try {
      const fs::path recipe = (to_.folder().empty() ? "." : to_.folder()) / "recipe.yaml";
      read_requirement_files(parse_recipe(
          fmt::format("name: x\nbase: debian:bookworm\nrequirements: [{}]\n", as_json.dump()),
          recipe));
    } catch (const Error& error) {  // what it cannot read is told line by line
      if (found_.extension() == ".lock") not_taken(*name, error);
      return false;
    }
    // A layer without the project comes first, and the whole thing after it.
    for (DraftRequirements& one : to_.draft.requirements) {
      if (one.file != item.file) continue;
      add_missing(one.extras, item.extras);
      add_missing(one.groups, item.groups);
      return true;
    }
    to_.draft.requirements.push_back(std::move(item));
    return true;
  }

  /// The versions that a lock holds are somebody's wish.
  void not_taken(const std::string& name, const Error& error) {
    const std::string& whole = error.frames().back();
    const std::string why = whole.substr(0, whole.find('\n'));
    const std::size_t place = why.find(": ");
    to_.leave_out({name, 0}, name,
                  fmt::format("its versions do not count, but those that pyproject.toml allows: {}",
                              why.substr(place == std::string::npos ? 0 : place + 2)));
  }

  static void add_missing(std::vector<std::string>& names, const std::vector<std::string>& more) {
    for (const std::string& name : more) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }

  void convert_source() {
    const ConversionSource source = read_source(found_, to_);
    const std::string name = found_.filename().string();
    if (name == "Pipfile") return convert_pipfile(source, to_);
    if (name == "Pipfile.lock") return convert_pipfile_lock(source, to_);
    if (name == "pyproject.toml" || name == "uv.lock") {
      return convert_pyproject(read_source(found_.parent_path() / "pyproject.toml", to_), to_,
                               {install_.extras, install_.groups});
    }
    std::vector<std::string> groups = {"main", "default"};
    groups.insert(groups.end(), install_.groups.begin(), install_.groups.end());
    convert_pinned_lock(source, {install_.extras, std::move(groups)}, to_);
  }

  const TomlValue* at(std::initializer_list<const char*> keys) const {
    const TomlValue* value = &pyproject_;
    for (const char* key : keys) value = value == nullptr ? nullptr : value->find(key);
    return value;
  }

  void python() {
    if (!to_.draft.python.empty() || !to_.draft.base.empty()) return;
    const TomlValue* range = at({"project", "requires-python"});
    if (range != nullptr && range->kind == TomlKind::text) {
      to_.python_range({place_.file, place_.line}, range->text);
    }
  }

  /// As the tools themselves decide.
  bool is_package() const {
    if (const TomlValue* mode = at({"tool", "poetry", "package-mode"})) return mode->boolean;
    if (const TomlValue* own = at({"tool", "uv", "package"})) return own->boolean;
    if (const TomlValue* own = at({"tool", "pdm", "distribution"})) return own->boolean;
    return install_.tool == ProjectTool::poetry || at({"build-system"}) != nullptr;
  }

  void itself(const fs::path& folder) {
    const std::optional<std::string> name = project_name(folder);
    const std::optional<std::string> where = name_from_recipe(to_, folder);
    if (!name || !where) {
      return to_.leave_out(place_, text_,
                           "the project itself: write `NAME @ PATH` into `packages`");
    }
    const std::string extras =
        install_.extras.empty() ? "" : fmt::format("[{}]", join(install_.extras, ","));
    to_.python_package(
        place_, fmt::format("{}{} @ {}", *name, extras, *where == "." ? "." : "./" + *where));
  }

  const SourcePlace& place_;
  const std::string& text_;
  ProjectInstall install_;
  Conversion& to_;
  fs::path found_;
  TomlValue pyproject_;
};

/// Of `[[package]]` in a lock: where it is in place of an index.
std::string pinned_address(const TomlValue& package, const fs::path& file, const Conversion& to) {
  const auto text = [](const TomlValue* table, const char* key) {
    const TomlValue* one = table == nullptr ? nullptr : table->find(key);
    return one != nullptr && one->kind == TomlKind::text ? one->text : std::string{};
  };
  const TomlValue* source = package.find("source");  // of Poetry
  const std::string type = text(source, "type");
  if (type == "git") {
    const std::string below = text(source, "subdirectory");
    return fmt::format("git+{}@{}{}{}", text(source, "url"), text(source, "resolved_reference"),
                       below.empty() ? "" : "#subdirectory=", below);
  }
  if (type == "directory" || type == "file") {
    return "file:" + path_from_recipe(file, text(source, "url"), to);
  }
  if (type == "url") return text(source, "url");
  if (const std::string git = text(&package, "git"); !git.empty()) {  // of PDM
    return fmt::format("git+{}@{}", git, text(&package, "revision"));
  }
  const std::string path = text(&package, "path");
  return path.empty() ? text(&package, "url") : "file:" + path_from_recipe(file, path, to);
}

/// What the extras that are asked of a lock of Poetry's bring: their packages, and what these need.
std::set<std::string> packages_of_extras(const TomlValue& lock,
                                         const std::vector<std::string>& extras) {
  std::vector<std::string> open;
  if (const TomlValue* all = lock.find("extras")) {
    for (const auto& [name, list] : all->members) {
      const bool chosen = std::any_of(extras.begin(), extras.end(), [&](const std::string& one) {
        return normalise_wheel_name(one) == normalise_wheel_name(name);
      });
      if (!chosen) continue;
      for (const TomlValue& one : list.items) open.push_back(package_of_requirement(one.text));
    }
  }
  std::map<std::string, const TomlValue*> needs;
  if (const TomlValue* packages = lock.find("package")) {
    for (const TomlValue& one : packages->items) {
      const TomlValue* name = one.find("name");
      if (name != nullptr) needs[normalise_wheel_name(name->text)] = one.find("dependencies");
    }
  }
  std::set<std::string> found;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto needed = needs.find(name);
    if (!found.insert(name).second || needed == needs.end() || needed->second == nullptr) continue;
    for (const auto& [key, value] : needed->second->members) {
      open.push_back(normalise_wheel_name(key));
    }
  }
  return found;
}

bool is_of_groups(const TomlValue& package, const std::vector<std::string>& groups,
                  const std::set<std::string>& of_extras) {
  const auto wanted = [&](const std::string& one) {
    return std::find(groups.begin(), groups.end(), one) != groups.end();
  };
  if (const TomlValue* optional = package.find("optional");
      optional != nullptr && optional->boolean) {
    return of_extras.contains(normalise_wheel_name(package.find("name")->text));
  }
  if (const TomlValue* category = package.find("category")) return wanted(category->text);
  const TomlValue* all = package.find("groups");
  return all == nullptr || std::any_of(all->items.begin(), all->items.end(),
                                       [&](const TomlValue& one) { return wanted(one.text); });
}

/// ` ; marker`. That the extra is asked for is known.
std::string pinned_marker(const TomlValue& package) {
  std::string text;
  for (const char* key : {"markers", "marker"}) {
    const TomlValue* marker = package.find(key);
    if (marker == nullptr || marker->kind != TomlKind::text) continue;
    if (!says(marker->text, "extra ==")) text += " ; " + marker->text;
  }
  return text;
}

/// What a poetry.lock without markers says elsewhere of when its packages are wanted.
std::map<std::string, std::string> conditions_of_lock(const ConversionSource& source,
                                                      const TomlValue& root) {
  const fs::path pyproject = source.path.parent_path() / "pyproject.toml";
  if (source.path.filename() != "poetry.lock" || !is_there(pyproject)) return {};
  return markers_of_poetry_lock(
      root,
      parse_toml(
          {pyproject, read_small_file(pyproject, size_limit::kPyproject), "source-invalid", {}}));
}

/// Packages that a lock has in several versions without a marker, as Poetry's did before it wrote
/// these: `>=1.0,<=2.0` of each.
std::map<std::string, std::string> packages_in_versions(const TomlValue& packages) {
  std::map<std::string, std::vector<std::string>> all;
  for (const TomlValue& package : packages.items) {
    const TomlValue* extras = package.find("extras");  // of PDM: an entry beside the package's own
    const bool plain = package.find("source") == nullptr && package.text_of("git").empty() &&
                       pinned_marker(package).empty() &&
                       (extras == nullptr || extras->items.empty());
    if (plain)
      all[normalise_wheel_name(package.text_of("name"))].push_back(package.text_of("version"));
  }
  std::map<std::string, std::string> several;
  for (auto& [name, versions] : all) {
    if (versions.size() < 2) continue;
    std::sort(versions.begin(), versions.end(), [](const std::string& a, const std::string& b) {
      return std::is_lt(compare_versions(a, b));
    });
    several[name] = fmt::format(">={},<={}", versions.front(), versions.back());
  }
  return several;
}

void python_of_lock(const ConversionSource& source, const TomlValue& root, Conversion& to) {
  const TomlValue* metadata = root.find("metadata");
  if (metadata == nullptr) return;
  for (const char* key : {"python-versions", "requires_python"}) {
    const TomlValue* range = metadata->find(key);
    const bool told = range != nullptr && range->kind == TomlKind::text && range->text != "*";
    if (!told || !to.draft.python.empty() || !to.draft.base.empty()) continue;
    const std::vector<std::string> all = poetry_alternatives(range->text);
    if (!all.empty()) to.python_range({source.shown, range->line}, join(all, "||"));
  }
}

}  // namespace

std::optional<std::string> name_from_recipe(const Conversion& to, const fs::path& path) {
  std::error_code unknown;
  const fs::path folder =
      fs::weakly_canonical(to.folder().empty() ? fs::path(".") : to.folder(), unknown);
  std::string name = fs::weakly_canonical(path, unknown).lexically_relative(folder).string();
  if (!std::holds_alternative<std::string>(clean_project_path(name))) return std::nullopt;
  return name;
}

void name_requirements(const ConversionSource& source, Conversion& to) {
  const auto name = name_from_recipe(to, source.path);
  if (name) return to.draft.requirements.push_back({*name});
  to.leave_out({source.shown, 0}, source.shown,
               "`requirements` names files of the recipe's own folder");
}

void install_project(const SourcePlace& place, const std::string& text,
                     const ProjectInstall& install, Conversion& to) {
  Installer(place, text, install, to).run();
}

void convert_pinned_lock(const ConversionSource& source, const ProjectChoice& choice,
                         Conversion& to) {
  to.draft.wants_python = true;
  const TomlValue root = parse_toml({source.path, source.text, "source-invalid", {}});
  const std::set<std::string> of_extras = packages_of_extras(root, choice.extras);
  const TomlValue* packages = root.find("package");
  if (packages == nullptr) {
    return to.leave_out({source.shown, 1}, source.shown, "it holds no `[[package]]`");
  }
  const std::map<std::string, std::string> markers = conditions_of_lock(source, root);
  const std::map<std::string, std::string> several = packages_in_versions(*packages);
  std::set<std::string> told;
  for (const TomlValue& package : packages->items) {
    const TomlValue* name = package.find("name");
    const TomlValue* version = package.find("version");
    if (name == nullptr || version == nullptr) continue;
    const SourcePlace place{source.shown, package.line};
    if (!is_of_groups(package, choice.groups, of_extras)) {
      to.leave_out_with_others(place, name->text, "packages of groups that are not asked for");
      continue;
    }
    // PDM has a package with extras in an entry of its own, beside the package itself.
    const TomlValue* own = package.find("extras");
    if (own != nullptr && !own->items.empty()) continue;
    if (const auto some = several.find(normalise_wheel_name(name->text)); some != several.end()) {
      if (!told.insert(some->first).second) continue;
      to.note(place, name->text + some->second,
              "versions for different Pythons or machines: the lock does not say which is whose, "
              "and what fits is taken");
      to.python_package(place, name->text + some->second);
      continue;
    }
    const std::string address = pinned_address(package, source.path, to);
    std::string marker = pinned_marker(package);
    const auto condition = markers.find(normalise_wheel_name(name->text));
    if (marker.empty() && condition != markers.end()) marker = " ; " + condition->second;
    to.python_package(
        place, name->text + (address.empty() ? "==" + version->text : " @ " + address) + marker);
  }
  python_of_lock(source, root, to);
}

}  // namespace mlenv
