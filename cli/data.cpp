#include "cli/data.hpp"

#include "base/error.hpp"
#include "recipes/known_data.hpp"
#include "runner/job/parts.hpp"

namespace mlenv::cli {
namespace {

fs::path path_of(const Recipe& recipe, const RecipeData& one) {
  return (recipe.folder() / one.from).lexically_normal();
}

Error data_differ(const fs::path& path, const RecipeData& one, const Digest& found) {
  return refusal("data-differs", "`{}` is not the data that the recipe declares as `{}`",
                 path.string(), one.name.text)
      .because(fmt::format("declared {}, found {}", one.digest, found.str()))
      .hint(
          fmt::format("bring the declared data back, or write `digest: {}` where the new is meant",
                      found.str()));
}

Error no_data(const std::string& name, const fs::path& path) {
  return failure("no-data", "the data `{}` is not at `{}`", name, path.string())
      .hint("put it there, or a link to it");
}

}  // namespace

std::vector<VerifiedData> verify_data(Ui& ui, const Recipe& recipe) {
  std::vector<VerifiedData> sets;
  for (const RecipeData& one : recipe.data) {
    const fs::path path = path_of(recipe, one);
    const fs::path whole = fs::absolute(path).lexically_normal();
    std::error_code error;
    // Looked up once: what a link leads to is verified, and that is mounted.
    const fs::path real = fs::canonical(path, error);
    sets.push_back({one.name.text, whole, real, one.to});
    if (error) {
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
    const Digest found = known_data_digest(ui.store(), real == whole ? path : real, ui.progress());
    if (one.digest.empty()) {
      throw recipe_error(recipe, one.name,
                         fmt::format("`{}` has no `digest`; of what is here now it is `digest: {}`",
                                     one.name.text, found.str()));
    }
    if (one.digest != found.str()) throw data_differ(path, one, found);
  }
  return sets;
}

std::vector<Mount> mounts_of(const std::vector<std::string>& texts, const StorageNames& storage) {
  std::vector<Mount> mounts;
  for (const std::string& text : texts) {
    mounts.push_back(names_storage(text) ? job::mount_of_nodes(text, fs::current_path(), storage)
                                         : Mount::parse(text));
  }
  return mounts;
}

void require_storage(const std::vector<Mount>& mounts) {
  for (const Mount& mount : mounts) {
    std::error_code error;
    if (mount.storage.empty() || fs::exists(mount.source, error)) continue;
    throw failure("no-storage", "the storage `{}` has no `{}` on this machine", mount.storage,
                  mount.source.string())
        .because(error ? error.message() : "No such file or directory")
        .hint("mount it there or make the folder, or say in config.yaml where it is");
  }
}

void require_data(const fs::path& recipe_path) {
  const Recipe recipe = read_recipe(recipe_path);
  for (const RecipeData& one : recipe.data) {
    const fs::path path = fs::absolute(path_of(recipe, one));
    std::error_code error;
    if (!fs::exists(path, error)) throw no_data(one.name.text, path);
  }
}

void add_data(LocalRun& run, const std::vector<VerifiedData>& data) {
  std::vector<Mount> mounts;
  for (const VerifiedData& one : data) {
    if (one.real.empty()) throw no_data(one.name, one.from);
    mounts.push_back({one.real, one.to, true});
    run.settled.push_back(one.real);
  }
  run.mounts.insert(run.mounts.begin(), mounts.begin(), mounts.end());
}

std::vector<job::DataSet> data_sets_of(Ui& ui, const fs::path& recipe_path) {
  const Recipe recipe = read_recipe(recipe_path);
  std::vector<job::DataSet> sets;
  for (const RecipeData& one : recipe.data) {
    const fs::path path = fs::absolute(path_of(recipe, one)).lexically_normal();
    job::DataSet set{one.name.text, one.digest, path.string(), one.to, one.stage == "node"};
    std::error_code error;
    if (set.stage && fs::exists(path, error)) {
      const ListedData listed = listed_data(ui.store(), path, ui.progress());
      if (listed.digest.str() != one.digest) throw data_differ(path, one, listed.digest);
      set.list = listed.list.str();
      set.list_bytes = ui.store().size_of(listed.list).value_or(0);
      set.bytes = listed.size_bytes;
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace mlenv::cli
