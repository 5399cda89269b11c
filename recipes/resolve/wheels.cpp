// Wheels for a recipe.
//
// The question to uv allows source releases, but uv is told of an interpreter that runs nothing
// (uv.hpp): so it either finds the versions that pip users would get, or stops at the package that
// it could only know by building. Such a package is built by whoever can (source_release.hpp), uv
// is told what it needs, and asked again; so is one of the answer that has no wheel. Where nobody
// can build, a question for wheels alone tells which older release would have been taken; that is
// said, not done.
//
// A package that stops uv may have been looked at only because the solver stepped back through old
// releases. It is one of those when the wheels-only answer holds a newer release of it; the
// question is then repeated without its source releases.
#include "recipes/resolve/wheels.hpp"

#include <algorithm>
#include <set>

#include "recipes/requirement.hpp"
#include "recipes/resolve/conflict_hint.hpp"
#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/cuda_conflict.hpp"
#include "recipes/resolve/demands.hpp"
#include "recipes/resolve/direct_wheels.hpp"
#include "recipes/resolve/limits.hpp"
#include "recipes/resolve/locations.hpp"
#include "recipes/resolve/page_wheels.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/uv_steering.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_conflict.hpp"
#include "recipes/resolve/wheel_hashes.hpp"
#include "recipes/resolve/wheel_sizes.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kMostRounds = 20;
constexpr int kMostRoundsFromSource = 500;  ///< each package may be one

std::vector<std::string> file_names(const PylockPackage& package) {
  std::vector<std::string> files;
  files.reserve(package.wheels.size());
  for (const PylockWheel& wheel : package.wheels) files.push_back(wheel.file);
  return files;
}

std::set<std::string> requested_names(const Recipe& recipe) {
  std::set<std::string> names;
  for (const std::string& text : framework_requirements(recipe).requirements) {
    names.insert(package_of_requirement(text));
  }
  return names;
}

class WheelResolver {
 public:
  WheelResolver(const WheelRequest& request, const fs::path& uv, const fs::path& cache)
      : request_(request),
        uv_(uv),
        cache_(cache),
        tags_(version_prefix(request.python, 2), request.glibc, request.architecture),
        requested_(requested_names(*request.recipe)) {
    const FrameworkRequirements all = framework_requirements(*request.recipe);
    question_.requirements = all.requirements;
    question_.constraints = all.constraints;
    question_.constraints.insert(question_.constraints.end(), request.limits.begin(),
                                 request.limits.end());
    steps_.begin();
    if (request.direct != nullptr) leaves_extra_ = name_wheels(*request.direct, question_);
    if (!request.compiler.empty()) {
      add_compiler(question_, request.compiler);
      question_.preferences = request.kept;
    } else if (request.previous != nullptr) {
      question_.preferences = request.previous->wheels;
      std::erase_if(question_.preferences, [&](const LockedWheel& wheel) {
        return std::find(request.moved.begin(), request.moved.end(), wheel.name) !=
               request.moved.end();
      });
    }
  }

  /// Packages that each have a wheel for the image.
  // NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
  std::variant<PylockPackages, Conflict> packages() {
    const int most = question_.from_source.empty() ? kMostRounds : kMostRoundsFromSource;
    for (int round = 0; round < most; ++round) {
      UvAnswer answer = ask(question_);
      if (steps_.names_own_indexes(answer) || steps_.prefers_wheel(answer)) continue;
      if (auto* conflict = std::get_if<Conflict>(&answer)) return explained(std::move(*conflict));
      if (const auto* build = std::get_if<NeedsBuild>(&answer)) {
        if (auto conflict = obstacle(*build)) return std::move(*conflict);
        continue;
      }
      auto& found = std::get<PylockPackages>(answer);
      keep_promised_wheels(found, request_.recipe->listed, tags_);
      leave_wheels_out(found);
      put_built_wheels(found);
      const PylockPackage* bare = without_wheel(found);
      if (bare == nullptr) {
        const BuiltRelease* stale = stale_among(found);
        if (stale == nullptr) return std::move(found);
        if (auto conflict = build_again(*stale, found)) return std::move(*conflict);
        continue;
      }
      const NeedsBuild missing{bare->name, bare->version};
      if (steps_.prefers_wheel(missing.name)) continue;
      if (!request_.build) return no_wheel(missing, ask_for_wheels_only());
      if (auto conflict = build_release(missing)) return std::move(*conflict);
    }
    throw failure("uv-failed", "uv wants to build one package after another, {} so far", most);
  }

