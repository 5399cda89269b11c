#include "recipes/lock_steering.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/lock_format.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using NamedStrings = std::map<std::string, std::string>;
using TextLists = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> list_of(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

void steering_list(std::string& out, std::string_view key, const std::vector<std::string>& values) {
  if (!values.empty()) out += fmt::format("{} = {}\n", key, toml_list(values));
}

std::string toml_of(const std::string& text) { return toml_text(text); }
std::string toml_of(const std::vector<std::string>& texts) { return toml_list(texts); }

template <class Value>
void table(std::string& out, const std::string& name, const std::map<std::string, Value>& values) {
  if (values.empty()) return;
  out += fmt::format("\n[request.steering.{}]\n", name);
  for (const auto& [key, value] : values) {
    out += fmt::format("{} = {}\n", toml_key(key), toml_of(value));
  }
}

template <class Value>
void steering_tables(std::string& out, const std::string& name,
                     const BuildSteering::ByPackage<Value>& values) {
  table(out, name, values.all);
  for (const auto& [package, own] : values.by_name) {
    table(out, fmt::format("{}-package.{}", name, toml_key(package)), own);
  }
}

NamedStrings places_by_name(const Steering& steering) {
  NamedStrings places;
  for (const PackageIndex& one : steering.indexes) {
    for (const std::string& name : one.packages) places[name] = one.url;
  }
  return places;
}

void render_metadata(std::string& out, const std::vector<StatedMetadata>& all) {
  if (all.empty()) return;
  out += "dependency-metadata = [\n";
  for (const StatedMetadata& one : all) {
    out += fmt::format("  {{ name = {}", toml_text(one.name));
    if (!one.version.empty()) out += fmt::format(", version = {}", toml_text(one.version));
    out += fmt::format(", requires-dist = {}", toml_list(one.requires_dist));
    if (!one.requires_python.empty()) {
      out += fmt::format(", requires-python = {}", toml_text(one.requires_python));
    }
    if (!one.extras.empty()) out += fmt::format(", provides-extras = {}", toml_list(one.extras));
    out += " },\n";
  }
  out += "]\n";
}

class SteeringReader {
 public:
  explicit SteeringReader(const TomlReader& reader) : reader_(reader) {}

  Steering read(const TomlValue& table) {
    constexpr std::array<std::string_view, 10> kKeys = {
        "overrides",  "exclude", "no-binary",           "only-binary", "prefer-binary",
        "prerelease", "index",   "dependency-metadata", "build",       "exclude-newer"};
    reader_.only(table, kKeys);
    Steering steering;
    steering.overrides = requirements(table, "overrides");
    steering.exclude = names(table, "exclude", false);
    steering.no_binary = names(table, "no-binary", true);
    steering.only_binary = names(table, "only-binary", true);
    steering.prefer_binary = names(table, "prefer-binary", true);
    steering.prerelease = reader_.optional_text(table, "prerelease");
    if (!steering.prerelease.empty() && !is_among(prerelease_words(), steering.prerelease)) {
      reader_.fail(*table.find("prerelease"), "`prerelease` is none of uv's words");
    }
    steering.exclude_newer = reader_.optional_text(table, "exclude-newer");
    if (!steering.exclude_newer.empty() && !is_upload_date(steering.exclude_newer)) {
      reader_.fail(*table.find("exclude-newer"), "`exclude-newer` is neither a day nor a moment");
    }
    indexes(table, steering);
    metadata(table, steering);
    if (const TomlValue* own = reader_.optional_member(table, "build", TomlKind::table)) {
      build(*own, steering.build);
    }
    put_in_order(steering);
    return steering;
  }

 private:
  std::vector<std::string> requirements(const TomlValue& table, const std::string& key) const {
    std::vector<std::string> texts = reader_.texts(table, key);
    for (const std::string& text : texts) check_requirement(*table.find(key), text);
    return texts;
  }

  void check_requirement(const TomlValue& at, const std::string& text) const {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one != nullptr && one->address.empty()) return;
    reader_.fail(at, fmt::format("{} is not a requirement of an index", toml_text(text)));
  }

  void check_name(const TomlValue& at, const std::string& name) const {
    if (is_wheel_name(name) && normalise_wheel_name(name) == name) return;
    reader_.fail(at, fmt::format("{} is not a normalised package name", toml_text(name)));
  }

  std::set<std::string> names(const TomlValue& table, const std::string& key,
                              bool may_be_all) const {
    const std::vector<std::string> texts = reader_.texts(table, key);
    for (const std::string& text : texts) {
      if (may_be_all && text == kAllPackages) continue;
      check_name(*table.find(key), text);
    }
    return {texts.begin(), texts.end()};
  }

  void indexes(const TomlValue& table, Steering& steering) const {
    const TomlValue* all = reader_.optional_member(table, "index", TomlKind::table);
    if (all == nullptr) return;
    for (const auto& [name, value] : all->members) {
      check_name(value, name);
      steering.indexes.push_back({read_digest(reader_, *all, name).hex(), false, {name}});
    }
  }

  void metadata(const TomlValue& table, Steering& steering) const {
    const TomlValue* all = reader_.optional_member(table, "dependency-metadata", TomlKind::list);
    if (all == nullptr) return;
    for (const TomlValue& item : all->items) {
      if (item.kind != TomlKind::table) reader_.fail(item, "metadata is a table in one line");
      constexpr std::array<std::string_view, 5> kKeys = {"name", "version", "requires-dist",
                                                         "requires-python", "provides-extras"};
      reader_.only(item, kKeys);
      StatedMetadata one{.name = reader_.text(item, "name"),
                         .version = reader_.optional_text(item, "version"),
                         .requires_dist = requirements(item, "requires-dist"),
                         .requires_python = reader_.optional_text(item, "requires-python"),
                         .extras = reader_.texts(item, "provides-extras")};
      check_name(item, one.name);
      steering.metadata.push_back(std::move(one));
    }
  }

  void build(const TomlValue& table, BuildSteering& steering) const {
    constexpr std::array<std::string_view, 7> kKeys = {
        "constraints", "requires",        "env",
        "env-package", "config-settings", "config-settings-package",
        "network"};
    reader_.only(table, kKeys);
    steering.constraints = requirements(table, "constraints");
    steering.network = reader_.optional_flag(table, "network", false);
    if (const TomlValue* all = reader_.optional_member(table, "requires", TomlKind::table)) {
      for (const auto& [name, value] : all->members) {
        check_name(value, name);
        steering.requirements[name] = requirements(*all, name);
      }
    }
    by_package(table, "env", steering.env);
    by_package(table, "config-settings", steering.config_settings);
    for (const auto& [name, value] : steering.env.all) check_variable(table, name);
    for (const auto& [package, own] : steering.env.by_name) {
      for (const auto& [name, value] : own) check_variable(table, name);
    }
  }

  void check_variable(const TomlValue& table, const std::string& name) const {
    if (is_env_name(name)) return;
    reader_.fail(table,
                 fmt::format("{} is not a name for an environment variable", toml_text(name)));
  }

  template <class Value>
  void by_package(const TomlValue& table, const std::string& key,
                  BuildSteering::ByPackage<Value>& values) const {
    if (const TomlValue* all = reader_.optional_member(table, key, TomlKind::table)) {
      for (const auto& [name, value] : all->members) take(*all, name, values.all);
    }
    const TomlValue* packages = reader_.optional_member(table, key + "-package", TomlKind::table);
    if (packages == nullptr) return;
    for (const auto& [package, own] : packages->members) {
      check_name(own, package);
      if (own.kind != TomlKind::table) reader_.fail(own, "what is of a package is a table");
      for (const auto& [name, value] : own.members) take(own, name, values.by_name[package]);
    }
  }

  void take(const TomlValue& table, const std::string& name, NamedStrings& into) const {
    const TomlValue& value = reader_.member(table, name, TomlKind::text);
    if (has_control(value.text, "\t\n")) {
      reader_.fail(value, fmt::format("{} holds control characters", toml_text(name)));
    }
    into[name] = value.text;
  }
  void take(const TomlValue& table, const std::string& name, TextLists& into) const {
    into[name] = reader_.texts(table, name);
  }

  const TomlReader& reader_;
};

