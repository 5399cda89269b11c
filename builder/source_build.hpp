#pragma once
// A wheel made from one source: its tools are chosen, and what was not built before with them is
// built (build_memory.hpp, build_workshop.hpp).
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "builder/build_memory.hpp"
#include "builder/build_tools.hpp"
#include "builder/build_workshop.hpp"
#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

WheelTags tags_of(const Lock& base);

struct WheelAt {
  fs::path path;
  std::string file;     ///< its own name
  std::string name;     ///< of the package that it must be of
  std::string version;  ///< the same; empty: whatever the file says
};

/// Into the store; what of it a lock holds. Throws `build-failed` for another package's, or one
/// that is not for `base`.
LockedWheel keep_wheel(Store& store, const WheelAt& at, const Lock& base);

class SourceBuild {
 public:
  /// Lays out a source; tells the size of its archive, where it is one of an index.
  using Lay = std::function<void(LockedSource& source, const fs::path& folder)>;

  /// `place` and `base`, which is as BuildRelease has it, outlive it.
  SourceBuild(const BuildPlace& place, LockedSource source, Lay lay, const Lock& base);
  SourceBuild(const SourceBuild&) = delete;
  SourceBuild& operator=(const SourceBuild&) = delete;
  ~SourceBuild() = default;

  /// Once. A Conflict where its tools cannot be had. Throws as ReleaseBuilder::build.
  std::variant<BuiltRelease, Conflict> run();

 private:
  BuildWorkshop& workshop();
  BuildWorkshop& equipped();
  StatedSource stated();
  std::optional<Conflict> choose_tools();
  Lock tools_before() const;
  std::vector<std::string> asked();
  LockedWheel wheel();
  BuiltRelease built(LockedWheel wheel);

  const BuildPlace& place_;
  LockedSource source_;
  Lay lay_;
  const Lock& base_;
  BuildSettings settings_;
  std::vector<LockedWheel> image_;  ///< where the build wants to know it
  ToolQuestion question_;
  BuildMemory memory_;
  std::optional<Activity> activity_;
  std::optional<BuildWorkshop> workshop_;
  WheelResolution tools_;
  bool is_equipped_ = false;
};

}  // namespace mlenv
