#include "recipes/resolve/resolve.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "recipes/distribution.hpp"
#include "recipes/environment.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/alternatives.hpp"
#include "recipes/resolve/direct_search.hpp"
#include "recipes/resolve/interpreter.hpp"
#include "recipes/resolve/listed_python.hpp"
#include "recipes/resolve/locations.hpp"
#include "recipes/resolve/lock_gaps.hpp"
#include "recipes/resolve/python_build.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kMostDirectRounds = 5;

bool asks_for_wheels(const Request& request) {
  return !request.framework.empty() || !request.packages.empty() || !request.requirements.empty();
}

bool wants_python(const Request& request) {
  return !request.python.empty() || asks_for_wheels(request);
}

bool same_debian(const Request& a, const Request& b) {
  return a.base == b.base && a.python == b.python && a.system == b.system &&
         wants_python(a) == wants_python(b) && a.interpreter.empty() == b.interpreter.empty();
}

/// What else shapes a wheel that is built from source.
bool builds_alike(const Lock& previous, const Lock& now) {
  return previous.debs == now.debs && previous.epoch == now.epoch &&  // compilers are among them
         previous.interpreter == now.interpreter;
}

bool same_wheels(const Lock& previous, const Lock& now) {
  return previous.request.framework == now.request.framework &&
         previous.request.cuda == now.request.cuda &&
         previous.request.packages == now.request.packages &&
         previous.request.requirements == now.request.requirements &&
         previous.request.constraints == now.request.constraints &&
         previous.request.hashes == now.request.hashes && previous.python == now.python &&
         previous.request.driver == now.request.driver &&
         previous.request.gpus == now.request.gpus &&
         previous.request.libraries == now.request.libraries &&
         previous.request.steering == now.request.steering &&
         previous.request.base == now.request.base &&
         (previous.sources.empty() || builds_alike(previous, now));
}

/// Where wheels lie under their own names, as uv wants them, for as long as the cache does.
fs::path named_wheel(const fs::path& cache, const LockedWheel& wheel, const fs::path& from) {
  fs::path path = cache / "named-wheels" / wheel.digest.hex() / wheel.file;
  std::error_code error;
  if (fs::read_symlink(path, error) == from) return path;
  make_own_folders(path.parent_path());
  const TemporaryFolder aside(path.parent_path());
  fs::create_symlink(from, aside.path() / "link");
  fs::rename(aside.path() / "link", path);
  return path;
}

/// Suites beside the base's that `system` names, `bookworm-backports`: their archives are looked at
/// for that alone.
std::set<std::string> named_suites(const Request& request) {
  std::set<std::string> suites;
  for (const std::string& package : request.system) {
    const std::size_t slash = package.find('/');
    if (slash != std::string::npos) suites.insert(package.substr(slash + 1));
  }
  return suites;
}

const LockedDeb* find_deb(const std::vector<LockedDeb>& debs, std::string_view name) {
  const auto found = std::find_if(debs.begin(), debs.end(),
                                  [&](const LockedDeb& deb) { return deb.name == name; });
  return found == debs.end() ? nullptr : &*found;
}

std::span<const SuitePython> pythons_of(const Recipe& recipe) {
  const Distribution* distribution = find_distribution(recipe.distribution);
  return distribution == nullptr ? std::span<const SuitePython>{} : distribution->pythons;
}

