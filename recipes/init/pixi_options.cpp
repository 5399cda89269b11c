#include "recipes/init/pixi_options.hpp"

#include <fmt/core.h>

#include "recipes/requirement.hpp"
#include "recipes/steering.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

class PixiOptions {
 public:
  PixiOptions(const ConversionSource& source, Conversion& to) : source_(source), to_(to) {}

  void read(const std::string& key, const TomlValue& value) {
    DraftChoice& choice = to_.draft.choice;
    if (key == "dependency-overrides") return overrides(value);
    if (key == "no-build") return names(value, choice.only_binary);
    if (key == "no-binary") return names(value, choice.no_binary);
    if (key == "prerelease-mode" && is_among(prerelease_words(), value.text)) {
      choice.prerelease = value.text;
      return;
    }
    if (key == "find-links") return links(value);
    if (key == "no-build-isolation") {
      return left(value, key,
                  "builds are always isolated here: what they need is named under "
                  "`build: {requires: …}`");
    }
    left(value, key, "a setting of Pixi's: no key of the recipe stands for it");
  }

 private:
  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }
  void left(const TomlValue& at, std::string_view key, std::string_view why) {
    to_.leave_out(place(at), fmt::format("pypi-options.{}", key), why);
  }

  /// `NAME = ">=1"`, or `NAME = {version = ">=1"}`.
  void overrides(const TomlValue& table) {
    for (const auto& [name, value] : table.members) {
      std::string version = value.kind == TomlKind::text ? value.text : value.text_of("version");
      if (version == "*") version.clear();
      const auto read = parse_requirement(name + version);
      const auto* one = std::get_if<Requirement>(&read);
      if (one == nullptr || (version.empty() && value.kind != TomlKind::text)) {
        left(value, "dependency-overrides." + name, "not a requirement on an index's package");
      } else {
        to_.draft.choice.overrides.push_back(one->str());
      }
    }
    to_.check_count(to_.draft.choice.overrides.size(), "overrides");
  }

  /// `true`, or a list of packages.
  void names(const TomlValue& value, std::vector<std::string>& to) {
    if (value.boolean) to = {std::string(kAllPackages)};
    for (const TomlValue& one : value.items) {
      const std::string name = normalise_wheel_name(one.text);
      if (is_wheel_name(name)) to.push_back(name);
    }
    to_.check_count(to.size(), "packages of Pixi's settings");
  }

  void links(const TomlValue& list) {
    for (const TomlValue& one : list.items) {
      const std::string url = one.kind == TomlKind::text ? one.text : one.text_of("url");
      const std::string path = one.text_of("path");
      if (!url.empty()) {
        to_.page_of_files(place(one), url);
      } else if (!path.empty()) {
        to_.folder_of_files(place(one), source_.path, path);
      }
    }
  }

  const ConversionSource& source_;
  Conversion& to_;
};

}  // namespace

void pixi_indexes(const ConversionSource& source, const TomlValue& options, Conversion& to) {
  const std::string index = options.text_of("index-url");
  if (!index.empty()) to.python_index({source.shown, options.line}, index, true);
  const TomlValue* more = options.find("extra-index-urls");
  if (more == nullptr) return;
  for (const TomlValue& one : more->items)
    to.python_index({source.shown, one.line}, one.text, false);
}

void pixi_options(const ConversionSource& source, const TomlValue& options, Conversion& to) {
  PixiOptions all(source, to);
  for (const auto& [key, value] : options.members) {
    if (key == "index-url" || key == "extra-index-urls") continue;
    all.read(key, value);
  }
}

}  // namespace mlenv
