#include "recipes/resolve/debian.hpp"

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "recipes/distribution.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/resolve/apt_choice.hpp"
#include "recipes/resolve/debian_conflict.hpp"
#include "recipes/resolve/debian_index.hpp"
#include "recipes/resolve/solv.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using solv::DependencyId;
using solv::NameId;
using solv::PackageId;

/// So that `apt-get install` works in the image; it is neither Essential nor required.
constexpr std::string_view kAlways = "apt";

using Indexes = std::vector<PackagesIndex>;

/// The packages asked for, found in the pool.
struct Asked {
  std::vector<PackageId> packages;       ///< the version each would take by itself
  std::vector<DependencyId> conditions;  ///< what must be installed: names, some with a version
  std::vector<std::string> unknown;      ///< a sentence for each that is not there
};

std::string joined(const std::vector<std::string>& names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text.append(i + 1 == names.size() ? last : std::string_view{", "});
    text.append("`").append(names[i]).append("`");
  }
  return text;
}

class Asking {
 public:
  Asking(const solv::Pool& pool, const Indexes& indexes, const DebianRequest& request,
         AptChoice& choice)
      : pool_(pool), indexes_(indexes), request_(request), choice_(choice) {}

  Asked find() {
    // Those that name a version or suite change what the others would take.
    for (const bool chosen : {true, false}) {
      for (at_ = 0; at_ < request_.packages.size(); ++at_) {
        const Placed& place = request_.packages[at_];
        if ((place.text.find_first_of("=/") != std::string::npos) == chosen) find_wish(place);
      }
    }
    for (auto& [at, sentence] : refusals_) asked_.unknown.push_back(std::move(sentence));
    if (!request_.installed) add_base();
    return std::move(asked_);
  }

 private:
  void find_wish(const Placed& place);
  void find_virtual(const Placed& place, NameId name);
  void find_version(const Placed& place, const DebianWish& wish, NameId name);
  void find_in_suite(const Placed& place, const DebianWish& wish, NameId name);
  bool is_called(const PackagesIndex& index, std::string_view suite) const {
    return std::find(index.suites.begin(), index.suites.end(), suite) != index.suites.end();
  }
  void add_base();
  void add(PackageId id) {
    const NameId name = pool_.name(id);
    asked_.packages.push_back(id);
    // An older version is there: its name alone would ask for nothing.
    const PackageId there = choice_.kept(name);
    const bool newer = there != PackageId::none && there != id;
    asked_.conditions.push_back(newer ? pool_.dependency_equal(name, pool_.version(id))
                                      : pool_.dependency(name));
  }
  void refuse(const Placed& place, std::string sentence) {
    refusals_[at_] = place.line == 0 ? std::move(sentence)
                                     : shown_mistake(request_.recipe, request_.source, place.line,
                                                     place.column, sentence);
  }

  const solv::Pool& pool_;
  const Indexes& indexes_;
  const DebianRequest& request_;
  AptChoice& choice_;
  Asked asked_;
  std::size_t at_ = 0;                           ///< place of the wish that is looked at
  std::map<std::size_t, std::string> refusals_;  ///< by place, to be told in the recipe's order
};

void Asking::find_wish(const Placed& place) {
  const DebianWish wish = parse_debian_wish(place.text);
  if (!wish.architecture.empty() && wish.architecture != request_.architecture) {
    refuse(place, fmt::format("`{}` is for another architecture than the image's {}", place.text,
                              request_.architecture));
    return;
  }
  const NameId name = pool_.find_name(wish.name);
  if (name == NameId::none || choice_.candidate(name) == PackageId::none) {
    find_virtual(place, name);
  } else if (!wish.suite.empty()) {
    find_in_suite(place, wish, name);
  } else if (wish.version.empty()) {
    add(choice_.candidate(name));
  } else {
    find_version(place, wish, name);
  }
}

