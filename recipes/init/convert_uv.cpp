// `[tool.uv]` of a pyproject.toml, as far as a recipe has keys for it (uv's documentation,
// "Settings").
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/init/convert_poetry.hpp"
#include "recipes/marker.hpp"
#include "recipes/requirement.hpp"
#include "recipes/steering.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNeverHolds =
    "a marker that never holds keeps it out, as where the image below has one already: here "
    "nothing lies below, so what needs it gets it; `exclude` of the recipe keeps packages out";

class UvTable {
 public:
  UvTable(const ConversionSource& source, Conversion& to) : source_(source), to_(to) {}

  void convert(const TomlValue& uv) {
    DraftChoice& choice = to_.draft.choice;
    for (const auto& [key, value] : uv.members) {
      if (key == "override-dependencies") {
        requirements(value, key, choice.overrides);
      } else if (key == "constraint-dependencies") {
        requirements(value, key, choice.constraints);
      } else if (key == "build-constraint-dependencies") {
        requirements(value, key, choice.build_constraints);
      } else if (key == "exclude-dependencies") {
        exclude(value);
      } else if (key == "no-binary-package") {
        names(value, choice.no_binary);
      } else if (key == "no-build-package") {
        names(value, choice.only_binary);
      } else if (key == "no-binary" || key == "no-build") {
        if (value.boolean) (key == "no-build" ? choice.only_binary : choice.no_binary) = {all()};
      } else if (key == "prerelease" && is_among(prerelease_words(), value.text)) {
        choice.prerelease = value.text;
      } else if (key == "extra-build-dependencies") {
        build_requirements(value);
      } else if (key == "extra-build-variables") {
        build_variables(value);
      } else if (key == "index-url" && value.kind == TomlKind::text) {
        to_.python_index(place(value), value.text, true);
      } else if (key != "sources") {
        other(key, value);
      }
    }
  }

 private:
  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }
  static std::string all() { return std::string(kAllPackages); }

  void left(const TomlValue& at, std::string_view key, std::string_view why) {
    to_.leave_out(place(at), fmt::format("tool.uv.{}", key), why);
  }

  void other(const std::string& key, const TomlValue& value) {
    if (key == "no-build-isolation-package" || key == "no-build-isolation") {
      return left(value, key,
                  "builds are always isolated here: what they need is named under "
                  "`build: {requires: …}`");
    }
    if (key == "index") return indexes(value);
    if (key == "dependency-metadata" || key == "config-settings" ||
        key == "config-settings-package") {
      return left(value, key,
                  key.starts_with("config")
                      ? "the recipe says it under `build: {config-settings: …}`"
                      : "the recipe says it under `dependency-metadata`");
    }
    left(value, key, "a setting of uv's: no key of the recipe stands for it");
  }

  /// The default one is the recipe's; those that packages name are read with these.
  void indexes(const TomlValue& list) {
    bool further = false;
    for (const TomlValue& one : list.items) {
      const std::string url = one.text_of("url");
      if (one.is_set("default") && !one.is_set("explicit") && !url.empty()) {
        to_.python_index(place(one), url, true);
      } else {
        further = true;
      }
    }
    if (further) left(list, "index", "a setting of uv's: indexes can be named in `sources`");
  }

  void requirements(const TomlValue& list, std::string_view key, std::vector<std::string>& to) {
    for (const TomlValue& item : list.items) {
      const TomlValue* own = item.find("requirement");
      const TomlValue& one = own == nullptr ? item : *own;
      const auto read = parse_requirement(trim(one.text));
      const auto* requirement = std::get_if<Requirement>(&read);
      if (requirement == nullptr || !requirement->address.empty()) {
        to_.leave_out(place(one), fmt::format("tool.uv.{}: {}", key, one.text),
                      "not a requirement on an index's package");
      } else if (marker_reach(requirement->marker) == MarkerReach::none) {
        to_.leave_out_with_others(place(one), fmt::format("tool.uv.{}: {}", key, one.text),
                                  kNeverHolds);
      } else {
        to.push_back(requirement->str());
      }
    }
    to_.check_count(to.size(), "requirements of uv's settings");
  }

  void names(const TomlValue& list, std::vector<std::string>& to) {
    for (const TomlValue& one : list.items) {
      const std::string name = normalise_wheel_name(one.text);
      if (is_wheel_name(name)) to.push_back(name);
    }
    to_.check_count(to.size(), "packages of uv's settings");
  }

  /// What the project itself asks for cannot be excluded.
  void exclude(const TomlValue& list) {
    std::vector<std::string> found;
    names(list, found);
    for (const std::string& name : found) {
      if (to_.has_package(name)) {
        to_.leave_out(place(list), "tool.uv.exclude-dependencies: " + name,
                      "the project asks for it itself");
      } else {
        to_.draft.choice.exclude.push_back(name);
      }
    }
  }

  void build_requirements(const TomlValue& table) {
    for (const auto& [package, list] : table.members) {
      const std::string name = normalise_wheel_name(package);
      std::vector<std::string> found;
      requirements(list, "extra-build-dependencies", found);
      if (is_wheel_name(name) && !found.empty()) {
        to_.draft.choice.build_requires.emplace_back(name, std::move(found));
      }
    }
  }

  void build_variables(const TomlValue& table) {
    for (const auto& [package, variables] : table.members) {
      const std::string name = normalise_wheel_name(package);
      std::vector<std::pair<std::string, std::string>> found;
      for (const auto& [key, value] : variables.members) {
        const bool plain = value.kind == TomlKind::text && !has_control(value.text, "\t\n");
        if (is_env_name(key) && plain) found.emplace_back(key, value.text);
      }
      if (is_wheel_name(name) && !found.empty()) {
        to_.draft.choice.build_env.emplace_back(name, std::move(found));
      }
    }
  }

  const ConversionSource& source_;
  Conversion& to_;
};

}  // namespace

void convert_uv_settings(const ConversionSource& source, const TomlValue& uv, Conversion& to) {
  UvTable(source, to).convert(uv);
}

}  // namespace mlenv
