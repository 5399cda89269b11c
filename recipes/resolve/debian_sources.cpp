#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/distribution.hpp"
#include "recipes/resolve/apt_sources.hpp"
#include "recipes/resolve/debian.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// What follows a release's name in the suites that belong to it (`buster/updates` is the older
/// form of -security; archives of that age are not supported).
constexpr std::string_view kPockets[] = {"", "-updates", "-security"};

/// The machine's own release, when it runs the distribution asked for.
std::optional<std::string> machine_codename(const fs::path& root, std::string_view distribution) {
  const auto text = read_small_file_if_exists(root / "etc/os-release", size_limit::kMachineConfig);
  if (!text) return std::nullopt;
  std::string codename = os_release_value(*text, "VERSION_CODENAME");
  if (os_release_value(*text, "ID") != distribution || codename.empty()) return std::nullopt;
  return codename;
}

/// The base that sources are looked for.
struct WantedSuite {
  const Distribution& distribution;
  std::string suite;
  std::vector<std::string> others;  ///< suites next to it that the recipe names
};

/// The suite of the wanted release that takes `found`'s place, or nullopt when `found` belongs to
/// neither of `known`.
std::optional<std::string> suite_in_place(std::string_view found, const WantedSuite& wanted,
                                          std::span<const std::string_view> known) {
  for (const std::string_view name : known) {
    if (!found.starts_with(name)) continue;
    const std::string_view pocket = found.substr(name.size());
    if (!is_among(kPockets, pocket)) continue;
    if (is_among(wanted.distribution.rolling, wanted.suite) && !pocket.empty()) return std::nullopt;
    return fmt::format("{}{}", wanted.suite, pocket);
  }
  return std::nullopt;
}

/// `stable` is a favourite of other people's repositories too: only an archive that says in its
/// address whose it is counts.
bool looks_like(const Distribution& distribution, const AptSource& source) {
  const auto says_so = [&](const std::string& text) {
    return text.find(distribution.id) != std::string::npos;
  };
  return std::any_of(source.uris.begin(), source.uris.end(), says_so) ||
         says_so(source.signed_by.filename().string());
}

/// A repository of somebody else under the same suite name usually has other components.
bool has_own_sections(const Distribution& distribution, const AptSource& source) {
  const auto own = [&](const std::string& name) { return is_among(distribution.sections, name); };
  return !source.components.empty() &&
         std::all_of(source.components.begin(), source.components.end(), own);
}

std::optional<DebianSource> own_source(const AptSource& source, const WantedSuite& wanted,
                                       const std::optional<std::string>& machine) {
  if (!has_own_sections(wanted.distribution, source)) return std::nullopt;
  std::vector<std::string_view> known{wanted.suite};
  if (machine) known.emplace_back(*machine);
  auto suite = suite_in_place(source.suite, wanted, known);
  if (!suite && looks_like(wanted.distribution, source)) {
    suite = suite_in_place(source.suite, wanted, wanted.distribution.moving);
  }
  if (!suite) return std::nullopt;
  DebianSource own;
  own.uris = source.uris;
  own.suite = *suite;
  own.components = source.components;
  own.signed_by = source.signed_by;
  own.key = source.key;
  own.architectures = source.architectures;
  own.origin = wanted.distribution.name;
  own.check_valid_until = source.check_valid_until;
  own.optional = *suite != source.suite;
  return own;
}

bool holds_suite(const std::vector<DebianSource>& sources, const std::string& suite) {
  return std::any_of(sources.begin(), sources.end(),
                     [&](const DebianSource& source) { return source.suite == suite; });
}

/// Backports and their kin lie in the same archive as the suite itself.
void add_others(const WantedSuite& wanted, std::vector<DebianSource>& found) {
  for (const std::string& other : wanted.others) {
    if (holds_suite(found, other)) continue;
    for (std::size_t i = 0, count = found.size(); i < count; ++i) {
      if (found[i].suite != wanted.suite) continue;
      found.push_back(found[i]);
      found.back().suite = other;
      found.back().origin.clear();  // `Debian Backports`, say; the key is the same
      found.back().optional = false;
    }
  }
}

std::vector<DebianSource> own_sources(const std::vector<AptSource>& all, const WantedSuite& wanted,
                                      const std::optional<std::string>& machine) {
  std::vector<DebianSource> found;
  for (const AptSource& source : all) {
    auto own = own_source(source, wanted, machine);
    if (own && std::find(found.begin(), found.end(), *own) == found.end()) {
      found.push_back(std::move(*own));
    }
  }
  add_others(wanted, found);
  return found;
}

/// `bookworm-backports` of `system: [git/bookworm-backports]`
std::vector<std::string> suites_next_to(const Recipe& recipe) {
  std::vector<std::string> found;
  for (const Placed& package : recipe.system) {
    const std::string_view suite = parse_debian_wish(package.text).suite;
    if (!suite.starts_with(recipe.suite + "-")) continue;
    if (std::find(found.begin(), found.end(), suite) == found.end()) found.emplace_back(suite);
  }
  return found;
}

