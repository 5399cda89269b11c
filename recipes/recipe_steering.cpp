// How packages are chosen: `overrides`, `exclude`, `index` and their kin; recipe_build.cpp has
// `build`.
#include <algorithm>
#include <array>

#include "recipes/package_address.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/requirement.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/text.hpp"
#include "recipes/version_syntax.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 6> kMetadataKeys = {
    "name", "version", "requires-dist", "requires-python", "provides-extras", "provides-extra"};

constexpr std::string_view kMetadataExample =
    "[{name: flash-attn, version: \"2.6.3\", requires-dist: [torch, einops]}]";

bool is_set_of_versions(const std::string& text) {
  const auto read = parse_requirement("python" + text);
  const auto* one = std::get_if<Requirement>(&read);
  return one != nullptr && one->name == "python" && !one->specifier.empty() &&
         one->extras.empty() && one->marker.empty();
}

}  // namespace

std::vector<std::string_view> metadata_keys() {
  return {kMetadataKeys.begin(), kMetadataKeys.end()};
}

std::vector<std::string> RecipeReader::requirement_texts(const YamlNode& node,
                                                         std::string_view what) {
  std::vector<std::string> texts;
  values_.texts(node, what, "[numpy<2]");
  for (const YamlNode& one : node.items) {
    if (one.kind != YamlKind::scalar || !check_requirement(one, one.text)) continue;
    const auto read = std::get<Requirement>(parse_requirement(one.text));
    if (!read.address.empty()) {
      values_.mistake(one,
                      fmt::format("{} come from indexes: a package by address is written under "
                                  "`packages`, and counts for whatever asks for it",
                                  what));
      continue;
    }
    texts.push_back(read.str());
  }
  return texts;
}

void RecipeReader::overrides(const YamlNode& node) {
  recipe_.steering.overrides = requirement_texts(node, "`overrides`");
}

std::optional<std::string> RecipeReader::package_name(const YamlNode& node,
                                                      const std::string& text) {
  std::string name = normalise_wheel_name(text);
  if (is_wheel_name(name)) return name;
  values_.mistake(node, fmt::format("`{}` is not a package's name, which stands alone here", text));
  return std::nullopt;
}

std::set<std::string> RecipeReader::package_names(const YamlNode& node, std::string_view key,
                                                  bool may_be_all) {
  std::set<std::string> names;
  const bool alone = node.kind == YamlKind::scalar;
  const std::vector<YamlNode> items = alone ? std::vector<YamlNode>{node} : node.items;
  if (!alone) values_.texts(node, '`' + std::string(key) + '`', "[flash-attn]");
  for (const YamlNode& item : items) {
    if (item.kind != YamlKind::scalar) continue;
    if (may_be_all && item.text == kAllPackages) {
      names.insert(item.text);
    } else if (auto name = package_name(item, item.text)) {
      names.insert(*std::move(name));
    }
  }
  return names;
}

void RecipeReader::exclude(const YamlNode& node) {
  recipe_.steering.exclude = package_names(node, "exclude", false);
}

void RecipeReader::no_binary(const YamlNode& node) {
  recipe_.steering.no_binary = package_names(node, "no-binary", true);
}

void RecipeReader::only_binary(const YamlNode& node) {
  recipe_.steering.only_binary = package_names(node, "only-binary", true);
}

void RecipeReader::prefer_binary(const YamlNode& node) {
  recipe_.steering.prefer_binary = package_names(node, "prefer-binary", true);
}

std::vector<Placed> RecipeReader::constraint_list(const YamlNode& node, std::string_view what) {
  std::vector<Placed> found;
  const bool alone = node.kind == YamlKind::scalar;
  if (!alone) values_.texts(node, what, "[\"numpy<2\", constraints.txt]");
  for (const YamlNode& item : alone ? std::vector<YamlNode>{node} : node.items) {
    if (item.kind != YamlKind::scalar) continue;
    if (is_constraints_file(item.text)) {
      const std::size_t skipped = item.text.starts_with("-c ") ? 3 : 0;
      const std::string text{trim(std::string_view(item.text).substr(skipped))};
      if (const auto path = project_path(item, text, "constraints.txt")) {
        found.push_back({"-c " + *path, item.line, item.column});
      }
      continue;
    }
    if (!check_requirement(item, item.text)) continue;
    const auto read = std::get<Requirement>(parse_requirement(item.text));
    if (!read.extras.empty()) {
      values_.mistake(item, "a constraint is on a package, not on its extras");
    } else {
      found.push_back({read.str(), item.line, item.column});
    }
  }
  return found;
}

void RecipeReader::constraints(const YamlNode& node) {
  recipe_.constraints = constraint_list(node, "`constraints`");
}

void RecipeReader::prerelease(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`prerelease`", "allow");
  if (!text) return;
  recipe_.steering.prerelease = text->text;
  if (is_among(prerelease_words(), text->text)) return;
  const auto all = prerelease_words();
  values_.mistake(node, fmt::format("`prerelease` is one of {}, as for uv{}",
                                    join(std::vector<std::string>(all.begin(), all.end()), ", "),
                                    suggestion(text->text, all)));
}

