#include "cli/build_index.hpp"

#include <algorithm>

#include "cli/platforms.hpp"
#include "images/platform.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

struct Refused {
  std::string platform;
  Error error;
};

/// This machine's first: what can be made is made before anything is refused or breaks.
std::vector<std::string> in_building_order(std::vector<std::string> platforms) {
  std::stable_partition(platforms.begin(), platforms.end(),
                        [](const std::string& one) { return one == machine_platform(); });
  return platforms;
}

Error no_index(const Recipe& recipe, const std::vector<Refused>& refused,
               const std::vector<BuildOutcome>& outcomes) {
  std::vector<std::string> lacking;
  for (const Refused& one : refused) lacking.push_back(one.platform);
  Error error =
      failure("foreign-platform", "`{}` cannot be built here for {}, so there is no index of it",
              recipe.path.string(), join(lacking, " and "));
  for (const Refused& one : refused) {
    for (const std::string& frame : one.error.frames()) error.because(frame);
    if (!one.error.hint().empty()) error.hint(one.error.hint());
  }
  for (const BuildOutcome& outcome : outcomes) {
    error.because(fmt::format("the image for {0} is there, as `{1}:{2}`", outcome.lock.platform,
                              recipe.name, tag_for(outcome.lock.platform)));
  }
  return error;
}

}  // namespace

PlatformsOutcome build_index(Ui& ui, const fs::path& recipe_path, BuildChoice choice) {
  const Recipe recipe = read_recipe(recipe_path);
  (void)provide_lock_aloud(ui, recipe, choice.lock);
  std::vector<BuildOutcome> outcomes;
  std::vector<Refused> refused;
  for (const std::string& platform : in_building_order(recipe.wanted_platforms())) {
    choice.platform = platform;
    try {
      outcomes.push_back(while_doing("the image for " + platform,
                                     [&] { return build_recipe(ui, recipe_path, choice); }));
    } catch (const Error& error) {
      if (error.code() != "foreign-platform") throw;
      refused.push_back({platform, error});
    }
  }
  std::sort(outcomes.begin(), outcomes.end(), [](const BuildOutcome& a, const BuildOutcome& b) {
    return a.lock.platform < b.lock.platform;
  });
  if (!refused.empty()) throw no_index(recipe, refused, outcomes);
  std::vector<Image> images;
  for (const BuildOutcome& outcome : outcomes) images.push_back(outcome.result.image);
  ImageSet set = compose_index(std::move(images));
  ui.store().put_index(*set.index);
  record_index(ui, recipe, set);
  ui.store().tag(Reference::parse(recipe.name + ":latest"), set.digest());
  return {std::move(set), std::move(outcomes)};
}

}  // namespace mlenv::cli
