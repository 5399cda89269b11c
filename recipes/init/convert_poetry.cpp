#include "recipes/init/convert_poetry.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "recipes/init/poetry_versions.hpp"
#include "recipes/marker.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kOptional =
    "optional packages, for extras that nothing asks for: add with `mlenv add` what the image "
    "needs";

class PoetryTable {
 public:
  PoetryTable(const ConversionSource& source, const ProjectChoice& choice,
              const std::set<std::string>& standard, Conversion& to)
      : source_(source), choice_(choice), standard_(standard), to_(to) {}

  void convert(const TomlValue& poetry) {
    const std::string name = poetry.text_of("name");
    if (!name.empty()) to_.draft.name = image_name_from(name);
    if (const TomlValue* extras = poetry.table("extras")) read_extras(*extras);
    const TomlValue* all = poetry.table("dependencies");
    if (all != nullptr) dependencies(*all);
    if (const TomlValue* groups = poetry.table("group")) read_groups(*groups);
    left("dev-dependencies", poetry, "for development: add with `mlenv add` what the image needs");
    left("scripts", poetry, kProgramsOfProject);
    if (const TomlValue* sources = poetry.find("source")) read_sources(*sources);
  }

 private:
  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }

  void left(const std::string& key, const TomlValue& in, std::string_view why) {
    const TomlValue* found = in.table(key);
    if (found == nullptr) return;
    for (const auto& [name, value] : found->members) {
      to_.leave_out_with_others(place(value), name, why);
    }
  }

  void read_sources(const TomlValue& sources) {
    for (const TomlValue& one : sources.items) {
      const std::string name = one.text_of("name");
      const std::string url = one.text_of("url");
      if (!url.empty() && indexes_.contains(name)) {
        to_.python_index(place(one), url, false);
      } else {
        to_.leave_out_with_others(place(one), "tool.poetry.source " + name,
                                  "indexes can be named in `sources`");
      }
    }
  }

  void read_extras(const TomlValue& extras) {
    for (const auto& [name, packages] : extras.members) {
      if (is_chosen(choice_.extras, name)) {
        for (const TomlValue& one : packages.items) wanted_.insert(normalise_wheel_name(one.text));
      } else {
        to_.leave_out_with_others(place(packages), name,
                                  "extras, which nothing asks for: add with `mlenv add` what the "
                                  "image needs");
      }
    }
  }

  void read_groups(const TomlValue& groups) {
    for (const auto& [name, group] : groups.members) {
      if (name == "main" || is_chosen(choice_.groups, name)) {
        if (const TomlValue* all = group.table("dependencies")) dependencies(*all);
      } else {
        to_.leave_out_with_others(place(group), "group." + name,
                                  "groups, which nothing asks for: add with `mlenv add` what the "
                                  "image needs");
      }
    }
  }

  void dependencies(const TomlValue& all) {
    for (const auto& [package, value] : all.members) {
      if (standard_.contains(normalise_wheel_name(package))) continue;
      if (value.kind != TomlKind::list) {
        dependency(package, value);
        continue;
      }
      // Each for a Python or machine of its own.
      for (const TomlValue& one : value.items) dependency(package, one);
    }
  }

  void dependency(const std::string& package, const TomlValue& value) {
    if (value.is_set("optional") && !wanted_.contains(normalise_wheel_name(package))) {
      if (told_.insert(package).second) to_.leave_out_with_others(place(value), package, kOptional);
      return;
    }
    const std::string address = address_in_toml(source_, value, to_);
    const std::string version = value.kind == TomlKind::text    ? value.text
                                : value.kind == TomlKind::table ? value.text_of("version")
                                                                : std::string{};
    if (address.empty() && version.empty()) {
      to_.leave_out(place(value), package, "it says neither a version nor one place");
      return;
    }
    if (package == "python") return python(place(value), version);
    const std::string specifier =
        address.empty() ? specifier_of(package, version, value) : " @ " + address;
    const std::string marker = marker_for_images(value);
    const bool clean = marker.empty() || !marker_mistake(marker);
    if (comes_in_builds(package) && clean && marker_reach(marker) != MarkerReach::none) {
      indexes_.insert(value.text_of("source"));
    }
    to_.python_package(place(value), package + extras_of(package, value) + specifier +
                                         (marker.empty() ? "" : " ; " + marker));
  }

  /// Without what the extras that are asked for decide, which no requirement of a recipe knows.
  std::string marker_for_images(const TomlValue& value) const {
    std::string marker = marker_of(value);
    if (!says(marker, "extra") || marker_mistake(marker)) return marker;
    const std::set<std::string> extras{choice_.extras.begin(), choice_.extras.end()};
    return marker_reach(marker, extras) == MarkerReach::all ? "" : marker;
  }

  void python(const SourcePlace& at, const std::string& version) {
    const std::vector<std::string> all = poetry_alternatives(version);
    if (all.empty()) {
      return to_.leave_out(at, "python = " + version, "a version that has no words in a recipe");
    }
    if (all.size() > 1 || !all.front().empty()) to_.python_range(at, join(all, "||"));
  }

  std::string specifier_of(const std::string& package, const std::string& version,
                           const TomlValue& value) {
    if (auto one = poetry_specifier(version)) return *std::move(one);
    const std::vector<std::string> all = poetry_alternatives(version);
    to_.leave_out(place(value), package + " = " + version,
                  all.empty() ? "a version that has no words in a recipe: any is asked for"
                              : "of several ranges the last one is taken");
    return all.empty() ? std::string{} : all.back();
  }

  static std::string marker_of(const TomlValue& value) {
    std::vector<std::string> all;
    if (const std::string python = value.text_of("python"); !python.empty()) {
      all.push_back(marker_of_poetry_python(python));
    }
    if (const std::string platform = value.text_of("platform"); !platform.empty()) {
      all.push_back(fmt::format("sys_platform == \"{}\"", platform));
    }
    all.push_back(value.text_of("markers"));
    std::erase(all, "");
    if (all.size() < 2) return join(all, "");
    for (std::string& one : all) {
      if (says(one, " or ")) one = '(' + one + ')';
    }
    return join(all, " and ");
  }

  /// What a recipe has no word for is told.
  std::string extras_of(const std::string& package, const TomlValue& value) {
    if (value.kind != TomlKind::table) return {};
    constexpr std::array<std::string_view, 14> kSaid = {
        "version", "extras", "git",     "branch",   "tag",    "rev",      "subdirectory",
        "path",    "url",    "develop", "optional", "python", "platform", "markers"};
    for (const auto& [key, inner] : value.members) {
      if (is_among(kSaid, key)) continue;
      to_.leave_out(
          place(inner),
          fmt::format("{}.{}{}{}", package, key, inner.text.empty() ? "" : " = ", inner.text),
          "no key of the recipe stands for it");
    }
    std::vector<std::string> names;
    if (const TomlValue* extras = value.find("extras")) {
      for (const TomlValue& extra : extras->items) names.push_back(extra.text);
    }
    return names.empty() ? std::string{} : '[' + join(names, ",") + ']';
  }

  const ConversionSource& source_;
  const ProjectChoice& choice_;
  const std::set<std::string>& standard_;
  Conversion& to_;
  std::set<std::string> wanted_;  ///< optional ones that a chosen extra names
  std::set<std::string> told_;
  std::set<std::string> indexes_;  ///< names of those that a framework's builds come from
};

}  // namespace

bool is_chosen(const std::vector<std::string>& chosen, std::string_view name) {
  return std::any_of(chosen.begin(), chosen.end(), [&](const std::string& one) {
    return normalise_wheel_name(one) == normalise_wheel_name(name);
  });
}

void convert_poetry(const ConversionSource& source, const TomlValue& poetry,
                    const ProjectChoice& choice, const std::set<std::string>& standard,
                    Conversion& to) {
  PoetryTable(source, choice, standard, to).convert(poetry);
}

std::string address_in_toml(const ConversionSource& source, const TomlValue& value,
                            const Conversion& to) {
  if (value.kind != TomlKind::table) return {};
  std::string address;
  if (const std::string git = value.text_of("git"); !git.empty()) {
    address = "git+" + git;
    for (const char* key : {"rev", "tag", "branch"}) {
      if (const std::string one = value.text_of(key); !one.empty()) address += '@' + one;
    }
  } else if (const std::string path = value.text_of("path"); !path.empty()) {
    address = "file:" + path_from_recipe(source.path, path, to);
  } else {
    address = value.text_of("url");
  }
  const std::string below = value.text_of("subdirectory");
  if (address.empty() || below.empty()) return address;
  return address + "#subdirectory=" + below;
}

}  // namespace mlenv
