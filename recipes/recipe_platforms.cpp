// `platforms` of a recipe: what it is locked for.
#include <set>

#include "recipes/platforms.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::string unknown_platform(const std::string& text) {
  const std::string_view meant = meant_platform(text);
  if (!meant.empty()) {
    return fmt::format("`{}` is not a platform; {}", text, did_you_mean(meant));
  }
  const auto known = known_platforms();
  return fmt::format("`{}` is not a platform that mlenv makes locks for; there are {}", text,
                     join(std::vector<std::string>(known.begin(), known.end()), " and "));
}

}  // namespace

std::vector<std::string> Recipe::wanted_platforms() const {
  std::set<std::string> wanted;
  for (const Placed& one : platforms) wanted.insert(one.text);
  if (wanted.empty()) wanted.emplace(kUsualPlatform);
  return {wanted.begin(), wanted.end()};
}

void RecipeReader::platforms(const YamlNode& node) {
  recipe_.platforms = values_.texts(node, "`platforms`", "[linux/amd64, linux/arm64]");
  std::set<std::string_view> seen;
  for (const Placed& one : recipe_.platforms) {
    if (!is_known_platform(one.text)) {
      mistakes_.add(one.line, one.column, unknown_platform(one.text));
    } else if (!seen.insert(one.text).second) {
      mistakes_.add(one.line, one.column, fmt::format("`{}` is there twice", one.text));
    }
  }
}

void RecipeReader::check_platforms() {
  if (recipe_.platforms.size() < 2 || !recipe_.sources.python) return;
  const Placed& place = recipe_.platforms[1];
  mistakes_.add(place.line, place.column,
                "a Python of the recipe's own (`sources: {python: …}`) is an archive for one "
                "platform: name one, or take the base's Python");
}

}  // namespace mlenv
