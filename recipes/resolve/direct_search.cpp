#include "recipes/resolve/direct_search.hpp"

#include <algorithm>

#include "recipes/resolve/wheel_conflict.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

Conflict unreachable(const DirectRequirement& asking, const std::string& text, std::string why) {
  Conflict conflict;
  conflict.headline = fmt::format("`{}` asks for `{}`, which cannot be locked", asking.name, text);
  conflict.facts.push_back(asking.shown(fmt::format("`{}` is asked for", asking.name)));
  conflict.facts.push_back(std::move(why));
  conflict.hint =
      "name that package by an address of its own in `packages`, as in `NAME @ ./folder`";
  return conflict;
}

/// A package by address, and what it asks for.
struct Side {
  DirectRequirement asking;
  std::string text;
};

Conflict two_addresses(const std::string& name, const Side& one, const Side& other) {
  Conflict conflict;
  conflict.headline = fmt::format("`{}` is asked for at two addresses", name);
  for (const Side& side : {other, one}) {
    const std::string says = fmt::format("`{}` asks for `{}`", side.asking.name, side.text);
    conflict.facts.push_back(side.asking.shown(says));
  }
  conflict.hint =
      fmt::format("name the right one in `packages`, as `{} @ ADDRESS`: it counts for both", name);
  return conflict;
}

}  // namespace

std::optional<Requirement> read_dependency(const std::string& text) {
  auto read = parse_requirement(text);
  if (auto* good = std::get_if<Requirement>(&read)) return std::move(*good);
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return std::nullopt;
  auto named = parse_requirement(std::string_view(text).substr(0, at));
  auto* good = std::get_if<Requirement>(&named);
  if (good == nullptr) return std::nullopt;
  const std::size_t marker = std::min(text.find(" ;", at), text.size());
  good->address = trim(std::string_view(text).substr(at + 1, marker - at - 1));
  if (marker < text.size()) good->marker = trim(std::string_view(text).substr(marker + 2));
  if (!good->marker.empty() && marker_mistake(good->marker)) return std::nullopt;
  return std::move(*good);
}

DirectSearch::DirectSearch(const Recipe& recipe, MarkerEnvironment environment, Build build)
    : recipe_(recipe), environment_(std::move(environment)), build_(std::move(build)) {
  DirectRequirements all = direct_requirements(recipe, environment_);
  needed_ = std::move(all.required);
  constraints_ = std::move(all.constraints);
  for (const std::string& text : framework_requirements(recipe_).requirements) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one == nullptr || !marker_holds(one->marker, environment_)) continue;
    ask(one->normalised_name(), one->extras);
    take(one->normalised_name());
  }
}

bool DirectSearch::is_needed(const std::string& name) const {
  return std::any_of(needed_.begin(), needed_.end(),
                     [&](const DirectRequirement& one) { return one.name == name; });
}

/// Whether there is a constraint on it, which is needed now.
bool DirectSearch::take(const std::string& name) {
  const auto found = std::find_if(constraints_.begin(), constraints_.end(),
                                  [&](const DirectRequirement& one) { return one.name == name; });
  if (found == constraints_.end()) return false;
  needed_.push_back(std::move(*found));
  constraints_.erase(found);
  return true;
}

/// Whether one of the extras is new.
bool DirectSearch::ask(const std::string& name, const std::vector<std::string>& extras) {
  std::set<std::string>& known = extras_[name];
  const std::size_t before = known.size();
  known.insert(extras.begin(), extras.end());
  return known.size() > before;
}

std::optional<Conflict> DirectSearch::follow(const BuiltRelease& release, bool& more) {
  for (const std::string& text : release.metadata.requires_dist) {
    const auto one = read_dependency(text);
    if (!one || !marker_holds(one->marker, environment_, extras_[release.wheel.name])) continue;
    const std::string name = one->normalised_name();
    more = ask(name, one->extras) || more;
    more = take(name) || more;
    if (one->address.empty()) continue;
    if (auto conflict = follow_address(release, text, *one, more)) return conflict;
  }
  return std::nullopt;
}

std::optional<Conflict> DirectSearch::follow_address(const BuiltRelease& release,
                                                     const std::string& text,
                                                     const Requirement& wanted, bool& more) {
  const auto find_needed = [&](const std::string& name) {
    return std::find_if(needed_.begin(), needed_.end(),
                        [&](const DirectRequirement& one) { return one.name == name; });
  };
  const std::string name = wanted.normalised_name();
  const auto known = find_needed(name);
  const auto first = asking_.find(name);
  if (known != needed_.end() && first == asking_.end()) return std::nullopt;  // the recipe's counts
  const DirectRequirement place = *find_needed(release.wheel.name);
  const auto read = parse_package_address(wanted.address);
  const auto* address = std::get_if<PackageAddress>(&read);
  if (known != needed_.end()) {
    if (address != nullptr && *address == known->address) return std::nullopt;
    return two_addresses(name, {place, text},
                         {*find_needed(first->second.name), first->second.text});
  }
  if (address == nullptr) return unreachable(place, text, std::get<AddressMistake>(read).message);
  if (address->kind == PackageAddress::Kind::path) {
    return unreachable(place, text, "that path is its author's, and no other machine has it");
  }
  if (address->place.starts_with("file:")) {
    return unreachable(place, text,
                       "that repository is on its author's machine, and no other one has it");
  }
  needed_.push_back({name, *address, place.recipe, place.place, place.listed});
  asking_.insert_or_assign(name, Asking{release.wheel.name, text});
  more = true;
  return std::nullopt;
}

std::optional<Conflict> DirectSearch::build_needed() {
  for (bool more = true; more;) {
    while (built_.size() < needed_.size()) {
      const DirectRequirement wanted = needed_[built_.size()];
      auto answer = build_(wanted);
      if (auto* conflict = std::get_if<Conflict>(&answer)) {
        conflict->facts.insert(conflict->facts.begin(),
                               wanted.shown(fmt::format("`{}` is asked for", wanted.name)));
        return std::move(*conflict);
      }
      built_.push_back(std::get<BuiltRelease>(std::move(answer)));
    }
    more = false;
    for (const BuiltRelease& one : built_) {
      if (auto conflict = follow(one, more)) return conflict;
    }
  }
  return std::nullopt;
}

bool DirectSearch::needs_more(const WheelResolution& found) {
  bool more = false;
  for (const LockedWheel& wheel : found.wheels) more = take(wheel.name) || more;
  for (const auto& [name, extras] : found.extras) {
    if (is_needed(name)) more = ask(name, {extras.begin(), extras.end()}) || more;
  }
  return more;
}

bool DirectSearch::needs_more(const Conflict& conflict) {
  if (take(conflict.absent)) return true;
  std::vector<std::string> names;
  for (const DirectRequirement& one : constraints_) {
    if (conflict.told.empty() || speaks_of(conflict, one.name)) names.push_back(one.name);
  }
  bool more = false;
  for (const std::string& name : names) more = take(name) || more;
  return more;
}

}  // namespace mlenv
