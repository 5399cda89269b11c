#pragma once
// One build of a wheel: its folders, and the environment that it runs in. In the sandbox, by the
// image's own interpreter on the image's base, at fixed paths, times, locale and hash seed; without
// network, unless the recipe gives builds the host's.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/progress.hpp"
#include "base/sandbox/sandbox.hpp"
#include "builder/build_settings.hpp"
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
  /// For builds with the network, as RunOptions has them (run/run_step.hpp).
  std::function<std::vector<std::string>(const fs::path& root, const fs::path& folder)> lend{};
  std::string lent_at{};
};

/// What is built.
struct BuildSubject {
  std::string shown;         ///< names the source in messages
  std::string name;          ///< of the package, normalised
  std::string subdirectory;  ///< of the source; empty: its top
  BuildSettings settings;
};

class BuildWorkshop {
 public:
  /// `base` is a lock with Debian packages and Python.
  BuildWorkshop(const BuildPlace& place, const Lock& base, BuildSubject subject);

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

  /// How hooks are run, whatever is built (build_memory.hpp).
  static std::string hooks();

 private:
  const fs::path& folder() const { return work_->path(); }
  fs::path top() const { return folder() / "srv/src" / subject_.subdirectory; }
  void require_project() const;
  void require_plain(const fs::path& path) const;
  Error failed(std::string why) const;
  Error failed_saying(std::string_view said) const;
  Lock environment(const std::vector<LockedWheel>& wheels) const;
  std::vector<std::string> variables(const std::vector<std::string>& machine) const;
  void run(const std::string& hook);
  std::optional<Exit> run_to_end(SandboxCommand& command, std::string& said);

  BuildPlace place_;
  const Lock& base_;
  BuildSubject subject_;
  std::optional<TemporaryFolder> work_;
  fs::path root_;
  std::string cuda_home_;           ///< where the environment holds nvcc
  std::vector<std::string> tools_;  ///< names of what is in it
  BuildSystem system_;
};

/// What a built wheel says of itself. Throws `build-failed`.
ReleaseMetadata read_wheel_metadata(const fs::path& wheel);

}  // namespace mlenv
