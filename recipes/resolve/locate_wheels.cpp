#include <algorithm>

#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {
namespace {

UvAnswer ask_for(const std::vector<LockedWheel>& wheels, const WheelRequest& request,
                 const fs::path& uv, const fs::path& cache) {
  UvQuestion question;
  question.no_sources = true;
  question.no_dependencies = true;
  for (const LockedWheel& wheel : wheels) {
    question.requirements.push_back(fmt::format("{}=={}", wheel.name, wheel.version));
  }
  return ask_uv(question, request, uv, cache);
}

void take(const PylockWheel& found, const std::vector<LockedWheel>& wheels, WheelPlaces& places) {
  for (const LockedWheel& wheel : wheels) {
    if (found.file != wheel.file) continue;
    // A page tells no digest; what is fetched from there is held against it.
    if (!found.digest || found.digest == wheel.digest) {
      places.urls.emplace(wheel.digest.hex(), found.url);
    } else {
      places.others.emplace(wheel.digest.hex(), *found.digest);
    }
  }
}

void take(const PylockPackages& packages, const std::vector<LockedWheel>& wheels,
          WheelPlaces& places) {
  for (const PylockPackage& package : packages) {
    for (const PylockWheel& found : package.wheels) take(found, wheels, places);
  }
}

/// One missing wheel spoils the answer for all: halves are asked until it stands alone.
void locate(const std::vector<LockedWheel>& wheels, const WheelRequest& request, const fs::path& uv,
            const fs::path& cache, WheelPlaces& places) {
  if (wheels.empty()) return;
  const UvAnswer answer = ask_for(wheels, request, uv, cache);
  if (const auto* packages = std::get_if<PylockPackages>(&answer)) {
    take(*packages, wheels, places);
    return;
  }
  if (wheels.size() == 1) return;
  const auto middle = wheels.begin() + static_cast<std::ptrdiff_t>(wheels.size() / 2);
  locate({wheels.begin(), middle}, request, uv, cache, places);
  locate({middle, wheels.end()}, request, uv, cache, places);
}

}  // namespace

std::optional<SourceRelease> locate_source(const std::string& name, const std::string& version,
                                           const WheelRequest& request, const fs::path& uv,
                                           const fs::path& cache) {
  UvQuestion question;
  question.requirements = {fmt::format("{}=={}", name, version)};
  question.no_dependencies = true;
  question.known = {{name, version, {}, {}, {}}};
  const UvAnswer answer = ask_uv(question, request, uv, cache);
  const auto* packages = std::get_if<PylockPackages>(&answer);
  if (packages == nullptr || packages->size() != 1) return std::nullopt;
  const auto& source = packages->front().source;
  if (!source || !source->digest) return std::nullopt;
  return SourceRelease{name,        version,         source->file,
                       source->url, *source->digest, source->size_bytes.value_or(0)};
}

WheelPlaces locate_wheels(const std::vector<LockedWheel>& wheels, const WheelRequest& request,
                          const fs::path& uv, const fs::path& cache, Progress& progress) {
  WheelPlaces places;
  if (wheels.empty()) return places;
  Activity activity(progress, "locating wheels", wheels.size(), "wheels");
  locate(wheels, request, uv, cache, places);
  activity.result(fmt::format("{} of {} found", places.urls.size(), wheels.size()));
  return places;
}

}  // namespace mlenv