  /// nullptr for one that came as a wheel.
  const BuiltRelease* built_of(const std::string& name, const std::string& version) const {
    if (const BuiltRelease* direct = direct_of(name)) return direct;
    const auto found = std::find_if(built_.begin(), built_.end(), [&](const BuiltRelease& one) {
      return one.wheel.name == name && is_same_version(one.wheel.version, version);
    });
    return found == built_.end() ? nullptr : &*found;
  }
  /// What `packages` found: asked where it may matter (WheelResolution).
  AskedExtras extras(const PylockPackages& packages) const {
    if (!leaves_extra_) return {};
    return ask_extras(pinned(packages), request_, uv_, cache_);
  }
  /// Packages of NVIDIA's that `cuda: cpu` does not want, and who asks for each.
  PackageAskers unwanted(const PylockPackages& packages) const {
    PackageAskers found;
    if (!request_.recipe->cuda || request_.recipe->cuda->text != "cpu") return found;
    for (const PylockPackage& one : packages) {
      // NVML's bindings are no library of CUDA's, and small.
      if (one.name.starts_with("nvidia-") && one.name != "nvidia-ml-py") found[one.name];
    }
    if (found.empty()) return found;
    const PackageAskers all = ask_askers(pinned(packages), request_, uv_, cache_);
    for (auto& [name, askers] : found) {
      if (all.contains(name)) askers = all.at(name);
    }
    return found;
  }
  bool is_requested(const std::string& name) const { return requested_.contains(name); }
  /// Only for packages that `packages` returned.
  std::size_t best_of(const PylockPackage& package) const {
    return tags_.best(file_names(package)).value_or(0);
  }
  const PylockWheel& best_wheel(const PylockPackage& package) const {
    return package.wheels[best_of(package)];
  }

 private:
  /// The question whose answer these were.
  UvQuestion pinned(const PylockPackages& packages) const {
    UvQuestion question = question_;
    for (const PylockPackage& one : packages) {
      if (direct_of(one.name) != nullptr || one.version.empty()) continue;
      question.constraints.push_back(fmt::format("{}=={}", one.name, one.version));
    }
    return question;
  }

  bool is_from_source(const std::string& name) const {
    return names_package(question_.from_source, name) && direct_of(name) == nullptr;
  }

  /// Of packages that `no-binary` names; older releases of uv tell wheels all the same.
  void leave_wheels_out(PylockPackages& packages) const {
    for (PylockPackage& package : packages) {
      if (is_from_source(package.name)) package.wheels.clear();
    }
  }

  /// nullptr for a package of the indexes.
  const BuiltRelease* direct_of(const std::string& name) const {
    if (request_.direct == nullptr) return nullptr;
    const auto found = std::find_if(request_.direct->begin(), request_.direct->end(),
                                    [&](const auto& one) { return one.wheel.name == name; });
    return found == request_.direct->end() ? nullptr : &*found;
  }

  Conflict explained(Conflict conflict) const {
    if (is_requested(conflict.absent)) {
      Conflict absent = absent_packages(*request_.recipe, absent_names(conflict.absent));
      absent.absent = std::move(conflict.absent);
      absent.told = std::move(conflict.told);
      return absent;
    }
    std::vector<std::string> names;
    if (request_.direct != nullptr) {
      const std::vector<std::string> lines = direct_facts(*request_.direct, conflict);
      conflict.facts.insert(conflict.facts.begin(), lines.begin(), lines.end());
      for (const BuiltRelease& one : *request_.direct) names.push_back(one.wheel.name);
    }
    show_requirements(conflict, *request_.recipe, names);
    explain_conflict(conflict, *request_.recipe, request_.python,
                     [&](const std::string& name) { return newest_release(name); });
    for (std::string& fact : steering_facts(request_.recipe->steering, conflict)) {
      conflict.facts.push_back(std::move(fact));
    }
    return conflict;
  }

  std::string newest_release(const std::string& name) const {
    UvQuestion question;
    question.requirements = {name};
    question.no_dependencies = true;
    const UvAnswer answer = ask(question);
    const auto* packages = std::get_if<PylockPackages>(&answer);
    return packages == nullptr || packages->empty() ? std::string{} : packages->front().version;
  }

