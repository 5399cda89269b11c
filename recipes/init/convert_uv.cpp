// `[tool.uv]` of a pyproject.toml, as far as a recipe has keys for it (uv's documentation,
// "Settings").
#include <algorithm>
#include <array>
#include <set>

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
    if (const TomlValue* sources = uv.table("sources")) name_sources(*sources);
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
  /// What is about uv's own work in the project's folder, and nothing of the environment.
  static bool is_of_work(std::string_view key) {
    constexpr std::array<std::string_view, 16> kKeys = {
        "package",       "managed",           "workspace",   "cache-dir",
        "cache-keys",    "compile-bytecode",  "link-mode",   "native-tls",
        "offline",       "preview",           "publish-url", "python-downloads",
        "build-backend", "python-preference", "check-url",   "required-version"};
    return is_among(kKeys, key);
  }
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
    if (key == "exclude-newer" && is_upload_date(value.text)) {
      to_.draft.choice.exclude_newer = value.text;
      return;
    }
    if (key == "exclude-newer") {
      return left(value, key,
                  "`exclude-newer` of the recipe is a day, as in `2024-06-30`, or a moment in UTC");
    }
    if (key == "find-links") {
      for (const TomlValue& one : value.items) pages(one);
      return;
    }
    if (key == "dependency-metadata") return metadata(value);
    if (key == "config-settings") return config_settings({}, value);
    if (key == "config-settings-package") return config_settings_of_packages(value);
    if (key == "extra-index-url") {
      for (const TomlValue& one : value.items) to_.python_index(place(one), one.text, false);
      return;
    }
    if (is_of_work(key)) return;
    left(value, key, "a setting of uv's: no key of the recipe stands for it");
  }

  /// Indexes that packages are sent to.
  void name_sources(const TomlValue& sources) {
    for (const auto& [package, value] : sources.members) {
      sources_.insert(value.text_of("index"));
      for (const TomlValue& one : value.items) sources_.insert(one.text_of("index"));
    }
    sources_.erase("");
  }

  /// The default one is the recipe's; those that packages name are read with these.
  void indexes(const TomlValue& list) {
    for (const TomlValue& one : list.items) {
      const std::string url = one.text_of("url");
      if (url.empty() || one.is_set("explicit") || sources_.contains(one.text_of("name"))) continue;
      to_.python_index(place(one), url, one.is_set("default"));
    }
  }

  void pages(const TomlValue& one) {
    if (says(one.text, "://")) return to_.page_of_files(place(one), one.text);
    to_.folder_of_files(place(one), source_.path, one.text);
  }

  /// `{name, version, requires-dist, …}` of a package each.
  void metadata(const TomlValue& list) {
    for (const TomlValue& one : list.items) {
      DraftMetadata stated{normalise_wheel_name(one.text_of("name")),
                           one.text_of("version"),
                           one.text_of("requires-python"),
                           {},
                           {}};
      if (const TomlValue* needs = one.find("requires-dist")) {
        requirements(*needs, "dependency-metadata", stated.requires_dist);
      }
      for (const std::string& extra : one.texts_of("provides-extra")) {
        if (is_wheel_name(normalise_wheel_name(extra))) stated.extras.push_back(extra);
      }
      const bool clean = !has_control(stated.version) && !has_control(stated.requires_python);
      if (is_wheel_name(stated.name) && clean) {
        to_.draft.choice.metadata.push_back(std::move(stated));
      }
    }
    to_.check_count(to_.draft.choice.metadata.size(), "packages of uv's settings");
  }

  /// `KEY = "value"`, `KEY = ["a", "b"]` or `KEY = true` of the build of `package` (empty: of all).
  void config_settings(const std::string& package, const TomlValue& table) {
    for (const auto& [key, value] : table.members) {
      std::vector<std::string> values;
      if (value.kind == TomlKind::text) values.push_back(value.text);
      if (value.kind == TomlKind::boolean) values.emplace_back(value.boolean ? "true" : "false");
      for (const TomlValue& one : value.items) values.push_back(one.text);
      const bool clean = std::none_of(values.begin(), values.end(),
                                      [](const std::string& one) { return has_control(one); });
      if (values.empty() || !clean || has_control(key)) {
        left(value, "config-settings." + key, "not a setting that a recipe can hold");
      } else {
        to_.draft.choice.config_settings.push_back({package, key, std::move(values)});
      }
    }
    to_.check_count(to_.draft.choice.config_settings.size(), "settings of builds");
  }

  void config_settings_of_packages(const TomlValue& all) {
    for (const auto& [package, table] : all.members) {
      const std::string name = normalise_wheel_name(package);
      if (is_wheel_name(name)) config_settings(name, table);
    }
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
  std::set<std::string> sources_;
};

}  // namespace

void convert_uv_settings(const ConversionSource& source, const TomlValue& uv, Conversion& to) {
  UvTable(source, to).convert(uv);
}

}  // namespace mlenv