/// apt takes a virtual package's only provider and lets people choose among several.
void Asking::find_virtual(const Placed& place, NameId name) {
  const std::string wished{parse_debian_wish(place.text).name};
  std::vector<std::string> providers;
  PackageId only = PackageId::none;
  if (name != NameId::none) {
    for (const PackageId id : pool_.providers(pool_.dependency(name))) {
      if (choice_.candidate(pool_.name(id)) != id) continue;
      providers.emplace_back(pool_.text(pool_.name(id)));
      only = id;
    }
  }
  std::sort(providers.begin(), providers.end());
  if (providers.size() == 1) {
    add(only);
  } else if (!providers.empty()) {
    refuse(place, fmt::format("`{}` is not a package but can be any of {}: name one of them",
                              wished, joined(providers, " and ")));
  } else {
    const auto near = near_package_names(pool_, wished);
    refuse(place, fmt::format("there is no package `{}` in {}{}", wished, request_.suite,
                              near.empty() ? "" : "; did you mean " + joined(near, " or ") + "?"));
  }
}

void Asking::find_version(const Placed& place, const DebianWish& wish, NameId name) {
  std::vector<std::string> versions;
  for (const PackageId id : pool_.named(name)) {
    if (pool_.version(id) == wish.version) {
      choice_.pin(id);
      asked_.packages.push_back(id);
      asked_.conditions.push_back(pool_.dependency_equal(name, wish.version));
      return;
    }
    if (versions.empty() || versions.back() != pool_.version(id)) {  // of the base, and of an index
      versions.emplace_back(pool_.version(id));
    }
  }
  refuse(place, fmt::format("there is no version {} of `{}` in {}, only {}", wish.version,
                            wish.name, request_.suite, joined(versions, " and ")));
}

void Asking::find_in_suite(const Placed& place, const DebianWish& wish, NameId name) {
  const auto of_suite = [&](PackageId id) {
    if (pool_.is_installed(id)) return false;  // wherever it came from
    return is_called(indexes_.at(static_cast<std::size_t>(pool_.origin(id).number)), wish.suite);
  };
  std::vector<std::string> elsewhere;
  for (const PackageId id : pool_.named(name)) {  // newest first
    if (of_suite(id)) {
      choice_.take_from(id, of_suite);
      asked_.packages.push_back(id);
      asked_.conditions.push_back(pool_.dependency_equal(name, pool_.version(id)));
      return;
    }
    if (pool_.is_installed(id)) continue;
    elsewhere.push_back(
        fmt::format("{} in {}", pool_.version(id),
                    indexes_.at(static_cast<std::size_t>(pool_.origin(id).number)).suites.front()));
  }
  const bool known = std::any_of(indexes_.begin(), indexes_.end(), [&](const PackagesIndex& one) {
    return is_called(one, wish.suite);
  });
  refuse(place, known ? fmt::format("there is no `{}` in {}, only {}", wish.name, wish.suite,
                                    join(elsewhere, " and "))
                      : fmt::format("no package source here has the suite `{}`", wish.suite));
}

void Asking::add_base() {
  for (const PackageId id : pool_.packages()) {
    const bool base = pool_.essential(id) || pool_.priority(id) == solv::Priority::required;
    const bool wanted = base || pool_.text(pool_.name(id)) == kAlways;
    if (wanted && choice_.candidate(pool_.name(id)) == id) add(id);
  }
}

LockedDeb locked_deb(const solv::Pool& pool, PackageId id) {
  solv::Package package = pool.package(id);
  if (package.sha256.empty() || package.path.empty() || package.size_bytes == 0) {
    throw failure("index-invalid", "the package index gives no {} for `{}`",
                  package.sha256.empty() ? "SHA256" : "Filename or Size", package.name);
  }
  if (!is_clean_relative_path(package.path) || !package.path.ends_with(".deb")) {
    throw failure("index-invalid", "the package index gives `{}` a path that is none in an archive",
                  package.name)
        .because(fmt::format("`{}`", package.path));
  }
  return {std::move(package.name), std::move(package.version), std::move(package.architecture),
          std::move(package.path), package.size_bytes,         Digest::from_hex(package.sha256)};
}