  /// uv names one package that no index has; the rest of the recipe's own are asked for alone.
  std::vector<std::string> absent_names(const std::string& first) const {
    std::vector<std::string> names = {first};
    UvQuestion question = question_;
    question.no_dependencies = true;
    for (int round = 0; round < kMostRounds; ++round) {
      std::erase_if(question.requirements, [&](const std::string& text) {
        const auto read = parse_requirement(text);
        const auto* one = std::get_if<Requirement>(&read);
        return one == nullptr || one->normalised_name() == names.back();
      });
      if (question.requirements.empty()) break;
      const UvAnswer answer = ask(question);
      const auto* conflict = std::get_if<Conflict>(&answer);
      if (conflict == nullptr || !is_requested(conflict->absent)) break;
      names.push_back(conflict->absent);
    }
    return names;
  }

  UvAnswer ask(const UvQuestion& question) const { return ask_uv(question, request_, uv_, cache_); }

  UvAnswer ask_for_wheels_only() const {
    UvQuestion question = question_;
    question.no_sources = true;
    return ask(question);
  }

  const PylockPackage* without_wheel(const PylockPackages& packages) const {
    for (const PylockPackage& package : packages) {
      if (!tags_.best(file_names(package))) return &package;
    }
    return nullptr;
  }

  /// nullopt: the package was only passed by; the question was changed and can be asked again.
  std::optional<Conflict> obstacle(const NeedsBuild& build) {
    if (is_from_source(build.name) && request_.build) return build_release(build);
    const UvAnswer answer = ask_for_wheels_only();
    const auto* packages = std::get_if<PylockPackages>(&answer);
    const PylockPackage* other =
        packages == nullptr ? nullptr : find_pylock_package(*packages, build.name);
    if (other == nullptr || std::is_lt(compare_versions(other->version, build.version))) {
      return request_.build ? build_release(build) : no_wheel(build, answer);
    }
    question_.only_wheels.push_back(build.name);
    return std::nullopt;
  }

  /// nullopt: it was built, and uv is told what it needs.
  std::optional<Conflict> build_release(const NeedsBuild& wanted) {
    const auto source = locate_source(wanted.name, wanted.version, request_, uv_, cache_);
    if (!source) return no_wheel(wanted, ask_for_wheels_only());
    require_promised(*source, request_.recipe->listed);
    auto answer = built_or_explained(*source, image_beside(wanted));
    if (auto* conflict = std::get_if<Conflict>(&answer)) {
      const auto lines = requirement_lines(*request_.recipe, wanted.name);
      conflict->facts.insert(conflict->facts.begin(), lines.begin(), lines.end());
      return std::move(*conflict);
    }
    built_.push_back(std::get<BuiltRelease>(std::move(answer)));
    releases_.push_back(*source);
    question_.known.push_back(built_.back().metadata);
    return std::nullopt;
  }

  /// A build that fails of a release that has wheels for older Pythons alone: it is older than the
  /// image's, and more than its build tools may have to be so.
  std::variant<BuiltRelease, Conflict> built_or_explained(
      const SourceRelease& source, const std::vector<LockedWheel>& image) const {
    try {
      return request_.build(source, image);
    } catch (const Error& error) {
      if (error.code() != "build-failed") throw;
      const std::vector<std::string> minors = older_pythons(source);
      if (!minors.empty()) throw with_older_pythons(error, source, minors);
      // The build's own goes last: `init --try` follows what a hint ends with (remedy_in_hint).
      std::vector<std::string> hints = {held_back_hint(source),
                                        date_hint(*request_.recipe, source.name), error.hint()};
      std::erase(hints, "");
      if (hints == std::vector{error.hint()} || hints.empty()) throw;
      throw with_hint(error, join(hints, "; "));
    }
  }

  /// Of a release that is not the newest, though nobody asked for one: the resolution went back
  /// until nothing spoke against it.
  std::string held_back_hint(const SourceRelease& source) const {
    if (asks_for_exact_version(*request_.recipe, source.name)) return {};
    const std::string newest = newest_release(source.name);
    if (newest.empty() || newest == source.version) return {};
    return fmt::format(
        "something keeps `{0}` from being newer than {1}: `constraints: [\"{0}>={2}\"]` has mlenv "
        "say what",
        source.name, source.version, newest);
  }

  static Error with_hint(const Error& error, std::string hint) {
    Error told{error.kind(), error.code(), error.frames().front()};
    for (std::size_t i = 1; i < error.frames().size(); ++i) told.because(error.frames()[i]);
    return std::move(told).hint(std::move(hint));
  }

