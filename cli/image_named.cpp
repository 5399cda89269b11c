// What a person may call an image, and what is said when there is none of that name.
#include <unistd.h>
#include <algorithm>

#include "base/text.hpp"
#include "cli/recipes_use.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "images/platform.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr std::string_view kDefaultTag = ":latest";

/// Names in the store, as a person would type them.
std::vector<std::string> short_names(Ui& ui) {
  std::vector<std::string> names;
  for (const Store::Name& one : ui.store().names()) {
    std::string name = one.name;
    if (name.ends_with(kDefaultTag)) name.resize(name.size() - kDefaultTag.size());
    names.push_back(std::move(name));
  }
  return names;
}

constexpr const char* kWhatIsThere =
    "`mlenv images` lists what is there; `mlenv build` and `mlenv pull` add to it";

/// `did you mean …?`; empty when nothing is near.
std::string near_name(Ui& ui, std::string_view name) {
  const std::vector<std::string> names = short_names(ui);
  std::string plain = to_lower(name);
  if (const std::size_t scheme = plain.find("://"); scheme != std::string::npos) {
    plain.erase(0, scheme + 3);
  }
  if (plain.ends_with(':')) plain.pop_back();
  const bool is_there = std::find(names.begin(), names.end(), plain) != names.end();
  return did_you_mean(is_there ? plain : nearest_word(plain, names));
}

void refuse_bad_digest(std::string_view name) {
  if (!name.starts_with(kDigestPrefix)) return;
  constexpr std::size_t kFewest = 6;
  constexpr std::size_t kMost = 64;
  const std::string_view hex = name.substr(kDigestPrefix.size());
  const bool fine = hex.size() >= kFewest && hex.size() <= kMost &&
                    hex.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (fine) return;
  throw usage_error("bad-digest", "`{}` is not a digest", name)
      .because(fmt::format("`{}` is followed by {} to {} lower-case hex digits", kDigestPrefix,
                           kFewest, kMost))
      .hint("copy it from `mlenv images`");
}

/// Throws what Reference::parse does, with a name that is there.
void refuse_bad_reference(Ui& ui, std::string_view name) {
  try {
    (void)Reference::parse(name);
  } catch (const Error& error) {
    const std::string near = near_name(ui, name);
    if (near.empty() && !error.hint().empty()) throw;
    throw error.with_hint(near.empty() ? kWhatIsThere : near);
  }
}

/// Throws `not-found` also where the store has only others of the index's images.
Image image_of_index(Ui& ui, const ImageSet& set, std::string_view name,
                     std::string_view platform) {
  const Digest digest = choose_platform(set.index->bytes, name, platform);
  for (const ImageIndex::Entry& part : set.absent) {
    if (part.manifest.digest != digest) continue;
    throw failure("not-found", "{} is not in the store, only others of `{}`", part.shown(), name)
        .hint(fmt::format("`mlenv pull --platform all {}` brings it, where that is a registry's; "
                          "`mlenv build --platform all RECIPE` makes it",
                          name));
  }
  return ui.store().image(digest);
}

}  // namespace

void refuse_file(Ui& ui, std::string_view argument) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::path(argument), ignored)) return;
  if (ui.store().find_image(argument)) return;
  Error error = usage_error("bad-reference", "`{}` is a file, and an image is wanted", argument);
  if (is_recipe_path(argument)) {
    throw std::move(error).hint(fmt::format(
        "`mlenv build {}` makes its image, which has the name that the recipe says", argument));
  }
  throw std::move(error).hint(
      "`mlenv images` lists the images; a recipe's name ends in `.yaml` or `.yml`");
}

Image image_named(Ui& ui, std::string_view name, std::string_view platform) {
  ImageSet set = image_set_named(ui, name);
  if (set.index) return image_of_index(ui, set, name, platform);
  const std::string found = set.platform(0);
  if (platform.empty() || platform == found) return std::move(set.images.front());
  throw failure("not-found", "`{}` is an image for {}, not for {}", name, found, platform);
}

ImageSet image_set_named(Ui& ui, std::string_view name) {
  refuse_bad_digest(name);
  const std::optional<Digest> digest = ui.store().find_image(name);
  if (digest) return ui.store().image_set(*digest);
  refuse_file(ui, name);
  refuse_bad_reference(ui, name);
  const std::string near = near_name(ui, name);
  throw failure("not-found", "there is no image `{}` in the store", name)
      .hint(near.empty() ? kWhatIsThere : near);
}

std::string listed_name(const Reference& name) {
  std::string text = name.host().empty() ? "" : name.host() + "/";
  text += name.repository();
  if (!name.tag().empty()) return text + ":" + name.tag();
  return name.digest() ? text + "@" + name.digest()->str() : text;
}

}  // namespace mlenv::cli
