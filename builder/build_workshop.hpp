#pragma once
// One build of a wheel: its folders, and the environment that it runs in. In the sandbox, by the
// image's own interpreter on the image's base, without network, at fixed paths, times, locale and
// hash seed.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/progress.hpp"
#include "builder/inputs.hpp"
#include "builder/source_archive.hpp"
#include "images/store.hpp"
#include "recipes/resolve/source_release.hpp"

namespace mlenv {

/// What it works with, all of which outlives it.
struct BuildPlace {
  const Recipe& recipe;  ///< its package sources, and its folder
  Store& store;
  Http& http;
  fs::path cache;
  Progress& progress;
  unsigned jobs = 0;
  VendorFolders vendor{};
  std::vector<std::string> snapshots{};  ///< as InputSources has them
};

class BuildWorkshop {
 public:
  /// `base` is a lock with Debian packages and Python; `shown` names the source in messages;
  /// `subdirectory` of it is what is built, empty: its top.
  BuildWorkshop(const BuildPlace& place, const Lock& base, std::string shown,
                std::string subdirectory = {});

  /// Has `lay` lay out the source afresh: whatever a hook did to it, the next one does not see it.
  /// Throws `bad-source` where that is no Python project.
  void unpack(const std::function<void(const fs::path& folder)>& lay);
  const BuildSystem& build_system() const { return system_; }

  /// Makes an environment of these wheels the one that hooks run in; `urls` by hex digest, as far
  /// as they are known.
  void equip(const std::vector<LockedWheel>& wheels, std::map<std::string, std::string> urls);

  /// What the build wants beyond `build_system`.
  std::vector<std::string> more_requirements();
  /// Builds; the wheel's path, which holds as long as this object. Throws `build-failed`.
  fs::path wheel();

 private:
  const fs::path& folder() const { return work_->path(); }
  fs::path top() const { return folder() / "srv/src" / subdirectory_; }
  void require_project() const;
  void require_plain(const fs::path& path) const;
  Error failed(std::string why) const;
  Lock environment(const std::vector<LockedWheel>& wheels) const;
  void run(const std::string& hook);

  BuildPlace place_;
  const Lock& base_;
  std::string shown_;
  std::string subdirectory_;
  std::optional<TemporaryFolder> work_;
  fs::path root_;
  BuildSystem system_;
};

/// What a built wheel says of itself. Throws `build-failed`.
ReleaseMetadata read_wheel_metadata(const fs::path& wheel);

}  // namespace mlenv