std::string shown_value(const std::string& text) { return text; }
std::string shown_value(const std::vector<std::string>& texts) { return join(texts, " "); }

template <class Value>
std::string shown_values(const std::map<std::string, Value>& values) {
  std::vector<std::string> all;
  for (const auto& [key, value] : values) all.push_back(key + '=' + shown_value(value));
  return join(all, ", ");
}

template <class Value>
void show(NamedStrings& out, const std::string& what,
          const BuildSteering::ByPackage<Value>& values) {
  out[what] = shown_values(values.all);
  for (const auto& [package, own] : values.by_name) {
    out[fmt::format("{} of {}", what, package)] = shown_values(own);
  }
}

}  // namespace

std::string render_steering(const Steering& steering) {
  if (steering.empty()) return {};
  std::string out = "\n[request.steering]\n";
  steering_list(out, "overrides", steering.overrides);
  steering_list(out, "exclude", list_of(steering.exclude));
  steering_list(out, "no-binary", list_of(steering.no_binary));
  steering_list(out, "only-binary", list_of(steering.only_binary));
  steering_list(out, "prefer-binary", list_of(steering.prefer_binary));
  if (!steering.prerelease.empty()) {
    out += fmt::format("prerelease = {}\n", toml_text(steering.prerelease));
  }
  if (!steering.exclude_newer.empty()) {
    out += fmt::format("exclude-newer = {}\n", toml_text(steering.exclude_newer));
  }
  render_metadata(out, steering.metadata);
  table(out, "index", places_by_name(steering));
  const BuildSteering& build = steering.build;
  if (!build.constraints.empty() || build.network) {
    out += "\n[request.steering.build]\n";
    steering_list(out, "constraints", build.constraints);
    if (build.network) out += "network = true\n";
  }
  table(out, "build.requires", build.requirements);
  steering_tables(out, "build.env", build.env);
  steering_tables(out, "build.config-settings", build.config_settings);
  return out;
}