/// `why`: what stands against the build that uv would install; empty: the base is an image, which
/// has its own Python alone.
Conflict python_conflict(const Recipe& recipe, std::string_view offered, std::string why) {
  Conflict conflict;
  conflict.headline = fmt::format("`base: {}` has Python {}, the recipe wants {}", recipe.base.text,
                                  offered, recipe.python->text);
  conflict.facts.push_back(
      shown_mistake(recipe.path, recipe.source, recipe.python->line, recipe.python->column,
                    fmt::format("the recipe asks for Python {}", recipe.python->text)));
  std::string fitting;  // of the recipe's own distribution, else of another
  for (const SuitePython& known : pythons_of(recipe)) {
    conflict.facts.push_back(
        fmt::format("{}:{} has Python {}", recipe.distribution, known.suite, known.minor));
    if (known.minor == recipe.python->text)
      fitting = fmt::format("{}:{}", recipe.distribution, known.suite);
  }
  if (fitting.empty()) {
    fitting = base_with_python(recipe.python->text);
    if (!fitting.empty())
      conflict.facts.push_back(fmt::format("{} has Python {}", fitting, recipe.python->text));
  }
  if (!why.empty()) conflict.facts.push_back(std::move(why));
  conflict.hint = fmt::format("write `python: \"{}\"`", offered);
  if (!fitting.empty()) conflict.hint += fmt::format(", or `base: {}`", fitting);
  if (recipe.base_is_image) return conflict;
  conflict.hint += fmt::format(
      ", or name a mirror of python-build-standalone with {}, or an archive with "
      "`sources: {{python: {{url: …, sha256: …}}}}`",
      kPythonMirrorVariable);
  return conflict;
}

/// The Python that the base is known to have where the recipe wants another; empty: the base's
/// will do, or is not known before its packages are.
std::string other_python(const Recipe& recipe) {
  if (!recipe.python || recipe.sources.python) return {};
  for (const SuitePython& known : pythons_of(recipe)) {
    if (known.suite == recipe.suite && known.minor != recipe.python->text) {
      return std::string(known.minor);
    }
  }
  return {};
}

/// Whether uv never had a build of it: known before anything is asked of the network.
bool is_too_old(std::string_view python) {
  return std::is_lt(compare_versions(python, kBuildPythons.front()));
}

/// Whether that is what happens where a place cannot be reached, or has no such file.
bool is_out_of_reach(const Error& error) {
  constexpr std::array<std::string_view, 4> kCodes = {"network", "certificate", "http-status",
                                                      "absent"};
  return std::find(kCodes.begin(), kCodes.end(), error.code()) != kCodes.end();
}

class Resolver {
 public:
  Resolver(const Recipe& recipe, const ResolveOptions& options, Http& http, Progress& progress)
      : recipe_(recipe), options_(options), http_(http), progress_(progress) {
    lock_.platform = options.platform;
  }

  Resolution run() {
    other_python_ = other_python(recipe_);
    if (!other_python_.empty() && is_too_old(recipe_.python->text)) return no_build();
    incomplete_ = kept() != nullptr && !lock_gaps(recipe_, *kept()).empty();
    lock_.epoch = options_.epoch;
    lock_.request = request_of(recipe_);
    lock_.settings = settings_of(recipe_);
    lock_.distribution = recipe_.distribution;
    lock_.suite = recipe_.suite;
    if (auto conflict = recipe_.base_is_image ? base() : debs()) return std::move(*conflict);
    if (auto conflict = python()) return std::move(*conflict);
    if (!options_.base_alone) {
      if (auto conflict = wheels()) return std::move(*conflict);
    }
    lock_.revision = least_revision(lock_);
    return std::move(lock_);
  }

 private:
  const Lock* kept() const {
    const Lock* previous = options_.previous;
    const bool usable =
        previous != nullptr && !options_.upgrade && previous->platform == lock_.platform;
    return usable ? previous : nullptr;
  }

  /// Packages of the lock that is to be replaced, where it was made for the same base from the same
  /// sources: what these know now must not be older.
  std::vector<LockedDeb> locked_before() const {
    const Lock* previous = options_.previous;
    const bool same = previous != nullptr && previous->platform == lock_.platform &&
                      previous->request.base == lock_.request.base &&
                      previous->settings.sources == lock_.settings.sources &&
                      named_suites(previous->request) == named_suites(lock_.request);
    return same ? previous->debs : std::vector<LockedDeb>{};
  }

