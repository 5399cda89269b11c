#include "recipes/resolve/apt_choice.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/paths.hpp"

namespace mlenv {

using solv::DependencyId;
using solv::NameId;
using solv::PackageId;

void AptChoice::pin(PackageId version) { pinned_[pool_.name(version)] = version; }

void AptChoice::keep(const std::vector<PackageId>& installed) {
  for (const PackageId id : installed) kept_[pool_.name(id)] = id;
}

PackageId AptChoice::kept(NameId name) const {
  const auto found = kept_.find(name);
  return found == kept_.end() ? PackageId::none : found->second;
}

PackageId AptChoice::candidate(NameId name) const {
  if (const auto pinned = pinned_.find(name); pinned != pinned_.end()) return pinned->second;
  if (const auto known = candidates_.find(name); known != candidates_.end()) return known->second;
  const std::vector<PackageId> versions = pool_.named(name);
  const auto best = std::max_element(  // the first of equals, and the newest comes first
      versions.begin(), versions.end(), [&](PackageId a, PackageId b) {
        return pool_.origin(a).priority < pool_.origin(b).priority;
      });
  PackageId found = best == versions.end() ? PackageId::none : *best;
  const PackageId there = kept(name);
  if (there != PackageId::none && found != there &&
      solv::compare_versions(pool_.version(there), pool_.version(found)) >= 0) {
    found = there;
  }
  candidates_.emplace(name, found);
  return found;
}

// NOLINTNEXTLINE(misc-no-recursion): each step pins a package that was not
void AptChoice::take_from(PackageId version, const std::function<bool(PackageId)>& of_suite) {
  pin(version);
  for (const DependencyId dependency : pool_.depends(version)) {
    const auto alternatives = pool_.alternatives(dependency);
    const auto has_candidate = [&](DependencyId one) {
      const auto providers = pool_.providers(one);
      return std::any_of(providers.begin(), providers.end(),
                         [&](PackageId id) { return candidate(pool_.name(id)) == id; });
    };
    if (std::any_of(alternatives.begin(), alternatives.end(), has_candidate)) continue;
    for (const DependencyId one : alternatives) {
      const auto providers = pool_.providers(one);
      const auto of_that_name = pool_.named(pool_.target(one));  // newest first
      const auto fits = [&](PackageId id) {
        return of_suite(id) && std::find(providers.begin(), providers.end(), id) != providers.end();
      };
      const auto found = std::find_if(of_that_name.begin(), of_that_name.end(), fits);
      if (found == of_that_name.end()) continue;
      take_from(*found, of_suite);
      break;
    }
  }
}

bool AptChoice::is_satisfied(DependencyId alternative) const {
  const auto providers = pool_.providers(alternative);
  return std::any_of(providers.begin(), providers.end(),
                     [&](PackageId id) { return taken_set_.contains(id); });
}

std::vector<PackageId> AptChoice::conflicting(PackageId id) const {
  std::vector<PackageId> found;
  for (const DependencyId conflict : pool_.conflicts(id)) {
    for (const PackageId other : pool_.providers(conflict)) {
      // No version of a package stands beside another one.
      if (pool_.name(other) != pool_.name(id)) found.push_back(other);
    }
  }
  return found;
}

bool AptChoice::conflicts_with_taken(PackageId id) const {
  if (conflicted_.contains(id)) return true;
  const auto others = conflicting(id);
  return std::any_of(others.begin(), others.end(),
                     [&](PackageId other) { return taken_set_.contains(other); });
}

bool AptChoice::is_possible(PackageId id) const {
  return candidate(pool_.name(id)) == id && !excluded_.contains(id) && !conflicts_with_taken(id);
}

bool AptChoice::is_better(PackageId a, PackageId b, NameId target) const {
  const auto rank = [&](PackageId id) {
    return std::tuple{!asked_.contains(id), pool_.name(id) != target, !pool_.essential(id),
                      !pool_.guarded(id), pool_.priority(id)};
  };
  const auto rank_a = rank(a);
  const auto rank_b = rank(b);
  if (rank_a != rank_b) return rank_a < rank_b;
  // apt prefers what entered its cache later; indexes are sorted by name.
  return pool_.text(pool_.name(a)) > pool_.text(pool_.name(b));
}

std::vector<PackageId> AptChoice::solutions(DependencyId dependency) const {
  std::vector<PackageId> all;
  for (const DependencyId alternative : pool_.alternatives(dependency)) {
    std::vector<PackageId> some = pool_.providers(alternative);
    some.erase(std::remove_if(some.begin(), some.end(),
                              [&](PackageId id) {
                                return candidate(pool_.name(id)) != id || excluded_.contains(id);
                              }),
               some.end());
    const NameId target = pool_.target(alternative);
    std::sort(some.begin(), some.end(),
              [&](PackageId a, PackageId b) { return is_better(a, b, target); });
    for (const PackageId id : some) {
      if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
    }
  }
  return all;
}

void AptChoice::exclude_conflicting(PackageId id) {
  for (const PackageId other : conflicting(id)) {
    if (!asked_.contains(other)) excluded_.insert(other);
  }
}

/// Takes what one dependency still needs. `held`: whoever depends must stay, so that an only
/// solution must stay too.
// NOLINTNEXTLINE(misc-no-recursion): as deep as the longest chain of dependencies
bool AptChoice::settle(DependencyId dependency, bool held) {
  const auto alternatives = pool_.alternatives(dependency);
  if (std::any_of(alternatives.begin(), alternatives.end(),
                  [&](DependencyId one) { return is_satisfied(one); })) {
    return true;
  }
  const auto possible = solutions(dependency);
  return std::any_of(possible.begin(), possible.end(), [&](PackageId id) {
    return is_possible(id) && mark(id, held && possible.size() == 1);
  });
}

/// Takes a package and what it depends on, or, unless it is `held`, nothing at all.
// NOLINTNEXTLINE(misc-no-recursion): as deep as the longest chain of dependencies
bool AptChoice::mark(PackageId id, bool held) {
  const std::size_t before = taken_.size();
  take_place(id);
  if (taken_set_.insert(id).second) taken_.push_back(id);
  if (!settled_.insert(id).second) return true;
  if (held) exclude_conflicting(id);
  for (const PackageId other : conflicting(id)) conflicted_.insert(other);
  bool complete = true;
  for (const DependencyId dependency : pool_.depends(id)) {
    if (settle(dependency, held)) continue;
    complete = false;
    if (!held) break;
  }
  if (!complete && !held) drop_since(before);
  return complete;
}

/// What is there of the same package has to go.
void AptChoice::take_place(PackageId id) {
  const PackageId there = kept(pool_.name(id));
  if (there == PackageId::none || there == id || taken_set_.erase(there) == 0) return;
  for (const PackageId other : conflicting(there)) {
    if (const auto one = conflicted_.find(other); one != conflicted_.end()) conflicted_.erase(one);
  }
}

/// Undoes every `mark` since there were `count` packages; those that were asked for came before.
void AptChoice::drop_since(std::size_t count) {
  for (std::size_t i = count; i < taken_.size(); ++i) {
    taken_set_.erase(taken_[i]);
    settled_.erase(taken_[i]);
    for (const PackageId other : conflicting(taken_[i])) {
      if (const auto one = conflicted_.find(other); one != conflicted_.end())
        conflicted_.erase(one);
    }
    if (const PackageId there = kept(pool_.name(taken_[i])); there != PackageId::none) {
      taken_set_.insert(there);
      for (const PackageId other : conflicting(there)) conflicted_.insert(other);
    }
  }
  taken_.resize(count);
}

std::vector<PackageId> AptChoice::take(const std::vector<PackageId>& asked) {
  asked_ = {asked.begin(), asked.end()};
  taken_ = {asked_.begin(), asked_.end()};
  taken_set_ = asked_;
  settled_.clear();
  excluded_.clear();
  conflicted_.clear();
  for (const auto& [name, there] : kept_) {
    taken_set_.insert(there);
    settled_.insert(there);
    for (const PackageId other : conflicting(there)) conflicted_.insert(other);
  }
  for (const PackageId id : asked_) take_place(id);
  for (const PackageId id : asked_) exclude_conflicting(id);
  std::vector<PackageId> order{asked_.begin(), asked_.end()};
  std::sort(order.begin(), order.end(), [&](PackageId a, PackageId b) {
    return pool_.text(pool_.name(a)) < pool_.text(pool_.name(b));
  });
  // One that cannot be completed stays: the solver finds out why.
  for (const PackageId id : order) (void)mark(id, true);
  for (const auto& [name, there] : kept_) taken_set_.erase(there);
  return {taken_set_.begin(), taken_set_.end()};
}

namespace {

/// Which source a version was built from, as its place in the archive tells
/// (`pool/main/o/openssl`), and which version of that: rebuilt packages (`+b1`) have the source's.
std::pair<std::string, std::string> source_of(const solv::Pool& pool, PackageId id) {
  const solv::Package package = pool.package(id);
  const std::size_t rebuilt = package.version.rfind("+b");
  const bool is_rebuilt =
      rebuilt != std::string::npos && rebuilt + 2 < package.version.size() &&
      package.version.find_first_not_of("0123456789", rebuilt + 2) == std::string::npos;
  return {std::string(folder_of(package.path)),
          is_rebuilt ? package.version.substr(0, rebuilt) : package.version};
}

}  // namespace

std::vector<PackageId> AptChoice::siblings(const std::vector<PackageId>& taken) const {
  std::set<std::pair<std::string, std::string>> sources;
  for (const PackageId id : taken) {
    if (kept(pool_.name(id)) != PackageId::none) sources.insert(source_of(pool_, id));
  }
  std::vector<PackageId> found;
  if (sources.empty()) return found;
  for (const auto& [name, there] : kept_) {
    const PackageId newer = candidate(name);
    if (newer == there || std::find(taken.begin(), taken.end(), newer) != taken.end()) continue;
    if (sources.contains(source_of(pool_, newer))) found.push_back(newer);
  }
  return found;
}

}  // namespace mlenv
