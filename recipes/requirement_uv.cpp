#include "recipes/requirement_uv.hpp"

#include <fnmatch.h>
#include <algorithm>
#include <array>
#include <span>

#include "base/http.hpp"
#include "base/paths.hpp"
#include "recipes/logins.hpp"
#include "recipes/marker.hpp"
#include "recipes/package_address.hpp"
#include "recipes/project_name.hpp"
#include "recipes/project_path.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 9> kPossiblePythons = {
    "3.7.9", "3.8.18", "3.9.25", "3.10.19", "3.11.14", "3.12.12", "3.13.9", "3.14.2", "3.15.0"};
constexpr std::array<std::string_view, 2> kMachines = {"x86_64", "aarch64"};
constexpr std::string_view kDefaultIndex = "--index-url";
constexpr std::string_view kFurtherIndex = "--extra-index-url";
constexpr std::string_view kPage = "--find-links";

/// Members of a workspace, and folders looked into for them; a real one has a few.
constexpr std::size_t kMostMembers = 1000;

/// Patterns of `members`, a part each: `packages/*`. Links are not followed.
void expand(const fs::path& root, const std::string& done, std::string_view rest,
            std::vector<std::string>& found) {
  if (found.size() >= kMostMembers) return;
  if (rest.empty()) {
    found.push_back(done);
    return;
  }
  const std::size_t end = std::min(rest.find('/'), rest.size());
  const std::string part(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (part.find_first_of("*?[") == std::string::npos) {
    expand(root, below(done, part), rest, found);
    return;
  }
  std::error_code unknown;
  if (!fs::is_directory(root / done, unknown)) return;
  std::vector<std::string> names;
  for (const fs::path& entry : list_folder(root / done)) {
    const std::string name = entry.filename().string();
    if (fs::is_symlink(fs::symlink_status(entry))) continue;
    if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) expand(root, below(done, name), rest, found);
}

}  // namespace

MarkerReach marker_reach(const std::string& marker, const Recipe& recipe) {
  if (marker.empty()) return MarkerReach::all;
  std::vector<std::string> machines;
  for (const std::string& platform : recipe.wanted_platforms()) {
    machines.emplace_back(machine_name(last_part(platform)));
  }
  bool holds = false;
  bool fails = false;
  for (const std::string_view python : kPossiblePythons) {
    const bool other = recipe.python && !python.starts_with(recipe.python->text + ".");
    if (other) continue;
    for (const std::string& machine : machines) {
      (marker_holds(marker, {std::string(python), machine}) ? holds : fails) = true;
    }
  }
  if (holds && fails) return MarkerReach::some;
  return holds ? MarkerReach::all : MarkerReach::none;
}

std::string UvSettings::requirement(const TomlValue& at) const {
  const Requirement one = toml_.requirement(at);
  if (!one.address.empty()) {
    reader().fail(at,
                  "here a package comes from an index: one by address is named under `packages` of "
                  "the recipe, and counts for whatever asks for it");
  }
  return one.str();
}

std::vector<std::string> UvSettings::requirements(const TomlValue& list) const {
  if (list.kind != TomlKind::list) reader().fail(list, "this is a list of requirements");
  std::vector<std::string> texts;
  for (const TomlValue& one : list.items) {
    // `{ requirement = "torch", match-runtime = true }`, which is what builds here do anyway.
    const bool table = one.kind == TomlKind::table && one.find("requirement") != nullptr;
    texts.push_back(requirement(table ? *one.find("requirement") : one));
  }
  return texts;
}

std::string UvSettings::name(const TomlValue& at, const std::string& text) const {
  std::string normalised = normalise_wheel_name(text);
  if (!is_wheel_name(normalised)) {
    reader().fail(at, fmt::format("`{}` is not a package's name", text));
  }
  return normalised;
}

std::set<std::string> UvSettings::names(const std::string& key) const {
  std::set<std::string> found;
  const TomlValue* list = reader().optional_member(uv_, key, TomlKind::list);
  if (list == nullptr) return found;
  for (const TomlValue& one : list->items) {
    if (one.kind != TomlKind::text) reader().fail(one, "a package's name is a text");
    found.insert(name(one, one.text));
  }
  return found;
}