  std::optional<Conflict> base() {
    const Lock* before = kept();
    if (before != nullptr && (!before->base || before->request.base != lock_.request.base)) {
      before = nullptr;
    }
    if (before != nullptr && same_debian(before->request, lock_.request)) {
      lock_.base = before->base;
      lock_.distribution = before->distribution;
      lock_.suite = before->suite;
      lock_.python = before->python;
      lock_.debs = before->debs;
      return std::nullopt;
    }
    auto found = options_.find_base(before == nullptr ? std::nullopt
                                                      : std::optional(before->base->manifest));
    if (auto* conflict = std::get_if<Conflict>(&found)) return std::move(*conflict);
    FoundBase& base = std::get<FoundBase>(found);
    lock_.base = std::move(base.base);
    lock_.distribution = std::move(base.distribution);
    lock_.suite = std::move(base.suite);
    lock_.python = std::move(base.python);
    if (!base.system) return std::nullopt;
    auto conflict = take_debs(resolve_on_base({recipe_, *base.system, system_request()}, http_,
                                              options_.cache, progress_));
    if (conflict) return conflict;
    if (base.lacks_python) return python_on_top(*std::move(base.lacks_python));
    if (!lock_.python.empty()) lock_.python = python_after(lock_);
    return std::nullopt;
  }

  /// The interpreter that the packages bring to a base without one.
  std::optional<Conflict> python_on_top(Conflict otherwise) {
    lock_.python = python_in(environment_of(lock_));
    if (lock_.python.empty()) return otherwise;
    if (recipe_.python && recipe_.python->text != lock_.python_minor()) {
      return python_conflict(recipe_, lock_.python_minor(), {});
    }
    lock_.base->interpreter = "/usr/bin/python" + lock_.python_minor();
    return std::nullopt;
  }

  /// What of `system` and of the lock before is asked of the package sources.
  DebianRequest system_request() const {
    DebianRequest request;
    request.architecture = architecture_of(lock_.platform);
    request.before = locked_before();
    request.same_as_before =
        !request.before.empty() && same_debian(options_.previous->request, lock_.request);
    request.packages = recipe_.system;
    request.recipe = recipe_.path;
    request.source = recipe_.source;
    return request;
  }

  std::optional<Conflict> take_debs(std::variant<DebianResolution, Conflict> found) {
    if (auto* conflict = std::get_if<Conflict>(&found)) return std::move(*conflict);
    lock_.debs = std::get<DebianResolution>(std::move(found)).debs;
    return std::nullopt;
  }

  std::optional<Conflict> debs() {
    if (kept() != nullptr && !incomplete_ && same_debian(kept()->request, lock_.request)) {
      lock_.debs = kept()->debs;
      return std::nullopt;
    }
    DebianRequest request = system_request();
    request.distribution = recipe_.distribution;
    request.suite = recipe_.suite;
    if (recipe_.wants_python() && !recipe_.sources.python && !takes_uvs_python()) {
      Placed python = recipe_.python ? *recipe_.python : recipe_.base;
      python.text = "python3";
      request.packages.push_back(python);
      // Debian keeps distutils apart from the library; below Python 3.10 pip needs it.
      if (recipe_.suite == "bullseye" || recipe_.suite == "focal") {
        python.text = "python3-distutils";
        request.packages.push_back(python);
      }
    }
    return take_debs(
        resolve_debian(request, debian_sources(recipe_), http_, options_.cache, progress_));
  }

  std::optional<Conflict> python() {
    if (recipe_.sources.python) return own_python();
    if (!recipe_.wants_python()) return std::nullopt;
    if (recipe_.base_is_image) return listed_python_conflict(recipe_, lock_);
    if (takes_uvs_python()) return uvs_python();
    lock_.python = python_in(environment_of(lock_));
    if (lock_.python.empty()) {
      throw failure("no-python", "the base's packages hold no Python interpreter");
    }
    if (recipe_.python && recipe_.python->text != lock_.python_minor()) {
      // Nobody knew: the same packages again, without the base's Python.
      other_python_ = lock_.python_minor();
      if (auto conflict = debs()) return conflict;
      return uvs_python();
    }
    return listed_python_conflict(recipe_, lock_);
  }