  /// Those that it has wheels for, all older than the image's, the oldest first.
  std::vector<std::string> older_pythons(const SourceRelease& source) const {
    UvQuestion question;
    question.requirements = {fmt::format("{}=={}", source.name, source.version)};
    question.no_dependencies = true;
    question.no_sources = true;
    constexpr int kOldest = 5;
    const std::string own = version_prefix(request_.python, 2);
    std::vector<std::string> minors;
    for (int minor = kOldest; fmt::format("3.{}", minor) != own && minor < kMostRounds; ++minor) {
      WheelRequest other = request_;
      other.python = fmt::format("3.{}.0", minor);
      const UvAnswer answer = ask_uv(question, other, uv_, cache_);
      if (std::holds_alternative<PylockPackages>(answer))
        minors.push_back(fmt::format("3.{}", minor));
    }
    return minors;
  }

  Error with_older_pythons(const Error& error, const SourceRelease& source,
                           const std::vector<std::string>& minors) const {
    Error told = with_hint(error, {});
    told.because(fmt::format("`{}` {} is older than Python {}: its wheels are for Python {}",
                             source.name, source.version, version_prefix(request_.python, 2),
                             and_joined(minors)));
    std::string hint = other_python_hint(*request_.recipe, minors, source.name);
    if (!error.hint().empty()) hint += fmt::format("; to build it all the same: {}", error.hint());
    return std::move(told).hint(std::move(hint));
  }

  /// Those that have one.
  std::vector<LockedWheel> wheels_of(const PylockPackages& packages) const {
    std::vector<LockedWheel> wheels;
    for (const PylockPackage& one : packages) {
      const auto best = tags_.best(file_names(one));
      if (!best || !one.wheels[*best].digest) continue;
      const PylockWheel& wheel = one.wheels[*best];
      wheels.push_back(
          {one.name, one.version, wheel.file, wheel.size_bytes.value_or(0), *wheel.digest, false});
    }
    return wheels;
  }

  /// What the image will have, for a build that wants to know: what needs building counts as if it
  /// needed nothing, until it is built. Empty where nothing goes together so.
  std::vector<LockedWheel> image_beside(const NeedsBuild& wanted) const {
    if (!wants_image(*request_.recipe, wanted.name)) return {};
    UvQuestion question = question_;
    question.known.push_back({wanted.name, wanted.version, {}, {}, {}});
    bool has_compiler = !request_.compiler.empty() || !request_.recipe->compiler;
    for (int round = 0; round < kMostRounds; ++round) {
      UvAnswer answer = ask(question);
      if (const auto* other = std::get_if<NeedsBuild>(&answer)) {
        question.known.push_back({other->name, other->version, {}, {}, {}});
        continue;
      }
      auto* found = std::get_if<PylockPackages>(&answer);
      if (found == nullptr) return {};
      leave_wheels_out(*found);
      put_built_wheels(*found);
      std::vector<LockedWheel> wheels = wheels_of(*found);
      const std::string release = has_compiler ? std::string{} : compiler_release(wheels);
      if (release.empty()) return wheels;
      add_compiler(question, release);
      question.preferences = std::move(wheels);
      has_compiler = true;
    }
    return {};
  }

  /// Of an answer; nullptr: each was built with what the image has.
  const BuiltRelease* stale_among(const PylockPackages& found) const {
    const std::vector<LockedWheel> image = wheels_of(found);
    const auto stale = std::find_if(built_.begin(), built_.end(), [&](const BuiltRelease& one) {
      const PylockPackage* package = find_pylock_package(found, one.wheel.name);
      return package != nullptr && is_same_version(one.wheel.version, package->version) &&
             is_stale(one.matched, image);
    });
    return stale == built_.end() ? nullptr : &*stale;
  }

  /// The answer holds other versions than those that it was built with.
  std::optional<Conflict> build_again(const BuiltRelease& stale, const PylockPackages& found) {
    const auto place = &stale - built_.data();
    auto answer = request_.build(releases_.at(static_cast<std::size_t>(place)), wheels_of(found));
    if (auto* conflict = std::get_if<Conflict>(&answer)) return std::move(*conflict);
    BuiltRelease& built = built_.at(static_cast<std::size_t>(place));
    built = std::get<BuiltRelease>(std::move(answer));
    for (ReleaseMetadata& one : question_.known) {
      if (one.name == built.metadata.name && one.version == built.metadata.version) {
        one = built.metadata;
      }
    }
    return std::nullopt;
  }