void UvSettings::note(const char* key, std::string text, RequirementLists& lists) const {
  const TomlValue* at = uv_.find(key);
  const bool says_nothing = at == nullptr || (at->kind == TomlKind::list && at->items.empty());
  if (!says_nothing) lists.notes.push_back(toml_.listed(*at, std::move(text)));
}

void UvSettings::read(RequirementLists& lists) const {
  Steering found;
  constraints(lists);
  if (const TomlValue* all = uv_.find("override-dependencies"))
    found.overrides = requirements(*all);
  found.exclude = names("exclude-dependencies");
  found.no_binary = names("no-binary-package");
  found.only_binary = names("no-build-package");
  if (reader().optional_flag(uv_, "no-binary", false)) found.no_binary.emplace(kAllPackages);
  if (reader().optional_flag(uv_, "no-build", false)) found.only_binary.emplace(kAllPackages);
  found.prerelease = reader().optional_text(uv_, "prerelease");
  if (!found.prerelease.empty() && !is_among(prerelease_words(), found.prerelease)) {
    reader().fail(*uv_.find("prerelease"),
                  fmt::format("`{}` is none of uv's words{}", found.prerelease,
                              suggestion(found.prerelease, prerelease_words())));
  }
  exclude_newer(found, lists);
  metadata(found);
  build(found.build);
  own_indexes(found);
  indexes(lists);
  add_steering(lists.steering, found);
  note("conflicts", "`conflicts` do not count: take extras and groups that go together", lists);
  note("no-build-isolation-package",
       "builds are always isolated here: what they need is named under `build: {requires: …}` of "
       "the recipe",
       lists);
}

/// As of a lock: the same on every day.
void UvSettings::exclude_newer(Steering& steering, RequirementLists& lists) const {
  const TomlValue* date = uv_.find("exclude-newer");
  if (date == nullptr) return;
  if (is_upload_date(date->text)) {
    steering.exclude_newer = date->text;
  } else {
    note("exclude-newer",
         "`exclude-newer` counts where it is a day, as in `\"2024-06-30\"`, or a moment in UTC: "
         "write such a one into the recipe",
         lists);
  }
}

void UvSettings::constraints(RequirementLists& lists) const {
  const TomlValue* all = reader().optional_member(uv_, "constraint-dependencies", TomlKind::list);
  if (all == nullptr) return;
  for (const TomlValue& one : all->items) {
    lists.constraints.push_back(toml_.listed(one, toml_.requirement(one).str()));
  }
}

void UvSettings::metadata(Steering& steering) const {
  const TomlValue* all = reader().optional_member(uv_, "dependency-metadata", TomlKind::list);
  if (all == nullptr) return;
  for (const TomlValue& item : all->items) {
    if (item.kind != TomlKind::table) reader().fail(item, "what is said of a package is a table");
    StatedMetadata one;
    one.name = name(item, reader().text(item, "name"));
    if (item.find("version") != nullptr) one.version = toml_.exact_version(item);
    if (const TomlValue* list = item.find("requires-dist")) one.requires_dist = requirements(*list);
    one.requires_python = reader().optional_text(item, "requires-python");
    for (const char* key : {"provides-extra", "provides-extras"}) {
      for (const std::string& extra : reader().texts(item, key)) {
        one.extras.push_back(normalise_wheel_name(extra));
      }
    }
    steering.metadata.push_back(std::move(one));
  }
}

void UvSettings::build(BuildSteering& build) const {
  if (const TomlValue* all = uv_.find("build-constraint-dependencies")) {
    build.constraints = requirements(*all);
  }
  const auto tables = [&](const char* key, const auto& take) {
    const TomlValue* all = reader().optional_member(uv_, key, TomlKind::table);
    if (all == nullptr) return;
    for (const auto& [package, value] : all->members) take(name(value, package), value);
  };
  tables("extra-build-dependencies", [&](const std::string& package, const TomlValue& value) {
    build.requirements[package] = requirements(value);
  });
  tables("extra-build-variables", [&](const std::string& package, const TomlValue& value) {
    if (value.kind != TomlKind::table) reader().fail(value, "variables are a table");
    for (const auto& [key, text] : value.members) {
      if (!is_env_name(key) || text.kind != TomlKind::text || has_control(text.text, "\t\n")) {
        reader().fail(text, fmt::format("`{}` is no variable with a text", key));
      }
      build.env.by_name[package][key] = text.text;
    }
  });
  config_settings(build);
}

