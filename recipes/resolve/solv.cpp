#include "recipes/resolve/solv.hpp"

#include <algorithm>

#include <fmt/core.h>

#include <solv/evr.h>
#include <solv/pool.h>
#include <solv/poolarch.h>
#include <solv/repo.h>
#include <solv/solver.h>

#include "recipes/resolve/solv_state.hpp"

namespace mlenv::solv {
namespace {

using SolverHandle = Owned<solver_free>::of<Solver>;

constexpr const char* kPriorityKey = "mlenv:priority";
constexpr const char* kEssentialKey = "mlenv:essential";
constexpr const char* kGuardedKey = "mlenv:guarded";
/// Depends in the record's order, which libsolv's own list loses when it is written to a .solv
/// file.
constexpr const char* kDependsKey = "mlenv:depends";

/// As control files write it (Debian Policy 7.1); empty for relations that are no comparison.
std::string_view comparison(int flags) {
  switch (flags) {
    case REL_GT:
      return ">>";
    case REL_GT | REL_EQ:
      return ">=";
    case REL_EQ:
      return "=";
    case REL_LT | REL_EQ:
      return "<=";
    case REL_LT:
      return "<<";
    default:
      return "";
  }
}

}  // namespace

/// The part of a `requires` list before or after the marker that ends plain Depends.
std::vector<DependencyId> Pool::State::dependencies(Offset list, Repo* repo,
                                                    bool before_marker) const {
  std::vector<DependencyId> found;
  if (list == 0) return found;
  bool before = true;
  for (const Id* id = repo->idarraydata + list; *id != 0; ++id) {
    if (*id == SOLVABLE_PREREQMARKER) {
      before = false;
    } else if (before == before_marker) {
      found.push_back(static_cast<DependencyId>(*id));
    }
  }
  return found;
}

std::vector<PackageId> Pool::State::provided(Id dependency) const {
  std::vector<PackageId> found;
  for (const Id* id = pool_whatprovides_ptr(pool.get(), dependency); *id != 0; ++id) {
    if (*id > SYSTEMSOLVABLE) found.push_back(static_cast<PackageId>(*id));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as one dependency's alternatives
void Pool::State::split(Id dependency, std::vector<DependencyId>& out) const {
  if (ISRELDEP(dependency)) {
    const Reldep* relation = GETRELDEP(pool.get(), dependency);
    if (relation->flags == REL_OR) {
      split(relation->name, out);
      split(relation->evr, out);
      return;
    }
  }
  out.push_back(static_cast<DependencyId>(dependency));
}

Pool::Pool(const std::string& architecture) : state_(std::make_unique<State>()) {
  ::Pool* pool = state_->pool.get();
  pool_setdisttype(pool, DISTTYPE_DEB);
  pool_setarch(pool, architecture.c_str());
  state_->priority_key = pool_str2id(pool, kPriorityKey, 1);
  state_->essential_key = pool_str2id(pool, kEssentialKey, 1);
  state_->guarded_key = pool_str2id(pool, kGuardedKey, 1);
  state_->depends_key = pool_str2id(pool, kDependsKey, 1);
}

Pool::~Pool() = default;

void Pool::seal() {
  pool_addfileprovides(state_->pool.get());
  pool_createwhatprovides(state_->pool.get());
}

std::vector<PackageId> Pool::packages() const {
  const ::Pool* pool = state_->pool.get();
  std::vector<PackageId> all;
  all.reserve(static_cast<std::size_t>(pool->nsolvables));
  for (Id id = SYSTEMSOLVABLE + 1; id < pool->nsolvables; ++id) {
    if (pool->solvables[id].repo != nullptr) all.push_back(static_cast<PackageId>(id));
  }
  return all;
}

std::vector<PackageId> Pool::named(NameId name) const {
  ::Pool* pool = state_->pool.get();
  std::vector<PackageId> found = state_->provided(raw(name));
  const auto other = [&](PackageId id) { return state_->solvable(id)->name != raw(name); };
  found.erase(std::remove_if(found.begin(), found.end(), other), found.end());
  std::stable_sort(found.begin(), found.end(), [&](PackageId a, PackageId b) {
    return pool_evrcmp(pool, state_->solvable(a)->evr, state_->solvable(b)->evr, EVRCMP_COMPARE) >
           0;
  });
  return found;
}

NameId Pool::find_name(std::string_view name) const {
  const auto length = static_cast<unsigned int>(name.size());
  return static_cast<NameId>(pool_strn2id(state_->pool.get(), name.data(), length, 0));
}

std::string_view Pool::text(NameId name) const {
  return view(pool_id2str(state_->pool.get(), raw(name)));
}

std::string Pool::text(DependencyId dependency) const {
  const ::Pool* pool = state_->pool.get();
  std::string joined;
  for (const DependencyId alternative : alternatives(dependency)) {
    if (!joined.empty()) joined.append(" | ");
    joined.append(text(target(alternative)));
    if (!ISRELDEP(raw(alternative))) continue;
    const Reldep* relation = GETRELDEP(pool, raw(alternative));
    if (const std::string_view sign = comparison(relation->flags); !sign.empty()) {
      joined.append(fmt::format(" ({} {})", sign, pool_id2str(pool, relation->evr)));
    }
  }
  return joined;
}

Package Pool::package(PackageId id) const {
  const ::Pool* pool = state_->pool.get();
  Solvable* solvable = state_->solvable(id);
  Package package;
  package.name = pool_id2str(pool, solvable->name);
  package.version = pool_id2str(pool, solvable->evr);
  package.architecture = pool_id2str(pool, solvable->arch);
  package.path = view(solvable_get_location(solvable, nullptr));
  package.size_bytes = solvable_lookup_num(solvable, SOLVABLE_DOWNLOADSIZE, 0);
  Id type = 0;
  const char* sum = solvable_lookup_checksum(solvable, SOLVABLE_CHECKSUM, &type);
  if (type == REPOKEY_TYPE_SHA256) package.sha256 = view(sum);
  return package;
}

NameId Pool::name(PackageId id) const { return static_cast<NameId>(state_->solvable(id)->name); }

std::string_view Pool::version(PackageId id) const {
  return view(pool_id2str(state_->pool.get(), state_->solvable(id)->evr));
}

Priority Pool::priority(PackageId id) const {
  constexpr auto kOptional = static_cast<unsigned long long>(Priority::optional);
  const auto stored = solvable_lookup_num(state_->solvable(id), state_->priority_key, kOptional);
  return static_cast<Priority>(stored);
}

bool Pool::essential(PackageId id) const {
  return solvable_lookup_num(state_->solvable(id), state_->essential_key, 0) != 0;
}

bool Pool::guarded(PackageId id) const {
  return solvable_lookup_num(state_->solvable(id), state_->guarded_key, 0) != 0;
}

Origin Pool::origin(PackageId id) const { return state_->origins.at(state_->solvable(id)->repo); }

std::vector<DependencyId> Pool::depends(PackageId id) const {
  IdQueue queue;
  solvable_lookup_idarray(state_->solvable(id), state_->depends_key, queue.get());
  std::vector<DependencyId> found;
  for (const Id dependency : queue) found.push_back(static_cast<DependencyId>(dependency));
  return found;
}

std::vector<DependencyId> Pool::conflicts(PackageId id) const {
  const Solvable* solvable = state_->solvable(id);
  return state_->dependencies(solvable->conflicts, solvable->repo, true);
}

std::vector<DependencyId> Pool::alternatives(DependencyId dependency) const {
  std::vector<DependencyId> found;
  state_->split(raw(dependency), found);
  return found;
}

NameId Pool::target(DependencyId dependency) const {
  Id id = raw(dependency);
  while (ISRELDEP(id)) id = GETRELDEP(state_->pool.get(), id)->name;
  return static_cast<NameId>(id);
}

std::vector<PackageId> Pool::providers(DependencyId dependency) const {
  return state_->provided(raw(dependency));
}

DependencyId Pool::dependency(NameId name) const { return static_cast<DependencyId>(name); }

DependencyId Pool::dependency_equal(NameId name, std::string_view version) const {
  ::Pool* pool = state_->pool.get();
  const Id evr = pool_strn2id(pool, version.data(), static_cast<unsigned int>(version.size()), 1);
  return static_cast<DependencyId>(pool_rel2id(pool, raw(name), evr, REL_EQ, 1));
}

namespace {

void fill_job(const Job& job, IdQueue& queue) {
  for (const DependencyId id : job.install) {
    queue.push(SOLVER_INSTALL | SOLVER_SOLVABLE_NAME, raw(id));
  }
  for (const PackageId id : job.exactly) queue.push(SOLVER_INSTALL | SOLVER_SOLVABLE, raw(id));
  for (const PackageId id : job.never) queue.push(SOLVER_LOCK | SOLVER_SOLVABLE, raw(id));
  for (const PackageId id : job.favoured) queue.push(SOLVER_FAVOR | SOLVER_SOLVABLE, raw(id));
}

/// Rules that say nothing to a person (jobs, learnt ones) become Kind::asked.
Obstacle rule_obstacle(Solver* solver, Id rule) {
  Id source = 0;
  Id target = 0;
  Id dependency = 0;
  const SolverRuleinfo type = solver_ruleinfo(solver, rule, &source, &target, &dependency);
  Obstacle obstacle;
  obstacle.source = static_cast<PackageId>(source);
  obstacle.target = static_cast<PackageId>(target);
  obstacle.dependency = static_cast<DependencyId>(dependency);
  using Kind = Obstacle::Kind;
  switch (type) {
    case SOLVER_RULE_PKG_NOTHING_PROVIDES_DEP:
    case SOLVER_RULE_JOB_NOTHING_PROVIDES_DEP:
    case SOLVER_RULE_JOB_UNKNOWN_PACKAGE:
      obstacle.kind = Kind::missing;
      break;
    case SOLVER_RULE_PKG_REQUIRES:
      obstacle.kind = Kind::needs;
      break;
    case SOLVER_RULE_PKG_CONFLICTS:
    case SOLVER_RULE_PKG_SELF_CONFLICT:
      obstacle.kind = Kind::conflicts;
      break;
    case SOLVER_RULE_PKG_SAME_NAME:
      obstacle.kind = Kind::one_version;
      break;
    case SOLVER_RULE_PKG_NOT_INSTALLABLE:
      obstacle.kind = Kind::not_installable;
      break;
    default:
      obstacle.kind = Kind::asked;
  }
  return obstacle;
}

bool same(const Obstacle& a, const Obstacle& b) {
  return a.kind == b.kind && a.source == b.source && a.target == b.target &&
         a.dependency == b.dependency;
}

std::vector<Obstacle> obstacles_of(Solver* solver) {
  std::vector<Obstacle> found;
  IdQueue rules;
  solver_findallproblemrules(solver, 1, rules.get());
  for (const Id rule : rules) {
    const Obstacle obstacle = rule_obstacle(solver, rule);
    const auto known = [&](const Obstacle& other) { return same(obstacle, other); };
    if (std::none_of(found.begin(), found.end(), known)) found.push_back(obstacle);
  }
  return found;
}

}  // namespace

Outcome Pool::solve(const Job& job) const {
  ::Pool* pool = state_->pool.get();
  const SolverHandle solver{solver_create(pool)};
  solver_set_flag(solver.get(), SOLVER_FLAG_IGNORE_RECOMMENDED, 1);
  // Of what is installed: the newer version may be built for all, or by somebody else.
  solver_set_flag(solver.get(), SOLVER_FLAG_ALLOW_ARCHCHANGE, 1);
  solver_set_flag(solver.get(), SOLVER_FLAG_ALLOW_VENDORCHANGE, 1);
  IdQueue queue;
  fill_job(job, queue);
  Outcome outcome;
  outcome.solved = solver_solve(solver.get(), queue.get()) == 0;
  if (!outcome.solved) {
    outcome.obstacles = obstacles_of(solver.get());
    return outcome;
  }
  IdQueue decisions;
  solver_get_decisionqueue(solver.get(), decisions.get());
  for (const Id id : decisions) {
    if (id > SYSTEMSOLVABLE) outcome.packages.push_back(static_cast<PackageId>(id));
  }
  std::sort(outcome.packages.begin(), outcome.packages.end());
  return outcome;
}

}  // namespace mlenv::solv
