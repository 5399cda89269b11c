#include "recipes/resolve/source_release.hpp"

#include <algorithm>

namespace mlenv {

bool wants_image(const Recipe& recipe, const std::string& name) {
  return recipe.compiler || recipe.steering.build.requirements.contains(name);
}

bool is_stale(const Matched& matched, const std::vector<LockedWheel>& image) {
  return std::any_of(matched.begin(), matched.end(), [&](const auto& one) {
    const LockedWheel* wheel = find_wheel(image, one.first);
    return one.second != (wheel == nullptr ? std::string{} : wheel->version);
  });
}

}  // namespace mlenv
