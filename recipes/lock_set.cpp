#include "recipes/lock_set.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "recipes/lock_parts.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

int revision_of(const LockSet& set) {
  int revision = set.locks.size() > 1 ? Lock::kWholeRecipe : 0;
  for (const Lock& lock : set.locks) revision = std::max(revision, lock.revision);
  return revision;
}

std::string body(const LockSet& set) {
  const Lock& first = set.locks.front();
  std::string out = render_common(first) + render_part(first, "");
  for (std::size_t i = 1; i < set.locks.size(); ++i) {
    const OtherPackages other = without_shared(first, set.locks[i]);
    const std::string folder = fmt::format("others.{}.", toml_key(other.own.platform));
    out += render_part(other.own, folder) + render_without(other, folder);
  }
  return out;
}

/// Lines that are in all of them come first and once.
std::vector<std::string> merged_lines(
    const std::vector<std::pair<std::string, std::vector<std::string>>>& by_platform) {
  std::vector<std::string> lines;
  std::set<std::string> everywhere;
  for (const std::string& line : by_platform.front().second) {
    const bool same = std::all_of(by_platform.begin(), by_platform.end(), [&](const auto& one) {
      return std::find(one.second.begin(), one.second.end(), line) != one.second.end();
    });
    if (same && everywhere.insert(line).second) lines.push_back(line);
  }
  for (const auto& [platform, own] : by_platform) {
    for (const std::string& line : own) {
      if (!everywhere.contains(line)) lines.push_back(fmt::format("{}: {}", platform, line));
    }
  }
  return lines;
}

}  // namespace

const Lock* LockSet::find(std::string_view platform) const {
  const auto found = std::find_if(locks.begin(), locks.end(),
                                  [&](const Lock& lock) { return lock.platform == platform; });
  return found == locks.end() ? nullptr : &*found;
}

std::string LockSet::platforms() const {
  std::vector<std::string> names;
  for (const Lock& lock : locks) names.push_back(lock.platform);
  return join(names, ", ");
}

std::string render_locks(const LockSet& set) {
  const int revision = revision_of(set);
  std::string out = render_head(revision);
  if (revision >= Lock::kChecksumRevision) {
    out += fmt::format("checksum = \"{}\"\n", locks_digest(set).hex());
  }
  return out + body(set);
}

Digest locks_digest(const LockSet& set) {
  return Digest::of(render_head(revision_of(set)) + body(set));
}

std::vector<std::string> lock_set_differences(const LockSet& from, const LockSet& to) {
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, std::vector<std::string>>> both;
  for (const Lock& lock : to.locks) {
    const Lock* before = from.find(lock.platform);
    if (before == nullptr) {
      lines.push_back("+ platform " + lock.platform);
    } else {
      both.emplace_back(lock.platform, lock_differences(*before, lock));
    }
  }
  for (const Lock& lock : from.locks) {
    if (to.find(lock.platform) == nullptr) lines.push_back("- platform " + lock.platform);
  }
  if (both.empty()) return lines;
  const std::vector<std::string> changes = merged_lines(both);
  lines.insert(lines.end(), changes.begin(), changes.end());
  return lines;
}

PackageCounts count_packages(const LockSet& set) {
  std::set<std::string> wheels;
  std::set<std::string> debs;
  for (const Lock& lock : set.locks) {
    for (const LockedWheel& wheel : lock.wheels) wheels.insert(wheel.file);
    for (const LockedDeb& deb : lock.debs) debs.insert(deb.path);
  }
  return {wheels.size(), debs.size()};
}

}  // namespace mlenv