DebianResolution resolution(const solv::Pool& pool, const std::vector<PackageId>& packages) {
  DebianResolution resolution;
  for (const PackageId id : packages) {
    if (!pool.is_installed(id)) resolution.debs.push_back(locked_deb(pool, id));
  }
  std::sort(resolution.debs.begin(), resolution.debs.end(),
            [](const LockedDeb& a, const LockedDeb& b) {
              return std::tie(a.name, a.architecture) < std::tie(b.name, b.architecture);
            });
  return resolution;
}

/// Versions that apt would not consider at all: of releases that say NotAutomatic, unless they are
/// the candidate.
std::vector<PackageId> not_automatic(const solv::Pool& pool, const AptChoice& choice) {
  std::vector<PackageId> found;
  for (const PackageId id : pool.packages()) {
    if (pool.is_installed(id) || pool.origin(id).priority >= Release::kUsualPriority) continue;
    if (choice.candidate(pool.name(id)) != id) found.push_back(id);
  }
  return found;
}

/// The version that the sources should be as new as `before`'s by; empty where they need not be.
/// For the same request that is what is taken now, for another one the newest there is: that may
/// have named backports.
std::string_view version_now(const solv::Pool& pool, const DebianRequest& request,
                             const DebianResolution& now, const LockedDeb& before) {
  if (request.same_as_before) {
    const auto same = std::find_if(now.debs.begin(), now.debs.end(),
                                   [&](const LockedDeb& deb) { return deb.name == before.name; });
    if (same != now.debs.end()) return same->version;
  }
  const NameId name = pool.find_name(before.name);
  if (name == NameId::none) return {};
  const std::vector<PackageId> versions = pool.named(name);
  return versions.empty() ? std::string_view{} : pool.version(versions.front());
}

/// An archive that has been turned back still has every signature right; what was locked before
/// shows it.
void check_not_behind(const solv::Pool& pool, const DebianRequest& request,
                      const DebianResolution& now) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> facts;
  for (const LockedDeb& deb : request.before) {
    const std::string_view version = version_now(pool, request, now, deb);
    if (version.empty() || solv::compare_versions(version, deb.version) >= 0) continue;
    facts.push_back(
        fmt::format("the lock has `{}` {}, the newest is {}", deb.name, deb.version, version));
  }
  if (facts.empty()) return;
  Error error =
      failure("index-older", "the package sources are older than what the lock was made from");
  for (std::size_t i = 0; i < std::min(facts.size(), kMost); ++i) error.because(facts[i]);
  if (facts.size() > kMost) error.because(fmt::format("and {} more", facts.size() - kMost));
  throw std::move(error).hint(
      "use another mirror, or add the source that is missing (SUITE-security, say); to accept the "
      "older packages, remove the lock");
}

/// Tells the walk what is there; those of it that stay at their version.
std::vector<PackageId> keep_installed(const solv::Pool& pool, const DebianRequest& request,
                                      AptChoice& choice) {
  std::vector<PackageId> installed;
  std::vector<PackageId> held;
  if (!request.installed) return held;
  for (const PackageId id : pool.packages()) {
    if (!pool.is_installed(id)) continue;
    installed.push_back(id);
    if (!request.held.contains(std::string(pool.text(pool.name(id))))) continue;
    held.push_back(id);
    choice.pin(id);
  }
  choice.keep(installed);
  return held;
}

/// What apt takes, each time with the packages of the same sources, until there are no more.
std::vector<PackageId> take_with_siblings(AptChoice& choice, std::vector<PackageId> asked) {
  for (;;) {
    std::vector<PackageId> taken = choice.take(asked);
    const std::vector<PackageId> more = choice.siblings(taken);
    if (more.empty()) return taken;
    asked.insert(asked.end(), more.begin(), more.end());
  }
}