  Conflict no_build() const {
    return python_conflict(recipe_, other_python_,
                           fmt::format("uv has no build of Python {}", recipe_.python->text));
  }

  /// Whether the recipe's Python was uv's when `lock` was made.
  bool holds_uvs_python(const Lock* lock) const {
    return lock != nullptr && lock->interpreter && lock->request.interpreter.empty() &&
           recipe_.python && recipe_.python->text == lock->python_minor() &&
           !recipe_.sources.python;
  }

  bool takes_uvs_python() const { return !other_python_.empty() || holds_uvs_python(kept()); }

  /// The build that uv would install where the base has another Python than the recipe wants.
  std::optional<Conflict> uvs_python() {
    const std::string& minor = recipe_.python->text;
    if (holds_uvs_python(kept())) {
      lock_.interpreter = kept()->interpreter;
    } else {
      const auto build = find_python_build(provide_uv(options_.cache, progress_), minor,
                                           machine_name(architecture_of(lock_.platform)));
      if (!build) return no_build();
      try {
        lock_.interpreter = lock_python_build(*build, http_, options_.cache, progress_);
      } catch (const Error& error) {
        if (!is_out_of_reach(error)) throw;
        return python_conflict(
            recipe_, other_python_,
            fmt::format("uv's build of Python {} cannot be had from `{}`: {}", build->version,
                        display_url(build->url), error.frames().back()));
      }
    }
    lock_.python = lock_.interpreter->version;
    return listed_python_conflict(recipe_, lock_);
  }

  std::optional<Conflict> own_python() {
    const bool known = kept() != nullptr && kept()->interpreter &&
                       kept()->request.interpreter == lock_.request.interpreter;
    lock_.interpreter =
        known ? *kept()->interpreter
              : lock_interpreter(*recipe_.sources.python, http_, options_.cache, progress_);
    lock_.python = lock_.interpreter->version;
    if (!recipe_.python || recipe_.python->text == lock_.python_minor()) {
      return listed_python_conflict(recipe_, lock_);
    }
    Conflict conflict;
    conflict.headline = fmt::format("the archive holds Python {}, the recipe wants {}",
                                    lock_.python, recipe_.python->text);
    conflict.facts.push_back(
        shown_mistake(recipe_.path, recipe_.source, recipe_.python->line, recipe_.python->column,
                      fmt::format("the recipe asks for Python {}", recipe_.python->text)));
    conflict.hint = fmt::format("write `python: \"{}\"`, or another archive's URL and digest",
                                lock_.python_minor());
    return conflict;
  }

  std::optional<Conflict> wheels() {
    if (!asks_for_wheels(lock_.request)) return std::nullopt;
    const bool may_keep = kept() != nullptr && !incomplete_ && options_.moved.empty();
    if (may_keep && same_wheels(*kept(), lock_) && source_changes(recipe_, *kept()).empty()) {
      lock_.wheels = kept()->wheels;
      lock_.sources = kept()->sources;
      lock_.build_wheels = kept()->build_wheels;
      lock_.cuda = kept()->cuda;
      return std::nullopt;
    }
    WheelRequest request;
    request.python = lock_.python;
    request.glibc = glibc_version(lock_);
    request.architecture = architecture_of(lock_.platform);
    request.recipe = &recipe_;
    request.previous = kept() != nullptr ? kept() : options_.sibling;
    request.moved = options_.moved;
    if (options_.build && !lock_.base) {
      request.build = [this](const SourceRelease& release, const std::vector<LockedWheel>& image) {
        return options_.build(release, base_for_builds(image));
      };
    }
    auto found = ask_for_wheels(request);
    if (auto* conflict = std::get_if<Conflict>(&found)) return std::move(*conflict);
    auto& resolution = std::get<WheelResolution>(found);
    if (options_.note) {
      if (!resolution.unwanted.empty()) options_.note(unwanted_note(resolution));
      for (const std::string& one : resolution.yanked) options_.note(one);
      for (const std::string& one : resolution.limit_notes) options_.note(one);
    }
    if (options_.limit) {
      for (const std::string& one : resolution.limits) options_.limit(one);
    }
    for (const LockedWheel& wheel : resolution.wheels) {
      const auto url = resolution.urls.find(wheel.digest.hex());
      if (url == resolution.urls.end()) continue;  // built here
      remember_location(options_.cache, wheel.digest, {url->second, wheel.size_bytes});
    }
    lock_.sources = std::move(resolution.sources);
    lock_.build_wheels = std::move(resolution.build_wheels);
    lock_.wheels = std::move(resolution.wheels);
    lock_.cuda = std::move(resolution.cuda);
    return std::nullopt;
  }

