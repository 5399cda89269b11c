#include "recipes/resolve/resolve.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "recipes/environment.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/resolve/locations.hpp"
#include "recipes/resolve/lock_gaps.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Python of each Debian release (its `python3` package).
struct SuitePython {
  std::string_view suite;
  std::string_view minor;
};
constexpr std::array<SuitePython, 3> kSuitePythons = {
    {{"bullseye", "3.9"}, {"bookworm", "3.11"}, {"trixie", "3.13"}}};

bool wants_python(const Request& request) {
  return !request.python.empty() || !request.framework.empty() || !request.packages.empty();
}

bool wants_wheels(const Request& request) {
  return !request.framework.empty() || !request.packages.empty();
}

bool same_debian(const Request& a, const Request& b) {
  return a.base == b.base && a.python == b.python && a.system == b.system &&
         wants_python(a) == wants_python(b);
}

bool same_wheels(const Lock& previous, const Lock& now) {
  return previous.request.framework == now.request.framework &&
         previous.request.cuda == now.request.cuda &&
         previous.request.packages == now.request.packages && previous.python == now.python &&
         previous.request.base == now.request.base;
}

const LockedDeb* find_deb(const std::vector<LockedDeb>& debs, std::string_view name) {
  const auto found = std::find_if(debs.begin(), debs.end(),
                                  [&](const LockedDeb& deb) { return deb.name == name; });
  return found == debs.end() ? nullptr : &*found;
}

std::string glibc_version(const std::vector<LockedDeb>& debs) {
  const LockedDeb* libc = find_deb(debs, "libc6");
  if (libc == nullptr) throw failure("no-glibc", "the base has no `libc6` package");
  return version_prefix(upstream_version(libc->version), 2);
}

Conflict python_conflict(const Recipe& recipe, std::string_view offered) {
  Conflict conflict;
  conflict.headline = fmt::format("`base: {}` has Python {}, the recipe wants {}", recipe.base.text,
                                  offered, recipe.python->text);
  conflict.facts.push_back(
      shown_mistake(recipe.path, recipe.source, recipe.python->line, recipe.python->column,
                    fmt::format("the recipe asks for Python {}", recipe.python->text)));
  std::string_view fitting;
  for (const SuitePython& known : kSuitePythons) {
    conflict.facts.push_back(fmt::format("debian:{} has Python {}", known.suite, known.minor));
    if (known.minor == recipe.python->text) fitting = known.suite;
  }
  conflict.hint = fmt::format("write `python: \"{}\"`", offered);
  if (!fitting.empty()) conflict.hint += fmt::format(", or `base: debian:{}`", fitting);
  return conflict;
}

/// Known before anything is asked of the network.
std::optional<Conflict> hopeless_python(const Recipe& recipe) {
  if (!recipe.python) return std::nullopt;
  for (const SuitePython& known : kSuitePythons) {
    if (known.suite == recipe.suite && known.minor != recipe.python->text) {
      return python_conflict(recipe, known.minor);
    }
  }
  return std::nullopt;
}

class Resolver {
 public:
  Resolver(const Recipe& recipe, const ResolveOptions& options, Http& http, Progress& progress)
      : recipe_(recipe), options_(options), http_(http), progress_(progress) {}

  Resolution run() {
    if (auto conflict = hopeless_python(recipe_)) return std::move(*conflict);
    incomplete_ = kept() != nullptr && !lock_gaps(recipe_, *kept()).empty();
    lock_.epoch = options_.epoch;
    lock_.request = request_of(recipe_);
    lock_.settings = settings_of(recipe_);
    lock_.revision = revision_of(lock_.settings);
    lock_.distribution = recipe_.distribution;
    lock_.suite = recipe_.suite;
    if (auto conflict = debs()) return std::move(*conflict);
    if (auto conflict = python()) return std::move(*conflict);
    if (auto conflict = wheels()) return std::move(*conflict);
    return std::move(lock_);
  }

 private:
  const Lock* kept() const {
    const Lock* previous = options_.previous;
    const bool usable =
        previous != nullptr && !options_.upgrade && previous->platform == lock_.platform;
    return usable ? previous : nullptr;
  }

