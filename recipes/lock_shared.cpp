// Packages that several platforms' locks have in common.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "recipes/lock_parts.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kEvery = "all";

bool is_shareable(const Lock& /*lock*/, const LockedDeb& deb) { return deb.architecture == kEvery; }

/// A wheel that was built belongs to the lock that says from what.
bool is_shareable(const Lock& lock, const LockedWheel& wheel) {
  const auto name = parse_wheel_name(wheel.file);
  return name && is_for_every_machine(*name) && lock.source_of(wheel) == nullptr;
}

template <typename Package>
const Package* named(const Lock& lock, const std::vector<Package>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Package& one) {
    return one.name == name && is_shareable(lock, one);
  });
  return found == all.end() ? nullptr : &*found;
}

/// Whether a lock with these packages has no room for `one`.
bool is_taken(const std::vector<LockedDeb>& own, const LockedDeb& one) {
  return std::any_of(own.begin(), own.end(), [&](const LockedDeb& deb) {
    return deb.name == one.name && deb.architecture == one.architecture;
  });
}

bool is_taken(const std::vector<LockedWheel>& own, const LockedWheel& one) {
  return std::any_of(own.begin(), own.end(),
                     [&](const LockedWheel& wheel) { return wheel.name == one.name; });
}

/// Takes out of `own` what is `there` in the same words; the names that are only there.
template <typename Package>
std::vector<std::string> take_shared(const Lock& first, const std::vector<Package>& there,
                                     const Lock& other, std::vector<Package>& own) {
  std::vector<std::string> without;
  std::vector<Package> kept;
  for (const Package& one : there) {
    if (is_shareable(first, one) && !is_taken(own, one)) without.push_back(one.name);
  }
  for (const Package& one : own) {
    const Package* same = is_shareable(other, one) ? named(first, there, one.name) : nullptr;
    if (same == nullptr || *same != one) kept.push_back(one);
  }
  own = std::move(kept);
  return without;
}

template <typename Package>
void put_shared(const Lock& first, const std::vector<Package>& there,
                const std::set<std::string>& without, std::vector<Package>& own) {
  std::vector<Package> shared;
  for (const Package& one : there) {
    const bool left_out = without.contains(one.name) || is_taken(own, one);
    if (is_shareable(first, one) && !left_out) shared.push_back(one);
  }
  own.insert(own.end(), shared.begin(), shared.end());
}

/// Names in the list `key`, of packages that would be there but for it.
template <typename Package>
std::set<std::string> read_without(const TomlReader& reader, const TomlValue& table,
                                   const std::string& key, const Lock& first,
                                   const std::vector<Package>& there) {
  const std::vector<std::string> names = reader.texts(table, key);
  for (const std::string& name : names) {
    if (named(first, there, name) != nullptr) continue;
    reader.fail(*table.find(key),
                fmt::format("{} is no package for every platform", toml_text(name)));
  }
  return {names.begin(), names.end()};
}

std::string quoted_rows(std::string_view key, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string out = fmt::format("{} = [\n", key);
  for (const std::string& name : names) out += fmt::format("  {},\n", toml_text(name));
  return out + "]\n";
}

}  // namespace

OtherPackages without_shared(const Lock& first, const Lock& other) {
  OtherPackages packages{other, {}, {}};
  packages.without_debs = take_shared(first, first.debs, other, packages.own.debs);
  packages.without_wheels = take_shared(first, first.wheels, other, packages.own.wheels);
  return packages;
}

void add_shared(const TomlReader& reader, const TomlValue& table, const Lock& first, Lock& lock) {
  std::set<std::string> debs;
  std::set<std::string> wheels;
  if (const TomlValue* all = reader.optional_member(table, "without", TomlValue::Kind::table)) {
    constexpr std::array<std::string_view, 2> kKeys = {"debian", "wheels"};
    reader.only(*all, kKeys);
    debs = read_without(reader, *all, "debian", first, first.debs);
    wheels = read_without(reader, *all, "wheels", first, first.wheels);
  }
  put_shared(first, first.debs, debs, lock.debs);
  put_shared(first, first.wheels, wheels, lock.wheels);
  std::sort(lock.debs.begin(), lock.debs.end(), [](const LockedDeb& a, const LockedDeb& b) {
    return std::tie(a.name, a.architecture) < std::tie(b.name, b.architecture);
  });
  std::sort(lock.wheels.begin(), lock.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.name < b.name; });
}

std::string render_without(const OtherPackages& other, const std::string& folder) {
  if (other.without_debs.empty() && other.without_wheels.empty()) return {};
  return fmt::format("\n[{}without]\n{}{}", folder, quoted_rows("debian", other.without_debs),
                     quoted_rows("wheels", other.without_wheels));
}

}  // namespace mlenv
