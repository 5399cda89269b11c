#pragma once
// Which packages apt would take. Dependencies leave choices (`a | b`, virtual packages) and a
// solver may settle them in any way that fits together; apt settles them by a walk: what was asked
// for first, then for each dependency in the record's order nothing when a package already taken
// satisfies it, else the first alternative that can be had, among providers the package of that
// very name, then Essential, Protected and higher Priority. The walk alone decides nothing: libsolv
// checks its outcome and, where it does not fit together, solves with it as preference.
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "recipes/resolve/solv.hpp"

namespace mlenv {

class AptChoice {
 public:
  explicit AptChoice(const solv::Pool& pool) : pool_(pool) {}

  /// Makes this version the only one of its package to be considered.
  void pin(solv::PackageId version);
  /// As `apt-get install package/suite`: makes `version` the only one, and where no candidate
  /// satisfies a dependency of it that names a version, the suite's version of what it names, too.
  void take_from(solv::PackageId version, const std::function<bool(solv::PackageId)>& of_suite);
  /// The newest version of those with the highest priority, or the pinned one; none when there is
  /// no such package. Never one that is older than what is there.
  solv::PackageId candidate(solv::NameId name) const;
  /// What is there already: it satisfies dependencies, and gives way only to a newer version that
  /// one needs. Before anything else is asked.
  void keep(const std::vector<solv::PackageId>& installed);
  /// The version that is there; none.
  solv::PackageId kept(solv::NameId name) const;
  /// Versions taken for `asked`, ascending; those of a dependency that cannot be had are missing,
  /// and so are those that are there already.
  std::vector<solv::PackageId> take(const std::vector<solv::PackageId>& asked);
  /// Where `taken` replaces packages that are there: newer versions of others that are there and of
  /// the same version of the same source, which apt brings along (Upgrade-By-Source-Package).
  std::vector<solv::PackageId> siblings(const std::vector<solv::PackageId>& taken) const;

 private:
  bool mark(solv::PackageId id, bool held);
  bool settle(solv::DependencyId dependency, bool held);
  bool is_satisfied(solv::DependencyId alternative) const;
  bool is_possible(solv::PackageId id) const;
  void drop_since(std::size_t count);
  void exclude_conflicting(solv::PackageId id);
  std::vector<solv::PackageId> conflicting(solv::PackageId id) const;
  std::vector<solv::PackageId> solutions(solv::DependencyId dependency) const;
  bool is_better(solv::PackageId a, solv::PackageId b, solv::NameId target) const;
  bool conflicts_with_taken(solv::PackageId id) const;
  void take_place(solv::PackageId id);

  const solv::Pool& pool_;
  std::map<solv::NameId, solv::PackageId> pinned_;
  std::map<solv::NameId, solv::PackageId> kept_;
  mutable std::map<solv::NameId, solv::PackageId> candidates_;
  std::set<solv::PackageId> asked_;
  std::vector<solv::PackageId> taken_;  ///< in the order of taking
  std::set<solv::PackageId> taken_set_;
  std::set<solv::PackageId> settled_;          ///< whose dependencies have been looked at
  std::set<solv::PackageId> excluded_;         ///< what packages that must stay conflict with
  std::multiset<solv::PackageId> conflicted_;  ///< what the taken ones conflict with
};

}  // namespace mlenv
