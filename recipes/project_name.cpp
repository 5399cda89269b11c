#include "recipes/project_name.hpp"

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/setup_py.hpp"
#include "recipes/source_file.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

std::optional<std::string> pyproject_name(const fs::path& path, const std::string& text) {
  using Is = TomlValue::Kind;
  const TomlReader reader(
      {.shown_path = path, .text = text, .code = "requirements-invalid", .hint = {}});
  const TomlValue root = parse_toml(reader.file());
  const TomlValue* tool = reader.optional_member(root, "tool", Is::table);
  const TomlValue* poetry =
      tool == nullptr ? nullptr : reader.optional_member(*tool, "poetry", Is::table);
  for (const TomlValue* one : {reader.optional_member(root, "project", Is::table), poetry}) {
    std::string name = one == nullptr ? "" : reader.optional_text(*one, "name");
    if (!name.empty()) return name;
  }
  return std::nullopt;
}

std::optional<std::string> well_formed(std::optional<std::string> name) {
  if (name && !is_wheel_name(normalise_wheel_name(*name))) return std::nullopt;
  return name;
}

}  // namespace

std::optional<std::string> project_name(const fs::path& folder) {
  const auto pyproject =
      read_small_file_if_exists(folder / "pyproject.toml", size_limit::kPyproject);
  if (pyproject) {
    if (auto name = pyproject_name(folder / "pyproject.toml", *pyproject)) return well_formed(name);
  }
  if (const auto text = read_small_file_if_exists(folder / "setup.cfg", size_limit::kPyproject)) {
    if (auto name = well_formed(read_setup_cfg(*text).name)) return name;
  }
  if (const auto text = read_small_file_if_exists(folder / "setup.py", size_limit::kPyproject)) {
    return well_formed(read_setup_py(*text).name);
  }
  return std::nullopt;
}

std::optional<std::string> project_python(const fs::path& folder) {
  const auto pyproject =
      read_small_file_if_exists(folder / "pyproject.toml", size_limit::kPyproject);
  if (pyproject) {
    const TomlValue root =
        parse_toml({folder / "pyproject.toml", *pyproject, "requirements-invalid", {}});
    const TomlValue* project = root.table("project");
    std::string range = project == nullptr ? "" : project->text_of("requires-python");
    if (!range.empty()) return range;
  }
  if (const auto text = read_small_file_if_exists(folder / "setup.cfg", size_limit::kPyproject)) {
    if (auto range = read_setup_cfg(*text).python) return range;
  }
  if (const auto text = read_small_file_if_exists(folder / "setup.py", size_limit::kPyproject)) {
    return read_setup_py(*text).python;
  }
  return std::nullopt;
}

std::optional<NamedRelease> parse_release_file(std::string_view file) {
  if (const auto wheel = parse_wheel_name(file)) {
    return NamedRelease{std::string(wheel->name), std::string(wheel->version)};
  }
  file = without_source_ending(file);
  const std::size_t dash = file.rfind('-');
  if (dash == std::string_view::npos || dash + 1 == file.size()) return std::nullopt;
  NamedRelease release{std::string(file.substr(0, dash)), std::string(file.substr(dash + 1))};
  if (!is_wheel_name(normalise_wheel_name(release.name))) return std::nullopt;
  return release;
}

}  // namespace mlenv
