#include "recipes/recipe_bounds.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "recipes/requirement_files.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kBoundsMark =
    "# Found by `mlenv init --try`: what builds and imports need.\n";

bool has_key(std::string_view text, std::string_view key) {
  const std::vector<std::string_view> lines = split(text, '\n');
  return std::any_of(lines.begin(), lines.end(),
                     [&](std::string_view line) { return line.starts_with(key); });
}

std::string quoted_list(const std::set<std::string>& all) {
  std::vector<std::string> items;
  for (const std::string& one : all) items.push_back(fmt::format("\"{}\"", one));
  return fmt::format("[{}]", join(items, ", "));
}

/// The key and its list, as one line; empty: nothing is in it.
std::string list_key(std::string_view key, const std::set<std::string>& all) {
  return all.empty() ? std::string() : fmt::format("{}: {}\n", key, quoted_list(all));
}

std::string build_key(const RecipeBounds& bounds) {
  if (bounds.build_constraints.empty() && bounds.build_needs.empty()) return {};
  std::string text = "build:\n";
  if (!bounds.build_constraints.empty()) {
    text += fmt::format("  constraints: {}\n", quoted_list(bounds.build_constraints));
  }
  if (!bounds.build_needs.empty()) text += "  requires:\n";
  for (const auto& [package, needs] : bounds.build_needs) {
    text += fmt::format("    {}: {}\n", package, quoted_list(needs));
  }
  return text;
}

}  // namespace

std::optional<Recipe> with_bounds(const Recipe& recipe, const RecipeBounds& bounds) {
  std::string text = recipe.source.substr(0, recipe.source.find(kBoundsMark));
  const std::array<std::pair<std::string_view, std::string>, 3> keys = {
      {{"constraints:", list_key("constraints", bounds.constraints)},
       {"exclude:", list_key("exclude", bounds.excluded)},
       {"build:", build_key(bounds)}}};
  std::string found;
  for (const auto& [key, line] : keys) {
    if (!line.empty() && has_key(text, key)) return std::nullopt;
    found += line;
  }
  if (found.empty()) return recipe;
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += kBoundsMark;
  Recipe bounded = parse_recipe(text + found, recipe.path);
  take_listed(bounded, read_requirement_files(bounded));
  return bounded;
}

}  // namespace mlenv
