#include "recipes/recipe_bounds.hpp"

#include <algorithm>

#include <fmt/core.h>

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
  const std::string build = build_key(bounds);
  const bool constrained = !bounds.constraints.empty();
  if (!constrained && build.empty()) return recipe;
  if ((constrained && has_key(text, "constraints:")) ||
      (!build.empty() && has_key(text, "build:"))) {
    return std::nullopt;
  }
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += kBoundsMark;
  if (constrained) text += fmt::format("constraints: {}\n", quoted_list(bounds.constraints));
  return parse_recipe(text + build, recipe.path);
}

}  // namespace mlenv
