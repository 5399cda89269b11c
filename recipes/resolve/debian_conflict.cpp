#include "recipes/resolve/debian_conflict.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

using solv::DependencyId;
using solv::Obstacle;
using solv::PackageId;

constexpr std::size_t kMostConflictFacts = 8;
constexpr std::size_t kMostNames = 3;
constexpr std::size_t kMostEdits = 2;

/// The very version that is installed, also where an index has it too.
bool is_of_base(const solv::Pool& pool, PackageId id) {
  const auto same = pool.named(pool.name(id));
  return std::any_of(same.begin(), same.end(), [&](PackageId one) {
    return pool.is_installed(one) && pool.version(one) == pool.version(id);
  });
}

std::string title(const solv::Pool& pool, PackageId id) {
  return fmt::format("`{} {}`{}", pool.text(pool.name(id)), pool.version(id),
                     is_of_base(pool, id) ? " of the base" : "");
}

/// ` (there is 2.36)` for a dependency whose package exists in other versions.
std::string what_there_is(const solv::Pool& pool, DependencyId dependency) {
  const auto versions = pool.named(pool.target(dependency));
  if (versions.empty()) return {};
  return fmt::format(" (the newest is {})", pool.version(versions.front()));
}

std::string fact(const solv::Pool& pool, const Obstacle& obstacle) {
  using Kind = Obstacle::Kind;
  const auto dependency = [&] { return "`" + pool.text(obstacle.dependency) + "`"; };
  switch (obstacle.kind) {
    case Kind::missing:
      if (obstacle.source == PackageId::none) {
        return fmt::format("there is no {}{}", dependency(),
                           what_there_is(pool, obstacle.dependency));
      }
      return fmt::format("{} needs {}, which is not to be had{}", title(pool, obstacle.source),
                         dependency(), what_there_is(pool, obstacle.dependency));
    case Kind::needs:
      return fmt::format("{} needs {}", title(pool, obstacle.source), dependency());
    case Kind::conflicts:
      return fmt::format("{} conflicts with {}", title(pool, obstacle.source),
                         title(pool, obstacle.target));
    case Kind::one_version:
      return fmt::format("only one of {} and {} can be installed", title(pool, obstacle.source),
                         title(pool, obstacle.target));
    case Kind::not_installable:
      return fmt::format("{} is for another architecture", title(pool, obstacle.source));
    case Kind::asked:
      break;
  }
  return {};
}

/// Whether a chain that has come to the packages in `reached` may go on with `obstacle`.
bool follows(const Obstacle& obstacle, const std::set<PackageId>& reached) {
  return obstacle.source == PackageId::none || reached.contains(obstacle.source) ||
         (obstacle.kind != Obstacle::Kind::needs && reached.contains(obstacle.target));
}

}  // namespace

std::vector<std::string> obstacle_facts(const solv::Pool& pool,
                                        const std::vector<Obstacle>& obstacles,
                                        const std::vector<PackageId>& asked) {
  std::vector<Obstacle> rest = obstacles;
  std::set<PackageId> reached{asked.begin(), asked.end()};
  std::vector<std::string> facts;
  const auto tell = [&](std::vector<Obstacle>::iterator next) {
    std::string text = fact(pool, *next);
    if (next->kind == Obstacle::Kind::needs) {
      const auto providers = pool.providers(next->dependency);
      reached.insert(providers.begin(), providers.end());
    }
    rest.erase(next);
    const bool told = std::find(facts.begin(), facts.end(), text) != facts.end();
    if (!text.empty() && !told) facts.push_back(std::move(text));
  };
  while (!rest.empty() && facts.size() < kMostConflictFacts) {
    const auto next = std::find_if(rest.begin(), rest.end(),
                                   [&](const Obstacle& one) { return follows(one, reached); });
    tell(next == rest.end() ? rest.begin() : next);
  }
  return facts;
}

std::vector<std::string> near_package_names(const solv::Pool& pool, std::string_view name) {
  std::set<std::pair<std::size_t, std::string_view>> found;
  for (const PackageId id : pool.packages()) {
    const std::string_view other = pool.text(pool.name(id));
    const std::size_t distance = edit_distance(name, other, kMostEdits);
    if (distance <= kMostEdits && distance < name.size()) found.emplace(distance, other);
  }
  std::vector<std::string> names;
  for (const auto& [distance, other] : found) {
    if (names.size() == kMostNames) break;
    names.emplace_back(other);
  }
  return names;
}

}  // namespace mlenv