void UvSettings::config_settings(BuildSteering& build) const {
  const auto take = [&](const TomlValue& table, auto& into) {
    if (table.kind != TomlKind::table) reader().fail(table, "settings are a table");
    for (const auto& [key, value] : table.members) {
      if (value.kind == TomlKind::list) {
        into[key] = reader().texts(table, key);
      } else {
        into[key] = {reader().text(table, key)};
      }
      if (into[key].empty()) into.erase(key);
    }
  };
  if (const TomlValue* all = uv_.find("config-settings")) take(*all, build.config_settings.all);
  const TomlValue* packages =
      reader().optional_member(uv_, "config-settings-package", TomlKind::table);
  if (packages == nullptr) return;
  for (const auto& [package, value] : packages->members) {
    take(value, build.config_settings.by_name[name(value, package)]);
  }
}

/// Of an index: a URL, or a folder as a path from the recipe's.
std::string UvSettings::address(const TomlValue& at) const {
  const std::string& text = at.text;
  if (at.kind != TomlKind::text || text.empty() || has_control(text)) {
    reader().fail(at, "an index is a URL or a path");
  }
  constexpr std::size_t kLongest = 4096;
  if (text.size() > kLongest) reader().fail(at, "an address this long is not plausible");
  if (text.find("${") != std::string::npos) {
    reader().fail(at,
                  "what a variable of this machine says is no part of a lock, and would be sent "
                  "to whoever is named here");
  }
  if (!find_logins(text).empty()) {
    reader().fail(at, "a file that people share must not hold a login; keep it in `~/.netrc`");
  }
  if (text.find("://") != std::string::npos) return text;
  if (text.starts_with('/') || text.starts_with('~')) {
    reader().fail(at, "other machines have other folders: write a path from this file's folder");
  }
  return clean_address_path(folder_of(source_.file.text), text);
}

void UvSettings::add_index(const TomlValue& at, const std::string& option,
                           RequirementLists& lists) const {
  std::string where = address(at);
  if (where.find("://") == std::string::npos) {
    where = "file://" +
            url_path_encode(fs::absolute(folder_.path() / where).lexically_normal().string());
  }
  const std::string line = option + ' ' + where;
  const bool second =
      std::any_of(lists.indexes.begin(), lists.indexes.end(), [&](const std::string& one) {
        return one != line && option == kDefaultIndex && one.starts_with(option + ' ');
      });
  if (second) {
    reader().fail(at, "there is one default index, and another file names one: leave one out");
  }
  lists.add_index(line);
}

void UvSettings::indexes(RequirementLists& lists) const {
  const TomlValue* all = reader().optional_member(uv_, "index", TomlKind::list);
  for (const TomlValue& one : all == nullptr ? std::vector<TomlValue>{} : all->items) {
    if (one.kind != TomlKind::table) reader().fail(one, "an index is a table");
    if (reader().optional_flag(one, "explicit", false)) continue;
    const TomlValue& url = reader().member(one, "url", TomlKind::text);
    const bool page = reader().optional_text(one, "format") == "flat";
    const bool first = reader().optional_flag(one, "default", false);
    add_index(url, std::string(page ? kPage : first ? kDefaultIndex : kFurtherIndex), lists);
  }
  const auto further = [&](const char* key, std::string_view option) {
    const TomlValue* list = reader().optional_member(uv_, key, TomlKind::list);
    if (list == nullptr) return;
    for (const TomlValue& one : list->items) add_index(one, std::string(option), lists);
  };
  further("extra-index-url", kFurtherIndex);
  further("find-links", kPage);
  if (const TomlValue* url = uv_.find("index-url")) {
    add_index(*url, std::string(kDefaultIndex), lists);
  }
  if (reader().optional_flag(uv_, "no-index", false)) lists.add_index("--no-index");
}