  void put_built_wheels(PylockPackages& packages) const {
    for (PylockPackage& package : packages) {
      const BuiltRelease* built = built_of(package.name, package.version);
      if (built == nullptr) continue;
      const LockedWheel& wheel = built->wheel;
      if (built == direct_of(package.name)) package.version = wheel.version;
      package.wheels = {{wheel.file, {}, wheel.digest, wheel.size_bytes}};
    }
  }

  /// Of one that `no-binary` names.
  Conflict no_source(const NeedsBuild& package) const {
    Conflict conflict;
    conflict.headline =
        fmt::format("`{}` {} has to be built, and {}", package.name, package.version,
                    request_.build ? "the Python indexes have no source of it"
                                   : "only bases made from packages can do that");
    conflict.facts = requirement_lines(*request_.recipe, package.name);
    conflict.facts.emplace_back("`no-binary` leaves its wheels out");
    conflict.hint = fmt::format("take `{}` out of `no-binary`", package.name);
    return conflict;
  }

  Conflict no_wheel(const NeedsBuild& package, const UvAnswer& wheels_only) const {
    if (is_from_source(package.name)) return no_source(package);
    Conflict conflict;
    conflict.headline = fmt::format(
        "`{}` {} has no wheel for Python {} and glibc {} on {}", package.name, package.version,
        version_prefix(request_.python, 2), request_.glibc, machine_name(request_.architecture));
    conflict.facts = requirement_lines(*request_.recipe, package.name);
    conflict.facts.emplace_back(request_.build ? "the Python indexes have no source of it either"
                                               : "it would have to be built from its source");
    const auto* packages = std::get_if<PylockPackages>(&wheels_only);
    const PylockPackage* older =
        packages == nullptr ? nullptr : find_pylock_package(*packages, package.name);
    std::vector<std::string> pins;
    if (older != nullptr) {
      conflict.facts.push_back(
          fmt::format("the newest release with a wheel that fits is {}", older->version));
      pins.push_back(fmt::format("{}=={}", older->name, older->version));
    } else if (packages != nullptr) {
      conflict.facts.emplace_back("older releases of what needs it do without it");
      pins = requested_pins(*packages);
    } else {
      conflict.facts.emplace_back("no older release with a wheel fits the recipe");
    }
    if (!pins.empty() && fits(pins)) {
      conflict.hint =
          fmt::format("to take older releases, add `{}` to `packages`", join(pins, "`, `"));
    } else {
      conflict.hint = fmt::format("leave out `{}` and what needs it", package.name);
    }
    return conflict;
  }

  /// The versions that the recipe's own packages have in `packages`.
  std::vector<std::string> requested_pins(const PylockPackages& packages) const {
    std::vector<std::string> pins;
    for (const PylockPackage& one : packages) {
      if (is_requested(one.name)) pins.push_back(fmt::format("{}=={}", one.name, one.version));
    }
    return pins;
  }

  /// Whether a recipe with these requirements added has a lock: a hint must work.
  bool fits(const std::vector<std::string>& pins) const {
    UvQuestion question = question_;
    question.requirements.insert(question.requirements.end(), pins.begin(), pins.end());
    const UvAnswer answer = ask(question);
    const auto* packages = std::get_if<PylockPackages>(&answer);
    return packages != nullptr && without_wheel(*packages) == nullptr;
  }

  const WheelRequest& request_;
  const fs::path& uv_;
  const fs::path& cache_;
  WheelTags tags_;
  std::set<std::string> requested_;
  UvQuestion question_;
  SteeredSteps steps_{request_.recipe->steering, question_};
  bool leaves_extra_ = false;  ///< an address that an extra may call for is not in the question
  std::vector<BuiltRelease> built_;
  std::vector<SourceRelease> releases_;  ///< of those, in their order
};

/// The best wheel of each package; its size is 0 where the index does not tell it.
std::vector<LockedWheel> choose_wheels(const WheelResolver& resolver,
                                       const PylockPackages& packages) {
  std::vector<LockedWheel> chosen;
  for (const PylockPackage& package : packages) {
    const PylockWheel& wheel = resolver.best_wheel(package);
    if (!wheel.digest) {
      throw failure("no-digest", "the index tells no SHA-256 digest of `{}`", wheel.file)
          .hint("use an index that does; a lock needs it");
    }
    chosen.push_back({.name = package.name,
                      .version = package.version,
                      .file = wheel.file,
                      .size_bytes = wheel.size_bytes.value_or(0),
                      .digest = *wheel.digest,
                      .requested = resolver.is_requested(package.name)});
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.name < b.name; });
  return chosen;
}