  Lock base_for_builds(const std::vector<LockedWheel>& image) const {
    Lock base = lock_;
    base.wheels = image;
    if (kept() == nullptr) return base;
    base.sources = kept()->sources;
    base.build_wheels = kept()->build_wheels;
    return base;
  }

  std::variant<BuiltRelease, Conflict> build_direct(const DirectRequirement& wanted,
                                                    const std::vector<LockedWheel>& image) const {
    const bool moves = std::find(options_.moved.begin(), options_.moved.end(), wanted.name) !=
                       options_.moved.end();
    auto answer = options_.build_direct(wanted, base_for_builds(image), moves ? nullptr : kept());
    if (auto* one = std::get_if<BuiltRelease>(&answer)) {
      one->path = named_wheel(options_.cache, one->wheel, one->path);
    }
    return answer;
  }

  WheelAnswer ask_with(WheelRequest& request, const std::vector<BuiltRelease>& direct) const {
    request.direct = &direct;
    const fs::path uv = provide_uv(options_.cache, progress_);
    return resolve_wheels(request, uv, http_, options_.cache, progress_);
  }

  /// What the image will have without the packages by address; empty: nothing goes together so.
  std::vector<LockedWheel> image_without_direct(const WheelRequest& request) const {
    WheelRequest asked = request;
    const std::vector<BuiltRelease> none;
    const WheelAnswer found = ask_with(asked, none);
    const auto* resolution = std::get_if<WheelResolution>(&found);
    return resolution == nullptr ? std::vector<LockedWheel>{} : resolution->wheels;
  }

  /// Packages by address first: uv is only told of wheels. Where such a build wants to know what
  /// the image has, that is found without them, and built again where it comes out otherwise.
  WheelAnswer ask_for_wheels(WheelRequest& request) {
    std::optional<std::vector<LockedWheel>> image;
    for (int round = 1;; ++round) {
      DirectSearch direct(recipe_, {lock_.python, std::string(machine_name(request.architecture))},
                          [&](const DirectRequirement& wanted) {
                            const bool wants = wants_image(recipe_, wanted.name);
                            if (wants && !image) image = image_without_direct(request);
                            return build_direct(wanted,
                                                wants ? *image : std::vector<LockedWheel>{});
                          });
      WheelAnswer found = ask_with_direct(request, direct);
      const auto* resolution = std::get_if<WheelResolution>(&found);
      if (resolution == nullptr || round == kMostDirectRounds) return found;
      const std::vector<BuiltRelease>& built = direct.built();
      const bool stale = std::any_of(built.begin(), built.end(), [&](const BuiltRelease& one) {
        return is_stale(one.matched, resolution->wheels);
      });
      if (!stale) return found;
      image = resolution->wheels;
    }
  }

  WheelAnswer ask_with_direct(WheelRequest& request, DirectSearch& direct) const {
    for (;;) {
      if (auto conflict = direct.build_needed()) return std::move(*conflict);
      WheelAnswer found = ask_with(request, direct.built());
      const auto* conflict = std::get_if<Conflict>(&found);
      const bool more = conflict != nullptr ? direct.needs_more(*conflict)
                                            : direct.needs_more(std::get<WheelResolution>(found));
      if (!more) return found;
    }
  }