const TomlValue* UvSettings::index(const std::string& name) const {
  const TomlValue* all = reader().optional_member(uv_, "index", TomlKind::list);
  if (all == nullptr) return nullptr;
  const auto found = std::find_if(all->items.begin(), all->items.end(), [&](const TomlValue& one) {
    return one.kind == TomlKind::table && reader().optional_text(one, "name") == name;
  });
  return found == all->items.end() ? nullptr : &*found;
}

void UvSettings::own_indexes(Steering& steering) const {
  const TomlValue* sources = reader().optional_member(uv_, "sources", TomlKind::table);
  if (sources == nullptr) return;
  for (const auto& [package, value] : sources->members) {
    const TomlValue* entry = source_of(package);
    if (entry == nullptr || entry->find("index") == nullptr) continue;
    const std::string& wanted = reader().text(*entry, "index");
    const TomlValue* found = index(wanted);
    if (found == nullptr) {
      reader().fail(*entry,
                    fmt::format("there is no `[[tool.uv.index]]` of the name `{}`", wanted));
    }
    steering.indexes.push_back({address(reader().member(*found, "url", TomlKind::text)),
                                reader().optional_text(*found, "format") == "flat",
                                {name(value, package)}});
  }
}

bool UvSettings::is_chosen(const TomlValue& entry) const {
  const auto among = [&](const char* key, const std::vector<Placed>& taken) {
    const std::string wanted = normalise_wheel_name(reader().optional_text(entry, key));
    return wanted.empty() || std::any_of(taken.begin(), taken.end(), [&](const Placed& one) {
             return normalise_wheel_name(one.text) == wanted;
           });
  };
  return among("extra", source_.extras) && among("group", source_.groups);
}

/// Whether an entry counts for what the recipe takes, on its machines.
bool UvSettings::counts(const TomlValue& entry, const std::string& package) const {
  if (entry.kind != TomlKind::table) reader().fail(entry, "a source is a table");
  if (!is_chosen(entry)) return false;
  const std::string marker = reader().optional_text(entry, "marker");
  if (!marker.empty() && marker_mistake(marker)) {
    reader().fail(*entry.find("marker"), marker_mistake(marker)->message);
  }
  const MarkerReach reach = marker_reach(marker, folder_.recipe());
  if (reach == MarkerReach::some) {
    reader().fail(entry, fmt::format("whether `{}` comes from here depends on the image's "
                                     "Python or machine: write `python` in the recipe, or one "
                                     "source for all",
                                     package));
  }
  return reach == MarkerReach::all;
}

const TomlValue* UvSettings::source_of(const std::string& package) const {
  const TomlValue* sources = reader().optional_member(uv_, "sources", TomlKind::table);
  if (sources == nullptr) return nullptr;
  for (const auto& [key, value] : sources->members) {
    if (normalise_wheel_name(key) != normalise_wheel_name(package)) continue;
    const std::span<const TomlValue> entries = value.kind == TomlKind::list
                                                   ? std::span<const TomlValue>(value.items)
                                                   : std::span<const TomlValue>(&value, 1);
    const TomlValue* found = nullptr;
    for (const TomlValue& entry : entries) {
      if (!counts(entry, package)) continue;
      if (found != nullptr) {
        reader().fail(entry, fmt::format("`{}` has two sources with what the recipe takes", key));
      }
      found = &entry;
    }
    return found;
  }
  return nullptr;
}

std::string UvSettings::member_folder(const std::string& name) const {
  const TomlValue* workspace = reader().optional_member(uv_, "workspace", TomlKind::table);
  if (workspace == nullptr) return {};
  const std::string folder(folder_of(source_.file.text));
  const fs::path root = folder_.path() / folder;
  std::vector<std::string> folders;
  for (const std::string& pattern : reader().texts(*workspace, "members")) {
    const auto clean = clean_project_path(pattern);
    if (const auto* good = std::get_if<std::string>(&clean)) expand(root, {}, *good, folders);
  }
  for (const std::string& one : folders) {
    std::error_code unknown;
    if (!fs::is_directory(root / one, unknown)) continue;
    const auto said = project_name(root / one);
    if (said && normalise_wheel_name(*said) == name) return clean_address_path(folder, one);
  }
  return {};
}

}  // namespace mlenv
