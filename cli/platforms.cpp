#include "cli/platforms.hpp"

#include <algorithm>

#include "images/platform.hpp"
#include "recipes/platforms.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

std::string hint_for(const Recipe& recipe, const std::string& asked) {
  if (!is_known_platform(asked)) {
    const std::string_view meant = meant_platform(asked);
    if (!meant.empty()) return did_you_mean(meant);
    const auto known = known_platforms();
    return "mlenv makes images for " +
           join(std::vector<std::string>(known.begin(), known.end()), " and ");
  }
  std::vector<std::string> all = recipe.wanted_platforms();
  all.push_back(asked);
  std::sort(all.begin(), all.end());
  return fmt::format("write `platforms: [{}]` into the recipe", join(all, ", "));
}

Error no_platform(const Recipe& recipe, const std::string& asked, std::string_view why) {
  Error error = usage_error("no-platform", "`{}` is not for {}", recipe.path.string(), asked);
  if (!why.empty()) error.because(std::string(why));
  return std::move(error)
      .because(fmt::format("it is locked for {}", join(recipe.wanted_platforms(), ", ")))
      .hint(hint_for(recipe, asked));
}

}  // namespace

std::string build_platform(const Recipe& recipe, const std::string& asked) {
  const std::vector<std::string> offered = recipe.wanted_platforms();
  const auto holds = [&](const std::string& one) {
    return std::find(offered.begin(), offered.end(), one) != offered.end();
  };
  if (!asked.empty()) {
    if (!holds(asked)) throw no_platform(recipe, asked, {});
    return asked;
  }
  std::string here = machine_platform();
  if (holds(here)) return here;
  if (offered.size() == 1) return offered.front();
  throw no_platform(recipe, here, "that is this machine's platform, and `--platform` names none");
}

std::string checked_platform(const std::string& word) {
  const std::size_t slash = word.find('/');
  const bool fine = slash != std::string::npos && slash > 0 && word.back() != '/' &&
                    word.find("//") == std::string::npos;
  if (word.empty() || fine) return word;
  throw usage_error("usage", "`--platform {}` is not an operating system and an architecture", word)
      .hint("write it as in `--platform linux/arm64`");
}

std::string tag_for(const std::string& platform) {
  return platform == machine_platform() ? "latest" : "latest-" + architecture_of(platform);
}

void require_runnable(const Image& image, const std::string& name) {
  const std::string platform = image.settings.os + "/" + image.settings.architecture;
  std::string here = machine_platform();
  if (platform == here) return;
  throw failure("foreign-platform", "`{}` is an image for {}, and this machine is {}", name,
                platform, here)
      .hint(fmt::format("run it on a {} machine, or take the image for {}", platform, here));
}

}  // namespace mlenv::cli