/// What the chain of facts does not tell: why a package that is there stays.
void explain_base(const DebianRequest& request, Conflict& conflict) {
  const auto told = [&](const std::string& name) {
    return std::any_of(conflict.facts.begin(), conflict.facts.end(), [&](const std::string& fact) {
      return fact.find(fmt::format("`{} ", name)) != std::string::npos;
    });
  };
  for (const std::string& name : request.held) {
    if (told(name))
      conflict.facts.push_back(fmt::format("the base holds `{}` at its version", name));
  }
  conflict.hint =
      "packages of the base are never removed: leave out what does not go with them, or take "
      "another base";
}

std::variant<DebianResolution, Conflict> choose_debs(const solv::Pool& pool, const Indexes& indexes,
                                                     const DebianRequest& request) {
  AptChoice choice{pool};
  const std::vector<PackageId> held = keep_installed(pool, request, choice);
  const Asked asked = Asking{pool, indexes, request, choice}.find();
  if (!asked.unknown.empty()) {
    Conflict conflict;
    conflict.headline = fmt::format("some packages are not to be had in {}", request.suite);
    conflict.facts = asked.unknown;
    return conflict;
  }
  solv::Job apt;
  apt.never = held;
  for (const bool with_siblings : {true, false}) {
    if (with_siblings && !request.installed) continue;
    apt.exactly =
        with_siblings ? take_with_siblings(choice, asked.packages) : choice.take(asked.packages);
    const solv::Outcome by_apt = pool.solve(apt);
    if (by_apt.solved) return resolution(pool, by_apt.packages);
  }
  solv::Job free;
  free.install = asked.conditions;
  free.favoured = apt.exactly;
  free.never = not_automatic(pool, choice);
  free.never.insert(free.never.end(), held.begin(), held.end());
  const solv::Outcome by_solver = pool.solve(free);
  if (by_solver.solved) return resolution(pool, by_solver.packages);
  Conflict conflict;
  conflict.headline = fmt::format("no set of packages of {} satisfies the recipe", request.suite);
  conflict.facts = obstacle_facts(pool, by_solver.obstacles, asked.packages);
  if (request.installed) explain_base(request, conflict);
  return conflict;
}

}  // namespace

std::variant<DebianResolution, Conflict> resolve_debian(const DebianRequest& request,
                                                        const std::vector<DebianSource>& sources,
                                                        Http& http, const fs::path& cache,
                                                        Progress& progress) {
  IndexOptions options;
  options.distribution = request.distribution;
  options.suite = request.suite;
  options.architecture = request.architecture;
  options.cache = cache / "debian";
  options.now = std::time(nullptr);
  const auto indexes = find_indexes(sources, options, http, progress);
  solv::Pool pool{request.architecture};
  if (request.installed) pool.add_installed(*request.installed, index_facts(*request.installed));
  load_indexes(indexes, options, http, progress, pool);
  Activity activity{progress, "choosing packages"};
  auto answer = choose_debs(pool, indexes, request);
  if (const auto* found = std::get_if<DebianResolution>(&answer)) {
    check_not_behind(pool, request, *found);
    activity.result(counted(found->debs.size(), "package"));
  }
  return answer;
}

std::vector<std::string> deb_urls(const LockedDeb& deb, const std::vector<DebianSource>& sources) {
  std::vector<std::string> first;
  std::vector<std::string> later;
  // Where the security archive keeps its files; other archives have no such folder.
  const bool is_security = deb.path.starts_with("pool/updates/");
  for (const DebianSource& source : sources) {
    for (std::string uri : source.uris) {
      while (uri.ends_with('/')) uri.pop_back();
      std::string url = uri + "/" + url_path_encode(deb.path);
      auto& urls = source.suite.ends_with("-security") == is_security ? first : later;
      const auto known = [&](const std::vector<std::string>& in) {
        return std::find(in.begin(), in.end(), url) != in.end();
      };
      if (!known(first) && !known(later)) urls.push_back(std::move(url));
    }
  }
  first.insert(first.end(), later.begin(), later.end());
  return first;
}

}  // namespace mlenv