  std::optional<Conflict> debs() {
    if (kept() != nullptr && !incomplete_ && same_debian(kept()->request, lock_.request)) {
      lock_.debs = kept()->debs;
      return std::nullopt;
    }
    DebianRequest request;
    request.suite = recipe_.suite;
    request.packages = recipe_.system;
    request.recipe = recipe_.path;
    request.source = recipe_.source;
    if (recipe_.wants_python()) {
      Placed python = recipe_.python ? *recipe_.python : recipe_.base;
      python.text = "python3";
      request.packages.push_back(std::move(python));
    }
    auto found = resolve_debian(request, debian_sources(recipe_), http_, options_.cache, progress_);
    if (auto* conflict = std::get_if<Conflict>(&found)) return std::move(*conflict);
    lock_.debs = std::get<DebianResolution>(std::move(found)).debs;
    return std::nullopt;
  }

  std::optional<Conflict> python() {
    if (!recipe_.wants_python()) return std::nullopt;
    lock_.python = python_in(environment_of(lock_));
    if (lock_.python.empty()) {
      throw failure("no-python", "the base's packages hold no Python interpreter");
    }
    if (recipe_.python && recipe_.python->text != lock_.python_minor()) {
      return python_conflict(recipe_, lock_.python_minor());
    }
    return std::nullopt;
  }

  std::optional<Conflict> wheels() {
    if (!wants_wheels(lock_.request)) return std::nullopt;
    if (kept() != nullptr && !incomplete_ && same_wheels(*kept(), lock_)) {
      lock_.wheels = kept()->wheels;
      lock_.cuda = kept()->cuda;
      return std::nullopt;
    }
    WheelRequest request;
    request.python = lock_.python;
    request.glibc = glibc_version(lock_.debs);
    request.recipe = &recipe_;
    request.previous = kept();
    const fs::path uv = provide_uv(options_.cache, progress_);
    auto found = resolve_wheels(request, uv, http_, options_.cache, progress_);
    if (auto* conflict = std::get_if<Conflict>(&found)) return std::move(*conflict);
    auto& resolution = std::get<WheelResolution>(found);
    for (const LockedWheel& wheel : resolution.wheels) {
      remember_location(options_.cache, wheel.digest,
                        {resolution.urls.at(wheel.digest.hex()), wheel.size_bytes});
    }
    lock_.wheels = std::move(resolution.wheels);
    lock_.cuda = std::move(resolution.cuda);
    return std::nullopt;
  }

  const Recipe& recipe_;
  const ResolveOptions& options_;
  Http& http_;
  Progress& progress_;
  bool incomplete_ = false;  ///< the previous lock lacks something that the recipe asks for
  Lock lock_;
};

}  // namespace

Resolution resolve(const Recipe& recipe, const ResolveOptions& options, Http& http,
                   Progress& progress) {
  if (options.previous != nullptr && options.previous->revision > Lock::kRevision) {
    throw usage_error("lock-newer", "the lock has format revision {}, this mlenv writes {}",
                      options.previous->revision, Lock::kRevision)
        .hint("use the mlenv that wrote it, or a newer one; or remove the lock to resolve anew");
  }
  return Resolver(recipe, options, http, progress).run();
}

std::map<std::string, std::string> wheel_urls(const Recipe& recipe, const Lock& lock,
                                              const std::vector<LockedWheel>& wheels,
                                              const fs::path& cache, Progress& progress) {
  std::map<std::string, std::string> urls;
  std::vector<LockedWheel> unknown;
  for (const LockedWheel& wheel : wheels) {
    if (const auto location = recall_location(cache, wheel.digest)) {
      urls.emplace(wheel.digest.hex(), location->url);
    } else {
      unknown.push_back(wheel);
    }
  }
  if (!unknown.empty()) urls.merge(wheel_urls_anew(recipe, lock, unknown, cache, progress));
  return urls;
}

std::map<std::string, std::string> wheel_urls_anew(const Recipe& recipe, const Lock& lock,
                                                   const std::vector<LockedWheel>& wheels,
                                                   const fs::path& cache, Progress& progress) {
  WheelRequest request;
  request.python = lock.python;
  request.glibc = glibc_version(lock.debs);
  request.recipe = &recipe;
  const fs::path uv = provide_uv(cache, progress);
  std::map<std::string, std::string> urls = locate_wheels(wheels, request, uv, cache, progress);
  for (const LockedWheel& wheel : wheels) {
    const auto found = urls.find(wheel.digest.hex());
    if (found != urls.end()) {
      remember_location(cache, wheel.digest, {found->second, wheel.size_bytes});
    }
  }
  return urls;
}

}  // namespace mlenv