void RecipeReader::exclude_newer(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`exclude-newer`", "2024-06-30");
  if (!text) return;
  recipe_.steering.exclude_newer = text->text;
  if (is_upload_date(text->text)) return;
  values_.mistake(node,
                  fmt::format("`{}` is neither a day, as in `2024-06-30`, nor a moment, as in "
                              "`2024-06-30T12:00:00Z`",
                              text->text));
}

void RecipeReader::package_indexes(const YamlNode& node) {
  std::set<std::string> seen;
  for (const auto& [key, value] : values_.members(node, "`index`", {})) {
    const auto name = package_name(*value, key);
    if (!name) continue;
    if (!seen.insert(*name).second) {
      values_.mistake(*value, fmt::format("`{}` is given twice", *name));
      continue;
    }
    package_index(*name, *value);
  }
}

void RecipeReader::package_index(const std::string& name, const YamlNode& node) {
  PackageIndex index;
  index.packages.insert(name);
  constexpr std::array<std::string_view, 1> kKeys = {"find-links"};
  if (node.kind == YamlKind::map) {
    const auto members = values_.members(node, fmt::format("`{}`", name), kKeys);
    if (members.empty() && node.members.empty()) {
      values_.mistake(node, "`find-links` is missing: a page or folder of files");
    }
    for (const auto& [key, value] : members) find_links(*value, index);
  } else if (auto url = source_url(node, "an index")) {
    index.url = *std::move(url);
  }
  if (!index.url.empty()) recipe_.steering.indexes.push_back(std::move(index));
}

void RecipeReader::find_links(const YamlNode& node, PackageIndex& index) {
  index.is_page = true;
  const auto text = values_.text(node, "`find-links`", "https://host.example/releases/ or wheels");
  if (!text) return;
  if (text->text.find("://") != std::string::npos) {
    index.url = source_url(node, "`find-links`").value_or("");
    return;
  }
  const bool plain = !text->text.empty() && !text->text.starts_with('/') &&
                     !text->text.starts_with('~') && !has_control(text->text);
  if (!plain) {
    values_.mistake(node,
                    "`find-links` is a URL, or a folder's path from the recipe's, as in `wheels`");
    return;
  }
  index.url = clean_address_path({}, text->text);
  recipe_.index_folders.push_back({index.url, text->line, text->column});
}

void RecipeReader::dependency_metadata(const YamlNode& node) {
  if (node.kind != YamlKind::list) {
    values_.mistake(node,
                    fmt::format("`dependency-metadata` is a list, as in `{}`", kMetadataExample));
    return;
  }
  for (const YamlNode& item : node.items) stated_metadata(item);
}

void RecipeReader::stated_member(const std::string& key, const YamlNode& value,
                                 StatedMetadata& stated) {
  if (key == "requires-dist") {
    stated.requires_dist = requirement_texts(value, "`requires-dist`");
    return;
  }
  if (key.starts_with("provides-extra")) {
    for (const Placed& one : values_.texts(value, '`' + key + '`', "[train]")) {
      stated.extras.push_back(normalise_wheel_name(one.text));
      if (is_wheel_name(stated.extras.back())) continue;
      mistakes_.add(one.line, one.column,
                    fmt::format("`{}` is not the name of an extra", one.text));
    }
    return;
  }
  const auto text = values_.text(value, '`' + key + '`', "…");
  if (!text) return;
  if (key == "name") stated.name = package_name(value, text->text).value_or("");
  if (key == "version") {
    stated.version = text->text;
    if (!is_version(text->text)) {
      values_.mistake(value, fmt::format("`{}` is not one version", text->text));
    }
  }
  if (key == "requires-python") {
    stated.requires_python = text->text;
    if (!is_set_of_versions(text->text)) {
      values_.mistake(value, fmt::format("`{}` is no set of versions, as in `>=3.10`", text->text));
    }
  }
}

void RecipeReader::stated_metadata(const YamlNode& node) {
  StatedMetadata stated;
  const auto members = values_.members(node, "an item of `dependency-metadata`", kMetadataKeys);
  for (const auto& [key, value] : members) stated_member(std::string(key), *value, stated);
  if (node.kind == YamlKind::null) {
    values_.mistake(node, fmt::format("each item is a map, as in `{}`", kMetadataExample));
  }
  if (node.kind != YamlKind::map) return;
  const bool named = std::any_of(members.begin(), members.end(),
                                 [](const auto& member) { return member.first == "name"; });
  if (!named) values_.mistake(node, "`name` is missing: of the package");
  if (!stated.name.empty()) recipe_.steering.metadata.push_back(std::move(stated));
}

void RecipeReader::check_steering() {
  const auto refuse = [&](const Placed& place) {
    const std::string name = package_of_requirement(place.text);
    if (!recipe_.steering.exclude.contains(name)) return;
    mistakes_.add(place.line, place.column,
                  fmt::format("`{}` is asked for here, and `exclude` leaves it out", name));
  };
  if (recipe_.framework) refuse(*recipe_.framework);
  for (const Placed& package : recipe_.packages) refuse(package);
  put_in_order(recipe_.steering);
}

}  // namespace mlenv
