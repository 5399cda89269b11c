#include "builder/foreign_release.hpp"

#include <algorithm>

#include "builder/build_tools.hpp"
#include "builder/kept_source.hpp"
#include "recipes/platforms.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/source_tree.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

bool runs_anywhere(const LockedWheel& wheel) {
  const auto name = parse_wheel_name(wheel.file);
  return name && is_for_every_machine(*name);
}

Conflict tied(const BuiltRelease& built, const Lock& here, const Lock& base) {
  Conflict conflict;
  conflict.headline =
      fmt::format("`{}` has to be built on a {} machine", built.source.shown(), base.platform);
  conflict.facts.push_back(
      fmt::format("built here, on {}, it gives `{}`, which is for this machine alone",
                  here.platform, built.wheel.file));
  conflict.hint = fmt::format(
      "lock it on a {} machine, or put a wheel of it for that into `vendor` or a package index",
      base.platform);
  return conflict;
}

/// Of an index, as `lock` has it; nullptr: another one.
const LockedSource* source_in(const Lock& lock, const SourceRelease& release) {
  for (const LockedSource& source : lock.sources) {
    if (!source.is_direct() && source.name == release.name && source.digest == release.digest) {
      return &source;
    }
  }
  return nullptr;
}

bool is_unchanged(const DirectRequirement& wanted, const LockedSource& source) {
  if (wanted.address.kind != PackageAddress::Kind::path) return true;
  if (!source.file.empty()) return is_file_of(find_direct_path(wanted), source.digest);
  find_direct_path(wanted);
  return read_project_tree(*wanted.recipe, source.path).digest() == source.digest;
}

}  // namespace

std::variant<BuiltRelease, Conflict> ForeignBuilder::build(const SourceRelease& release,
                                                           const Lock& base) {
  if (before_ != nullptr && builds_alike(*before_, base)) {
    if (const LockedSource* kept = source_in(*before_, release)) {
      if (auto found = builder_.find_built(*kept, *before_)) return *std::move(found);
    }
  }
  auto here = here_();
  if (auto* conflict = std::get_if<Conflict>(&here)) return std::move(*conflict);
  const Lock& own = *std::get<const Lock*>(here);
  if (const LockedSource* made = source_in(own, release)) {
    if (auto found = builder_.find_built(*made, own)) {
      return carried_over(*std::move(found), own, base);
    }
  }
  auto built = builder_.build(release, own);
  if (auto* conflict = std::get_if<Conflict>(&built)) return std::move(*conflict);
  return carried_over(std::get<BuiltRelease>(std::move(built)), own, base);
}

std::variant<BuiltRelease, Conflict> ForeignBuilder::build_direct(const DirectRequirement& wanted,
                                                                  const Lock& base,
                                                                  const Lock* before) {
  // A wheel is taken as it is, and on an image nothing is built.
  if (wanted.address.is_wheel() || base.base) return builder_.build_direct(wanted, base, before);
  const LockedSource* kept = kept_source(wanted, before);
  if (kept != nullptr && builds_alike(*before, base) && is_unchanged(wanted, *kept)) {
    builder_.require_promised(wanted, *kept);
    if (auto found = builder_.find_built(*kept, *before)) return *std::move(found);
  }
  auto here = here_();
  if (auto* conflict = std::get_if<Conflict>(&here)) return std::move(*conflict);
  const Lock& own = *std::get<const Lock*>(here);
  // The commit is that of the platform's own older lock where this machine's tells none.
  const Lock* told = kept_source(wanted, &own) != nullptr ? &own : before;
  auto built = builder_.build_direct(wanted, own, told);
  if (auto* conflict = std::get_if<Conflict>(&built)) return std::move(*conflict);
  return carried_over(std::get<BuiltRelease>(std::move(built)), own, base);
}

std::variant<BuiltRelease, Conflict> ForeignBuilder::carried_over(BuiltRelease built,
                                                                  const Lock& here,
                                                                  const Lock& base) const {
  const WheelTags tags(base.python_minor(), glibc_version(base), architecture_of(base.platform));
  if (!runs_anywhere(built.wheel) || !tags.rank(built.wheel.file)) return tied(built, here, base);
  auto tools = tools_for(built.build_wheels, built.source.shown(), base);
  if (auto* conflict = std::get_if<Conflict>(&tools)) return std::move(*conflict);
  built.build_wheels = std::get<std::vector<LockedWheel>>(std::move(tools));
  built.source.built_with.clear();
  for (const LockedWheel& tool : built.build_wheels) built.source.built_with.push_back(tool.file);
  std::sort(built.source.built_with.begin(), built.source.built_with.end());
  return built;
}

/// The same versions for the other platform, where such machines build it again.
std::variant<std::vector<LockedWheel>, Conflict> ForeignBuilder::tools_for(
    const std::vector<LockedWheel>& tools, const std::string& shown, const Lock& base) const {
  if (std::all_of(tools.begin(), tools.end(), runs_anywhere)) return tools;
  const BuildPlace& place = builder_.place();
  Recipe recipe = recipe_of_tools(place.recipe);
  for (const LockedWheel& tool : tools) {
    recipe.packages.push_back({fmt::format("{}=={}", tool.name, tool.version), 1, 1});
  }
  WheelRequest request;
  request.python = base.python;
  request.glibc = glibc_version(base);
  request.architecture = architecture_of(base.platform);
  request.recipe = &recipe;
  const fs::path uv = provide_uv(place.cache, place.progress);
  auto found = resolve_wheels(request, uv, place.http, place.cache, place.progress);
  if (auto* conflict = std::get_if<Conflict>(&found)) {
    conflict->facts.insert(conflict->facts.begin(), conflict->headline);
    conflict->headline =
        fmt::format("what built `{}` here cannot be had for {}", shown, base.platform);
    return std::move(*conflict);
  }
  std::vector<LockedWheel> wheels = std::get<WheelResolution>(std::move(found)).wheels;
  for (LockedWheel& one : wheels) one.requested = false;
  return wheels;
}

}  // namespace mlenv
