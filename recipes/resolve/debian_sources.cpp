#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "recipes/resolve/apt_sources.hpp"
#include "recipes/resolve/debian.hpp"
#include "recipes/resolve/debian_control.hpp"

namespace mlenv {
namespace {

/// What follows a release's name in the suites that belong to it (`buster/updates` is the older
/// form of -security; archives of that age are not supported).
constexpr std::string_view kPockets[] = {"", "-updates", "-security"};
/// Sections of Debian's own archive; a repository of somebody else under the same suite name
/// usually has others.
constexpr std::string_view kSections[] = {"main", "contrib", "non-free", "non-free-firmware"};
/// Names that move from release to release.
constexpr std::string_view kMovingNames[] = {"stable", "testing", "unstable", "oldstable",
                                             "oldoldstable"};

/// The machine's own release, when it runs the distribution asked for.
std::optional<std::string> release_of(const fs::path& root, std::string_view distribution) {
  const auto text = read_file_if_exists(root / "etc/os-release");
  if (!text) return std::nullopt;
  std::string id;
  std::string codename;
  each_word(*text, [&](std::string_view word) {
    const auto value = [&](std::string_view name) -> std::optional<std::string> {
      if (!word.starts_with(name)) return std::nullopt;
      word.remove_prefix(name.size());
      if (word.starts_with('"') && word.ends_with('"') && word.size() >= 2) {
        word = word.substr(1, word.size() - 2);
      }
      return std::string(word);
    };
    if (auto found = value("ID=")) id = *found;
    if (auto found = value("VERSION_CODENAME=")) codename = *found;
  });
  if (id != distribution || codename.empty()) return std::nullopt;
  return codename;
}

bool has_no_pockets(std::string_view suite) {
  return suite == "sid" || suite == "unstable" || suite == "experimental";
}

/// The suite of the wanted release that takes `found`'s place, or nullopt when `found` belongs to
/// neither of `known`.
std::optional<std::string> renamed(std::string_view found, std::string_view wanted,
                                   const std::vector<std::string>& known) {
  for (const std::string& name : known) {
    if (!found.starts_with(name)) continue;
    const std::string_view pocket = found.substr(name.size());
    if (std::find(std::begin(kPockets), std::end(kPockets), pocket) == std::end(kPockets)) continue;
    if (has_no_pockets(wanted) && !pocket.empty()) return std::nullopt;
    return fmt::format("{}{}", wanted, pocket);
  }
  return std::nullopt;
}

/// `stable` is a favourite of other people's repositories too: only an archive that says in its
/// address whose it is counts.
bool looks_like_debian(const AptSource& source) {
  const auto says_debian = [](const std::string& text) {
    return text.find("debian") != std::string::npos;
  };
  return std::any_of(source.uris.begin(), source.uris.end(), says_debian) ||
         says_debian(source.signed_by.filename().string());
}

bool has_own_sections(const AptSource& source) {
  const auto own = [](const std::string& component) {
    return std::find(std::begin(kSections), std::end(kSections), component) != std::end(kSections);
  };
  return !source.components.empty() &&
         std::all_of(source.components.begin(), source.components.end(), own);
}

std::optional<DebianSource> own_source(const AptSource& source, const std::string& wanted,
                                       const std::optional<std::string>& machine) {
  if (!has_own_sections(source)) return std::nullopt;
  std::vector<std::string> known{wanted};
  if (machine) known.push_back(*machine);
  auto suite = renamed(source.suite, wanted, known);
  if (!suite && looks_like_debian(source)) {
    suite = renamed(source.suite, wanted, {std::begin(kMovingNames), std::end(kMovingNames)});
  }
  if (!suite) return std::nullopt;
  DebianSource own;
  own.uris = source.uris;
  own.suite = *suite;
  own.components = source.components;
  own.signed_by = source.signed_by;
  own.key = source.key;
  own.architectures = source.architectures;
  own.origin = "Debian";
  own.check_valid_until = source.check_valid_until;
  own.optional = *suite != source.suite;
  return own;
}

std::vector<DebianSource> own_sources(const std::vector<AptSource>& all, const std::string& wanted,
                                      const std::optional<std::string>& machine) {
  std::vector<DebianSource> found;
  for (const AptSource& source : all) {
    auto own = own_source(source, wanted, machine);
    if (own && std::find(found.begin(), found.end(), *own) == found.end()) {
      found.push_back(std::move(*own));
    }
  }
  return found;
}

std::vector<DebianSource> recipe_sources(const Recipe& recipe) {
  std::vector<DebianSource> found;
  for (const RecipeSources::Debian& own : recipe.sources.debian) {
    DebianSource source;
    source.uris = {own.uri};
    source.suite = own.suite.empty() ? recipe.suite : own.suite;
    source.components = own.components;
    if (source.components.empty()) source.components = {"main"};
    source.signed_by = own.signed_by;
    found.push_back(std::move(source));
  }
  return found;
}

bool holds_suite(const std::vector<DebianSource>& sources, const std::string& suite) {
  return std::any_of(sources.begin(), sources.end(),
                     [&](const DebianSource& source) { return source.suite == suite; });
}

}  // namespace

fs::path debian_sources_setting() {
  // The one place that reads it; cli/settings.cpp documents it.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* value = std::getenv("MLENV_DEBIAN_SOURCES");
  return value == nullptr ? fs::path{} : fs::path{value};
}

std::vector<DebianSource> debian_sources(const Recipe& recipe, const fs::path& root,
                                         const fs::path& sources_file) {
  if (!recipe.sources.debian.empty()) return recipe_sources(recipe);
  std::vector<DebianSource> found;
  std::string looked_at;
  if (!sources_file.empty()) {
    const auto text = while_doing("looking for package sources in what MLENV_DEBIAN_SOURCES names",
                                  [&] { return read_file(sources_file); });
    const auto all = parse_apt_sources(text, sources_file);
    found = own_sources(all, recipe.suite, std::nullopt);
    looked_at = "`" + sources_file.string() + "`, which MLENV_DEBIAN_SOURCES names,";
  } else {
    const auto machine = release_of(root, recipe.distribution);
    found = own_sources(read_apt_sources(root), recipe.suite, machine);
    looked_at = "this machine's apt configuration (`" + (root / "etc/apt").string() + "`)";
  }
  if (holds_suite(found, recipe.suite)) return found;
  throw failure("no-sources", "no package source for `{}:{}`", recipe.distribution, recipe.suite)
      .because(
          fmt::format("{} has no http or https entry for the suite `{}`", looked_at, recipe.suite))
      .hint(fmt::format(
          "write `sources: {{debian: [{{uri: http://MIRROR/debian, suite: {0}}}]}}` into the "
          "recipe, "
          "or `deb http://MIRROR/debian {0} main` into a file and set MLENV_DEBIAN_SOURCES to its "
          "path",
          recipe.suite));
}

}  // namespace mlenv
