#pragma once
// Which wheels build a source: what it asks for and what the recipe says of that
// (build_settings.hpp).
#include <string>
#include <vector>

#include "builder/build_settings.hpp"
#include "recipes/recipe.hpp"
#include "recipes/resolve/source_release.hpp"

namespace mlenv {

/// What a build's tools are chosen by: the recipe's indexes, and none of its packages yet.
Recipe recipe_of_tools(const Recipe& recipe);

/// Of a wheel that these tools built.
Matched matched_with(const std::vector<LockedWheel>& tools, const std::string& package,
                     const Recipe& recipe, const std::vector<LockedWheel>& image);

/// What is asked of uv for a build.
class ToolQuestion {
 public:
  /// `image`: what the image has, as far as that is known.
  ToolQuestion(const Recipe& recipe, const BuildSettings& settings,
               const std::vector<LockedWheel>& image);

  const Recipe& recipe() const { return recipe_; }
  const Matched& matched() const { return matched_; }
  /// Beside all before; `shown` names the source. Throws `bad-source`.
  void require(const std::vector<std::string>& texts, const std::string& shown);

 private:
  void constrain(const std::string& text);
  void require_of_image(const std::string& text, const std::vector<LockedWheel>& image);
  void require_compiler(const std::vector<LockedWheel>& image);

  Recipe recipe_;
  Matched matched_;
};

}  // namespace mlenv
