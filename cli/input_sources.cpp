#include "cli/input_sources.hpp"

#include <memory>
#include <mutex>
#include <optional>

#include "cli/run_steps.hpp"
#include "cli/settings.hpp"
#include "recipes/machine_config.hpp"
#include "recipes/resolve/base_image.hpp"
#include "recipes/resolve/debian.hpp"
#include "recipes/resolve/python_build.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/source_tree.hpp"

namespace mlenv::cli {
namespace {

VendorFolders vendor_folders(const Recipe& recipe) {
  std::vector<fs::path> folders;
  if (const auto given = variable("MLENV_VENDOR")) folders.emplace_back(*given);
  folders.push_back(usual_vendor_folder(recipe));
  return VendorFolders{std::move(folders)};
}

/// The recipe's own first.
std::vector<std::string> snapshots_for(const Recipe& recipe) {
  std::vector<std::string> archives = recipe.sources.snapshots;
  const std::vector<std::string> more = machine_config().snapshots;
  archives.insert(archives.end(), more.begin(), more.end());
  return archives;
}

/// Where missing wheels are; those that were built from source are built again.
WheelPlaces places_of_wheels(Ui& ui, const Recipe& recipe, const Lock& lock,
                             const std::vector<LockedWheel>& wheels, bool anew) {
  std::vector<LockedWheel> published;
  WheelPlaces places;
  for (const LockedWheel& wheel : wheels) {
    if (lock.source_of(wheel) == nullptr) {
      published.push_back(wheel);
      continue;
    }
    if (!ui.store().path_of(wheel.digest)) release_builder(ui, recipe, 0).rebuild(wheel, lock);
    places.urls.emplace(wheel.digest.hex(),
                        "file://" + ui.store().path_of(wheel.digest).value().string());
  }
  if (published.empty()) return places;
  const auto ask = anew ? wheel_places_anew : wheel_places;
  WheelPlaces asked = ask(recipe, lock, published, cache_folder(), ui.progress());
  places.urls.merge(asked.urls);
  places.others = std::move(asked.others);
  return places;
}

/// The Debian sources of the machine, or of the image that is the base, read when first asked for;
/// from many threads.
class DebianSources {
 public:
  DebianSources(Ui& ui, const Recipe& recipe, const Lock& lock)
      : ui_(ui), recipe_(recipe), lock_(lock) {}
  std::vector<std::string> urls(const LockedDeb& deb) {
    const std::lock_guard guard{mutex_};
    if (!sources_) sources_ = lock_.base ? of_base() : debian_sources(recipe_);
    return deb_urls(deb, *sources_);
  }

 private:
  /// The base's own files tell; a vendored copy of it is as good as its registry's.
  std::vector<DebianSource> of_base() {
    for (const LockedFile& file : base_files(lock_.base.value())) {
      keep_vendored(ui_.store(), vendor_folders(recipe_), file);
    }
    return package_sources(recipe_, lock_, base_access(ui_));
  }

  Ui& ui_;
  const Recipe& recipe_;
  const Lock& lock_;
  std::mutex mutex_;
  std::optional<std::vector<DebianSource>> sources_;
};

}  // namespace

BaseAccess base_access(Ui& ui) {
  return {ui.store(), ui.http(), registry_options(/*plain_http=*/false), ui.progress()};
}

fs::path usual_vendor_folder(const Recipe& recipe) { return recipe.folder() / kVendorFolder; }

ReleaseBuilder release_builder(Ui& ui, const Recipe& recipe, unsigned jobs) {
  BuildPlace place{recipe, ui.store(), ui.http(), cache_folder(), ui.progress(), jobs};
  place.vendor = vendor_folders(recipe);
  place.snapshots = snapshots_for(recipe);
  RunOptions run = run_options(recipe, {});
  place.lend = std::move(run.lend);
  place.lent_at = std::move(run.lent_at);
  return ReleaseBuilder(std::move(place));
}

InputSources input_sources(Ui& ui, const Recipe& recipe, const Lock& lock) {
  InputSources sources;
  sources.vendor = vendor_folders(recipe);
  sources.snapshots = snapshots_for(recipe);
  sources.wheel_places = [&](const std::vector<LockedWheel>& wheels, bool anew) {
    return places_of_wheels(ui, recipe, lock, wheels, anew);
  };
  sources.deb_urls = [debian = std::make_shared<DebianSources>(ui, recipe, lock)](
                         const LockedDeb& deb) { return debian->urls(deb); };
  sources.source_url = [&](const LockedSource& source) {
    if (!source.url.empty()) return source.url;
    return source_url(recipe, lock, source, cache_folder(), ui.progress());
  };
  sources.python_url = interpreter_url(recipe, lock, cache_folder());
  sources.provide_base = [&] { provide_base(recipe, lock, base_access(ui)); };
  return sources;
}

}  // namespace mlenv::cli
