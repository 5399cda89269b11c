#include "recipes/resolve/source_release.hpp"

#include <algorithm>

namespace mlenv {

bool wants_image(const Recipe& recipe, const std::string& name) {
  return recipe.compiler || recipe.steering.build.requirements.contains(name);
}

bool is_stale(const Matched& matched, const std::vector<LockedWheel>& image) {
  return std::any_of(matched.begin(), matched.end(), [&](const auto& one) {
    const auto found = std::find_if(image.begin(), image.end(), [&](const LockedWheel& wheel) {
      return wheel.name == one.first;
    });
    return one.second != (found == image.end() ? std::string{} : found->version);
  });
}

}  // namespace mlenv