  const Recipe& recipe_;
  const ResolveOptions& options_;
  Http& http_;
  Progress& progress_;
  std::string other_python_;  ///< minor of the base's, which will not do; empty: it will
  bool incomplete_ = false;   ///< the previous lock lacks something that the recipe asks for
  Lock lock_;
};

}  // namespace

std::string glibc_version(const Lock& lock) {
  if (lock.base) return lock.base->glibc;
  const LockedDeb* libc = find_deb(lock.debs, "libc6");
  if (libc == nullptr) throw failure("no-glibc", "the base has no `libc6` package");
  return version_prefix(upstream_version(libc->version), 2);
}

std::string python_after(const Lock& lock) {
  const std::string name = "python" + lock.python_minor();
  if (!lock.base || lock.base->interpreter != "/usr/bin/" + name) return lock.python;
  const LockedDeb* program = find_deb(lock.debs, name + "-minimal");
  if (program == nullptr) return lock.python;
  std::string version{upstream_version(program->version)};
  std::erase(version, '~');  // 3.14.0~rc2
  return version;
}

void require_known_revision(const Lock& lock) {
  if (lock.revision <= Lock::kRevision) return;
  throw usage_error("lock-newer", "the lock has format revision {}, this mlenv writes {}",
                    lock.revision, Lock::kRevision)
      .hint("use the mlenv that wrote it, or a newer one; or remove the lock to resolve anew");
}

Resolution resolve(const Recipe& recipe, const ResolveOptions& options, Http& http,
                   Progress& progress) {
  if (options.previous != nullptr) require_known_revision(*options.previous);
  return Resolver(recipe, options, http, progress).run();
}

WheelPlaces wheel_places(const Recipe& recipe, const Lock& lock,
                         const std::vector<LockedWheel>& wheels, const fs::path& cache,
                         Progress& progress) {
  WheelPlaces places;
  std::vector<LockedWheel> unknown;
  for (const LockedWheel& wheel : wheels) {
    if (const auto location = recall_location(cache, wheel.digest)) {
      places.urls.emplace(wheel.digest.hex(), location->url);
    } else {
      unknown.push_back(wheel);
    }
  }
  if (unknown.empty()) return places;
  WheelPlaces asked = wheel_places_anew(recipe, lock, unknown, cache, progress);
  places.urls.merge(asked.urls);
  places.others = std::move(asked.others);
  return places;
}

std::string source_url(const Recipe& recipe, const Lock& lock, const LockedSource& source,
                       const fs::path& cache, Progress& progress) {
  WheelRequest request;
  request.python = lock.python;
  request.glibc = glibc_version(lock);
  request.architecture = architecture_of(lock.platform);
  request.recipe = &recipe;
  const fs::path uv = provide_uv(cache, progress);
  const auto found = locate_source(source.name, source.version, request, uv, cache);
  return found && found->digest == source.digest ? found->url : std::string{};
}

WheelPlaces wheel_places_anew(const Recipe& recipe, const Lock& lock,
                              const std::vector<LockedWheel>& wheels, const fs::path& cache,
                              Progress& progress) {
  WheelRequest request;
  request.python = lock.python;
  request.glibc = glibc_version(lock);
  request.architecture = architecture_of(lock.platform);
  request.recipe = &recipe;
  const fs::path uv = provide_uv(cache, progress);
  WheelPlaces places = locate_wheels(wheels, request, uv, cache, progress);
  for (const LockedWheel& wheel : wheels) {
    const auto found = places.urls.find(wheel.digest.hex());
    if (found != places.urls.end()) {
      remember_location(cache, wheel.digest, {found->second, wheel.size_bytes});
    }
  }
  return places;
}

}  // namespace mlenv
