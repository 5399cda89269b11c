#include "recipes/resolve/lock_gaps.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/distribution.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {
namespace {

void wheel_gap(const std::string& text, const Lock& lock, std::vector<std::string>& gaps) {
  const auto read = parse_requirement(text);
  const auto* requirement = std::get_if<Requirement>(&read);
  if (requirement == nullptr || !requirement->marker.empty()) return;
  const LockedWheel* wheel = find_wheel(lock.wheels, requirement->normalised_name());
  if (wheel == nullptr) {
    gaps.push_back(fmt::format("the lock holds no wheel for `{}`", text));
  } else if (!version_satisfies(wheel->version, requirement->specifier)) {
    gaps.push_back(
        fmt::format("the lock holds {} {}, which is not `{}`", wheel->name, wheel->version, text));
  }
}

void deb_gap(const std::string& text, const Lock& lock, std::vector<std::string>& gaps) {
  const DebianWish wish = parse_debian_wish(text);
  const auto deb = std::find_if(lock.debs.begin(), lock.debs.end(),
                                [&](const LockedDeb& one) { return one.name == wish.name; });
  if (deb == lock.debs.end()) {
    gaps.push_back(fmt::format("the lock holds no Debian package for `{}`", text));
  } else if (!wish.version.empty() && deb->version != wish.version) {
    gaps.push_back(
        fmt::format("the lock holds {} {}, which is not `{}`", deb->name, deb->version, text));
  }
}

}  // namespace

std::vector<std::string> lock_gaps(const Recipe& recipe, const Lock& lock) {
  std::vector<std::string> gaps;
  if (lock.revision >= Lock::kChecksumRevision && lock.revision <= Lock::kRevision) return gaps;
  for (const std::string& text : framework_requirements(recipe).requirements) {
    wheel_gap(text, lock, gaps);
  }
  for (const Placed& package : recipe.system) deb_gap(package.text, lock, gaps);
  if (recipe.wants_python() && lock.python.empty()) {
    gaps.emplace_back("the lock holds no Python interpreter");
  }
  return gaps;
}

}  // namespace mlenv
