#include "recipes/resolve/direct.hpp"

#include <algorithm>
#include <optional>

#include "base/file_digest.hpp"

#include "recipes/mistakes.hpp"
#include "recipes/requirement.hpp"
#include "recipes/source_tree.hpp"

namespace mlenv {
namespace {

std::optional<DirectRequirement> direct_of(const Recipe& recipe, const std::string& text,
                                           const Placed* place, const ListedText* listed,
                                           const MarkerEnvironment& environment) {
  const auto read = parse_requirement(text);
  const auto* one = std::get_if<Requirement>(&read);
  if (one == nullptr || one->address.empty()) return std::nullopt;
  if (!marker_holds(one->marker, environment)) return std::nullopt;
  const auto address = parse_package_address(one->address);
  return DirectRequirement{one->normalised_name(), std::get<PackageAddress>(address), &recipe,
                           place, listed};
}

}  // namespace

std::string DirectRequirement::shown(std::string_view message) const {
  if (listed != nullptr) return listed->shown(message);
  if (place == nullptr) return std::string(message);
  return shown_mistake(recipe->path, recipe->source, place->line, place->column, message);
}

Error DirectRequirement::mistake(std::string_view message) const {
  if (listed != nullptr) return usage_error("requirements-invalid", "{}", shown(message));
  if (place == nullptr) return failure("input-gone", "{}", message);
  return recipe_error(*recipe, *place, message);
}

DirectRequirements direct_requirements(const Recipe& recipe, const MarkerEnvironment& environment) {
  DirectRequirements all;
  const auto add = [&](std::optional<DirectRequirement> one, std::vector<DirectRequirement>& to) {
    if (!one) return;
    for (const auto* list : {&all.required, &all.constraints}) {
      for (const DirectRequirement& known : *list) {
        if (known.name != one->name) continue;
        if (known.address == one->address) return;
        throw one->mistake(fmt::format("`{}` is asked for from `{}` too; a package has one address",
                                       one->name, known.address.str()));
      }
    }
    to.push_back(*std::move(one));
  };
  for (const Placed& one : recipe.packages) {
    add(direct_of(recipe, one.text, &one, nullptr, environment), all.required);
  }
  for (const ListedText& one : recipe.listed.requirements) {
    add(direct_of(recipe, one.text, nullptr, &one, environment), all.required);
  }
  for (const ListedText& one : recipe.listed.constraints) {
    add(direct_of(recipe, one.text, nullptr, &one, environment), all.constraints);
  }
  for (auto* list : {&all.required, &all.constraints}) {
    std::sort(
        list->begin(), list->end(),
        [](const DirectRequirement& a, const DirectRequirement& b) { return a.name < b.name; });
  }
  return all;
}

bool is_from(const LockedSource& source, const PackageAddress& address) {
  if (source.subdirectory != address.subdirectory) return false;
  if (!address.sha256.empty() && source.digest.hex() != address.sha256) return false;
  switch (address.kind) {
    case AddressKind::git:
      return source.git == address.place && source.reference == address.reference;
    case AddressKind::path:
      return source.path == address.place;
    case AddressKind::url:
      return source.url == address.place;
  }
  return false;
}

fs::path find_direct_path(const DirectRequirement& wanted) {
  fs::path path = wanted.recipe->folder() / wanted.address.place;
  std::error_code unknown;
  const bool file = wanted.address.is_wheel() || wanted.address.is_archive();
  if (file ? fs::is_regular_file(path, unknown) : fs::is_directory(path, unknown)) return path;
  if (!fs::exists(path, unknown)) {
    throw wanted.mistake(fmt::format("`{}` does not exist", wanted.address.place));
  }
  throw wanted.mistake(fmt::format(
      "`{}` is {}", wanted.address.place,
      file ? "no file" : "neither a folder nor a wheel (.whl) or source archive (.tar.gz, .zip)"));
}

bool is_file_of(const fs::path& path, const Digest& digest) {
  return digest_of_file(path) == digest;
}

std::vector<std::string> source_changes(const Recipe& recipe, const Lock& lock) {
  std::vector<std::string> changes;
  for (const LockedSource& source : lock.sources) {
    if (source.path.empty()) continue;
    const fs::path path = recipe.folder() / source.path;
    std::error_code unknown;
    const bool tree = source.file.empty();
    if (tree ? !fs::is_directory(path, unknown) : !fs::is_regular_file(path, unknown)) {
      changes.push_back(
          fmt::format("`{}`, of which `{}` was built, is not there", source.path, source.name));
      continue;
    }
    const Digest now =
        tree ? read_project_tree(recipe, source.path).digest() : digest_of_file(path);
    if (now == source.digest) continue;
    changes.push_back(fmt::format("`{}` differs: `{}` was built of {}, it is {} now", source.path,
                                  source.name, source.digest.brief(), now.brief()));
  }
  return changes;
}

}  // namespace mlenv
