// `requirements:` of a recipe: which files, and what of them.
#include <algorithm>
#include <array>

#include "recipes/recipe_reader.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 3> kRequirementsKeys = {"file", "extras", "groups"};
constexpr std::string_view kRequirementsExample = "[requirements.txt]";

bool is_extra(std::string_view text) { return is_wheel_name(normalise_wheel_name(text)); }

/// `pyproject.toml[train, viz]` → its parts; nullopt: no such brackets.
std::optional<std::pair<std::string, std::vector<std::string>>> split_extras(
    std::string_view text) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  std::vector<std::string> extras;
  for (;;) {
    const std::size_t comma = inside.find(',');
    extras.emplace_back(trim(inside.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    inside.remove_prefix(comma + 1);
  }
  return std::pair{std::string(trim(text.substr(0, open))), std::move(extras)};
}

}  // namespace

std::vector<std::string_view> requirement_source_keys() {
  return {kRequirementsKeys.begin(), kRequirementsKeys.end()};
}

void RecipeReader::requirements(const YamlNode& node) {
  if (node.kind != YamlKind::list) {
    requirement_source(node);
    return;
  }
  for (const YamlNode& item : node.items) requirement_source(item);
}

void RecipeReader::requirement_source(const YamlNode& node) {
  RequirementSource source;
  const YamlNode* file = &node;
  std::string text = node.text;
  if (node.kind == YamlKind::map) {
    file = nullptr;
    for (const auto& [key, value] :
         values_.members(node, "an item of `requirements`", kRequirementsKeys)) {
      if (key == "file") file = value;
      if (key == "extras") source.extras = values_.texts(*value, "`extras`", "[train]");
      if (key == "groups") source.groups = values_.texts(*value, "`groups`", "[dev]");
    }
    if (file == nullptr) {
      values_.mistake(node, "`file` is missing, as in `{file: pyproject.toml, extras: [train]}`");
      return;
    }
    text = file->text;
  }
  if (file->kind != YamlKind::scalar) {
    values_.mistake(
        *file, fmt::format("`requirements` is a list of files, as in `{}`", kRequirementsExample));
    return;
  }
  const int inside = file->quoted ? 1 : 0;
  if (auto parts = split_extras(text)) {
    text = parts->first;
    for (std::string& extra : parts->second) {
      source.extras.push_back({std::move(extra), file->line, file->column + inside});
    }
  }
  const std::optional<std::string> path = project_path(*file, text, "requirements.txt");
  if (!path) return;
  source.file = {*path, file->line, file->column + inside};
  if (check_requirement_source(*file, source)) {
    recipe_.requirements.push_back(std::move(source));
  }
}

bool RecipeReader::check_requirement_source(const YamlNode& node, const RequirementSource& source) {
  const std::string& path = source.file.text;
  std::string why;
  const auto format = requirement_format(path.substr(path.rfind('/') + 1), why);
  if (!format) {
    values_.mistake(node, why);
    return false;
  }
  const bool chosen =
      *format == RequirementFormat::pyproject || *format == RequirementFormat::uv_lock;
  if (!chosen && !(source.extras.empty() && source.groups.empty())) {
    values_.mistake(
        node, fmt::format("`{}` has no extras or groups: pyproject.toml and uv.lock have", path));
    return false;
  }
  for (const std::vector<Placed>* list : {&source.extras, &source.groups}) {
    for (const Placed& one : *list) {
      if (is_extra(one.text)) continue;
      mistakes_.add(one.line, one.column,
                    fmt::format("`{}` is not the name of an extra or group", one.text));
      return false;
    }
  }
  return true;
}

}  // namespace mlenv