std::vector<DebianSource> recipe_sources(const Recipe& recipe, const Distribution& distribution) {
  std::vector<DebianSource> found;
  for (const RecipeSources::Debian& own : recipe.sources.debian) {
    DebianSource source;
    source.uris = {own.uri};
    source.suite = own.suite.empty() ? recipe.suite : own.suite;
    source.components = own.components;
    if (source.components.empty()) {
      source.components = {distribution.usual.begin(), distribution.usual.end()};
    }
    if (!own.signed_by.empty()) source.signed_by = recipe.keyring_path(own);
    source.check_valid_until = own.check_valid_until;
    found.push_back(std::move(source));
  }
  return found;
}

/// An entry of the base's apt, its keys where they have been put below `settings`.
DebianSource as_it_is(const AptSource& source, const fs::path& settings) {
  DebianSource plain;
  plain.uris = source.uris;
  plain.suite = source.suite;
  plain.components = source.components;
  plain.key = source.key;
  plain.architectures = source.architectures;
  plain.check_valid_until = source.check_valid_until;
  const fs::path trusted = settings / "etc/apt/trusted.gpg.d";
  if (!source.signed_by.empty()) {
    plain.signed_by = settings / source.signed_by.lexically_normal().relative_path();
  } else if (source.key.empty() && !list_folder(trusted).empty()) {
    plain.signed_by = trusted;
  }
  return plain;
}

Error no_sources(const Recipe& recipe, const std::string& looked_at) {
  return failure("no-sources", "no package source for `{}:{}`", recipe.distribution, recipe.suite)
      .because(
          fmt::format("{} has no http or https entry for the suite `{}`", looked_at, recipe.suite))
      .hint(fmt::format(
          "write `sources: {{debian: [{{uri: http://MIRROR/{0}, suite: {1}}}]}}` into the "
          "recipe, "
          "or `deb http://MIRROR/{0} {1} main` into a file and set MLENV_DEBIAN_SOURCES to its "
          "path",
          recipe.distribution, recipe.suite));
}

}  // namespace

fs::path debian_sources_setting() {
  // The one place that reads it; cli/settings.cpp documents it.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* value = std::getenv("MLENV_DEBIAN_SOURCES");
  return value == nullptr ? fs::path{} : fs::path{value};
}

BaseSources base_sources(const Recipe& recipe, const fs::path& settings,
                         const fs::path& sources_file) {
  const Distribution* distribution = find_distribution(recipe.distribution);
  const bool others_first = !sources_file.empty() || recipe.has_own_base_source();
  if (distribution == nullptr || others_first) return {};
  const WantedSuite wanted{*distribution, recipe.suite, suites_next_to(recipe)};
  BaseSources found;
  for (const AptSource& source : read_apt_sources(settings)) {
    if (source.components.empty()) continue;  // without `dists/`
    DebianSource plain = as_it_is(source, settings);
    if (const auto own = own_source(source, wanted, std::nullopt)) {
      plain.suite = own->suite;  // of `stable`, say
      found.hold_suite = found.hold_suite || own->suite == recipe.suite;
    } else if (plain.signed_by.empty() && plain.key.empty()) {
      continue;  // the archive's keys are none of theirs
    }
    if (std::find(found.sources.begin(), found.sources.end(), plain) == found.sources.end()) {
      found.sources.push_back(std::move(plain));
    }
  }
  add_others(wanted, found.sources);
  std::vector<DebianSource> more = recipe_sources(recipe, *distribution);
  std::move(more.begin(), more.end(), std::back_inserter(found.sources));
  return found;
}

std::vector<DebianSource> debian_sources(const Recipe& recipe, const fs::path& root,
                                         const fs::path& sources_file) {
  const Distribution* distribution = find_distribution(recipe.distribution);
  if (distribution == nullptr) throw no_sources(recipe, "mlenv");
  std::vector<DebianSource> own = recipe_sources(recipe, *distribution);
  if (!own.empty() && recipe.has_own_base_source()) return own;
  const WantedSuite wanted{*distribution, recipe.suite, suites_next_to(recipe)};
  std::vector<DebianSource> found;
  std::string looked_at;
  if (!sources_file.empty()) {
    const auto text =
        while_doing("looking for package sources in what MLENV_DEBIAN_SOURCES names",
                    [&] { return read_small_file(sources_file, size_limit::kMachineConfig); });
    const auto all = parse_apt_sources(text, sources_file);
    found = own_sources(all, wanted, std::nullopt);
    looked_at = "`" + sources_file.string() + "`, which MLENV_DEBIAN_SOURCES names,";
  } else {
    const auto machine = machine_codename(root, recipe.distribution);
    found = own_sources(read_apt_sources(root), wanted, machine);
    looked_at = "this machine's apt configuration (`" + (root / "etc/apt").string() + "`)";
  }
  if (!holds_suite(found, recipe.suite)) throw no_sources(recipe, looked_at);
  std::move(own.begin(), own.end(), std::back_inserter(found));
  return found;
}

}  // namespace mlenv
