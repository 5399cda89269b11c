// `base:` of a recipe where it is an image.
#include <algorithm>

#include "recipes/base_image.hpp"
#include "recipes/recipe_reader.hpp"

namespace mlenv {
namespace {

bool is_empty(const YamlNode& node) {
  using Is = YamlNode::Kind;
  return node.kind == Is::null || (node.kind == Is::list && node.items.empty());
}

}  // namespace

void RecipeReader::image_base(const YamlNode& node, const std::string& text) {
  const auto read = parse_base_image(text);
  if (const auto* mistake = std::get_if<std::string>(&read)) {
    values_.mistake(node, *mistake);
  } else {
    recipe_.base_is_image = true;
  }
}

/// Keys that mean something else, or nothing, on top of an image.
void RecipeReader::check_image_base(const YamlNode& root) {
  if (!recipe_.base_is_image) return;
  bool has_workdir = false;
  for (const auto& [key, value] : root.members) {
    if (is_empty(value)) continue;
    has_workdir = has_workdir || key.text == "workdir";
    const auto& archives = recipe_.sources.debian;
    const bool lacks_suite = std::any_of(archives.begin(), archives.end(),
                                         [](const auto& one) { return one.suite.empty(); });
    if (key.text == "sources" && recipe_.sources.python) {
      values_.mistake(key,
                      "`python` in `sources` needs a base that is made from packages; an image "
                      "comes with its own");
    }
    if (key.text == "sources" && lacks_suite) {
      values_.mistake(key, "with an image as base each archive of `debian` needs its `suite`");
    }
  }
  if (!has_workdir) recipe_.workdir.clear();
}

}  // namespace mlenv
