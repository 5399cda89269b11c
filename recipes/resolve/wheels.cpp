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
#include "recipes/resolve/wheel_failures.hpp"
#include "recipes/resolve/wheel_hashes.hpp"
#include "recipes/resolve/wheel_search.hpp"
#include "recipes/resolve/wheel_sizes.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kMostRounds = 20;
constexpr int kMostRoundsFromSource = 500;  ///< each package may be one

class WheelResolver {
 public:
  WheelResolver(const WheelRequest& request, const fs::path& uv, const fs::path& cache)
      : request_(request), uv_(uv), cache_(cache), search_(request, uv, cache) {
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
      UvAnswer answer = search_.ask(question_);
      if (steps_.names_own_indexes(answer) || steps_.prefers_wheel(answer)) continue;
      if (auto* conflict = std::get_if<Conflict>(&answer))
        return failures_.explained(std::move(*conflict));
      if (const auto* build = std::get_if<NeedsBuild>(&answer)) {
        if (auto conflict = obstacle(*build)) return std::move(*conflict);
        continue;
      }
      auto& found = std::get<PylockPackages>(answer);
      keep_promised_wheels(found, request_.recipe->listed, search_.tags());
      leave_wheels_out(found);
      put_built_wheels(found);
      const PylockPackage* bare = search_.without_wheel(found);
      if (bare == nullptr) {
        const BuiltRelease* stale = stale_among(found);
        if (stale == nullptr) return std::move(found);
        if (auto conflict = build_again(*stale, found)) return std::move(*conflict);
        continue;
      }
      const NeedsBuild missing{bare->name, bare->version};
      if (steps_.prefers_wheel(missing.name)) continue;
      if (!request_.build) return failures_.no_wheel(missing, ask_for_wheels_only());
      if (auto conflict = build_release(missing)) return std::move(*conflict);
    }
    throw failure("uv-failed", "uv wants to build one package after another, {} so far", most);
  }

  /// nullptr for one that came as a wheel.
  const BuiltRelease* built_of(const std::string& name, const std::string& version) const {
    if (const BuiltRelease* direct = search_.direct_of(name)) return direct;
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
  bool is_requested(const std::string& name) const { return search_.is_requested(name); }
  /// Only for packages that `packages` returned.
  std::size_t best_of(const PylockPackage& package) const {
    return search_.best_of(package).value_or(0);
  }
  const PylockWheel& best_wheel(const PylockPackage& package) const {
    return package.wheels[best_of(package)];
  }

 private:
  /// The question whose answer these were.
  UvQuestion pinned(const PylockPackages& packages) const {
    UvQuestion question = question_;
    for (const PylockPackage& one : packages) {
      if (search_.direct_of(one.name) != nullptr || one.version.empty()) continue;
      question.constraints.push_back(fmt::format("{}=={}", one.name, one.version));
    }
    return question;
  }

  /// Of packages that `no-binary` names; older releases of uv tell wheels all the same.
  void leave_wheels_out(PylockPackages& packages) const {
    for (PylockPackage& package : packages) {
      if (search_.is_from_source(package.name)) package.wheels.clear();
    }
  }

  UvAnswer ask_for_wheels_only() const {
    UvQuestion question = question_;
    question.no_sources = true;
    return search_.ask(question);
  }

  /// nullopt: the package was only passed by; the question was changed and can be asked again.
  std::optional<Conflict> obstacle(const NeedsBuild& build) {
    if (search_.is_from_source(build.name) && request_.build) return build_release(build);
    const UvAnswer answer = ask_for_wheels_only();
    const auto* packages = std::get_if<PylockPackages>(&answer);
    const PylockPackage* other =
        packages == nullptr ? nullptr : find_pylock_package(*packages, build.name);
    if (other == nullptr || std::is_lt(compare_versions(other->version, build.version))) {
      return request_.build ? build_release(build) : failures_.no_wheel(build, answer);
    }
    question_.only_wheels.push_back(build.name);
    return std::nullopt;
  }

  /// nullopt: it was built, and uv is told what it needs.
  std::optional<Conflict> build_release(const NeedsBuild& wanted) {
    const auto source = locate_source(wanted.name, wanted.version, request_, uv_, cache_);
    if (!source) return failures_.no_wheel(wanted, ask_for_wheels_only());
    require_promised(*source, request_.recipe->listed);
    auto answer = built(*source, image_beside(wanted));
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

  /// Throws `build-failed`, with what helps.
  std::variant<BuiltRelease, Conflict> built(const SourceRelease& source,
                                             const std::vector<LockedWheel>& image) const {
    try {
      return request_.build(source, image);
    } catch (const Error& error) {
      if (error.code() != "build-failed") throw;
      throw failures_.of_build(error, source);
    }
  }

  /// Those that have one.
  std::vector<LockedWheel> wheels_of(const PylockPackages& packages) const {
    std::vector<LockedWheel> wheels;
    for (const PylockPackage& one : packages) {
      const auto best = search_.best_of(one);
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
      UvAnswer answer = search_.ask(question);
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
      if (built == search_.direct_of(package.name)) package.version = wheel.version;
      package.wheels = {{wheel.file, {}, wheel.digest, wheel.size_bytes}};
    }
  }

  const WheelRequest& request_;
  const fs::path& uv_;
  const fs::path& cache_;
  WheelSearch search_;
  WheelFailures failures_{search_};
  UvQuestion& question_ = search_.question;
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