Steering read_steering(const TomlReader& reader, const TomlValue& table) {
  return SteeringReader(reader).read(table);
}

std::map<std::string, std::string> shown_steering(const Steering& steering) {
  NamedStrings out;
  for (const std::string& one : steering.overrides) {
    std::string& all = out["override of " + package_of_requirement(one)];
    all += (all.empty() ? "" : ", ") + one;
  }
  out["exclude"] = join(list_of(steering.exclude), ", ");
  out["no-binary"] = join(list_of(steering.no_binary), ", ");
  out["only-binary"] = join(list_of(steering.only_binary), ", ");
  out["prefer-binary"] = join(list_of(steering.prefer_binary), ", ");
  out["prerelease"] = steering.prerelease;
  out["exclude-newer"] = steering.exclude_newer;
  const std::size_t brief = Digest::of("").brief().size();
  for (const auto& [name, place] : places_by_name(steering)) {
    out["index of " + name] = "address " + place.substr(0, brief);
  }
  for (const StatedMetadata& one : steering.metadata) {
    out[fmt::format("metadata of {}{}{}", one.name, one.version.empty() ? "" : " ", one.version)] =
        fmt::format("requires {}{}{}{}{}",
                    one.requires_dist.empty() ? "nothing" : join(one.requires_dist, ", "),
                    one.requires_python.empty() ? "" : ", Python ", one.requires_python,
                    one.extras.empty() ? "" : ", extras ", join(one.extras, ", "));
  }
  out["build constraints"] = join(steering.build.constraints, ", ");
  for (const auto& [name, texts] : steering.build.requirements) {
    out["build requirements of " + name] = join(texts, ", ");
  }
  show(out, "build env", steering.build.env);
  show(out, "build config-settings", steering.build.config_settings);
  out["build network"] = steering.build.network ? "true" : "";
  std::erase_if(out, [](const auto& one) { return one.second.empty(); });
  return out;
}

}  // namespace mlenv
