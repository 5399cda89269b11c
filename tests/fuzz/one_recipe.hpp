#pragma once
// What must hold for any bytes given as a recipe: it is read, or refused as the person's mistake.
#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"

namespace mlenv::fuzz {

/// True when it was read. Throws std::logic_error when a promise is broken.
inline bool one_recipe(std::string_view text) {
  try {
    const Recipe recipe = parse_recipe(text, "recipe.yaml");
    const bool has_suite = !recipe.suite.empty();
    const bool has_workdir = !recipe.workdir.empty() || recipe.base_is_image;
    if (recipe.name.empty() || has_suite == recipe.base_is_image || !has_workdir) {
      throw std::logic_error("a recipe was read without its required parts");
    }
    Lock lock;
    lock.request = request_of(recipe);
    lock.settings = settings_of(recipe);
    lock.distribution = recipe.distribution;
    lock.suite = recipe.suite;
    if (recipe.base_is_image) {
      const Digest digest = Digest::of(text);
      const Layer layer{{std::string(kLayerGzipType), digest, 1}, digest, 0, {}};
      lock.base = LockedBase{digest, {std::string(kConfigType), digest, 1}, {layer}, {}, {}};
    }
    lock.revision = least_revision(lock);
    if (parse_lock(render_lock(lock), "recipe.lock") != lock) {
      throw std::logic_error("what a recipe says does not survive a lock file");
    }
    return true;
  } catch (const Error& error) {
    if (error.kind() != Kind::usage || error.code() != "recipe-invalid") throw;
    return false;
  }
}

}  // namespace mlenv::fuzz
