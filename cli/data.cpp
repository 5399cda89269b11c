#include "cli/data.hpp"

#include "base/error.hpp"
#include "base/pool.hpp"
#include "recipes/data_digest.hpp"

namespace mlenv::cli {
namespace {

fs::path path_of(const Recipe& recipe, const RecipeData& one) {
  return (recipe.folder() / one.from).lexically_normal();
}

/// From memory where nothing changed since.
Digest known_digest(Ui& ui, const fs::path& path) {
  const auto key = [&] {
    return Digest::of("mlenv data " + fs::canonical(path).string() + '\n' +
                      data_fingerprint(path).str());
  };
  const Digest before = key();
  if (const std::optional<std::string> text = ui.store().find_key(before)) {
    return Digest::parse(*text);
  }
  Pool pool;
  Digest digest = data_digest(path, pool, ui.progress());
  if (key() != before) {
    throw failure("file-changed", "`{}` changed while it was read", path.string());
  }
  ui.store().put_key(before, digest.str());
  return digest;
}

Error differs(const fs::path& path, const RecipeData& one, const Digest& found) {
  return refusal("data-differs", "`{}` is not the data that the recipe declares as `{}`",
                 path.string(), one.name.text)
      .because(fmt::format("declared {}, found {}", one.digest, found.str()))
      .hint(
          fmt::format("bring the declared data back, or write `digest: {}` where the new is meant",
                      found.str()));
}

}  // namespace

void verify_data(Ui& ui, const Recipe& recipe) {
  for (const RecipeData& one : recipe.data) {
    const fs::path path = path_of(recipe, one);
    std::error_code error;
    if (!fs::exists(path, error)) {
      if (one.digest.empty()) {
        throw recipe_error(recipe, one.name,
                           fmt::format("`{}` has no `digest`, and `{}`, of which it could be told, "
                                       "is not here",
                                       one.name.text, path.string()));
      }
      ui.say(fmt::format("note: the data `{}` is not at `{}` and was not verified", one.name.text,
                         path.string()));
      continue;
    }
    const Digest found = known_digest(ui, path);
    if (one.digest.empty()) {
      throw recipe_error(recipe, one.name,
                         fmt::format("`{}` has no `digest`; of what is here now it is `digest: {}`",
                                     one.name.text, found.str()));
    }
    if (one.digest != found.str()) throw differs(path, one, found);
  }
}

std::vector<Mount> mounts_of(const std::vector<std::string>& texts) {
  std::vector<Mount> mounts;
  for (const std::string& text : texts) mounts.push_back(Mount::parse(text));
  return mounts;
}

void add_data(std::vector<Mount>& mounts, const fs::path& recipe_path) {
  const Recipe recipe = read_recipe(recipe_path);
  std::vector<Mount> data;
  for (const RecipeData& one : recipe.data) {
    const fs::path path = fs::absolute(path_of(recipe, one));
    std::error_code error;
    if (!fs::exists(path, error)) {
      throw failure("no-data", "the data `{}` is not at `{}`", one.name.text, path.string())
          .hint("put it there, or a link to it");
    }
    data.push_back({fs::canonical(path), one.to, true});
  }
  for (Mount& mount : mounts) data.push_back(std::move(mount));
  mounts = std::move(data);
}

}  // namespace mlenv::cli