std::map<std::string, std::string> urls_of(const WheelResolver& resolver,
                                           const PylockPackages& packages) {
  std::map<std::string, std::string> urls;
  for (const PylockPackage& package : packages) {
    const PylockWheel& wheel = resolver.best_wheel(package);
    if (wheel.digest && !wheel.url.empty()) urls.emplace(wheel.digest->hex(), wheel.url);
  }
  return urls;
}

std::vector<std::string> yanked_notes(const PylockPackages& packages) {
  std::vector<std::string> notes;
  for (const PylockPackage& one : packages) {
    if (!one.yanked) continue;
    notes.push_back(fmt::format(
        "`{}` {} was yanked by its makers{}{}: it is locked since its version is asked for",
        one.name, one.version, one.yanked->empty() ? "" : ", who say: ", *one.yanked));
  }
  return notes;
}

/// What the built ones among the chosen wheels came from.
void add_sources(const WheelResolver& resolver, WheelResolution& resolution) {
  for (const LockedWheel& wheel : resolution.wheels) {
    const BuiltRelease* built = resolver.built_of(wheel.name, wheel.version);
    if (built == nullptr) continue;
    resolution.sources.push_back(built->source);
    for (const LockedWheel& one : built->build_wheels) resolution.build_wheels.push_back(one);
  }
  std::vector<LockedWheel>& all = resolution.build_wheels;
  std::sort(all.begin(), all.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file < b.file; });
  all.erase(
      std::unique(all.begin(), all.end(),
                  [](const LockedWheel& a, const LockedWheel& b) { return a.file == b.file; }),
      all.end());
}

}  // namespace

std::variant<WheelResolution, Conflict> resolve_wheels(const WheelRequest& request,
                                                       const fs::path& uv, Http& http,
                                                       const fs::path& cache, Progress& progress) {
  Activity activity(progress, "resolving Python packages", 0, "packages");
  const FindWheels find_alone = [&](const WheelRequest& asked) -> WheelAnswer {
    WheelResolver resolver(asked, uv, cache);
    auto packages = resolver.packages();
    if (auto* conflict = std::get_if<Conflict>(&packages)) return std::move(*conflict);
    auto& found = std::get<PylockPackages>(packages);
    for (PylockPackage& package : found) {
      PylockWheel& wheel = package.wheels[resolver.best_of(package)];
      if (wheel.digest || !is_on_page(*asked.recipe, package.name)) continue;
      learn_digest(wheel, http, cache, progress);
    }
    WheelResolution resolution;
    resolution.wheels = choose_wheels(resolver, found);
    resolution.urls = urls_of(resolver, found);
    add_sources(resolver, resolution);
    resolution.extras = resolver.extras(found);
    resolution.unwanted = resolver.unwanted(found);
    resolution.yanked = yanked_notes(found);
    auto cuda = locked_cuda(resolution.wheels);
    if (auto* conflict = std::get_if<Conflict>(&cuda)) return std::move(*conflict);
    resolution.cuda = std::get<std::optional<LockedCuda>>(std::move(cuda));
    return resolution;
  };
  const FindWheels find_compiler = [&](const WheelRequest& asked) {
    return with_compiler(asked, find_alone(asked), find_alone);
  };
  const FindWheels find = [&](const WheelRequest& asked) {
    return within_limits(asked, find_compiler(asked), find_compiler);
  };
  auto answer = find(request);
  if (auto conflict = cuda_conflict(request, answer, find)) {
    answer = std::move(*conflict);
  } else if (auto unmet = demand_conflict(request, answer, find)) {
    answer = std::move(*unmet);
  }
  if (std::holds_alternative<Conflict>(answer)) {
    activity.result("no solution");
    return answer;
  }
  auto& resolution = std::get<WheelResolution>(answer);
  describe_cuda(*request.recipe, resolution);
  fill_sizes(resolution, request.previous, cache, http, progress);
  activity.result(counted(resolution.wheels.size(), "wheel"));
  return answer;
}

}  // namespace mlenv
